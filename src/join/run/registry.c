/*-------------------------------------------------------------------------
 *
 * registry.c
 *	  What the backend knows of the executions of plans with join filters.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

#include "utils/hsearch.h"

/*
 * What is known of an execution, whose memory is the owner: its filters by their
 * numbers from 1 on, and as number 0, that there are any.  Of a scan, which
 * is its own owner, number 0 is the gate before it.
 */
typedef struct Key
{
	void	   *owner;
	intptr_t	number;			/* as wide as a pointer: there is no gap */
} Key;

typedef struct Entry
{
	Key			key;
	void	   *thing;
} Entry;

static HTAB *entries = NULL;
static Entry *latest = NULL;	/* found, or NULL */

static void
forget(void *key)
{
	latest = NULL;
	hash_search(entries, key, HASH_REMOVE, NULL);
}

/* Enter a thing, until the memory of the execution is released. */
void
pgbloom_join_remember(MemoryContext query, void *owner, int number,
					  void *thing)
{
	struct
	{
		MemoryContextCallback callback;
		Key			key;
	}		   *memory = MemoryContextAlloc(query, sizeof(*memory));
	Entry	   *entry;

	if (entries == NULL)
	{
		HASHCTL		control = {
			.keysize = sizeof(Key),
			.entrysize = sizeof(Entry)
		};

		entries = hash_create("join filters", 64, &control,
							  HASH_ELEM | HASH_BLOBS);
	}
	memory->key.owner = owner;
	memory->key.number = number;
	entry = hash_search(entries, &memory->key, HASH_ENTER, NULL);
	entry->thing = thing;
	memory->callback.func = forget;
	memory->callback.arg = &memory->key;
	MemoryContextRegisterResetCallback(query, &memory->callback);
}

/* What has been entered, or NULL. */
void *
pgbloom_join_recall(void *owner, int number)
{
	Key			key = {owner, number};

	if (latest == NULL || latest->key.owner != owner ||
		latest->key.number != number)
		latest = entries == NULL ? NULL :
			hash_search(entries, &key, HASH_FIND, NULL);
	return latest == NULL ? NULL : latest->thing;
}

/*
 * Find the filter of a call of the probe function by the execution that it
 * belongs to.  An execution without the filter's node, as that of a part of a plan
 * by EvalPlanQual, gets a filter without a function, which nobody probes.  So does
 * a call that is not by the planner.
 */
PgBloomJoinFilter *
pgbloom_join_find(MemoryContext query, const Node *node)
{
	static PgBloomJoinFilter none = {0};
	const FuncExpr *call = (const FuncExpr *) node;
	PgBloomJoinFilter *filter;

	if (node == NULL || !IsA(node, FuncExpr) ||
		call->funcformat != PGBLOOM_PROBE_FORM || call->args == NIL ||
		!IsA(linitial(call->args), Const))
		return &none;
	filter = pgbloom_join_recall(query,
								 DatumGetInt32(linitial_node(Const, call->args)->constvalue));
	return filter != NULL && filter->function == call->funcid ? filter : &none;
}
