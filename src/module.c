/*-------------------------------------------------------------------------
 *
 * module.c
 *	  The magic block of the library, and what it does when it is loaded.
 *
 * The Makefile takes PGBLOOM_VERSION from the control file.
 *
 *-------------------------------------------------------------------------
 */
#include "pg/pgbloom.h"

#include "join/join.h"

PGBLOOM_MODULE_MAGIC;

extern PGDLLEXPORT void _PG_init(void);

void
_PG_init(void)
{
	pgbloom_join_init();
}
