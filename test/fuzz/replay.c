/*-------------------------------------------------------------------------
 *
 * replay.c
 *	  Run a fuzz target on files: its corpus, or what crashed it.
 *
 * Takes the place of libFuzzer, so any compiler with sanitizers will do.  With
 * --edit as the first argument, it also runs the target on changed files: with
 * each of the first bytes set to what breaks arithmetic, and several fields.
 *
 *-------------------------------------------------------------------------
 */
#include "fuzz.h"

/* A file is edited at its front, where its fields are. */
#define FRONT	160

static uint64_t
random64(void)
{
	static uint64_t state = 7;

	return bf_hash_u64(state++, 0);
}

static void
run(const uint8_t *bytes, size_t size)
{
	uint8_t    *copy = memcpy(exactly(size), bytes, size);

	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
}

static void
run_edited(uint8_t *bytes, size_t size)
{
	static const uint64_t values[] = {
		0, 1, 0x7F, 0x80, 0xFF, 2, 8, 9, 14, 64, 65, 0x7FFF, 0xFFFF,
		0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, UINT64_C(0x100000000),
		UINT64_C(0x7FFFFFFFFFFFFFFF), UINT64_C(0x8000000000000000), UINT64_MAX
	};
	size_t		front = size < FRONT ? size : FRONT;
	uint8_t    *original = memcpy(exactly(size), bytes, size);

	for (size_t i = 0; i < 5 * front; i++)
	{
		bytes[i / 5] = (uint8_t) values[i % 5];
		run(bytes, size);
		bytes[i / 5] = original[i / 5];
	}
	for (int round = 0; round < 300 && front > 16; round++)
	{
		for (uint64_t edits = random64() % 4; edits < 4; edits++)
		{
			uint64_t	value = values[random64() % 20];
			size_t		length = (size_t) 1 << random64() % 4;
			size_t		at = random64() % (front - 8) & ~(length - 1);

			for (size_t i = 0; i < length; i++)
				bytes[at + i] = (uint8_t) (value >> 8 * i);
		}
		if (round % 4 > 0)
			memcpy(bytes, original, 8);
		run(bytes, size);
		memcpy(bytes, original, size);
	}
	free(original);
}

int
main(int argc, char **argv)
{
	bool		edit = argc > 1 && strcmp(argv[1], "--edit") == 0;

	for (int i = 1 + edit; i < argc; i++)
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
		run(bytes, (size_t) size);
		if (edit)
			run_edited(bytes, (size_t) size);
		free(bytes);
	}
	return EXIT_SUCCESS;
}
