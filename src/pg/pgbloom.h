/*-------------------------------------------------------------------------
 *
 * pgbloom.h
 *	  What the files of the PostgreSQL layer share.
 *
 * Dependencies run downward.  The functions of SQL are implemented by files
 * that do not call each other: bloom_io, bloom_func (one filter, one key),
 * bloom_array (many keys), bloom_set (two filters), bloom_info, bloom_agg
 * and, for the planner, bloom_plan.  They use bloom_stored (filters that are
 * only asked), bloom_key (from a datum to key type and hash, with the help of
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

#include "pg/compat.h"
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
typedef struct PgBloomKeyInfo PgBloomKeyInfo;

/* The inline filter that a call site probed last. */
typedef struct PgBloomInlineCache PgBloomInlineCache;

/* Cache of the stored filters that a call site probes. */
typedef struct PgBloomStoredCache PgBloomStoredCache;

/* What fn_extra points to. */
typedef struct PgBloomFnCache
{
	PgBloomKeyInfo *key_info;	/* NULL until it is looked up */
	PgBloomInlineCache *inline_cache;	/* NULL until a filter is probed */
	PgBloomStoredCache *stored_cache;	/* NULL until a filter is probed */
} PgBloomFnCache;

/* An open filter argument, between pgbloom_probe_open and _close. */
typedef struct PgBloomProbe
{
	const BfParams *params;
	BfBuilder  *builder;		/* of an expanded filter, or NULL */
	const BfView *view;			/* of any other filter; of its header only, if
								 * slices are read */
	PgBloomStoredCache *cache;	/* of a stored filter */
	const struct varlena *stored;	/* its datum in the row */
	Relation	toast;			/* its TOAST table, once opened for slices */
} PgBloomProbe;

/* Only what SQL calls is seen from outside the library. */
#ifdef __GNUC__
#pragma GCC visibility push(hidden)
#endif

/* What this call site keeps. */
static inline PgBloomFnCache *
pgbloom_fn_cache(FunctionCallInfo fcinfo)
{
	FmgrInfo   *function = fcinfo->flinfo;

	if (function->fn_extra == NULL)
		function->fn_extra = MemoryContextAllocZero(function->fn_mcxt,
													sizeof(PgBloomFnCache));
	return function->fn_extra;
}

/* End the probes of a call. */
static inline void
pgbloom_probe_close(PgBloomProbe *probe)
{
	if (probe->toast != NULL)
		table_close(probe->toast, AccessShareLock);
}

/* bloom_host.c */
extern BfEnv pgbloom_env(MemoryContext context);
extern void pgbloom_open(const struct varlena *filter, BfView *view);
extern void pgbloom_open_header(const uint8_t *header, size_t size,
							   BfView *view);
extern bool pgbloom_validate(const uint8_t *image, size_t size,
							 int sqlerrcode, Node *escontext);
extern void pgbloom_load(BfBuilder *builder, const BfEnv *env,
						 const BfView *view);
extern struct varlena *pgbloom_result(BfBuilder *builder, bool compact);
extern Datum pgbloom_base_filter(FunctionCallInfo fcinfo);
extern Datum pgbloom_unchanged(FunctionCallInfo fcinfo);
extern char *pgbloom_key_type_name(const BfKeyType *key_type);
extern void pgbloom_init_params(BfParams *params, double fpp,
								bool sized, double expected, int64 seed);
extern void pgbloom_check(BfStatus status, const BfParams *params,
						  const BfParams *other);
pg_noreturn extern void pgbloom_key_type_mismatch(const BfKeyType *key_type,
											  const BfKeyType *other);
extern char *pgbloom_convert(const char *string, size_t length,
							 int from, int to);

/* probe.c */
extern void pgbloom_probe_open(FunctionCallInfo fcinfo, int argno,
							   PgBloomProbe *probe);
extern bool pgbloom_probe_contains(PgBloomProbe *probe, uint64 hash);
extern bool pgbloom_probe_batch(PgBloomProbe *probe, int nkeys);
extern void pgbloom_open_info(Datum filter, BfView *view);

/* stored.c */
extern void pgbloom_stored_open(FunctionCallInfo fcinfo,
								const struct varlena *value,
								PgBloomProbe *probe);
extern void pgbloom_stored_plan(PgBloomProbe *probe, int nkeys);
extern bool pgbloom_stored_contains(PgBloomProbe *probe, uint64 hash);

/* bloom_expanded.c */
extern BfBuilder *pgbloom_expanded(Datum filter);
extern bool pgbloom_in_place(FunctionCallInfo fcinfo, Datum filter);
extern Datum pgbloom_writable(Datum filter);
extern Datum pgbloom_add_hashes(Datum filter, const BfKeyType *key_type,
								const uint64 *hashes, int n);

/* bloom_types.c */
extern bool pgbloom_type_is(Oid type, PgBloomType which);

/* bloom_key.c */
extern PgBloomKeyInfo *pgbloom_key_info(FunctionCallInfo fcinfo, int argno);
extern PgBloomKeyInfo *pgbloom_element_info(FunctionCallInfo fcinfo,
											int argno);
extern ArrayType *pgbloom_key_array(FunctionCallInfo fcinfo, int argno);
extern PgBloomKeyInfo *pgbloom_find_key_info(Oid type, Oid collation,
											 const BfKeyType *key_type);
extern void pgbloom_key_type_of(Oid type, BfKeyType *key_type);
extern uint64 pgbloom_key_hash(PgBloomKeyInfo *type, Datum key,
							   const BfParams *params, BfKeyType *key_type);

/* bloom_canonical.c */
extern PgBloomHashFunction pgbloom_canonical_hash(Oid type, BfKeyType *key_type);
extern Oid pgbloom_widest_type(const BfKeyType *key_type);
extern PgBloomHashFunction pgbloom_text_hash(void);
extern void pgbloom_set_text_encoding(BfKeyType *key_type);
extern uint64 pgbloom_hash_enum(Datum key, uint64 seed);

/* bloom_kind.c */
extern bool pgbloom_check_collation(Oid collation, bool noerror);
extern bool pgbloom_enum_key_type(BfKeyType *key_type, Oid type, bool noerror);
extern bool pgbloom_opclass_key_type(BfKeyType *key_type, Oid type, Oid collation,
								 bool noerror);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#endif							/* PGBLOOM_H */
