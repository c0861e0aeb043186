/*-------------------------------------------------------------------------
 *
 * module.c
 *	  The magic block of the library, and what it does when it is loaded.
 *
 * The Makefile takes PGBLOOM_VERSION from the control file.
 *
 *-------------------------------------------------------------------------
 */
#include "pgbloom.h"

#include "index/index.h"
#include "join/join.h"

PGBLOOM_MODULE_MAGIC;

extern PGDLLEXPORT void _PG_init(void);

void
_PG_init(void)
{
	bfi_init();
	pgbloom_join_init();
}
