/*-------------------------------------------------------------------------
 *
 * expanded.c
 *	  Filters as expanded objects, which are changed in place.
 *
 * A function that adds a key copies the image of a filter.  A PL/pgSQL loop
 * with f := bloom_add(f, key) makes one copy for each key.  From PostgreSQL 18
 * on, a function can change the variable itself, if its support function
 * agrees and if the value is an expanded object (utils/expandeddatum.h).  An
 * expanded filter is a builder of the core.
 *
 * Functions make expanded filters only where they add to a variable or a
 * parameter, and never on earlier servers.  Whatever needs an image flattens
 * them.  Functions that are likely to be used in such loops read the builder
 * without flattening it.
 *
 * Results are the same as with images.  So an error leaves a writable filter
 * as it was, and a change that would not give the same image in place, such as
 * growth, is made in a copy, as for an image.
 *
 * The state of an aggregate with transition type bloom is an expanded filter
 * as well, on all servers.  It ends with an error of the query, so it is
 * always changed in place.
 *
 *-------------------------------------------------------------------------
 */
#include "filter/filter.h"

#include "miscadmin.h"
#include "nodes/memnodes.h"
#include "nodes/primnodes.h"
#include "nodes/supportnodes.h"
#include "utils/memutils.h"

/*
 * Adding a key to a layer larger than the CPU caches waits for memory, so keys
 * for such a layer are added in batches.
 */
#define LARGE_LAYER			((uint64) 1 << 21)	/* bits */
#define MAX_PENDING			1024

/*
 * Keys times layers that a call adds in place, where it is not interrupted; of a
 * list, which is sorted again and again meanwhile, keys
 */
#define MAX_IN_PLACE		((int64) 1 << 20)
#define MAX_IN_LIST			4096

PG_FUNCTION_INFO_V1(bloom_add_support);

static void
add_pending(PgBloomExpanded *expanded)
{
	BfBuilder  *builder = &expanded->builder;

	pgbloom_check(bf_builder_add_all(builder, expanded->pending,
									 expanded->npending),
				  &builder->params, NULL);

	/* Not earlier: after an error, they are added again. */
	expanded->npending = 0;
}

/* The builder, with all hashes added. */
static BfBuilder *
get_builder(ExpandedObjectHeader *header)
{
	PgBloomExpanded *expanded = (PgBloomExpanded *) header;

	if (expanded->builder.incomplete)
		pgbloom_check(BF_INCOMPLETE, &expanded->builder.params, NULL);
	if (expanded->npending > 0)
		add_pending(expanded);
	return &expanded->builder;
}

/* Add a hash for which neither the builder nor the batch has room. */
void
pgbloom_expanded_add_slowly(PgBloomExpanded *expanded, uint64 hash)
{
	BfBuilder  *builder = &expanded->builder;

	if (expanded->packed != NULL && builder->nlayers == 0)
	{
		if (bf_builder_contains(builder, hash))
			return;
		bf_builder_pack_hash(expanded->packed, hash);
	}
	if (builder->nlayers == 0 ||
		bf_geometry_bits(&builder->layers[builder->nlayers - 1].geometry) <
		LARGE_LAYER)
	{
		pgbloom_check(bf_builder_add(builder, hash), &builder->params, NULL);
		return;
	}
	if (expanded->pending == NULL)
	{
		expanded->pending = MemoryContextAlloc(builder->env.context,
											   MAX_PENDING * sizeof(uint64));
		expanded->room = MAX_PENDING;
	}
	else
		add_pending(expanded);
	expanded->pending[expanded->npending++] = hash;
}

static Size
get_flat_size(ExpandedObjectHeader *header)
{
	BfBuilder  *builder = get_builder(header);
	size_t		size;

	pgbloom_check(bf_builder_plan(builder, &size), &builder->params, NULL);
	return VARHDRSZ + size;
}

static void
flatten_into(ExpandedObjectHeader *header, void *result, Size size)
{
	if (size != get_flat_size(header))
		elog(ERROR, "unexpected size of an expanded Bloom filter");
	SET_VARSIZE(result, size);
	bf_builder_write(get_builder(header), (uint8_t *) VARDATA(result));
}

const ExpandedObjectMethods pgbloom_expanded_methods = {get_flat_size, flatten_into};

/* Make an empty expanded filter in a memory context. */
static PgBloomExpanded *
make_expanded(MemoryContext context, const BfParams *params)
{
	PgBloomExpanded *expanded = MemoryContextAllocZero(context,
													   sizeof(*expanded));
	BfEnv		env = pgbloom_env(context);

	EOH_init_header(&expanded->header, &pgbloom_expanded_methods, context);
	bf_builder_init(&expanded->builder, &env, params);
	return expanded;
}

/* Make an expanded copy of a filter. */
static PgBloomExpanded *
expand_copy(Datum filter)
{
	struct varlena *image = PG_DETOAST_DATUM_PACKED(filter);
	PgBloomExpanded *expanded;
	BfView		view;

	pgbloom_open(image, &view);
	expanded = make_expanded(AllocSetContextCreate(CurrentMemoryContext,
												   "expanded Bloom filter",
												   ALLOCSET_START_SMALL_SIZES),
							 &view.params);
	pgbloom_merge(&expanded->builder, &view);
	bf_builder_expect_probes(&expanded->builder);
	if ((Pointer) image != DatumGetPointer(filter))
		pfree(image);
	return expanded;
}

/* The builder of an expanded filter; NULL for any other value. */
BfBuilder *
pgbloom_expanded(Datum filter)
{
	ExpandedObjectHeader *header;

	if (!VARATT_IS_EXTERNAL_EXPANDED(DatumGetPointer(filter)))
		return NULL;
	header = DatumGetEOHP(filter);
	return header->eoh_methods == &pgbloom_expanded_methods ?
		get_builder(header) : NULL;
}

/*
 * A new state of an aggregate, without keys.
 *
 * The executor changes a state in place if it is in a child of the memory
 * context of the aggregate.  All states share one child, because hash
 * aggregation visits all children for each new group.  A state is never
 * deleted alone, since the functions that change it return the same state.
 */
Datum
pgbloom_make_state(MemoryContext aggregate, const BfParams *params)
{
	static const char name[] = "states of Bloom filter aggregates";
	MemoryContext context = aggregate->firstchild;

	while (context != NULL && context->name != name)
		context = context->nextchild;
	if (context == NULL)
		context = AllocSetContextCreateInternal(aggregate, name,
												ALLOCSET_START_SMALL_SIZES);
	return EOHPGetRWDatum(&make_expanded(context, params)->header);
}

/*
 * The filter in the first argument of a function that adds to it, as an
 * expanded filter that may be changed; 0 if the function should return an
 * image.  If the argument may not be changed, but is a variable or parameter,
 * it is a copy, so that the next iteration of a loop finds an expanded filter.
 * Any other result goes into a row, where it would be flattened.
 */
Datum
pgbloom_writable(FunctionCallInfo fcinfo)
{
#ifdef PGBLOOM_MODIFY_IN_PLACE
	Node	   *call = fcinfo->flinfo->fn_expr;
	Datum		filter = PG_GETARG_DATUM(0);
	Node	   *argument;

	if (!PG_ARGISNULL(0) && pgbloom_expanded(filter) != NULL &&
		VARATT_IS_EXTERNAL_EXPANDED_RW(DatumGetPointer(filter)))
		return filter;
	if (call == NULL || !IsA(call, FuncExpr) ||
		((FuncExpr *) call)->args == NIL)
		return (Datum) 0;
	argument = linitial(((FuncExpr *) call)->args);
	if (!IsA(argument, Param) ||
		((Param *) argument)->paramkind != PARAM_EXTERN)
		return (Datum) 0;
	if (PG_ARGISNULL(0))
		filter = PointerGetDatum(pgbloom_empty(NULL));
	return EOHPGetRWDatum(&expand_copy(filter)->header);
#else
	(void) fcinfo;
	return (Datum) 0;
#endif
}

/*
 * Add hashes of keys of one key type to a writable filter.  Returns the filter
 * or, if that could not be changed in place, another one.
 */
Datum
pgbloom_add_hashes(Datum filter, const BfKeyType *key_type,
				   const uint64 *hashes, int n)
{
	BfBuilder  *builder = pgbloom_expanded(filter);
	PgBloomExpanded *copy;
	size_t		size;
	int			nnew = 0;
	int			i;

	if (bf_key_type_equal(&builder->params.key_type, key_type))
	{
		for (i = 0; i < n; i++)
		{
			CHECK_FOR_INTERRUPTS();
			if (!bf_builder_has(builder, hashes[i]))
				nnew++;
		}
		if (nnew == 0)
			return filter;
		if ((builder->nlayers == 0 ? n <= MAX_IN_LIST :
			 (int64) n * builder->nlayers <= MAX_IN_PLACE) &&
			bf_builder_has_room(builder, nnew))
		{
			pgbloom_check(bf_builder_reserve(builder, nnew), &builder->params,
						  NULL);

			/* No error from here on, so that all keys are added, or none. */
			HOLD_INTERRUPTS();
			for (i = 0; i < n; i++)
			{
				/* The same key may occur more than once. */
				if (n == 1 || !bf_builder_has(builder, hashes[i]))
					pgbloom_check(bf_builder_add(builder, hashes[i]),
								  &builder->params, NULL);
			}
			RESUME_INTERRUPTS();
			return filter;
		}
	}

	copy = expand_copy(filter);
	builder = &copy->builder;
	builder->expects_probes = false;
	pgbloom_add_to_copy(builder, key_type, hashes, n);

	/* Sort and deduplicate hashes; convert to dense form if they are many. */
	pgbloom_check(bf_builder_plan(builder, &size), &builder->params, NULL);
	bf_builder_expect_probes(builder);
	return EOHPGetRWDatum(&copy->header);
}

/*
 * Support function of the functions that add to their first argument.  PL/pgSQL
 * may pass the variable to which the result is assigned.  Other arguments may
 * refer to the variable, too, because they are hashed before it is changed.
 */
Datum
bloom_add_support(PG_FUNCTION_ARGS)
{
	Param	   *variable = NULL;
#ifdef PGBLOOM_MODIFY_IN_PLACE
	Node	   *node = (Node *) PG_GETARG_POINTER(0);

	if (IsA(node, SupportRequestModifyInPlace))
	{
		SupportRequestModifyInPlace *request =
			(SupportRequestModifyInPlace *) node;
		Param	   *first = request->args == NIL ? NULL :
			linitial(request->args);

		if (first != NULL && IsA(first, Param) &&
			first->paramkind == PARAM_EXTERN &&
			first->paramid == request->paramid)
			variable = first;
	}
#else
	(void) fcinfo;
#endif
	PG_RETURN_POINTER(variable);
}
