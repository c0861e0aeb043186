/*-------------------------------------------------------------------------
 *
 * handler.c
 *	  The index access method "bloomfilter".
 *
 * The planner makes no plans of it: neither amgettuple nor amgetbitmap is
 * there.  Functions look into the index instead.
 *
 *-------------------------------------------------------------------------
 */
#include "index/index.h"

#include "access/amapi.h"
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/pg_am.h"
#include "nodes/execnodes.h"
#include "nodes/pathnodes.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

PG_FUNCTION_INFO_V1(bloomfilter_handler);

/* What a statement remembers of an index that it inserts into. */
typedef struct InsertState
{
	PgBloomKeyInfo *key_info;
	uint64		seed;
	MemoryContext key_context;	/* for one key */
	MemoryContextCallback end;	/* of the statement */
} InsertState;

static void
end_statement(void *arg)
{
	(void) arg;
	bfi_flush();
}

/*
 * Begin to insert.  Before PostgreSQL 17, nobody tells an index when a statement
 * ends, so that is when the memory goes away.
 */
static InsertState *
begin_inserting(Relation index, IndexInfo *info)
{
	InsertState *state = MemoryContextAllocZero(info->ii_Context,
												sizeof(*state));
	BfiMeta		meta;

	bfi_read_meta(index, &meta);
	state->key_info = bfi_key_info(index, info->ii_Context);
	state->seed = meta.seed;
	bfi_check_key_type(index, &meta, state->key_info);
	state->key_context = AllocSetContextCreate(info->ii_Context,
											   "key of a Bloom filter index",
											   ALLOCSET_SMALL_SIZES);
	state->end.func = end_statement;
	if (!PGBLOOM_HAS_INSERT_CLEANUP)
		MemoryContextRegisterResetCallback(info->ii_Context, &state->end);
	info->ii_AmCache = state;
	return state;
}

/* By this session, whatever becomes of them. */
uint64		bfi_keys_inserted = 0;

static bool
bloomfilter_insert(Relation index, Datum *values, bool *isnull, ItemPointer tid,
				   Relation heap, IndexUniqueCheck check_unique, bool index_unchanged,
				   IndexInfo *info)
{
	InsertState *state = info->ii_AmCache;
	MemoryContext old_context;
	uint64		hash;

	(void) tid;
	(void) check_unique;
	(void) index_unchanged;
	if (isnull[0])
		return false;
	bfi_keys_inserted++;
	if (state == NULL)
		state = begin_inserting(index, info);
	old_context = MemoryContextSwitchTo(state->key_context);
	hash = pgbloom_hash_value(state->key_info, values[0], state->seed);
	MemoryContextSwitchTo(old_context);
	MemoryContextReset(state->key_context);

	/* A table that takes the place of another one loses its files before. */
	if (OidIsValid(heap->rd_rel->relrewrite))
		bfi_write(index, &hash, 1);
	else
		bfi_pend(index, hash);
	return false;
}

/* An index holds no row pointers, so there is nothing to remove. */
static IndexBulkDeleteResult *
bloomfilter_bulk_delete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats,
						IndexBulkDeleteCallback callback, void *callback_state)
{
	(void) info;
	(void) callback;
	(void) callback_state;
	return stats;
}

/* A scan is not possible, so no plan may be cheaper than one. */
static void
bloomfilter_cost_estimate(PlannerInfo *root, IndexPath *path, double loop_count,
						  Cost *startup_cost, Cost *total_cost, Selectivity *selectivity,
						  double *correlation, double *pages)
{
	(void) root;
	(void) path;
	(void) loop_count;
	*startup_cost = *total_cost = 1e300;
	*selectivity = 1;
	*correlation = 0;
	*pages = 0;
}

/* Is an index that the planner knows one of this access method? */
bool
bfi_is_bloomfilter(const IndexOptInfo *index)
{
	return index->amcostestimate == bloomfilter_cost_estimate;
}

/* Is it this access method? */
bool
bfi_is_access_method(Oid method)
{
	static PgBloomSymbol symbol =
	{
		"bloomfilter_handler", bloomfilter_handler, InvalidOid
	};
	HeapTuple	tuple;
	Oid			handler;

	if (method < FirstNormalObjectId)
		return false;
	tuple = SearchSysCache1(AMOID, ObjectIdGetDatum(method));
	if (!HeapTupleIsValid(tuple))
		return false;
	handler = ((Form_pg_am) GETSTRUCT(tuple))->amhandler;
	ReleaseSysCache(tuple);
	return pgbloom_calls(handler, &symbol);
}

static bool
bloomfilter_validate(Oid opclass)
{
	(void) opclass;
	return true;
}

static IndexScanDesc
bloomfilter_begin_scan(Relation index, int nkeys, int norderbys)
{
	(void) nkeys;
	(void) norderbys;
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("index \"%s\" cannot be scanned",
					RelationGetRelationName(index)),
			 errhint("Look up keys by bloom_index_contains.")));
	return NULL;
}

static const IndexAmRoutine bloomfilter_routine = {
	.type = T_IndexAmRoutine,
	PGBLOOM_AM_SUMMARIZING
	.ambuild = bfi_build,
	.ambuildempty = bfi_build_empty,
	.aminsert = bloomfilter_insert,
	PGBLOOM_AM_INSERT_CLEANUP(bfi_insert_cleanup)
	.ambulkdelete = bloomfilter_bulk_delete,
	.amvacuumcleanup = bfi_vacuum_cleanup,
	.amcostestimate = bloomfilter_cost_estimate,
	.amoptions = bfi_options,
	.ambuildphasename = bfi_build_phase_name,
	.amvalidate = bloomfilter_validate,
	.ambeginscan = bloomfilter_begin_scan
};

Datum
bloomfilter_handler(PG_FUNCTION_ARGS)
{
	(void) fcinfo;
	PGBLOOM_RETURN_AM_ROUTINE(bloomfilter_routine);
}
