/*-------------------------------------------------------------------------
 *
 * fail_alloc.c
 *	  Memory allocations that fail when a test says so.
 *
 * "make FAIL_ALLOC=1" links this in, and has the linker send here the
 * extension's calls of PostgreSQL's allocation functions (ld --wrap).  So the
 * code under test is the one that is shipped.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"

extern void *__real_palloc(Size size);
extern void *__real_palloc0(Size size);
extern void *__real_MemoryContextAlloc(MemoryContext context, Size size);
extern void *__real_MemoryContextAllocZero(MemoryContext context, Size size);
extern void *__real_MemoryContextAllocExtended(MemoryContext context,
											   Size size, int flags);
extern void *__wrap_palloc(Size size);
extern void *__wrap_palloc0(Size size);
extern void *__wrap_MemoryContextAlloc(MemoryContext context, Size size);
extern void *__wrap_MemoryContextAllocZero(MemoryContext context, Size size);
extern void *__wrap_MemoryContextAllocExtended(MemoryContext context,
											   Size size, int flags);

PGDLLEXPORT PG_FUNCTION_INFO_V1(fail_allocation);

static int64 left = 0;			/* the allocation that fails; 0: none */
static bool failed = false;

/* Returns whether this allocation is the one. */
static bool
reject(int flags)
{
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

void *
__wrap_palloc(Size size)
{
	reject(0);
	return __real_palloc(size);
}

void *
__wrap_palloc0(Size size)
{
	reject(0);
	return __real_palloc0(size);
}

void *
__wrap_MemoryContextAlloc(MemoryContext context, Size size)
{
	reject(0);
	return __real_MemoryContextAlloc(context, size);
}

void *
__wrap_MemoryContextAllocZero(MemoryContext context, Size size)
{
	reject(0);
	return __real_MemoryContextAllocZero(context, size);
}

void *
__wrap_MemoryContextAllocExtended(MemoryContext context, Size size, int flags)
{
	if (reject(flags))
		return NULL;
	return __real_MemoryContextAllocExtended(context, size, flags);
}

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
