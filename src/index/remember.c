/*-------------------------------------------------------------------------
 *
 * remember.c
 *	  What lookups in partitioned indexes have found in a query.
 *
 * PostgreSQL evaluates a condition that does not depend on rows once for each
 * partition, and other expressions for each row; and each lookup may probe all
 * partitions.  So while a plan is executed, which is under one snapshot and for
 * one user, the last results are remembered.  Functions of the plan have its
 * memory context; those that are called otherwise, as in PL/pgSQL, may live
 * longer than a snapshot, and remember nothing.
 *
 * That a key may be there is always right.  That it is not is right for the
 * snapshot, until this transaction inserts a key.  But a query that locks rows, or
 * changes them, and has waited for one, goes on with its newest version, which the
 * snapshot does not see: then it is right until a transaction ends.  A key without
 * a type is looked up again if its value depends on settings.
 *
 *-------------------------------------------------------------------------
 */
#include "index/index.h"

#include "access/transam.h"
#include "compat.h"
#include "miscadmin.h"
#include "storage/lwlock.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

/* If lookups are more, or their keys are larger, they are forgotten. */
#define MAX_LOOKUPS		100
#define MAX_BYTES		(64 * 1024)

struct BfiMemory
{
	MemoryContext context;		/* of this, keys and results */
	size_t		bytes;			/* of keys */
	int			n;
	BfiLookup	lookups[MAX_LOOKUPS];
};

BfiExecution *bfi_execution = NULL;

/*
 * How many transactions that wrote something are over, and what this one may see
 * without that, as one number that only grows.
 */
uint64
bfi_moment(void)
{
	uint64		count;

	LWLockAcquire(ProcArrayLock, LW_SHARED);
	count = PGBLOOM_COMPLETION_COUNT;
	LWLockRelease(ProcArrayLock);
	return count + bfi_keys_inserted + bfi_relation_changes;
}

void
bfi_forget(BfiExecution *execution)
{
	if (execution->memory != NULL)
		MemoryContextDelete(execution->memory->context);
	execution->memory = NULL;
}

/* The execution of the plan that a call is part of, or NULL. */
static BfiExecution *
execution_of(FunctionCallInfo fcinfo)
{
	return bfi_execution != NULL &&
		bfi_execution->context == fcinfo->flinfo->fn_mcxt ?
		bfi_execution : NULL;
}

static BfiMemory *
make_memory(MemoryContext parent)
{
	MemoryContext context = AllocSetContextCreate(parent,
												  "lookups in Bloom filter indexes",
												  ALLOCSET_DEFAULT_SIZES);
	BfiMemory  *memory = MemoryContextAlloc(context, sizeof(*memory));

	memory->context = context;
	memory->bytes = 0;
	memory->n = 0;
	return memory;
}

/* Fill in what a lookup is compared by.  Its type may be unknown. */
static void
read_key(FunctionCallInfo fcinfo, BfiLookup *lookup)
{
	lookup->type = get_fn_expr_argtype(fcinfo->flinfo, 1);
	if (!OidIsValid(lookup->type))
		return;
	lookup->function = fcinfo->flinfo->fn_oid;
	lookup->index = PG_GETARG_OID(0);
	lookup->user = GetUserId();
	lookup->collation = PG_GET_COLLATION();
	get_typlenbyval(lookup->type, &lookup->typlen, &lookup->typbyval);
	if (lookup->typlen == -1)
		lookup->key = PointerGetDatum(PG_DETOAST_DATUM_PACKED(lookup->key));
	lookup->hash = lookup->typlen == -1 ? pgbloom_hash_bytes(lookup->key, 0) :
		datum_image_hash(lookup->key, lookup->typbyval, lookup->typlen);
}

/*
 * A lookup function is called.  Returns true if the result is that of a call
 * before in this query, false if it must look.
 */
bool
bfi_recall(FunctionCallInfo fcinfo, bool is_array, BfiLookup *lookup)
{
	BfiExecution *execution = execution_of(fcinfo);
	BfiMemory  *memory = execution == NULL ? NULL : execution->memory;
	int			i;

	lookup->key = PG_GETARG_DATUM(1);
	lookup->type = InvalidOid;
	lookup->is_array = is_array;
	if (execution != NULL)
		lookup->moment = execution->only_reads ?
			bfi_keys_inserted + bfi_relation_changes : bfi_moment();
	if (memory == NULL)
		return false;
	read_key(fcinfo, lookup);
	for (i = 0; i < memory->n; i++)
	{
		const BfiLookup *old = &memory->lookups[i];

		if (old->hash != lookup->hash || old->index != lookup->index ||
			old->function != lookup->function || old->type != lookup->type ||
			old->collation != lookup->collation || old->user != lookup->user ||
			!datum_image_eq(old->key, lookup->key, old->typbyval, old->typlen) ||
			((is_array || !DatumGetBool(old->result)) &&
			 old->moment != lookup->moment))
			continue;
		lookup->result = is_array ? datumCopy(old->result, false, -1) :
			old->result;
		return true;
	}
	return false;
}

/* Remember what a lookup in a partitioned index returns. */
void
bfi_remember(FunctionCallInfo fcinfo, BfiLookup *lookup)
{
	BfiExecution *execution = execution_of(fcinfo);
	BfiMemory  *memory;
	MemoryContext old_context;
	size_t		bytes;

	if (execution == NULL)
		return;
	if (!OidIsValid(lookup->type))
		read_key(fcinfo, lookup);
	if (!OidIsValid(lookup->type))
		return;
	bytes = datumGetSize(lookup->key, lookup->typbyval, lookup->typlen);
	memory = execution->memory;
	if (memory != NULL && (memory->n == MAX_LOOKUPS ||
						   memory->bytes + bytes > MAX_BYTES))
		bfi_forget(execution);
	if (execution->memory == NULL)
		execution->memory = make_memory(execution->context);
	memory = execution->memory;
	old_context = MemoryContextSwitchTo(memory->context);
	memory->lookups[memory->n] = *lookup;
	memory->lookups[memory->n].key = datumCopy(lookup->key, lookup->typbyval,
											   lookup->typlen);
	if (lookup->is_array)
		memory->lookups[memory->n].result = datumCopy(lookup->result, false,
													  -1);
	memory->n++;
	memory->bytes += bytes;
	MemoryContextSwitchTo(old_context);
}
