/*-------------------------------------------------------------------------
 *
 * rate.h
 *	  The model of a blocked Bloom filter: see rate.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BF_RATE_H
#define BF_RATE_H

#include "bf.h"

BF_HIDE_BEGIN

extern double bf_rate_of_mean(unsigned block_log2, unsigned k, double mean);
extern double bf_rate_of_keys(const BfGeometry *geometry, double n);
extern double bf_expected_bits_set(const BfGeometry *geometry, double n);
extern double bf_expected_keys(const BfGeometry *geometry, double bits_set);
extern double bf_deviation(double m, double k, double n);

BF_HIDE_END

#endif							/* BF_RATE_H */
