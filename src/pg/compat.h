/*-------------------------------------------------------------------------
 *
 * compat.h
 *	  Differences between the supported major versions of PostgreSQL, 15 to 19.
 *
 * Code that depends on PG_VERSION_NUM is here and nowhere else.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGBLOOM_COMPAT_H
#define PGBLOOM_COMPAT_H

#if PG_VERSION_NUM < 150000
#error "bloomfilter needs PostgreSQL 15 or later"
#endif

/* Until 15, header files of varlena access came with postgres.h. */
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

/* Before 16 there are no soft errors: what would be one is thrown. */
#if PG_VERSION_NUM < 160000
#define ereturn(context, dummy, ...) \
	do { \
		(void) (context); \
		ereport(ERROR, __VA_ARGS__); \
		return dummy; \
	} while (0)
#endif

/* The locale of providers other than libc; the column was renamed in 17. */
#if PG_VERSION_NUM < 170000
#define Anum_pg_database_datlocale		Anum_pg_database_daticulocale
#endif

/* Before 18 the attribute had another name. */
#if PG_VERSION_NUM < 180000
#define pg_noreturn pg_attribute_noreturn()
#endif

/* Name and version in the magic block came with 18. */
#if PG_VERSION_NUM >= 180000
#define PGBLOOM_MODULE_MAGIC \
	PG_MODULE_MAGIC_EXT(.name = "bloomfilter", .version = PGBLOOM_VERSION)
#else
#define PGBLOOM_MODULE_MAGIC PG_MODULE_MAGIC
#endif

/* The local id of the transaction, the same in all of its statements. */
#if PG_VERSION_NUM >= 170000
#define MY_LOCAL_TRANSACTION_ID (MyProc->vxid.lxid)
#else
#define MY_LOCAL_TRANSACTION_ID (MyProc->lxid)
#endif

/* From 18 on, PL/pgSQL lets functions change its variables where they lie. */
#if PG_VERSION_NUM >= 180000
#define PGBLOOM_MODIFY_IN_PLACE
#endif

#endif							/* PGBLOOM_COMPAT_H */
