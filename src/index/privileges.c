/*-------------------------------------------------------------------------
 *
 * privileges.c
 *	  Who may look up keys in an index.
 *
 * An answer tells something about the rows of the table, so it takes what a
 * query of the indexed columns takes.
 *
 *-------------------------------------------------------------------------
 */
#include "index/index.h"

#include "access/sysattr.h"
#include "catalog/pg_class_d.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/rls.h"

/* The columns that an index reads, as pull_varattnos numbers them. */
static Bitmapset *
indexed_columns(Relation index)
{
	AttrNumber	column = index->rd_index->indkey.values[0];
	Bitmapset  *columns = NULL;

	if (column != InvalidAttrNumber)
		columns = bms_make_singleton(column -
									 FirstLowInvalidHeapAttributeNumber);
	bfi_pull_columns(index, &columns);
	return columns;
}

static bool
may_select_columns(Oid table, Bitmapset *columns)
{
	int			i = -1;

	while ((i = bms_next_member(columns, i)) >= 0)
	{
		AttrNumber	column = (AttrNumber) (i +
										   FirstLowInvalidHeapAttributeNumber);

		/* A whole row takes the privilege for the table. */
		if (column == InvalidAttrNumber ||
			pg_attribute_aclcheck(table, column, GetUserId(),
								  ACL_SELECT) != ACLCHECK_OK)
			return false;
	}
	return columns != NULL;
}

/* Raise an error if the user may not read the indexed columns of all rows. */
void
bfi_check_privileges(Relation index)
{
	Oid			table = index->rd_index->indrelid;

	if (pg_class_aclcheck(table, GetUserId(), ACL_SELECT) != ACLCHECK_OK &&
		!may_select_columns(table, indexed_columns(index)))
		aclcheck_error(ACLCHECK_NO_PRIV,
					   get_relkind_objtype(get_rel_relkind(table)),
					   get_rel_name(table));
	if (check_enable_rls(table, InvalidOid, true) == RLS_ENABLED)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("index \"%s\" tells about rows that row-level security hides",
						RelationGetRelationName(index)),
				 errdetail("Row-level security of table \"%s\" applies to user \"%s\".",
						   get_rel_name(table),
						   GetUserNameFromId(GetUserId(), false)),
				 errhint("Call the function in a SECURITY DEFINER function of the owner of the table.")));
}
