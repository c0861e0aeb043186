/*-------------------------------------------------------------------------
 *
 * indexes.c
 *	  Whether an index of access method bloomfilter says that a table has none
 *	  of the keys of a filter.
 *
 * It says so while all keys are listed, see range.c.  What holds for the gates
 * of queries by a key holds here: the index has the keys of all rows that the
 * snapshot sees, or says nothing, see src/index/README.md.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

#include "access/heapam.h"
#include "index/index.h"
#include "utils/inval.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/*
 * For each of these keys of the scan's table, the index that has it, or
 * InvalidOid.  NULL if there is none.
 */
Oid *
pgbloom_join_find_indexes(ScanState *scan, List *keys)
{
	Relation	table = scan->ss_currentRelation;
	List	   *indexes;
	Oid		   *result = NULL;
	ListCell   *x,
			   *y;

	if (!bfi_asked_by_queries || !IsA(scan, SeqScanState) ||
		!table->rd_rel->relhasindex ||
		table->rd_tableam != GetHeapamTableAmRoutine())
		return NULL;
	indexes = RelationGetIndexList(table);
	foreach(x, indexes)
	{
		AttrNumber	column = bfi_column_of(lfirst_oid(x));

		foreach(y, keys)
		{
			if (column == 0 || pgbloom_join_column(lfirst(y)) != column)
				continue;
			if (result == NULL)
				result = palloc0(sizeof(Oid) * list_length(keys));
			result[foreach_current_index(y)] = lfirst_oid(x);
		}
	}
	list_free(indexes);
	return result;
}

/*
 * Does an index say that no row has a key of the range?  This does not wait for
 * somebody who has locked the index.
 */
static bool
rules_out(Relation table, Oid oid, PgBloomJoinRange *range)
{
	BfiPartition leaf = {
		.table = RelationGetRelid(table),
		.index = oid
	};
	BfiIndex	index;
	bool		result;

	bfi_open_leaf(&index, &leaf);
	result = index.complete && !pgbloom_join_range_may_be_in(range, &index);
	bfi_close(&index);
	return result;
}

/*
 * Does one of the indexes, which are those of the keys of the filter, say so
 * under the snapshot of the scan?  What others have done to it must be known:
 * locks that are held already do not tell of it.
 */
bool
pgbloom_join_indexes_refute(ScanState *scan, PgBloomJoinRanges *filter,
							const Oid *indexes)
{
	bool		refuted = false;
	int			i;

	AcceptInvalidationMessages();
	PushActiveSnapshot(scan->ps.state->es_snapshot);
	for (i = 0; i < filter->nkeys && !refuted; i++)
	{
		if (OidIsValid(indexes[i]))
			refuted = rules_out(scan->ss_currentRelation, indexes[i],
								filter->ranges[i]);
	}
	PopActiveSnapshot();
	return refuted;
}
