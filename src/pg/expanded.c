/*-------------------------------------------------------------------------
 *
 * expanded.c
 *	  Filters in memory that are changed where they lie.
 *
 * A value of type bloom is an image, which a function that adds a key has to
 * copy.  In a loop of PL/pgSQL that says f := bloom_add(f, key), this is one
 * copy a turn.  From PostgreSQL 18 on, a function can get hold of the
 * variable itself, if its support function agrees and its value is an
 * expanded object (utils/expandeddatum.h).  Ours is a builder of the core in
 * a memory context of its own.
 *
 * Expanded filters come into being only where a variable or parameter is
 * added to, and never on earlier servers.  They go wherever values go, and
 * are flattened to their image by whatever fetches it.  Of the functions
 * that read, those which belong into a loop that adds look into the builder
 * instead.
 *
 * Nobody may notice any of this.  So a writable filter is left as it was if
 * an error comes up, and it has to write the same image as if it had been
 * copied with each change: what cannot be done in place takes the way that
 * plain values take, with a new object as the result.
 *
 *-------------------------------------------------------------------------
 */
#include "pg/pgbloom.h"

#include "nodes/primnodes.h"
#include "nodes/supportnodes.h"
#include "utils/expandeddatum.h"
#include "utils/memutils.h"

typedef struct PgBloomExpanded
{
	ExpandedObjectHeader header;
	BfBuilder	builder;		/* hashes distinct, layers only if too many */
} PgBloomExpanded;

PG_FUNCTION_INFO_V1(bloom_add_support);

static Size
get_flat_size(ExpandedObjectHeader *header)
{
	BfBuilder  *builder = &((PgBloomExpanded *) header)->builder;
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
	bf_builder_write(&((PgBloomExpanded *) header)->builder,
					 (uint8_t *) VARDATA(result));
}

static const ExpandedObjectMethods methods = {get_flat_size, flatten_into};

/* A new expanded filter with the content of a plain one. */
static PgBloomExpanded *
expand(const struct varlena *filter)
{
	MemoryContext context;
	PgBloomExpanded *expanded;
	BfEnv		env;
	BfView		view;

	pgbloom_open(filter, &view);
	context = AllocSetContextCreate(CurrentMemoryContext,
									"expanded Bloom filter",
									ALLOCSET_START_SMALL_SIZES);
	expanded = MemoryContextAlloc(context, sizeof(*expanded));
	EOH_init_header(&expanded->header, &methods, context);
	env = pgbloom_env(context);
	pgbloom_load(&expanded->builder, &env, &view);
	bf_builder_expect_probes(&expanded->builder);
	return expanded;
}

/* The same, of a filter of either form. */
static PgBloomExpanded *
expand_copy(Datum filter)
{
	struct varlena *image = PG_DETOAST_DATUM_PACKED(filter);
	PgBloomExpanded *expanded = expand(image);

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
	return header->eoh_methods == &methods ?
		(PgBloomExpanded *) header : NULL;
}

/*
 * The builder of an expanded filter, to ask it something, or NULL if this is
 * a plain one.
 */
BfBuilder *
pgbloom_expanded(Datum filter)
{
	PgBloomExpanded *expanded = get_expanded(filter);

	return expanded == NULL ? NULL : &expanded->builder;
}

static bool
is_writable(Datum filter)
{
	return VARATT_IS_EXTERNAL_EXPANDED_RW(DatumGetPointer(filter)) &&
		get_expanded(filter) != NULL;
}

/*
 * Should a function that adds to this filter, its first argument or an empty
 * one in place of NULL, return an expanded filter?  It should if it is given
 * one that it may change, or, so that there is one from the second turn of a
 * loop on, if it is given a variable.  Anywhere else the result goes into a
 * row, and would have to be flattened.
 */
bool
pgbloom_in_place(FunctionCallInfo fcinfo, Datum filter)
{
#ifdef PGBLOOM_MODIFY_IN_PLACE
	Node	   *call = fcinfo->flinfo->fn_expr;
	Node	   *argument;

	if (is_writable(filter))
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

/* The filter itself, if it is one that may be changed, or else a copy. */
Datum
pgbloom_writable(Datum filter)
{
	if (is_writable(filter))
		return filter;
	return EOHPGetRWDatum(&expand_copy(filter)->header);
}

/*
 * Add hashes of keys of one key type to a writable filter.
 */
Datum
pgbloom_add_hashes(Datum filter, const BfKeyType *key_type, const uint64 *hashes,
				   int n)
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
			for (i = 0; i < n; i++)
			{
				/* Several keys may repeat each other. */
				if (n == 1 || !bf_builder_contains(builder, hashes[i]))
					pgbloom_check(bf_builder_add(builder, hashes[i]),
								  &builder->params, NULL);
			}
			return filter;
		}
	}

	copy = expand_copy(filter);
	builder = &copy->builder;
	pgbloom_check(bf_builder_set_key_type(builder, key_type), &builder->params, NULL);
	for (i = 0; i < n; i++)
		pgbloom_check(bf_builder_add(builder, hashes[i]), &builder->params,
					  NULL);

	/* Sort hashes, drop the duplicates, become dense if it is time. */
	pgbloom_check(bf_builder_plan(builder, &size), &builder->params, NULL);
	return EOHPGetRWDatum(&copy->header);
}

/*
 * Support function of those that add to their first argument: PL/pgSQL may
 * hand out the variable that the result is assigned to.  The other arguments
 * are hashed before anything is changed, so they may refer to it as well.
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
