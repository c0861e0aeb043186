/*-------------------------------------------------------------------------
 *
 * filter.c
 *	  The filter of a join: collecting hashes, and making bits of them.
 *
 * Hashes are collected in a list, so that the bits can be sized by their
 * number.  A list that is full is moved into the largest bits that the limit
 * allows, and filled again; these bits are folded to the size that the keys
 * need at the end.
 *
 * A filter sets four bits for each key in one cache line.  It need not be
 * exact: a row that is let through by mistake only costs what it would cost
 * without a filter.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

#include <math.h>

#include "core/bits.h"
#include "miscadmin.h"
#include "pgbloom.h"
#include "utils/memutils.h"

#define NHASHES			4

/* Up to this size, in bytes, a filter has more bits for each key. */
#define SMALL_SIZE			16384
#define SMALL_BITS_PER_KEY	32

#define FIRST_HASHES	1024

static dlist_head filters = DLIST_STATIC_INIT(filters);
static PgBloomJoinFilter *last_found = NULL;

static void
forget_filter(void *filter)
{
	dlist_delete(&((PgBloomJoinFilter *) filter)->node);
	last_found = NULL;
}

/*
 * Make the filter known to the probes of this execution of the plan.  It is
 * forgotten with the memory of the execution.
 */
void
pgbloom_join_register(PgBloomJoinFilter *filter)
{
	MemoryContextCallback *callback = MemoryContextAlloc(filter->query,
														 sizeof(*callback));

	dlist_push_head(&filters, &filter->node);
	callback->func = forget_filter;
	callback->arg = filter;
	MemoryContextRegisterResetCallback(filter->query, callback);
}

static PgBloomJoinFilter *
filter_at(dlist_node *node)
{
	return dlist_container(PgBloomJoinFilter, node, node);
}

bool
pgbloom_join_has_filters(MemoryContext query)
{
	dlist_iter	iter;

	dlist_foreach(iter, &filters)
	{
		if (filter_at(iter.cur)->query == query)
			return true;
	}
	return false;
}

static bool
is_filter_of(const PgBloomJoinFilter *filter, MemoryContext query, int number,
			 Oid function)
{
	return filter->query == query && filter->number == number &&
		filter->function == function;
}

/*
 * Find the filter of a call of the probe function by the execution that it
 * belongs to.  An execution without the filter's node gets a filter that lets
 * all rows pass: EvalPlanQual executes a part of a plan that way.  So does a
 * call that is not by the planner.
 *
 * A join of many partitions, two by two, has as many filters, which are asked
 * for in the order of the list, or its reverse, a few times each.
 */
PgBloomJoinFilter *
pgbloom_join_find(MemoryContext query, const Node *node)
{
	static PgBloomJoinFilter none = {.skip = PG_INT64_MAX};
	const FuncExpr *call = (const FuncExpr *) node;
	dlist_iter	iter;
	int			number;
	int			i;

	if (node == NULL || !IsA(node, FuncExpr) ||
		call->funcformat != PGBLOOM_PROBE_FORM || call->args == NIL ||
		!IsA(linitial(call->args), Const))
		return &none;
	number = DatumGetInt32(linitial_node(Const, call->args)->constvalue);
	if (last_found != NULL)
	{
		dlist_node *neighbors[] = {&last_found->node, last_found->node.next,
		last_found->node.prev};

		for (i = 0; i < (int) lengthof(neighbors); i++)
		{
			if (neighbors[i] != &filters.head &&
				is_filter_of(filter_at(neighbors[i]), query, number, call->funcid))
				return last_found = filter_at(neighbors[i]);
		}
	}
	dlist_foreach(iter, &filters)
	{
		if (is_filter_of(filter_at(iter.cur), query, number, call->funcid))
			return last_found = filter_at(iter.cur);
	}
	return &none;
}

/*
 * Let all rows pass, from now on.  Not so with shared bits: in a Parallel Hash,
 * no process reads the outer side before all have read the inner side, so a
 * process that came too late for the inner side finds complete bits.
 */
void
pgbloom_join_withdraw(PgBloomJoinFilter *filter)
{
	pgbloom_join_count(filter);
	filter->bits = filter->shared_bits;
	filter->complete = false;
	filter->generation++;
	filter->skip = filter->shared_bits != NULL ? 0 : PG_INT64_MAX;
}

/* Release what has been collected, and let all rows pass. */
void
pgbloom_join_reset(PgBloomJoinFilter *filter)
{
	int			i;

	pgbloom_join_withdraw(filter);
	MemoryContextReset(filter->context);
	filter->hashes = NULL;
	filter->nhashes = filter->hashes_size = 0;
	filter->new_bits = NULL;
	filter->bits_set = 0;
	filter->collecting = true;
	filter->counts->keys = 0;
	/* Probe each row, at least in the first window. */
	filter->sampling = false;
	pgbloom_join_count(filter);
	for (i = 0; i < filter->nkeys && filter->ranges[i] != NULL; i++)
		pgbloom_join_clear_range(filter->ranges[i]);
	if (filter->range_context != NULL)
		MemoryContextReset(filter->range_context);
}

/* Collect the keys in their order, too. */
void
pgbloom_join_want_ranges(PgBloomJoinFilter *filter)
{
	MemoryContext caller;
	int			i;

	if (filter->range_context != NULL)
		return;
	caller = MemoryContextSwitchTo(filter->query);
	filter->range_context = AllocSetContextCreate(filter->query,
												  "join filter ranges",
												  ALLOCSET_SMALL_SIZES);
	for (i = 0; i < filter->nkeys; i++)
		filter->ranges[i] = pgbloom_join_make_range(filter->operators[i],
													filter->inner[i].collation,
													filter->types[i]);
	MemoryContextSwitchTo(caller);
}

/* The place of a range of a process in shared memory. */
static void *
shared_range(PgBloomJoinFilter *filter, int process, int key)
{
	return filter->shared_ranges +
		(process * filter->nkeys + key) * PGBLOOM_SHARED_RANGE_SIZE;
}

/*
 * Have the ranges all keys of the inner side?  In a Parallel Hash, no process
 * reads the outer side before all have read the inner side; the first call
 * then adds what the others have found.  There they never have all if the leader
 * wants none, because the others do not collect any.
 */
bool
pgbloom_join_is_complete(PgBloomJoinFilter *filter)
{
	int			process,
				i;

	if (filter->shared_bits != NULL && filter->shared_ranges == NULL)
		return false;
	if (filter->shared_ranges == NULL || filter->merged == filter->generation)
		return filter->complete;
	for (process = 0; process < filter->nprocesses; process++)
	{
		for (i = 0; i < filter->nkeys; i++)
			pgbloom_join_read_range(filter->ranges[i],
									shared_range(filter, process, i),
									filter->range_context);
	}
	filter->merged = filter->generation;
	filter->complete = true;
	return true;
}

/* Note whether a scan is skipped, for EXPLAIN. */
void
pgbloom_join_count_scan(PgBloomJoinFilter *filter, int scan, bool skipped)
{
	if (filter->skipped == NULL)
		filter->skipped = MemoryContextAllocZero(filter->query,
												 filter->nscans * sizeof(bool));
	filter->skipped[scan] = skipped;
}

/* Fill in how many scans are skipped. */
void
pgbloom_join_count_skipped(PgBloomJoinFilter *filter)
{
	int			i;

	if (filter->skipped == NULL)
		return;
	filter->counts->skipped = 0;
	for (i = 0; i < filter->nscans; i++)
		filter->counts->skipped += filter->skipped[i];
}

static void
set_geometry(BfGeometry *geometry, uint64 nblocks)
{
	memset(geometry, 0, sizeof(*geometry));
	geometry->nblocks = (uint32) nblocks;
	geometry->block_log2 = BF_MIN_BLOCK_LOG2;
	geometry->k = NHASHES;
}

/*
 * The number of blocks for so many keys.  Few keys get more bits, as these are
 * in the processor's cache anyway.
 */
static uint64
blocks_for(double keys)
{
	double		bits = Max(keys * PGBLOOM_JOIN_BITS_PER_KEY,
						   Min(keys * SMALL_BITS_PER_KEY, SMALL_SIZE * 8));
	double		nblocks = ceil(bits / (BF_CACHE_LINE * 8));

	return (uint64) Min(Max(nblocks, 1), PG_UINT32_MAX);
}

/*
 * The geometry of bits that several processes share.  They cannot be sized
 * when all keys are known, so it takes an estimate.  While a process collects,
 * it has as many of its own, besides its list.
 */
void
pgbloom_join_shared_geometry(double keys, BfGeometry *geometry)
{
	Size		max = pgbloom_join_filter_limit() / 4 * 3 / BF_CACHE_LINE;

	set_geometry(geometry, Max(Min(blocks_for(keys), max), 1));
}

/* Memory of zeros, aligned to a cache line. */
static uint8 *
alloc_bits(PgBloomJoinFilter *filter)
{
	Size		size = bf_geometry_size(&filter->geometry);
	char	   *memory;

	memory = MemoryContextAllocExtended(filter->context, size + BF_CACHE_LINE,
										MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	return (uint8 *) TYPEALIGN(BF_CACHE_LINE, memory);
}

/*
 * Move the hashes of the list into the bits, which are made first if there are
 * none.  Each hash touches one cache line, which is prefetched.
 */
static void
move_to_bits(PgBloomJoinFilter *filter)
{
	const BfGeometry *geometry = &filter->geometry;
	BfEnv		env = pgbloom_env(filter->context);

	if (filter->new_bits == NULL)
		filter->new_bits = alloc_bits(filter);
	bf_bits_add_all(&env.interrupts, geometry, filter->new_bits,
					filter->hashes, filter->nhashes, &filter->bits_set);
	filter->nhashes = 0;
}

/* Make the list larger, unless it takes a quarter of the limit. */
static bool
enlarge_list(PgBloomJoinFilter *filter)
{
	Size		max = filter->limit / 4 / sizeof(uint64);
	Size		size = filter->hashes_size == 0 ? FIRST_HASHES :
		(Size) filter->hashes_size * 2;

	if (filter->hashes_size > 0 && (size > max || size > PG_UINT32_MAX))
		return false;
	filter->hashes = filter->hashes == NULL ?
		MemoryContextAlloc(filter->context, size * sizeof(uint64)) :
		repalloc_huge(filter->hashes, size * sizeof(uint64));
	filter->hashes_size = (uint32) size;
	return true;
}

/*
 * The geometry of bits that take the hashes of a list that is full: the
 * largest number of blocks that is three times a power of two, so that they
 * can be folded, and within three quarters of the limit.
 */
static void
choose_largest_geometry(PgBloomJoinFilter *filter)
{
	uint64		nblocks = 3;

	while (nblocks * 2 * BF_CACHE_LINE <= filter->limit / 4 * 3 &&
		   nblocks * 2 <= PG_UINT32_MAX)
		nblocks *= 2;
	set_geometry(&filter->geometry, nblocks);
}

/* Build no filter of what has been collected. */
static void
give_up(PgBloomJoinFilter *filter)
{
	filter->counts->state = PGBLOOM_JOIN_OVER_LIMIT;
	filter->collecting = false;
	MemoryContextReset(filter->context);
	filter->hashes = NULL;
	filter->new_bits = NULL;
}

/*
 * Make room in a full list.
 *
 * A filter of which more than half the bits are set would let too many rows
 * pass, so collecting ends.  Shared bits must have the keys of all processes,
 * so there it goes on.
 */
static void
make_room(PgBloomJoinFilter *filter)
{
	if (filter->new_bits == NULL && enlarge_list(filter))
		return;
	if (filter->new_bits == NULL && filter->shared_bits == NULL)
		choose_largest_geometry(filter);
	move_to_bits(filter);
	if (filter->shared_bits == NULL &&
		filter->bits_set > bf_geometry_bits(&filter->geometry) / 2)
		give_up(filter);
}

/* Add the hash of a row of the inner side. */
void
pgbloom_join_collect(PgBloomJoinFilter *filter, uint64 hash)
{
	filter->counts->keys++;
	if (filter->nhashes == filter->hashes_size)
	{
		make_room(filter);
		if (!filter->collecting)
			return;
	}
	filter->hashes[filter->nhashes++] = hash;
}

/*
 * Fold bits that are larger than the keys need, in place: probes of fewer
 * bytes miss the processor's cache less often.
 */
static void
fold_filter(PgBloomJoinFilter *filter)
{
	double		keys = bf_geometry_cardinality(&filter->geometry,
											   filter->bits_set);
	uint64		needed = blocks_for(keys);
	uint32		nblocks = filter->geometry.nblocks;
	uint32		factor = 1;
	BfEnv		env = pgbloom_env(filter->context);

	while (nblocks / factor % 2 == 0 && nblocks / factor / 2 >= needed)
		factor *= 2;
	if (factor == 1)
		return;
	bf_bitmap_fold(&env.interrupts, filter->new_bits, filter->new_bits,
				   nblocks, factor, BF_CACHE_LINE);
	set_geometry(&filter->geometry, nblocks / factor);
}

/* Add the bits of this process to those of all. */
static void
merge_shared(PgBloomJoinFilter *filter)
{
	pg_atomic_uint32 *shared = (pg_atomic_uint32 *) filter->shared_bits;
	uint32	   *mine = (uint32 *) filter->new_bits;
	Size		n = bf_geometry_size(&filter->geometry) / sizeof(uint32);
	Size		i;

	StaticAssertStmt(sizeof(pg_atomic_uint32) == sizeof(uint32),
					 "bits cannot be addressed as atomic words");
	for (i = 0; i < n; i++)
	{
		if (i % BF_INTERRUPT_SPACING == 0)
			CHECK_FOR_INTERRUPTS();
		if (mine[i] != 0)
			pg_atomic_fetch_or_u32(&shared[i], mine[i]);
	}
}

/*
 * The inner side has been read: let the outer side be probed.  But not if it
 * had so many more rows than estimated that nearly all outer rows are likely to
 * match: some filters are not sampled.  Of shared bits, each process has added
 * only some, so none of them knows.
 */
void
pgbloom_join_publish(PgBloomJoinFilter *filter)
{
	int			i;

	if (filter->complete)
		return;
	for (i = 0; i < filter->nkeys && filter->shared_ranges != NULL; i++)
		pgbloom_join_write_range(filter->ranges[i],
								 shared_range(filter, filter->process, i));
	filter->complete = true;
	if (!filter->collecting)
		return;
	if (filter->counts->keys > filter->most_keys && filter->shared_bits == NULL)
	{
		give_up(filter);
		return;
	}
	filter->collecting = false;
	if (filter->shared_bits != NULL)
	{
		move_to_bits(filter);
		merge_shared(filter);
		MemoryContextReset(filter->context);
		filter->hashes = NULL;
		filter->new_bits = NULL;
	}
	else
	{
		bool		sized = filter->new_bits == NULL;

		if (sized)
			set_geometry(&filter->geometry, blocks_for(filter->nhashes));
		move_to_bits(filter);
		if (!sized)
			fold_filter(filter);
		if (filter->hashes != NULL)
			pfree(filter->hashes);
		filter->hashes = NULL;
		filter->bits = filter->new_bits;
	}
	filter->counts->size = bf_geometry_size(&filter->geometry);
	filter->skip = 0;
}
