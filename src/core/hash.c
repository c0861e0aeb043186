/*-------------------------------------------------------------------------
 *
 * hash.c
 *	  From the canonical bytes of a key to its 64-bit hash.
 *
 * The hash is XXH3, 64 bits, with the seed of the filter.  It is the same for
 * the same bytes on every machine, and part of the format: see doc/FORMAT.md.
 * This is the only file that includes xxhash.h.
 *
 *-------------------------------------------------------------------------
 */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "bf.h"
#include "bytes.h"

#if XXH_VERSION_NUMBER < 800
#error "xxHash 0.8.0 or later is needed: XXH3 was not final before"
#endif

/* Part of the definition of a shard: never change it. */
#define SHARD_SEED	UINT64_C(0x7368617264)	/* "shard" */

/* The hash of the canonical bytes of a key; bytes may be NULL if size is 0. */
uint64_t
bf_hash_bytes(const void *bytes, size_t size, uint64_t seed)
{
	return XXH3_64bits_withSeed(bytes, size, seed);
}

/* The hash of the eight bytes of a number, least significant first. */
uint64_t
bf_hash_u64(uint64_t value, uint64_t seed)
{
	uint8_t		bytes[8];

	bf_store64(bytes, value);
	return XXH3_64bits_withSeed(bytes, sizeof(bytes), seed);
}

/*
 * The shard of a key among this many shards (at least 1), from 0 on, by its
 * hash.  The hash is hashed once more, because its own bits choose the block
 * and the positions of the key: within a shard, they must be spread as evenly
 * as among all keys.
 */
uint32_t
bf_shard(uint64_t hash, uint32_t shards)
{
	return (uint32_t) bf_scale(bf_hash_u64(hash, SHARD_SEED), shards);
}
