/*-------------------------------------------------------------------------
 *
 * prune.h
 *	  What the files of index pruning share.
 *
 * README.md in this folder has the map.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BFP_PRUNE_H
#define BFP_PRUNE_H

#include "index/index.h"

#include "executor/execdesc.h"
#include "nodes/extensible.h"
#include "nodes/params.h"
#include "nodes/pathnodes.h"

/*
 * The form of a call of bloom_index_gate() that the planner adds.  The parser
 * gives it to no call of a function that has another name than those of SQL's
 * own syntax, so a user cannot make a call that has it.
 */
#define BFP_GATE_FORM		COERCE_SQL_SYNTAX

/* A condition "column = key", or "column = ANY (key)". */
typedef struct BfpEquality
{
	Node	   *column;			/* or an expression of columns */
	Node	   *key;
	Oid			operator;
	Oid			collation;
	bool		is_array;
} BfpEquality;

/* Partitions that are left of a table, at most. */
#define BFP_MAX_LEAVES		40

/* A partitioned table of a query, and the keys by which it is pruned. */
typedef struct BfpTable
{
	Oid			table;
	Oid			index;			/* partitioned */
	AttrNumber	column;
	Oid			user;			/* whose privileges are checked; 0: current */
	bool		is_array;
	Const	   *key;			/* not null */
	int			nleaves;		/* of the table */
	int			probe;			/* number of its snapshot */
	List	   *leaves;			/* OIDs of those that may have a key */
} BfpTable;

#ifdef __GNUC__
#pragma GCC visibility push(hidden)
#endif

extern bool bfp_is_pruned;		/* the statement that is being planned */

/* equality.c */
extern bool bfp_read_equality(Node *clause, bool key_first,
							  BfpEquality *equality);
extern bool bfp_can_look_up(const BfpEquality *equality, Oid key_type,
							Oid collation);
extern int	bfp_count_keys(const BfpEquality *equality);
extern bool bfp_is_safe_key(PlannerInfo *root, Node *key);

/* gate.c */
extern void bfp_define_setting(void);
extern void bfp_add_gates(PlannerInfo *root, RelOptInfo *rel,
						  RangeTblEntry *rte);

/* lookup.c */
extern Oid	bfp_gate_function(void);

/* leaves.c */
extern bool bfp_may_ask(const BfpTable *table);
extern bool bfp_find_leaves(BfpTable *table);
extern bool bfp_leaves_are_valid(const BfpTable *table);
extern Node *bfp_bounds(const BfpTable *table, const Var *column);

/* columns.c */
struct PartitionKeyData;
extern List *bfp_conditions(Query *query);
extern Node *bfp_resolve_column(Query *query, Node *node);
extern List *bfp_append_equality(List *equalities,
								 const BfpEquality *equality, Node *column);
extern List *bfp_find_equalities(Query *query, List *conditions,
								 ParamListInfo params);
extern List *bfp_append_implied(Query *query, List *conditions,
								List *equalities);
extern bool bfp_prunes_already(Query *query, Index relation, List *conditions,
							   struct PartitionKeyData *key);

/* query.c */
extern Query *bfp_prune(Query *query, int options, ParamListInfo params,
						List **tables);

/* note.c */
extern const CustomScanMethods bfp_note_methods;
extern const PlannedStmt *bfp_checked_plan;
extern void bfp_add_note(PlannedStmt *plan, Query *query, int options,
						 List *tables);
extern int	bfp_remember_snapshot(void);
extern void bfp_check_plan(QueryDesc *query, int eflags);
extern void bfp_install_explain(void);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#endif							/* BFP_PRUNE_H */
