/*-------------------------------------------------------------------------
 *
 * wal.c
 *	  Changing pages of layers, with records of generic WAL.
 *
 * The records are those that GenericXLogFinish() writes.  It compares whole
 * pages byte by byte, and logs the first change of a page without content as
 * all of it, which would take several times as long as all the rest of adding
 * a key.  Here, words are compared.
 *
 * A record has, for each page, fragments: offset and length as OffsetNumber,
 * and the new bytes.  Tests replay them under wal_consistency_checking.  For
 * versions of PostgreSQL in which that is not known to be so, pages are logged
 * as full images, which is right in any version.
 *
 *-------------------------------------------------------------------------
 */
#include "index/index.h"

#include "access/rmgr.h"
#include "access/xloginsert.h"
#include "miscadmin.h"

#define FRAGMENT_HEADER		(2 * sizeof(OffsetNumber))

/* A gap up to this size between changed bytes is cheaper than a fragment. */
#define MAX_GAP				FRAGMENT_HEADER

#define WORD				sizeof(uint64)

/* Where the blocks of a page begin and end. */
#define PAGE_BEGIN			((int) MAXALIGN(SizeOfPageHeaderData))
#define PAGE_END			(BLCKSZ - (int) MAXALIGN(sizeof(BfiPageOpaque)))

/* Copy what may change: the header of a page, its end, and some blocks. */
static void
copy_changes(const BfiChange *change, char *to, const char *from)
{
	memcpy(to, from, PAGE_BEGIN);
	memcpy(to + change->from, from + change->from, change->to - change->from);
	memcpy(to + PAGE_END, from + PAGE_END, BLCKSZ - PAGE_END);
}

/*
 * Begin to change blocks of a page that is locked exclusively: the bytes between
 * two offsets.  No other part of the image is set.
 */
void
bfi_begin_change(BfiChange *change, Buffer buffer, int from, int to)
{
	change->buffer = buffer;
	change->from = from;
	change->to = to;
	copy_changes(change, change->image.data, BufferGetPage(buffer));
}

/* Append a fragment, if there is room for it. */
static bool
append_fragment(BfiChange *change, int start, int end)
{
	OffsetNumber header[2] = {(OffsetNumber) start,
	(OffsetNumber) (end - start)};

	if (change->size + FRAGMENT_HEADER + (end - start) > sizeof(change->delta))
		return false;
	memcpy(change->delta + change->size, header, FRAGMENT_HEADER);
	memcpy(change->delta + change->size + FRAGMENT_HEADER,
		   change->image.data + start, end - start);
	change->size += FRAGMENT_HEADER + (end - start);
	return true;
}

/*
 * Compute the fragments that turn the page into its image.  Returns false if
 * they would be larger than is worth it.
 */
static bool
compute_delta(BfiChange *change)
{
	const char *from = BufferGetPage(change->buffer);
	const char *to = change->image.data;
	int			start = -1;
	int			end = 0;
	int			word,
				i;

	change->size = 0;
	for (word = 0; word < BLCKSZ; word += WORD)
	{
		if (word == PAGE_BEGIN)
			word = change->from;
		if (word == change->to)
			word = PAGE_END;
		if (memcmp(from + word, to + word, WORD) == 0)
			continue;
		for (i = word; i < word + (int) WORD; i++)
		{
			if (from[i] == to[i])
				continue;
			if (start >= 0 && i - end > (int) MAX_GAP)
			{
				if (!append_fragment(change, start, end))
					return false;
				start = -1;
			}
			if (start < 0)
				start = i;
			end = i + 1;
		}
	}
	return start < 0 || append_fragment(change, start, end);
}

/*
 * Mark a page as changed that is not logged.  Where pages have checksums, one is
 * logged before its first change after a checkpoint nevertheless, as hints are: a
 * crash may leave half of it in the file.
 */
void
bfi_mark_unlogged(Relation index, Buffer buffer)
{
	if (RelationNeedsWAL(index))
		MarkBufferDirtyHint(buffer, true);
	else
		MarkBufferDirty(buffer);
}

/*
 * Write the images to the pages, in one WAL record.  Those that are not logged
 * come last.
 */
void
bfi_finish_changes(Relation index, BfiChange *changes, int n)
{
	XLogRecPtr	lsn;
	int			nlogged = 0;
	int			i;

	while (nlogged < n && RelationNeedsWAL(index) &&
		   BFI_IS_LOGGED(BfiPageGetOpaque((Page) changes[nlogged].image.data)->set))
		nlogged++;
	for (i = 0; i < nlogged; i++)
		changes[i].is_delta = PGBLOOM_KNOWS_GENERIC_WAL &&
			compute_delta(&changes[i]);

	START_CRIT_SECTION();
	if (nlogged > 0)
		XLogBeginInsert();
	for (i = 0; i < n; i++)
	{
		BfiChange  *change = &changes[i];

		copy_changes(change, BufferGetPage(change->buffer),
					 change->image.data);
		if (i >= nlogged)
			continue;
		MarkBufferDirty(change->buffer);
		XLogRegisterBuffer((uint8) i, change->buffer, REGBUF_STANDARD |
						   (change->is_delta ? 0 : REGBUF_FORCE_IMAGE));
		if (change->is_delta)
			XLogRegisterBufData((uint8) i, change->delta,
								(uint32) change->size);
	}
	if (nlogged > 0)
	{
		lsn = XLogInsert(RM_GENERIC_ID, 0);
		for (i = 0; i < nlogged; i++)
			PageSetLSN(BufferGetPage(changes[i].buffer), lsn);
	}
	for (i = nlogged; i < n; i++)
		bfi_mark_unlogged(index, changes[i].buffer);
	END_CRIT_SECTION();
}
