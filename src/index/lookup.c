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
#include "access/relation.h"
#include "access/stratnum.h"
#include "access/transam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/index.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/lmgr.h"
#include "utils/array.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

/* One that is found is enough, so the others are looked up later, if at all. */
#define KEYS_AT_ONCE	16

/* Whether queries ask indexes: the setting bloomfilter.index_pruning. */
bool		bfi_asked_by_queries = true;

/* The type of which a key is, or of which it has values: no domain or array. */
static Oid
innermost_type(Oid type)
{
	Oid			element;

	for (type = getBaseType(type);
		 OidIsValid(element = get_element_type(type));
		 type = getBaseType(element))
		;
	return type;
}

/* Is the function that hashes values of a type in C? */
bool
bfi_is_hashed_in_c(Oid type)
{
	return pgbloom_is_in_c(lookup_type_cache(innermost_type(type),
											 TYPECACHE_HASH_EXTENDED_PROC)->hash_extended_proc);
}

/*
 * Do values of a type hash by what they are, by functions that do not fail?
 * Enums hash by labels, which may be renamed.
 */
static bool
hashes_reliably(Oid type)
{
	return !type_is_enum(innermost_type(type)) && bfi_is_hashed_in_c(type);
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

/* Open an index, or return NULL if there is none, or somebody else locks it. */
static Relation
open_unless_locked(Oid oid)
{
	Relation	relation;

	if (!OidIsValid(oid) || !ConditionalLockRelationOid(oid, AccessShareLock))
		return NULL;
	relation = RelationIdGetRelation(oid);
	if (relation == NULL)
		UnlockRelationOid(oid, AccessShareLock);
	else if (!bfi_is_open_bloomfilter(relation))
	{
		relation_close(relation, AccessShareLock);
		relation = NULL;
	}
	return relation;
}

/*
 * Open the index of a table for a query, which checks privileges.  The relation
 * is NULL if there is none, or somebody else has locked one of them: then there
 * is nothing to wait for, as the table may have any key.
 *
 * It takes both locks.  REINDEX gives the index another file under one on the
 * index; what REINDEX CONCURRENTLY has replaced goes away as soon as nobody has
 * locked the table.  With the locks, the relation cache knows what is there, so no
 * other catalog cache is asked; it counts lookups once it is told to.
 */
void
bfi_open_leaf(BfiIndex *index, const BfiPartition *leaf)
{
	index->relation = NULL;
	index->locked_table = InvalidOid;
	if (OidIsValid(leaf->index) &&
		ConditionalLockRelationOid(leaf->table, AccessShareLock))
	{
		index->locked_table = leaf->table;
		index->relation = open_unless_locked(leaf->index);
	}
	if (index->relation != NULL &&
		index->relation->rd_index->indrelid != leaf->table)
	{
		relation_close(index->relation, AccessShareLock);
		index->relation = NULL;
	}
	if (index->relation != NULL)
		pgstat_init_relation(index->relation);
	bfi_begin_reading(index, false);
}

/*
 * The same for an index that a plan names.  What others have done to it must be
 * known, also if the locks are held already.
 */
void
bfi_open_for_query(BfiIndex *index, Oid oid)
{
	BfiPartition leaf = {.index = oid};

	AcceptInvalidationMessages();
	leaf.table = IndexGetRelation(oid, true);
	if (!OidIsValid(leaf.table))
		leaf.index = InvalidOid;
	bfi_open_leaf(index, &leaf);
}

/*
 * Read a key, or an array of them.  Returns false if they are too many, or hash in
 * another way.
 */
bool
bfi_read_keys(Datum key, Oid type, bool is_array, Oid collation, BfiKeys *keys)
{
	PgBloomKeyArray array = {
		.values = palloc(sizeof(Datum)),
		.nkeys = 1
	};

	array.values[0] = key;
	if (is_array)
	{
		pgbloom_read_key_array(DatumGetArrayTypeP(key), &array);
		type = array.type;
	}
	memset(keys, 0, sizeof(*keys));
	keys->context = CurrentMemoryContext;
	keys->values = array.values;
	keys->n = array.nkeys;
	keys->info = pgbloom_make_key_info(type, collation, CurrentMemoryContext,
									   false);
	return keys->n <= BFI_MAX_KEYS && keys->info != NULL &&
		!keys->info->untyped;
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

/* Is any of the hashes on pages of the set, or among those that wait? */
static bool
has_any(Oid oid, Relation index, BfiCache *known, const BfiSet *set,
		const BfiKeys *keys)
{
	bool		found[KEYS_AT_ONCE];
	int			i;

	for (i = 0; i < keys->n; i += KEYS_AT_ONCE)
	{
		int			n = Min(keys->n - i, KEYS_AT_ONCE);

		bfi_probe(index, known, set, set->nlayers, keys->hashes + i, n, found);
		bfi_find_pending(oid, keys->hashes + i, n, found);
		if (memchr(found, true, n) != NULL)
			return true;
	}
	return false;
}

/* May the table of an index that is open have a row with one of the keys? */
bool
bfi_may_have(const BfiIndex *index, BfiKeys *keys)
{
	if (!index->complete || index->partitioned || keys->n > BFI_MAX_KEYS ||
		index->meta.key_type != keys->info->key_type.code)
		return true;
	if (keys->n == 0)
		return false;
	hash_keys(keys, index->meta.seed);
	pgstat_count_index_scan(index->relation);
	return has_any(RelationGetRelid(index->relation), index->relation, NULL,
				   &index->meta.current, keys);
}

/*
 * Does the index of a partition lack all keys for certain, by what is remembered
 * of it?  It was right when the caller accepted invalidation messages, which is
 * after the snapshot was taken.
 *
 * Nothing is locked, but only pages that are in buffers are read, since their
 * file may go away meanwhile.  A row that the snapshot sees could be missing only
 * if its transaction, or one that this saw, gave the table or index another file
 * or the partition other tables, or changed the directory of layers.  All of them
 * tell others before these see the transaction; or what they replace was made
 * invalid in a transaction before, of which others had been told by its end.
 */
static bool
is_known_to_lack(const BfiPartition *leaf, BfiCache *known,
				 const BfiKeys *keys)
{
	if (IsolationIsSerializable() || keys->hashes == NULL ||
		known->meta.seed != keys->seed ||
		known->meta.key_type != keys->info->key_type.code ||
		!bfi_has_all_rows(known, &known->meta))
		return false;
	return !has_any(leaf->index, NULL, known, &known->meta.current, keys);
}

/*
 * May a partition have a row with one of the keys?  Most have none.  A page that
 * the list has forgotten is read the usual way, which tells that it is in use.
 */
bool
bfi_leaf_may_have(const BfiPartition *leaf, BfiKeys *keys)
{
	BfiCache   *known = leaf->known != NULL &&
		leaf->changes == bfi_list_changes ? *leaf->known : NULL;
	BfiIndex	index;
	bool		result;

	if (!leaf->is_heap)
		return true;
	if (known != NULL && is_known_to_lack(leaf, known, keys))
		return false;
	bfi_open_leaf(&index, leaf);
	if (known != NULL && index.complete)
		memset(((BfiCache *) index.relation->rd_amcache)->recent, 0,
			   sizeof(known->recent));
	result = bfi_may_have(&index, keys);
	if (index.complete)
		bfi_remember_leaf(leaf, &index);
	bfi_close(&index);
	return result;
}
