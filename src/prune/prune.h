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
#include "nodes/pathnodes.h"

/*
 * The form of a call of bloom_index_gate() that the planner adds.  The parser
 * gives it only to functions of SQL's own syntax, so users cannot make such calls.
 */
#define BFP_GATE_FORM		COERCE_SQL_SYNTAX

/* Partitions that are left of a table, at most. */
#define BFP_MAX_LEAVES		40

/* A condition "column = key", or "column = ANY (key)". */
typedef struct BfpEquality
{
	RestrictInfo *condition;
	Node	   *column;			/* or an expression of columns */
	Node	   *key;
	Oid			operator;
	Oid			collation;
	bool		is_array;
} BfpEquality;

/* A partitioned table whose index has been asked. */
typedef struct BfpTable
{
	Oid			index;			/* partitioned */
	Node	   *key;			/* a constant, not null; or with parameters */
	Node	   *value;			/* a constant; NULL if it is not known */
	bool		is_array;
	int			nleaves;		/* of the table */
	List	   *leaves;			/* OIDs of those that may have a key */
	List	   *indexes;		/* of these leaves, when they were planned */
	List	   *parts;			/* leaves, and the tables above them */
	bool		prunes;			/* else they may be too many */
	bool		pays;			/* to ask for a list: a scan costs more */
} BfpTable;

/* A statement that is being planned. */
typedef struct BfpPlanning
{
	Query	   *query;			/* as it was, if it may be pruned; else NULL */
	int			options;		/* of cursors */
	bool		has_params;		/* whose values are known */
	bool		asks_no_index;	/* there are no gates either */
	List	   *tables;			/* BfpTable */
	PlannerGlobal *pass;		/* the last one: see assume.c of join filters */
	int			nopened;		/* partitions of those that it does not prune */
	List	   *moment;			/* before indexes were asked: see note.c */
	uint64		changes;		/* to relations, known by then */
} BfpPlanning;

#ifdef __GNUC__
#pragma GCC visibility push(hidden)
#endif

extern BfpPlanning *bfp_planning;	/* of the innermost statement, or NULL */

/* gate.c */
extern void bfp_define_setting(void);
extern bool bfp_find_equality(RelOptInfo *rel, IndexOptInfo *index,
							  Oid key_type, BfpEquality *equality);
extern bool bfp_has_barrier(PlannerInfo *root);
extern void bfp_add_gates(PlannerInfo *root, RelOptInfo *rel,
						  RangeTblEntry *rte);

/* table.c */
extern void bfp_find_leaves(BfpTable *table, int parts);
extern bool bfp_has_key(PlannerInfo *root, RelOptInfo *rel, Oid index,
						Node *key);
extern void bfp_list_pays(Node *key);
extern RelOptInfo *bfp_table_of(PlannerInfo *root, RelOptInfo *rel);
extern void bfp_prune_table(PlannerInfo *root, RelOptInfo *rel);

/* note.c */
extern void bfp_begin_planning(BfpPlanning *planning, Query *query, int options,
							   ParamListInfo params);
extern bool bfp_is_permitted(const PlannerInfo *root,
							 const PlannedStmt *plan);
extern void bfp_add_note(PlannedStmt *plan, const BfpPlanning *planning);
extern void bfp_check_plan(QueryDesc *query, int eflags);
extern void bfp_install_explain(void);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#endif							/* BFP_PRUNE_H */
