/*-------------------------------------------------------------------------
 *
 * key_type.h
 *	  Which key types an image may have: see key_type.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BF_KEY_TYPE_H
#define BF_KEY_TYPE_H

#include "bf.h"

BF_HIDE_BEGIN

extern bool bf_key_type_is_known(unsigned code);
extern bool bf_key_type_has_name(unsigned code);
extern bool bf_valid_platform(const BfKeyType *key_type);

BF_HIDE_END

#endif							/* BF_KEY_TYPE_H */
