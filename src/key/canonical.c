/*-------------------------------------------------------------------------
 *
 * canonical.c
 *	  Hashes of keys of the common types, by canonical bytes.
 *
 * Equal keys have the same canonical bytes, whatever their SQL type within the
 * key type, their storage, the byte order of the machine and the encoding of
 * the database.  The bytes are part of the format (doc/FORMAT.md, section 4).
 * A number of up to 64 bits is hashed as one, two numbers by hash_two_words(),
 * and anything else as its bytes, never as the struct in memory.
 *
 *-------------------------------------------------------------------------
 */
#include "key/key.h"

#include <math.h>
#include <sys/socket.h>

#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_enum.h"
#include "catalog/pg_type.h"
#include "core/bytes.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/inet.h"
#include "utils/numeric.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

static bool
is_ascii(const char *string, size_t length)
{
	size_t		i;

	for (i = 0; i < length; i++)
	{
		if (IS_HIGHBIT_SET(string[i]))
			return false;
	}
	return true;
}

/*
 * Convert a string between encodings.  Returns NULL if the string is invalid,
 * if a character has no equivalent, or if there is no conversion.  The result
 * is null-terminated.
 */
char *
pgbloom_convert(const char *string, size_t length, int from, int to)
{
	Oid			function;
	char	   *result;
	size_t		room = length * MAX_CONVERSION_GROWTH + 1;

	/* ASCII is the same in all encodings of databases. */
	if (is_ascii(string, length))
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
 * Text is hashed as UTF-8, so that it is found in a database of any encoding.
 * In a SQL_ASCII database, the encoding of text is not known, and its bytes
 * are hashed as they are.
 */
bool
pgbloom_text_is_utf8(void)
{
	int			encoding = GetDatabaseEncoding();

	return encoding == PG_UTF8 || encoding == PG_SQL_ASCII;
}

/* The most bytes of a key that an error shows. */
#define MAX_SHOWN		64

/*
 * Raise the error for text that has no equivalent in UTF-8, or that is in an
 * encoding without a conversion.  The message has other bytes than ASCII in
 * hexadecimal, so that any client can receive it.
 */
static void
reject_string(const char *string, int length)
{
	StringInfoData shown;
	int			i;

	if (!OidIsValid(FindDefaultConversionProc(GetDatabaseEncoding(), PG_UTF8)))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("Bloom filters do not support text in encoding \"%s\"",
						GetDatabaseEncodingName()),
				 errdetail("Text is hashed in UTF8, to which it cannot be converted."),
				 errhint("Use convert_to(key, '%s'), which is of type bytea.",
						 GetDatabaseEncodingName())));
	initStringInfo(&shown);
	for (i = 0; i < length && i < MAX_SHOWN; i++)
		appendStringInfo(&shown, IS_HIGHBIT_SET(string[i]) ? "\\x%02x" : "%c",
						 (unsigned char) string[i]);
	ereport(ERROR,
			(errcode(ERRCODE_UNTRANSLATABLE_CHARACTER),
			 errmsg("key \"%s%s\" of a Bloom filter has no equivalent in encoding \"UTF8\"",
					shown.data, i < length ? "..." : ""),
			 errdetail("Text is hashed in UTF8. The encoding of the database is \"%s\".",
					   GetDatabaseEncodingName()),
			 errhint("Use convert_to(key, '%s'), which is of type bytea.",
					 GetDatabaseEncodingName())));
}

/*
 * Trailing spaces do not count in char(n), nor where it is compared with
 * varchar.  The key type is the same for all text, so they count in none.
 */
static uint64
hash_string(const char *string, int length, uint64 seed)
{
	char	   *utf8;
	uint64		hash;

	length = bpchartruelen(unconstify(char *, string), length);
	if (pgbloom_text_is_utf8() || is_ascii(string, length))
		return bf_hash_bytes(string, length, seed);
	utf8 = pgbloom_convert(string, length, GetDatabaseEncoding(), PG_UTF8);
	if (utf8 == NULL)
		reject_string(string, length);
	hash = bf_hash_bytes(utf8, strlen(utf8), seed);
	pfree(utf8);
	return hash;
}

/* Most values are inline. */
static inline struct varlena *
flat_value(Datum key)
{
	struct varlena *value = (struct varlena *) DatumGetPointer(key);

	if (VARATT_IS_COMPRESSED(value) || VARATT_IS_EXTERNAL(value))
		return pg_detoast_datum_packed(value);
	return value;
}

/* Of bytea. */
uint64
pgbloom_hash_bytes(Datum key, uint64 seed)
{
	struct varlena *bytes = flat_value(key);
	uint64		hash = bf_hash_bytes(VARDATA_ANY(bytes),
									 VARSIZE_ANY_EXHDR(bytes), seed);

	if ((Pointer) bytes != DatumGetPointer(key))
		pfree(bytes);
	return hash;
}

/* Also of char(n). */
uint64
pgbloom_hash_text(Datum key, uint64 seed)
{
	struct varlena *string = flat_value(key);
	uint64		hash = hash_string(VARDATA_ANY(string),
								   VARSIZE_ANY_EXHDR(string), seed);

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

/* Also for types that are a 64-bit count, such as timestamp. */
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

/* 1.0 and 1.00 are equal, so hash the shortest decimal text. */
uint64
pgbloom_hash_numeric(Datum key, uint64 seed)
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

	bf_store64(bytes, first);
	bf_store64(bytes + 8, second);
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
uint64
pgbloom_hash_enum(Datum key, uint64 seed)
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

/* The last type of each key type can represent the values of all of them. */
typedef struct CanonicalType
{
	Oid			type;
	BfKeyTypeCode key_type;
	PgBloomHashFunction hash;
} CanonicalType;

static const CanonicalType canonical_types[] =
{
	{NAMEOID, BF_KEY_TEXT, hash_name_key},
	{BPCHAROID, BF_KEY_TEXT, pgbloom_hash_text},
	{VARCHAROID, BF_KEY_TEXT, pgbloom_hash_text},
	{TEXTOID, BF_KEY_TEXT, pgbloom_hash_text},
	{BYTEAOID, BF_KEY_BYTEA, pgbloom_hash_bytes},
	{INT2OID, BF_KEY_INTEGER, hash_int2_key},
	{INT4OID, BF_KEY_INTEGER, hash_int4_key},
	{INT8OID, BF_KEY_INTEGER, hash_int8_key},
	{FLOAT4OID, BF_KEY_FLOAT, hash_float4_key},
	{FLOAT8OID, BF_KEY_FLOAT, hash_float8_key},
	{NUMERICOID, BF_KEY_NUMERIC, pgbloom_hash_numeric},
	{BOOLOID, BF_KEY_BOOLEAN, hash_byte_key},
	{CHAROID, BF_KEY_CHAR, hash_byte_key},
	{OIDOID, BF_KEY_OID, hash_oid_key},
	{UUIDOID, BF_KEY_UUID, hash_uuid_key},
	{DATEOID, BF_KEY_DATE, hash_int4_key},
	{TIMEOID, BF_KEY_TIME, hash_int8_key},
	{TIMETZOID, BF_KEY_TIMETZ, hash_timetz_key},
	{TIMESTAMPOID, BF_KEY_TIMESTAMP, hash_int8_key},
	{TIMESTAMPTZOID, BF_KEY_TIMESTAMPTZ, hash_int8_key},
	{INTERVALOID, BF_KEY_INTERVAL, hash_interval_key},
	{CIDROID, BF_KEY_INET, hash_inet_key},
	{INETOID, BF_KEY_INET, hash_inet_key},
	{MACADDROID, BF_KEY_MACADDR, hash_macaddr_key},
	{MACADDR8OID, BF_KEY_MACADDR8, hash_macaddr8_key},
	{PG_LSNOID, BF_KEY_PG_LSN, hash_int8_key},
	{XID8OID, BF_KEY_XID8, hash_int8_key},
};

/*
 * The SQL type as which untyped keys are read for a key type: the last one of
 * canonical_types.  InvalidOid for a key type that has a name.
 */
Oid
pgbloom_widest_type(const BfKeyType *key_type)
{
	int			i;

	for (i = (int) lengthof(canonical_types) - 1; i >= 0; i--)
	{
		if (canonical_types[i].key_type == key_type->code)
			return canonical_types[i].type;
	}
	return InvalidOid;
}

/*
 * The hash function of a type that has canonical bytes.  Sets *key_type.
 * Returns NULL for any other type.
 */
PgBloomHashFunction
pgbloom_canonical_hash(Oid type, BfKeyType *key_type)
{
	int			i;

	for (i = 0; i < (int) lengthof(canonical_types); i++)
	{
		if (canonical_types[i].type == type)
		{
			key_type->code = canonical_types[i].key_type;
			return canonical_types[i].hash;
		}
	}
	return NULL;
}
