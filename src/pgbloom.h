/*-------------------------------------------------------------------------
 *
 * pgbloom.h
 *	  What all files of the PostgreSQL layer share: errors, memory, and what is
 *	  ours.
 *
 * src/README.md has the map.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGBLOOM_H
#define PGBLOOM_H

#include "postgres.h"

#include "catalog/pg_class.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"

#include "compat.h"
#include "core/bf.h"

/* A value of type bloom: a varlena whose data is the image of a filter. */
typedef struct varlena Bloom;

#define PG_GETARG_BLOOM_PP(n) \
	((Bloom *) PG_DETOAST_DATUM_PACKED(PG_GETARG_DATUM(n)))
#define PG_RETURN_BLOOM_P(x)	PG_RETURN_POINTER(x)

/* The types that the extension creates. */
typedef enum PgBloomType
{
	PGBLOOM_FILTER,				/* bloom */
	PGBLOOM_KEY,				/* bloom_key: a key without a type */
	PGBLOOM_KEYS				/* bloom_keys: an array without a type */
} PgBloomType;

/* A function of the library, which an SQL function may call. */
typedef struct PgBloomSymbol
{
	const char *name;
	PGFunction	function;
	Oid			found;			/* the last SQL function found to call it */
} PgBloomSymbol;

/*
 * Is somebody told of plans?  Not in functions of other users, whose tables he
 * may not read.
 */
#define PGBLOOM_TELLS_OF_PLANS() \
	(message_level_is_interesting(DEBUG1) && !InLocalUserIdChange() && \
	 !InSecurityRestrictedOperation())

/* Only what SQL calls is visible outside the library. */
#pragma GCC visibility push(hidden)

/* memory.c */
extern char *pgbloom_pretty_size(double bytes);
extern BfEnv pgbloom_env(MemoryContext context);
extern void *pgbloom_prefer_huge_pages(void *memory, size_t size);

/* catalog.c */
extern bool pgbloom_is_in_c(Oid function);
extern bool pgbloom_calls(Oid function, PgBloomSymbol *called);
extern bool pgbloom_type_is(Oid type, PgBloomType which);
extern FormData_pg_class pgbloom_relation_row(Oid relation);
extern Node *pgbloom_default_arguments(Oid function, List *arguments);

#pragma GCC visibility pop

#endif							/* PGBLOOM_H */
