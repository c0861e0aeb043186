/*-------------------------------------------------------------------------
 *
 * composed.c
 *	  Hashes of opclass-hashed keys: of values that consist of others, which
 *	  are arrays and jsonb, and of those that only their operator class can
 *	  hash.
 *
 * Each such value has a number, of which the hash is made.  That of an array or
 * of jsonb is the hash of a list of the hashes of its parts, and belongs to the
 * format (doc/FORMAT.md, section 4).  PostgreSQL's functions for them are not
 * used: they combine parts by 31 * a + b, or by a rotation of 32 bits, so that
 * values can have equal hashes under all seeds.
 *
 *-------------------------------------------------------------------------
 */
#include "key/key.h"

#include "catalog/pg_type.h"
#include "core/bytes.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"

/* Numbers that are hashed at once: part of the format, never change it. */
#define LIST_ROOM		16

/*
 * A list of numbers, as little-endian bytes.  The first of them is the hash of
 * all that were before, so that the list takes no memory for large values.
 */
typedef struct NumberList
{
	uint8		bytes[8 * LIST_ROOM];
	int			n;
	uint64		seed;
} NumberList;

static inline void
start_list(NumberList *list, uint64 seed)
{
	bf_store64(list->bytes, 1);
	list->n = 1;
	list->seed = seed;
}

static inline uint64
hash_list(const NumberList *list)
{
	return bf_hash_bytes(list->bytes, 8 * list->n, list->seed);
}

static inline void
append_number(NumberList *list, uint64 number)
{
	if (list->n == LIST_ROOM)
	{
		bf_store64(list->bytes, hash_list(list));
		list->n = 1;
	}
	bf_store64(list->bytes + 8 * list->n++, number);
}

/*
 * Strings in arrays are hashed as they are stored, so that those without an
 * equivalent in UTF-8 can be keys: the key type records the encoding.
 */
static uint64
hash_bpchar_part(Datum value, uint64 seed)
{
	BpChar	   *string = DatumGetBpCharPP(value);
	uint64		hash = bf_hash_bytes(VARDATA_ANY(string),
									 bpchartruelen(VARDATA_ANY(string),
												   VARSIZE_ANY_EXHDR(string)),
									 seed);

	if ((Pointer) string != DatumGetPointer(value))
		pfree(string);
	return hash;
}

static uint64
hash_name_part(Datum value, uint64 seed)
{
	const char *string = NameStr(*DatumGetName(value));

	return bf_hash_bytes(string, strlen(string), seed);
}

/* Append null, a boolean, a number or a string. */
static void
append_scalar(NumberList *list, const JsonbValue *scalar)
{
	switch (scalar->type)
	{
		case jbvNull:
			append_number(list, 'n');
			break;
		case jbvBool:
			append_number(list, scalar->val.boolean ? 't' : 'f');
			break;
		case jbvNumeric:
			append_number(list, '#');
			append_number(list,
						  pgbloom_hash_numeric(NumericGetDatum(scalar->val.numeric),
											   list->seed));
			break;
		case jbvString:
			append_number(list, '"');
			append_number(list, bf_hash_bytes(scalar->val.string.val,
											  scalar->val.string.len, list->seed));
			break;
		default:
			elog(ERROR, "unexpected type of jsonb value: %d",
				 (int) scalar->type);
	}
}

/*
 * The list of a jsonb value has the characters of its structure and the hashes
 * of its strings and numbers, in the order of the text.  Numbers are hashed as
 * keys of type numeric, since 1 and 1.0 are equal in jsonb, too.
 */
static uint64
hash_jsonb(Datum value, uint64 seed)
{
	Jsonb	   *jsonb = DatumGetJsonbP(value);
	bool		is_scalar = JB_ROOT_IS_SCALAR(jsonb);
	JsonbIterator *iterator = JsonbIteratorInit(&jsonb->root);
	JsonbValue	part;
	JsonbIteratorToken token;
	NumberList	list;

	start_list(&list, seed);
	while ((token = JsonbIteratorNext(&iterator, &part, false)) != WJB_DONE)
	{
		CHECK_FOR_INTERRUPTS();
		switch (token)
		{
				/* A scalar is stored as an array that it is not. */
			case WJB_BEGIN_ARRAY:
				if (!is_scalar)
					append_number(&list, '[');
				break;
			case WJB_END_ARRAY:
				if (!is_scalar)
					append_number(&list, ']');
				break;
			case WJB_BEGIN_OBJECT:
				append_number(&list, '{');
				break;
			case WJB_END_OBJECT:
				append_number(&list, '}');
				break;
			default:
				append_scalar(&list, &part);
				break;
		}
	}
	if ((Pointer) jsonb != DatumGetPointer(value))
		pfree(jsonb);
	return hash_list(&list);
}

/*
 * The function that gives the number of a value, of jsonb or of a type of
 * elements that are hashed by their bytes.  NULL for any other type.
 */
PgBloomHashFunction
pgbloom_number_hash(Oid type)
{
	BfKeyType	key_type;

	switch (type)
	{
		case JSONBOID:
			return hash_jsonb;
		case TEXTOID:
		case VARCHAROID:
			return pgbloom_hash_bytes;
		case BPCHAROID:
			return hash_bpchar_part;
		case NAMEOID:
			return hash_name_part;
		default:
			return pgbloom_canonical_hash(type, &key_type);
	}
}

/* Free how to find a number; NULL does nothing. */
void
pgbloom_free_number(PgBloomNumber *number)
{
	while (number != NULL)
	{
		PgBloomNumber *element = number->element;

		pfree(number);
		number = element;
	}
}

static uint64 find_number(PgBloomNumber *number, Oid collation, Datum value,
						  uint64 seed);

/* The list of an array has the numbers of its elements, 0 for NULL. */
static uint64
hash_elements(PgBloomNumber *element, Oid collation, Datum value, uint64 seed)
{
	ArrayType  *array = DatumGetArrayTypeP(value);
	ArrayIterator elements = array_create_iterator(array, 0, NULL);
	NumberList	list;
	Datum		part;
	bool		isnull;

	/* An element may be of a domain over arrays. */
	check_stack_depth();
	start_list(&list, seed);
	while (array_iterate(elements, &part, &isnull))
	{
		CHECK_FOR_INTERRUPTS();
		append_number(&list, isnull ? 0 :
					  find_number(element, collation, part, seed));
	}
	array_free_iterator(elements);
	if ((Pointer) array != DatumGetPointer(value))
		pfree(array);
	return hash_list(&list);
}

static uint64
find_number(PgBloomNumber *number, Oid collation, Datum value, uint64 seed)
{
	if (number->hash != NULL)
		return number->hash(value, seed);
	if (number->element != NULL)
		return hash_elements(number->element, collation, value, seed);
	return DatumGetUInt64(FunctionCall2Coll(&number->extended_hash, collation,
											value, UInt64GetDatum(seed)));
}

/*
 * Hash a value of an opclass-hashed type.  The seed goes into both steps: into
 * the number of the value and into the hash of that.
 */
uint64
pgbloom_opclass_hash(const PgBloomKeyInfo *info, Datum value, uint64 seed)
{
	return bf_hash_u64(find_number(info->number, info->collation, value, seed),
					   seed);
}
