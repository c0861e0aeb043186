/*-------------------------------------------------------------------------
 *
 * guava.c
 *	  The counterpart of Guava.java: the same keys, the same lookups, one
 *	  after the other without other work between, hashing included.
 *
 *	  guava {long|string} FPP KEYS
 *
 * Each line read from standard input starts a round: a filter is made for
 * KEYS keys and filled, and probed for each of them and for as many others.
 * Each round writes one line: ns of CPU time per put, per key found, per key
 * not found, bytes, and the false positives.
 *
 *-------------------------------------------------------------------------
 */
#include "bench.h"

#define KEY_SIZE	64

static bool strings;
static char *texts;				/* of the keys added, then of the rest */

static inline uint64_t
hash_of(uint64_t i)
{
	if (strings)
		return bf_hash_bytes(texts + i * KEY_SIZE, KEY_SIZE, 0);
	return bf_hash_u64(i, 0);
}

/* The URL that Guava.java makes of i. */
static void
write_texts(uint64_t n)
{
	uint64_t	i;
	char		text[KEY_SIZE + 1];

	texts = bench_alloc(n * KEY_SIZE);
	for (i = 0; i < n; i++)
	{
		snprintf(text, sizeof(text),
				 "https://www.example.org/item/%016llx%016llx/en",
				 (unsigned long long) mix(i), (unsigned long long) i);
		memcpy(texts + i * KEY_SIZE, text, KEY_SIZE);
	}
}

static void
run_round(double fpp, uint64_t n)
{
	BfBuilder	b;
	BfView		view;
	uint64_t	found = 0;
	uint64_t	positive = 0;
	uint64_t	i;
	double		began = cpu_ns();
	double		added,
				probed,
				ended;

	start(&b, fpp, n);
	for (i = 0; i < n; i++)
		add(&b, hash_of(i));
	finish(&b, false, &view);
	added = cpu_ns();
	for (i = 0; i < n; i++)
		found += bf_contains(&view, hash_of(i));
	probed = cpu_ns();
	for (i = n; i < 2 * n; i++)
		positive += bf_contains(&view, hash_of(i));
	ended = cpu_ns();
	if (found != n)
		fail("a key is lost");
	printf("%.2f %.2f %.2f %zu %llu\n", (added - began) / (double) n,
		   (probed - added) / (double) n, (ended - probed) / (double) n,
		   view.size, (unsigned long long) positive);
	fflush(stdout);
	bench_free((void *) view.image);
	bf_builder_free(&b);
}

int
main(int argc, char **argv)
{
	uint64_t	n;

	if (argc != 4)
		fail("usage: guava {long|string} FPP KEYS");
	strings = strcmp(argv[1], "string") == 0;
	n = strtoull(argv[3], NULL, 10);
	if (strings)
		write_texts(2 * n);
	while (getchar() == '\n')
		run_round(atof(argv[2]), n);
	return 0;
}
