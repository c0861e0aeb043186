/*-------------------------------------------------------------------------
 *
 * wal.h
 *	  Changing pages of layers: see wal.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BFI_WAL_H
#define BFI_WAL_H

#include "index/index.h"

#include "access/generic_xlog.h"

/* Pages that one record can change. */
#define BFI_MAX_CHANGES		MAX_GENERIC_XLOG_PAGES

/* A page that is being changed. */
typedef struct BfiChange
{
	Buffer		buffer;
	bool		is_delta;		/* else it is logged as a full image */
	size_t		size;			/* of delta */
	PGAlignedBlock image;		/* what the page is going to be */
	char		delta[BLCKSZ / 2];
} BfiChange;

#ifdef __GNUC__
#pragma GCC visibility push(hidden)
#endif

extern Page bfi_begin_change(BfiChange *change, Buffer buffer);
extern void bfi_finish_changes(Relation index, BfiChange *changes, int n);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#endif							/* BFI_WAL_H */
