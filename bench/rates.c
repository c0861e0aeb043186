/*-------------------------------------------------------------------------
 *
 * rates.c
 *	  The false-positive rate that filters really have.
 *
 *	  rates FPP EXPECTED PROBES KEYS...
 *
 * Filters are built of as many keys as each of the ascending numbers says,
 * and probed with keys that were never added.  With EXPECTED = 0 each sizes
 * itself at the end, as bloom_agg does; else one is made for EXPECTED keys
 * and grows on from one number to the next.  One line per number: keys,
 * probes, those that tested positive, layers, bytes.
 *
 *-------------------------------------------------------------------------
 */
#include "bench.h"

static void
probe(BfBuilder *b, bool compact, uint64_t nkeys, uint64_t probes)
{
	BfView		view;
	uint64_t	positive = 0;
	uint64_t	i;

	finish(b, compact, &view);
	for (i = 0; i < probes; i++)
		positive += bf_contains(&view, mix(NEVER_ADDED + i));
	printf("%llu\t%llu\t%llu\t%d\t%zu\n", (unsigned long long) nkeys,
		   (unsigned long long) probes, (unsigned long long) positive,
		   view.nlayers, view.size);
	bench_free((void *) view.image);
}

static void
begin(BfBuilder *b, double fpp, uint64_t expected)
{
	start(b, fpp, expected);
	if (expected == 0)
		bf_builder_compact_at_end(b);
}

int
main(int argc, char **argv)
{
	BfBuilder	b;
	double		fpp;
	uint64_t	expected;
	uint64_t	added = 0;
	int			i;

	if (argc < 5)
		fail("usage: rates FPP EXPECTED PROBES KEYS...");
	fpp = atof(argv[1]);
	expected = strtoull(argv[2], NULL, 10);
	begin(&b, fpp, expected);
	for (i = 4; i < argc; i++)
	{
		uint64_t	nkeys = strtoull(argv[i], NULL, 10);

		if (expected == 0 && i > 4)
		{
			bf_builder_free(&b);
			begin(&b, fpp, expected);
			added = 0;
		}
		while (added < nkeys)
			add(&b, mix(added++));
		probe(&b, expected == 0, nkeys, strtoull(argv[3], NULL, 10));
	}
	bf_builder_free(&b);
	return 0;
}
