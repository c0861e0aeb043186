/*-------------------------------------------------------------------------
 *
 * bloom_types.c
 *	  Recognizing the types that the extension creates.
 *
 * These types have no fixed OIDs.  The extension is relocatable, so they can
 * be in any schema, and other schemas can have types of the same names.
 *
 *-------------------------------------------------------------------------
 */
#include "bloom.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/dependency.h"
#include "catalog/pg_type.h"
#include "commands/extension.h"
#include "utils/inval.h"
#include "utils/syscache.h"

static const char *const type_names[] = {
	[PGBLOOM_FILTER] = "bloom",
	[PGBLOOM_KEY] = "bloom_key",
	[PGBLOOM_KEYS] = "bloom_keys"
};

/* OIDs that were found; reset when anything changes in pg_type. */
static Oid	type_oids[lengthof(type_names)];

static void
forget_types(Datum arg, int cacheid, uint32 hashvalue)
{
	(void) arg;
	(void) cacheid;
	(void) hashvalue;
	memset(type_oids, 0, sizeof(type_oids));
}

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

static bool
belongs_to_extension(Oid type)
{
	Oid			extension = getExtensionOfObject(TypeRelationId, type);
	char	   *name = OidIsValid(extension) ?
		get_extension_name(extension) : NULL;

	return name != NULL && strcmp(name, "bloomfilter") == 0;
}

/* Is this type, which must not be a domain, the one of the extension? */
bool
pgbloom_type_is(Oid type, PgBloomType which)
{
	static bool registered = false;

	if (type < FirstNormalObjectId)
		return false;
	if (type == type_oids[which])
		return true;

	/* Before the lookup, so that no change after it is missed. */
	if (!registered)
	{
		CacheRegisterSyscacheCallback(TYPEOID, forget_types, (Datum) 0);
		registered = true;
	}
	if (!has_name(type, type_names[which]) || !belongs_to_extension(type))
		return false;
	type_oids[which] = type;
	return true;
}
