/*-------------------------------------------------------------------------
 *
 * compat.h
 *	  Differences between the major versions of PostgreSQL, 14 and later.
 *
 * Whatever depends on PG_VERSION_NUM stands here and nowhere else.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGBLOOM_COMPAT_H
#define PGBLOOM_COMPAT_H

/*
 * With 13, records cannot be keys, since they have no extended hash function.
 * Tests run there nevertheless, to have 14 between two majors that pass.
 */
#if PG_VERSION_NUM < 140000
#ifndef PGBLOOM_BRACKET
#error "bloomfilter needs PostgreSQL 14 or later"
#endif
#define TYPTYPE_MULTIRANGE			'm'
#define get_multirange_range(type)	InvalidOid
#define PG_LSNOID					LSNOID
#define VARATT_EXTERNAL_GET_EXTSIZE(pointer) ((pointer).va_extsize)
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

/*
 * The locale of a database.  Until 14 it was always one of libc, with a name
 * of type name; of other providers, the column was renamed in 17.
 */
#if PG_VERSION_NUM < 150000
#define DatabaseLocaleProvider(form)	COLLPROVIDER_LIBC
#define DatumGetDatctype(datum)			pstrdup(NameStr(*DatumGetName(datum)))
#define Anum_pg_database_datlocale		Anum_pg_database_datctype
#else
#define DatabaseLocaleProvider(form)	((form)->datlocprovider)
#define DatumGetDatctype(datum)			TextDatumGetCString(datum)
#if PG_VERSION_NUM < 170000
#define Anum_pg_database_datlocale		Anum_pg_database_daticulocale
#endif
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
