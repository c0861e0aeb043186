/*-------------------------------------------------------------------------
 *
 * replay.c
 *	  Run a fuzz target on files: its corpus, or what crashed it.
 *
 * Takes the place of libFuzzer, so any compiler with sanitizers will do.
 *
 *-------------------------------------------------------------------------
 */
#include "fuzz.h"

int
main(int argc, char **argv)
{
	int			i;

	for (i = 1; i < argc; i++)
	{
		FILE	   *file = fopen(argv[i], "rb");
		uint8_t    *bytes;
		long		size;

		if (file == NULL || fseek(file, 0, SEEK_END) != 0 ||
			(size = ftell(file)) < 0 || fseek(file, 0, SEEK_SET) != 0)
		{
			perror(argv[i]);
			return EXIT_FAILURE;
		}
		bytes = exactly((size_t) size);
		if (fread(bytes, 1, (size_t) size, file) != (size_t) size)
		{
			perror(argv[i]);
			return EXIT_FAILURE;
		}
		fclose(file);

		/* The last one named is the one that failed. */
		printf("%s\n", argv[i]);
		fflush(stdout);
		LLVMFuzzerTestOneInput(bytes, (size_t) size);
		free(bytes);
	}
	return EXIT_SUCCESS;
}
