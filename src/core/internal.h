/*-------------------------------------------------------------------------
 *
 * internal.h
 *	  What the files of the core share and nobody else uses: see bits.h for
 *	  bits.c and bitmap.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BF_INTERNAL_H
#define BF_INTERNAL_H

#include "bits.h"

/* Bits set in a layer, for its rate: with those that intersections cut. */
static inline uint64_t
bf_layer_fullness(const BfLayer *layer)
{
	return layer->bits_set + layer->bits_cut;
}

#pragma GCC visibility push(hidden)

/* key_type.c */
extern const char *bf_key_type_reason(const BfKeyType *key_type);

/* list.c: lists of hashes in memory */
extern void bf_list_sort(const BfInterrupts *interrupts, uint64_t *list,
						 size_t n);
extern size_t bf_list_dedup(const BfInterrupts *interrupts, uint64_t *list,
							size_t n);
extern void bf_list_merge(uint64_t *list, size_t n,
						  const uint64_t *tail, size_t ntail);

/* list.c: ascending ones in an image, little-endian and at any address */
extern bool bf_list_contains(const uint8_t *list, size_t n, uint64_t hash);
extern bool bf_list_contains_sliced(size_t at, size_t n, uint64_t hash,
									BfReadSlice read, void *context);

/* rate.c */
extern double bf_mean_fpp(unsigned block_log2, unsigned k, double mean,
						  double n, double nblocks);
extern double bf_expected_bits_set(const BfGeometry *geometry, double n);
extern double bf_expected_keys(const BfGeometry *geometry, double bits_set);
extern double bf_deviation(double m, double k, double n);

/* layers.c */
extern void *bf_reallocate(const BfEnv *env, void *memory, size_t used,
						   size_t size);
extern bool bf_layer_has_room(const BfLayer *layer, uint32_t n);
extern bool bf_layers_have_room(const BfParams *params, const BfLayer *layers,
								int nlayers, uint32_t n);
extern BfStatus bf_builder_append_layer(BfBuilder *b,
										const BfGeometry *geometry,
										BfLayer **layer);
extern BfStatus bf_builder_add_to_layers(BfBuilder *b, uint64_t hash,
										 uint32_t remaining);
extern BfStatus bf_builder_add_all_to_layers(BfBuilder *b,
											 const uint64_t *hashes,
											 uint32_t n);
extern void bf_layer_set_cut(BfLayer *layer, uint64_t bits_cut);
extern void bf_builder_free_layers(BfBuilder *b);
extern void bf_builder_sort_layers(BfBuilder *b);

/* builder.c */
extern void bf_builder_set_params(BfBuilder *b, const BfParams *params);
extern BfStatus bf_builder_sort_and_convert(BfBuilder *b);
extern bool bf_builder_must_convert(const BfBuilder *b, uint32_t n);
extern BfStatus bf_builder_add_list(BfBuilder *b, const uint8_t *list,
									uint32_t n);
extern BfStatus bf_builder_flush_hashes(BfBuilder *b);

/* set.c */
extern BfStatus bf_builder_take_in_layer(BfBuilder *b, int among,
										 const BfLayer *from);

#pragma GCC visibility pop

#endif							/* BF_INTERNAL_H */
