/*-------------------------------------------------------------------------
 *
 * core_setting.c
 *	  A setting without a prefix, as a later PostgreSQL may have.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"

PGDLLEXPORT PG_FUNCTION_INFO_V1(define_core_setting);

/* define_core_setting(name text) returns void; the setting is on */
Datum
define_core_setting(PG_FUNCTION_ARGS)
{
	MemoryContext context = MemoryContextSwitchTo(TopMemoryContext);
	char	   *name = text_to_cstring(PG_GETARG_TEXT_PP(0));
	bool	   *value = palloc(sizeof(bool));

	DefineCustomBoolVariable(name, "A setting of a later PostgreSQL.", NULL,
							 value, true, PGC_USERSET, 0, NULL, NULL, NULL);
	MemoryContextSwitchTo(context);
	PG_RETURN_VOID();
}
