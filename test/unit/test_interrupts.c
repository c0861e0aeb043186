/*-------------------------------------------------------------------------
 *
 * test_interrupts.c
 *	  Long operations check for interrupts often.  Those that end early, by a
 *	  long jump out of a check or for lack of memory, lose no key.
 *
 * To end early, each operation is run again and again, and ended at its first
 * check or allocation, its second, and so on, until it comes to its end.
 *
 *-------------------------------------------------------------------------
 */
#include <setjmp.h>

#include "support.h"

/* Memory that is released as a whole, and where an operation ends. */
typedef struct Arena
{
	struct Block *blocks;
	long		checks;			/* left, or negative: no end */
	long		allocations;	/* the same */
	jmp_buf		end;
} Arena;

typedef struct Block
{
	struct Block *next;
	max_align_t memory[];
} Block;

static void *
arena_alloc(void *context, size_t size)
{
	Arena	   *arena = context;
	Block	   *block;

	if (arena->allocations == 0 || arena->allocations-- == 1)
		return NULL;
	block = exactly(sizeof(Block) + size);
	block->next = arena->blocks;
	arena->blocks = block;
	memset(block->memory, 0xA5, size);
	return block->memory;
}

/* Use after free shows in what is read. */
static void
arena_free(void *context, void *pointer)
{
	(void) context;
	memset(pointer, 0x5A, 8);
}

static void
arena_check(void *context)
{
	Arena	   *arena = context;

	if (arena->checks > 0 && --arena->checks == 0)
		longjmp(arena->end, 1);
}

static void
arena_release(Arena *arena)
{
	while (arena->blocks != NULL)
	{
		Block	   *next = arena->blocks->next;

		free(arena->blocks);
		arena->blocks = next;
	}
}

/* Images that operations merge. */
static Image dense;
static Image list;

static BfStatus
op_add_all(BfBuilder *b)
{
	static uint64_t hashes[9000];

	for (int i = 0; i < 9000; i++)
		hashes[i] = key((uint64_t) i, 2);
	return bf_builder_add_all(b, hashes, 9000);
}

static BfStatus
op_merge_dense(BfBuilder *b)
{
	return bf_builder_merge(b, &dense.view);
}

static BfStatus
op_merge_list(BfBuilder *b)
{
	return bf_builder_merge(b, &list.view);
}

static BfStatus
op_expect_probes(BfBuilder *b)
{
	bf_builder_expect_probes(b);
	return BF_OK;
}

static BfStatus
op_plan(BfBuilder *b)
{
	size_t		size;

	return bf_builder_plan(b, &size);
}

static BfStatus
op_compact(BfBuilder *b)
{
	BfBuilder	smaller;
	bool		found;

	return bf_builder_compact(b, &smaller, &found);
}

static const struct
{
	const char *name;
	BfStatus	(*run) (BfBuilder *b);
	uint64_t	nkeys;			/* keys that it adds, of set 2 */
}			operations[] = {
	{"add_all", op_add_all, 9000},
	{"merge of layers", op_merge_dense, 9000},
	{"merge of hashes", op_merge_list, 6000},
	{"expect_probes", op_expect_probes, 0},
	{"plan", op_plan, 0},
	{"compact", op_compact, 0},
};

/* Builders of some keys of set 1. */
static const struct
{
	const char *name;
	double		fpp;
	uint64_t	expected;
	uint64_t	nkeys;
	bool		partial;		/* keeps more hashes than fit into a layer */
	bool		probed;
}			builders[] = {
	{"pending hashes", 0.01, 1000000, 12000, false, false},
	{"pending hashes, probed", 0.01, 1000000, 12000, false, true},
	{"hashes for one layer", 0.01, 10000, 10000, true, false},
	{"hashes for several layers", 0.01, 500, 10000, true, false},
	{"a layer", 0.001, 50000, 13000, false, false},
	{"several layers", 0.01, 500, 6000, false, false},
};

/* Has a builder, and the image that it writes, the keys of a set? */
static bool
has_keys(BfBuilder *b, uint64_t nkeys, uint64_t set)
{
	Image		image;
	bool		good = image_write(&image, b, false);

	for (uint64_t i = 0; good && i < nkeys; i++)
		good = HOLDS(bf_builder_contains(b, key(i, set)) &&
					 bf_contains(&image.view, key(i, set)));
	return good;
}

/*
 * End an operation on a builder at its check, or allocation, number at.
 * Returns false if it came to its end.
 */
static bool
end_early(size_t which, size_t operation, bool at_check, long at)
{
	Arena		arena = {0};
	BfEnv		env = {arena_alloc, arena_free, &arena, {arena_check, &arena}};
	BfParams	params = params_of(builders[which].fpp,
								   builders[which].expected);
	BfBuilder	b;
	volatile bool ended = true;
	BfStatus	status;

	forget_images(2);			/* but dense and list */
	tap_case("%s: %s, end at %ld", builders[which].name,
			 operations[operation].name, at);
	arena.checks = arena.allocations = -1;
	bf_builder_init(&b, &env, &params);
	if (builders[which].partial)
		bf_builder_keep_hashes(&b, true);
	if (builders[which].probed)
		bf_builder_expect_probes(&b);
	add_keys(&b, 0, builders[which].nkeys, 1);

	/* Duplicates, so that a list has some to drop. */
	add_keys(&b, 0, builders[which].nkeys / 8, 1);
	bf_builder_keep_hashes(&b, false);

	if (setjmp(arena.end) == 0)
	{
		*(at_check ? &arena.checks : &arena.allocations) = at;
		ended = operations[operation].run(&b) != BF_OK;
	}
	arena.checks = arena.allocations = -1;

	if (!ended)
		has_keys(&b, operations[operation].nkeys, 2);
	status = op_plan(&b);
	if (status == BF_OK)
	{
		has_keys(&b, builders[which].nkeys, 1);

		/* It is still of use. */
		if (ended && EQUAL(operations[operation].run(&b), BF_OK))
			has_keys(&b, operations[operation].nkeys, 2);
	}
	else
	{
		HOLDS(status == BF_INCOMPLETE && operations[operation].nkeys > 0);
		for (uint64_t i = 0; i < builders[which].nkeys; i += 97)
			if (!HOLDS(bf_builder_contains(&b, key(i, 1))))
				break;
	}
	arena_release(&arena);
	return ended;
}

static void
test_all(bool at_check)
{
	image_build(&dense, 0.01, 9000, 0, 9000, 2, false);
	image_build(&list, 0.01, 1000000, 0, 6000, 2, false);
	HOLDS(dense.view.nlayers == 1 && list.view.nlayers == 0);
	for (size_t i = 0; i < LENGTH(builders); i++)
		for (size_t j = 0; j < LENGTH(operations); j++)
		{
			long		at = 1;

			while (end_early(i, j, at_check, at))
				at++;
		}
}

static void
test_checks(void)
{
	test_all(true);
}

static void
test_allocations(void)
{
	test_all(false);
}

/*
 * Forge a valid image with layers of nblocks blocks each, whose geometries are
 * equal or else differ in fpp.  Each layer has one bit of each byte set; which
 * one that is in the last bytes tells the layers, and images with another
 * number, from each other.
 */
static void
forge(Image *image, int nlayers, uint32_t nblocks, uint8_t block_log2,
	  bool equal, uint64_t number)
{
	static BfView view;
	size_t		header;
	uint8_t    *bits;

	memset(&view, 0, sizeof(view));
	view.params = params_of(0.01, 0);
	view.nlayers = nlayers;
	header = bf_header_size(&view.params, view.nlayers);
	for (int i = 0; i < nlayers; i++)
	{
		BfLayer    *layer = &view.layers[i];

		layer->geometry.nblocks = nblocks;
		layer->geometry.block_log2 = block_log2;
		layer->geometry.k = 6;
		layer->geometry.capacity = 1;
		layer->geometry.fpp = equal ? 0.01 : 0.01 - i * 1e-6;
		layer->bits_set = bf_geometry_size(&layer->geometry);
	}
	image->size = header +
		nlayers * bf_geometry_size(&view.layers[0].geometry);
	image->bytes = exactly(image->size);
	bf_write_header(image->bytes, &view.params, 0, 0, view.layers, view.nlayers);
	memset(image->bytes + header, 1, image->size - header);

	for (int i = 0; i < nlayers; i++)
	{
		uint64_t	left = number + nlayers - 1 - i;

		bits = image->bytes + header +
			(i + 1) * bf_geometry_size(&view.layers[0].geometry) - 8;
		for (int digit = 0; digit < 8; digit++, left /= 8)
			bits[digit] = (uint8_t) (1 << left % 8);
	}
	image_open(image);
}

/* Fails unless an operation checked for interrupts at least so often. */
static void
check_often(const char *what, TestEnv *env, long least)
{
	tap_case("%s", what);
	HOLDS(env->polls >= least);
	env->polls = 0;
}

/* A lookup or an addition reads a block of each of 1,024 layers. */
static void
test_hashes_in_many_layers(void)
{
	long		least = 9000L * BF_MAX_LAYERS / 65536;
	Image		many;
	const BfView *views[] = {&many.view, &list.view};
	int			pair[2];
	BfBuilder	b;
	TestEnv		env;
	double		n;

	forge(&many, BF_MAX_LAYERS, 1, 9, false, 0);
	image_build(&list, 0.01, 1000000, 0, 9000, 2, false);
	env_init(&env, SIZE_MAX);

	EQUAL(bf_intersection(&b, &env.env, &many.view, &list.view), BF_OK);
	bf_builder_free(&b);
	check_often("intersection", &env, least);
	EQUAL(bf_common_keys(&env.env.interrupts, 2, views, &n, pair), BF_OK);
	check_often("its cardinality", &env, least);

	bf_builder_init(&b, &env.env, &many.view.params);
	merge(&b, &many);
	env.polls = 0;
	EQUAL(bf_builder_merge(&b, &list.view), BF_TOO_MANY_LAYERS);
	check_often("adding until a layer is due", &env, 1);
	finish(&b, &env);

	/* Without their last layer, they grow. */
	forge(&many, BF_MAX_LAYERS - 1, 1, 9, false, 0);
	bf_builder_init(&b, &env.env, &many.view.params);
	merge(&b, &many);
	env.polls = 0;
	merge(&b, &list);
	check_often("adding a list", &env, least);
	merge(&b, &list);
	check_often("adding a list for which there is room", &env, least);
	CHECK(op_add_all(&b) == BF_OK, "add_all");
	check_often("add_all", &env, least);
	finish(&b, &env);
}

/* To find out whether a layer can be folded takes a fraction of a millisecond. */
static void
test_compact_many_layers(void)
{
	Image		many;
	BfBuilder	b;
	BfBuilder	smaller;
	TestEnv		env;
	bool		found;

	forge(&many, BF_MAX_LAYERS, 1, 9, false, 0);
	start_with(&b, &env, &many.view.params);
	merge(&b, &many);
	env.polls = 0;
	HOLDS(bf_builder_compact(&b, &smaller, &found) == BF_OK && !found);
	check_often("compact", &env, BF_MAX_LAYERS);
	finish(&b, &env);
}

/* Operations on 8 MB of bits. */
static void
test_large_layers(void)
{
	Image		one;
	Image		two;
	BfBuilder	b;
	TestEnv		env;

	forge(&one, 1, 4096, 14, true, 0);
	forge(&two, 2, 2048, 14, true, 0);
	env_init(&env, SIZE_MAX);

	EQUAL(bf_intersection(&b, &env.env, &one.view, &one.view), BF_OK);
	bf_builder_free(&b);
	check_often("intersection: copy, AND, count", &env, 3 * 8);
	HOLDS(bf_count_distinct(&env.env.interrupts, 0, two.view.layers,
							two.view.nlayers) > 0);
	check_often("count_distinct", &env, 8);

	EQUAL(bf_validate(&env.env.interrupts, one.bytes, one.size, &one.view),
		  BF_OK);
	check_often("validate", &env, 8);

	/* Both images are equal, so they are compared to the end. */
	EQUAL(bf_union(&b, &env.env, &one.view, &one.view), BF_OK);
	check_often("union: compare, copy, count, OR", &env, 4 * 8);
	finish(&b, &env);
}

/*
 * Merge two filters of over full layers of equal geometry and number of set
 * bits, which takes comparing bits to sort them.  End that at a check if at is
 * not negative.  Returns the number of checks.
 */
static long
merge_over_full(const Image *x, const Image *y, long at)
{
	Arena		arena = {0};
	TestEnv		counting;
	BfEnv		env = {arena_alloc, arena_free, &arena, {arena_check, &arena}};
	BfBuilder	b;
	int			nlayers = x->view.nlayers;
	int			j;

	env_init(&counting, SIZE_MAX);
	arena.checks = arena.allocations = -1;
	bf_builder_init(&b, &env, &x->view.params);
	EQUAL(bf_builder_merge(&b, &x->view), BF_OK);
	if (at < 0)
		b.env.interrupts = counting.env.interrupts;
	if (setjmp(arena.end) == 0)
	{
		arena.checks = at;
		EQUAL(bf_builder_merge(&b, &y->view), BF_OK);
		CHECK(b.nlayers == nlayers + y->view.nlayers, "%d layers", b.nlayers);
	}
	for (int i = 0; i < nlayers; i++)
	{
		size_t		size = bf_geometry_size(&x->view.layers[i].geometry);

		for (j = 0; j < b.nlayers; j++)
			if (memcmp(b.layers[j].bits, x->view.layers[i].bits, size) == 0)
				break;
		if (!HOLDS(j < b.nlayers))
			break;
	}
	arena_release(&arena);
	return counting.polls;
}

static void
test_sort_layers(void)
{
	Image		x;
	Image		y;
	long		n = 500;
	long		at;

	forge(&x, (int) n, 1, 9, true, 0);
	forge(&y, (int) n, 1, 9, true, 500);

	/*
	 * Each layer of y is compared with all that are there and copied; then
	 * all are sorted.
	 */
	at = merge_over_full(&x, &y, -1);
	HOLDS(at > n * n + n * (n - 1) / 2 + n + 2 * n - 1);

	n = 10;
	forge(&x, (int) n, 1, 9, true, 0);
	forge(&y, (int) n, 1, 9, true, 500);
	for (at = merge_over_full(&x, &y, -1); at > 0; at--)
		merge_over_full(&x, &y, at);
}

int
main(void)
{
	tap_run("hashes in many layers are interrupted",
			test_hashes_in_many_layers);
	tap_run("compacting many layers is interrupted", test_compact_many_layers);
	tap_run("work on large layers is interrupted", test_large_layers);
	tap_run("sorting many layers is interrupted", test_sort_layers);
	tap_run("no key is lost at a check for interrupts", test_checks);
	tap_run("no key is lost for lack of memory", test_allocations);
	return tap_done();
}
