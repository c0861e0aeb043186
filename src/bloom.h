/*-------------------------------------------------------------------------
 *
 * bloom.h
 *	  What the files of the PostgreSQL layer share.
 *
 * Dependencies run downward.  The functions of SQL are implemented by files
 * that do not call each other: bloom_io, bloom_func (one filter, one key),
 * bloom_array (many keys), bloom_set (two filters), bloom_info, bloom_agg
 * and, for the planner, bloom_plan.  They use bloom_stored (filters that are
 * only asked), bloom_key (from a datum to kind and hash, with the help of
 * bloom_canonical and bloom_kind), bloom_expanded (filters that are changed
 * where they lie), bloom_types (the extension's own types), bloom_host
 * (memory, values, encodings and errors) and the core.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGBLOOM_H
#define PGBLOOM_H

#include "postgres.h"

#include "access/table.h"
#include "fmgr.h"
#include "nodes/nodes.h"
#include "utils/array.h"

#include "compat.h"
#include "core/bf.h"

/* Hashes the canonical bytes of a key. */
typedef uint64 (*PgBloomHashFunction) (Datum key, uint64 seed);

/* The types that the extension creates. */
typedef enum PgBloomType
{
	PGBLOOM_FILTER,				/* bloom */
	PGBLOOM_KEY,				/* bloom_key: a key without a type */
	PGBLOOM_KEYS				/* bloom_keys: an array without a type */
} PgBloomType;

/* What a call site knows about the type of its keys. */
typedef struct PgBloomKeyType PgBloomKeyType;

/* What it keeps of the filters that it has asked. */
typedef struct PgBloomKept PgBloomKept;

/* What fn_extra points to. */
typedef struct PgBloomSite
{
	PgBloomKeyType *key_type;	/* NULL until it is looked up */
	PgBloomKept *kept;			/* NULL until a filter is asked */
} PgBloomSite;

/* A filter that is only asked, wherever it is. */
typedef struct PgBloomFilter
{
	const BfParams *params;
	BfBuilder  *builder;		/* an expanded one, or NULL */
	const BfView *view;			/* any other */
	PgBloomKept *parts;			/* not NULL: the view is that of a front, */
	const struct varlena *pointer;	/* this is the TOAST pointer, */
	Relation	toast;			/* and this its table, once opened */
} PgBloomFilter;

/* Only what SQL calls is seen from outside the library. */
#ifdef __GNUC__
#pragma GCC visibility push(hidden)
#endif

/* What this call site keeps. */
static inline PgBloomSite *
pgbloom_site(FunctionCallInfo fcinfo)
{
	FmgrInfo   *function = fcinfo->flinfo;

	if (function->fn_extra == NULL)
		function->fn_extra = MemoryContextAllocZero(function->fn_mcxt,
													sizeof(PgBloomSite));
	return function->fn_extra;
}

/* No more questions in this call. */
static inline void
pgbloom_filter_close(PgBloomFilter *filter)
{
	if (filter->toast != NULL)
		table_close(filter->toast, AccessShareLock);
}

/* bloom_host.c */
extern BfHost pgbloom_host(MemoryContext context);
extern void pgbloom_open(const struct varlena *filter, BfView *view);
extern void pgbloom_open_front(const uint8_t *front, size_t size,
							   BfView *view);
extern bool pgbloom_validate(const uint8_t *image, size_t size,
							 int sqlerrcode, Node *escontext);
extern void pgbloom_load(BfBuilder *builder, const BfHost *host,
						 const BfView *view);
extern struct varlena *pgbloom_result(BfBuilder *builder, bool compact);
extern Datum pgbloom_base_filter(FunctionCallInfo fcinfo);
extern Datum pgbloom_unchanged(FunctionCallInfo fcinfo);
extern char *pgbloom_kind_name(const BfKind *kind);
extern void pgbloom_init_params(BfParams *params, double fpp,
								bool sized, double expected, int64 seed);
extern void pgbloom_check(BfStatus status, const BfParams *params,
						  const BfParams *other);
pg_noreturn extern void pgbloom_kind_mismatch(const BfKind *kind,
											  const BfKind *other);
extern char *pgbloom_convert(const char *string, size_t length,
							 int from, int to);

/* bloom_stored.c */
extern void pgbloom_filter_open(FunctionCallInfo fcinfo, int argno,
								PgBloomFilter *filter);
extern bool pgbloom_filter_contains(PgBloomFilter *filter, uint64 hash);
extern bool pgbloom_filter_expect(PgBloomFilter *filter, int nkeys);
extern void pgbloom_describe(Datum filter, BfView *view);

/* bloom_expanded.c */
extern BfBuilder *pgbloom_expanded(Datum filter);
extern bool pgbloom_in_place(FunctionCallInfo fcinfo, Datum filter);
extern Datum pgbloom_writable(Datum filter);
extern Datum pgbloom_add_hashes(Datum filter, const BfKind *kind,
								const uint64 *hashes, int n);

/* bloom_types.c */
extern bool pgbloom_type_is(Oid type, PgBloomType which);

/* bloom_key.c */
extern PgBloomKeyType *pgbloom_key_type(FunctionCallInfo fcinfo, int argno);
extern PgBloomKeyType *pgbloom_element_type(FunctionCallInfo fcinfo,
											int argno);
extern ArrayType *pgbloom_key_array(FunctionCallInfo fcinfo, int argno);
extern PgBloomKeyType *pgbloom_find_key_type(Oid type, Oid collation,
											 const BfKind *kind);
extern void pgbloom_type_kind(Oid type, BfKind *kind);
extern uint64 pgbloom_key_hash(PgBloomKeyType *type, Datum key,
							   const BfParams *params, BfKind *kind);

/* bloom_canonical.c */
extern PgBloomHashFunction pgbloom_canonical_hash(Oid type, BfKind *kind);
extern Oid pgbloom_widest_type(const BfKind *kind);
extern PgBloomHashFunction pgbloom_text_hash(void);
extern void pgbloom_set_text_encoding(BfKind *kind);
extern uint64 pgbloom_hash_enum(Datum key, uint64 seed);

/* bloom_kind.c */
extern bool pgbloom_check_collation(Oid collation, bool noerror);
extern bool pgbloom_enum_kind(BfKind *kind, Oid type, bool noerror);
extern bool pgbloom_foreign_kind(BfKind *kind, Oid type, Oid collation,
								 bool noerror);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#endif							/* PGBLOOM_H */
