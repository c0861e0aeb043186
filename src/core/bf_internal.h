/*-------------------------------------------------------------------------
 *
 * bf_internal.h
 *	  What the files of the core share among themselves.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BF_INTERNAL_H
#define BF_INTERNAL_H

#include "bf.h"

#ifdef __GNUC__
#pragma GCC visibility push(hidden)
#endif

/* bf_bits: kernels on the blocks of one layer */
extern bool bf_bits_contain(const BfShape *shape, const uint8_t *bits,
							uint64_t hash);
extern unsigned bf_bits_add(const BfShape *shape, uint8_t *bits,
							uint64_t hash);
extern uint64_t bf_bits_count(const uint8_t *bits, size_t size);
extern uint64_t bf_bits_count_union(const uint8_t *x, const uint8_t *y,
									size_t size);
extern void bf_bits_unite(uint8_t *to, const uint8_t *from, size_t size);
extern void bf_bits_fold(uint8_t *to, const uint8_t *from,
						 uint32_t nblocks, uint32_t factor,
						 size_t block_size);

/* bf_list: ascending lists of hashes */
extern void bf_list_sort(uint64_t *list, size_t n);
extern size_t bf_list_dedup(uint64_t *list, size_t n);
extern void bf_list_merge(uint64_t *list, size_t n,
						  const uint64_t *tail, size_t ntail);
extern bool bf_list_contains(const uint8_t *list, size_t n, uint64_t hash);

/* bf_math */
static inline size_t
bf_shape_size(const BfShape *shape)
{
	return (size_t) (bf_shape_bits(shape) / 8);
}

/* bf_format: images are written front to back */
extern uint8_t *bf_write_header(uint8_t *image, const BfParams *params,
								uint32_t nhashes, int nlayers);
extern uint8_t *bf_write_layer(uint8_t *entry, const BfShape *shape,
								uint64_t bits_set);
extern size_t bf_header_size(const BfParams *params, int nlayers);
extern void bf_update_bits_set(uint8_t *image, const BfView *view, int layer,
							   uint64_t bits_set);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#endif							/* BF_INTERNAL_H */
