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

#ifdef __GNUC__
#pragma GCC visibility push(hidden)
#endif

extern bool bfp_enabled;

/* equality.c */
extern bool bfp_read_equality(Node *clause, bool key_first,
							  BfpEquality *equality);
extern bool bfp_can_look_up(const BfpEquality *equality, Oid key_type,
							Oid collation);
extern int	bfp_count_keys(const BfpEquality *equality);

/* gate.c */
extern void bfp_define_setting(void);
extern void bfp_add_gates(PlannerInfo *root, RelOptInfo *rel,
						  RangeTblEntry *rte);

/* lookup.c */
extern Oid	bfp_gate_function(void);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#endif							/* BFP_PRUNE_H */
