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
 * order of the machine, on the encoding of the database and, for types like
 * citext, on its locale, so these are recorded as part of the kind, and types
 * whose hashes do not even survive a dump are refused.
 *
 *-------------------------------------------------------------------------
 */
#include "bloom.h"

#include <math.h>
#include <sys/socket.h>

#include "access/htup_details.h"
#include "access/transam.h"
#include "access/tupdesc.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_database.h"
#include "catalog/pg_enum.h"
#include "catalog/pg_type.h"
#include "datatype/timestamp.h"
#include "lib/stringinfo.h"
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

StaticAssertDecl(PG_ENCODING_BE_LAST <= BF_MAX_ENCODING,
				 "a database can have an encoding that the format lacks");

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

/*
 * Text is hashed as UTF-8, so that it is found in a database of any encoding.
 * A database without an encoding has only bytes to offer.
 */
static bool
text_is_utf8(void)
{
	int			encoding = GetDatabaseEncoding();

	return encoding == PG_UTF8 || encoding == PG_SQL_ASCII;
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

static uint64
hash_string(const char *string, int length, uint64 seed)
{
	char	   *utf8;
	uint64		hash;

	if (text_is_utf8() || is_ascii(string, length))
		return bf_hash_bytes(string, length, seed);
	utf8 = pg_server_to_any(string, length, PG_UTF8);
	hash = bf_hash_bytes(utf8, strlen(utf8), seed);
	pfree(utf8);
	return hash;
}

/* The bytes of a bytea, or of text that is UTF-8; most lie in their row. */
static uint64
hash_bytea_key(Datum key, uint64 seed)
{
	struct varlena *value = (struct varlena *) DatumGetPointer(key);
	struct varlena *flat = value;
	uint64		hash;

	if (VARATT_IS_COMPRESSED(value) || VARATT_IS_EXTERNAL(value))
		flat = pg_detoast_datum_packed(value);
	hash = bf_hash_bytes(VARDATA_ANY(flat), VARSIZE_ANY_EXHDR(flat), seed);
	if (flat != value)
		pfree(flat);
	return hash;
}

/* Text in another encoding */
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
 * Whether deterministic collation makes equal strings equal bytes.  This and
 * the following checks raise an error if that is not so, or, with noerror,
 * return false.
 */
static bool
check_collation(Oid collation, bool noerror)
{
	if (OidIsValid(collation) && get_collation_isdeterministic(collation))
		return true;
	if (noerror)
		return false;
	if (!OidIsValid(collation))
		ereport(ERROR,
				(errcode(ERRCODE_INDETERMINATE_COLLATION),
				 errmsg("could not determine which collation to use for string hashing"),
				 errhint("Use the COLLATE clause to set the collation explicitly.")));
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("Bloom filters do not support nondeterministic collations"),
			 errdetail("Strings that are equal under collation \"%s\" may differ in their bytes.",
					   get_collation_name(collation)),
			 errhint("Apply a deterministic collation to the key, for example COLLATE \"C\".")));
	return false;
}

static bool
refuse_type(Oid type, Oid key_type, bool noerror)
{
	if (noerror)
		return false;
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("type %s cannot be the key of a Bloom filter",
					format_type_be(key_type)),
			 errdetail("Values of type %s hash by object identifiers, which do not survive dump and restore.",
					   format_type_be(type)),
			 errhint("Cast the key to text.")));
	return false;
}

static bool check_foreign(Oid type, Oid collation, Oid key_type,
						  bool *by_locale, bool noerror);

static bool
check_attributes(TupleDesc descriptor, Oid key_type, bool *by_locale,
				 bool noerror)
{
	int			i;

	for (i = 0; i < descriptor->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(descriptor, i);

		if (!attribute->attisdropped &&
			!check_foreign(attribute->atttypid, attribute->attcollation,
						   key_type, by_locale, noerror))
			return false;
	}
	return true;
}

/*
 * Refuse types whose hashes do not outlive the database, wherever they occur
 * inside the type of a key.  *by_locale is set where there is one that may
 * hash by the locale of the database: any type of strings that is not
 * PostgreSQL's.
 */
static bool
check_foreign(Oid type, Oid collation, Oid key_type, bool *by_locale,
			  bool noerror)
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
			return refuse_type(type, key_type, noerror);
	}

	/* Within a key, a record might be of any type. */
	if (type == RECORDOID || type == RECORDARRAYOID)
	{
		if (noerror)
			return false;
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("type %s cannot be the key of a Bloom filter",
						format_type_be(key_type)),
				 errdetail("It contains records of no particular type."),
				 errhint("Cast the records to a named composite type.")));
	}

	switch (get_typtype(type))
	{
		case TYPTYPE_ENUM:
			return refuse_type(type, key_type, noerror);
		case TYPTYPE_COMPOSITE:
			{
				TupleDesc	descriptor = lookup_rowtype_tupdesc(type, -1);
				bool		fine = check_attributes(descriptor, key_type,
													by_locale, noerror);

				ReleaseTupleDesc(descriptor);
				return fine;
			}
		case TYPTYPE_RANGE:
			return check_foreign(get_range_subtype(type),
								 get_range_collation(type), key_type,
								 by_locale, noerror);
		case TYPTYPE_MULTIRANGE:
			return check_foreign(get_multirange_range(type), InvalidOid,
								 key_type, by_locale, noerror);
		default:
			part = get_element_type(type);
			if (OidIsValid(part))
				return check_foreign(part, collation, key_type, by_locale,
									 noerror);
			if (!type_is_collatable(type))
				return true;
			if (type >= FirstNormalObjectId)
				*by_locale = true;
			return check_collation(collation, noerror);
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

static bool
set_kind_name(BfKind *kind, const char *name, bool noerror)
{
	char	   *utf8 = pg_server_to_any(name, strlen(name), PG_UTF8);
	size_t		length = strlen(utf8);

	if (noerror &&
		(length > BF_MAX_KIND_NAME || !bf_valid_kind_name(utf8, length)))
		return false;
	if (length > BF_MAX_KIND_NAME)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("keys of type \"%s\" cannot be recorded in a Bloom filter",
						name),
				 errdetail("The name of the type, with the locale by which it hashes, takes %zu bytes, the maximum is %d.",
						   length, BF_MAX_KIND_NAME),
				 errhint("Cast the key to text.")));
	if (!bf_valid_kind_name(utf8, length))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("keys of type \"%s\" cannot be recorded in a Bloom filter",
						name),
				 errdetail("The name of the type contains control characters."),
				 errhint("Rename the type, or cast the key to text.")));
	memcpy(kind->name, utf8, length + 1);
	kind->namelen = (uint8_t) length;
	return true;
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

/*
 * The name of a locale of libc, with the one spelling of its codeset that
 * glibc lists: C.utf8 and C.UTF-8 are the same.
 */
static char *
normalize_locale(const char *name)
{
	char	   *result = pstrdup(strcmp(name, "POSIX") == 0 ? "C" : name);
	char	   *to = result;
	const char *from;
	bool		codeset = false;

	for (from = result; *from != '\0'; from++)
	{
		if (*from == '.' || *from == '@')
			codeset = *from == '.';
		else if (codeset && (*from == '-' || *from == '_'))
			continue;
		*to++ = codeset ? pg_ascii_tolower((unsigned char) *from) : *from;
	}
	*to = '\0';
	return result;
}

/* What decides in this database which letters are the same but for case. */
static char *
database_locale(void)
{
	HeapTuple	tuple = SearchSysCache1(DATABASEOID,
										ObjectIdGetDatum(MyDatabaseId));
	char		provider;
	Datum		locale;
	bool		isnull;
	char	   *name;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for database %u", MyDatabaseId);
	provider = DatabaseLocaleProvider((Form_pg_database) GETSTRUCT(tuple));
	locale = SysCacheGetAttr(DATABASEOID, tuple,
							 provider == COLLPROVIDER_LIBC ?
							 Anum_pg_database_datctype :
							 Anum_pg_database_datlocale, &isnull);
	if (isnull)
		elog(ERROR, "database %u has no locale", MyDatabaseId);
	if (provider == COLLPROVIDER_LIBC)
		name = normalize_locale(DatumGetDatctype(locale));
	else
		name = psprintf("%s:%s",
						provider == COLLPROVIDER_ICU ? "icu" : "builtin",
						TextDatumGetCString(locale));
	ReleaseSysCache(tuple);
	return name;
}

/*
 * The name of a foreign kind: "type@locale", or "type" alone, with "[]" after
 * the type if it is an array.  Each @ and [ of the type's own is doubled, so
 * that no two types get one name.
 */
static bool
set_foreign_name(BfKind *kind, Oid type, bool by_locale, bool noerror)
{
	Oid			element = get_element_type(type);
	char	   *bare = type_name(OidIsValid(element) ? getBaseType(element) :
								 type);
	StringInfoData name;

	initStringInfo(&name);
	for (; *bare != '\0'; bare++)
	{
		if (*bare == '@' || *bare == '[')
			appendStringInfoChar(&name, *bare);
		appendStringInfoChar(&name, *bare);
	}
	if (OidIsValid(element))
		appendStringInfoString(&name, "[]");
	if (by_locale)
		appendStringInfo(&name, "@%s", database_locale());
	return set_kind_name(kind, name.data, noerror);
}

/* Hash keys of any other type by the function of its operator class. */
static bool
set_foreign(PgBloomKeyType *key_type, Oid type, bool noerror)
{
	TypeCacheEntry *entry;
	BfKind	   *kind = &key_type->kind;
	bool		by_locale = false;

	entry = lookup_type_cache(type, TYPECACHE_HASH_EXTENDED_PROC);
	if (!OidIsValid(entry->hash_extended_proc))
	{
		if (noerror)
			return false;
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("type %s cannot be the key of a Bloom filter",
						format_type_be(type)),
				 errdetail("It has no default hash operator class with an extended hash function."),
				 errhint("Cast the key to a type that has one, for example text.")));
	}
	if (!check_foreign(type, key_type->collation, type, &by_locale, noerror))
		return false;
	fmgr_info_cxt(entry->hash_extended_proc, &key_type->extended_hash,
				  key_type->context);

	kind->code = BF_KIND_FOREIGN;
#ifdef WORDS_BIGENDIAN
	kind->byte_order = BF_BIG_ENDIAN;
#else
	kind->byte_order = BF_LITTLE_ENDIAN;
#endif
	kind->encoding = (uint8_t) GetDatabaseEncoding();
	return set_foreign_name(kind, type, by_locale, noerror);
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

/*
 * Whether this is the type with our input function.  The extension's types
 * have no fixed OIDs, may be in any schema and have namesakes in others; what
 * makes them ours is that this library made their values.
 */
bool
pgbloom_type_is(Oid type, PGFunction input)
{
	Oid			typinput;
	Oid			ioparam;
	FmgrInfo	function;

	if (type < FirstNormalObjectId || get_typtype(type) != TYPTYPE_BASE)
		return false;
	getTypeInputInfo(type, &typinput, &ioparam);
	fmgr_info(typinput, &function);
	return function.fn_addr == input;
}

static PgBloomHashFunction
text_hash(void)
{
	return text_is_utf8() ? hash_bytea_key : hash_text_key;
}

static PgBloomKeyType *
make_key_type(Oid type, Oid collation, MemoryContext context, bool noerror)
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
			if (key_type->hash == hash_text_key)
				key_type->hash = text_hash();
			if (type_is_collatable(base) &&
				!check_collation(collation, noerror))
				return NULL;
			return key_type;
		}
	}

	if (pgbloom_type_is(base, bloom_key_in))
	{
		key_type->kind.code = BF_KIND_TEXT;
		key_type->hash = text_hash();
		key_type->untyped = true;
	}
	else if (get_typtype(base) == TYPTYPE_ENUM)
	{
		key_type->kind.code = BF_KIND_ENUM;
		key_type->hash = hash_enum_key;
		if (!set_kind_name(&key_type->kind, type_name(base), noerror))
			return NULL;
	}
	else if (!set_foreign(key_type, base, noerror))
		return NULL;
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
								   fcinfo->flinfo->fn_mcxt, false);
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
 * The type of keys of this SQL type, for a filter with keys of this kind, or
 * NULL if they are no keys of such a filter.
 */
PgBloomKeyType *
pgbloom_find_key_type(Oid type, Oid collation, const BfKind *kind)
{
	PgBloomKeyType *key_type = make_key_type(type, collation,
											 CurrentMemoryContext, true);

	if (key_type == NULL ||
		(kind->code != BF_KIND_NONE && !bf_kind_equal(&key_type->kind, kind)))
		return NULL;
	return key_type;
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
 * operators, like citext.  Otherwise it remains text.
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
		type->reading->hash = text_hash();
	}
	else if (kind->code == BF_KIND_FOREIGN)
	{
		found = find_text_like_type(pgbloom_kind_name(kind));
		if (OidIsValid(found))
			type->reading = make_key_type(found, get_typcollation(found),
										  type->context, false);
	}
	return type->reading != NULL ? type->reading : type;
}

/* Most kinds have no name, of which the room need not be copied. */
static inline void
copy_kind(BfKind *to, const BfKind *from)
{
	if (from->namelen == 0)
		memcpy(to, from, offsetof(BfKind, name) + 1);
	else
		*to = *from;
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
		if (type->untyped)
			type = read_untyped(type, &params->kind);
		if (!bf_kind_equal(&type->kind, &params->kind))
			pgbloom_kind_mismatch(&params->kind, &type->kind);
	}
	if (kind != NULL)
		copy_kind(kind, &type->kind);
	return type->hash != NULL ? type->hash(key, params->seed) :
		hash_foreign(type, key, params->seed);
}
