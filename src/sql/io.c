/*-------------------------------------------------------------------------
 *
 * io.c
 *	  Text, binary and bytea forms of the type bloom.
 *
 * Text is the image of doc/FORMAT.md in base64; binary and bytea are the
 * image itself.  Text may also be read from the hexadecimal form of bytea.  All
 * input goes through the validator of the core.
 *
 *-------------------------------------------------------------------------
 */
#include "filter/filter.h"

#include "common/base64.h"
#include "libpq/pqformat.h"
#include "miscadmin.h"

PG_FUNCTION_INFO_V1(bloom_in);
PG_FUNCTION_INFO_V1(bloom_out);
PG_FUNCTION_INFO_V1(bloom_recv);
PG_FUNCTION_INFO_V1(bloom_from_bytea);
PG_FUNCTION_INFO_V1(bloom_to_bytea);

/* The first bytes of every image. */
#define MAGIC			"BLMF"

/* As in the text of bytea; no base64 begins like this. */
#define HEX_PREFIX		"\\x"

#define WHITE_SPACE		" \t\n\r"

/* Characters between two checks for interrupts: well below a millisecond */
#define CHUNK			65536
#define CHUNK_BYTES		(CHUNK / 4 * 3)

/*
 * Hint for text that is not a filter.  It is probably a key: an untyped
 * literal in place of a filter is parsed as a filter.
 */
#define ARGUMENT_ORDER \
	"A filter comes before its keys, as in bloom_contains(filter, key); bloom_add(filter, key) adds a key."

/* Copy text without white space, which decode() also allows anywhere. */
static char *
remove_white_space(const char *text, int *length)
{
	char	   *result = MemoryContextAllocHuge(CurrentMemoryContext,
												(Size) *length + 1);
	int			n = 0;
	int			i;

	for (i = 0; i < *length; i++)
	{
		if (i % CHUNK == 0)
			CHECK_FOR_INTERRUPTS();
		if (text[i] != ' ' && text[i] != '\t' && text[i] != '\n' &&
			text[i] != '\r')
			result[n++] = text[i];
	}
	result[n] = '\0';
	*length = n;
	return result;
}

/* Decode base64.  Returns the number of bytes, or -1 if it is not base64. */
static int
decode_base64(const char *text, int length, char *bytes, int room)
{
	int			size = 0;
	int			done;

	for (done = 0; done < length; done += CHUNK)
	{
		int			nchars = Min(length - done, CHUNK);
		int			nbytes;

		CHECK_FOR_INTERRUPTS();
		nbytes = pg_b64_decode(text + done, nchars, (void *) (bytes + size),
							   room - size);

		/* Only the end may be padded. */
		if (nbytes < 0 || (nbytes < CHUNK_BYTES && done + nchars < length))
			return -1;
		size += nbytes;
	}
	return size;
}

static int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = pg_ascii_tolower((unsigned char) c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decode hexadecimal digits.  Returns the number of bytes, or -1. */
static int
decode_hex(const char *text, int length, char *bytes)
{
	int			i;

	if (length % 2 != 0)
		return -1;
	for (i = 0; i < length; i += 2)
	{
		int			high = hex_digit(text[i]);
		int			low = hex_digit(text[i + 1]);

		if (i % CHUNK == 0)
			CHECK_FOR_INTERRUPTS();
		if (high < 0 || low < 0)
			return -1;
		bytes[i / 2] = (char) (high << 4 | low);
	}
	return length / 2;
}

Datum
bloom_in(PG_FUNCTION_ARGS)
{
	char	   *text = PG_GETARG_CSTRING(0);
	int			length = (int) strlen(text);
	int			room;
	int			size;
	Bloom	   *result;

	if (strpbrk(text, WHITE_SPACE) != NULL)
		text = remove_white_space(text, &length);

	/* pg_b64_dec_len would overflow on the text of the largest filter. */
	room = length / 4 * 3 + 3;
	result = palloc((Size) VARHDRSZ + room);
	size = strncmp(text, HEX_PREFIX, strlen(HEX_PREFIX)) == 0 ?
		decode_hex(text + strlen(HEX_PREFIX),
				   length - (int) strlen(HEX_PREFIX), VARDATA(result)) :
		decode_base64(text, length, VARDATA(result), room);
	if (size < 0)
		ereturn(fcinfo->context, (Datum) 0,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("invalid input syntax for type %s", "bloom"),
				 errdetail("A Bloom filter is written in base64, or in hexadecimal digits after \"%s\".",
						   HEX_PREFIX),
				 errhint(ARGUMENT_ORDER)));
	if (size < (int) strlen(MAGIC) ||
		memcmp(VARDATA(result), MAGIC, strlen(MAGIC)) != 0)
		ereturn(fcinfo->context, (Datum) 0,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("invalid Bloom filter"),
				 errdetail("It is not a Bloom filter."),
				 errhint(ARGUMENT_ORDER)));
	SET_VARSIZE(result, VARHDRSZ + size);
	if (!pgbloom_validate((uint8_t *) VARDATA(result), size,
						  ERRCODE_INVALID_TEXT_REPRESENTATION,
						  fcinfo->context))
		PG_RETURN_NULL();
	PG_RETURN_BLOOM_P(result);
}

Datum
bloom_out(PG_FUNCTION_ARGS)
{
	Bloom	   *filter = PG_GETARG_BLOOM_PP(0);
	const char *bytes = VARDATA_ANY(filter);
	int			size = (int) VARSIZE_ANY_EXHDR(filter);
	int			room = (size + 2) / 3 * 4;	/* pg_b64_enc_len would overflow */
	char	   *text = palloc((Size) room + 1);
	int			length = 0;
	int			done;

	for (done = 0; done < size; done += CHUNK_BYTES)
	{
		int			nchars;

		CHECK_FOR_INTERRUPTS();
		nchars = pg_b64_encode((const void *) (bytes + done),
							   Min(size - done, CHUNK_BYTES), text + length,
							   room - length);
		if (nchars < 0)
			elog(ERROR, "could not encode a Bloom filter of %d bytes", size);
		length += nchars;
	}
	text[length] = '\0';
	PG_RETURN_CSTRING(text);
}

/* Validate an image from outside and copy it into a new value. */
static Bloom *
accept_image(const char *image, size_t size)
{
	Bloom	   *result;

	pgbloom_validate((const uint8_t *) image, size,
					 ERRCODE_INVALID_BINARY_REPRESENTATION, NULL);
	result = palloc(VARHDRSZ + size);
	SET_VARSIZE(result, VARHDRSZ + size);
	memcpy(VARDATA(result), image, size);
	return result;
}

Datum
bloom_recv(PG_FUNCTION_ARGS)
{
	StringInfo	buf = (StringInfo) PG_GETARG_POINTER(0);
	int			size = buf->len - buf->cursor;

	PG_RETURN_BLOOM_P(accept_image(pq_getmsgbytes(buf, size), size));
}

Datum
bloom_from_bytea(PG_FUNCTION_ARGS)
{
	bytea	   *bytes = PG_GETARG_BYTEA_PP(0);

	PG_RETURN_BLOOM_P(accept_image(VARDATA_ANY(bytes),
								   VARSIZE_ANY_EXHDR(bytes)));
}

/* The data of both types is the image, so the value is returned as it is. */
Datum
bloom_to_bytea(PG_FUNCTION_ARGS)
{
	PG_RETURN_DATUM(PG_GETARG_DATUM(0));
}
