/*-------------------------------------------------------------------------
 *
 * shared.c
 *	  Join filters of parallel plans: shared memory.
 *
 * Each process has counts of its own there, which EXPLAIN ANALYZE adds up.
 *
 * A Hash node that is not shared is executed by each process as a whole, and
 * each has filters of its own.  In a Parallel Hash each process sees only some
 * of the rows.  There, the bits are in shared memory, sized by the estimate of
 * the number of rows, and each process adds what it has collected.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

#include "access/parallel.h"
#include "core/bits.h"
#include "storage/shm_toc.h"

/*
 * The bits are made for so many times the estimated number of rows, because
 * they cannot grow.
 */
#define ESTIMATE_MARGIN	2

/* A filter in shared memory; the counts have cache lines of their own. */
typedef union SharedCounts
{
	PgBloomJoinCounts counts;
	char		padding[PG_CACHE_LINE_SIZE];
} SharedCounts;

/*
 * What the leader has for a filter.  Workers may see other scans that can be
 * skipped, since they look for indexes later, and limit no blocks.
 */
typedef struct SharedFilter
{
	bool		has_ranges;
	int			nscans;
} SharedFilter;

struct PgBloomJoinShared
{
	int			nprocesses;
	int			nfilters;
	BfGeometry	geometry;		/* of shared bits; of size 0 if there are none */
	Size		counts_at;		/* offset of nprocesses * nfilters counts */
	Size		bits_at;		/* offset of the bits, before alignment */
	Size		ranges_at;		/* offset of the ranges, filter by filter */
	Size		skipped_at;		/* offset of a bool for each scan */
	Size		size;			/* of all */
	SharedFilter filters[FLEXIBLE_ARRAY_MEMBER];
};
typedef struct PgBloomJoinShared Shared;

/* The memory for the ranges of a filter in all processes of a Parallel Hash. */
static Size
ranges_size(const Shared *shared, int i, const PgBloomJoinFilter *filter)
{
	if (!shared->filters[i].has_ranges)
		return 0;
	return mul_size(PGBLOOM_SHARED_RANGE_SIZE,
					mul_size(filter->nkeys, shared->nprocesses));
}

static Size
shared_header_size(const PgBloomJoinBuild *build)
{
	return offsetof(Shared, filters) + sizeof(SharedFilter) * build->nfilters;
}

/* Fill in the sizes of what a plan with so many processes needs. */
static void
plan_shared(PgBloomJoinBuild *build, int nprocesses, Shared *shared)
{
	Size		bits_size = 0;
	int			i;

	memset(shared, 0, shared_header_size(build));
	shared->nprocesses = nprocesses;
	shared->nfilters = build->nfilters;
	for (i = 0; i < build->nfilters; i++)
	{
		shared->filters[i].has_ranges = build->shared_hash &&
			build->filters[i].ranges[0] != NULL;
		shared->filters[i].nscans = build->filters[i].nscans;
	}
	shared->counts_at = CACHELINEALIGN(shared_header_size(build));
	shared->bits_at = shared->counts_at +
		mul_size(mul_size(nprocesses, build->nfilters), sizeof(SharedCounts));
	if (build->shared_hash && build->nfilters > 0)
	{
		double		rows = build->css.ss.ps.plan->plan_rows * nprocesses;

		pgbloom_join_shared_geometry(rows * ESTIMATE_MARGIN,
									 &shared->geometry);
		bits_size = bf_geometry_size(&shared->geometry);
	}
	shared->ranges_at = MAXALIGN(add_size(shared->bits_at + PG_CACHE_LINE_SIZE,
										  mul_size(bits_size,
												   build->nfilters)));
	shared->skipped_at = shared->ranges_at;
	for (i = 0; i < build->nfilters; i++)
		shared->skipped_at = add_size(shared->skipped_at,
									  ranges_size(shared, i,
												  &build->filters[i]));
	shared->size = shared->skipped_at;
	for (i = 0; i < build->nfilters; i++)
		shared->size = add_size(shared->size, shared->filters[i].nscans);
}

static PgBloomJoinCounts *
shared_counts(Shared *shared, int process, int filter)
{
	SharedCounts *counts = (SharedCounts *)
		((char *) shared + shared->counts_at);

	return &counts[process * shared->nfilters + filter].counts;
}

/* Start without keys; a worker may not start again. */
static void
clear_shared(Shared *shared)
{
	int			i;

	memset((char *) shared + shared->bits_at, 0,
		   shared->size - shared->bits_at);
	for (i = 0; i < shared->nprocesses * shared->nfilters; i++)
		shared_counts(shared, 0, i)->keys = 0;
}

/* Let the filters of this process use shared memory. */
static void
attach_process(PgBloomJoinBuild *build, Shared *shared, int process)
{
	char	   *ranges = (char *) shared + shared->ranges_at;
	char	   *skipped = (char *) shared + shared->skipped_at;
	int			i;

	build->shared = shared;
	for (i = 0; i < build->nfilters; i++)
	{
		PgBloomJoinFilter *filter = &build->filters[i];

		filter->counts = shared_counts(shared, process, i);
		if (bf_geometry_bits(&shared->geometry) > 0)
		{
			filter->geometry = shared->geometry;
			filter->shared_bits = (uint8 *)
				CACHELINEALIGN((char *) shared + shared->bits_at) +
				bf_geometry_size(&shared->geometry) * i;
			if (shared->filters[i].has_ranges)
			{
				pgbloom_join_want_ranges(filter);
				filter->shared_ranges = ranges;
			}
		}
		filter->nprocesses = shared->nprocesses;
		filter->process = process;
		if (filter->nscans > 0 && filter->nscans == shared->filters[i].nscans)
			filter->skipped = (bool *) skipped;
		ranges += ranges_size(shared, i, filter);
		skipped += shared->filters[i].nscans;
		pgbloom_join_reset(filter);
	}
}

Size
pgbloom_join_estimate_dsm(CustomScanState *node, ParallelContext *pcxt)
{
	PgBloomJoinBuild *build = (PgBloomJoinBuild *) node;
	Shared	   *shared = palloc(shared_header_size(build));

	plan_shared(build, pcxt->nworkers + 1, shared);
	return shared->size;
}

void
pgbloom_join_initialize_dsm(CustomScanState *node, ParallelContext *pcxt,
							void *coordinate)
{
	PgBloomJoinBuild *build = (PgBloomJoinBuild *) node;
	Shared	   *shared = coordinate;

	plan_shared(build, pcxt->nworkers + 1, shared);
	memset((char *) shared + shared->counts_at, 0,
		   shared->size - shared->counts_at);

	/*
	 * Without a segment of shared memory, of which a server has a limited
	 * number, the join is not a parallel one: it may read an outer row before
	 * the inner side.
	 */
	if (pcxt->seg == NULL)
		memset(&shared->geometry, 0, sizeof(shared->geometry));
	attach_process(build, shared, 0);
}

/*
 * The workers start again, and read all rows again.  The leader may keep a hash
 * table that is not shared, and its filter with it.
 */
void
pgbloom_join_reinitialize_dsm(CustomScanState *node, ParallelContext *pcxt,
							  void *coordinate)
{
	Shared	   *shared = coordinate;

	(void) pcxt;
	if (bf_geometry_bits(&shared->geometry) == 0)
		return;
	clear_shared(shared);
	attach_process((PgBloomJoinBuild *) node, shared, 0);
}

void
pgbloom_join_initialize_worker(CustomScanState *node, shm_toc *toc,
							   void *coordinate)
{
	(void) toc;
	attach_process((PgBloomJoinBuild *) node, coordinate, ParallelWorkerNumber + 1);
}

/* Add the counts of all processes up in local memory. */
static void
sum_counts(Shared *shared, int filter, PgBloomJoinCounts *sum)
{
	int			process;

	memset(sum, 0, sizeof(*sum));
	for (process = 0; process < shared->nprocesses; process++)
	{
		PgBloomJoinCounts *counts = shared_counts(shared, process, filter);

		if (bf_geometry_bits(&shared->geometry) > 0)
			sum->keys += counts->keys;
		else
			sum->keys = Max(sum->keys, counts->keys);
		sum->size = Max(sum->size, counts->size);
		sum->checked += counts->checked;
		sum->removed += counts->removed;
		sum->blocks += counts->blocks;
		sum->blocks_read += counts->blocks_read;
		sum->state = Max(sum->state, counts->state);
	}
}

/*
 * The plan has returned its last row.  A worker leaves its counts in shared
 * memory; the leader, in which that memory ends now, copies the sums.  A cursor,
 * which has none, comes here after each FETCH.
 */
void
pgbloom_join_shutdown(CustomScanState *node)
{
	PgBloomJoinBuild *build = (PgBloomJoinBuild *) node;
	int			i;

	if (build->shared == NULL)
		return;
	for (i = 0; i < build->nfilters; i++)
	{
		PgBloomJoinFilter *filter = &build->filters[i];

		pgbloom_join_count(filter);
		if (IsParallelWorker())
			continue;
		sum_counts(build->shared, i, &filter->local_counts);
		filter->counts = &filter->local_counts;
		pgbloom_join_count_skipped(filter);
		filter->skipped = NULL;
		filter->shared_ranges = NULL;
		filter->shared_bits = NULL;
		pgbloom_join_withdraw(filter);
	}
	if (!IsParallelWorker())
		build->shared = NULL;
}
