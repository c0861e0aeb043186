/*-------------------------------------------------------------------------
 *
 * hash.h
 *	  The hash of the keys of a row, inline because each row needs it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGBLOOM_JOIN_HASH_H
#define PGBLOOM_JOIN_HASH_H

#include "access/htup_details.h"
#include "access/tupmacs.h"
#include "executor/executor.h"
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

/* Does the row as it is stored tell that one of these columns is NULL? */
static inline bool
pgbloom_join_has_null(const PgBloomJoinReader *reader, TupleTableSlot *slot)
{
	HeapTuple	row = NULL;
	int			i;

	if (TTS_IS_BUFFERTUPLE(slot))
		row = ((BufferHeapTupleTableSlot *) slot)->base.tuple;
	else if (TTS_IS_MINIMALTUPLE(slot))
		row = ((MinimalTupleTableSlot *) slot)->tuple;
	if (row == NULL || !HeapTupleHasNulls(row))
		return false;
	for (i = 0; i < reader->n; i++)
	{
		AttrNumber	column = reader->columns[i];

		if (column > 0 && column <= HeapTupleHeaderGetNatts(row->t_data) &&
			att_isnull(column - 1, row->t_data->t_bits))
			return true;
	}
	return false;
}

/*
 * Read and hash the keys of a row.  One with a NULL has no match, because the
 * operators are strict: then returns false.  The columns are read at once, which
 * is faster than one by one; but a row of many columns is not read up to the last
 * of its keys if one is NULL, as the join stops there, too.
 */
static inline bool
pgbloom_join_hash_row(const PgBloomJoinReader *reader, PgBloomJoinKey *by,
					  TupleTableSlot *slot, ExprContext *econtext,
					  Datum *keys, uint64 *hash)
{
	int			i;

	*hash = 0;
	if (slot->tts_nvalid < reader->last)
	{
		if (pgbloom_join_has_null(reader, slot))
			return false;
		slot_getsomeattrs(slot, reader->last);
	}
	for (i = 0; i < reader->n; i++)
	{
		bool		isnull;

		keys[i] = reader->exprs[i] != NULL ?
			ExecEvalExpr(reader->exprs[i], econtext, &isnull) :
			slot_getattr(slot, reader->columns[i], &isnull);
		if (isnull)
			return false;
		*hash = pgbloom_join_hash(&by[i], keys[i], *hash);
	}
	return true;
}

#endif							/* PGBLOOM_JOIN_HASH_H */
