/*-------------------------------------------------------------------------
 *
 * key_type.c
 *	  Types of keys: their names, and which of them are equal or valid.
 *
 * Section 4 of doc/FORMAT.md specifies them.  What is a key type in terms of
 * PostgreSQL's types is known to the callers of the core only.
 *
 *-------------------------------------------------------------------------
 */
#include "internal.h"

/*
 * Names of the key types that do not carry one, for messages.  They are part
 * of no image.
 */
static const char *const names[] = {
	[BF_KEY_TEXT] = "text",
	[BF_KEY_BYTEA] = "bytea",
	[BF_KEY_INTEGER] = "integer",
	[BF_KEY_FLOAT] = "float",
	[BF_KEY_NUMERIC] = "numeric",
	[BF_KEY_BOOLEAN] = "boolean",
	[BF_KEY_CHAR] = "\"char\"",
	[BF_KEY_OID] = "oid",
	[BF_KEY_UUID] = "uuid",
	[BF_KEY_DATE] = "date",
	[BF_KEY_TIME] = "time",
	[BF_KEY_TIMETZ] = "timetz",
	[BF_KEY_TIMESTAMP] = "timestamp",
	[BF_KEY_TIMESTAMPTZ] = "timestamptz",
	[BF_KEY_INTERVAL] = "interval",
	[BF_KEY_INET] = "inet",
	[BF_KEY_MACADDR] = "macaddr",
	[BF_KEY_MACADDR8] = "macaddr8",
	[BF_KEY_PG_LSN] = "pg_lsn",
	[BF_KEY_XID8] = "xid8"
};

#define NNAMES	(sizeof(names) / sizeof(names[0]))

/*
 * The name of a valid key type for messages, in UTF-8; NULL for BF_KEY_NONE.
 * It is valid as long as *key_type is.
 */
const char *
bf_key_type_name(const BfKeyType *key_type)
{
	if (key_type->code == BF_KEY_NONE)
		return NULL;
	return key_type->code < NNAMES ? names[key_type->code] : key_type->name;
}

/*
 * Why an image must not have a key type of this code, length of name, byte order
 * and encoding, or NULL.
 */
const char *
bf_key_type_reason(const BfKeyType *key_type)
{
	bool		by_opclass = key_type->code == BF_KEY_OPCLASS;
	bool		named = by_opclass || key_type->code == BF_KEY_ENUM;

	if (!named && key_type->code >= NNAMES)
		return "The type of its keys is unknown.";
	if ((key_type->namelen > 0) != named)
		return "The name of its key type has a wrong length.";
	if (by_opclass ? key_type->byte_order != BF_LITTLE_ENDIAN &&
		key_type->byte_order != BF_BIG_ENDIAN :
		key_type->byte_order != 0 || key_type->encoding != 0)
		return "The byte order or encoding of its keys is unknown.";
	if (key_type->encoding > BF_MAX_ENCODING)
		return "The encoding of its keys is unknown.";
	return NULL;
}

/*
 * The number of bytes of the first character of a string of UTF-8, or 0 if it
 * is not a valid one.
 */
static size_t
utf8_length(const uint8_t *s, size_t left)
{
	size_t		length = 1 + (s[0] >= 0x80) + (s[0] >= 0xE0) + (s[0] >= 0xF0);
	size_t		i;

	/* Continuation bytes, overlong forms, and what is above U+10FFFF */
	if ((s[0] >= 0x80 && s[0] < 0xC2) || s[0] > 0xF4 || length > left)
		return 0;
	for (i = 1; i < length; i++)
	{
		if ((s[i] & 0xC0) != 0x80)
			return 0;
	}
	if ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xF0 && s[1] < 0x90) ||
		(s[0] == 0xF4 && s[1] >= 0x90))
		return 0;

	/* Halves of surrogate pairs */
	if (s[0] == 0xED && s[1] >= 0xA0)
		return 0;
	return length;
}

/* Is this character one of U+0000 to U+001F or U+007F to U+009F? */
static bool
is_control(const uint8_t *s)
{
	return s[0] < ' ' || s[0] == 0x7F || (s[0] == 0xC2 && s[1] < 0xA0);
}

/*
 * Is this a valid name of a key type?  Names are printed in messages, so they
 * have to be UTF-8 without control characters.
 */
bool
bf_valid_key_type_name(const char *name, size_t length)
{
	const uint8_t *s = (const uint8_t *) name;

	while (length > 0)
	{
		size_t		n = utf8_length(s, length);

		if (n == 0 || is_control(s))
			return false;
		s += n;
		length -= n;
	}
	return true;
}
