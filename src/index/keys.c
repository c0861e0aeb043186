/*-------------------------------------------------------------------------
 *
 * keys.c
 *	  The hashes of the keys of a table, sorted within some memory.
 *
 *-------------------------------------------------------------------------
 */
#include "index/index.h"

#include "catalog/pg_operator_d.h"
#include "catalog/pg_type_d.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/tuplesort.h"

/* The order of int8 is that of the hashes if the first bit is inverted. */
static inline Datum
hash_to_datum(uint64 hash)
{
	return Int64GetDatum((int64) (hash ^ (UINT64CONST(1) << 63)));
}

static inline uint64
datum_to_hash(Datum datum)
{
	return (uint64) DatumGetInt64(datum) ^ (UINT64CONST(1) << 63);
}

/* Begin to collect the keys of an index, in so many kilobytes. */
void
bfi_begin_keys(BfiKeySort *keys, Relation index, uint64 seed, int memory)
{
	keys->seed = seed;
	keys->nrows = 0;
	keys->key_info = bfi_key_info(index, CurrentMemoryContext);
	keys->key_context = AllocSetContextCreate(CurrentMemoryContext,
											  "key of a Bloom filter index",
											  ALLOCSET_DEFAULT_SIZES);
	keys->sort = tuplesort_begin_datum(INT8OID, Int8LessOperator, InvalidOid,
									   false, memory, NULL,
									   TUPLESORT_RANDOMACCESS);
}

/* Take a hash, whose Datum is in allocated memory where pointers are small. */
void
bfi_take_hash(BfiKeySort *keys, uint64 hash)
{
	MemoryContext old_context = MemoryContextSwitchTo(keys->key_context);

	tuplesort_putdatum(keys->sort, hash_to_datum(hash), false);
	MemoryContextSwitchTo(old_context);
	MemoryContextReset(keys->key_context);
}

/* Take the key of a row. */
void
bfi_take_key(Relation index, ItemPointer tid, Datum *values, bool *isnull,
			 bool is_live, void *state)
{
	BfiKeySort *keys = state;
	MemoryContext old_context;
	uint64		hash;

	(void) index;
	(void) tid;
	(void) is_live;
	if (isnull[0])
		return;
	old_context = MemoryContextSwitchTo(keys->key_context);
	hash = pgbloom_hash_value(keys->key_info, values[0], keys->seed);
	MemoryContextSwitchTo(old_context);
	bfi_take_hash(keys, hash);
	keys->nrows++;
}

/* The next distinct hash of sorted ones; false if there is none. */
bool
bfi_next_key(BfiKeySort *keys, uint64 *hash, bool first)
{
	uint64		last = *hash;
	Datum		datum;
	bool		isnull;

	while (PGBLOOM_TUPLESORT_GETDATUM(keys->sort, &datum, &isnull))
	{
		CHECK_FOR_INTERRUPTS();
		*hash = datum_to_hash(datum);
		PGBLOOM_FREE_INT8(datum);
		if (first || *hash != last)
			return true;
	}
	return false;
}

/* The number of distinct keys, which are sorted. */
uint64
bfi_count_keys(BfiKeySort *keys)
{
	uint64		hash = 0;
	uint64		n = 0;

	while (bfi_next_key(keys, &hash, n == 0))
		n++;
	tuplesort_rescan(keys->sort);
	return n;
}

void
bfi_end_keys(BfiKeySort *keys)
{
	tuplesort_end(keys->sort);
	MemoryContextDelete(keys->key_context);
}
