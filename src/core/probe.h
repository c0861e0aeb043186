/*-------------------------------------------------------------------------
 *
 * probe.h
 *	  Probing the layers of an image without its exclusions: see probe.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BF_PROBE_H
#define BF_PROBE_H

#include "bf.h"

BF_HIDE_BEGIN

extern bool bf_layers_contain(const BfView *view, uint64_t hash);

BF_HIDE_END

#endif							/* BF_PROBE_H */
