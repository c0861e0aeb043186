/*-------------------------------------------------------------------------
 *
 * exclusions.c
 *	  The exclusions of a builder: an ascending list of the hashes of keys
 *	  that its layers report as members, but that are known not to be.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "builder.h"
#include "list.h"

bool
bf_exclusions_contain(const BfBuilder *b, uint64_t hash)
{
	size_t		i = bf_list_find(b->exclusions, b->nexclusions, hash);

	return i < b->nexclusions && b->exclusions[i] == hash;
}

/*
 * Add a hash that the layers report as a member.  BF_TOO_MANY_EXCLUSIONS or
 * BF_NO_MEMORY if it cannot be recorded.
 */
BfStatus
bf_exclusions_add(BfBuilder *b, uint64_t hash)
{
	size_t		i = bf_list_find(b->exclusions, b->nexclusions, hash);

	if (i < b->nexclusions && b->exclusions[i] == hash)
		return BF_OK;
	if (b->nexclusions == BF_MAX_EXCLUSIONS)
		return BF_TOO_MANY_EXCLUSIONS;
	if (b->exclusions == NULL)
	{
		b->exclusions = b->env.alloc(b->env.context,
									 BF_MAX_EXCLUSIONS * sizeof(uint64_t));
		if (b->exclusions == NULL)
			return BF_NO_MEMORY;
	}
	memmove(b->exclusions + i + 1, b->exclusions + i,
			(b->nexclusions - i) * sizeof(uint64_t));
	b->exclusions[i] = hash;
	b->nexclusions++;
	return BF_OK;
}

/*
 * The same for exclusions of filters that are combined, of which there may be
 * too many together.  One that is dropped is a false positive again, which is
 * no reason to fail.
 */
BfStatus
bf_exclusions_add_if_room(BfBuilder *b, uint64_t hash)
{
	BfStatus	status = bf_exclusions_add(b, hash);

	return status == BF_TOO_MANY_EXCLUSIONS ? BF_OK : status;
}

/* Remove a hash, if it is one, because its key is added to the filter. */
void
bf_exclusions_remove(BfBuilder *b, uint64_t hash)
{
	size_t		i = bf_list_find(b->exclusions, b->nexclusions, hash);

	if (i == b->nexclusions || b->exclusions[i] != hash)
		return;
	b->nexclusions--;
	memmove(b->exclusions + i, b->exclusions + i + 1,
			(b->nexclusions - i) * sizeof(uint64_t));
}
