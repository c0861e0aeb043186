/*-------------------------------------------------------------------------
 *
 * sample.c
 *	  Whether a filter is worth probing: counts of its probes, and samples.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

/*
 * Probes after which a filter decides whether it is worth probing: if too many
 * of them passed, only one row of SAMPLE is probed, until of a shorter window of
 * samples fewer did, by the share CHANGE.  Between the two shares nothing
 * changes, lest filters near the limit go back and forth.
 *
 * Below a grouping, each row is probed.
 */
#define WINDOW			1024
#define SAMPLE			101		/* a prime: rows may come in turns */
#define SAMPLE_WINDOW	100
#define CHANGE			0.1

/* Account the probes of this window, and start another. */
void
pgbloom_join_start_window(PgBloomJoinFilter *filter)
{
	filter->window = filter->sampling ? SAMPLE_WINDOW : WINDOW;
	if (filter->checked > 0)
		filter->counts->state = filter->sampling ?
			PGBLOOM_JOIN_SAMPLING : PGBLOOM_JOIN_ACTIVE;
	filter->counts->checked += filter->checked;
	filter->counts->removed += filter->removed;
	filter->checked = filter->removed = 0;
}

/* Decide, at the end of a window, whether to probe each row or samples. */
static void
end_window(PgBloomJoinFilter *filter)
{
	double		passed = 1 - (double) filter->removed / filter->checked;

	if (passed > filter->most_passed)
		filter->sampling = true;
	else if (passed < filter->most_passed - CHANGE)
		filter->sampling = false;
	pgbloom_join_start_window(filter);
}

/* Account a row that was probed, and pass on whether it was found. */
bool
pgbloom_join_count_row(PgBloomJoinFilter *filter, bool found)
{
	if (!found)
		filter->removed++;
	if (++filter->checked == filter->window)
		end_window(filter);
	if (filter->sampling)
		filter->skip = SAMPLE - 1;
	return found;
}
