/*-------------------------------------------------------------------------
 *
 * collect.c
 *	  Building the filter of a join: collecting hashes, and making bits of them.
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

/* Collect no more, and release what has been collected. */
static void
release(PgBloomJoinCollector *collector)
{
	collector->collecting = false;
	collector->hashes = NULL;
	collector->new_bits = NULL;
	MemoryContextReset(collector->context);
}

/*
 * Let all rows pass from now on.  So it is when the inner side is read again:
 * its rows may be others.
 */
void
pgbloom_join_withdraw(PgBloomJoinCollector *collector)
{
	PgBloomJoinFilter *filter = collector->filter;
	PgBloomJoinRanges *ranges = &filter->ranges;

	pgbloom_join_start_window(filter);
	filter->skip = PG_INT64_MAX;
	filter->bits = NULL;
	release(collector);
	ranges->complete = ranges->usable = false;
	memset(ranges->ranges, 0, sizeof(ranges->ranges));
}

static void
set_filter_geometry(BfGeometry *geometry, uint64 nblocks)
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

	set_filter_geometry(geometry, Max(Min(blocks_for(keys), max), 1));
}

/* Memory of zeros, aligned to a cache line. */
static uint8 *
alloc_bits(PgBloomJoinCollector *collector)
{
	Size		size = bf_geometry_size(&collector->filter->geometry);
	char	   *memory;

	memory = MemoryContextAllocExtended(collector->context, size + BF_CACHE_LINE,
										MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	return (uint8 *) TYPEALIGN(BF_CACHE_LINE, memory);
}

/*
 * Move the hashes of the list into the bits, which are made first if there are
 * none.  Each hash touches one cache line, which is prefetched.
 */
static void
move_to_bits(PgBloomJoinCollector *collector)
{
	const BfGeometry *geometry = &collector->filter->geometry;
	BfEnv		env = pgbloom_env(collector->context);

	if (collector->new_bits == NULL)
		collector->new_bits = alloc_bits(collector);
	bf_bits_add_all(&env.interrupts, geometry, collector->new_bits,
					collector->hashes, collector->nhashes, &collector->bits_set);
	collector->nhashes = 0;
}

/* Make the list larger, unless it takes a quarter of the limit. */
static bool
enlarge_list(PgBloomJoinCollector *collector)
{
	Size		max = collector->limit / 4 / sizeof(uint64);
	Size		size = collector->hashes_size == 0 ? FIRST_HASHES :
		(Size) collector->hashes_size * 2;

	if (collector->hashes_size > 0 && (size > max || size > PG_UINT32_MAX))
		return false;
	collector->hashes = collector->hashes == NULL ?
		MemoryContextAlloc(collector->context, size * sizeof(uint64)) :
		repalloc_huge(collector->hashes, size * sizeof(uint64));
	collector->hashes_size = (uint32) size;
	return true;
}

/*
 * The geometry of bits that take the hashes of a list that is full: the
 * largest number of blocks that is three times a power of two, so that they
 * can be folded, and within three quarters of the limit.
 */
static void
choose_largest_geometry(PgBloomJoinCollector *collector)
{
	uint64		nblocks = 3;

	while (nblocks * 2 * BF_CACHE_LINE <= collector->limit / 4 * 3 &&
		   nblocks * 2 <= PG_UINT32_MAX)
		nblocks *= 2;
	set_filter_geometry(&collector->filter->geometry, nblocks);
}

/* Build no filter of what has been collected. */
static void
give_up(PgBloomJoinCollector *collector)
{
	collector->filter->counts->state = PGBLOOM_JOIN_OVER_LIMIT;
	release(collector);
}

/*
 * Make room in a full list.
 *
 * A filter of which more than half the bits are set would let too many rows
 * pass, so collecting ends.  Shared bits must have the keys of all processes,
 * so there it goes on.
 */
static void
make_room_for_hash(PgBloomJoinCollector *collector)
{
	if (collector->new_bits == NULL && enlarge_list(collector))
		return;
	if (collector->new_bits == NULL && collector->shared_bits == NULL)
		choose_largest_geometry(collector);
	move_to_bits(collector);
	if (collector->shared_bits == NULL &&
		collector->bits_set > bf_geometry_bits(&collector->filter->geometry) / 2)
		give_up(collector);
}

/*
 * Add the hash of a row of the inner side.  If that has so many more rows than
 * estimated that the filter saves less than it costs, or that nearly all outer rows
 * are likely to match, which some filters do not sample, collecting ends.  Of
 * shared bits, each process adds only some, so none of them knows.
 */
void
pgbloom_join_collect(PgBloomJoinCollector *collector, uint64 hash)
{
	if (++collector->filter->counts->keys > (uint64) collector->most_keys &&
		collector->shared_bits == NULL)
	{
		give_up(collector);
		return;
	}
	if (collector->nhashes == collector->hashes_size)
	{
		make_room_for_hash(collector);
		if (!collector->collecting)
			return;
	}
	collector->hashes[collector->nhashes++] = hash;
}

/*
 * Fold bits that are larger than the keys need, in place: probes of fewer
 * bytes miss the processor's cache less often.
 */
static void
fold_filter(PgBloomJoinCollector *collector)
{
	double		keys = bf_geometry_cardinality(&collector->filter->geometry,
											   collector->bits_set);
	uint64		needed = blocks_for(keys);
	uint32		nblocks = collector->filter->geometry.nblocks;
	uint32		factor = 1;
	BfEnv		env = pgbloom_env(collector->context);

	while (nblocks / factor % 2 == 0 && nblocks / factor / 2 >= needed)
		factor *= 2;
	if (factor == 1)
		return;
	bf_bitmap_fold(&env.interrupts, collector->new_bits, collector->new_bits,
				   nblocks, factor, BF_CACHE_LINE);
	set_filter_geometry(&collector->filter->geometry, nblocks / factor);
}

/* Add the bits of this process to those of all. */
static void
merge_shared(PgBloomJoinCollector *collector)
{
	pg_atomic_uint32 *shared = (pg_atomic_uint32 *) collector->shared_bits;
	uint32	   *mine = (uint32 *) collector->new_bits;
	Size		n = bf_geometry_size(&collector->filter->geometry) / sizeof(uint32);
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

/* The inner side has been read: let the outer side be probed. */
void
pgbloom_join_publish(PgBloomJoinCollector *collector)
{
	PgBloomJoinFilter *filter = collector->filter;

	filter->ranges.complete = filter->ranges.usable;
	if (!collector->collecting)
		return;
	collector->collecting = false;
	if (collector->shared_bits != NULL)
	{
		move_to_bits(collector);
		merge_shared(collector);
		release(collector);
	}
	else
	{
		bool		sized = collector->new_bits == NULL;

		if (sized)
			set_filter_geometry(&filter->geometry, blocks_for(collector->nhashes));
		move_to_bits(collector);
		if (!sized)
			fold_filter(collector);
		if (collector->hashes != NULL)
			pfree(collector->hashes);
		collector->hashes = NULL;
		filter->bits = collector->new_bits;
	}
	filter->counts->size = bf_geometry_size(&filter->geometry);
	filter->skip = 0;
}
