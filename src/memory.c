/*-------------------------------------------------------------------------
 *
 * memory.c
 *	  PostgreSQL as the environment of the core: memory and interrupts.
 *
 *-------------------------------------------------------------------------
 */
#include "pgbloom.h"

#ifndef WIN32
#include <sys/mman.h>
#include <unistd.h>
#endif

#include "miscadmin.h"
#include "utils/builtins.h"

/* Smaller memory does not reliably contain a huge page of x86-64 (2 MB). */
#define MIN_HUGE		((size_t) 4 << 20)

/*
 * Ask the system for huge pages.  Probes go to random places of a filter; with
 * pages of the usual size, most of them miss the TLB: in a filter of 48 MB,
 * lookups took 1.5 times as long.  Nothing depends on getting huge pages.
 * Returns memory.
 */
void *
pgbloom_prefer_huge_pages(void *memory, size_t size)
{
#ifdef MADV_HUGEPAGE
	uintptr_t	page_size = (uintptr_t) sysconf(_SC_PAGESIZE);
	uintptr_t	start = TYPEALIGN_DOWN(page_size, memory);
	uintptr_t	end = (uintptr_t) memory + size;

	if (memory != NULL && size >= MIN_HUGE)
		(void) madvise((void *) start, end - start, MADV_HUGEPAGE);
#else
	(void) size;
#endif
	return memory;
}

static void *
env_alloc(void *context, size_t size)
{
	void	   *memory;

	memory = MemoryContextAllocExtended((MemoryContext) context, size,
										MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
	return pgbloom_prefer_huge_pages(memory, size);
}

static void
env_free(void *context, void *pointer)
{
	(void) context;
	pfree(pointer);
}

static void
env_check_interrupts(void *context)
{
	(void) context;
	CHECK_FOR_INTERRUPTS();
}

/* Environment that allocates in a memory context. */
BfEnv
pgbloom_env(MemoryContext context)
{
	BfEnv		env = {env_alloc, env_free, context,
	{env_check_interrupts, NULL}};

	return env;
}

/* Size with a unit, for messages. */
char *
pgbloom_pretty_size(double bytes)
{
	return TextDatumGetCString(DirectFunctionCall1(pg_size_pretty,
												   Int64GetDatum((int64) bytes)));
}
