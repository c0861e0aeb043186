/*-------------------------------------------------------------------------
 *
 * list.h
 *	  Ascending lists of distinct hashes, in memory and in an image.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BF_LIST_H
#define BF_LIST_H

#include "bf.h"

BF_HIDE_BEGIN

/* Lists in memory */
extern void bf_list_sort(const BfInterrupts *interrupts, uint64_t *list,
						 size_t n);
extern size_t bf_list_dedup(uint64_t *list, size_t n);
extern void bf_list_merge(uint64_t *list, size_t n,
						  const uint64_t *tail, size_t ntail);
extern size_t bf_list_find(const uint64_t *list, size_t n, uint64_t hash);

/* Lists in an image: little-endian, at any address */
extern bool bf_list_contains(const uint8_t *list, size_t n, uint64_t hash);
extern bool bf_list_contains_sliced(size_t at, size_t n, uint64_t hash,
									BfReadSlice read, void *context);

BF_HIDE_END

#endif							/* BF_LIST_H */
