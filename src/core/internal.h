/*-------------------------------------------------------------------------
 *
 * internal.h
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
extern bool bf_bits_contain(const BfGeometry *geometry, const uint8_t *bits,
							uint64_t hash);
extern void bf_bits_prefetch(const BfGeometry *geometry, const uint8_t *bits,
							 uint64_t hash);
extern unsigned bf_bits_add(const BfGeometry *geometry, uint8_t *bits,
							uint64_t hash);
extern bool bf_bits_add_within(const BfGeometry *geometry, uint8_t *bits,
							   uint64_t hash, uint64_t full,
							   uint64_t *bits_set);
extern uint64_t bf_bits_count(const uint8_t *bits, size_t size);
extern double bf_bits_fpp(const BfGeometry *geometry, const uint8_t *bits);
extern uint64_t bf_bits_count_union(const BfEnv *env, const uint8_t *x,
									const uint8_t *y, size_t size);
extern void bf_bits_unite(const BfEnv *env, uint8_t *to,
						  const uint8_t *from, size_t size);
extern void bf_bits_intersect(const BfEnv *env, uint8_t *to,
							  const uint8_t *with, size_t size);
extern void bf_bits_copy(const BfEnv *env, uint8_t *to,
						 const uint8_t *from, size_t size);
extern void bf_bits_fold(const BfEnv *env, uint8_t *to,
						 const uint8_t *from, uint32_t nblocks,
						 uint32_t factor, size_t block_size);
extern void bf_bits_unite_into(const BfEnv *env, const BfGeometry *geometry,
							   uint8_t *to, const BfGeometry *from_geometry,
							   const uint8_t *from);

/* bf_list: ascending lists of hashes */
extern void bf_list_sort(const BfEnv *env, uint64_t *list, size_t n);
extern size_t bf_list_dedup(uint64_t *list, size_t n);
extern void bf_list_merge(uint64_t *list, size_t n,
						  const uint64_t *tail, size_t ntail);
extern size_t bf_list_find(const uint64_t *list, size_t n, uint64_t hash);
extern bool bf_list_contains(const uint8_t *list, size_t n, uint64_t hash);
extern bool bf_list_contains_sliced(size_t at, size_t n, uint64_t hash,
									  BfReadSlice read, void *context);

/* 2^64 divided by the golden ratio, made odd (Knuth, TAOCP 3, 6.4). */
#define BF_GOLDEN	UINT64_C(0x9E3779B97F4A7C15)

/* Its 64th power: a generation does not reach the positions of the next. */
#define BF_GOLDEN_64	UINT64_C(0x66C0333B9C3B3301)

/* What processors read from memory at once; a block is a multiple of it. */
#define BF_CACHE_LINE	64

/* The high word of hash * n: a number from 0 to n - 1, for n up to 2^32. */
static inline uint64_t
bf_scale(uint64_t hash, uint32_t n)
{
	uint64_t	low = (hash & 0xFFFFFFFF) * n;
	uint64_t	high = (hash >> 32) * n;

	return (high + (low >> 32)) >> 32;
}

/* Where the block of a key begins in its layer. */
static inline size_t
bf_block_at(const BfGeometry *geometry, uint64_t hash)
{
	return (size_t) bf_scale(hash, geometry->nblocks) << (geometry->block_log2 - 3);
}

/* bf_math */
static inline size_t
bf_geometry_size(const BfGeometry *geometry)
{
	return (size_t) (bf_geometry_bits(geometry) / 8);
}

static inline bool
bf_geometry_equal(const BfGeometry *x, const BfGeometry *y)
{
	return x->nblocks == y->nblocks && x->block_log2 == y->block_log2 &&
		x->k == y->k && x->capacity == y->capacity && x->fpp == y->fpp &&
		x->generation == y->generation && x->merged == y->merged;
}

/* What bloom_empty() asks for, and the key type that it has. */
static inline bool
bf_params_are_neutral(const BfParams *params)
{
	return params->fpp == BF_FPP_DEFAULT && params->expected == 0 &&
		params->seed == 0 && params->key_type.code == BF_KEY_NONE;
}

/* bf_filter */
extern bool bf_layers_contain(const BfView *view, uint64_t hash);

/* bf_builder */
extern BfStatus bf_builder_reserve(BfBuilder *b, uint32_t n);
extern BfStatus bf_builder_add_exclusion(BfBuilder *b, uint64_t hash);
extern BfStatus bf_builder_keep_exclusion(BfBuilder *b, uint64_t hash);
extern BfStatus bf_builder_join_params(BfBuilder *b, const BfParams *params);

/* In the i-th turn of a loop over hashes: check for interrupts the environment now and then. */
static inline void
bf_check_interrupts(const BfEnv *env, size_t i)
{
	if (i % 4096 == 0)
		env->check_interrupts(env->context);
}

/* bf_format: images are written header to back */
extern uint8_t *bf_write_header(uint8_t *image, const BfParams *params,
								uint32_t nhashes, int nlayers,
								uint32_t nexclusions);
extern uint8_t *bf_write_layer(uint8_t *entry, const BfGeometry *geometry,
								uint64_t bits_set);
extern void bf_update_bits_set(uint8_t *image, const BfView *view, int layer,
							   uint64_t bits_set);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#endif							/* BF_INTERNAL_H */
