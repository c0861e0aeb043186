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
#define MAX_BYTES		(1024 * 1024)

/* A lookup: the function, its arguments, and the result. */
typedef struct BfiLookup
{
	Oid			function;
	Oid			index;
	Oid			user;			/* who may look it up */
	Oid			type;			/* of the key */
	Oid			collation;
	uint32		hash;			/* of the key's bytes */
	Datum		key;
	Datum		result;
	uint64		moment;			/* before */
} BfiLookup;

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

/* The same, as far as it matters to the query that is executed. */
uint64
bfi_moment_of_lookup(void)
{
	return bfi_execution != NULL && bfi_execution->only_reads ?
		bfi_keys_inserted + bfi_relation_changes : bfi_moment();
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

/* Fill in a lookup, all but its result.  Returns false if the type is unknown. */
static bool
read_call(FunctionCallInfo fcinfo, BfiLookup *lookup, int16 *typlen,
		  bool *typbyval)
{
	lookup->function = fcinfo->flinfo->fn_oid;
	lookup->index = PG_GETARG_OID(0);
	lookup->user = GetUserId();
	lookup->type = get_fn_expr_argtype(fcinfo->flinfo, 1);
	lookup->collation = PG_GET_COLLATION();
	lookup->key = PG_GETARG_DATUM(1);
	if (!OidIsValid(lookup->type))
		return false;
	get_typlenbyval(lookup->type, typlen, typbyval);
	if (*typlen == -1)
		lookup->key = PointerGetDatum(PG_DETOAST_DATUM_PACKED(lookup->key));
	lookup->hash = datum_image_hash(lookup->key, *typbyval, *typlen);
	return true;
}

/* Was a key found?  Arrays of results may have both. */
static bool
is_found(const BfiLookup *lookup, bool is_array)
{
	return !is_array && DatumGetBool(lookup->result);
}

/*
 * Set *result, an array or a boolean, to what a call of a lookup function has
 * returned before in this query.  Returns false if it must look.
 */
bool
bfi_recall(FunctionCallInfo fcinfo, bool is_array, Datum *result)
{
	BfiExecution *execution = execution_of(fcinfo);
	BfiMemory  *memory = execution == NULL ? NULL : execution->memory;
	BfiLookup	call;
	int16		typlen;
	bool		typbyval;
	int			i;

	if (memory == NULL)
		return false;
	if (!read_call(fcinfo, &call, &typlen, &typbyval))
		return false;
	for (i = 0; i < memory->n; i++)
	{
		const BfiLookup *lookup = &memory->lookups[i];

		if (lookup->hash != call.hash || lookup->index != call.index ||
			lookup->function != call.function || lookup->type != call.type ||
			lookup->collation != call.collation || lookup->user != call.user ||
			!datum_image_eq(lookup->key, call.key, typbyval, typlen) ||
			(!is_found(lookup, is_array) && lookup->moment != bfi_moment_of_lookup()))
			continue;
		*result = is_array ? datumCopy(lookup->result, false, -1) :
			lookup->result;
		return true;
	}
	return false;
}

/*
 * Remember what a lookup in a partitioned index returns, which began at this
 * moment.
 */
void
bfi_remember(FunctionCallInfo fcinfo, bool is_array, Datum result,
			 uint64 moment)
{
	BfiExecution *execution = execution_of(fcinfo);
	BfiLookup	call = {.moment = moment};
	BfiMemory  *memory;
	MemoryContext old_context;
	int16		typlen;
	bool		typbyval;
	size_t		bytes;

	if (execution == NULL || !read_call(fcinfo, &call, &typlen, &typbyval))
		return;
	bytes = datumGetSize(call.key, typbyval, typlen);
	memory = execution->memory;
	if (memory != NULL && (memory->n == MAX_LOOKUPS ||
						   memory->bytes + bytes > MAX_BYTES))
		bfi_forget(execution);
	if (execution->memory == NULL)
		execution->memory = make_memory(execution->context);
	memory = execution->memory;
	old_context = MemoryContextSwitchTo(memory->context);
	call.key = datumCopy(call.key, typbyval, typlen);
	call.result = is_array ? datumCopy(result, false, -1) : result;
	MemoryContextSwitchTo(old_context);
	memory->bytes += bytes;
	memory->lookups[memory->n++] = call;
}
