/*-------------------------------------------------------------------------
 *
 * pgbloom.h
 *	  What the files of the PostgreSQL layer share.
 *
 * src/README.md has the map.  Dependencies run downward: src/sql uses src/pg,
 * src/pg uses src/core.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGBLOOM_H
#define PGBLOOM_H

#include "postgres.h"

#include "access/table.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "nodes/nodes.h"

#include "pg/compat.h"
#include "core/bf.h"

/* A value of type bloom: a varlena whose data is the image of a filter. */
typedef struct varlena Bloom;

#define PG_GETARG_BLOOM_PP(n) \
	((Bloom *) PG_DETOAST_DATUM_PACKED(PG_GETARG_DATUM(n)))
#define PG_RETURN_BLOOM_P(x)	PG_RETURN_POINTER(x)

/* Hashes the canonical bytes of a key. */
typedef uint64 (*PgBloomHashFunction) (Datum key, uint64 seed);

/* The types that the extension creates. */
typedef enum PgBloomType
{
	PGBLOOM_FILTER,				/* bloom */
	PGBLOOM_KEY,				/* bloom_key: a key without a type */
	PGBLOOM_KEYS				/* bloom_keys: an array without a type */
} PgBloomType;

/* How to hash the values of an SQL type as keys. */
typedef struct PgBloomKeyInfo
{
	BfKeyType	key_type;
	PgBloomHashFunction hash;	/* NULL for opclass-hashed types */
	uint64		definition;		/* hash of the attributes of a composite type,
								 * or 0 if the type cannot change */
	uint64		changes;		/* pgbloom_type_changes when it was looked up */
	FmgrInfo	extended_hash;	/* of opclass-hashed types */
	Oid			collation;
	MemoryContext context;		/* of this struct and what it points to */
	bool		untyped;		/* a literal or parameter without a type */
	bool		array_text;		/* keys are elements of the text of an array */
	struct PgBloomKeyInfo *resolved;	/* what it was last read as */
	bool		from_text;		/* convert text by the input function */
	bool		exact;			/* the type is known, not only the key type */
	Oid			input_type;		/* what text is converted to */
	FmgrInfo	input;
	Oid			ioparam;
} PgBloomKeyInfo;

/* The inline filter that this place in a query probed last. */
typedef struct PgBloomInlineCache PgBloomInlineCache;

/* Cache of the stored filters that this place in a query probes. */
typedef struct PgBloomStoredCache PgBloomStoredCache;

/* The index that this place in a query looked into last. */
typedef struct PgBloomIndexCache
{
	Oid			oid;
	MemoryContext context;		/* of key_info */
	PgBloomKeyInfo *key_info;	/* of the indexed column or expression */
} PgBloomIndexCache;

/* What fn_extra points to: the cache of one place in a query. */
typedef struct PgBloomFnCache
{
	MemoryContext context;		/* of this struct and what it points to */
	PgBloomKeyInfo *key_info;	/* NULL until it is looked up */
	PgBloomInlineCache *inline_cache;	/* NULL until a filter is probed */
	PgBloomStoredCache *stored_cache;	/* NULL until a filter is probed */
	PgBloomIndexCache *index_cache; /* NULL until an index is probed */
	uint32		flat_calls;		/* since one was given an expanded filter */
	bool		warned;			/* a warning has been issued */
} PgBloomFnCache;

/* A builder to which hashes are added in batches. */
typedef struct PgBloomBatch
{
	BfBuilder	builder;
	uint32		npending;
	uint32		room;			/* of pending */
	uint64	   *pending;		/* hashes not yet added, or NULL */
	PgBloomFnCache *fn_cache;	/* for a caller that keeps none, or NULL */
} PgBloomBatch;

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

/* Only what SQL calls is visible outside the library. */
#ifdef __GNUC__
#pragma GCC visibility push(hidden)
#endif

static inline PgBloomFnCache *
pgbloom_make_fn_cache(MemoryContext context)
{
	PgBloomFnCache *fn_cache = MemoryContextAllocZero(context,
													  sizeof(*fn_cache));

	fn_cache->context = context;
	return fn_cache;
}

/* The cache of this place in a query. */
static inline PgBloomFnCache *
pgbloom_fn_cache(FunctionCallInfo fcinfo)
{
	FmgrInfo   *function = fcinfo->flinfo;

	if (function->fn_extra == NULL)
		function->fn_extra = pgbloom_make_fn_cache(function->fn_mcxt);
	return function->fn_extra;
}

/* End the probes of a call. */
static inline void
pgbloom_probe_close(PgBloomProbe *probe)
{
	if (probe->toast != NULL)
		table_close(probe->toast, AccessShareLock);
}

/* env.c */
extern BfEnv pgbloom_env(MemoryContext context);
extern void *pgbloom_prefer_huge_pages(void *memory, size_t size);
extern void pgbloom_move_to_huge_pages(const void *memory, size_t size);

/* encoding.c */
extern char *pgbloom_convert(const char *string, size_t length,
							 int from, int to);
extern char *pgbloom_utf8_to_server(const char *utf8);

/* error.c */
extern char *pgbloom_pretty_size(double bytes);
extern void pgbloom_check(BfStatus status, const BfParams *params,
						  const BfParams *other);

/* params.c */
extern void pgbloom_check_fpp(double fpp, bool is_argument);
extern void pgbloom_check_expected(double expected, bool is_argument);
extern void pgbloom_init_params(BfParams *params, double fpp,
								bool sized, double expected, int64 seed);

/* value.c */
extern void pgbloom_open(const struct varlena *filter, BfView *view);
extern void pgbloom_open_header(const uint8_t *header, size_t size,
								BfView *view);
extern bool pgbloom_validate(const uint8_t *image, size_t size,
							 int sqlerrcode, Node *escontext);
extern void pgbloom_load(BfBuilder *builder, MemoryContext context,
						 const BfView *view);
extern struct varlena *pgbloom_result(BfBuilder *builder, bool compact);
extern struct varlena *pgbloom_finish(BfBuilder *builder);
extern Datum pgbloom_base_filter(FunctionCallInfo fcinfo);
extern Datum pgbloom_unchanged(FunctionCallInfo fcinfo);

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

/* batch.c */
extern BfBuilder *pgbloom_batch_builder(PgBloomBatch *batch);
extern void pgbloom_batch_add_slowly(PgBloomBatch *batch, uint64 hash);

/* Add a hash, immediately or with a batch. */
static inline void
pgbloom_batch_add(PgBloomBatch *batch, uint64 hash)
{
	if (bf_builder_collect(&batch->builder, hash))
		return;
	if (batch->npending < batch->room)
		batch->pending[batch->npending++] = hash;
	else
		pgbloom_batch_add_slowly(batch, hash);
}

/* expanded.c */
extern BfBuilder *pgbloom_expanded(Datum filter);
extern Datum pgbloom_make_state(MemoryContext aggregate,
								const BfParams *params);
extern PgBloomBatch *pgbloom_expanded_batch(Datum filter);
extern bool pgbloom_in_place(FunctionCallInfo fcinfo, Datum filter);
extern Datum pgbloom_writable(Datum filter);
extern Datum pgbloom_add_hashes(Datum filter, const BfKeyType *key_type,
								const uint64 *hashes, int n);

/* row_type.c */
extern TupleDesc pgbloom_row_type(FunctionCallInfo fcinfo, int ncolumns);
extern void pgbloom_set_bits_columns(const BfView *view, Datum *values,
									 bool *nulls);

/* types.c */
extern bool pgbloom_is_ours(Oid class, Oid object);
extern bool pgbloom_type_is(Oid type, PgBloomType which);

/* key.c */
extern PgBloomKeyInfo *pgbloom_lookup_key_info(FunctionCallInfo fcinfo,
											   int argno);
extern PgBloomKeyInfo *pgbloom_element_info(FunctionCallInfo fcinfo,
											int argno);
extern uint64 pgbloom_key_hash(PgBloomKeyInfo *info, Datum key,
							   const BfParams *params, BfKeyType *key_type);

/* Counts events that may have changed a composite type. */
extern uint64 pgbloom_type_changes;

/* Must the type be looked up, again if it has been before? */
static inline bool
pgbloom_is_stale(const PgBloomKeyInfo *info)
{
	return info == NULL ||
		(info->definition != 0 && info->changes != pgbloom_type_changes);
}

/* How to hash the key in an argument. */
static inline PgBloomKeyInfo *
pgbloom_key_info(FunctionCallInfo fcinfo, int argno)
{
	PgBloomKeyInfo *info = pgbloom_fn_cache(fcinfo)->key_info;

	return pgbloom_is_stale(info) ? pgbloom_lookup_key_info(fcinfo, argno) :
		info;
}

/* untyped.c */
extern PgBloomKeyInfo *pgbloom_resolve_untyped(PgBloomKeyInfo *untyped,
											   const BfKeyType *key_type);
extern Datum pgbloom_read_untyped(PgBloomKeyInfo *type, Datum key);
extern void pgbloom_set_input(PgBloomKeyInfo *info, Oid type);

/* key_info.c */
extern PgBloomKeyInfo *pgbloom_make_key_info(Oid type, Oid collation,
											 MemoryContext context,
											 bool noerror);
extern PgBloomKeyInfo *pgbloom_find_key_info(Oid type, Oid collation,
											 const BfKeyType *key_type);
extern void pgbloom_key_type_of(Oid type, BfKeyType *key_type);
extern uint64 pgbloom_opclass_hash(PgBloomKeyInfo *info, Datum value,
								   uint64 seed);

/* The hash of a value whose type is known. */
static inline uint64
pgbloom_hash_value(PgBloomKeyInfo *info, Datum value, uint64 seed)
{
	if (info->hash != NULL)
		return info->hash(value, seed);
	return pgbloom_opclass_hash(info, value, seed);
}

/* canonical.c */
extern PgBloomHashFunction pgbloom_canonical_hash(Oid type,
												  BfKeyType *key_type);
extern Oid	pgbloom_widest_type(const BfKeyType *key_type);
extern PgBloomHashFunction pgbloom_text_hash(void);
extern void pgbloom_set_text_encoding(BfKeyType *key_type);
extern uint64 pgbloom_hash_enum(Datum key, uint64 seed);

/* key_type.c */
extern bool pgbloom_check_collation(Oid collation, bool noerror);
extern bool pgbloom_enum_key_type(BfKeyType *key_type, Oid type,
								  bool noerror);
extern bool pgbloom_opclass_key_type(PgBloomKeyInfo *info, Oid type,
									 bool noerror);

/* key_type_name.c */
extern char *pgbloom_key_type_name(const BfKeyType *key_type);
extern bool pgbloom_set_key_type_name(BfKeyType *key_type, const char *name,
									  bool noerror);
extern bool pgbloom_set_opclass_name(BfKeyType *key_type,
									 const char *type_name,
									 const StringInfoData *definition,
									 bool array, bool by_locale,
									 bool noerror);
pg_noreturn extern void pgbloom_key_type_mismatch(const BfKeyType *key_type,
												  const BfKeyType *other);
extern void pgbloom_filter_mismatch(const BfKeyType *a, const BfKeyType *b);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#endif							/* PGBLOOM_H */
