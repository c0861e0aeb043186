/*-------------------------------------------------------------------------
 *
 * leaves.c
 *	  The leaves of a partitioned table that may have a key.
 *
 *-------------------------------------------------------------------------
 */
#include "prune/prune.h"

#include "miscadmin.h"
#include "utils/array.h"
#include "utils/lsyscache.h"

/* Read the keys.  Returns false if they are too many, or hash in another way. */
bool
bfp_read_keys(const Const *key, bool is_array, Oid collation, BfiKeys *keys)
{
	Oid			type = key->consttype;
	Datum	   *values = (Datum *) &key->constvalue;
	bool	   *nulls = NULL;
	int			n = 1;
	int			i;

	if (is_array)
	{
		ArrayType  *array = DatumGetArrayTypeP(key->constvalue);
		int16		typlen;
		bool		typbyval;
		char		typalign;

		type = ARR_ELEMTYPE(array);
		if (ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array)) > BFP_MAX_KEYS)
			return false;
		get_typlenbyvalalign(type, &typlen, &typbyval, &typalign);
		deconstruct_array(array, type, typlen, typbyval, typalign, &values,
						  &nulls, &n);
	}
	keys->values = palloc(n * sizeof(Datum));
	keys->n = 0;
	keys->context = CurrentMemoryContext;
	for (i = 0; i < n; i++)
	{
		if (nulls == NULL || !nulls[i])
			keys->values[keys->n++] = values[i];
	}
	keys->info = pgbloom_make_key_info(type, collation, CurrentMemoryContext,
									   false);
	return keys->info != NULL && !keys->info->untyped;
}

/*
 * Find the leaves that may have a key.  Returns false if they are too many, or
 * the index does not tell.
 */
bool
bfp_find_leaves(BfpTable *table)
{
	BfiIndex	index;
	BfiKeys		keys = {0};
	BfiPartition *leaves = NULL;
	bool		few = false;
	int			i;

	table->leaves = NIL;
	bfi_open_for_query(&index, table->index);
	if (index.relation != NULL && index.partitioned &&
		bfp_read_keys(table->key, table->is_array,
					  index.relation->rd_indcollation[0], &keys))
	{
		leaves = bfi_leaves(index.relation, &table->nleaves);
		few = true;
	}
	bfi_close(&index);
	for (i = 0; few && i < table->nleaves; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (bfi_leaf_may_have(&leaves[i], &keys))
		{
			table->leaves = lappend_oid(table->leaves, leaves[i].table);
			few = list_length(table->leaves) <=
				Min(BFP_MAX_LEAVES, table->nleaves - 1);
		}
	}
	return few;
}
