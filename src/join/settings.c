/*-------------------------------------------------------------------------
 *
 * settings.c
 *	  The settings of join filters.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

#include <limits.h>

#include "miscadmin.h"
#include "utils/guc.h"

#define MIN_LIMIT_KB	1024

int			pgbloom_join_filters = PGBLOOM_JOIN_OFF;
int			pgbloom_join_filter_min_rows = 10000;
bool		pgbloom_join_planning = true;
double		pgbloom_join_planning_cost = 10000;
static int	max_memory = -1;

static const struct config_enum_entry join_filters_options[] = {
	{"off", PGBLOOM_JOIN_OFF, false},
	{"on", PGBLOOM_JOIN_ON, false},
	{"force", PGBLOOM_JOIN_FORCE, false},
	{"false", PGBLOOM_JOIN_OFF, true},
	{"true", PGBLOOM_JOIN_ON, true},
	{"no", PGBLOOM_JOIN_OFF, true},
	{"yes", PGBLOOM_JOIN_ON, true},
	{"0", PGBLOOM_JOIN_OFF, true},
	{"1", PGBLOOM_JOIN_ON, true},
	{NULL, 0, false}
};

/* The most memory of one filter while it is built, in bytes. */
Size
pgbloom_join_filter_limit(void)
{
	return (Size) (max_memory >= 0 ? max_memory : Max(work_mem, MIN_LIMIT_KB)) *
		1024;
}

void
pgbloom_join_define_settings(void)
{
	DefineCustomEnumVariable("bloomfilter.join_filters",
							 "Filters the outer side of hash joins by the keys of the inner side.",
							 "\"force\" disregards the estimated gain; it is meant for tests.",
							 &pgbloom_join_filters, PGBLOOM_JOIN_OFF,
							 join_filters_options, PGC_USERSET,
							 GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomIntVariable("bloomfilter.join_filter_min_rows",
							"The least estimated number of rows of a scan that a join filter is added to.",
							NULL,
							&pgbloom_join_filter_min_rows, 10000, 0, INT_MAX,
							PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomIntVariable("bloomfilter.join_filter_memory",
							"The most memory that one join filter uses in each process.",
							"-1 means work_mem, but at least 1 MB.",
							&max_memory, -1, -1, MAX_KILOBYTES,
							PGC_USERSET, GUC_UNIT_KB | GUC_EXPLAIN,
							NULL, NULL, NULL);
	DefineCustomBoolVariable("bloomfilter.join_planning",
							 "With join filters, corrects estimates of joins, and plans for what filters leave unread.",
							 NULL,
							 &pgbloom_join_planning, true,
							 PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomRealVariable("bloomfilter.join_planning_cost",
							 "The least cost of reading the tables of a statement for which join_planning does anything.",
							 NULL,
							 &pgbloom_join_planning_cost, 10000, 0, 1e10,
							 PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	/* Last: it removes values set before the load, except of settings above. */
	MarkGUCPrefixReserved("bloomfilter");
}
