/*-------------------------------------------------------------------------
 *
 * image.h
 *	  Writing the header and the layer directory of an image: see image.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BF_IMAGE_H
#define BF_IMAGE_H

#include "bf.h"

BF_HIDE_BEGIN

extern uint8_t *bf_write_header(uint8_t *image, const BfParams *params,
								uint32_t nhashes, int nlayers,
								uint32_t nexclusions);
extern uint8_t *bf_write_layer(uint8_t *entry, const BfGeometry *geometry,
							   uint64_t bits_set);
extern void bf_update_bits_set(uint8_t *image, const BfView *view, int layer,
							   uint64_t bits_set);

BF_HIDE_END

#endif							/* BF_IMAGE_H */
