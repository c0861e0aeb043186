/*-------------------------------------------------------------------------
 *
 * image.h
 *	  What the files share that work on images.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BF_IMAGE_H
#define BF_IMAGE_H

#include "bf.h"

BF_HIDE_BEGIN

/* key_type.c: which key types an image may have */
extern bool bf_key_type_is_known(unsigned code);
extern bool bf_key_type_has_name(unsigned code);
extern bool bf_valid_platform(const BfKeyType *key_type);

/* image.c: writing the header and the layer directory */
extern uint8_t *bf_write_header(uint8_t *image, const BfParams *params,
								uint32_t nhashes, int nlayers);
extern uint8_t *bf_write_layer(uint8_t *entry, const BfGeometry *geometry,
							   uint64_t bits_set);

BF_HIDE_END

#endif							/* BF_IMAGE_H */
