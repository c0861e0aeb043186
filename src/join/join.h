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

/* How to read the keys of a row. */
typedef struct PgBloomJoinReader
{
	int			n;
	AttrNumber	columns[PGBLOOM_MAX_JOIN_KEYS]; /* 0 for an expression */
	ExprState  *exprs[PGBLOOM_MAX_JOIN_KEYS];	/* NULL for a column */
	AttrNumber	last;			/* of the columns */
} PgBloomJoinReader;

/* Blocks of a table that are left to read. */
typedef struct PgBloomJoinPiece
{
	BlockNumber first;
	BlockNumber end;			/* the first one after them */
} PgBloomJoinPiece;

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
	uint64		scans;			/* that the filter could rule out */
	uint64		skipped;		/* of them, not started */
	uint64		by_index;		/* of these, those that an index ruled out */
	uint64		blocks;			/* of these scans' tables */
	uint64		blocks_read;	/* of them, not ruled out */
	PgBloomJoinState state;
} PgBloomJoinCounts;

/* The keys of one column, or the ends of their order. */
typedef struct PgBloomJoinRange PgBloomJoinRange;

/* What is known of the keys of a filter, for scans that may be skipped. */
typedef struct PgBloomJoinRanges
{
	bool		usable;			/* by any scan */
	bool		hides_rows;		/* the statement, from the user */
	bool		ordered;		/* their order is of use to a scan */
	bool		complete;		/* the inner side has been read */
	List	   *ancestors;		/* of the last partition with a probe */
	int			nkeys;
	Oid			operators[PGBLOOM_MAX_JOIN_KEYS];
	Oid			collations[PGBLOOM_MAX_JOIN_KEYS];
	Oid			types[PGBLOOM_MAX_JOIN_KEYS];	/* of the inner keys */
	PgBloomJoinRange *ranges[PGBLOOM_MAX_JOIN_KEYS];
	MemoryContext context;		/* NULL until a scan wants the ranges */
} PgBloomJoinRanges;

/* So many rows may pass a filter whose keys are hashed slowly, or cast. */
#define PGBLOOM_JOIN_MOST_PASSED_SLOW	0.2

/* A filter that is probed. */
typedef struct PgBloomJoinFilter
{
	int64		skip;			/* let so many rows pass unprobed */
	const uint8 *bits;			/* once the filter is complete, or shared */
	BfGeometry	geometry;
	PgBloomJoinKey outer[PGBLOOM_MAX_JOIN_KEYS];
	uint32		checked;		/* probes of this window */
	uint32		removed;		/* of them, not in the filter */
	uint32		window;			/* probes after which it ends */
	bool		sampling;
	double		most_passed;	/* if more rows of a window do, it samples */
	PgBloomJoinCounts *counts;	/* of this process */
	PgBloomJoinCounts local_counts;
	Oid			function;		/* that probes it */
	PlanState  *builder;		/* the node that builds it */
	PgBloomJoinRanges ranges;
} PgBloomJoinFilter;

/* A filter that is being built, while the inner side is read. */
typedef struct PgBloomJoinCollector
{
	PgBloomJoinFilter *filter;
	PgBloomJoinKey inner[PGBLOOM_MAX_JOIN_KEYS];
	PgBloomJoinReader reader;
	bool		collecting;
	uint64	   *hashes;			/* not yet in the bits; NULL before the first */
	uint32		nhashes;
	uint32		hashes_size;
	uint8	   *new_bits;		/* NULL until the list is full */
	uint64		bits_set;
	Size		limit;			/* of memory, in bytes */
	int			most_keys;		/* with more it is of no use */
	MemoryContext context;		/* of hashes and bits */
	uint8	   *shared_bits;	/* that all processes of a Parallel Hash fill */
} PgBloomJoinCollector;

/* The node that builds filters, below the Hash node of a join. */
typedef struct PgBloomJoinBuild
{
	CustomScanState css;
	int			nfilters;		/* 0 if the plan is only explained */
	PgBloomJoinFilter *filters;
	PgBloomJoinCollector *collectors;	/* for each of the filters */
	bool		shared_hash;	/* below a Parallel Hash */
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
extern List *pgbloom_join_reasons(PlannedStmt *stmt, bool is_volatile);

/* correct.c */
extern bool pgbloom_join_correct(PlannerInfo *root);

/* estimate.c */
extern double pgbloom_join_factor(PlannerInfo *root, RestrictInfo *rinfo);
extern double pgbloom_join_share_read(PlannerInfo *root, RelOptInfo *filtered,
									  RelOptInfo *by, AttrNumber *column);

/* reason.c */

/* Why a join has no filters.  Of several reasons, the last one is told. */
typedef enum PgBloomReason
{
	PGBLOOM_NO_REASON,			/* it has filters */
	PGBLOOM_REASON_OFF,
	PGBLOOM_REASON_EXTENSION,
	PGBLOOM_REASON_STATEMENT,
	PGBLOOM_REASON_JOIN_TYPE,
	PGBLOOM_REASON_MATCHING,
	PGBLOOM_REASON_REPEATED,
	PGBLOOM_REASON_KEYS,
	PGBLOOM_REASON_PATH,
	PGBLOOM_REASON_FEW_ROWS,
	PGBLOOM_REASON_LARGE_INNER,
	PGBLOOM_REASON_EARLIER_PLAN
} PgBloomReason;

extern const char *const pgbloom_join_reason_texts[];
extern void pgbloom_join_report(PlannedStmt *stmt, List *joins);

/* nodes.c */

/* A hash join, and what is above it. */
typedef struct PgBloomPlannedJoin
{
	HashJoin   *join;
	bool		repeated;		/* it may be executed more than once */
	bool		parallel;		/* below Gather */
	double		share;			/* of its rows that LIMIT or EXISTS reads */
	PgBloomReason reason;		/* why it has no filter */
} PgBloomPlannedJoin;

/* What a walk over the nodes of a statement finds. */
typedef struct PgBloomPlanWalk
{
	List	   *joins;			/* of PgBloomPlannedJoin, upper ones before
								 * those below */
	Bitmapset  *init_plans;		/* numbers of subplans that are executed once */
	Bitmapset  *exists_plans;	/* of them, those of which one row is read */
	int			last_node_id;	/* the largest plan_node_id */
	bool		filtered;		/* by an earlier call of the planner hook */
} PgBloomPlanWalk;

/* What is looked up once in a finished statement. */
typedef struct PgBloomStatement
{
	PlannedStmt *stmt;
	AppendRelInfo **parents;	/* of each relation, or NULL */
	bool		barrier;		/* it has a view with a security barrier */
	bool		hides_rows;		/* or a table with row-level security */
} PgBloomStatement;

extern bool pgbloom_is_builder(Plan *plan);
extern List *pgbloom_plan_children(Plan *plan);
extern void pgbloom_walk_plan(PlannedStmt *stmt, PgBloomPlanWalk *walk);
extern const PgBloomStatement *pgbloom_look_up_statement(PlannedStmt *stmt);
extern Index pgbloom_scanned_column(const PgBloomStatement *statement,
									const Plan *scan, int *column);

/* volatile.c */
extern bool pgbloom_join_has_no_join(const Query *query);
extern bool pgbloom_join_is_volatile(const Query *query);

/* order.c */

/* Of 30,000 rows of a sample, not one is far from its place in the order. */
#define PGBLOOM_SAME_ORDER	0.99999

typedef struct PgBloomPiece		/* of the order of a column, in shares of it */
{
	double		from;
	double		to;
	double		error;			/* it may be so much lower or higher */
	double		unknown;		/* share of it by values that are not known */
	bool		vague;			/* another condition may tell the same */
} PgBloomPiece;

extern double pgbloom_join_correlation(PlannerInfo *root,
									   const RelOptInfo *rel,
									   AttrNumber column, bool all);
extern double pgbloom_join_left_of_order(PlannerInfo *root,
										 const RelOptInfo *rel,
										 AttrNumber column,
										 PgBloomPiece *piece);
extern bool pgbloom_join_reads_some(PlannerInfo *root);

/* assume.c */
extern bool pgbloom_join_plans_volatile(void);
extern void pgbloom_join_begin_search(PlannerInfo *root);
extern bool pgbloom_join_assume(PlannerInfo *root, List *relations,
								Path *without);
extern PlannedStmt *pgbloom_join_plan_assuming(planner_hook_type plan,
											   bool is_volatile,
											   PGBLOOM_PLANNER_PARAMETERS);
extern void pgbloom_join_note_filters(const PgBloomStatement *statement,
									  HashJoin *join, List *targets);
extern void pgbloom_join_add_assumed_path(PlannerInfo *root,
										  RelOptInfo *joinrel,
										  RelOptInfo *outer, RelOptInfo *inner,
										  JoinType type,
										  JoinPathExtraData *extra);

/* target.c */
typedef struct PgBloomJoinTarget
{
	Plan	   *scan;
	List	   *keys;			/* expressions in terms of the scan */
	List	   *key_numbers;	/* which keys of the join, from 0 on */
	const Agg  *grouping;		/* above the scan: no samples; or NULL */
	int			most_keys;		/* with more it is of no use */
	double		matching;		/* estimated share of rows that pass */
	int			number;			/* of its filter */
	Expr	   *qual;			/* that probes the filter */
} PgBloomJoinTarget;

extern PgBloomReason pgbloom_join_statement_reason(CmdType command,
												   bool has_modifying_cte,
												   const List *row_marks,
												   bool is_volatile);
extern PgBloomReason pgbloom_join_targets(const PgBloomStatement *statement,
										  const PgBloomPlannedJoin *planned,
										  List **targets);

/* worth.c */
extern PgBloomReason pgbloom_join_never_worthwhile(HashJoin *join);
extern PgBloomReason pgbloom_join_not_worthwhile(HashJoin *join,
												 const Plan *scan,
												 double rows);
extern double pgbloom_join_share_matching(HashJoin *join);
extern PgBloomReason pgbloom_join_groups_not_worthwhile(const PgBloomStatement *statement,
														HashJoin *join,
														PgBloomJoinTarget *target);

/* keys.c */
extern bool pgbloom_join_is_key(Expr *key);
extern Expr *pgbloom_join_translate(Expr *key, int varno, List *targetlist);
extern AttrNumber pgbloom_join_column(Expr *key);
extern bool pgbloom_join_is_own(Oid operator, Oid collation);
extern bool pgbloom_join_can_hash(Oid operator, Oid collation);
extern void pgbloom_join_key_init(PgBloomJoinKey *outer, PgBloomJoinKey *inner,
								  Oid operator, Oid collation);
extern void pgbloom_join_add_key(PgBloomJoinReader *reader, Expr *key,
								 PlanState *parent);

/* builder_node.c */
extern const CustomScanMethods pgbloom_join_scan_methods;
extern Node *pgbloom_join_property(List *properties, const char *name);

/* registry.c */
extern void pgbloom_join_remember(MemoryContext query, void *owner, int number,
								  void *thing);
extern void *pgbloom_join_recall(void *owner, int number);
extern PgBloomJoinFilter *pgbloom_join_find(MemoryContext query,
											const Node *call);

/* start.c */
extern void pgbloom_join_start(PlanState *plan);

/* collect.c */
extern void pgbloom_join_shared_geometry(double keys, BfGeometry *geometry);
extern void pgbloom_join_collect(PgBloomJoinCollector *collector, uint64 hash);
extern void pgbloom_join_publish(PgBloomJoinCollector *collector);
extern void pgbloom_join_withdraw(PgBloomJoinCollector *collector);

/* sample.c */
extern void pgbloom_join_start_window(PgBloomJoinFilter *filter);
extern bool pgbloom_join_count_row(PgBloomJoinFilter *filter, bool found);

/* probe.c */
extern bool pgbloom_join_contains(PgBloomJoinFilter *filter,
								  const PgBloomJoinReader *reader,
								  TupleTableSlot *slot, ExprContext *econtext);
extern PgBloomReason pgbloom_join_find_probe_function(Oid *function);

/* range.c */
extern void pgbloom_join_want_ranges(PgBloomJoinRanges *ranges, bool ordered);
extern void pgbloom_join_add_to_range(PgBloomJoinRanges *ranges, int column,
									  Datum key, PgBloomJoinKey *hash_by);
extern bool pgbloom_join_range_is_empty(const PgBloomJoinRange *range);
extern Oid	pgbloom_join_range_type(const PgBloomJoinRange *range);
extern bool pgbloom_join_range_meets(PgBloomJoinRange *range,
									 FmgrInfo *compare, const Datum *low,
									 const Datum *high, bool with_high);
extern bool pgbloom_join_range_agrees(const PgBloomJoinRange *range,
									  Oid family, Oid collation);
struct BfiIndex;
extern bool pgbloom_join_range_may_be_in(PgBloomJoinRange *range,
										 const struct BfiIndex *index);
extern int	pgbloom_join_range_sort(PgBloomJoinRange *range);
extern void pgbloom_join_range_scan_keys(PgBloomJoinRange *range, int number,
										 AttrNumber column,
										 struct ScanKeyData *keys);

/* partition.c */
extern Relation pgbloom_join_try_open(Oid oid);
extern bool pgbloom_join_is_partition_by(Relation relation, List *keys,
										 List **ancestors);
extern bool pgbloom_join_is_partition_key(const RelOptInfo *rel, Node *key,
										  const OpExpr *op);
extern double pgbloom_join_largest_part(const RelOptInfo *rel);
extern bool pgbloom_join_partition_refuted(Relation relation,
										   List *ancestors, Snapshot snapshot,
										   const PgBloomJoinRanges *filter,
										   List *keys);

/* indexes.c */
extern Oid *pgbloom_join_find_indexes(ScanState *scan, List *keys);
extern bool pgbloom_join_indexes_refute(ScanState *scan,
										PgBloomJoinRanges *filter,
										const Oid *indexes);

/* skip.c */
extern void pgbloom_join_gate_scan(ScanState *scan);

/* brin.c */
extern bool pgbloom_join_has_brin(const RelOptInfo *rel, AttrNumber column,
								  Oid collation);
extern Bitmapset *pgbloom_join_limiting_columns(ScanState *scan);
extern bool pgbloom_join_brin_blocks(ScanState *scan,
									 const PgBloomJoinRanges *filter,
									 List *keys, BlockNumber nblocks,
									 List **pieces);

/* direct.c */
extern void pgbloom_join_evaluate_directly(PlanState *state);

/* shared.c */
extern Size pgbloom_join_estimate_dsm(CustomScanState *node,
									  ParallelContext *pcxt);
extern void pgbloom_join_initialize_dsm(CustomScanState *node,
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
