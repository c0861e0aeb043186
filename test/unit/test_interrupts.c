/*-------------------------------------------------------------------------
 *
 * test_interrupts.c
 *	  Operations that end early, by a long jump out of a check for interrupts
 *	  or for lack of memory, lose no key.
 *
 * Each operation is run again and again, and ended at its first check or
 * allocation, its second, and so on, until it comes to its end.
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
	int			i;

	for (i = 0; i < 9000; i++)
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
has_keys(BfBuilder *b, uint64_t nkeys, uint64_t set, const char *what)
{
	Image		image;
	bool		good = image_write(&image, b, false);
	uint64_t	i;

	for (i = 0; good && i < nkeys; i++)
		good = CHECK(bf_builder_contains(b, key(i, set)) &&
					 bf_contains(&image.view, key(i, set)),
					 "%s: key %llu is lost", what, (unsigned long long) i);
	image_free(&image);
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

	arena.checks = arena.allocations = -1;
	bf_builder_init(&b, &env, &params);
	if (builders[which].partial)
		bf_builder_keep_hashes(&b);
	if (builders[which].probed)
		bf_builder_expect_probes(&b);
	add_keys(&b, 0, builders[which].nkeys, 1);
	bf_builder_end_keep(&b);

	if (setjmp(arena.end) == 0)
	{
		*(at_check ? &arena.checks : &arena.allocations) = at;
		ended = operations[operation].run(&b) != BF_OK;
	}
	arena.checks = arena.allocations = -1;

	if (!ended)
		has_keys(&b, operations[operation].nkeys, 2, operations[operation].name);
	status = op_plan(&b);
	if (status == BF_OK)
	{
		has_keys(&b, builders[which].nkeys, 1, operations[operation].name);

		/* It is still of use. */
		if (ended && CHECK(operations[operation].run(&b) == BF_OK,
						   "%s again", operations[operation].name))
			has_keys(&b, operations[operation].nkeys, 2,
					 operations[operation].name);
	}
	else
		CHECK(status == BF_INCOMPLETE && operations[operation].nkeys > 0,
			  "%s: status %d", operations[operation].name, (int) status);
	arena_release(&arena);
	return ended;
}

static void
test_all(bool at_check)
{
	size_t		i,
				j;

	image_build(&dense, 0.01, 9000, 0, 9000, 2, false);
	image_build(&list, 0.01, 1000000, 0, 6000, 2, false);
	CHECK(dense.view.nlayers == 1 && list.view.nlayers == 0, "%d and %d layers",
		  dense.view.nlayers, list.view.nlayers);
	for (i = 0; i < sizeof(builders) / sizeof(builders[0]); i++)
	{
		for (j = 0; j < sizeof(operations) / sizeof(operations[0]); j++)
		{
			long		at = 1;

			while (end_early(i, j, at_check, at))
				at++;
		}
	}
	image_free(&dense);
	image_free(&list);
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

int
main(void)
{
	tap_run("no key is lost at a check for interrupts", test_checks);
	tap_run("no key is lost for lack of memory", test_allocations);
	return tap_done();
}
