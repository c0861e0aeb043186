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
#include "utils/expandeddatum.h"
#include "utils/memutils.h"

typedef struct PgBloomExpanded
{
	ExpandedObjectHeader header;
	PgBloomBatch batch;
} PgBloomExpanded;

PG_FUNCTION_INFO_V1(bloom_add_support);

static Size
get_flat_size(ExpandedObjectHeader *header)
{
	BfBuilder  *builder =
		pgbloom_batch_builder(&((PgBloomExpanded *) header)->batch);
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
	bf_builder_write(&((PgBloomExpanded *) header)->batch.builder,
					 (uint8_t *) VARDATA(result));
}

static const ExpandedObjectMethods expanded_methods = {get_flat_size, flatten_into};

/* Make an empty expanded filter in a memory context. */
static PgBloomExpanded *
make_expanded(MemoryContext context, const BfParams *params)
{
	PgBloomExpanded *expanded = MemoryContextAllocZero(context,
													   sizeof(*expanded));
	BfEnv		env = pgbloom_env(context);

	EOH_init_header(&expanded->header, &expanded_methods, context);
	bf_builder_init(&expanded->batch.builder, &env, params);
	return expanded;
}

/* Make an expanded filter with the content of an image. */
static PgBloomExpanded *
expand_image(const struct varlena *filter)
{
	PgBloomExpanded *expanded;
	BfBuilder  *builder;
	BfView		view;

	pgbloom_open(filter, &view);
	expanded = make_expanded(AllocSetContextCreate(CurrentMemoryContext,
												   "expanded Bloom filter",
												   ALLOCSET_START_SMALL_SIZES),
							 &view.params);
	builder = &expanded->batch.builder;
	pgbloom_check(bf_builder_merge(builder, &view), &builder->params,
				  &view.params);
	bf_builder_expect_probes(builder);
	return expanded;
}

/* Make an expanded copy of an image or of an expanded filter. */
static PgBloomExpanded *
expand_copy(Datum filter)
{
	struct varlena *image = PG_DETOAST_DATUM_PACKED(filter);
	PgBloomExpanded *expanded = expand_image(image);

	if ((Pointer) image != DatumGetPointer(filter))
		pfree(image);
	return expanded;
}

static PgBloomExpanded *
get_expanded(Datum filter)
{
	ExpandedObjectHeader *header;

	if (!VARATT_IS_EXTERNAL_EXPANDED(DatumGetPointer(filter)))
		return NULL;
	header = DatumGetEOHP(filter);
	return header->eoh_methods == &expanded_methods ?
		(PgBloomExpanded *) header : NULL;
}

/* The builder of an expanded filter; NULL for any other value. */
BfBuilder *
pgbloom_expanded(Datum filter)
{
	PgBloomExpanded *expanded = get_expanded(filter);

	return expanded == NULL ? NULL : pgbloom_batch_builder(&expanded->batch);
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

/* The builder and its batch, of an expanded filter that may be changed. */
PgBloomBatch *
pgbloom_expanded_batch(Datum filter)
{
	PgBloomExpanded *expanded;

	if (!VARATT_IS_EXTERNAL_EXPANDED_RW(DatumGetPointer(filter)))
		return NULL;
	expanded = get_expanded(filter);
	return expanded == NULL ? NULL : &expanded->batch;
}

/*
 * Should a function that adds to this filter return an expanded filter?  The
 * filter is its first argument, or an empty one instead of NULL.  It should if
 * it may change the filter.  It should also if the argument is a variable or
 * parameter, so that the next iteration of a loop finds an expanded filter.
 * Any other result goes into a row, where it would be flattened.
 */
bool
pgbloom_in_place(FunctionCallInfo fcinfo, Datum filter)
{
#ifdef PGBLOOM_MODIFY_IN_PLACE
	Node	   *call = fcinfo->flinfo->fn_expr;
	Node	   *argument;

	if (pgbloom_expanded_batch(filter) != NULL)
		return true;
	if (call == NULL || !IsA(call, FuncExpr) ||
		((FuncExpr *) call)->args == NIL)
		return false;
	argument = linitial(((FuncExpr *) call)->args);
	return IsA(argument, Param) &&
		((Param *) argument)->paramkind == PARAM_EXTERN;
#else
	(void) fcinfo;
	(void) filter;
	return false;
#endif
}

/* The filter itself, if it may be changed, else a copy that may be. */
Datum
pgbloom_writable(Datum filter)
{
	if (pgbloom_expanded_batch(filter) != NULL)
		return filter;
	return EOHPGetRWDatum(&expand_copy(filter)->header);
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
			if (!bf_builder_contains(builder, hashes[i]))
				nnew++;
		}
		if (nnew == 0)
			return filter;
		if (bf_builder_has_room(builder, nnew))
		{
			pgbloom_check(bf_builder_reserve(builder, nnew), &builder->params,
						  NULL);

			/* No error from here on, so that all keys are added, or none. */
			HOLD_INTERRUPTS();
			for (i = 0; i < n; i++)
			{
				/* The same key may occur more than once. */
				if (n == 1 || !bf_builder_contains(builder, hashes[i]))
					pgbloom_check(bf_builder_add(builder, hashes[i]),
								  &builder->params, NULL);
			}
			RESUME_INTERRUPTS();
			return filter;
		}
	}

	copy = expand_copy(filter);
	builder = &copy->batch.builder;
	pgbloom_check(bf_builder_set_key_type(builder, key_type),
				  &builder->params, NULL);
	for (i = 0; i < n; i++)
		pgbloom_check(bf_builder_add(builder, hashes[i]), &builder->params,
					  NULL);

	/* Sort and deduplicate hashes; convert to dense form if they are many. */
	pgbloom_check(bf_builder_plan(builder, &size), &builder->params, NULL);
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
