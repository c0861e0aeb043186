/*-------------------------------------------------------------------------
 *
 * encoding.c
 *	  Conversions between encodings that do not raise errors.
 *
 *-------------------------------------------------------------------------
 */
#include "key/key.h"

#include "catalog/namespace.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"

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
 * Convert UTF-8 to the encoding of the database.  Characters that the encoding
 * lacks are escaped, as \u00E9 or \U0001F600.  Never fails.
 */
char *
pgbloom_utf8_to_server(const char *utf8)
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
