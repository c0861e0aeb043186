/*-------------------------------------------------------------------------
 *
 * hash.h
 *	  The hash of one key of a join, inline because each row needs it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGBLOOM_JOIN_HASH_H
#define PGBLOOM_JOIN_HASH_H

#include "join/join.h"
#include "utils/uuid.h"

static inline uint64
pgbloom_join_hash_text(Datum value, uint64 seed)
{
	struct varlena *text = PG_DETOAST_DATUM_PACKED(value);
	uint64		hash = bf_hash_bytes(VARDATA_ANY(text),
									 VARSIZE_ANY_EXHDR(text), seed);

	if ((Pointer) text != DatumGetPointer(value))
		pfree(text);
	return hash;
}

/*
 * The hash of a value.  Several keys are chained: the hash of one is the seed
 * of the next.
 */
static inline uint64
pgbloom_join_hash(PgBloomJoinKey *key, Datum value, uint64 seed)
{
	switch (key->method)
	{
		case PGBLOOM_JOIN_INT16:
			return bf_hash_u64((uint64) (int64) DatumGetInt16(value), seed);
		case PGBLOOM_JOIN_INT32:
			return bf_hash_u64((uint64) (int64) DatumGetInt32(value), seed);
		case PGBLOOM_JOIN_INT64:
			return bf_hash_u64((uint64) DatumGetInt64(value), seed);
		case PGBLOOM_JOIN_TEXT:
			return pgbloom_join_hash_text(value, seed);
		case PGBLOOM_JOIN_UUID:
			return bf_hash_bytes(DatumGetPointer(value), UUID_LEN, seed);
		case PGBLOOM_JOIN_FUNCTION:
			return bf_hash_u64(DatumGetUInt32(FunctionCall1Coll(&key->function,
																key->collation,
																value)),
							   seed);
	}
	pg_unreachable();
}

#endif							/* PGBLOOM_JOIN_HASH_H */
