/*-------------------------------------------------------------------------
 *
 * fuzz_layers.c
 *	  A filter that grows, changes its form, is written, read, compacted and
 *	  united in the order that the input says, next to a list of what is in
 *	  it.
 *
 *-------------------------------------------------------------------------
 */
#include "bytes.h"
#include "fuzz.h"

#define MEMORY			((size_t) 64 << 20)
#define MAX_KEYS		4000
#define MAX_STEPS		60

static const double rates[] = {0.5, 0.3, 0.1, 0.01, 0.001, 1e-5, 1e-9};

static TestEnv env;
static BfBuilder b;
static uint64_t keys[MAX_KEYS];
static uint32_t nkeys;
static uint64_t remaining;		/* number of the next key */

static void
demand_all(const BfView *view)
{
	uint32_t	i;

	for (i = 0; i < nkeys; i++)
		DEMAND(bf_contains(view, keys[i]));
}

/* Returns false after the allocation that was made to fail. */
static bool
went_well(BfStatus status)
{
	if (status == BF_NO_MEMORY)
	{
		DEMAND(env.fail_at > 0 && env.allocations >= env.fail_at);
		return false;
	}
	DEMAND(status == BF_OK);
	return true;
}

static bool
add_some(uint32_t n, bool scattered)
{
	uint32_t	i;

	for (i = 0; i < n && nkeys < MAX_KEYS; i++, remaining++)
	{
		uint64_t	hash = scattered ? bf_hash_u64(remaining, 5) : remaining;
		bool		room = bf_builder_has_room(&b, 1);
		int			nlayers = b.nlayers;

		if (!went_well(bf_builder_add(&b, hash)))
			return false;
		DEMAND(!room || b.nlayers == nlayers || nlayers == 0);
		keys[nkeys++] = hash;
	}
	return true;
}

/* Unite with another filter, of which the rates may be others. */
static bool
merge(const BfParams *params, uint32_t n)
{
	TestEnv		other_env;
	BfBuilder	other;
	Image		image;
	uint32_t	i;
	bool		well;

	if (nkeys + n > MAX_KEYS)
		return true;
	env_init(&other_env, MEMORY);
	bf_builder_init(&other, &other_env.env, params);
	for (i = 0; i < n; i++)
		DEMAND(bf_builder_add(&other, bf_hash_u64(remaining + i, 5)) == BF_OK);
	DEMAND(image_write(&image, &other, n & 1) == BF_OK);
	well = went_well(bf_builder_merge(&b, &image.view));
	for (i = 0; well && i < n; i++)
		keys[nkeys++] = bf_hash_u64(remaining++, 5);
	image_free(&image);
	finish(&other, &other_env);
	return well;
}

/* Write, and go on with what was written. */
static bool
reload(bool compact)
{
	BfStatus	status;
	BfParams	params;
	Image		image,
				again;

	if (!went_well(image_write(&image, &b, compact)))
		return false;
	demand_all(&image.view);
	bf_builder_free(&b);
	DEMAND(env.outstanding == 0);
	params = image.view.params;
	bf_builder_init(&b, &env.env, &params);
	status = bf_builder_merge(&b, &image.view);
	if (went_well(status) &&
		went_well(status = image_write(&again, &b, false)))
	{
		DEMAND(image_equal(&image, &again));
		demand_all(&again.view);
		image_free(&again);
	}
	image_free(&image);
	return status == BF_OK;
}

static bool
step(Input *input)
{
	unsigned	what = take(input);
	unsigned	n = take(input);
	BfParams	params = b.params;

	switch (what % 9)
	{
		case 0:
			return add_some(n, true);
		case 1:
			return add_some(8 * n, true);
		case 2:
			return add_some(n, false);
		case 3:
			return reload(false);
		case 4:
			return reload(true);
		case 5:
			return merge(&params, n);
		case 6:
			params.fpp = rates[n % 7];
			params.expected = n;
			return merge(&params, 4 * n);
		case 7:
			env.allocations = 0;
			env.fail_at = n;
			return true;
		default:
			return nkeys == 0 ||
				bf_builder_contains(&b, keys[n % nkeys]) ||
				(DEMAND(!"a key is lost"), false);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	BfParams	params;
	Input		input;
	Image		image;
	bool		well = true;
	bool		grown_alone = true;
	int			i;

	input.bytes = data;
	input.left = size;
	memset(&params, 0, sizeof(params));
	params.fpp = rates[take(&input) % 7];
	params.expected = take(&input);
	nkeys = 0;
	remaining = 0;
	env_init(&env, MEMORY);
	bf_builder_init(&b, &env.env, &params);
	if (size % 2 == 0)
		bf_builder_expect_probes(&b);
	for (i = 0; well && input.left > 0 && i < MAX_STEPS; i++)
	{
		unsigned	what = input.bytes[0] % 9;

		grown_alone &= what < 2 || what == 3 || what == 8;
		well = step(&input);
		DEMAND(b.nlayers <= BF_MAX_LAYERS);
	}

	/* Whatever went wrong was memory, and takes nothing with it. */
	if (well && went_well(image_write(&image, &b, false)))
	{
		demand_all(&image.view);

		/*
		 * Growth keeps the rate below twice the requested one, but for what
		 * the bits of a layer may exceed their mean by.
		 */
		if (grown_alone)
			DEMAND(bf_current_fpp(&image.view) < 2.2 * params.fpp);
		image_free(&image);
	}
	finish(&b, &env);
	return 0;
}
