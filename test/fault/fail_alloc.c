/*-------------------------------------------------------------------------
 *
 * fail_alloc.c
 *	  Memory allocations that fail, and checks for interrupts that find one,
 *	  when a test says so.
 *
 * "make FAIL_ALLOC=1" links this in, and has the linker send here the
 * extension's calls of PostgreSQL's allocation functions (ld --wrap), and those
 * that ask for the environment of the core.  So the code under test is the one
 * that is shipped.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "filter/filter.h"

extern void __real_ProcessInterrupts(void);
extern void __wrap_ProcessInterrupts(void);
extern BfEnv __real_pgbloom_env(MemoryContext context);
extern BfEnv __wrap_pgbloom_env(MemoryContext context);

PGDLLEXPORT PG_FUNCTION_INFO_V1(fail_allocation);
PGDLLEXPORT PG_FUNCTION_INFO_V1(fail_check);

static int64 left = 0;			/* the allocation that fails; 0: none */
static int64 checks_left = 0;	/* the check that finds an interrupt */
static bool failed = false;

/*
 * Returns whether this allocation is the one.  PostgreSQL's checks in between
 * reset the flag that has ours call ProcessInterrupts().
 */
static bool
reject(int flags)
{
	if (checks_left > 0)
		InterruptPending = true;
	if (left == 0 || --left > 0)
		return false;
	failed = true;
	if ((flags & MCXT_ALLOC_NO_OOM) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory"),
				 errdetail("The allocation was made to fail.")));
	return true;
}

/* One of PostgreSQL's functions that returns memory, or NULL if flags allow that. */
#define WRAP(function, parameters, arguments, flags) \
	extern void *__real_##function parameters; \
	extern void *__wrap_##function parameters; \
	void * \
	__wrap_##function parameters \
	{ \
		return reject(flags) ? NULL : __real_##function arguments; \
	}

WRAP(palloc, (Size size), (size), 0)
WRAP(palloc0, (Size size), (size), 0)
WRAP(MemoryContextAlloc, (MemoryContext context, Size size), (context, size), 0)
WRAP(MemoryContextAllocZero, (MemoryContext context, Size size),
	 (context, size), 0)
WRAP(MemoryContextAllocHuge, (MemoryContext context, Size size),
	 (context, size), 0)
WRAP(MemoryContextAllocExtended,
	 (MemoryContext context, Size size, int flags), (context, size, flags),
	 flags)

/*
 * fail_allocation(n bigint) returns boolean: have the n-th allocation from
 * now on fail, or none if n is 0.  Tells whether the last one of these did.
 */
Datum
fail_allocation(PG_FUNCTION_ARGS)
{
	bool		result = failed;

	left = PG_GETARG_INT64(0);
	failed = false;
	PG_RETURN_BOOL(result);
}

static void
check_interrupts(void *context)
{
	(void) context;
	if (checks_left == 0 || InterruptHoldoffCount > 0 || --checks_left > 0)
		return;
	failed = true;
	ereport(ERROR,
			(errcode(ERRCODE_QUERY_CANCELED),
			 errmsg("canceling statement for a test")));
}

void
__wrap_ProcessInterrupts(void)
{
	__real_ProcessInterrupts();
	check_interrupts(NULL);
	if (checks_left > 0)
		InterruptPending = true;
}

BfEnv
__wrap_pgbloom_env(MemoryContext context)
{
	BfEnv		env = __real_pgbloom_env(context);

	env.interrupts.check = check_interrupts;
	return env;
}

/* The same for the n-th check for interrupts in the extension. */
Datum
fail_check(PG_FUNCTION_ARGS)
{
	bool		result = failed;

	checks_left = PG_GETARG_INT64(0);
	failed = false;
	PG_RETURN_BOOL(result);
}
