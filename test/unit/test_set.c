/*-------------------------------------------------------------------------
 *
 * test_set.c
 *	  Union and intersection: their laws, and that no key is ever lost.
 *
 *-------------------------------------------------------------------------
 */
#include "support.h"
#include "bits.h"

/* Keys of one set, from a first one on. */
typedef struct Range
{
	uint64_t	first;
	uint64_t	n;
	uint64_t	set;
} Range;

/* An image and the keys that are in it. */
typedef struct Member
{
	const char *name;
	double		fpp;
	uint64_t	expected;
	Range		keys;
	bool		compact;
	Image		image;
} Member;

/* All forms that a filter can have. */
static Member pool[] = {
	{"empty, unsized", 0.01, 0, {0, 0, 1}, false, {0}},
	{"empty, sized", 0.01, 1000, {0, 0, 1}, false, {0}},
	{"one key", 0.01, 0, {0, 1, 1}, false, {0}},
	{"list, unsized", 0.01, 0, {0, 100, 1}, false, {0}},
	{"longer list, unsized", 0.01, 0, {50, 2000, 1}, false, {0}},
	{"list, sized", 0.01, 1000, {0, 100, 1}, false, {0}},
	{"list, sized for more", 0.01, 5000, {500, 300, 2}, false, {0}},
	{"half full", 0.01, 1000, {0, 500, 1}, false, {0}},
	{"other half", 0.01, 1000, {500, 500, 1}, false, {0}},
	{"full", 0.01, 1000, {0, 1000, 1}, false, {0}},
	{"full of other keys", 0.01, 1000, {0, 1000, 2}, false, {0}},
	{"overfull", 0.01, 1000, {0, 4000, 1}, false, {0}},
	{"overfull of other keys", 0.01, 1000, {0, 5000, 2}, false, {0}},
	{"far too small", 0.1, 10, {0, 3000, 3}, false, {0}},
	{"stricter", 0.001, 1000, {0, 900, 1}, false, {0}},
	{"larger", 0.01, 5000, {0, 4000, 1}, false, {0}},
	{"compact, unsized", 0.01, 0, {0, 1000, 1}, true, {0}},
	{"larger compact, unsized", 0.01, 0, {0, 3000, 2}, true, {0}},
	{"folded", 0.01, 20000, {0, 900, 1}, true, {0}},
	{"grown and folded", 0.01, 100, {0, 600, 1}, true, {0}},
	{"lax and small", 0.4, 30, {0, 60, 4}, false, {0}},
	{"list, longer than others' layers", 0.01, 0, {0, 20000, 5}, false, {0}}
};

#define NPOOL	LENGTH(pool)

typedef BfStatus (*Operation) (BfBuilder *result, const BfEnv *env,
							   const BfView *x, const BfView *y);

static BfStatus
combine(Operation operation, Image *image, const Image *x, const Image *y)
{
	TestEnv		env;
	BfBuilder	b;
	BfStatus	status;

	env_init(&env, SIZE_MAX);
	status = operation(&b, &env.env, &x->view, &y->view);
	if (status == BF_OK && !image_write(image, &b, false))
		status = BF_CORRUPT;
	finish(&b, &env);
	return status;
}

static BfStatus
try_union(Image *image, const Image *x, const Image *y)
{
	return combine(bf_union, image, x, y);
}

static BfStatus
try_intersection(Image *image, const Image *x, const Image *y)
{
	return combine(bf_intersection, image, x, y);
}

static void
unite(Image *image, const Image *x, const Image *y)
{
	memset(image, 0, sizeof(*image));
	EQUAL(try_union(image, x, y), BF_OK);
}

/* Rejects each allocation of an operation: its status tells, and none leaks. */
static void
reject_allocations(Operation operation, const Image *x, const Image *y)
{
	TestEnv		env = {.allocations = 0};

	for (long fail_at = 1; env.allocations >= fail_at - 1 && fail_at < 100; fail_at++)
	{
		BfBuilder	b;
		BfStatus	status;

		env_init(&env, SIZE_MAX);
		env.fail_at = fail_at;
		status = operation(&b, &env.env, &x->view, &y->view);
		EQUAL(status, (env.allocations < fail_at ? BF_OK : BF_NO_MEMORY));
		finish(&b, &env);
	}
	HOLDS(env.allocations > 1 && env.allocations < 100);
}

static bool
has_range(const Image *image, const Range *keys)
{
	return image_has(image, keys->first, keys->n, keys->set);
}

static void
name_pair(const Member *x, const Member *y)
{
	forget_images(nkept);
	tap_case("\"%s\" and \"%s\"", x->name, y->name);
}

/*
 * Union commutes to the byte; a filter with itself and with an empty one is
 * that filter; what a union has already makes it no larger; it loses no key.
 */
static void
test_laws(void)
{
	const BfParams neutral = {.fpp = BF_FPP_DEFAULT};

	for (size_t i = 0; i < NPOOL; i++)
		for (size_t j = 0; j < NPOOL; j++)
		{
			const Member *x = &pool[i];
			const Member *y = &pool[j];
			const BfParams *px = &x->image.view.params;
			const BfParams *py = &y->image.view.params;
			TestEnv		env;
			BfBuilder	b;
			Image		xy,
						yx,
						again;

			name_pair(x, y);
			unite(&xy, &x->image, &y->image);
			unite(&yx, &y->image, &x->image);
			unite(&again, &xy, &y->image);
			HOLDS(image_equal(&xy, &yx));
			HOLDS(has_range(&xy, &x->keys) && has_range(&xy, &y->keys));
			HOLDS(has_range(&again, &x->keys) && has_range(&again, &y->keys));
			EQUAL(xy.view.params.fpp, fmin(px->fpp, py->fpp));
			EQUAL(xy.view.params.expected,
				  (px->expected > py->expected ? px->expected : py->expected));

			/* Worse than side by side it never gets, but for new layers. */
			HOLDS(bf_current_fpp(&xy.view) <= bf_current_fpp(&x->image.view) +
				  bf_current_fpp(&y->image.view) + 2.2 * fmax(x->fpp, y->fpp));

			HOLDS(xy.view.nlayers > 1 || image_equal(&xy, &again));
			if (x->fpp > 0.1)	/* adds keys that lax layers report */
				HOLDS(again.view.nlayers <= xy.view.nlayers + 1);
			else
			{
				EQUAL(again.view.nlayers, xy.view.nlayers);
				EQUAL(again.size, xy.size);
				EQUAL(bf_cardinality(&again.view), bf_cardinality(&xy.view));
			}
			if (i != j)
				continue;
			HOLDS(image_equal(&xy, &x->image));
			image_build(&again, x->fpp, px->expected, 0, 0, 1, false);
			unite(&xy, &x->image, &again);
			HOLDS(image_equal(&xy, &x->image));

			/* Whatever its parameters are, if the others are the default. */
			start_with(&b, &env, &neutral);
			image_write(&again, &b, false);
			finish(&b, &env);
			unite(&xy, &x->image, &again);
			unite(&yx, &again, &x->image);
			HOLDS(image_equal(&xy, &x->image) && image_equal(&yx, &x->image));
		}
}

/*
 * What a union tells of itself, its rate and its keys, is what it has: in all
 * mixtures, and above all where a list is longer than the layer it goes to.
 * The pool is built again from several sets of keys, as few blocks have a
 * rate of their own.
 */
static void
test_told(void)
{
	uint64_t	sets = scaled(8, 3);
	uint64_t	probes = scaled(20000, 5000);
	uint64_t	never_added = UINT64_C(1) << 40;

	for (size_t i = 0; i < NPOOL; i++)
		for (size_t j = 0; j < i; j++)
		{
			double		hits = 0,
						told = 0,
						keys = 0,
						estimate = 0;

			name_pair(&pool[i], &pool[j]);
			for (uint64_t set = 0; set < sets; set++)
			{
				const Member *m[] = {&pool[i], &pool[j]};
				Image		image[3];

				for (int side = 0; side < 2; side++)
					image_build(&image[side], m[side]->fpp, m[side]->expected,
								m[side]->keys.first, m[side]->keys.n,
								m[side]->keys.set + 100 * set + 10 * side,
								m[side]->compact);
				unite(&image[2], &image[0], &image[1]);
				hits += (double) count_hits(&image[2].view, never_added,
											probes, set);
				told += bf_current_fpp(&image[2].view) * (double) probes;
				keys += (double) (m[0]->keys.n + m[1]->keys.n);
				estimate += bf_cardinality(&image[2].view);
			}
			HOLDS(fabs(hits - told) < 0.1 * told + 4 * sqrt(told) + 1);

			/*
			 * Which keys never arrived at a layer is not known for sure, so
			 * this is a bound.
			 */
			HOLDS(estimate >= 0.97 * keys);
			HOLDS(estimate <= (pool[i].fpp > 0.1 || pool[j].fpp > 0.1
							   ? 1.5 : 1.25) * keys);
		}
}

/*
 * Within the design fill: three filters, united in any order and grouping,
 * are the filter of all their keys.
 */
static void
test_associative(void)
{
	static const struct
	{
		double		fpp;
		uint64_t	expected;
		uint64_t	n[3];		/* keys of each, from where the last ended */
		uint64_t	overlap;
	}			cases[] = {
		{0.01, 0, {10, 20, 30}, 0}, {0.01, 0, {1000, 1, 500}, 1},
		{0.01, 1000, {10, 20, 30}, 0}, {0.01, 1000, {100, 60, 20}, 5},
		{0.01, 1000, {70, 70, 70}, 0}, {0.01, 1000, {300, 300, 300}, 0},
		{0.01, 1000, {300, 10, 600}, 10}, {0.01, 1000, {1, 1, 950}, 0},
		{0.1, 100, {30, 30, 30}, 3}, {0.1, 10, {5, 4, 1}, 0},
		{1e-5, 20000, {9000, 8000, 4000}, 1000},
		{1e-3, 20000, {10, 19000, 900}, 0}, {1e-7, 300, {100, 100, 90}, 30}
	};
	static const int orders[][3] = {
		{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}
	};

	for (size_t c = 0; c < LENGTH(cases); c++)
	{
		Image		parts[3],
					all;
		uint64_t	first = 0;

		for (int i = 0; i < 3; i++)
		{
			image_build(&parts[i], cases[c].fpp, cases[c].expected, first,
						cases[c].n[i], 1, false);
			first += cases[c].n[i] - (i < 2 ? cases[c].overlap : 0);
		}
		image_build(&all, cases[c].fpp, cases[c].expected, 0, first, 1, false);
		tap_case("case %zu", c);
		HOLDS(all.view.nlayers < 2);
		for (size_t o = 0; o < LENGTH(orders); o++)
		{
			const int  *order = orders[o];
			Image		two,
						left,
						right;

			unite(&two, &parts[order[0]], &parts[order[1]]);
			unite(&left, &two, &parts[order[2]]);
			unite(&two, &parts[order[1]], &parts[order[2]]);
			unite(&right, &parts[order[0]], &two);
			HOLDS(image_equal(&left, &all));
			HOLDS(image_equal(&right, &all));
		}
	}
}

/* Whatever one builder holds in one layer, the union of its parts does. */
static void
test_fill_is_content(void)
{
	for (uint64_t set = 0; set < scaled(200, 40); set++)
	{
		const double fpp = set % 2 == 0 ? 0.01 : 1e-3;
		TestEnv		env;
		BfBuilder	b;
		Image		serial,
					halves[2],
					both;
		uint64_t	n;

		/* As many as one layer takes, to the last. */
		start(&b, &env, fpp, 200);
		for (n = 0; b.nlayers < 2; n++)
			add_keys(&b, n, 1, set);
		finish(&b, &env);
		n--;
		image_build(&serial, fpp, 200, 0, n, set, false);
		EQUAL(serial.view.nlayers, 1);

		for (uint64_t half = 0; half < 2; half++)
		{
			start(&b, &env, fpp, 200);
			for (uint64_t i = half; i < n; i += 2)
				add_keys(&b, i, 1, set);
			image_write(&halves[half], &b, false);
			finish(&b, &env);
		}
		unite(&both, &halves[0], &halves[1]);
		HOLDS(image_equal(&serial, &both));

		/* Nor does it depend on which key came last. */
		start(&b, &env, fpp, 200);
		for (uint64_t i = n; i > 0; i--)
			add_keys(&b, i - 1, 1, set);
		image_write(&both, &b, false);
		finish(&b, &env);
		HOLDS(image_equal(&serial, &both));
	}
}

/* Layers of equal geometry share bits where that keeps the rate, only there. */
static void
test_equal_geometries(void)
{
	Image		a,
				b,
				part,
				ab,
				abc;

	/* Two halves make one layer. */
	image_build(&a, 0.01, 10000, 0, 5000, 1, false);
	image_build(&b, 0.01, 10000, 0, 5000, 2, false);
	unite(&ab, &a, &b);
	HOLDS(ab.view.nlayers == 1 && bf_current_fpp(&ab.view) <= 0.011);

	/* Two of 7000 do not, and what they have together is told. */
	image_build(&a, 0.01, 10000, 0, 7000, 1, false);
	image_build(&b, 0.01, 10000, 0, 7000, 2, false);
	unite(&ab, &a, &b);
	EQUAL(ab.view.nlayers, 2);
	HOLDS(fabs(bf_current_fpp(&ab.view) - bf_current_fpp(&a.view) -
			   bf_current_fpp(&b.view)) < 1e-5);

	/* A part of either goes where it adds nothing. */
	image_build(&part, 0.01, 10000, 1000, 2500, 1, false);
	unite(&abc, &ab, &part);
	HOLDS(part.view.nlayers == 1 && image_equal(&abc, &ab));
	image_build(&part, 0.01, 10000, 1000, 2500, 2, false);
	unite(&abc, &part, &ab);
	HOLDS(part.view.nlayers == 1 && image_equal(&abc, &ab));

	/* Others go where there is room for them. */
	image_build(&part, 0.01, 10000, 0, 2500, 3, false);
	unite(&abc, &part, &ab);
	HOLDS(abc.view.nlayers == 2 && image_has(&abc, 0, 2500, 3));

	/* An overfull layer takes in what it has already. */
	image_build(&a, 0.01, 0, 0, 10000, 1, true);
	image_build(&b, 0.01, 0, 10000, 4000, 1, false);
	unite(&ab, &a, &b);
	HOLDS(a.view.nlayers == 1 && ab.view.nlayers == 2);
	HOLDS(image_has(&ab, 0, 14000, 1));
	image_build(&b, 0.01, 0, 0, 10000, 1, true);
	unite(&abc, &ab, &b);
	CHECK(image_equal(&abc, &ab), "an overfull layer is put next to itself");
}

/* After a union, a filter of small layers grows by one for what is expected. */
static void
test_growth_after_union(void)
{
	Image		small = built(0.01, 100, 0, 130, 1, false);
	Image		large = built(0.01, 1500, 0, 0, 1, false);
	TestEnv		env;
	BfBuilder	b;
	Image		image;
	BfGeometry	geometry;

	env_init(&env, SIZE_MAX);
	EQUAL(bf_union(&b, &env.env, &small.view, &large.view), BF_OK);
	add_keys(&b, 0, 1400, 2);
	image_write(&image, &b, false);
	finish(&b, &env);
	bf_geometry_for(small.view.layers[small.view.nlayers - 1].geometry.fpp / 2, false,
					1500, &geometry);
	geometry.generation = (uint8_t) small.view.nlayers;
	EQUAL(image.view.nlayers, small.view.nlayers + 1);
	HOLDS(bf_geometry_equal(&image.view.layers[image.view.nlayers -
											   1].geometry, &geometry));
	image_has(&image, 0, 130, 1);
	image_has(&image, 0, 1400, 2);

	/* A long list that comes makes one layer for itself, not ten. */
	image_build(&small, 0.1, 20, 0, 200, 1, false);
	image_build(&large, 0.1, 0, 0, 50000, 2, false);
	unite(&image, &small, &large);
	EQUAL(large.view.nlayers, 0);
	HOLDS(image.view.nlayers <= small.view.nlayers + 2);
	HOLDS(bf_current_fpp(&image.view) < 0.22);
	image_has(&image, 0, 200, 1);
	image_has(&image, 0, 50000, 2);
}

/* Full layers are side by side, and no key is lost. */
static void
test_side_by_side(void)
{
	for (int equal = 0; equal < 2; equal++)
	{
		Image		all = built(0.01, 100, 0, 100, 0, false);

		for (int i = 1; i < 70; i++)
		{
			Image		next,
						both,
						other;

			/* Full ones of equal geometry, or each of its own. */
			image_build(&next, 0.01, equal ? 100 : 100 + 60 * (uint64_t) i,
						0, equal ? 100 : 60 + 60 * (uint64_t) i,
						(uint64_t) i, false);
			EQUAL(next.view.nlayers, 1);
			unite(&both, &all, &next);
			unite(&other, &next, &all);
			HOLDS(image_equal(&both, &other));
			EQUAL(both.view.nlayers, i + 1);
			for (int j = 0; j <= i; j++)
				image_has(&both, 0, equal || j == 0 ? 100
						  : 60 + 60 * (uint64_t) j, (uint64_t) j);
			all = both;
		}
	}
}

/*
 * Merging into a builder, as an aggregate does: any of the forms after any
 * other, with keys added before, between and after.
 */
static void
test_mixtures(void)
{
	for (size_t i = 0; i < NPOOL; i++)
		for (size_t j = 0; j < NPOOL; j++)
		{
			TestEnv		env;
			BfBuilder	b;
			Image		image;

			name_pair(&pool[i], &pool[j]);
			start(&b, &env, 0.01, i % 3 == 0 ? 0 : 700 * (i % 3));
			add_keys(&b, 0, 40 * (j % 5), 90);
			merge(&b, &pool[i].image);
			add_keys(&b, 0, 300 * (i % 2), 91);
			merge(&b, &pool[j].image);
			add_keys(&b, 0, 500, 92);
			image_write(&image, &b, (i + j) % 2 == 0);
			HOLDS(image_has(&image, 0, 40 * (j % 5), 90));
			HOLDS(has_range(&image, &pool[i].keys));
			HOLDS(image_has(&image, 0, 300 * (i % 2), 91));
			HOLDS(has_range(&image, &pool[j].keys));
			HOLDS(image_has(&image, 0, 500, 92));
			finish(&b, &env);
		}
}

/* Other seeds and key types, and allocations that fail */
static void
test_rejected(void)
{
	const Operation operations[] = {bf_union, bf_intersection};

	for (int i = 0; i < 4; i++)
	{
		Operation	operation = operations[i / 2];
		Image		images[] = {
			built(0.01, 1000, 0, 50, 1, false),
			built(0.01, 1000, 0, 900, 1, false),
			built(0.01, 1000, 500, 1000, 1, false),
			built(0.01, 50, 0, 400, 3, false)
		};
		BfParams   *params = &images[2].view.params;
		const Image *x = &images[i % 2 ? 1 : 2];
		const Image *y = &images[i % 2 ? 2 : 1];
		Image		both;

		tap_case("operation %d, order %d", i / 2, i % 2);
		params->seed = 43;
		EQUAL(combine(operation, &both, x, y), BF_SEED_MISMATCH);
		params->seed = 42;
		params->key_type.code = BF_KEY_TEXT;
		EQUAL(combine(operation, &both, x, y), BF_KEY_TYPE_MISMATCH);

		/* A filter that has seen no key joins any key type. */
		params->key_type.code = BF_KEY_NONE;
		EQUAL(combine(operation, &both, x, y), BF_OK);
		EQUAL(both.view.params.key_type.code, BF_KEY_INTEGER);
		params->key_type.code = BF_KEY_INTEGER;
		for (int j = 0; j < 4; j++)
			for (int k = 0; k < 4; k++)
				if (operation == bf_union || (j == 1 && k == 2))
					reject_allocations(operation, &images[j], &images[k]);
	}
}

static BfStatus
count_common(const BfView *x, const BfView *y, double *n)
{
	const BfView *views[] = {x, y};
	int			pair[2];

	return bf_common_keys(&no_interrupts, 2, views, n, pair);
}

static double
common(const Image *x, const Image *y)
{
	TestEnv		env;
	double		n = -1;
	double		reverse = -2;
	BfStatus	status;

	env_init(&env, SIZE_MAX);
	status = count_common(&x->view, &y->view, &n);
	CHECK(status == BF_OK, "status %d", (int) status);
	status = count_common(&y->view, &x->view, &reverse);
	HOLDS(status == BF_OK && fabs(n - reverse) <= 1e-3 + 1e-6 * n);
	CHECK(env.allocations == 0, "%ld allocations", env.allocations);
	return n;
}

/* Is the number of blocks of one layer a multiple of the other's? */
static bool
bits_correspond(const Image *x, const Image *y)
{
	const BfGeometry *gx = &x->view.layers[0].geometry;
	const BfGeometry *gy = &y->view.layers[0].geometry;

	return x->view.nlayers == 1 && y->view.nlayers == 1 &&
		gx->block_log2 == gy->block_log2 && gx->k == gy->k &&
		gx->generation == gy->generation &&
		(gx->nblocks % gy->nblocks == 0 || gy->nblocks % gx->nblocks == 0);
}

static bool
has_no_key(const Image *x)
{
	for (int i = 0; i < x->view.nlayers; i++)
		if (x->view.layers[i].bits_set > 0)
			return false;
	return x->view.nhashes == 0;
}

static void
test_intersection(void)
{
	for (size_t i = 0; i < NPOOL; i++)
		for (size_t j = 0; j < NPOOL; j++)
		{
			const Member *x = &pool[i];
			const Member *y = &pool[j];
			bool		possible = x->image.view.nlayers == 0 ||
				y->image.view.nlayers == 0 ||
				bits_correspond(&x->image, &y->image) ||
				has_no_key(&x->image) || has_no_key(&y->image);
			Image		xy,
						yx;
			BfStatus	status;

			name_pair(x, y);
			status = try_intersection(&xy, &x->image, &y->image);
			EQUAL(status, (possible ? BF_OK : BF_GEOMETRY_MISMATCH));
			if (status != BF_OK)
				continue;
			EQUAL(try_intersection(&yx, &y->image, &x->image), BF_OK);
			HOLDS(image_equal(&xy, &yx));

			/* Every common key, and nothing that either one denies. */
			for (uint64_t k = 0; k < 5000; k++)
			{
				uint64_t	hash = key(k, x->keys.set);
				bool		in_x = k >= x->keys.first &&
					k - x->keys.first < x->keys.n;
				bool		in_y = y->keys.set == x->keys.set &&
					k >= y->keys.first && k - y->keys.first < y->keys.n;

				if (in_x && in_y)
					HOLDS(bf_contains(&xy.view, hash));

				/* A list that has turned dense may add false positives. */
				if (xy.view.nlayers == 0 && bf_contains(&xy.view, hash))
					HOLDS(bf_contains(&x->image.view, hash) &&
						  bf_contains(&y->image.view, hash));
			}
			EQUAL(xy.view.params.fpp, fmin(x->image.view.params.fpp,
										   y->image.view.params.fpp));
		}
}

/*
 * Layers of which one has three times the blocks of the other: the intersection
 * has the more blocks, every common key, and of the keys of one side no more
 * than the rate of the other.
 */
static void
test_intersection_of_sizes(void)
{
	static const uint32_t factors[] = {2, 3, 7};

	for (size_t i = 0; i < LENGTH(factors); i++)
	{
		Image		y = built(0.01, 1000, 0, 900, 1, false);
		BfGeometry	geometry;
		uint32_t	nblocks;
		uint64_t	expected = 1000;
		uint64_t	end = 400 + UINT64_C(900) * factors[i];
		Image		x,
					xy;
		long		only_x = 0,
					only_y = 0,
					neither = 0;

		nblocks = y.view.layers[0].geometry.nblocks * factors[i];
		do
			EQUAL(bf_geometry_for(0.01, false, ++expected, &geometry), BF_OK);
		while (geometry.nblocks < nblocks);
		image_build(&x, 0.01, expected, 400, end - 400, 1, false);
		HOLDS(x.view.layers[0].geometry.nblocks == nblocks &&
			  try_intersection(&xy, &y, &x) == BF_OK);
		CHECK(xy.view.layers[0].geometry.nblocks == nblocks, "blocks");
		for (uint64_t k = 0; k < 900; k++)
		{
			bool		found = bf_contains(&xy.view, key(k, 1));

			HOLDS(k < 400 || found);
			only_y += k < 400 && found;
		}
		for (uint64_t k = 900; k < end; k++)
			only_x += bf_contains(&xy.view, key(k, 1));
		for (uint64_t k = 10000; k < 30000; k++)
			neither += bf_contains(&xy.view, key(k, 1));
		HOLDS(only_y < 16 && only_x < (long) (end - 900) / 50 && neither < 20);
		CHECK(fabs(common(&x, &y) - 500) < 60, "%g in common", common(&x, &y));
	}
}

/* How many of the keys first to first + n - 1 of set 1 are found. */
static double
share_found(const Image *image, uint64_t first, uint64_t n)
{
	uint64_t	found = 0;

	for (uint64_t k = first; k < first + n; k++)
		found += bf_contains(&image->view, key(k, 1));
	return (double) found / (double) n;
}

/*
 * The rate that an intersection tells is that of keys of one side, also after
 * keys were added, after unions, and when it is compact.
 */
static void
test_intersection_rate(void)
{
	static const uint64_t sizes[][2] = {
		{20000, 20000}, {20000, 2000}, {2000, 20000}, {20000, 30}, {30, 20000},
		{5000, 5000}, {20000, 0}
	};

	for (size_t i = 0; i < LENGTH(sizes); i++)
	{
		uint64_t	nx = sizes[i][0];
		uint64_t	ny = sizes[i][1];
		TestEnv		env;
		Image		x,
					y,
					others,
					images[4];
		BfBuilder	b;

		image_build(&x, 0.01, 20000, 0, nx, 1, false);
		image_build(&y, 0.01, 20000, 100000, ny, 1, false);
		image_build(&others, 0.01, 20000, 0, 9000, 2, false);
		EQUAL(try_intersection(&images[0], &x, &y), BF_OK);
		HOLDS(bf_is_empty(&images[0].view) ||
			  bf_is_intersection(&images[0].view));

		/* With keys, with those of another filter, and compact */
		start_with(&b, &env, &images[0].view.params);
		bf_builder_merge(&b, &images[0].view);
		add_keys(&b, 0, 9000, 2);
		image_write(&images[1], &b, false);
		image_write(&images[2], &b, true);
		finish(&b, &env);
		unite(&images[3], &images[0], &others);

		for (int j = 0; j < 4; j++)
		{
			double		told = bf_current_fpp(&images[j].view);
			double		of_x = share_found(&images[j], 0, nx);
			double		of_y = ny > 0 ? share_found(&images[j], 100000, ny) : 0;
			double		absent = share_found(&images[j], 300000, 100000);
			double		error = 4 * sqrt(told / fmax(1, fmin(nx, ny)));

			HOLDS(of_x <= 1.1 * told + error && of_y <= 1.1 * told + error);
			HOLDS(absent <= 1.1 * told + 4 * sqrt(told / 100000));
			HOLDS(j > 0 ||
				  told <= 1.01 * fmax(bf_current_fpp(&x.view),
									  bf_current_fpp(&y.view)));
		}
	}
}

/*
 * A list of which the bits of another filter leave some hashes stays a list,
 * also when it is compact.  In bits of its own, these hashes would set none but
 * those of the other filter, whose keys would be found far too often.
 */
static void
test_intersection_rate_of_lists(void)
{
	static const uint64_t sizes[][2] = {{4800, 300}, {100000, 2000}, {1500, 1000}};

	for (size_t i = 0; i < LENGTH(sizes); i++)
	{
		uint64_t	nlist = sizes[i][0];
		uint64_t	nbits = sizes[i][1];
		TestEnv		env;
		Image		list,
					bits,
					both,
					smaller;
		BfBuilder	b;
		double		told;
		double		of_list;

		/* Half of the keys of the smallest ones are in both */
		image_build(&list, 0.1, 0, 0, nlist, 1, false);
		image_build(&bits, 0.1, nbits, nlist < 4 * nbits ? 1000 : nlist, nbits,
					1, false);
		EQUAL(try_intersection(&both, &list, &bits), BF_OK);
		start_with(&b, &env, &both.view.params);
		bf_builder_merge(&b, &both.view);
		image_write(&smaller, &b, true);
		finish(&b, &env);

		told = bf_current_fpp(&both.view);
		of_list = share_found(&both, 0, nlist < 4 * nbits ? 1000 : nlist);
		CHECK(list.view.nlayers == 0 && bits.view.nlayers == 1, "forms");
		HOLDS(of_list <= 1.2 * told + 0.01);
		HOLDS(told <= 1.01 * bf_current_fpp(&bits.view));
		EQUAL(share_found(&both, nlist, nbits / 2), 0);
		EQUAL(share_found(&smaller, nlist, nbits / 2), 0);
	}
}

/*
 * The keys that up to eight filters have in common, of equal and of unlike
 * sizes: within 3 % of the keys in any of them, and next to none if there are
 * none.
 */
static void
test_common_of_many(void)
{
	for (int n = 2; n <= BF_MAX_COMMON; n++)
		for (int sized = 0; sized <= 1; sized++)
		{
			Image		images[BF_MAX_COMMON];
			const BfView *views[BF_MAX_COMMON];
			double		found = -1;
			int			pair[2];

			for (int i = 0; i < n; i++)
			{
				/* Keys 0 to 19999, and up to 4900 others. */
				uint64_t	keys = 20000 + 700 * i;

				image_build(&images[i], 0.01, sized ? 26000 : keys, 0, keys,
							1, false);
				views[i] = &images[i].view;
			}
			EQUAL(bf_common_keys(&no_interrupts, n, views, &found, pair),
				  BF_OK);
			HOLDS(fabs(found - 20000) < 0.03 * (20000 + 700 * n));

			for (int i = 0; i < n; i++)
				image_build(&images[i], 0.01, sized ? 20000 : 20000 - 300 * i,
							100000 * i, 20000 - 300 * i, 1, false);
			EQUAL(bf_common_keys(&no_interrupts, n, views, &found, pair),
				  BF_OK);
			HOLDS(found < 0.01 * 20000 * n);
		}
}

/* Lists among the filters: exact if all are lists. */
static void
test_common_with_lists(void)
{
	Image		a = built(0.01, 0, 0, 1000, 1, false);
	Image		b = built(0.01, 0, 500, 1000, 1, false);
	Image		c = built(0.1, 30000, 700, 30000, 1, false);
	Image		d = built(0.1, 50000, 900, 50000, 1, false);
	const BfView *views[4];
	double		found;
	int			pair[2];

	views[0] = &a.view;
	views[1] = &b.view;
	EQUAL(bf_common_keys(&no_interrupts, 2, views, &found, pair), BF_OK);
	EQUAL(found, 500);
	views[2] = &c.view;
	EQUAL(bf_common_keys(&no_interrupts, 3, views, &found, pair), BF_OK);
	HOLDS(fabs(found - 300) < 30);
	views[1] = &d.view;
	EQUAL(bf_common_keys(&no_interrupts, 3, views, &found, pair), BF_OK);
	HOLDS(fabs(found - 100) < 60);
}

/* With a filter without keys, whatever its seed and size are. */
static void
test_intersection_empty(void)
{
	static const struct
	{
		double		fpp;
		uint64_t	expected;
		uint64_t	n;
	}			others[] = {{0.01, 0, 0}, {0.01, 0, 10}, {0.001, 500, 500}};
	Image		empty,
				other,
				xy,
				yx;

	for (size_t i = 0; i < LENGTH(others); i++)
	{
		image_build(&empty, 0.1, 1000, 0, 0, 1, false);
		image_build(&other, others[i].fpp, others[i].expected, 0, others[i].n, 1,
					false);
		empty.view.params.seed = 9;
		CHECK(try_intersection(&xy, &empty, &other) == BF_OK,
			  "empty first");
		CHECK(try_intersection(&yx, &other, &empty) == BF_OK,
			  "empty last");
		CHECK(image_equal(&xy, &yx), "the order changes bytes");
		CHECK(has_no_key(&xy), "it has keys");
		HOLDS(others[i].n == 0 ||
			  xy.view.params.seed == other.view.params.seed);
		CHECK(common(&empty, &other) == 0, "common keys");
		empty.view.params.key_type.code = BF_KEY_UUID;
		EQUAL(try_intersection(&xy, &empty, &other), BF_KEY_TYPE_MISMATCH);
	}
}

/*
 * The rate of an intersection is the lower one of both, also if the other
 * parameters are the default ones.
 */
static void
test_intersection_params(void)
{
	TestEnv		env;
	BfBuilder	b;
	BfParams	params = {.fpp = 0.02};
	const double fpp = BF_FPP_DEFAULT;
	uint64_t	bits;
	Image		x,
				y;

	start_with(&b, &env, &params);
	for (uint64_t i = 0; i < 2000; i++)
		EQUAL(bf_builder_add(&b, key(i, 1)), BF_OK);
	image_write(&x, &b, true);
	image_write(&y, &b, true);
	finish(&b, &env);
	memcpy(&bits, &fpp, sizeof(bits));
	for (uint64_t i = 0; i < sizeof(bits); i++) /* images are little-endian */
		y.bytes[28 + i] = (uint8_t) (bits >> 8 * i);
	CHECK(x.view.nlayers == 1 && image_open(&y), "two dense filters");
	for (int order = 0; order < 2; order++)
	{
		Image		xy;

		EQUAL(try_intersection(&xy, order ? &x : &y, order ? &y : &x),
			  BF_OK);
		CHECK(xy.view.params.fpp == fpp, "rate %g", xy.view.params.fpp);
	}
}

/*
 * The expected keys of a union are at most what its rate allows.  Where that
 * was the case before, merging another filter does not change the builder.
 */
static void
test_joined_params(void)
{
	Image		other = built(0.5, 1000000000, 0, 20, 1, false);
	TestEnv		env;
	BfBuilder	b;
	double		fpp = 1e-9;		/* literals may have a greater precision */
	uint64_t	max_keys = bf_max_keys(fpp);

	start(&b, &env, fpp, 1000);
	merge(&b, &other);
	HOLDS(b.params.expected == max_keys && b.params.fpp == fpp);
	bf_builder_keep_hashes(&b, true);
	HOLDS(bf_builder_merge(&b, &other.view) == BF_OK && b.keeps_hashes);
	finish(&b, &env);
}

/* A layer of another rate does not tell how many keys the filter can hold. */
static void
test_compact_params(void)
{
	Image		x = built(0.5, 80000, 0, 25000, 1, false);
	Image		y = built(1e-9, 10, 0, 1, 1, false);
	TestEnv		env;
	BfBuilder	b;
	Image		result;

	env_init(&env, SIZE_MAX);
	EQUAL(bf_union(&b, &env.env, &x.view, &y.view), BF_OK);
	image_write(&result, &b, true);
	HOLDS(result.size < x.size && result.view.nlayers == 1);
	EQUAL(result.view.params.expected, 80000);
	finish(&b, &env);
}

static void
test_intersection_cardinality(void)
{
	static const uint64_t shared[] = {0, 10, 1000, 5000, 9000, 10000};
	TestEnv		env;
	Image		x,
				y;
	double		n;

	for (size_t i = 0; i < LENGTH(shared); i++)
	{
		/* Bits and bits. */
		image_build(&x, 0.01, 20000, 0, 10000, 1, false);
		image_build(&y, 0.01, 20000, 10000 - shared[i], 10000, 1, false);
		n = common(&x, &y);
		HOLDS(fabs(n - (double) shared[i]) < 150);

		/* A list and bits. */
		image_build(&y, 0.01, 0, 10000 - shared[i], 10000, 1, false);
		n = common(&x, &y);
		HOLDS(fabs(n - (double) shared[i]) < 60);

		/* Two lists, exactly. */
		image_build(&x, 0.001, 0, 0, 10000, 1, false);
		n = common(&x, &y);
		EQUAL(n, (double) shared[i]);
	}

	/* Never less than none, nor more than either has. */
	image_build(&x, 0.1, 1000, 0, 1000, 1, false);
	for (size_t i = 0; i < 200; i++)
	{
		image_build(&y, 0.1, 1000, 0, 300 + 3 * i, 100 + i, false);
		n = common(&x, &y);
		HOLDS(n >= 0 && n <= bf_cardinality(&y.view));
	}
	CHECK(fabs(common(&x, &x) - bf_cardinality(&x.view)) < 1e-3,
		  "with itself");

	/* What cannot be told is not told. */
	env_init(&env, SIZE_MAX);
	image_build(&y, 0.05, 1000, 0, 1000, 1, false);
	EQUAL(count_common(&x.view, &y.view, &n), BF_GEOMETRY_MISMATCH);
	EQUAL(count_common(&y.view, &x.view, &n), BF_GEOMETRY_MISMATCH);
	image_build(&y, 0.1, 1000, 0, 1000, 1, false);
	y.view.params.seed++;
	EQUAL(count_common(&x.view, &y.view, &n), BF_SEED_MISMATCH);
	y.view.params.seed--;
	y.view.params.key_type.code = BF_KEY_UUID;
	EQUAL(count_common(&x.view, &y.view, &n), BF_KEY_TYPE_MISMATCH);
	y.view.params.key_type.code = BF_KEY_NONE;
	EQUAL(count_common(&x.view, &y.view, &n), BF_OK);
}

int
main(void)
{
	for (size_t i = 0; i < NPOOL; i++)
		image_build(&pool[i].image, pool[i].fpp, pool[i].expected,
					pool[i].keys.first, pool[i].keys.n, pool[i].keys.set,
					pool[i].compact);
	nkept = nimages;

	tap_run("union is commutative and idempotent, to the byte", test_laws);
	tap_run("union tells its rate and its keys", test_told);
	tap_run("union is associative within the design fill", test_associative);
	tap_run("whether a layer is full depends on its content alone",
			test_fill_is_content);
	tap_run("layers of equal geometry", test_equal_geometries);
	tap_run("growth after a union", test_growth_after_union);
	tap_run("many layers side by side", test_side_by_side);
	tap_run("no mixture of forms loses a key", test_mixtures);
	tap_run("other seeds and key types are rejected", test_rejected);
	tap_run("intersection holds every common key", test_intersection);
	tap_run("intersection of unlike sizes", test_intersection_of_sizes);
	tap_run("intersection with an empty filter", test_intersection_empty);
	tap_run("rate of an intersection", test_intersection_rate);
	tap_run("rate of an intersection of a list with bits",
			test_intersection_rate_of_lists);
	tap_run("common keys of many filters", test_common_of_many);
	tap_run("common keys of lists and bits", test_common_with_lists);
	tap_run("parameters of an intersection", test_intersection_params);
	tap_run("parameters of a union", test_joined_params);
	tap_run("parameters of a compact union", test_compact_params);
	tap_run("cardinality of an intersection", test_intersection_cardinality);

	return tap_done();
}
