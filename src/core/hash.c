/*-------------------------------------------------------------------------
 *
 * hash.c
 *	  From the canonical bytes of a key to its 64-bit hash.
 *
 * The hash is XXH3, 64 bits, seeded: the same for the same bytes on every
 * machine.  This is the only file that includes xxhash.h.
 *
 *-------------------------------------------------------------------------
 */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "bf.h"
#include "bytes.h"
#include "internal.h"

#if XXH_VERSION_NUMBER < 800
#error "xxHash 0.8.0 or later is needed: earlier versions of XXH3 hash differently"
#endif

/* Part of what shards mean: never to be changed. */
#define SHARD_SEED	UINT64_C(0x7368617264)	/* "shard" */

uint64_t
bf_hash_bytes(const void *bytes, size_t size, uint64_t seed)
{
	return XXH3_64bits_withSeed(bytes, size, seed);
}

/* The hash of a number's eight bytes, least significant first. */
uint64_t
bf_hash_u64(uint64_t value, uint64_t seed)
{
	uint8_t		bytes[8];

	bf_store64(bytes, value);
	return XXH3_64bits_withSeed(bytes, sizeof(bytes), seed);
}

/*
 * Which of this many shards a key belongs to, by its hash.  The hash is
 * hashed once more, because its own bits choose block and positions: within
 * a shard they must be as good as anywhere.
 */
uint32_t
bf_shard(uint64_t hash, uint32_t shards)
{
	return (uint32_t) bf_scale(bf_hash_u64(hash, SHARD_SEED), shards);
}
