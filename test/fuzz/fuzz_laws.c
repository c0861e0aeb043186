/*-------------------------------------------------------------------------
 *
 * fuzz_laws.c
 *	  The laws of union and intersection, on filters that the input
 *	  describes.
 *
 * Union commutes to the byte, always; it is idempotent; it is associative
 * where parameters are equal and one layer holds all keys; it loses no key.
 * Intersection commutes to the byte, is idempotent and has every common key.
 *
 *-------------------------------------------------------------------------
 */
#include "bytes.h"
#include "fuzz.h"

#define NFILTERS	3
#define MEMORY		((size_t) 64 << 20)

static const double rates[] = {0.5, 0.1, 0.01, 0.001, 1e-4, 1e-7, 1e-9};

/* Keys are numbers from first to before end, of all that are to come. */
typedef struct Filter
{
	double		fpp;
	uint64_t	expected;
	uint32_t	first;
	uint32_t	end;
	bool		compact;
	Image		image;
} Filter;

static uint64_t
hash_of(uint32_t i)
{
	return bf_hash_u64(i, 7);
}

static void
read_filter(Input *input, Filter *filter)
{
	unsigned	flags = take(input);

	filter->fpp = rates[flags % 7];
	filter->compact = (flags & 0x80) != 0;
	filter->expected = take16(input);
	filter->first = take16(input) & 0x3FF;
	filter->end = filter->first + (take16(input) & 0x7FF);
}

static void
build(Filter *filter)
{
	TestEnv		env;
	BfBuilder	b;
	BfParams	params;
	uint32_t	i;

	memset(&params, 0, sizeof(params));
	params.fpp = filter->fpp;
	params.expected = filter->expected;
	params.key_type.code = BF_KEY_INTEGER;
	env_init(&env, MEMORY);
	bf_builder_init(&b, &env.env, &params);
	for (i = filter->first; i < filter->end; i++)
		DEMAND(bf_builder_add(&b, hash_of(i)) == BF_OK);
	DEMAND(image_write(&filter->image, &b, filter->compact) == BF_OK);
	finish(&b, &env);
}

static BfStatus
combine(Image *z, const Image *x, const Image *y, bool intersect)
{
	TestEnv		env;
	BfBuilder	b;
	BfStatus	status;

	env_init(&env, MEMORY);
	status = intersect ? bf_intersection(&b, &env.env, &x->view, &y->view) :
		bf_union(&b, &env.env, &x->view, &y->view);
	memset(z, 0, sizeof(*z));
	if (status == BF_OK)
		DEMAND(image_write(z, &b, false) == BF_OK);
	finish(&b, &env);
	return status;
}

static void
demand_keys(const Image *image, uint32_t first, uint32_t end)
{
	uint32_t	i;

	for (i = first; i < end; i++)
		DEMAND(bf_contains(&image->view, hash_of(i)));
}

static void
pair(const Filter *x, const Filter *y)
{
	Image		xy,
				yx,
				again;
	BfStatus	status;

	DEMAND(combine(&xy, &x->image, &y->image, false) == BF_OK);
	DEMAND(combine(&yx, &y->image, &x->image, false) == BF_OK);
	DEMAND(image_equal(&xy, &yx));
	demand_keys(&xy, x->first, x->end);
	demand_keys(&xy, y->first, y->end);

	/* What is in the union already changes nothing in it. */
	DEMAND(combine(&again, &xy, &xy, false) == BF_OK);
	DEMAND(image_equal(&again, &xy));
	image_free(&again);
	image_free(&xy);
	image_free(&yx);

	status = combine(&xy, &x->image, &y->image, true);
	DEMAND(combine(&yx, &y->image, &x->image, true) == status);
	DEMAND(status == BF_OK || status == BF_GEOMETRY_MISMATCH);
	if (status == BF_OK)
	{
		DEMAND(image_equal(&xy, &yx));
		demand_keys(&xy, x->first > y->first ? x->first : y->first,
					x->end < y->end ? x->end : y->end);

		/* The rate of a list adds up; it is a bound. */
		DEMAND(combine(&again, &xy, &xy, false) == BF_OK);
		DEMAND(xy.view.list_fpp > 0 || image_equal(&again, &xy));
		image_free(&again);
	}
	image_free(&xy);
	image_free(&yx);
}

static void
alone(const Filter *x)
{
	Image		with_itself;
	BfStatus	status;

	DEMAND(combine(&with_itself, &x->image, &x->image, false) == BF_OK);
	DEMAND(image_equal(&with_itself, &x->image));
	image_free(&with_itself);
	status = combine(&with_itself, &x->image, &x->image, true);
	DEMAND(status == (x->image.view.nlayers > 1 ? BF_GEOMETRY_MISMATCH : BF_OK));
	if (status == BF_OK)
		DEMAND(image_equal(&with_itself, &x->image));
	image_free(&with_itself);
}

static void
associate(const Filter *x, const Filter *y, const Filter *z)
{
	Image		xy,
				yz,
				left,
				right;
	bool		equal_params = x->fpp == y->fpp && y->fpp == z->fpp &&
		x->expected == y->expected && y->expected == z->expected &&
		!x->compact && !y->compact && !z->compact;
	uint64_t	keys = (uint64_t) (x->end - x->first) +
		(y->end - y->first) + (z->end - z->first);

	DEMAND(combine(&xy, &x->image, &y->image, false) == BF_OK);
	DEMAND(combine(&yz, &y->image, &z->image, false) == BF_OK);
	DEMAND(combine(&left, &xy, &z->image, false) == BF_OK);
	DEMAND(combine(&right, &x->image, &yz, false) == BF_OK);
	demand_keys(&left, x->first, x->end);
	demand_keys(&left, y->first, y->end);
	demand_keys(&left, z->first, z->end);
	demand_keys(&right, x->first, x->end);
	demand_keys(&right, y->first, y->end);
	demand_keys(&right, z->first, z->end);

	if (equal_params && (x->expected == 0 || keys <= x->expected))
	{
		DEMAND(left.view.nlayers <= 1);
		DEMAND(image_equal(&left, &right));
	}
	image_free(&xy);
	image_free(&yz);
	image_free(&left);
	image_free(&right);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Filter		filters[NFILTERS];
	Input		input;
	unsigned	mode;
	int			i,
				j;

	input.bytes = data;
	input.left = size;
	mode = take(&input);
	for (i = 0; i < NFILTERS; i++)
	{
		read_filter(&input, &filters[i]);
		if (i > 0 && mode & 1)
		{
			filters[i].fpp = filters[0].fpp;
			filters[i].expected = filters[0].expected;
		}
		if (mode & 2)
			filters[i].compact = false;
		build(&filters[i]);
	}
	for (i = 0; i < NFILTERS; i++)
	{
		alone(&filters[i]);
		for (j = 0; j < i; j++)
			pair(&filters[i], &filters[j]);
	}
	associate(&filters[0], &filters[1], &filters[2]);
	for (i = 0; i < NFILTERS; i++)
		image_free(&filters[i].image);
	return 0;
}
