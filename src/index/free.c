/*-------------------------------------------------------------------------
 *
 * free.c
 *	  VACUUM returns pages of indexes to the file system.
 *
 *-------------------------------------------------------------------------
 */
#include "index/index.h"

#include "access/genam.h"
#include "access/xact.h"
#include "catalog/storage.h"
#include "commands/vacuum.h"
#include "storage/lmgr.h"
#include "utils/rel.h"

/* Return pages at the end of an index, unless somebody uses it just now. */
static void
cut_off(Relation index)
{
	BfiMeta		meta;

	bfi_read_meta(index, &meta);
	if (RelationGetNumberOfBlocks(index) <= bfi_end(&meta) ||
		!ConditionalLockRelation(index, AccessExclusiveLock))
		return;
	bfi_read_meta(index, &meta);
	if (RelationGetNumberOfBlocks(index) > bfi_end(&meta))
		RelationTruncate(index, bfi_end(&meta));
	UnlockRelation(index, AccessExclusiveLock);
}

/*
 * Return pages of all of a table's indexes after VACUUM has cleaned up the last
 * one.  A standby holds the locks until VACUUM ends, and no query of the table is
 * planned there meanwhile, so no other rebuild must follow; and it has none if the
 * table's parameter forbids it.  The lock takes a transaction ID, so this is not
 * for a parallel VACUUM.
 */
void
bfi_return_free_pages(Relation heap, Relation cleaned)
{
	List	   *indexes = NIL;
	ListCell   *lc;

	if (IsInParallelMode() || !PGBLOOM_MAY_TRUNCATE(heap))
		return;
	foreach(lc, RelationGetIndexList(heap))
	{
		Relation	index = index_open(lfirst_oid(lc), RowExclusiveLock);

		if (index->rd_rel->relam == cleaned->rd_rel->relam &&
			index->rd_index->indisready)
			indexes = lappend(indexes, index);
		else
			index_close(index, RowExclusiveLock);
	}
	foreach(lc, indexes)
	{
		if (RelationGetRelid((Relation) llast(indexes)) == RelationGetRelid(cleaned))
			cut_off(lfirst(lc));
		index_close(lfirst(lc), RowExclusiveLock);
	}
}
