/*-------------------------------------------------------------------------
 *
 * bloom_key.c
 *	  From an SQL datum to the kind of a key and its 64-bit hash.
 *
 * Keys that SQL calls equal must hash alike, wherever and whenever: across
 * the types of one hash operator family, inline or TOASTed, on every CPU,
 * in every version of PostgreSQL and after dump and restore.  The common
 * types are therefore hashed by canonical bytes of our own, which
 * doc/FORMAT.md lists.  Any other type goes through the extended hash
 * function of its hash operator class.  Such hashes may depend on the byte
 * order of the machine and on the encoding of the database, so these are
 * recorded as part of the kind, and types whose hashes do not even survive a
 * dump are refused.
 *
 *-------------------------------------------------------------------------
 */
#include "bloom.h"

#include <math.h>
#include <sys/socket.h>

#include "access/htup_details.h"
#include "access/tupdesc.h"
#include "catalog/pg_enum.h"
#include "catalog/pg_type.h"
#include "datatype/timestamp.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "parser/parse_coerce.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/date.h"
#include "utils/inet.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/numeric.h"
#include "utils/pg_lsn.h"
#include "utils/rangetypes.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"
#include "utils/uuid.h"
#include "utils/xid8.h"

/* Hashes the canonical bytes of a key. */
typedef uint64 (*PgBloomHashFunction) (Datum key, uint64 seed);

struct PgBloomKeyType
{
	BfKind		kind;
	PgBloomHashFunction hash;	/* NULL for foreign types */
	FmgrInfo	extended_hash;	/* of foreign types */
	Oid			collation;
	MemoryContext context;		/* of this struct and what it points to */
	bool		untyped;		/* a literal or parameter without a type */
	PgBloomKeyType *reading;	/* what it was last read as */
};

PG_FUNCTION_INFO_V1(bloom_key_in);

/*
 * bloom_key is the type that literals and parameters without a type take
 * where a key is expected; its values are those of text.
 */
Datum
bloom_key_in(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text(PG_GETARG_CSTRING(0)));
}

static bool
is_ascii(const char *string, int length)
{
	int			i;

	for (i = 0; i < length; i++)
	{
		if (IS_HIGHBIT_SET(string[i]))
			return false;
	}
	return true;
}

/*
 * Hash a string as UTF-8, so that it is found in a database of any encoding.
 * A database without an encoding has only bytes to offer.
 */
static uint64
hash_string(const char *string, int length, uint64 seed)
{
	int			encoding = GetDatabaseEncoding();
	char	   *utf8;
	uint64		hash;

	if (encoding == PG_UTF8 || encoding == PG_SQL_ASCII ||
		is_ascii(string, length))
		return bf_hash_bytes(string, length, seed);
	utf8 = pg_server_to_any(string, length, PG_UTF8);
	hash = bf_hash_bytes(utf8, strlen(utf8), seed);
	pfree(utf8);
	return hash;
}

static uint64
hash_text_key(Datum key, uint64 seed)
{
	text	   *string = DatumGetTextPP(key);
	uint64		hash = hash_string(VARDATA_ANY(string),
								   VARSIZE_ANY_EXHDR(string), seed);

	if ((Pointer) string != DatumGetPointer(key))
		pfree(string);
	return hash;
}

/* char(n) is equal without its padding. */
static uint64
hash_bpchar_key(Datum key, uint64 seed)
{
	BpChar	   *string = DatumGetBpCharPP(key);
	uint64		hash = hash_string(VARDATA_ANY(string),
								   bpchartruelen(VARDATA_ANY(string),
												 VARSIZE_ANY_EXHDR(string)),
								   seed);

	if ((Pointer) string != DatumGetPointer(key))
		pfree(string);
	return hash;
}

static uint64
hash_name_key(Datum key, uint64 seed)
{
	const char *string = NameStr(*DatumGetName(key));

	return hash_string(string, strlen(string), seed);
}

static uint64
hash_bytea_key(Datum key, uint64 seed)
{
	bytea	   *bytes = DatumGetByteaPP(key);
	uint64		hash = bf_hash_bytes(VARDATA_ANY(bytes),
									 VARSIZE_ANY_EXHDR(bytes), seed);

	if ((Pointer) bytes != DatumGetPointer(key))
		pfree(bytes);
	return hash;
}

static uint64
hash_int2_key(Datum key, uint64 seed)
{
	return bf_hash_u64((uint64) (int64) DatumGetInt16(key), seed);
}

static uint64
hash_int4_key(Datum key, uint64 seed)
{
	return bf_hash_u64((uint64) (int64) DatumGetInt32(key), seed);
}

/* Also for the types that are a 64-bit count of something. */
static uint64
hash_int8_key(Datum key, uint64 seed)
{
	return bf_hash_u64((uint64) DatumGetInt64(key), seed);
}

static uint64
hash_oid_key(Datum key, uint64 seed)
{
	return bf_hash_u64(DatumGetObjectId(key), seed);
}

/* Also for "char", which is one byte of either sign. */
static uint64
hash_byte_key(Datum key, uint64 seed)
{
	return bf_hash_u64(DatumGetUInt8(key), seed);
}

/* Zeros of both signs are equal, and so are all NaNs. */
static uint64
hash_double(double value, uint64 seed)
{
	uint64		bits;

	if (isnan(value))
		bits = UINT64CONST(0x7FF8000000000000);
	else if (value == 0)
		bits = 0;
	else
		memcpy(&bits, &value, sizeof(bits));
	return bf_hash_u64(bits, seed);
}

static uint64
hash_float4_key(Datum key, uint64 seed)
{
	return hash_double(DatumGetFloat4(key), seed);
}

static uint64
hash_float8_key(Datum key, uint64 seed)
{
	return hash_double(DatumGetFloat8(key), seed);
}

/* 1.0 and 1.00 are equal: the shortest decimal text tells them by value. */
static uint64
hash_numeric_key(Datum key, uint64 seed)
{
	Numeric		number = DatumGetNumeric(key);
	char	   *digits = numeric_normalize(number);
	uint64		hash = bf_hash_bytes(digits, strlen(digits), seed);

	pfree(digits);
	if ((Pointer) number != DatumGetPointer(key))
		pfree(number);
	return hash;
}

static uint64
hash_uuid_key(Datum key, uint64 seed)
{
	return bf_hash_bytes(DatumGetUUIDP(key)->data, UUID_LEN, seed);
}

static uint64
hash_two_words(uint64 first, uint64 second, uint64 seed)
{
	uint8		bytes[16];
	int			i;

	for (i = 0; i < 8; i++)
	{
		bytes[i] = (uint8) (first >> (8 * i));
		bytes[8 + i] = (uint8) (second >> (8 * i));
	}
	return bf_hash_bytes(bytes, sizeof(bytes), seed);
}

static uint64
hash_timetz_key(Datum key, uint64 seed)
{
	TimeTzADT  *time = DatumGetTimeTzADTP(key);

	return hash_two_words((uint64) time->time, (uint64) (int64) time->zone,
						  seed);
}

/*
 * Intervals are equal by length, with months of 30 days of 24 hours: whole
 * days and the microseconds left over, which are not negative.
 */
static uint64
hash_interval_key(Datum key, uint64 seed)
{
	Interval   *interval = DatumGetIntervalP(key);
	int64		days = interval->time / USECS_PER_DAY;
	int64		rest = interval->time % USECS_PER_DAY;

	if (rest < 0)
	{
		rest += USECS_PER_DAY;
		days--;
	}
	days += (int64) interval->month * DAYS_PER_MONTH + interval->day;
	return hash_two_words((uint64) days, (uint64) rest, seed);
}

/* Version 4 or 6 of the protocol, length of the netmask, address. */
static uint64
hash_inet_key(Datum key, uint64 seed)
{
	inet	   *address = DatumGetInetPP(key);
	uint8		bytes[2 + 16];
	int			size = ip_addrsize(address);
	uint64		hash;

	bytes[0] = ip_family(address) == PGSQL_AF_INET ? 4 : 6;
	bytes[1] = ip_bits(address);
	memcpy(bytes + 2, ip_addr(address), size);
	hash = bf_hash_bytes(bytes, 2 + size, seed);
	if ((Pointer) address != DatumGetPointer(key))
		pfree(address);
	return hash;
}

static uint64
hash_macaddr_key(Datum key, uint64 seed)
{
	return bf_hash_bytes(DatumGetMacaddrP(key), sizeof(macaddr), seed);
}

static uint64
hash_macaddr8_key(Datum key, uint64 seed)
{
	return bf_hash_bytes(DatumGetMacaddr8P(key), sizeof(macaddr8), seed);
}

/* OIDs of enum values do not survive a dump, their labels do. */
static uint64
hash_enum_key(Datum key, uint64 seed)
{
	HeapTuple	tuple = SearchSysCache1(ENUMOID, key);
	const char *label;
	uint64		hash;

	if (!HeapTupleIsValid(tuple))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("invalid internal value for enum: %u",
						DatumGetObjectId(key))));
	label = NameStr(((Form_pg_enum) GETSTRUCT(tuple))->enumlabel);
	hash = hash_string(label, strlen(label), seed);
	ReleaseSysCache(tuple);
	return hash;
}

/*
 * Whether deterministic collation makes equal strings equal bytes.
 */
static void
check_collation(Oid collation)
{
	if (!OidIsValid(collation))
		ereport(ERROR,
				(errcode(ERRCODE_INDETERMINATE_COLLATION),
				 errmsg("could not determine which collation to use for string hashing"),
				 errhint("Use the COLLATE clause to set the collation explicitly.")));
	if (!get_collation_isdeterministic(collation))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("Bloom filters do not support nondeterministic collations"),
				 errdetail("Strings that are equal under collation \"%s\" may differ in their bytes.",
						   get_collation_name(collation)),
				 errhint("Apply a deterministic collation to the key, for example COLLATE \"C\".")));
}

static void
refuse_type(Oid type, Oid key_type)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("type %s cannot be the key of a Bloom filter",
					format_type_be(key_type)),
			 errdetail("Values of type %s hash by object identifiers, which do not survive dump and restore.",
					   format_type_be(type)),
			 errhint("Cast the key to text.")));
}

static void check_foreign(Oid type, Oid collation, Oid key_type);

static void
check_attributes(TupleDesc descriptor, Oid key_type)
{
	int			i;

	for (i = 0; i < descriptor->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(descriptor, i);

		if (!attribute->attisdropped)
			check_foreign(attribute->atttypid, attribute->attcollation,
						  key_type);
	}
}

/*
 * Refuse types whose hashes do not outlive the database, wherever they occur
 * inside the type of a key.
 */
static void
check_foreign(Oid type, Oid collation, Oid key_type)
{
	Oid			part;

	check_stack_depth();
	type = getBaseType(type);
	switch (type)
	{
		case REGPROCOID:
		case REGPROCEDUREOID:
		case REGOPEROID:
		case REGOPERATOROID:
		case REGCLASSOID:
		case REGCOLLATIONOID:
		case REGTYPEOID:
		case REGROLEOID:
		case REGNAMESPACEOID:
		case REGCONFIGOID:
		case REGDICTIONARYOID:
		case ACLITEMOID:
#ifdef REGDATABASEOID
		case REGDATABASEOID:
#endif
			refuse_type(type, key_type);
	}

	/* Within a key, a record might be of any type. */
	if (type == RECORDOID || type == RECORDARRAYOID)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("type %s cannot be the key of a Bloom filter",
						format_type_be(key_type)),
				 errdetail("It contains records of no particular type."),
				 errhint("Cast the records to a named composite type.")));

	switch (get_typtype(type))
	{
		case TYPTYPE_ENUM:
			refuse_type(type, key_type);
			break;
		case TYPTYPE_COMPOSITE:
			{
				TupleDesc	descriptor = lookup_rowtype_tupdesc(type, -1);

				check_attributes(descriptor, key_type);
				ReleaseTupleDesc(descriptor);
				break;
			}
		case TYPTYPE_RANGE:
			check_foreign(get_range_subtype(type), get_range_collation(type),
						  key_type);
			break;
		case TYPTYPE_MULTIRANGE:
			check_foreign(get_multirange_range(type), InvalidOid, key_type);
			break;
		default:
			part = get_element_type(type);
			if (OidIsValid(part))
				check_foreign(part, collation, key_type);
			else if (type_is_collatable(type))
				check_collation(collation);
	}
}

static uint64
hash_foreign(PgBloomKeyType *type, Datum key, uint64 seed)
{
	Datum		hash;

	hash = FunctionCall2Coll(&type->extended_hash, type->collation, key,
							 UInt64GetDatum(seed));
	return bf_hash_u64(DatumGetUInt64(hash), seed);
}

static void
set_kind_name(BfKind *kind, const char *name, const char *suffix)
{
	char	   *utf8 = pg_server_to_any(name, strlen(name), PG_UTF8);
	size_t		length = strlen(utf8) + strlen(suffix);

	if (length > BF_MAX_KIND_NAME)
		ereport(ERROR,
				(errcode(ERRCODE_NAME_TOO_LONG),
				 errmsg("name of type \"%s\" is too long for the key of a Bloom filter",
						name),
				 errdetail("It takes %zu bytes, the maximum is %d.",
						   length, BF_MAX_KIND_NAME)));
	snprintf(kind->name, sizeof(kind->name), "%s%s", utf8, suffix);
	kind->namelen = (uint8_t) length;
}

/* The bare name, so that a type may change its schema. */
static char *
type_name(Oid type)
{
	HeapTuple	tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(type));
	char	   *name;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for type %u", type);
	name = pstrdup(NameStr(((Form_pg_type) GETSTRUCT(tuple))->typname));
	ReleaseSysCache(tuple);
	return name;
}

/* Hash keys of any other type by the function of its operator class. */
static void
set_foreign(PgBloomKeyType *key_type, Oid type)
{
	TypeCacheEntry *entry;
	Oid			element = get_element_type(type);
	BfKind	   *kind = &key_type->kind;

	entry = lookup_type_cache(type, TYPECACHE_HASH_EXTENDED_PROC);
	if (!OidIsValid(entry->hash_extended_proc))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("type %s cannot be the key of a Bloom filter",
						format_type_be(type)),
				 errdetail("It has no default hash operator class with an extended hash function."),
				 errhint("Cast the key to a type that has one, for example text.")));
	check_foreign(type, key_type->collation, type);
	fmgr_info_cxt(entry->hash_extended_proc, &key_type->extended_hash,
				  key_type->context);

	kind->code = BF_KIND_FOREIGN;
#ifdef WORDS_BIGENDIAN
	kind->byte_order = BF_BIG_ENDIAN;
#else
	kind->byte_order = BF_LITTLE_ENDIAN;
#endif
	kind->encoding = (uint8_t) GetDatabaseEncoding();
	if (OidIsValid(element))
		set_kind_name(kind, type_name(getBaseType(element)), "[]");
	else
		set_kind_name(kind, type_name(type), "");
}

static const struct
{
	Oid			type;
	BfKindCode	kind;
	PgBloomHashFunction hash;
}			canonical_types[] =
{
	{TEXTOID, BF_KIND_TEXT, hash_text_key},
	{VARCHAROID, BF_KIND_TEXT, hash_text_key},
	{BPCHAROID, BF_KIND_TEXT, hash_bpchar_key},
	{NAMEOID, BF_KIND_TEXT, hash_name_key},
	{BYTEAOID, BF_KIND_BYTEA, hash_bytea_key},
	{INT2OID, BF_KIND_INTEGER, hash_int2_key},
	{INT4OID, BF_KIND_INTEGER, hash_int4_key},
	{INT8OID, BF_KIND_INTEGER, hash_int8_key},
	{FLOAT4OID, BF_KIND_FLOAT, hash_float4_key},
	{FLOAT8OID, BF_KIND_FLOAT, hash_float8_key},
	{NUMERICOID, BF_KIND_NUMERIC, hash_numeric_key},
	{BOOLOID, BF_KIND_BOOLEAN, hash_byte_key},
	{CHAROID, BF_KIND_CHAR, hash_byte_key},
	{OIDOID, BF_KIND_OID, hash_oid_key},
	{UUIDOID, BF_KIND_UUID, hash_uuid_key},
	{DATEOID, BF_KIND_DATE, hash_int4_key},
	{TIMEOID, BF_KIND_TIME, hash_int8_key},
	{TIMETZOID, BF_KIND_TIMETZ, hash_timetz_key},
	{TIMESTAMPOID, BF_KIND_TIMESTAMP, hash_int8_key},
	{TIMESTAMPTZOID, BF_KIND_TIMESTAMPTZ, hash_int8_key},
	{INTERVALOID, BF_KIND_INTERVAL, hash_interval_key},
	{INETOID, BF_KIND_INET, hash_inet_key},
	{CIDROID, BF_KIND_INET, hash_inet_key},
	{MACADDROID, BF_KIND_MACADDR, hash_macaddr_key},
	{MACADDR8OID, BF_KIND_MACADDR8, hash_macaddr8_key},
	{PG_LSNOID, BF_KIND_PG_LSN, hash_int8_key},
	{XID8OID, BF_KIND_XID8, hash_int8_key},
};

/* Whether this is our type for keys that nobody gave a type. */
static bool
is_untyped(Oid type)
{
	Oid			input;
	Oid			ioparam;
	FmgrInfo	function;

	if (type < FirstNormalObjectId || get_typtype(type) != TYPTYPE_BASE)
		return false;
	getTypeInputInfo(type, &input, &ioparam);
	fmgr_info(input, &function);
	return function.fn_addr == bloom_key_in;
}

static PgBloomKeyType *
make_key_type(Oid type, Oid collation, MemoryContext context)
{
	PgBloomKeyType *key_type = MemoryContextAllocZero(context,
													  sizeof(*key_type));
	Oid			base = getBaseType(type);
	int			i;

	key_type->collation = collation;
	key_type->context = context;

	for (i = 0; i < (int) lengthof(canonical_types); i++)
	{
		if (canonical_types[i].type == base)
		{
			key_type->kind.code = canonical_types[i].kind;
			key_type->hash = canonical_types[i].hash;
			if (type_is_collatable(base))
				check_collation(collation);
			return key_type;
		}
	}

	if (is_untyped(base))
	{
		key_type->kind.code = BF_KIND_TEXT;
		key_type->hash = hash_text_key;
		key_type->untyped = true;
	}
	else if (get_typtype(base) == TYPTYPE_ENUM)
	{
		key_type->kind.code = BF_KIND_ENUM;
		key_type->hash = hash_enum_key;
		set_kind_name(&key_type->kind, type_name(base), "");
	}
	else
		set_foreign(key_type, base);
	return key_type;
}

/* Look up a type once for all calls from one site. */
static PgBloomKeyType *
lookup_once(FunctionCallInfo fcinfo, Oid type)
{
	PgBloomSite *site = pgbloom_site(fcinfo);

	if (!OidIsValid(type))
		ereport(ERROR,
				(errcode(ERRCODE_INDETERMINATE_DATATYPE),
				 errmsg("could not determine the data type of the key")));
	site->key_type = make_key_type(type, PG_GET_COLLATION(),
								   fcinfo->flinfo->fn_mcxt);
	return site->key_type;
}

/* The type of the key that is an argument. */
PgBloomKeyType *
pgbloom_key_type(FunctionCallInfo fcinfo, int argno)
{
	PgBloomSite *site = pgbloom_site(fcinfo);

	if (site->key_type != NULL)
		return site->key_type;
	return lookup_once(fcinfo, get_fn_expr_argtype(fcinfo->flinfo, argno));
}

/* The type of the keys in an argument that is an array. */
PgBloomKeyType *
pgbloom_element_type(FunctionCallInfo fcinfo, int argno)
{
	PgBloomSite *site = pgbloom_site(fcinfo);
	Oid			array;

	if (site->key_type != NULL)
		return site->key_type;
	array = get_fn_expr_argtype(fcinfo->flinfo, argno);
	return lookup_once(fcinfo, get_base_element_type(array));
}

/*
 * The type with this name whose values are text to all but its operators.
 * It is looked for in all schemas: what a filter contains must not depend on
 * the search path.
 */
static Oid
find_text_like_type(const char *name)
{
	CatCList   *list = SearchSysCacheList1(TYPENAMENSP,
										   CStringGetDatum(name));
	Oid			found = InvalidOid;
	int			i;

	for (i = 0; i < list->n_members; i++)
	{
		HeapTuple	tuple = &list->members[i]->tuple;
		Form_pg_type type = (Form_pg_type) GETSTRUCT(tuple);

		/* A domain of that name would be its base type. */
		if (type->typtype == TYPTYPE_BASE &&
			IsBinaryCoercible(type->oid, TEXTOID))
		{
			found = type->oid;
			break;
		}
	}
	ReleaseSysCacheList(list);
	return found;
}

/*
 * What a key without a type is taken for beside keys of this kind: the label
 * of an enum value, or a value of a type that is text to all but its own
 * operators, like citext.
 */
static PgBloomKeyType *
read_untyped(PgBloomKeyType *type, const BfKind *kind)
{
	Oid			found;

	if (type->reading != NULL)
	{
		if (bf_kind_equal(&type->reading->kind, kind))
			return type->reading;
		pfree(type->reading);
		type->reading = NULL;
	}

	if (kind->code == BF_KIND_ENUM)
	{
		type->reading = MemoryContextAllocZero(type->context, sizeof(*type));
		type->reading->kind = *kind;
		type->reading->hash = hash_text_key;
		return type->reading;
	}
	if (kind->code == BF_KIND_FOREIGN)
	{
		found = find_text_like_type(pgbloom_kind_name(kind));
		if (OidIsValid(found))
		{
			type->reading = make_key_type(found, get_typcollation(found),
										  type->context);
			if (bf_kind_equal(&type->reading->kind, kind))
				return type->reading;
		}
	}
	return NULL;
}

/*
 * Hash a key for a filter with these parameters.  *kind, unless it is NULL,
 * receives the kind that the filter has with this key in it; a key of another
 * kind than the filter's is an error.
 */
uint64
pgbloom_key_hash(PgBloomKeyType *type, Datum key, const BfParams *params,
				 BfKind *kind)
{
	if (params->kind.code != BF_KIND_NONE &&
		!bf_kind_equal(&type->kind, &params->kind))
	{
		PgBloomKeyType *reading = NULL;

		if (type->untyped)
			reading = read_untyped(type, &params->kind);
		if (reading == NULL)
			pgbloom_kind_mismatch(&params->kind, &type->kind);
		type = reading;
	}
	if (kind != NULL)
		*kind = type->kind;
	return type->hash != NULL ? type->hash(key, params->seed) :
		hash_foreign(type, key, params->seed);
}
