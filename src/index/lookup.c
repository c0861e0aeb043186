/*-------------------------------------------------------------------------
 *
 * lookup.c
 *	  What queries of a table ask its indexes: whether these have any of the
 *	  keys.
 *
 * Whoever executes the query may read the column, which is checked when it
 * starts, before anything is looked up.  So there is no check here, and no
 * call that a user could make.
 *
 *-------------------------------------------------------------------------
 */
#include "index/index.h"

#include "access/htup_details.h"
#include "access/stratnum.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "catalog/pg_language_d.h"
#include "catalog/pg_proc.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

/* Whether queries ask indexes: the setting bloomfilter.index_pruning. */
bool		bfi_asked_by_queries = true;

/*
 * Do values of a type hash by what they are, by functions that do not fail?
 * Enums hash by labels, which may be renamed.  A function that is not in C may
 * do anything.
 */
static bool
hashes_reliably(Oid type)
{
	Oid			element;
	HeapTuple	tuple;
	Oid			function;
	bool		result;

	for (type = getBaseType(type);
		 OidIsValid(element = get_element_type(type));
		 type = getBaseType(element))
		;
	if (type_is_enum(type))
		return false;
	if (type < FirstNormalObjectId)
		return true;
	function = lookup_type_cache(type,
								 TYPECACHE_HASH_EXTENDED_PROC)->hash_extended_proc;
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	if (!HeapTupleIsValid(tuple))
		return false;
	result = ((Form_pg_proc) GETSTRUCT(tuple))->prolang == ClanguageId ||
		((Form_pg_proc) GETSTRUCT(tuple))->prolang == INTERNALlanguageId;
	ReleaseSysCache(tuple);
	return result;
}

/*
 * Does the operator compare values for equality, so that those of this type that
 * are equal have equal hashes?
 */
static bool
is_equality(Oid operator, Oid type)
{
	Oid			family = lookup_type_cache(type,
										   TYPECACHE_HASH_OPFAMILY)->hash_opf;

	return OidIsValid(family) &&
		get_op_opfamily_strategy(operator, family) == HTEqualStrategyNumber &&
		op_strict(operator);
}

/*
 * Does an index of this key type and collation tell for certain that no row has
 * a value that the operator finds equal to a key of another type?  Values that
 * are equal by the operator must have equal hashes: it is an equality of the
 * hash operator family of the key type, under the same collation, and both
 * sides hash as the same type of keys.  Text that cannot be converted to UTF-8
 * has no hash, and the error for it would be one of the lookup.
 */
bool
bfi_can_look_up(Oid operator, Oid operator_collation, Oid type, Oid key_type,
				Oid collation)
{
	PgBloomKeyInfo *index_info;
	PgBloomKeyInfo *info;

	if (operator_collation != collation ||
		!is_equality(operator, key_type) ||
		!(get_typbyval(type) || pgbloom_text_is_utf8()) ||
		!hashes_reliably(key_type) || !hashes_reliably(type))
		return false;
	index_info = pgbloom_make_key_info(key_type, collation,
									   CurrentMemoryContext, false);
	info = type == key_type ? index_info :
		pgbloom_make_key_info(type, collation, CurrentMemoryContext, false);
	return index_info != NULL && info != NULL && !index_info->untyped &&
		!info->untyped &&
		bf_key_type_equal(&index_info->key_type, &info->key_type);
}

/*
 * The column whose keys an index of this access method has, those of all rows;
 * 0 for any other index.  It need not be valid.
 */
AttrNumber
bfi_column_of(Oid index)
{
	HeapTuple	tuple;
	AttrNumber	column = 0;

	if (!bfi_is_access_method(pgbloom_relation_row(index).relam))
		return 0;
	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(index));
	if (HeapTupleIsValid(tuple))
	{
		if (heap_attisnull(tuple, Anum_pg_index_indpred, NULL))
			column = ((Form_pg_index) GETSTRUCT(tuple))->indkey.values[0];
		ReleaseSysCache(tuple);
	}
	return column;
}

/* Hash keys for an index.  Those of partitions often have the same seed. */
static void
hash_keys(BfiKeys *keys, uint64 seed)
{
	uint64	   *hashes = keys->hashes;
	PgBloomHashedKey *hashed;
	int			i;

	if (hashes != NULL && keys->seed == seed)
		return;
	if (hashes == NULL)
		hashes = MemoryContextAllocHuge(keys->context,
										keys->n * sizeof(uint64));
	keys->hashes = NULL;
	hashed = MemoryContextAllocHuge(CurrentMemoryContext,
									keys->n * sizeof(*hashed));
	for (i = 0; i < keys->n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		hashed[i].hash = pgbloom_hash_value(keys->info, keys->values[i], seed);
		hashed[i].index = i;
	}
	pgbloom_sort_hashed_keys(hashed, keys->n);
	for (i = 0; i < keys->n; i++)
		hashes[i] = hashed[i].hash;
	pfree(hashed);
	keys->hashes = hashes;
	keys->seed = seed;
}

/* May the table of an index that is open have a row with one of the keys? */
bool
bfi_may_have(const BfiIndex *index, BfiKeys *keys)
{
	bool	   *found;
	bool		result = false;
	int			i;

	if (!index->complete || index->partitioned ||
		index->meta.key_type != keys->info->key_type.code)
		return true;
	if (keys->n == 0)
		return false;
	hash_keys(keys, index->meta.seed);
	if (index->alone)
		return !bfi_lacks_hash(index, keys->hashes[0]);
	found = MemoryContextAllocHuge(CurrentMemoryContext,
								   keys->n * sizeof(bool));
	bfi_find_hashes(index, keys->hashes, keys->n, found);
	for (i = 0; i < keys->n && !result; i++)
		result = found[i];
	pfree(found);
	return result;
}

/*
 * The same for the index of a partition.  Most lack a key, and have their pages in
 * the buffers that they were in.  Hashing a first key may read catalogs, and a
 * predicate lock is for what the table's lock keeps, so these take both locks.
 */
bool
bfi_leaf_may_have(const BfiPartition *leaf, BfiKeys *keys)
{
	BfiIndex	index;
	bool		result = true;

	if (!leaf->is_heap)
		return true;
	if (keys->n == 1 && keys->hashes != NULL && !IsolationIsSerializable())
	{
		bfi_open_leaf(&index, leaf, true);
		result = bfi_may_have(&index, keys);
		bfi_close(&index);
	}
	if (result)
	{
		bfi_open_leaf(&index, leaf, false);
		result = bfi_may_have(&index, keys);
		bfi_close(&index);
	}
	return result;
}
