/*-------------------------------------------------------------------------
 *
 * join.h
 *	  What the files of join filters share.
 *
 * README.md in this folder describes join filters.  Code of planning:
 * planner.c, target.c, repeatable.c.  Code of execution: build.c, filter.c,
 * shared.c, keys.c, probe.c, direct.c, page.c, explain.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGBLOOM_JOIN_H
#define PGBLOOM_JOIN_H

#include "postgres.h"

#include "access/htup_details.h"
#include "lib/ilist.h"
#include "nodes/execnodes.h"
#include "nodes/extensible.h"
#include "nodes/plannodes.h"
#include "port/atomics.h"

#include "pg/compat.h"
#include "core/bf.h"

/* Bits of a filter for each key. */
#define PGBLOOM_JOIN_BITS_PER_KEY	10

/* A filter of more key columns than this takes the first ones. */
#define PGBLOOM_MAX_JOIN_KEYS	8

/* Values of bloomfilter.join_filters. */
typedef enum PgBloomJoinMode
{
	PGBLOOM_JOIN_OFF,
	PGBLOOM_JOIN_ON,			/* where the estimates promise a gain */
	PGBLOOM_JOIN_FORCE			/* wherever the result is the same; for tests */
} PgBloomJoinMode;

/*
 * The form of a call of bloom_join_probe() that the planner adds.  The parser
 * gives it to no call, so a call by a user is never taken for one of a filter
 * of the same number, whose keys are of other types.
 */
#define PGBLOOM_PROBE_FORM	COERCE_SQL_SYNTAX

/* How to hash one key of one side of a join. */
typedef enum PgBloomJoinKeyMethod
{
	PGBLOOM_JOIN_INT16,
	PGBLOOM_JOIN_INT32,
	PGBLOOM_JOIN_INT64,
	PGBLOOM_JOIN_TEXT,
	PGBLOOM_JOIN_UUID,
	PGBLOOM_JOIN_FUNCTION		/* by the hash support function */
} PgBloomJoinKeyMethod;

typedef struct PgBloomJoinKey
{
	PgBloomJoinKeyMethod method;
	FmgrInfo	function;		/* of the last method */
	Oid			collation;
} PgBloomJoinKey;

/* What EXPLAIN ANALYZE tells, the last as the best of all processes. */
typedef enum PgBloomJoinState
{
	PGBLOOM_JOIN_NEVER_USED,
	PGBLOOM_JOIN_OVER_LIMIT,
	PGBLOOM_JOIN_SAMPLING,
	PGBLOOM_JOIN_ACTIVE
} PgBloomJoinState;

typedef struct PgBloomJoinCounts
{
	uint64		keys;			/* collected, including equal ones */
	uint64		size;			/* of the bits, in bytes */
	uint64		checked;		/* outer rows probed */
	uint64		removed;		/* of them, not in the filter */
	PgBloomJoinState state;
} PgBloomJoinCounts;

/*
 * A filter at run time.  The first members are those that each probe uses.
 */
typedef struct PgBloomJoinFilter
{
	int64		skip;			/* let so many rows pass unprobed */
	const uint8 *bits;			/* NULL until the filter is complete */
	BfGeometry	geometry;
	int			nkeys;
	PgBloomJoinKey outer[PGBLOOM_MAX_JOIN_KEYS];
	uint32		checked;		/* probes of this window */
	uint32		removed;		/* of them, not in the filter */
	bool		sampling;
	bool		adaptive;		/* sample if nearly all rows pass */
	PgBloomJoinCounts *counts;	/* of this process */

	/* while the inner side is read */
	PgBloomJoinKey inner[PGBLOOM_MAX_JOIN_KEYS];
	int			key_at[PGBLOOM_MAX_JOIN_KEYS];	/* among the join's keys */
	bool		collecting;
	uint64	   *hashes;			/* not yet in the bits; NULL before the first */
	uint32		nhashes;
	uint32		hashes_size;
	uint8	   *new_bits;		/* NULL until the list is full */
	uint64		bits_set;
	Size		limit;			/* of memory, in bytes */
	MemoryContext context;		/* of hashes and bits */

	/* of a Parallel Hash: bits that all processes fill */
	uint8	   *shared_bits;

	/* the registry */
	dlist_node	node;
	MemoryContext query;
	int			number;
	Oid			function;		/* that probes it */
	PgBloomJoinCounts local_counts;
} PgBloomJoinFilter;

/* What is known of a row whose page has been probed. */
typedef enum PgBloomJoinRow
{
	PGBLOOM_JOIN_UNKNOWN,
	PGBLOOM_JOIN_REMOVED,
	PGBLOOM_JOIN_FOUND
} PgBloomJoinRow;

/* A probe of columns of a scan. */
typedef struct PgBloomJoinProbe
{
	PgBloomJoinFilter *filter;
	AttrNumber	columns[PGBLOOM_MAX_JOIN_KEYS];
	int			nkeys;

	/* the rows of a heap page that have been probed ahead, see page.c */
	BlockNumber block;
	const uint8 *bits;			/* that they were probed with */
	uint8		rows[MaxHeapTuplesPerPage + 1]; /* by offset number */
} PgBloomJoinProbe;

/* The node that builds filters, below the Hash node of a join. */
typedef struct PgBloomJoinBuild
{
	CustomScanState css;
	int			nkeys;
	ExprState **keys;			/* NULL for a column of the child */
	AttrNumber *columns;		/* of the child; 0 for an expression */
	int			nfilters;
	PgBloomJoinFilter *filters;
	bool		shared_hash;	/* below a Parallel Hash */
	bool		complete;		/* the child has returned all rows */
	struct PgBloomJoinShared *shared;	/* NULL unless parallel */
} PgBloomJoinBuild;

#ifdef __GNUC__
#pragma GCC visibility push(hidden)
#endif

/* settings.c */
extern int	pgbloom_join_filters;
extern int	pgbloom_join_filter_min_rows;
extern void pgbloom_join_init(void);
extern Size pgbloom_join_filter_limit(void);

/* planner.c */
extern void pgbloom_join_install_planner(void);

/* target.c */
typedef struct PgBloomJoinTarget
{
	Plan	   *scan;
	List	   *keys;			/* expressions in terms of the scan */
	Bitmapset  *key_numbers;	/* which keys of the join, from 0 on */
	double		rows;			/* estimate, of all scans below an Append */
	bool		grouped;		/* below aggregates: no samples */
	bool		guarded;		/* a key may fail: only if the filter is ready */
} PgBloomJoinTarget;

extern bool pgbloom_join_may_fail(Expr *key);
extern List *pgbloom_join_targets(PlannedStmt *stmt, HashJoin *join,
								  const Oid *families, bool rescanned);

/* repeatable.c */
extern List *pgbloom_plan_children(Plan *plan);
extern int	pgbloom_max_node_id(Plan *plan);
extern bool pgbloom_is_volatile(PlannedStmt *stmt, void *expressions);
extern bool pgbloom_has_volatile(PlannedStmt *stmt, Plan *plan);
extern bool pgbloom_has_volatile_subtree(PlannedStmt *stmt, Plan *plan);
extern bool pgbloom_is_repeatable(PlannedStmt *stmt, Plan *plan,
								  Bitmapset *gathers);

/* keys.c */
extern Expr *pgbloom_join_strip_relabel(Expr *key);
extern AttrNumber pgbloom_join_column(Expr *key);
extern Oid	pgbloom_join_hash_family(Oid operator);
extern bool pgbloom_join_hash_may_fail(Oid operator, Oid type);
extern void pgbloom_join_key_init(PgBloomJoinKey *outer, PgBloomJoinKey *inner,
								  Oid operator, Oid collation);

/* build.c */
extern const CustomScanMethods pgbloom_join_scan_methods;

/* filter.c */
extern void pgbloom_join_register(PgBloomJoinFilter *filter);
extern bool pgbloom_join_has_filters(MemoryContext query);
extern PgBloomJoinFilter *pgbloom_join_find(MemoryContext query,
											const Node *call);
extern void pgbloom_join_shared_geometry(double keys, BfGeometry *geometry);
extern void pgbloom_join_reset(PgBloomJoinFilter *filter);
extern void pgbloom_join_collect(PgBloomJoinFilter *filter, uint64 hash);
extern void pgbloom_join_publish(PgBloomJoinFilter *filter);
extern void pgbloom_join_withdraw(PgBloomJoinFilter *filter);
extern void pgbloom_join_count(PgBloomJoinFilter *filter);
extern bool pgbloom_join_count_row(PgBloomJoinFilter *filter, bool found);
extern bool pgbloom_join_contains(PgBloomJoinFilter *filter,
								  NullableDatum *keys);

/* page.c */
extern bool pgbloom_join_has_pages(PlanState *state);
extern PgBloomJoinRow pgbloom_join_probe_ahead(PgBloomJoinProbe *probe,
											   PgBloomJoinProbe *previous,
											   ScanState *scan,
											   TupleTableSlot *slot);

/* direct.c */
extern void pgbloom_join_install_executor(void);

/* shared.c */
extern Size pgbloom_join_estimate_dsm(CustomScanState *node,
									  ParallelContext *pcxt);
extern void pgbloom_join_initialize_dsm(CustomScanState *node,
										ParallelContext *pcxt,
										void *coordinate);
extern void pgbloom_join_reinitialize_dsm(CustomScanState *node,
										  ParallelContext *pcxt,
										  void *coordinate);
extern void pgbloom_join_initialize_worker(CustomScanState *node,
										   shm_toc *toc, void *coordinate);
extern void pgbloom_join_shutdown(CustomScanState *node);

/* explain.c */
extern void pgbloom_join_explain(CustomScanState *node, List *ancestors,
								 ExplainState *es);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#endif							/* PGBLOOM_JOIN_H */
