/*-------------------------------------------------------------------------
 *
 * options.c
 *	  The storage parameters of an index: fpp, expected, seed, and
 *	  rebuild_scale_factor.
 *
 *-------------------------------------------------------------------------
 */
#include "index/index.h"

#include "filter/filter.h"

#include <math.h>

#include "access/reloptions.h"
#include "tcop/pquery.h"
#include "utils/float.h"

#define REBUILD_SCALE_FACTOR	0.5

/* The seed is a bigint, for which PostgreSQL has no kind of parameter. */
static int64
parse_seed(const char *string)
{
	char	   *end;
	long long	seed;

	errno = 0;
	seed = strtoll(string, &end, 10);
	if (end == string || *end != '\0' || errno != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for storage parameter \"seed\": \"%s\"",
						string),
				 errdetail("The seed must be an integer of type bigint.")));
	return (int64) seed;
}

static void
validate_seed(const char *value)
{
	if (value != NULL)
		(void) parse_seed(value);
}

/*
 * Declare the parameters, once in each session.  Our own checks tell more about
 * values out of range.  NaN, which is no value for a parameter, says that
 * "expected" is not given.
 */
static relopt_kind
options_kind(void)
{
	static relopt_kind kind = 0;
	double		infinity = get_float8_infinity();

	if (kind != 0)
		return kind;
	kind = add_reloption_kind();
	add_real_reloption(kind, "fpp", "false-positive rate", BF_FPP_DEFAULT,
					   -infinity, infinity, AccessExclusiveLock);
	add_real_reloption(kind, "expected", "number of distinct keys",
					   get_float8_nan(), -infinity, infinity,
					   AccessExclusiveLock);
	add_string_reloption(kind, "seed", "seed of the key hash", NULL,
						 validate_seed, AccessExclusiveLock);
	add_real_reloption(kind, "rebuild_scale_factor",
					   "share of keys that are gone at which VACUUM rebuilds the index",
					   REBUILD_SCALE_FACTOR, -1, 1, ShareUpdateExclusiveLock);
	return kind;
}

/* Does a statement alter parameters of an index that need a REINDEX? */
static bool
alters_layers(const Node *statement)
{
	const AlterTableStmt *alter = (const AlterTableStmt *) statement;
	ListCell   *cell;
	ListCell   *parameter;

	if (statement == NULL || !IsA(statement, AlterTableStmt) ||
		alter->objtype != OBJECT_INDEX)
		return false;
	foreach(cell, alter->cmds)
	{
		AlterTableCmd *command = lfirst_node(AlterTableCmd, cell);

		if (command->subtype != AT_SetRelOptions &&
			command->subtype != AT_ResetRelOptions)
			continue;
		foreach(parameter, (List *) command->def)
		{
			if (strcmp(lfirst_node(DefElem, parameter)->defname,
					   "rebuild_scale_factor") != 0)
				return true;
		}
	}
	return false;
}

/* Check parameters that somebody gives to an index. */
static void
check_options(const BfiOptions *options)
{
	pgbloom_check_fpp(options->fpp, false);
	if (!isnan(options->expected))
	{
		pgbloom_check_index_expected(options->expected);
		bfi_check_size(options->fpp, (uint64) ceil(options->expected));
	}
	if (ActivePortal != NULL && list_length(ActivePortal->stmts) == 1 &&
		alters_layers(linitial_node(PlannedStmt,
									ActivePortal->stmts)->utilityStmt))
		ereport(NOTICE,
				(errmsg("\"fpp\", \"expected\" and \"seed\" of a Bloom filter index take effect at its next REINDEX")));
}

bytea *
bfi_options(Datum reloptions, bool validate)
{
	static const relopt_parse_elt elements[] = {
		{.optname = "fpp",
			.opttype = RELOPT_TYPE_REAL,
		.offset = offsetof(BfiOptions, fpp)},
		{.optname = "expected",
			.opttype = RELOPT_TYPE_REAL,
		.offset = offsetof(BfiOptions, expected)},
		{.optname = "seed",
			.opttype = RELOPT_TYPE_STRING,
		.offset = offsetof(BfiOptions, seed_offset)},
		{.optname = "rebuild_scale_factor",
			.opttype = RELOPT_TYPE_REAL,
		.offset = offsetof(BfiOptions, rebuild_scale_factor)}
	};
	BfiOptions *options;

	options = build_reloptions(reloptions, validate, options_kind(),
							   sizeof(BfiOptions), elements,
							   lengthof(elements));
	if (validate && options != NULL)
		check_options(options);
	return (bytea *) options;
}

/* The parameters of an index that is to be built. */
void
bfi_get_options(Relation index, BfiMeta *meta)
{
	BfiOptions *options = (BfiOptions *) index->rd_options;
	const char *seed = NULL;

	memset(meta, 0, sizeof(*meta));
	meta->fpp = BF_FPP_DEFAULT;
	meta->current.number = meta->last_set = 1;
	if (options == NULL)
		return;
	meta->fpp = options->fpp;
	if (!isnan(options->expected))
		meta->expected = (uint64) ceil(options->expected);
	if (options->seed_offset != 0)
		seed = (const char *) options + options->seed_offset;
	if (seed != NULL)
		meta->seed = (uint64) parse_seed(seed);
}

/*
 * The share of keys that are gone at which VACUUM rebuilds the index.  Below 0,
 * it never does.
 */
double
bfi_rebuild_scale_factor(Relation index)
{
	BfiOptions *options = (BfiOptions *) index->rd_options;

	return options == NULL ? REBUILD_SCALE_FACTOR :
		options->rebuild_scale_factor;
}
