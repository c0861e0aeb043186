/*-------------------------------------------------------------------------
 *
 * test_set.c
 *	  Union and intersection: their laws, and that no key is ever lost.
 *
 *-------------------------------------------------------------------------
 */
#include "support.h"
#include "bits.h"

#define LENGTH(array)	(sizeof(array) / sizeof((array)[0]))

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

/* Returns whether the union came about; its image is to be freed then. */
static BfStatus
try_union(Image *image, const Image *x, const Image *y)
{
	TestEnv		env;
	BfBuilder	b;
	BfStatus	status;

	env_init(&env, SIZE_MAX);
	status = bf_union(&b, &env.env, &x->view, &y->view);
	if (status == BF_OK && !image_write(image, &b, false))
		status = BF_CORRUPT;
	finish(&b, &env);
	return status;
}

static bool
unite(Image *image, const Image *x, const Image *y)
{
	BfStatus	status = try_union(image, x, y);

	return CHECK(status == BF_OK, "union: status %d", (int) status);
}

static bool
has_range(const Image *image, const Range *keys)
{
	return image_has(image, keys->first, keys->n, keys->set);
}

static void
test_commutative(void)
{
	size_t		i,
				j;

	for (i = 0; i < NPOOL; i++)
	{
		for (j = 0; j <= i; j++)
		{
			const Member *x = &pool[i];
			const Member *y = &pool[j];
			Image		xy,
						yx;
			double		rate,
						sum;

			if (!unite(&xy, &x->image, &y->image) ||
				!unite(&yx, &y->image, &x->image))
				continue;
			CHECK(image_equal(&xy, &yx),
				  "\"%s\" and \"%s\": the order changes bytes", x->name,
				  y->name);
			CHECK(has_range(&xy, &x->keys) && has_range(&xy, &y->keys),
				  "of \"%s\" and \"%s\"", x->name, y->name);
			CHECK(xy.view.params.fpp ==
				  fmin(x->image.view.params.fpp, y->image.view.params.fpp) &&
				  xy.view.params.expected ==
				  (x->image.view.params.expected >
				   y->image.view.params.expected
				   ? x->image.view.params.expected
				   : y->image.view.params.expected),
				  "\"%s\" and \"%s\" record fpp %g, expected %llu", x->name,
				  y->name, xy.view.params.fpp,
				  (unsigned long long) xy.view.params.expected);

			/* Worse than side by side it never gets, but for new layers. */
			rate = bf_current_fpp(&xy.view);
			sum = bf_current_fpp(&x->image.view) +
				bf_current_fpp(&y->image.view);
			CHECK(rate <= sum + 2.2 * fmax(x->fpp, y->fpp),
				  "\"%s\" and \"%s\": rate %g, side by side %g", x->name,
				  y->name, rate, sum);
			image_free(&xy);
			image_free(&yx);
		}
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
	size_t		i,
				j;

	for (i = 0; i < NPOOL; i++)
	{
		for (j = 0; j < i; j++)
		{
			double		hits = 0,
						told = 0,
						keys = 0,
						estimate = 0;
			uint64_t	set;

			for (set = 0; set < sets; set++)
			{
				const Member *m[] = {&pool[i], &pool[j]};
				Image		image[3];
				int			side;

				for (side = 0; side < 2; side++)
					image_build(&image[side], m[side]->fpp, m[side]->expected,
								m[side]->keys.first, m[side]->keys.n,
								m[side]->keys.set + 100 * set + 10 * side,
								m[side]->compact);
				if (!unite(&image[2], &image[0], &image[1]))
					return;
				hits += (double) count_hits(&image[2].view, never_added,
											probes, set);
				told += bf_current_fpp(&image[2].view) * (double) probes;
				keys += (double) (m[0]->keys.n + m[1]->keys.n);
				estimate += bf_cardinality(&image[2].view);
				for (side = 0; side < 3; side++)
					image_free(&image[side]);
			}
			CHECK(fabs(hits - told) < 0.1 * told + 4 * sqrt(told) + 1,
				  "\"%s\" and \"%s\": %.0f hits, bf_current_fpp tells %.1f",
				  pool[i].name, pool[j].name, hits, told);

			/*
			 * Which keys never arrived at a layer is not known for sure, so
			 * this is a bound.
			 */
			CHECK(estimate >= 0.97 * keys && estimate <=
				  (pool[i].fpp > 0.1 || pool[j].fpp > 0.1 ? 1.5 : 1.25) * keys,
				  "\"%s\" and \"%s\": %.0f keys, estimated as %.0f",
				  pool[i].name, pool[j].name, keys, estimate);
		}
	}
}

/* To the byte, also for layers that have grown, in growth or side by side. */
static void
test_idempotent(void)
{
	size_t		i,
				j;

	for (i = 0; i < NPOOL; i++)
	{
		Image		twice;

		if (!unite(&twice, &pool[i].image, &pool[i].image))
			continue;
		CHECK(image_equal(&twice, &pool[i].image),
			  "\"%s\" with itself has other bytes", pool[i].name);
		image_free(&twice);

		for (j = 0; j < NPOOL; j++)
		{
			Image		once;

			if (!unite(&once, &pool[i].image, &pool[j].image) ||
				!unite(&twice, &once, &pool[j].image))
				continue;
			CHECK(has_range(&twice, &pool[i].keys) &&
				  has_range(&twice, &pool[j].keys),
				  "\"%s\" and \"%s\" and that again", pool[i].name,
				  pool[j].name);
			if (pool[i].fpp > 0.1)	/* adds keys that lax layers report */
				CHECK(twice.view.nlayers <= once.view.nlayers + 1, "%s",
					  pool[j].name);
			else
				CHECK(twice.view.nlayers == once.view.nlayers &&
					  twice.size == once.size &&
					  bf_cardinality(&twice.view) == bf_cardinality(&once.view),
				  "\"%s\" and \"%s\" and that again: %zu bytes, not %zu",
				  pool[i].name, pool[j].name, twice.size, once.size);
			if (once.view.nlayers < 2)
				CHECK(image_equal(&once, &twice),
					  "\"%s\" and \"%s\" and that again: other bytes",
					  pool[i].name, pool[j].name);
			image_free(&once);
			image_free(&twice);
		}
	}
}

static void
test_neutral(void)
{
	size_t		i;

	for (i = 0; i < NPOOL; i++)
	{
		const Member *x = &pool[i];
		Image		empty,
					both;

		if (!image_build(&empty, x->fpp, x->image.view.params.expected, 0, 0,
						 1, false))
			continue;
		if (unite(&both, &x->image, &empty))
			CHECK(image_equal(&both, &x->image),
				  "\"%s\" and nothing have other bytes", x->name);
		image_free(&both);
		image_free(&empty);
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
	size_t		c,
				o;
	int			i;

	for (c = 0; c < LENGTH(cases); c++)
	{
		Image		parts[3],
					all;
		uint64_t	first = 0;

		for (i = 0; i < 3; i++)
		{
			image_build(&parts[i], cases[c].fpp, cases[c].expected, first,
						cases[c].n[i], 1, false);
			first += cases[c].n[i] - (i < 2 ? cases[c].overlap : 0);
		}
		image_build(&all, cases[c].fpp, cases[c].expected, 0, first, 1,
					false);
		CHECK(all.view.nlayers < 2, "case %zu is overfull", c);
		for (o = 0; o < LENGTH(orders); o++)
		{
			const int  *order = orders[o];
			Image		two,
						left,
						right;

			unite(&two, &parts[order[0]], &parts[order[1]]);
			unite(&left, &two, &parts[order[2]]);
			image_free(&two);
			unite(&two, &parts[order[1]], &parts[order[2]]);
			unite(&right, &parts[order[0]], &two);
			image_free(&two);
			CHECK(image_equal(&left, &all), "case %zu, order %zu, from left",
				  c, o);
			CHECK(image_equal(&right, &all),
				  "case %zu, order %zu, from right", c, o);
			image_free(&left);
			image_free(&right);
		}
		for (i = 0; i < 3; i++)
			image_free(&parts[i]);
		image_free(&all);
	}
}

/* Whatever one builder holds in one layer, the union of its parts does. */
static void
test_fill_is_content(void)
{
	uint64_t	set;

	for (set = 0; set < scaled(200, 40); set++)
	{
		const double fpp = set % 2 == 0 ? 0.01 : 1e-3;
		TestEnv		env;
		BfBuilder	b;
		Image		serial,
					even,
					odd,
					both;
		uint64_t	n,
					i;

		/* As many as one layer takes, to the last. */
		start(&b, &env, fpp, 200);
		for (n = 0; b.nlayers < 2; n++)
			add_keys(&b, n, 1, set);
		finish(&b, &env);
		n--;
		image_build(&serial, fpp, 200, 0, n, set, false);
		CHECK(serial.view.nlayers == 1, "%d layers", serial.view.nlayers);

		start(&b, &env, fpp, 200);
		for (i = 0; i < n; i += 2)
			add_keys(&b, i, 1, set);
		image_write(&even, &b, false);
		finish(&b, &env);
		start(&b, &env, fpp, 200);
		for (i = 1; i < n; i += 2)
			add_keys(&b, i, 1, set);
		image_write(&odd, &b, false);
		finish(&b, &env);

		if (unite(&both, &even, &odd))
			CHECK(image_equal(&serial, &both),
				  "set %llu: %llu keys in one layer, united in %d",
				  (unsigned long long) set, (unsigned long long) n,
				  both.view.nlayers);
		image_free(&both);

		/* Nor does it depend on which key came last. */
		start(&b, &env, fpp, 200);
		for (i = n; i > 0; i--)
			add_keys(&b, i - 1, 1, set);
		image_write(&both, &b, false);
		finish(&b, &env);
		CHECK(image_equal(&serial, &both),
			  "set %llu: %llu keys in one layer, backwards in %d",
			  (unsigned long long) set, (unsigned long long) n,
			  both.view.nlayers);
		image_free(&both);
		image_free(&serial);
		image_free(&even);
		image_free(&odd);
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
	CHECK(ab.view.nlayers == 1 && bf_current_fpp(&ab.view) <= 0.011,
		  "%d layers, rate %g", ab.view.nlayers, bf_current_fpp(&ab.view));
	image_free(&a);
	image_free(&b);
	image_free(&ab);

	/* Two of 7000 do not, and what they have together is told. */
	image_build(&a, 0.01, 10000, 0, 7000, 1, false);
	image_build(&b, 0.01, 10000, 0, 7000, 2, false);
	unite(&ab, &a, &b);
	CHECK(ab.view.nlayers == 2, "%d layers", ab.view.nlayers);
	CHECK(fabs(bf_current_fpp(&ab.view) - bf_current_fpp(&a.view) -
			   bf_current_fpp(&b.view)) < 1e-5, "rate %g, of its parts %g %g",
		  bf_current_fpp(&ab.view), bf_current_fpp(&a.view),
		  bf_current_fpp(&b.view));

	/* A part of either goes where it adds nothing. */
	image_build(&part, 0.01, 10000, 1000, 2500, 1, false);
	unite(&abc, &ab, &part);
	CHECK(part.view.nlayers == 1 && image_equal(&abc, &ab),
		  "a part of the first leaves bits elsewhere");
	image_free(&part);
	image_free(&abc);
	image_build(&part, 0.01, 10000, 1000, 2500, 2, false);
	unite(&abc, &part, &ab);
	CHECK(part.view.nlayers == 1 && image_equal(&abc, &ab),
		  "a part of the second leaves bits elsewhere");
	image_free(&part);
	image_free(&abc);

	/* Others go where there is room for them. */
	image_build(&part, 0.01, 10000, 0, 2500, 3, false);
	unite(&abc, &part, &ab);
	CHECK(abc.view.nlayers == 2 && image_has(&abc, 0, 2500, 3),
		  "%d layers", abc.view.nlayers);
	image_free(&part);
	image_free(&abc);
	image_free(&a);
	image_free(&b);
	image_free(&ab);

	/* An overfull layer takes in what it has already. */
	image_build(&a, 0.01, 0, 0, 10000, 1, true);
	image_build(&b, 0.01, 0, 10000, 4000, 1, false);
	unite(&ab, &a, &b);
	CHECK(a.view.nlayers == 1 && ab.view.nlayers == 2 &&
		  image_has(&ab, 0, 14000, 1), "%d layers", ab.view.nlayers);
	image_free(&b);
	image_build(&b, 0.01, 0, 0, 10000, 1, true);
	unite(&abc, &ab, &b);
	CHECK(image_equal(&abc, &ab), "an overfull layer is put next to itself");
	image_free(&a);
	image_free(&b);
	image_free(&ab);
	image_free(&abc);
}

/* After a union, a filter of small layers grows by one for what is expected. */
static void
test_growth_after_union(void)
{
	TestEnv		env;
	BfBuilder	b;
	Image		small,
				large,
				image;
	BfGeometry	geometry;

	image_build(&small, 0.01, 100, 0, 130, 1, false);
	image_build(&large, 0.01, 1500, 0, 0, 1, false);
	env_init(&env, SIZE_MAX);
	CHECK(bf_union(&b, &env.env, &small.view, &large.view) == BF_OK,
		  "union");
	add_keys(&b, 0, 1400, 2);
	image_write(&image, &b, false);
	finish(&b, &env);
	bf_geometry_for(small.view.layers[small.view.nlayers - 1].geometry.fpp / 2, false,
					1500, &geometry);
	geometry.generation = (uint8_t) small.view.nlayers;
	CHECK(image.view.nlayers == small.view.nlayers + 1 &&
		  bf_geometry_equal(&image.view.layers[image.view.nlayers - 1].geometry,
							&geometry), "%d layers, the last of %u blocks",
		  image.view.nlayers,
		  image.view.layers[image.view.nlayers - 1].geometry.nblocks);
	image_has(&image, 0, 130, 1);
	image_has(&image, 0, 1400, 2);
	image_free(&small);
	image_free(&large);
	image_free(&image);

	/* A long list that comes makes one layer for itself, not ten. */
	image_build(&small, 0.1, 20, 0, 200, 1, false);
	image_build(&large, 0.1, 0, 0, 50000, 2, false);
	unite(&image, &small, &large);
	CHECK(large.view.nlayers == 0 &&
		  image.view.nlayers <= small.view.nlayers + 2, "%d layers",
		  image.view.nlayers);
	CHECK(bf_current_fpp(&image.view) < 0.22, "rate %g",
		  bf_current_fpp(&image.view));
	image_has(&image, 0, 200, 1);
	image_has(&image, 0, 50000, 2);
	image_free(&small);
	image_free(&large);
	image_free(&image);
}

/* Full layers are side by side, and no key is lost. */
static void
test_side_by_side(void)
{
	int			equal,
				i,
				j;

	for (equal = 0; equal < 2; equal++)
	{
		Image		all;

		image_build(&all, 0.01, 100, 0, 100, 0, false);
		for (i = 1; i < 70; i++)
		{
			Image		next,
						both,
						other;

			/* Full ones of equal geometry, or each of its own. */
			image_build(&next, 0.01, equal ? 100 : 100 + 60 * (uint64_t) i,
						0, equal ? 100 : 60 + 60 * (uint64_t) i,
						(uint64_t) i, false);
			CHECK(next.view.nlayers == 1, "%d layers", next.view.nlayers);
			unite(&both, &all, &next);
			unite(&other, &next, &all);
			CHECK(image_equal(&both, &other), "union %d depends on the order",
				  i);
			CHECK(both.view.nlayers == i + 1, "union %d: %d layers", i,
				  both.view.nlayers);
			for (j = 0; j <= i; j++)
				image_has(&both, 0, equal || j == 0 ? 100
						  : 60 + 60 * (uint64_t) j, (uint64_t) j);
			image_free(&all);
			image_free(&next);
			image_free(&other);
			all = both;
		}
		image_free(&all);
	}
}

/*
 * Merging into a builder, as an aggregate does: any of the forms after any
 * other, with keys added before, between and after.
 */
static void
test_mixtures(void)
{
	size_t		i,
				j;

	for (i = 0; i < NPOOL; i++)
	{
		for (j = 0; j < NPOOL; j++)
		{
			TestEnv		env;
			BfBuilder	b;
			Image		image;
			BfStatus	status;

			start(&b, &env, 0.01, i % 3 == 0 ? 0 : 700 * (i % 3));
			add_keys(&b, 0, 40 * (j % 5), 90);
			status = bf_builder_merge(&b, &pool[i].image.view);
			CHECK(status == BF_OK, "status %d", (int) status);
			add_keys(&b, 0, 300 * (i % 2), 91);
			status = bf_builder_merge(&b, &pool[j].image.view);
			CHECK(status == BF_OK, "status %d", (int) status);
			add_keys(&b, 0, 500, 92);
			if (image_write(&image, &b, (i + j) % 2 == 0))
			{
				CHECK(image_has(&image, 0, 40 * (j % 5), 90) &&
					  has_range(&image, &pool[i].keys) &&
					  image_has(&image, 0, 300 * (i % 2), 91) &&
					  has_range(&image, &pool[j].keys) &&
					  image_has(&image, 0, 500, 92),
					  "after \"%s\" and \"%s\"", pool[i].name, pool[j].name);
			}
			image_free(&image);
			finish(&b, &env);
		}
	}
}

/* Filters of all forms, one after the other. */
static void
test_many_unions(void)
{
	uint64_t	state = 8;
	Range		keys[80];
	Image		all;
	int			i,
				j;

	image_build(&all, 0.01, 0, 0, 0, 0, false);
	for (i = 0; i < 80; i++)
	{
		static const uint64_t expected[] = {0, 100, 1000, 3000};
		Image		next,
					both;

		keys[i].first = 0;
		keys[i].n = random64(&state) % 4000;
		keys[i].set = 1000 + (uint64_t) i;
		image_build(&next, 0.01, expected[i % 4], 0, keys[i].n, keys[i].set,
					false);
		unite(&both, &all, &next);
		image_free(&next);
		image_free(&all);
		all = both;
		for (j = 0; j <= i; j++)
			has_range(&all, &keys[j]);
	}
	CHECK(all.view.nlayers > 32, "%d layers", all.view.nlayers);
	image_free(&all);
}

static void
test_rejected(void)
{
	Image		x,
				y;
	Image		none;

	image_build(&x, 0.01, 0, 0, 50, 1, false);
	image_build(&y, 0.01, 1000, 0, 500, 1, false);
	y.view.params.seed = 43;
	CHECK(try_union(&none, &x, &y) == BF_SEED_MISMATCH, "other seed");
	CHECK(try_union(&none, &y, &x) == BF_SEED_MISMATCH, "other seed");
	y.view.params.seed = 42;
	y.view.params.key_type.code = BF_KEY_TEXT;
	CHECK(try_union(&none, &x, &y) == BF_KEY_TYPE_MISMATCH, "other key type");
	CHECK(try_union(&none, &y, &x) == BF_KEY_TYPE_MISMATCH, "other key type");

	/* A filter that has seen no key joins any key type. */
	y.view.params.key_type.code = BF_KEY_NONE;
	if (CHECK(try_union(&none, &x, &y) == BF_OK, "no key type"))
	{
		CHECK(none.view.params.key_type.code == BF_KEY_INTEGER,
			  "the key type is lost");
		image_free(&none);
	}
	if (CHECK(try_union(&none, &y, &x) == BF_OK, "no key type"))
	{
		CHECK(none.view.params.key_type.code == BF_KEY_INTEGER,
			  "the key type is lost");
		image_free(&none);
	}
	image_free(&x);
	image_free(&y);
}

static BfStatus
try_intersection(Image *image, const Image *x, const Image *y)
{
	TestEnv		env;
	BfBuilder	b;
	BfStatus	status;

	env_init(&env, SIZE_MAX);
	status = bf_intersection(&b, &env.env, &x->view, &y->view);
	if (status == BF_OK && !image_write(image, &b, false))
		status = BF_CORRUPT;
	finish(&b, &env);
	return status;
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
	CHECK(status == BF_OK && fabs(n - reverse) <= 1e-3 + 1e-6 * n,
		  "%.9g, the other way round %.9g", n, reverse);
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
	int			i;

	for (i = 0; i < x->view.nlayers; i++)
	{
		if (x->view.layers[i].bits_set > 0)
			return false;
	}
	return x->view.nhashes == 0;
}

static void
test_intersection(void)
{
	size_t		i,
				j;
	uint64_t	k;

	for (i = 0; i < NPOOL; i++)
	{
		for (j = 0; j < NPOOL; j++)
		{
			const Member *x = &pool[i];
			const Member *y = &pool[j];
			bool		possible = x->image.view.nlayers == 0 ||
				y->image.view.nlayers == 0 ||
				bits_correspond(&x->image, &y->image) ||
				has_no_key(&x->image) || has_no_key(&y->image);
			Image		xy,
						yx;
			BfStatus	status = try_intersection(&xy, &x->image, &y->image);

			if (!CHECK(status == (possible ? BF_OK : BF_GEOMETRY_MISMATCH),
					   "\"%s\" and \"%s\": status %d", x->name, y->name,
					   (int) status) || status != BF_OK)
				continue;
			if (CHECK(try_intersection(&yx, &y->image, &x->image) == BF_OK,
					  "the other way round"))
			{
				CHECK(image_equal(&xy, &yx),
					  "\"%s\" and \"%s\": the order changes bytes", x->name,
					  y->name);
				image_free(&yx);
			}

			/* Every common key, and nothing that either one denies. */
			for (k = 0; k < 5000; k++)
			{
				uint64_t	hash = key(k, x->keys.set);
				bool		in_x = k >= x->keys.first &&
					k - x->keys.first < x->keys.n;
				bool		in_y = y->keys.set == x->keys.set &&
					k >= y->keys.first && k - y->keys.first < y->keys.n;

				if (in_x && in_y)
					CHECK(bf_contains(&xy.view, hash),
						  "\"%s\" and \"%s\": common key %llu is lost",
						  x->name, y->name, (unsigned long long) k);

				/* A list that has turned dense may add false positives. */
				if (xy.view.nlayers == 0 && bf_contains(&xy.view, hash))
					CHECK(bf_contains(&x->image.view, hash) &&
						  bf_contains(&y->image.view, hash),
						  "\"%s\" and \"%s\": key %llu is in one only",
						  x->name, y->name, (unsigned long long) k);
			}
			CHECK(xy.view.params.fpp == fmin(x->image.view.params.fpp,
											 y->image.view.params.fpp),
				  "\"%s\" and \"%s\" record fpp %g", x->name, y->name,
				  xy.view.params.fpp);
			image_free(&xy);
		}
	}
}

/* The bits of two layers of one geometry: those that are set in both. */
static void
test_intersection_bits(void)
{
	Image		x,
				y,
				xy;
	size_t		size,
				i;

	image_build(&x, 0.01, 3000, 0, 2000, 1, false);
	image_build(&y, 0.01, 3000, 1000, 2000, 1, false);
	if (CHECK(try_intersection(&xy, &x, &y) == BF_OK, "intersection"))
	{
		size = bf_geometry_size(&x.view.layers[0].geometry);
		for (i = 0; i < size; i++)
			CHECK(xy.view.layers[0].bits[i] ==
				  (x.view.layers[0].bits[i] & y.view.layers[0].bits[i]),
				  "byte %zu", i);
		image_free(&xy);
	}
	image_free(&x);
	image_free(&y);
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
	size_t		i;

	for (i = 0; i < LENGTH(factors); i++)
	{
		BfGeometry	geometry;
		uint32_t	nblocks;
		uint64_t	expected = 1000;
		uint64_t	end = 400 + UINT64_C(900) * factors[i];
		uint64_t	k;
		Image		x,
					y,
					xy;
		long		only_x = 0,
					only_y = 0,
					neither = 0;

		image_build(&y, 0.01, 1000, 0, 900, 1, false);
		nblocks = y.view.layers[0].geometry.nblocks * factors[i];
		do
			CHECK(bf_geometry_for(0.01, false, ++expected, &geometry) == BF_OK,
				  "geometry");
		while (geometry.nblocks < nblocks);
		image_build(&x, 0.01, expected, 400, end - 400, 1, false);
		if (!CHECK(x.view.layers[0].geometry.nblocks == nblocks &&
				   try_intersection(&xy, &y, &x) == BF_OK,
				   "%u times as many blocks", factors[i]))
			continue;
		CHECK(xy.view.layers[0].geometry.nblocks == nblocks, "blocks");
		for (k = 0; k < 900; k++)
		{
			bool		found = bf_contains(&xy.view, key(k, 1));

			CHECK(k < 400 || found, "key %llu is lost",
				  (unsigned long long) k);
			only_y += k < 400 && found;
		}
		for (k = 900; k < end; k++)
			only_x += bf_contains(&xy.view, key(k, 1));
		for (k = 10000; k < 30000; k++)
			neither += bf_contains(&xy.view, key(k, 1));
		CHECK(only_y < 16 && only_x < (long) (end - 900) / 50 &&
			  neither < 20,
			  "false positives: %ld of 400, %ld of %llu, %ld of 20000", only_y,
			  only_x, (unsigned long long) end - 900, neither);
		CHECK(fabs(common(&x, &y) - 500) < 60, "%g in common", common(&x, &y));
		image_free(&x);
		image_free(&y);
		image_free(&xy);
	}
}

/* How many of the keys first to first + n - 1 of set 1 are found. */
static double
share_found(const Image *image, uint64_t first, uint64_t n)
{
	uint64_t	found = 0;
	uint64_t	k;

	for (k = first; k < first + n; k++)
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
	size_t		i;

	for (i = 0; i < LENGTH(sizes); i++)
	{
		uint64_t	nx = sizes[i][0];
		uint64_t	ny = sizes[i][1];
		TestEnv		env;
		Image		x,
					y,
					others,
					images[4];
		BfBuilder	b;
		int			j;

		image_build(&x, 0.01, 20000, 0, nx, 1, false);
		image_build(&y, 0.01, 20000, 100000, ny, 1, false);
		image_build(&others, 0.01, 20000, 0, 9000, 2, false);
		if (!CHECK(try_intersection(&images[0], &x, &y) == BF_OK, "status"))
			continue;
		CHECK(bf_is_empty(&images[0].view) ||
			  bf_is_intersection(&images[0].view), "not an intersection");

		/* With keys, with those of another filter, and compact */
		env_init(&env, SIZE_MAX);
		bf_builder_init(&b, &env.env, &images[0].view.params);
		bf_builder_merge(&b, &images[0].view);
		add_keys(&b, 0, 9000, 2);
		image_write(&images[1], &b, false);
		image_write(&images[2], &b, true);
		finish(&b, &env);
		unite(&images[3], &images[0], &others);

		for (j = 0; j < 4; j++)
		{
			double		told = bf_current_fpp(&images[j].view);
			double		of_x = share_found(&images[j], 0, nx);
			double		of_y = ny > 0 ? share_found(&images[j], 100000, ny) : 0;
			double		absent = share_found(&images[j], 300000, 100000);
			double		error = 4 * sqrt(told / fmax(1, fmin(nx, ny)));

			CHECK(of_x <= 1.1 * told + error && of_y <= 1.1 * told + error &&
				  absent <= 1.1 * told + 4 * sqrt(told / 100000),
				  "%llu and %llu keys, case %d: told %g, found %g, %g, %g",
				  (unsigned long long) nx, (unsigned long long) ny, j, told,
				  of_x, of_y, absent);
			CHECK(j > 0 || told <= 1.01 * fmax(bf_current_fpp(&x.view),
											   bf_current_fpp(&y.view)),
				  "told %g", told);
			image_free(&images[j]);
		}
		image_free(&x);
		image_free(&y);
		image_free(&others);
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
	size_t		i;

	for (i = 0; i < LENGTH(sizes); i++)
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
		if (!CHECK(try_intersection(&both, &list, &bits) == BF_OK, "status"))
			continue;
		env_init(&env, SIZE_MAX);
		bf_builder_init(&b, &env.env, &both.view.params);
		bf_builder_merge(&b, &both.view);
		image_write(&smaller, &b, true);
		finish(&b, &env);

		told = bf_current_fpp(&both.view);
		of_list = share_found(&both, 0, nlist < 4 * nbits ? 1000 : nlist);
		CHECK(list.view.nlayers == 0 && bits.view.nlayers == 1, "forms");
		CHECK(of_list <= 1.2 * told + 0.01 &&
			  told <= 1.01 * bf_current_fpp(&bits.view),
			  "told %g, found %g", told, of_list);
		CHECK(share_found(&both, nlist, nbits / 2) == 0 &&
			  share_found(&smaller, nlist, nbits / 2) == 0,
			  "found %g, compact %g of the keys of the bits",
			  share_found(&both, nlist, nbits / 2),
			  share_found(&smaller, nlist, nbits / 2));
		image_free(&list);
		image_free(&bits);
		image_free(&both);
		image_free(&smaller);
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
	int			n;
	int			sized;

	for (n = 2; n <= BF_MAX_COMMON; n++)
	{
		for (sized = 0; sized <= 1; sized++)
		{
			Image		images[BF_MAX_COMMON];
			const BfView *views[BF_MAX_COMMON];
			double		found = -1;
			int			pair[2];
			int			i;

			for (i = 0; i < n; i++)
			{
				/* Keys 0 to 19999, and up to 4900 others. */
				uint64_t	keys = 20000 + 700 * i;

				image_build(&images[i], 0.01, sized ? 26000 : keys, 0, keys,
							1, false);
				views[i] = &images[i].view;
			}
			CHECK(bf_common_keys(&no_interrupts, n, views, &found, pair) ==
				  BF_OK && fabs(found - 20000) < 0.03 * (20000 + 700 * n),
				  "%d filters: 20000 in common, found %g", n, found);
			for (i = 0; i < n; i++)
				image_free(&images[i]);

			for (i = 0; i < n; i++)
				image_build(&images[i], 0.01, sized ? 20000 : 20000 - 300 * i,
							100000 * i, 20000 - 300 * i, 1, false);
			CHECK(bf_common_keys(&no_interrupts, n, views, &found, pair) ==
				  BF_OK && found < 0.01 * 20000 * n,
				  "%d filters: none in common, found %g", n, found);
			for (i = 0; i < n; i++)
				image_free(&images[i]);
		}
	}
}

/* Lists among the filters: exact if all are lists. */
static void
test_common_with_lists(void)
{
	Image		a,
				b,
				c,
				d;
	const BfView *views[4];
	double		found;
	int			pair[2];

	image_build(&a, 0.01, 0, 0, 1000, 1, false);
	image_build(&b, 0.01, 0, 500, 1000, 1, false);
	image_build(&c, 0.1, 30000, 700, 30000, 1, false);
	image_build(&d, 0.1, 50000, 900, 50000, 1, false);
	views[0] = &a.view;
	views[1] = &b.view;
	CHECK(bf_common_keys(&no_interrupts, 2, views, &found, pair) == BF_OK &&
		  found == 500, "two lists: 500 in common, found %g", found);
	views[2] = &c.view;
	CHECK(bf_common_keys(&no_interrupts, 3, views, &found, pair) == BF_OK &&
		  fabs(found - 300) < 30, "and bits: 300 in common, found %g", found);
	views[1] = &d.view;
	CHECK(bf_common_keys(&no_interrupts, 3, views, &found, pair) == BF_OK &&
		  fabs(found - 100) < 60,
		  "a list and bits: 100 in common, found %g", found);
	image_free(&a);
	image_free(&b);
	image_free(&c);
	image_free(&d);
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
	size_t		i;

	for (i = 0; i < LENGTH(others); i++)
	{
		image_build(&empty, 0.1, 1000, 0, 0, 1, false);
		image_build(&other, others[i].fpp, others[i].expected, 0, others[i].n, 1,
					false);
		empty.view.params.seed = 9;
		if (!CHECK(try_intersection(&xy, &empty, &other) == BF_OK, "empty first"))
			continue;
		if (!CHECK(try_intersection(&yx, &other, &empty) == BF_OK, "empty last"))
			continue;
		CHECK(image_equal(&xy, &yx), "the order changes bytes");
		CHECK(has_no_key(&xy), "it has keys");
		CHECK(others[i].n == 0 ||
			  xy.view.params.seed == other.view.params.seed,
			  "it does not have the seed of the filter with keys");
		CHECK(common(&empty, &other) == 0, "common keys");
		empty.view.params.key_type.code = BF_KEY_UUID;
		CHECK(try_intersection(&xy, &empty, &other) == BF_KEY_TYPE_MISMATCH,
			  "another key type");
		image_free(&empty);
		image_free(&other);
		image_free(&xy);
		image_free(&yx);
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
	uint64_t	i;
	int			order;

	env_init(&env, SIZE_MAX);
	bf_builder_init(&b, &env.env, &params);
	for (i = 0; i < 2000; i++)
		CHECK(bf_builder_add(&b, key(i, 1)) == BF_OK, "key");
	image_write(&x, &b, true);
	image_write(&y, &b, true);
	finish(&b, &env);
	memcpy(&bits, &fpp, sizeof(bits));
	for (i = 0; i < sizeof(bits); i++)	/* images are little-endian */
		y.bytes[28 + i] = (uint8_t) (bits >> 8 * i);
	CHECK(x.view.nlayers == 1 && image_open(&y), "two dense filters");
	for (order = 0; order < 2; order++)
	{
		Image		xy;

		if (!CHECK(try_intersection(&xy, order ? &x : &y,
									order ? &y : &x) == BF_OK, "intersection"))
			continue;
		CHECK(xy.view.params.fpp == fpp, "rate %g", xy.view.params.fpp);
		image_free(&xy);
	}
	image_free(&x);
	image_free(&y);
}

/*
 * The expected keys of a union are at most what its rate allows.  Where that
 * was the case before, merging another filter does not change the builder.
 */
static void
test_joined_params(void)
{
	TestEnv		env;
	BfBuilder	b;
	Image		other;
	double		fpp = 1e-9;		/* literals may have a greater precision */
	uint64_t	max_keys = bf_max_keys(fpp);

	image_build(&other, 0.5, 1000000000, 0, 20, 1, false);
	start(&b, &env, fpp, 1000);
	CHECK(bf_builder_merge(&b, &other.view) == BF_OK &&
		  b.params.expected == max_keys && b.params.fpp == fpp,
		  "expected %llu", (unsigned long long) b.params.expected);
	bf_builder_keep_hashes(&b, true);
	CHECK(bf_builder_merge(&b, &other.view) == BF_OK && b.keeps_hashes,
		  "the parameters are joined again");
	finish(&b, &env);
	image_free(&other);
}

/* A layer of another rate does not tell how many keys the filter can hold. */
static void
test_compact_params(void)
{
	TestEnv		env;
	BfBuilder	b;
	Image		x,
				y,
				result;

	image_build(&x, 0.5, 80000, 0, 25000, 1, false);
	image_build(&y, 1e-9, 10, 0, 1, 1, false);
	env_init(&env, SIZE_MAX);
	CHECK(bf_union(&b, &env.env, &x.view, &y.view) == BF_OK, "union");
	image_write(&result, &b, true);
	CHECK(result.size < x.size && result.view.nlayers == 1 &&
		  result.view.params.expected == 80000,
		  "%zu bytes, expected %llu", result.size,
		  (unsigned long long) result.view.params.expected);
	finish(&b, &env);
	image_free(&x);
	image_free(&y);
	image_free(&result);
}

static void
test_intersection_cardinality(void)
{
	static const uint64_t shared[] = {0, 10, 1000, 5000, 9000, 10000};
	TestEnv		env;
	Image		x,
				y;
	double		n;
	size_t		i;

	for (i = 0; i < LENGTH(shared); i++)
	{
		/* Bits and bits. */
		image_build(&x, 0.01, 20000, 0, 10000, 1, false);
		image_build(&y, 0.01, 20000, 10000 - shared[i], 10000, 1, false);
		n = common(&x, &y);
		CHECK(fabs(n - (double) shared[i]) < 150,
			  "%llu of 10000 in common, estimated as %g",
			  (unsigned long long) shared[i], n);
		image_free(&y);

		/* A list and bits. */
		image_build(&y, 0.01, 0, 10000 - shared[i], 10000, 1, false);
		n = common(&x, &y);
		CHECK(fabs(n - (double) shared[i]) < 60,
			  "list and bits: %llu of 10000 in common, estimated as %g",
			  (unsigned long long) shared[i], n);
		image_free(&x);

		/* Two lists, exactly. */
		image_build(&x, 0.001, 0, 0, 10000, 1, false);
		n = common(&x, &y);
		CHECK(n == (double) shared[i], "lists: %llu in common, found %g",
			  (unsigned long long) shared[i], n);
		image_free(&x);
		image_free(&y);
	}

	/* Never less than none, nor more than either has. */
	image_build(&x, 0.1, 1000, 0, 1000, 1, false);
	for (i = 0; i < 200; i++)
	{
		image_build(&y, 0.1, 1000, 0, 300 + 3 * i, 100 + i, false);
		n = common(&x, &y);
		CHECK(n >= 0 && n <= bf_cardinality(&y.view),
			  "%g of %g keys in common", n, bf_cardinality(&y.view));
		image_free(&y);
	}
	CHECK(fabs(common(&x, &x) - bf_cardinality(&x.view)) < 1e-3, "with itself");

	/* What cannot be told is not told. */
	env_init(&env, SIZE_MAX);
	image_build(&y, 0.05, 1000, 0, 1000, 1, false);
	CHECK(count_common(&x.view, &y.view, &n) ==
		  BF_GEOMETRY_MISMATCH, "another geometry");
	CHECK(count_common(&y.view, &x.view, &n) ==
		  BF_GEOMETRY_MISMATCH, "another geometry first");
	image_free(&y);
	image_build(&y, 0.1, 1000, 0, 1000, 1, false);
	y.view.params.seed++;
	CHECK(count_common(&x.view, &y.view, &n) ==
		  BF_SEED_MISMATCH, "another seed");
	y.view.params.seed--;
	y.view.params.key_type.code = BF_KEY_UUID;
	CHECK(count_common(&x.view, &y.view, &n) ==
		  BF_KEY_TYPE_MISMATCH, "another key type");
	y.view.params.key_type.code = BF_KEY_NONE;
	CHECK(count_common(&x.view, &y.view, &n) ==
		  BF_OK, "no key type");
	image_free(&x);
	image_free(&y);
}

static void
test_intersection_rejected(void)
{
	Image		x,
				y,
				none;
	TestEnv		env;
	BfBuilder	b;
	BfStatus	status;
	long		fail_at = 0;

	image_build(&x, 0.01, 1000, 0, 1000, 1, false);
	image_build(&y, 0.01, 1000, 500, 1000, 1, false);
	y.view.params.seed = 43;
	CHECK(try_intersection(&none, &x, &y) == BF_SEED_MISMATCH, "other seed");
	y.view.params.seed = 42;
	y.view.params.key_type.code = BF_KEY_TEXT;
	CHECK(try_intersection(&none, &x, &y) == BF_KEY_TYPE_MISMATCH, "other key type");
	y.view.params.key_type.code = BF_KEY_INTEGER;
	do
	{
		env_init(&env, SIZE_MAX);
		env.fail_at = ++fail_at;
		status = bf_intersection(&b, &env.env, &x.view, &y.view);
		CHECK(status == (env.allocations < fail_at ? BF_OK : BF_NO_MEMORY),
			  "allocation %ld failed: status %d", fail_at, (int) status);
		bf_builder_free(&b);
		CHECK(env.outstanding == 0, "allocation %ld failed: %ld leaked",
			  fail_at, env.outstanding);
	} while (status != BF_OK && fail_at < 100);
	CHECK(fail_at > 2, "%ld allocations", fail_at - 1);
	image_free(&x);
	image_free(&y);
}

/* Every allocation of a union, rejected: its status tells, and none leaks. */
static void
test_union_no_memory(void)
{
	Image		sparse,
				dense,
				layers;
	const Image *pairs[][2] = {
		{&sparse, &sparse}, {&sparse, &dense}, {&dense, &dense},
		{&dense, &layers}, {&layers, &sparse}
	};
	size_t		i;

	image_build(&sparse, 0.01, 1000, 0, 90, 1, false);
	image_build(&dense, 0.01, 1000, 0, 900, 2, false);
	image_build(&layers, 0.01, 50, 0, 400, 3, false);
	for (i = 0; i < LENGTH(pairs); i++)
	{
		long		fail_at = 0;
		BfStatus	status;

		do
		{
			TestEnv		env;
			BfBuilder	b;

			env_init(&env, SIZE_MAX);
			env.fail_at = ++fail_at;
			status = bf_union(&b, &env.env, &pairs[i][0]->view,
							  &pairs[i][1]->view);
			CHECK(status ==
				  (env.allocations < fail_at ? BF_OK : BF_NO_MEMORY),
				  "pair %d, allocation %ld failed: status %d", (int) i,
				  fail_at, (int) status);
			finish(&b, &env);
		} while (status != BF_OK && fail_at < 100);
		CHECK(fail_at > 2, "pair %d: %ld allocations", (int) i, fail_at - 1);
	}
	image_free(&sparse);
	image_free(&dense);
	image_free(&layers);
}

int
main(void)
{
	size_t		i;

	for (i = 0; i < NPOOL; i++)
	{
		if (!image_build(&pool[i].image, pool[i].fpp, pool[i].expected,
						 pool[i].keys.first, pool[i].keys.n,
						 pool[i].keys.set, pool[i].compact))
		{
			printf("Bail out! no filter \"%s\"\n", pool[i].name);
			return EXIT_FAILURE;
		}
	}

	tap_run("union is commutative, to the byte, always", test_commutative);
	tap_run("union tells its rate and its keys", test_told);
	tap_run("union is idempotent", test_idempotent);
	tap_run("union with an empty filter changes nothing", test_neutral);
	tap_run("union is associative within the design fill", test_associative);
	tap_run("whether a layer is full depends on its content alone",
			test_fill_is_content);
	tap_run("layers of equal geometry", test_equal_geometries);
	tap_run("growth after a union", test_growth_after_union);
	tap_run("many layers side by side", test_side_by_side);
	tap_run("no mixture of forms loses a key", test_mixtures);
	tap_run("many unions of all forms lose no key", test_many_unions);
	tap_run("other seeds and key types are rejected", test_rejected);
	tap_run("intersection holds every common key", test_intersection);
	tap_run("intersection of layers is that of their bits",
			test_intersection_bits);
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
	tap_run("intersection: other seeds, key types, and no memory",
			test_intersection_rejected);
	tap_run("union: no memory", test_union_no_memory);

	for (i = 0; i < NPOOL; i++)
		image_free(&pool[i].image);
	return tap_done();
}
