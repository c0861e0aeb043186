/*-------------------------------------------------------------------------
 *
 * bytes.h
 *	  Little-endian loads and stores at any address.
 *
 * An image has no alignment: PostgreSQL puts a length word of one byte or of
 * four in front of it.  Compilers recognize the shifts, so that each of these
 * is one move on a little-endian machine.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BF_BYTES_H
#define BF_BYTES_H

#include <stdint.h>
#include <string.h>

static inline uint32_t
bf_load32(const uint8_t *p)
{
	return (uint32_t) p[0] | (uint32_t) p[1] << 8 |
		(uint32_t) p[2] << 16 | (uint32_t) p[3] << 24;
}

static inline uint64_t
bf_load64(const uint8_t *p)
{
	return (uint64_t) bf_load32(p) | (uint64_t) bf_load32(p + 4) << 32;
}

static inline void
bf_store32(uint8_t *p, uint32_t value)
{
	p[0] = (uint8_t) value;
	p[1] = (uint8_t) (value >> 8);
	p[2] = (uint8_t) (value >> 16);
	p[3] = (uint8_t) (value >> 24);
}

static inline void
bf_store64(uint8_t *p, uint64_t value)
{
	bf_store32(p, (uint32_t) value);
	bf_store32(p + 4, (uint32_t) (value >> 32));
}

static inline double
bf_load_double(const uint8_t *p)
{
	uint64_t	bits = bf_load64(p);
	double		value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static inline void
bf_store_double(uint8_t *p, double value)
{
	uint64_t	bits;

	memcpy(&bits, &value, sizeof(bits));
	bf_store64(p, bits);
}

/* Single precision */
static inline double
bf_load_float(const uint8_t *p)
{
	uint32_t	bits = bf_load32(p);
	float		value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static inline void
bf_store_float(uint8_t *p, double value)
{
	float		single = (float) value;
	uint32_t	bits;

	memcpy(&bits, &single, sizeof(bits));
	bf_store32(p, bits);
}

#endif							/* BF_BYTES_H */
