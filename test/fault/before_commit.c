/*-------------------------------------------------------------------------
 *
 * before_commit.c
 *	  A library that executes a statement just before the commit.
 *
 * Extensions do so by a callback.  This one is a library of its own, so that
 * the statement may be what loads the extension.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

PG_MODULE_MAGIC;

PGDLLEXPORT PG_FUNCTION_INFO_V1(execute_before_commit);

static char *statement = NULL;

static void
execute_statement(XactEvent event, void *arg)
{
	char	   *to_execute = statement;

	(void) arg;
	if (event != XACT_EVENT_PRE_COMMIT || to_execute == NULL)
		return;
	statement = NULL;
	PushActiveSnapshot(GetTransactionSnapshot());
	SPI_connect();
	SPI_execute(to_execute, false, 0);
	SPI_finish();
	PopActiveSnapshot();
}

/* execute_before_commit(text) returns void */
Datum
execute_before_commit(PG_FUNCTION_ARGS)
{
	static bool registered = false;

	if (!registered)
		RegisterXactCallback(execute_statement, NULL);
	registered = true;
	statement = MemoryContextStrdup(TopMemoryContext,
									text_to_cstring(PG_GETARG_TEXT_PP(0)));
	PG_RETURN_VOID();
}
