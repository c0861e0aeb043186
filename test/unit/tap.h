/*-------------------------------------------------------------------------
 *
 * tap.h
 *	  Tests that report in the Test Anything Protocol.
 *
 * A test is a function that calls CHECK() as often as it likes.  tap_run()
 * runs it and prints one line, "ok" if every check held.  What a failed
 * check has to say stands in lines with a "#" before that line, the first
 * few of them: a broken loop fails a million times.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TAP_H
#define TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define TAP_MOST_COMPLAINTS	5

static int	tap_tests;
static int	tap_failures;
static long tap_complaints;

/* Not just "true": then compilers complain of values that nobody uses. */
static inline bool
tap_agree(void)
{
	return true;
}

/*
 * Evaluates to the condition, so that a test can stop at the first failure.
 * What it says is evaluated after the condition, and only if that fails.
 */
#define CHECK(condition, ...) \
	((condition) ? tap_agree() \
	 : tap_complain(__LINE__, #condition, __VA_ARGS__))

#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
static inline bool
tap_complain(int line, const char *condition, const char *format,
			 ...)
{
	va_list		args;

	if (++tap_complaints <= TAP_MOST_COMPLAINTS)
	{
		printf("# line %d: failed: %s\n#   ", line, condition);
		va_start(args, format);
		vprintf(format, args);
		va_end(args);
		printf("\n");
	}
	return false;
}

static inline void
tap_run(const char *name, void (*test) (void))
{
	tap_complaints = 0;
	test();
	if (tap_complaints > TAP_MOST_COMPLAINTS)
		printf("# and %ld more\n", tap_complaints - TAP_MOST_COMPLAINTS);
	if (tap_complaints > 0)
		tap_failures++;
	printf("%s %d - %s\n", tap_complaints > 0 ? "not ok" : "ok",
		   ++tap_tests, name);

	/* If the next test crashes, this one has still been heard. */
	fflush(stdout);
}

/* Prints the plan; returns what main() is to return. */
static inline int
tap_done(void)
{
	printf("1..%d\n", tap_tests);
	return tap_failures > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif							/* TAP_H */
