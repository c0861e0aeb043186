/*-------------------------------------------------------------------------
 *
 * limits.c
 *	  How many keys a filter takes until it has BF_MAX_BITS.
 *
 * Prints the limits of README.md, in millions of keys: of a filter with the
 * largest "expected", of one without that grows key by key, and of one that an
 * aggregate builds.  The core alone does it, no server is needed.  Takes seven
 * minutes and 2 GB:
 *
 *	 gcc -O2 -I src/core -o /tmp/limits bench/limits.c src/core/*.c -lm
 *	 /tmp/limits
 *
 *-------------------------------------------------------------------------
 */
#include "bench.h"
#include "internal.h"

/* How many keys fit, in millions. */
static double
keys_until_full(double fpp, bool aggregate)
{
	BfBuilder	b;
	uint64_t	n = 0;

	start(&b, fpp, 0);
	if (aggregate)
		bf_builder_compact_at_end(&b);
	while (bf_builder_add(&b, bf_hash_u64(n, 0)) == BF_OK)
		n++;
	bf_builder_free(&b);
	return (double) n / 1e6;
}

int
main(void)
{
	static const double fpps[] = {0.01, 1e-4};
	int			i;

	printf("| fpp | expected | without | aggregate |\n|---|---|---|---|\n");
	for (i = 0; i < 2; i++)
		printf("| %g | %.1f | %.1f | %.1f |\n", fpps[i],
			   (double) bf_max_keys(fpps[i]) / 1e6,
			   keys_until_full(fpps[i], false),
			   keys_until_full(fpps[i], true));
	return 0;
}
