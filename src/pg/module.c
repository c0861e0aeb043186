/*-------------------------------------------------------------------------
 *
 * module.c
 *	  The magic block of the library.
 *
 * The Makefile takes PGBLOOM_VERSION from the control file.
 *
 *-------------------------------------------------------------------------
 */
#include "pg/pgbloom.h"

PGBLOOM_MODULE_MAGIC;
