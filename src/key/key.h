/*-------------------------------------------------------------------------
 *
 * key.h
 *	  From a datum to its hash: which types can be keys, and how their values
 *	  are hashed.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGBLOOM_KEY_H
#define PGBLOOM_KEY_H

#include "pgbloom.h"

#include "utils/array.h"

/* Hashes the canonical bytes of a key. */
typedef uint64 (*PgBloomHashFunction) (Datum key, uint64 seed);

/*
 * How to find the number that stands for a value of an opclass-hashed type, or
 * for an element of an array: the first of these that is set.
 */
typedef struct PgBloomNumber
{
	PgBloomHashFunction hash;	/* of jsonb, or of an element's bytes */
	struct PgBloomNumber *element;	/* of an array */
	FmgrInfo	extended_hash;	/* of the operator class */
} PgBloomNumber;

/* How to hash the values of an SQL type as keys. */
typedef struct PgBloomKeyInfo
{
	BfKeyType	key_type;
	PgBloomHashFunction hash;	/* NULL for opclass-hashed types */
	PgBloomNumber *number;		/* of opclass-hashed types, else NULL */
	Oid			collation;
	MemoryContext context;		/* of this struct and what it points to */
	bool		untyped;		/* a literal or parameter without a type */
	bool		array_text;		/* keys are elements of the text of an array */
	struct PgBloomKeyInfo *resolved;	/* what it was last read as */
	bool		from_text;		/* convert text by the input function */
	bool		exact;			/* the type is known, not only the key type */
	FmgrInfo	input;			/* of the type that text is converted to */
	Oid			ioparam;
} PgBloomKeyInfo;

/* The inline filter that this place in a query probed last. */
typedef struct PgBloomInlineCache PgBloomInlineCache;

/* Cache of the stored filters that this place in a query probes. */
typedef struct PgBloomStoredCache PgBloomStoredCache;

/* The index that this place in a query looked into last. */
typedef struct PgBloomIndexCache PgBloomIndexCache;

/* What fn_extra points to: the cache of one place in a query. */
typedef struct PgBloomFnCache
{
	MemoryContext context;		/* of this struct and what it points to */
	PgBloomKeyInfo *key_info;	/* NULL until it is looked up */
	PgBloomInlineCache *inline_cache;	/* NULL until a filter is probed */
	PgBloomStoredCache *stored_cache;	/* NULL until a filter is probed */
	PgBloomIndexCache *index_cache; /* NULL until an index is probed */
	bool		warned;			/* a warning has been issued */
} PgBloomFnCache;

/* A deconstructed array, with what it takes to construct one like it. */
typedef struct PgBloomKeyArray
{
	ArrayType  *array;
	Oid			type;			/* of the elements */
	int16		typlen;
	bool		typbyval;
	char		typalign;
	Datum	   *values;			/* the elements that are not null */
	int			nkeys;			/* their number */
} PgBloomKeyArray;

/* The hash of a key, and its index in PgBloomKeyArray.values. */
typedef struct PgBloomHashedKey
{
	uint64		hash;
	int			index;
} PgBloomHashedKey;

#pragma GCC visibility push(hidden)

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

/* key.c */
extern PgBloomKeyInfo *pgbloom_lookup_key_info(FunctionCallInfo fcinfo,
											   int argno);
extern PgBloomKeyInfo *pgbloom_element_info(FunctionCallInfo fcinfo,
											int argno);
extern uint64 pgbloom_key_hash(PgBloomKeyInfo *info, Datum key,
							   const BfParams *params,
							   const BfKeyType **key_type);

/* How to hash the key in an argument. */
static inline PgBloomKeyInfo *
pgbloom_key_info(FunctionCallInfo fcinfo, int argno)
{
	PgBloomKeyInfo *info = pgbloom_fn_cache(fcinfo)->key_info;

	return info == NULL ? pgbloom_lookup_key_info(fcinfo, argno) : info;
}

/* untyped.c */
extern PgBloomKeyInfo *pgbloom_resolve_untyped(PgBloomKeyInfo *untyped,
											   const BfKeyType *key_type);
extern Datum pgbloom_read_untyped(PgBloomKeyInfo *type, Datum key);
extern void pgbloom_set_input(PgBloomKeyInfo *info, Oid type);
extern void pgbloom_add_hint(void *hint);
extern void pgbloom_reject_array_text(const PgBloomKeyInfo *untyped,
									  Datum key);

/* key_info.c */
extern PgBloomKeyInfo *pgbloom_make_key_info(Oid type, Oid collation,
											 MemoryContext context,
											 bool raise);
extern void pgbloom_key_type_of(Oid type, BfKeyType *key_type);

/* composed.c */
extern PgBloomHashFunction pgbloom_number_hash(Oid type);
extern void pgbloom_free_number(PgBloomNumber *number);
extern uint64 pgbloom_opclass_hash(const PgBloomKeyInfo *info, Datum value,
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
extern char *pgbloom_convert(const char *string, size_t length,
							 int from, int to);
extern PgBloomHashFunction pgbloom_canonical_hash(Oid type,
												  BfKeyType *key_type);
extern Oid	pgbloom_widest_type(const BfKeyType *key_type);
extern bool pgbloom_text_is_utf8(void);
extern uint64 pgbloom_hash_bytes(Datum key, uint64 seed);
extern uint64 pgbloom_hash_numeric(Datum key, uint64 seed);
extern uint64 pgbloom_hash_text(Datum key, uint64 seed);
extern uint64 pgbloom_hash_enum(Datum key, uint64 seed);

/* key_type_name.c */
extern char *pgbloom_key_type_name(const BfKeyType *key_type);
pg_noreturn extern void pgbloom_key_type_mismatch(const BfKeyType *a,
												  const BfKeyType *b,
												  bool filters);

/* key_array.c */
extern void pgbloom_read_key_array(ArrayType *array, PgBloomKeyArray *keys);
extern void pgbloom_get_key_array(FunctionCallInfo fcinfo, int argno,
								  PgBloomKeyArray *keys);
extern PgBloomHashedKey *pgbloom_hash_key_array(PgBloomKeyInfo *key_info,
												const PgBloomKeyArray *keys,
												const BfParams *params);
extern void pgbloom_sort_hashed_keys(PgBloomHashedKey *hashed, size_t n);
extern ArrayType *pgbloom_make_result_array(const PgBloomKeyArray *keys,
											const bool *results);

#pragma GCC visibility pop

#endif							/* PGBLOOM_KEY_H */
