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

struct PgBloomJoinShared
{
	int			nprocesses;
	int			nfilters;
	BfGeometry	geometry;		/* of shared bits; of size 0 if there are none */
	Size		counts_at;		/* offset of nprocesses * nfilters counts */
	Size		bits_at;		/* offset of the bits, before alignment */
	Size		size;			/* of all */
};
typedef struct PgBloomJoinShared Shared;

/* Fill in the sizes of what a plan with so many processes needs. */
static void
plan_shared(PgBloomJoinBuild *build, int nprocesses, Shared *shared)
{
	memset(shared, 0, sizeof(*shared));
	shared->nprocesses = nprocesses;
	shared->nfilters = build->nfilters;
	shared->counts_at = CACHELINEALIGN(sizeof(Shared));
	shared->size = shared->bits_at = shared->counts_at +
		mul_size(mul_size(nprocesses, build->nfilters), sizeof(SharedCounts));
	if (build->shared_hash)
	{
		double		rows = build->css.ss.ps.plan->plan_rows * nprocesses;

		pgbloom_join_shared_geometry(rows * ESTIMATE_MARGIN,
									 &shared->geometry);
		shared->size = add_size(shared->bits_at + PG_CACHE_LINE_SIZE,
								mul_size(bf_geometry_size(&shared->geometry),
										 build->nfilters));
	}
}

static PgBloomJoinCounts *
shared_counts(Shared *shared, int process, int filter)
{
	SharedCounts *counts = (SharedCounts *)
		((char *) shared + shared->counts_at);

	return &counts[process * shared->nfilters + filter].counts;
}

/*
 * Let the filters of this process use shared memory.  Shared bits are probed from
 * the beginning: in a Parallel Hash, no process reads the outer side before all
 * have read the inner side, so one that comes too late for that finds complete
 * bits.
 */
static void
attach_process(PgBloomJoinBuild *build, Shared *shared, int process)
{
	int			i;

	build->shared = shared;
	for (i = 0; i < build->nfilters; i++)
	{
		PgBloomJoinFilter *filter = &build->filters[i];

		filter->counts = shared_counts(shared, process, i);
		if (build->shared_hash)
		{
			filter->geometry = shared->geometry;
			filter->bits = build->collectors[i].shared_bits = (uint8 *)
				CACHELINEALIGN((char *) shared + shared->bits_at) +
				bf_geometry_size(&shared->geometry) * i;
			filter->skip = 0;
		}
	}
}

Size
pgbloom_join_estimate_dsm(CustomScanState *node, ParallelContext *pcxt)
{
	Shared		shared;

	plan_shared((PgBloomJoinBuild *) node, pcxt->nworkers + 1, &shared);
	return shared.size;
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
	attach_process(build, shared, 0);
}

void
pgbloom_join_initialize_worker(CustomScanState *node, shm_toc *toc,
							   void *coordinate)
{
	(void) toc;
	attach_process((PgBloomJoinBuild *) node, coordinate, ParallelWorkerNumber + 1);
}

/* Add the counts of all processes to those in local memory. */
static void
add_counts(Shared *shared, int filter, PgBloomJoinCounts *sum)
{
	uint64		keys = 0;
	int			process;

	for (process = 0; process < shared->nprocesses; process++)
	{
		PgBloomJoinCounts *counts = shared_counts(shared, process, filter);

		if (bf_geometry_bits(&shared->geometry) > 0)
			keys += counts->keys;
		else
			keys = Max(keys, counts->keys);
		sum->size = Max(sum->size, counts->size);
		sum->checked += counts->checked;
		sum->removed += counts->removed;
		sum->scans += counts->scans;
		sum->skipped += counts->skipped;
		sum->by_index += counts->by_index;
		sum->blocks += counts->blocks;
		sum->blocks_read += counts->blocks_read;
		sum->state = Max(sum->state, counts->state);
	}
	sum->keys = Max(sum->keys, keys);
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

		pgbloom_join_start_window(filter);
		if (IsParallelWorker())
			continue;
		add_counts(build->shared, i, &filter->local_counts);
		filter->counts = &filter->local_counts;
		pgbloom_join_withdraw(&build->collectors[i]);
	}
	if (!IsParallelWorker())
		build->shared = NULL;
}
