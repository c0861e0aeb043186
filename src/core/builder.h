/*-------------------------------------------------------------------------
 *
 * builder.h
 *	  What the files share that work on a filter under construction.
 *
 * Listed from the bottom up: each file calls only those above it in this list.
 * compact.c and set.c come last.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BF_BUILDER_H
#define BF_BUILDER_H

#include "bf.h"

BF_HIDE_BEGIN

/* layers.c */
extern bool bf_build_layers_contain(const BfBuilder *b, uint64_t hash);
extern bool bf_build_layer_has_room(const BfBuildLayer *layer, uint32_t n);
extern uint64_t bf_build_layers_bits(const BfBuilder *b);
extern BfStatus bf_build_layer_make(const BfBuilder *b,
									const BfGeometry *geometry,
									BfBuildLayer *layer);
extern BfStatus bf_build_layers_push(BfBuilder *b, const BfGeometry *geometry);
extern void bf_build_layers_free(BfBuilder *b);
extern void bf_build_layers_sort(BfBuilder *b);

/* growth.c */
extern BfStatus bf_build_layers_append(BfBuilder *b,
									   const BfGeometry *geometry);
extern BfStatus bf_build_layers_add(BfBuilder *b, uint64_t hash,
									uint32_t remaining);
extern BfStatus bf_build_layers_add_all(BfBuilder *b, const uint64_t *hashes,
										uint32_t n);
extern BfStatus bf_build_layers_take_in(BfBuilder *b,
										const BfGeometry *geometry,
										const uint8_t *bits,
										uint64_t bits_set);

/* hashes.c */
extern BfStatus bf_builder_sort_and_convert(BfBuilder *b);
extern void bf_builder_sort_for_probes(BfBuilder *b);
extern bool bf_builder_must_convert(const BfBuilder *b, uint32_t n);
extern BfStatus bf_builder_add_list(BfBuilder *b, const uint8_t *list,
									uint32_t n);
extern BfStatus bf_builder_flush_hashes(BfBuilder *b);
extern void bf_builder_free_hashes(BfBuilder *b);

/* builder.c */
extern void bf_builder_set_params(BfBuilder *b, const BfParams *params);
extern size_t bf_sparse_size(const BfParams *params, uint32_t nhashes);
extern size_t bf_dense_size(const BfParams *params,
							const BfGeometry *geometry);

/* merge.c */
extern BfStatus bf_builder_join_params(BfBuilder *b, const BfParams *params);

BF_HIDE_END

#endif							/* BF_BUILDER_H */
