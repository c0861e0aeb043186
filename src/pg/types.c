/*-------------------------------------------------------------------------
 *
 * types.c
 *	  Recognizing the types and other objects that the extension creates.
 *
 * These types have no fixed OIDs.  The extension is relocatable, so they can
 * be in any schema, and other schemas can have types of the same names.
 *
 *-------------------------------------------------------------------------
 */
#include "pg/pgbloom.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/dependency.h"
#include "catalog/pg_type.h"
#include "commands/extension.h"
#include "utils/syscache.h"

static const char *const type_names[] = {
	[PGBLOOM_FILTER] = "bloom",
	[PGBLOOM_KEY] = "bloom_key",
	[PGBLOOM_KEYS] = "bloom_keys"
};

static bool
has_name(Oid type, const char *name)
{
	HeapTuple	tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(type));
	bool		result;

	if (!HeapTupleIsValid(tuple))
		return false;
	result = strcmp(NameStr(((Form_pg_type) GETSTRUCT(tuple))->typname),
					name) == 0;
	ReleaseSysCache(tuple);
	return result;
}

/* Does this extension own the object of this class? */
bool
pgbloom_is_ours(Oid class, Oid object)
{
	Oid			extension = getExtensionOfObject(class, object);
	char	   *name = OidIsValid(extension) ?
		get_extension_name(extension) : NULL;

	return name != NULL && strcmp(name, "bloomfilter") == 0;
}

/*
 * Is this the extension's type?  The type must not be a domain.  The last OID
 * found is cached; a type that is given the OID of a dropped one is taken for
 * it only if it has the same name.
 */
bool
pgbloom_type_is(Oid type, PgBloomType which)
{
	static Oid	found[lengthof(type_names)];

	if (type < FirstNormalObjectId || !has_name(type, type_names[which]))
		return false;
	if (type != found[which] && pgbloom_is_ours(TypeRelationId, type))
		found[which] = type;
	return type == found[which];
}
