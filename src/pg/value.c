/*-------------------------------------------------------------------------
 *
 * value.c
 *	  PostgreSQL as the environment of the core: memory, values and errors.
 *
 *-------------------------------------------------------------------------
 */
#include "pg/pgbloom.h"

#include <math.h>

#ifndef WIN32
#include <sys/mman.h>
#include <unistd.h>
#endif

#include "catalog/namespace.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/memutils.h"

/* Largest number of expected keys: all integers up to it are exact. */
#define MAX_EXPECTED	9007199254740992.0	/* 2^53 */

/* Smaller memory would hold hardly one of the huge pages of x86-64. */
#define MIN_HUGE		((size_t) 4 << 20)

/*
 * Probes and keys go to random places of a large filter.  With pages of the
 * usual size, most of them would also have to look for the page's address in
 * memory, so ask for huge ones; nothing depends on getting them.
 */
static void *
prefer_huge_pages(void *memory, size_t size)
{
#ifdef MADV_HUGEPAGE
	if (memory != NULL && size >= MIN_HUGE)
	{
		uintptr_t	page_size = (uintptr_t) sysconf(_SC_PAGESIZE);
		uintptr_t	start = TYPEALIGN_DOWN(page_size, memory);
		uintptr_t	end = (uintptr_t) memory + size;

		(void) madvise((void *) start, end - start, MADV_HUGEPAGE);
	}
#else
	(void) size;
#endif
	return memory;
}

static void *
env_alloc(void *context, size_t size)
{
	void	   *memory;

	memory = MemoryContextAllocExtended((MemoryContext) context, size,
										MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
	return prefer_huge_pages(memory, size);
}

static void
env_free(void *context, void *pointer)
{
	(void) context;
	pfree(pointer);
}

static void
env_check_interrupts(void *context)
{
	(void) context;
	CHECK_FOR_INTERRUPTS();
}

/* A environment that takes memory from this context. */
BfEnv
pgbloom_env(MemoryContext context)
{
	BfEnv		env;

	env.alloc = env_alloc;
	env.free = env_free;
	env.context = context;
	env.interrupts.check = env_check_interrupts;
	env.interrupts.context = NULL;
	return env;
}

/*
 * Convert a string between encodings.  Returns NULL if it has no equivalent
 * or is not valid.  The result ends in a null byte.
 */
char *
pgbloom_convert(const char *string, size_t length, int from, int to)
{
	Oid			function;
	char	   *result;
	size_t		room = length * MAX_CONVERSION_GROWTH + 1;
	size_t		i;

	/* ASCII is the same in all encodings of databases. */
	for (i = 0; i < length && !IS_HIGHBIT_SET(string[i]); i++)
		continue;
	if (i == length)
		return pnstrdup(string, length);

	if (from == to || from == PG_SQL_ASCII || to == PG_SQL_ASCII)
		return pg_verify_mbstr(from == PG_SQL_ASCII ? to : from, string,
							   (int) length, true) ?
			pnstrdup(string, length) : NULL;

	function = FindDefaultConversionProc(from, to);
	if (!OidIsValid(function))
		return NULL;
	result = MemoryContextAllocHuge(CurrentMemoryContext, room);
	if (DatumGetInt32(OidFunctionCall6(function, Int32GetDatum(from),
									   Int32GetDatum(to),
									   CStringGetDatum(string),
									   CStringGetDatum(result),
									   Int32GetDatum((int32) length),
									   BoolGetDatum(true))) == (int32) length)
		return result;
	pfree(result);
	return NULL;
}

/*
 * UTF-8 in the encoding of the database, with each character that this lacks
 * as an escape, like \u00E9 or \U0001F600.  Never fails.
 */
static char *
utf8_to_server(const char *utf8)
{
	int			encoding = GetDatabaseEncoding();
	StringInfoData result;
	int			length;

	initStringInfo(&result);
	for (; *utf8 != '\0'; utf8 += length)
	{
		const unsigned char *c = (const unsigned char *) utf8;
		char	   *converted;

		length = pg_utf_mblen(c);
		converted = pgbloom_convert(utf8, length, PG_UTF8, encoding);
		if (converted != NULL)
		{
			appendStringInfoString(&result, converted);
			pfree(converted);
		}
		else
		{
			unsigned	code = (unsigned) utf8_to_unicode(c);

			appendStringInfo(&result, code > 0xFFFF ? "\\U%08X" : "\\u%04X",
							 code);
		}
	}
	return result.data;
}

/* The parts of a key type's name, in the encoding of the database. */
typedef struct KindName
{
	char	   *type;
	const char *definition;		/* of a type that consists of others; or "" */
	const char *locale;			/* or "" */
	bool		array;
} KindName;

/*
 * Split the name of a key type.  For an opclass-hashed type, it is put together
 * by set_opclass_name in bloom_kind.c.
 */
static void
split_key_type_name(const BfKeyType *key_type, KindName *parts)
{
	char	   *name = pstrdup(bf_key_type_name(key_type));
	const char *from = name;
	char	   *to = name;

	parts->definition = "";
	parts->locale = "";
	parts->array = false;
	while (key_type->code == BF_KEY_OPCLASS && *from != '\0')
	{
		bool		special = strchr("#[@", *from) != NULL;

		if (special && from[1] != *from)
		{
			if (*from == '@')
			{
				parts->locale = utf8_to_server(from + 1);
				break;
			}
			if (*from == '#')
			{
				size_t		length = strcspn(from + 1, "[@");

				parts->definition = pnstrdup(from + 1, length);
				from += 1 + length;
				continue;
			}
			parts->array = true;
		}
		*to++ = *from;
		from += special && from[1] == *from ? 2 : 1;
	}
	if (key_type->code == BF_KEY_OPCLASS)
		*to = '\0';
	parts->type = utf8_to_server(name);
	pfree(name);
}

/*
 * The type of a key type's keys in the encoding of the database, for users to
 * read; NULL as long as the key type is open.
 */
char *
pgbloom_key_type_name(const BfKeyType *key_type)
{
	KindName	name;

	if (key_type->code == BF_KEY_NONE)
		return NULL;
	split_key_type_name(key_type, &name);
	return name.type;
}

/* The platform and locale by which keys are hashed. */
static char *
describe_key_type(const BfKeyType *key_type)
{
	KindName	name;

	split_key_type_name(key_type, &name);
	return psprintf("%s (%s%s%s%s)", name.type,
					key_type->byte_order == BF_LITTLE_ENDIAN ? "little-endian, " :
					key_type->byte_order == BF_BIG_ENDIAN ? "big-endian, " : "",
					pg_encoding_to_char(key_type->code != BF_KEY_OPCLASS &&
										key_type->encoding == 0 ?
										PG_UTF8 : key_type->encoding),
					name.locale[0] != '\0' ? ", locale " : "", name.locale);
}

/* Why two key types are not equal. */
typedef enum Difference
{
	DIFFERENT_TYPES,
	DIFFERENT_DEFINITIONS,		/* of types with one name */
	DIFFERENT_LOCALES,
	DIFFERENT_PLATFORMS
} Difference;

static Difference
compare_key_types(const BfKeyType *a, const BfKeyType *b, KindName *a_name,
			  KindName *b_name)
{
	split_key_type_name(a, a_name);
	split_key_type_name(b, b_name);
	if (a->code != b->code || a_name->array != b_name->array ||
		strcmp(a_name->type, b_name->type) != 0)
		return DIFFERENT_TYPES;
	if (strcmp(a_name->definition, b_name->definition) != 0)
		return DIFFERENT_DEFINITIONS;
	if (strcmp(a_name->locale, b_name->locale) != 0)
		return DIFFERENT_LOCALES;
	return DIFFERENT_PLATFORMS;
}

/* Report a key that is not of the key type of the filter's keys. */
void
pgbloom_key_type_mismatch(const BfKeyType *key_type, const BfKeyType *other)
{
	KindName	name;
	KindName	other_name;
	Difference	difference = compare_key_types(key_type, other, &name, &other_name);

	if (difference == DIFFERENT_TYPES)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("Bloom filter holds keys of type %s, not of type %s",
						name.type, other_name.type),
				 errdetail("Keys of different types hash differently, so the answer would be wrong."),
				 other_name.array && !name.array ?
				 errhint("To look up the elements of an array, use bloom_contains_any or bloom_contains_all; to add them, bloom_add_all.") :
				 errhint("Cast the key to the type of the filter's keys.")));
	if (difference == DIFFERENT_DEFINITIONS)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("Bloom filter holds keys of another type named %s",
						name.type),
				 errdetail("The attributes or subtypes of the two types differ."),
				 errhint("Build the filter again from keys of this type, or from keys cast to text.")));
	ereport(ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 difference == DIFFERENT_PLATFORMS ?
			 errmsg("Bloom filter holds keys of type %s hashed on another platform",
					name.type) :
			 errmsg("Bloom filter holds keys of type %s hashed under another locale",
					name.type),
			 errdetail("The keys of the filter are %s, those given are %s.",
					   describe_key_type(key_type), describe_key_type(other)),
			 errhint("Build the filter again in this database, or from keys cast to text.")));
}

/* Report two filters whose keys are not of one key type. */
static void
filter_mismatch(const BfKeyType *a, const BfKeyType *b)
{
	KindName	a_name;
	KindName	b_name;
	Difference	difference = compare_key_types(a, b, &a_name, &b_name);

	if (difference == DIFFERENT_TYPES)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("cannot combine Bloom filters with keys of types %s and %s",
						a_name.type, b_name.type),
				 errdetail("Keys of different types hash differently."),
				 errhint("Build both filters from keys of one type.")));
	if (difference == DIFFERENT_DEFINITIONS)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("cannot combine Bloom filters with keys of two types named %s",
						a_name.type),
				 errdetail("The attributes or subtypes of the two types differ."),
				 errhint("Build both filters from keys of one type.")));
	ereport(ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 difference == DIFFERENT_PLATFORMS ?
			 errmsg("cannot combine Bloom filters with keys of type %s hashed on different platforms",
					a_name.type) :
			 errmsg("cannot combine Bloom filters with keys of type %s hashed under different locales",
					a_name.type),
			 errdetail("The keys of one filter are %s, those of the other are %s.",
					   describe_key_type(a), describe_key_type(b)),
			 errhint("Build both filters in one database, or from keys cast to text.")));
}

/* Bytes in words, for messages. */
static char *
pretty_size(double bytes)
{
	static const char *const units[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
	int			i = -1;

	do
	{
		bytes /= 1024;
		i++;
	} while (bytes >= 1024 && i < (int) lengthof(units) - 1);
	return psprintf(bytes < 10 ? "%.1f %s" : "%.0f %s", bytes, units[i]);
}

/*
 * Report a status of the core other than BF_OK.  params are those of the
 * filter worked on; other, if there is one, of what came to it.
 */
void
pgbloom_check(BfStatus status, const BfParams *params, const BfParams *other)
{
	switch (status)
	{
		case BF_OK:
			return;
		case BF_NO_MEMORY:
			ereport(ERROR,
					(errcode(ERRCODE_OUT_OF_MEMORY),
					 errmsg("out of memory"),
					 errdetail("A Bloom filter under construction could not get the memory it needs.")));
			break;
		case BF_TOO_LARGE:
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("Bloom filter would exceed the maximum size of %s",
							pretty_size(BF_MAX_BITS / 8.0)),
					 errdetail("It was asked for with a false-positive rate of %g and holds more keys than fit at this rate.",
							   params->fpp),
					 errhint("Distribute the keys over several filters by bloom_shard, or ask for a larger false-positive rate.")));
			break;
		case BF_SEED_MISMATCH:
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("cannot combine Bloom filters with different seeds"),
					 errdetail("One has seed %lld, the other %lld.",
							   (long long) params->seed,
							   (long long) other->seed),
					 errhint("Build both filters with the same seed.")));
			break;
		case BF_KEY_TYPE_MISMATCH:
			filter_mismatch(&params->key_type, &other->key_type);
			break;
		case BF_GEOMETRY_MISMATCH:
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("cannot intersect Bloom filters of different shapes"),
					 errdetail("Bits of filters that differ in size or false-positive rate, or have more than one layer, do not correspond."),
					 errhint("Build both filters with the same \"fpp\" and the same \"expected\", large enough for each of them.")));
			break;
		case BF_TOO_MANY_EXCLUSIONS:
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("Bloom filter would exceed the maximum of %d excluded keys",
							BF_MAX_EXCLUSIONS),
					 errhint("Build the filter anew with a smaller false-positive rate or another seed.")));
			break;
		case BF_IS_MEMBER:
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("cannot exclude a key that was added to the Bloom filter"),
					 errdetail("The filter is in its sparse form, which is exact.")));
			break;
		default:
			elog(ERROR, "unexpected status %d of a Bloom filter", status);
	}
}

static void
check_opened(BfStatus status, const BfView *view)
{
	if (status != BF_OK)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("invalid Bloom filter"),
				 errdetail_internal("%s", view->reason),
				 status == BF_UNKNOWN_VERSION ?
				 errhint("It may have been written by a newer version of the extension \"bloomfilter\".") :
				 errhint("Restore the value from a backup, or build the filter anew.")));
}

/*
 * Look into a stored filter.  It was validated when it came in, so whatever
 * is wrong with it now is corruption, or the work of a newer version.
 */
void
pgbloom_open(const struct varlena *filter, BfView *view)
{
	check_opened(bf_open((const uint8_t *) VARDATA_ANY(filter),
						 VARSIZE_ANY_EXHDR(filter), view), view);
}

/* The same where only the front of the image is at hand. */
void
pgbloom_open_header(const uint8_t *header, size_t size, BfView *view)
{
	check_opened(bf_open_header(header, size, view), view);
}

/*
 * Check bytes that come from outside.  Returns false after a soft error.
 */
bool
pgbloom_validate(const uint8_t *image, size_t size, int sqlerrcode,
				 Node *escontext)
{
	BfView		view;
	BfStatus	status = bf_validate(image, size, &view);

	if (status != BF_OK)
		ereturn(escontext, false,
				(errcode(sqlerrcode),
				 errmsg("invalid Bloom filter"),
				 errdetail_internal("%s", view.reason),
				 status == BF_UNKNOWN_VERSION ?
				 errhint("It may have been written by a newer version of the extension \"bloomfilter\".") : 0));
	return true;
}

/* Make a builder with the content of a filter. */
void
pgbloom_load(BfBuilder *builder, const BfEnv *env, const BfView *view)
{
	bf_builder_init(builder, env, &view->params);
	pgbloom_check(bf_builder_merge(builder, view), &builder->params,
				  &view->params);
}

/* Write what was built as a new value. */
struct varlena *
pgbloom_result(BfBuilder *builder, bool compact)
{
	BfBuilder	smaller;
	bool		found = false;
	size_t		size;
	struct varlena *result;

	if (compact)
		pgbloom_check(bf_builder_compact(builder, &smaller, &found),
					  &builder->params, NULL);
	if (found)
	{
		result = pgbloom_result(&smaller, false);
		bf_builder_free(&smaller);
		return result;
	}

	pgbloom_check(bf_builder_plan(builder, &size), &builder->params, NULL);
	result = prefer_huge_pages(palloc(VARHDRSZ + size), size);
	SET_VARSIZE(result, VARHDRSZ + size);
	bf_builder_write(builder, (uint8_t *) VARDATA(result));
	return result;
}

/*
 * The filter that a function adds to: its first argument, or an empty filter
 * if that is NULL.  The argument itself must not be replaced, because the
 * executor stores constant arguments only once for all calls.
 */
Datum
pgbloom_base_filter(FunctionCallInfo fcinfo)
{
	BfEnv		env;
	BfParams	params;
	BfBuilder	builder;

	if (!PG_ARGISNULL(0))
		return PG_GETARG_DATUM(0);
	env = pgbloom_env(CurrentMemoryContext);
	pgbloom_init_params(&params, BF_FPP_DEFAULT, false, 0, 0);
	bf_builder_init(&builder, &env, &params);
	return PointerGetDatum(pgbloom_result(&builder, false));
}

/* The result of a function that adds NULL to its first argument. */
Datum
pgbloom_unchanged(FunctionCallInfo fcinfo)
{
	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	PG_RETURN_DATUM(PG_GETARG_DATUM(0));
}

/*
 * Validate user-supplied parameters and fill in *params.  A fraction of an
 * expected key counts as a whole one.
 */
void
pgbloom_init_params(BfParams *params, double fpp, bool sized, double expected,
					int64 seed)
{
	uint64		n = 0;
	BfGeometry		geometry;

	/* Written so that NaN fails. */
	if (!(fpp >= BF_FPP_MIN && fpp <= BF_FPP_MAX))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("false-positive rate %g is out of range", fpp),
				 errdetail("The rate must be between %g and %g.",
						   BF_FPP_MIN, BF_FPP_MAX),
				 fpp >= 1 ?
				 errhint("The false-positive rate comes before the number of expected keys, as in bloom_empty(0.01, 1000000) and bloom_agg(key, 0.01, 1000000).") :
				 errhint("A rate of 0.01 means that one in a hundred keys that were never added tests positive.")));
	if (sized && !(expected >= 1 && expected <= MAX_EXPECTED))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("number of expected keys %.16g is out of range",
						expected),
				 errdetail("The number must be between 1 and %.16g.",
						   MAX_EXPECTED),
				 errhint("Use NULL for a filter that sizes itself.")));
	if (sized)
		n = (uint64) ceil(expected);
	if (sized && bf_geometry_for(fpp, n, &geometry) != BF_OK)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("Bloom filter for %lld keys at a false-positive rate of %g would take %s",
						(long long) n, fpp,
						pretty_size(bf_needed_bits(fpp, n) / 8)),
				 errdetail("The maximum size of a filter is %s, at this rate enough for %lld keys.",
						   pretty_size(BF_MAX_BITS / 8.0),
						   (long long) bf_max_keys(fpp)),
				 errhint("Distribute the keys over several filters by bloom_shard, or ask for a larger false-positive rate.")));

	memset(params, 0, sizeof(*params));
	params->fpp = fpp;
	params->expected = n;
	params->seed = (uint64_t) seed;
}
