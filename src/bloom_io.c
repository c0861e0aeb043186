/*-------------------------------------------------------------------------
 *
 * bloom_io.c
 *	  Text, binary and bytea forms of the type bloom.
 *
 * All three carry the image of doc/FORMAT.md: as base64, as it is, and as it
 * is.  Whatever comes in goes through the one validator of the core.
 *
 *-------------------------------------------------------------------------
 */
#include "bloom.h"

#include "common/base64.h"
#include "libpq/pqformat.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(bloom_in);
PG_FUNCTION_INFO_V1(bloom_out);
PG_FUNCTION_INFO_V1(bloom_recv);
PG_FUNCTION_INFO_V1(bloom_send);
PG_FUNCTION_INFO_V1(bloom_from_bytea);
PG_FUNCTION_INFO_V1(bloom_to_bytea);

Datum
bloom_in(PG_FUNCTION_ARGS)
{
	char	   *text = PG_GETARG_CSTRING(0);
	int			length = (int) strlen(text);
	int			room;
	int			size;
	struct varlena *result;

	/* pg_b64_dec_len would overflow on the text of the largest filter. */
	room = length / 4 * 3 + 3;
	result = palloc((Size) VARHDRSZ + room);
	size = pg_b64_decode((const void *) text, length,
						 (void *) VARDATA(result), room);
	if (size < 0)
		ereturn(fcinfo->context, (Datum) 0,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("invalid input syntax for type %s", "bloom"),
				 errdetail("A Bloom filter is written in base64.")));
	SET_VARSIZE(result, VARHDRSZ + size);
	if (!pgbloom_validate((uint8_t *) VARDATA(result), size,
						  ERRCODE_INVALID_TEXT_REPRESENTATION,
						  fcinfo->context))
		PG_RETURN_NULL();
	PG_RETURN_POINTER(result);
}

Datum
bloom_out(PG_FUNCTION_ARGS)
{
	struct varlena *filter = PG_GETARG_VARLENA_PP(0);
	int			size = (int) VARSIZE_ANY_EXHDR(filter);
	int			room = pg_b64_enc_len(size);
	char	   *text = palloc((Size) room + 1);
	int			length;

	length = pg_b64_encode((const void *) VARDATA_ANY(filter), size,
						   (void *) text, room);
	if (length < 0)
		elog(ERROR, "could not encode a Bloom filter of %d bytes", size);
	text[length] = '\0';
	PG_RETURN_CSTRING(text);
}

/* Copy an image that comes from outside into a value, if it is valid. */
static struct varlena *
accept_image(const char *image, size_t size)
{
	struct varlena *result;

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

	PG_RETURN_POINTER(accept_image(pq_getmsgbytes(buf, size), size));
}

Datum
bloom_send(PG_FUNCTION_ARGS)
{
	struct varlena *filter = PG_GETARG_VARLENA_PP(0);
	StringInfoData buf;

	pq_begintypsend(&buf);
	pq_sendbytes(&buf, VARDATA_ANY(filter), VARSIZE_ANY_EXHDR(filter));
	PG_RETURN_BYTEA_P(pq_endtypsend(&buf));
}

Datum
bloom_from_bytea(PG_FUNCTION_ARGS)
{
	bytea	   *bytes = PG_GETARG_BYTEA_PP(0);

	PG_RETURN_POINTER(accept_image(VARDATA_ANY(bytes),
								   VARSIZE_ANY_EXHDR(bytes)));
}

/* The image is the content of both types. */
Datum
bloom_to_bytea(PG_FUNCTION_ARGS)
{
	PG_RETURN_DATUM(PG_GETARG_DATUM(0));
}
