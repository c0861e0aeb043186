/*-------------------------------------------------------------------------
 *
 * join.h
 *	  What the files of join filters share.
 *
 * README.md in this folder describes join filters, and which file does what.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGBLOOM_JOIN_H
#define PGBLOOM_JOIN_H

#include "postgres.h"

#include "access/htup_details.h"
#include "fmgr.h"
#include "lib/ilist.h"
#include "nodes/execnodes.h"
#include "nodes/extensible.h"
#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"
#include "port/atomics.h"

#include "compat.h"
#include "core/bf.h"

/* Bits of a filter for each key, unless it is small. */
#define PGBLOOM_JOIN_BITS_PER_KEY	10

/* A filter of more key columns than this takes the first ones. */
#define PGBLOOM_MAX_JOIN_KEYS	8

/* Memory for the range of one key that a process shares with others. */
#define PGBLOOM_SHARED_RANGE_SIZE	8192

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
	uint64		skipped;		/* scans that were not started */
	uint64		blocks;			/* of tables with a BRIN index on the key */
	uint64		blocks_read;	/* of them, left by the index */
	PgBloomJoinState state;
} PgBloomJoinCounts;

typedef struct PgBloomJoinRange PgBloomJoinRange;

/* A filter at run time.  The first members are those that each probe uses. */
typedef struct PgBloomJoinFilter
{
	int64		skip;			/* let so many rows pass unprobed */
	const uint8 *bits;			/* once the filter is complete, or shared */
	uint32		generation;		/* of the bits, as addresses come again */
	BfGeometry	geometry;
	int			nkeys;
	PgBloomJoinKey outer[PGBLOOM_MAX_JOIN_KEYS];
	uint32		checked;		/* probes of this window */
	uint32		removed;		/* of them, not in the filter */
	uint32		window;			/* probes after which it ends */
	uint32		changes;		/* of the key from one row to the next */
	uint64		last_hash;		/* of the row before */
	bool		sampling;
	double		most_passed;	/* if a larger share passes: sample */
	bool		grouped;		/* probed below a grouping */
	bool		hides_rows;		/* the statement, from the user */
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
	uint64		most_keys;		/* with more it is of no use */
	MemoryContext context;		/* of hashes and bits */

	/* of a Parallel Hash: bits that all processes fill */
	uint8	   *shared_bits;

	/* for scans that may be skipped, see skip.c */
	Oid			operators[PGBLOOM_MAX_JOIN_KEYS];
	Oid			types[PGBLOOM_MAX_JOIN_KEYS];	/* of the inner keys */
	PgBloomJoinRange *ranges[PGBLOOM_MAX_JOIN_KEYS];	/* NULL unless wanted */
	MemoryContext range_context;
	bool		complete;		/* the inner side has been read */
	char	   *shared_ranges;	/* of all processes, in a Parallel Hash */
	uint32		merged;			/* the generation that has them all */
	int			nprocesses;
	int			process;
	int			nscans;			/* that may be skipped */
	bool	   *skipped;		/* for each of them */
	List	   *gates;

	/* the registry */
	dlist_node	node;
	MemoryContext query;
	int			number;
	Oid			function;		/* that probes it */
	PgBloomJoinCounts local_counts;
	List	   *between;		/* of its probes: lists of a call and joins */
	int			between_found;	/* the one that was asked for last */
} PgBloomJoinFilter;

/* A node of a plan that is executed, and the nodes above it. */
typedef struct PgBloomJoinAncestor
{
	const struct PgBloomJoinAncestor *parent;	/* NULL at the top */
	PlanState  *state;
} PgBloomJoinAncestor;

/* The node that builds filters, below the Hash node of a join. */
typedef struct PgBloomJoinBuild
{
	CustomScanState css;
	ExprState **keys;			/* NULL for a column of the child */
	AttrNumber *columns;		/* of the child; 0 for an expression; NULL if
								 * the plan is only explained */
	int			nfilters;
	PgBloomJoinFilter *filters;
	bool		shared_hash;	/* below a Parallel Hash */
	bool		never_fails;	/* nor calls a volatile function */
	HashJoinState *inner_first; /* the join, if it is to read this side first */
	struct PgBloomJoinShared *shared;	/* NULL unless parallel */
} PgBloomJoinBuild;

/* probe.c */
extern PGDLLEXPORT Datum bloom_join_probe(PG_FUNCTION_ARGS);

#ifdef __GNUC__
#pragma GCC visibility push(hidden)
#endif

/* settings.c */
extern int	pgbloom_join_filters;
extern int	pgbloom_join_filter_min_rows;
extern bool pgbloom_join_planning;
extern double pgbloom_join_planning_cost;
extern void pgbloom_join_define_settings(void);
extern Size pgbloom_join_filter_limit(void);

/* planner.c */
extern void pgbloom_join_add_filters(PlannedStmt *stmt, bool is_volatile);
extern List *pgbloom_join_unfiltered(PlannedStmt *stmt, bool is_volatile);

/* estimate.c */
extern List *pgbloom_join_clauses(PlannerInfo *root, RelOptInfo *a,
								  RelOptInfo *b);
extern double pgbloom_join_share_in_range(PlannerInfo *root,
										  RestrictInfo *rinfo,
										  RelOptInfo *rel);
extern bool pgbloom_join_examines_pairs(PlannerInfo *root);
extern void pgbloom_join_correct_pairs(PlannerInfo *root, List *relations);

/* share.c */
extern double pgbloom_join_share_read(PlannerInfo *root, RelOptInfo *filtered,
									  RelOptInfo *by, AttrNumber *column);

/* reason.c */

/* Why a join has no filters.  Of several reasons, the last one is told. */
typedef enum PgBloomReason
{
	PGBLOOM_NO_REASON,			/* it has filters */
	PGBLOOM_REASON_OFF,
	PGBLOOM_REASON_EXTENSION,
	PGBLOOM_REASON_PRIVILEGE,
	PGBLOOM_REASON_STATEMENT,
	PGBLOOM_REASON_VOLATILE,
	PGBLOOM_REASON_CORE_FILTERS,
	PGBLOOM_REASON_JOIN_TYPE,
	PGBLOOM_REASON_MEMORY,
	PGBLOOM_REASON_MATCHING,
	PGBLOOM_REASON_REPEATED,
	PGBLOOM_REASON_KEYS,
	PGBLOOM_REASON_COLUMNS,
	PGBLOOM_REASON_PATH,
	PGBLOOM_REASON_TOO_LATE,
	PGBLOOM_REASON_GROUPS,
	PGBLOOM_REASON_BARRIER,
	PGBLOOM_REASON_FEW_ROWS,
	PGBLOOM_REASON_LARGE_INNER,
	PGBLOOM_REASON_EARLIER_PLAN
} PgBloomReason;

typedef struct PgBloomUnfiltered
{
	HashJoin   *join;
	PgBloomReason reason;
} PgBloomUnfiltered;

extern const char *pgbloom_join_reason_text(PgBloomReason reason);
extern void pgbloom_join_report(PlannedStmt *stmt, List *unfiltered);

/* nodes.c */
typedef struct PgBloomJoinNodes
{
	int			last_node_id;	/* the largest plan_node_id */
	bool		filtered;		/* by an earlier call of the planner hook */
	bool		barrier;		/* there is a view with a security barrier */
	bool		hides_rows;		/* or a table with row-level security */
} PgBloomJoinNodes;

extern bool pgbloom_is_builder(Plan *plan);
extern List *pgbloom_plan_children(Plan *plan);
extern PgBloomJoinNodes *pgbloom_examine_nodes(PlannedStmt *stmt);
extern bool pgbloom_plan_may_fail(Plan *plan);

/* volatile.c */
extern bool pgbloom_join_is_volatile(const Query *query);

/* assume.c */
extern bool pgbloom_join_plans_volatile(void);
extern void pgbloom_join_note_filters(PlannedStmt *stmt,
									  const PgBloomJoinNodes *nodes,
									  HashJoin *join, List *targets);
extern bool pgbloom_join_may_change_plan(void);
extern RelOptInfo *pgbloom_join_search(join_search_hook_type search,
									   PlannerInfo *root, int levels,
									   List *relations);
extern PlannedStmt *pgbloom_join_plan_assuming(planner_hook_type plan,
											   bool is_volatile,
											   PGBLOOM_PLANNER_PARAMETERS);
extern void pgbloom_join_add_assumed_path(PlannerInfo *root,
										  RelOptInfo *joinrel,
										  RelOptInfo *outer, RelOptInfo *inner,
										  JoinType type,
										  JoinPathExtraData *extra);

/* expression.c */
extern bool pgbloom_join_may_fail(Expr *key);

/* target.c */
typedef struct PgBloomJoinTarget
{
	Plan	   *scan;
	List	   *keys;			/* expressions in terms of the scan */
	List	   *key_numbers;	/* which keys of the join, from 0 on */
	double		rows;			/* estimate, of all scans below an Append */
	bool		grouped;		/* below a grouping: no samples */
	int			together;		/* with all others of this number, or not at
								 * all */
	double		most_passed;	/* if a larger share passes: sample */
	double		most_keys;		/* of more inner rows it is of no use */
	double		matching;		/* estimated share of rows that pass */
	Expr	   *qual;			/* that probes the filter */
} PgBloomJoinTarget;

extern PgBloomReason pgbloom_join_targets(const PgBloomJoinNodes *nodes,
										  HashJoin *join, bool rescanned,
										  List **targets);

/* worth.c */
extern PgBloomReason pgbloom_join_never_worthwhile(HashJoin *join);
extern PgBloomReason pgbloom_join_worthwhile(HashJoin *join, List **targets);

/* keys.c */
extern Expr *pgbloom_join_translate(Expr *key, int varno, List *targetlist);
extern Expr *pgbloom_join_strip_relabel(Expr *key);
extern AttrNumber pgbloom_join_column(Expr *key);
extern bool pgbloom_join_is_own(Oid operator, Oid collation);
extern bool pgbloom_join_can_hash(Oid operator, Oid collation);
extern void pgbloom_join_key_init(PgBloomJoinKey *outer, PgBloomJoinKey *inner,
								  Oid operator, Oid collation);

/* builder_node.c */
extern const CustomScanMethods pgbloom_join_scan_methods;

/* between.c */
extern void pgbloom_join_note_between(const PgBloomJoinAncestor *scan,
									  Node *qual);
extern List *pgbloom_join_find_between(PgBloomJoinFilter *filter,
									   const Node *call);
extern bool pgbloom_join_between_started(const List *between);
extern void pgbloom_join_read_inner_sides_first(const PgBloomJoinAncestor *scan,
												const PgBloomJoinFilter *filter);

/* filter.c */
extern void pgbloom_join_register(PgBloomJoinFilter *filter);
extern bool pgbloom_join_has_filters(MemoryContext query);
extern PgBloomJoinFilter *pgbloom_join_find(MemoryContext query,
											const Node *call);
extern void pgbloom_join_shared_geometry(double keys, BfGeometry *geometry);
extern void pgbloom_join_reset(PgBloomJoinFilter *filter);
extern void pgbloom_join_want_ranges(PgBloomJoinFilter *filter);
extern bool pgbloom_join_is_complete(PgBloomJoinFilter *filter);
extern void pgbloom_join_count_scan(PgBloomJoinFilter *filter, int scan,
									bool skipped);
extern void pgbloom_join_count_skipped(PgBloomJoinFilter *filter);
extern void pgbloom_join_collect(PgBloomJoinFilter *filter, uint64 hash);
extern void pgbloom_join_publish(PgBloomJoinFilter *filter);
extern void pgbloom_join_withdraw(PgBloomJoinFilter *filter);

/* sample.c */
extern void pgbloom_join_count(PgBloomJoinFilter *filter);
extern bool pgbloom_join_count_row(PgBloomJoinFilter *filter, bool found);

/* probe.c */
extern bool pgbloom_join_contains(PgBloomJoinFilter *filter,
								  NullableDatum *keys);
extern PgBloomReason pgbloom_join_find_probe_function(Oid *function);

/* range.c */
extern PgBloomJoinRange *pgbloom_join_make_range(Oid equality, Oid collation,
												 Oid type);
extern void pgbloom_join_clear_range(PgBloomJoinRange *range);
extern void pgbloom_join_add_to_range(PgBloomJoinRange *range, Datum key,
									  PgBloomJoinKey *hash_by,
									  MemoryContext context);
extern bool pgbloom_join_range_is_empty(const PgBloomJoinRange *range);
extern Oid	pgbloom_join_range_type(const PgBloomJoinRange *range);
extern bool pgbloom_join_range_meets(const PgBloomJoinRange *range,
									 FmgrInfo *compare, const Datum *low,
									 const Datum *high, bool with_high);
extern bool pgbloom_join_range_agrees(const PgBloomJoinRange *range,
									  Oid family, Oid collation);
extern bool pgbloom_join_range_scan_keys(const PgBloomJoinRange *range,
										 AttrNumber column,
										 struct ScanKeyData *keys);
extern void pgbloom_join_write_range(const PgBloomJoinRange *range,
									 void *place);
extern void pgbloom_join_read_range(PgBloomJoinRange *range, void *place,
									MemoryContext context);

/* partition.c */
extern bool pgbloom_join_partition_refuted(Relation relation,
										   Snapshot snapshot,
										   const PgBloomJoinFilter *filter,
										   List *keys);

/* skip.c */
extern void pgbloom_join_gate_scan(const PgBloomJoinAncestor *node);
extern void pgbloom_join_close_gates(PgBloomJoinFilter *filter);

/* brin.c */
extern Bitmapset *pgbloom_join_brin_columns(Relation table);
extern Bitmapset *pgbloom_join_limiting_columns(ScanState *scan);
extern bool pgbloom_join_brin_blocks(ScanState *scan,
									 const PgBloomJoinFilter *filter,
									 List *keys, BlockNumber *first,
									 BlockNumber *last);

/* direct.c */
extern void pgbloom_join_start(PlanState *plan);

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
extern void pgbloom_join_install_explain(void);
extern void pgbloom_join_explain(CustomScanState *node, List *ancestors,
								 ExplainState *es);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#endif							/* PGBLOOM_JOIN_H */
