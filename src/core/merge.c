/*-------------------------------------------------------------------------
 *
 * merge.c
 *	  Taking all keys of another filter into a builder.
 *
 * Filters of one seed and key type can be merged, whatever their other
 * parameters are.  Hashes are added as any others are.  Layers are ORed into
 * layers of equal geometry that have room for them, and are else put next to
 * the others.
 *
 *-------------------------------------------------------------------------
 */
#include "builder.h"

/* Are these the parameters of bloom_empty() without arguments? */
static bool
params_are_neutral(const BfParams *params)
{
	return params->fpp == BF_FPP_DEFAULT && params->expected == 0 &&
		params->seed == 0 && params->key_type.code == BF_KEY_NONE;
}

/*
 * Is this a filter without keys, and with default parameters?  Its union with
 * any other filter is the other filter.
 */
bool
bf_is_neutral(const BfView *view)
{
	return view->nlayers == 0 && view->nhashes == 0 &&
		params_are_neutral(&view->params);
}

/*
 * Join the parameters of another filter: the result has the lower rate and the
 * larger number of expected keys.  BF_SEED_MISMATCH or BF_KEY_TYPE_MISMATCH
 * if the two cannot be combined.
 *
 * The limits of a sparse filter follow from its parameters.  If it has to
 * become dense by those that it has had, that is done before they change, so
 * that it does not matter how long conversion was deferred, or whether at all.
 */
BfStatus
bf_builder_join_params(BfBuilder *b, const BfParams *params)
{
	BfParams	joined;
	uint64_t	max_keys;
	BfStatus	status;

	if (b->params.seed != params->seed)
		return BF_SEED_MISMATCH;
	status = bf_builder_set_key_type(b, &params->key_type);
	if (status != BF_OK)
		return status;
	if (b->params.fpp <= params->fpp && b->params.expected >= params->expected)
		return BF_OK;

	joined = b->params;
	if (joined.fpp > params->fpp)
		joined.fpp = params->fpp;
	if (joined.expected < params->expected)
		joined.expected = params->expected;
	max_keys = bf_max_keys(joined.fpp);
	if (joined.expected > max_keys)
		joined.expected = max_keys;
	if (joined.fpp == b->params.fpp && joined.expected == b->params.expected)
		return BF_OK;

	bf_builder_end_keep(b);
	status = bf_builder_sort_and_convert(b);
	if (status != BF_OK)
		return status;
	bf_builder_set_params(b, &joined);
	return BF_OK;
}

/*
 * Take in the layers of a dense filter, and add the hashes of the builder to
 * them, if it has some.  If it has no layers, those of the other filter keep
 * their order, so that an image that is loaded and written stays as it was, if
 * no two of its layers could have been one.
 */
static BfStatus
merge_layers(BfBuilder *b, const BfView *view)
{
	bool		had_layers = b->nlayers > 0;
	BfStatus	status = BF_OK;
	int			i;

	for (i = 0; status == BF_OK && i < view->nlayers; i++)
		status = bf_build_layers_take_in(b, &view->layers[i].geometry,
										 view->layers[i].bits,
										 view->layers[i].bits_set);
	if (status != BF_OK)
		return status;
	if (had_layers)
		bf_build_layers_sort(b);
	return bf_builder_flush_hashes(b);
}

/*
 * Take in all keys of another filter, which has to have the same seed and key
 * type (BF_SEED_MISMATCH, BF_KEY_TYPE_MISMATCH).  BF_NO_MEMORY, or
 * BF_TOO_LARGE if all layers together would be too large; these leave the
 * builder incomplete, as does a long jump.  An empty builder with default
 * parameters adopts those of the other filter.
 */
BfStatus
bf_builder_merge(BfBuilder *b, const BfView *view)
{
	BfStatus	status = BF_OK;

	if (b->incomplete)
		return BF_INCOMPLETE;
	if (bf_is_neutral(view))
		return BF_OK;
	if (b->nlayers == 0 && b->nhashes == 0 && params_are_neutral(&b->params))
		bf_builder_set_params(b, &view->params);

	/* The layers of others would make it too late to become dense. */
	if (view->nlayers > 0)
		bf_builder_end_keep(b);
	if (view->nlayers > 0 || bf_builder_must_convert(b, view->nhashes))
		status = bf_builder_sort_and_convert(b);
	if (status == BF_OK)
		status = bf_builder_join_params(b, &view->params);
	if (status != BF_OK)
		return status;

	b->incomplete = true;
	if (view->nlayers > 0)
		status = merge_layers(b, view);
	else if (view->nhashes > 0)
		status = bf_builder_add_list(b, view->hashes, view->nhashes);
	b->incomplete = status != BF_OK;
	bf_builder_sort_for_probes(b);
	return status;
}
