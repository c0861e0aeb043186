/*-------------------------------------------------------------------------
 *
 * compat.h
 *	  Differences between the supported major versions of PostgreSQL, 15 to 19.
 *
 * Code that depends on PG_VERSION_NUM is here and nowhere else.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGBLOOM_COMPAT_H
#define PGBLOOM_COMPAT_H

#if PG_VERSION_NUM < 150000
#error "bloomfilter needs PostgreSQL 15 or later"
#endif

/* Until 15, header files of varlena access came with postgres.h. */
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

/* 18 gave the functions that write EXPLAIN's output a header of their own. */
#if PG_VERSION_NUM >= 180000
#define PGBLOOM_EXPLAIN_HEADER "commands/explain_format.h"
#else
#define PGBLOOM_EXPLAIN_HEADER "commands/explain.h"
#endif

/* From 18 on, extensions may add lines to EXPLAIN's output for a plan. */
#if PG_VERSION_NUM >= 180000
#define PGBLOOM_EXPLAIN_PLAN_HOOK	explain_per_plan_hook
#endif

/* EXPLAIN has options of extensions from 18 on; 19 added a parameter. */
#if PG_VERSION_NUM >= 190000
#define PGBLOOM_REGISTER_EXPLAIN_OPTION(name, handler) \
	RegisterExtensionExplainOption(name, handler, GUCCheckBooleanExplainOption)
#elif PG_VERSION_NUM >= 180000
#define PGBLOOM_REGISTER_EXPLAIN_OPTION	RegisterExtensionExplainOption
#endif

/* Before 16 there are no soft errors: what would be one is thrown. */
#if PG_VERSION_NUM < 160000
#define ereturn(context, dummy, ...) \
	do { \
		(void) (context); \
		ereport(ERROR, __VA_ARGS__); \
		return dummy; \
	} while (0)
#endif

/* The locale of providers other than libc; the columns were renamed in 17. */
#if PG_VERSION_NUM < 170000
#define Anum_pg_database_datlocale		Anum_pg_database_daticulocale
#define Anum_pg_collation_colllocale	Anum_pg_collation_colliculocale
#endif

/* Before 18 the attribute had another name. */
#if PG_VERSION_NUM < 180000
#define pg_noreturn pg_attribute_noreturn()
#endif

/* The attribute was renamed; newer minor releases know both names. */
#ifndef pg_always_inline
#define pg_always_inline pg_attribute_always_inline
#endif

/* Name and version in the magic block came with 18. */
#if PG_VERSION_NUM >= 180000
#define PGBLOOM_MODULE_MAGIC \
	PG_MODULE_MAGIC_EXT(.name = "bloomfilter", .version = PGBLOOM_VERSION)
#else
#define PGBLOOM_MODULE_MAGIC PG_MODULE_MAGIC
#endif

/* 19 added a parameter to planner_hook. */
#if PG_VERSION_NUM >= 190000
#define PGBLOOM_PLANNER_PARAMETERS \
	Query *parse, const char *query_string, int cursor_options, \
	ParamListInfo params, struct ExplainState *es
#define PGBLOOM_PLANNER_ARGUMENTS parse, query_string, cursor_options, params, es
#define PGBLOOM_PLAN(parse, query_string, cursor_options, params) \
	planner(parse, query_string, cursor_options, params, NULL)
#else
#define PGBLOOM_PLANNER_PARAMETERS \
	Query *parse, const char *query_string, int cursor_options, \
	ParamListInfo params
#define PGBLOOM_PLANNER_ARGUMENTS parse, query_string, cursor_options, params
#define PGBLOOM_PLAN	planner
#endif

/* 19 added a parameter to DomainHasConstraints(). */
#if PG_VERSION_NUM >= 190000
#define PGBLOOM_DOMAIN_IS_CHECKED(type) DomainHasConstraints(type, NULL)
#else
#define PGBLOOM_DOMAIN_IS_CHECKED(type) DomainHasConstraints(type)
#endif

/* 18 removed a parameter of ExecutorRun_hook. */
#if PG_VERSION_NUM >= 180000
#define PGBLOOM_RUN_PARAMETERS \
	QueryDesc *query, ScanDirection direction, uint64 count
#define PGBLOOM_RUN_ARGUMENTS	query, direction, count
#else
#define PGBLOOM_RUN_PARAMETERS \
	QueryDesc *query, ScanDirection direction, uint64 count, bool execute_once
#define PGBLOOM_RUN_ARGUMENTS	query, direction, count, execute_once
#endif

/* 16 added a parameter to generate_join_implied_equalities(). */
#if PG_VERSION_NUM >= 160000
#define PGBLOOM_IMPLIED_EQUALITIES(root, both, outer, inner) \
	generate_join_implied_equalities(root, both, (outer)->relids, inner, NULL)
#else
#define PGBLOOM_IMPLIED_EQUALITIES(root, both, outer, inner) \
	generate_join_implied_equalities(root, both, (outer)->relids, inner)
#endif

/* A condition of a relation that does not depend on its rows. */
#if PG_VERSION_NUM >= 160000
#define PGBLOOM_MAKE_PSEUDOCONSTANT(root, clause, relids) \
	make_restrictinfo(root, clause, true, false, false, true, 0, relids, \
					  NULL, NULL)
#else
#define PGBLOOM_MAKE_PSEUDOCONSTANT(root, clause, relids) \
	make_restrictinfo(root, clause, true, false, true, 0, relids, NULL, NULL)
#endif

/*
 * Who executes a query, or plan, has the privileges for its tables and views.
 * 16 moved these out of the range table.
 */
#if PG_VERSION_NUM >= 160000
#define PGBLOOM_IS_PERMITTED(query) \
	ExecCheckPermissions((query)->rtable, (query)->rteperminfos, false)
#define PGBLOOM_CHECK_PERMISSIONS(plan) \
	ExecCheckPermissions((plan)->rtable, (plan)->permInfos, true)
#else
#define PGBLOOM_IS_PERMITTED(query) ExecCheckRTPerms((query)->rtable, false)
#define PGBLOOM_CHECK_PERMISSIONS(plan) ExecCheckRTPerms((plan)->rtable, true)
#endif

/*
 * The planner begins with a relation.  19 renamed the hook, and gave it the
 * entry of the range table.
 */
#if PG_VERSION_NUM >= 190000
#define PGBLOOM_RELATION_PARAMETERS \
	PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *rte
#define PGBLOOM_RELATION_ARGUMENTS root, rel, rte
#else
#define PGBLOOM_RELATION_PARAMETERS \
	PlannerInfo *root, Oid relation, bool has_children, RelOptInfo *rel
#define PGBLOOM_RELATION_ARGUMENTS root, relation, has_children, rel
#define build_simple_rel_hook		get_relation_info_hook
#define build_simple_rel_hook_type	get_relation_info_hook_type
#endif

/* 17 added a parameter. */
#if PG_VERSION_NUM >= 170000
#define PGBLOOM_ARRAY_LENGTH(root, array) estimate_array_length(root, array)
#else
#define PGBLOOM_ARRAY_LENGTH(root, array) \
	((void) (root), estimate_array_length(array))
#endif

/* How many transactions that had an ID are over; renamed in 17. */
#if PG_VERSION_NUM >= 170000
#define PGBLOOM_COMPLETION_COUNT	(TransamVariables->xactCompletionCount)
#else
#define PGBLOOM_COMPLETION_COUNT	(ShmemVariableCache->xactCompletionCount)
#endif

/* 16 has one function for the privileges of all kinds of objects. */
#if PG_VERSION_NUM >= 160000
#define PGBLOOM_FUNCTION_ACLCHECK(function, role) \
	object_aclcheck(ProcedureRelationId, function, role, ACL_EXECUTE)
#else
#define PGBLOOM_FUNCTION_ACLCHECK(function, role) \
	pg_proc_aclcheck(function, role, ACL_EXECUTE)
#endif

/* What a query joins; from 16 on, outer joins have numbers as well. */
#if PG_VERSION_NUM >= 160000
#define PGBLOOM_QUERY_RELS(root)	((root)->all_query_rels)
#else
#define PGBLOOM_QUERY_RELS(root)	((root)->all_baserels)
#endif

/* 18 changed how indexes return bitmaps, and how these are read. */
#if PG_VERSION_NUM >= 180000
#define PGBLOOM_BEGINSCAN_BITMAP(index, snapshot, nkeys) \
	index_beginscan_bitmap(index, snapshot, NULL, nkeys)
#define PgBloomBitmapIterator	TBMPrivateIterator
#define PGBLOOM_BITMAP_BEGIN	tbm_begin_private_iterate
#define PGBLOOM_BITMAP_NEXT(iterator, result) \
	(tbm_private_iterate(iterator, result) ? (result) : NULL)
#define PGBLOOM_BITMAP_END		tbm_end_private_iterate
#else
#define PGBLOOM_BEGINSCAN_BITMAP	index_beginscan_bitmap
#define PgBloomBitmapIterator	TBMIterator
#define PGBLOOM_BITMAP_BEGIN	tbm_begin_iterate
#define PGBLOOM_BITMAP_NEXT(iterator, result) \
	((void) (result), tbm_iterate(iterator))
#define PGBLOOM_BITMAP_END		tbm_end_iterate
#endif

/* JOIN_RIGHT_ANTI came with 16, JOIN_RIGHT_SEMI with 18. */
#if PG_VERSION_NUM >= 180000
#define PGBLOOM_IS_RIGHT_SEMI_OR_ANTI(type) \
	((type) == JOIN_RIGHT_SEMI || (type) == JOIN_RIGHT_ANTI)
#elif PG_VERSION_NUM >= 160000
#define PGBLOOM_IS_RIGHT_SEMI_OR_ANTI(type) ((type) == JOIN_RIGHT_ANTI)
#else
#define PGBLOOM_IS_RIGHT_SEMI_OR_ANTI(type) false
#endif

/* 16 and 17 brought expressions of JSON that find casts, or have domains. */
#if PG_VERSION_NUM >= 170000
#define PGBLOOM_IS_JSON_EXPR(node) \
	(IsA(node, JsonExpr) || IsA(node, JsonConstructorExpr))
#elif PG_VERSION_NUM >= 160000
#define PGBLOOM_IS_JSON_EXPR(node)	IsA(node, JsonConstructorExpr)
#else
#define PGBLOOM_IS_JSON_EXPR(node)	false
#endif

/* 18 gave these types hash functions of their own, which are the same. */
#if PG_VERSION_NUM < 180000
#define F_HASHDATE			F_HASHINT4
#define F_TIMESTAMPTZ_HASH	F_TIMESTAMP_HASH
#endif

/* 18 took the strategy of an order for a value of an enum that is the same. */
#if PG_VERSION_NUM < 180000
#define cmptype	strategy
#endif

/* 18 renamed the columns by which SetOp compares rows. */
#if PG_VERSION_NUM < 180000
#define cmpColIdx		dupColIdx
#define cmpOperators	dupOperators
#define cmpCollations	dupCollations
#endif

/* From 18 on, PL/pgSQL lets functions change its variables where they lie. */
#if PG_VERSION_NUM >= 180000
#define PGBLOOM_MODIFY_IN_PLACE
#endif

/* Index access methods that hold no row pointers leave HOT updates alone. */
#if PG_VERSION_NUM >= 160000
#define PGBLOOM_AM_SUMMARIZING .amsummarizing = true,
#define PGBLOOM_HOT_CHANGES_BRIN	true
#else
#define PGBLOOM_AM_SUMMARIZING
#define PGBLOOM_HOT_CHANGES_BRIN	false
#endif

/* From 17 on, an index learns when a statement has inserted all of its rows. */
#if PG_VERSION_NUM >= 170000
#define PGBLOOM_AM_INSERT_CLEANUP(function) .aminsertcleanup = (function),
#define PGBLOOM_HAS_INSERT_CLEANUP	true
#else
#define PGBLOOM_AM_INSERT_CLEANUP(function)
#define PGBLOOM_HAS_INSERT_CLEANUP	false
#endif

/* Until 18, callers of a handler may free its result. */
#if PG_VERSION_NUM >= 190000
#define PGBLOOM_RETURN_AM_ROUTINE(routine) PG_RETURN_POINTER(&(routine))
#else
#define PGBLOOM_RETURN_AM_ROUTINE(routine) \
	do { \
		IndexAmRoutine *copy_ = makeNode(IndexAmRoutine); \
		*copy_ = (routine); \
		PG_RETURN_POINTER(copy_); \
	} while (0)
#endif

/* 16 renamed the file of a relation, and what tells that it has a new one. */
#if PG_VERSION_NUM < 160000
#define rd_newRelfilelocatorSubid	rd_newRelfilenodeSubid
#define rd_locator					rd_node
#define RelFileLocator				RelFileNode
#endif

/*
 * Extend a relation by a page, which is locked.  Before 16 this takes a caller
 * who is the only one that extends it.
 */
#if PG_VERSION_NUM >= 160000
#define PGBLOOM_EXTEND(relation, fork, strategy) \
	ExtendBufferedRel(BMR_REL(relation), fork, strategy, EB_LOCK_FIRST)
#else
#define PGBLOOM_EXTEND(relation, fork, strategy) \
	ReadBufferExtended(relation, fork, P_NEW, RBM_ZERO_AND_LOCK, strategy)
#endif

/* The oldest transaction that runs in any database; 19 added parameters. */
#if PG_VERSION_NUM >= 190000
#define PGBLOOM_OLDEST_ACTIVE_TRANSACTION() \
	GetOldestActiveTransactionId(false, true)
#else
#define PGBLOOM_OLDEST_ACTIVE_TRANSACTION	GetOldestActiveTransactionId
#endif

/*
 * Records of generic WAL have the same form in all versions so far: see
 * src/index/wal.c.
 */
#define PGBLOOM_KNOWS_GENERIC_WAL	(PG_VERSION_NUM < 200000)

/* Until 15, the result is always a copy. */
#if PG_VERSION_NUM >= 160000
#define PGBLOOM_TUPLESORT_GETDATUM(sort, datum, isnull) \
	tuplesort_getdatum(sort, true, false, datum, isnull, NULL)
#define PGBLOOM_FREE_INT8(datum) ((void) (datum))
#else
#define PGBLOOM_TUPLESORT_GETDATUM(sort, datum, isnull) \
	tuplesort_getdatum(sort, true, datum, isnull, NULL)
#define PGBLOOM_FREE_INT8(datum) \
	do { \
		if (!FLOAT8PASSBYVAL) \
			pfree(DatumGetPointer(datum)); \
	} while (0)
#endif

/*
 * From 17 on, PostgreSQL has a safe search_path where it evaluates expressions
 * of indexes as the owner of the table.  The caller has begun a level of
 * settings, at the end of which it has the previous one again.
 */
#if PG_VERSION_NUM < 170000
#define RestrictSearchPath() \
	((void) set_config_option("search_path", "pg_catalog, pg_temp", \
							  PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, \
							  true, 0, false))
#endif

/* 18 added a parameter. */
#if PG_VERSION_NUM >= 180000
#define PGBLOOM_VACUUM_DELAY_POINT()	vacuum_delay_point(false)
#else
#define PGBLOOM_VACUUM_DELAY_POINT()	vacuum_delay_point()
#endif

/* 17 renamed what tells that this is a worker of autovacuum. */
#if PG_VERSION_NUM < 170000
#define AmAutoVacuumWorkerProcess	IsAutoVacuumWorkerProcess
#endif

/* 17 added whether a stronger lock counts as well. */
#if PG_VERSION_NUM >= 170000
#define PGBLOOM_HOLDS_LOCK(tag, mode)	LockHeldByMe(tag, mode, false)
#else
#define PGBLOOM_HOLDS_LOCK	LockHeldByMe
#endif

/* May VACUUM lock a table to return its pages?  18 added a setting. */
#if PG_VERSION_NUM >= 190000
#define PGBLOOM_MAY_TRUNCATE(rel) \
	((rel)->rd_options == NULL || \
	 ((StdRdOptions *) (rel)->rd_options)->vacuum_truncate == PG_TERNARY_UNSET ? \
	 vacuum_truncate : \
	 ((StdRdOptions *) (rel)->rd_options)->vacuum_truncate == PG_TERNARY_TRUE)
#elif PG_VERSION_NUM >= 180000
#define PGBLOOM_MAY_TRUNCATE(rel) \
	((rel)->rd_options != NULL && \
	 ((StdRdOptions *) (rel)->rd_options)->vacuum_truncate_set ? \
	 ((StdRdOptions *) (rel)->rd_options)->vacuum_truncate : vacuum_truncate)
#else
#define PGBLOOM_MAY_TRUNCATE(rel) \
	((rel)->rd_options == NULL || \
	 ((StdRdOptions *) (rel)->rd_options)->vacuum_truncate)
#endif

/* The memory that VACUUM has for an index, in kilobytes. */
#define PGBLOOM_VACUUM_MEMORY \
	(AmAutoVacuumWorkerProcess() && autovacuum_work_mem >= 0 ? \
	 autovacuum_work_mem : maintenance_work_mem)

/* Until 16, pages may lose rows that a snapshot sees, if that is old. */
#if PG_VERSION_NUM < 170000
#define PGBLOOM_SNAPSHOTS_GET_TOO_OLD	(old_snapshot_threshold >= 0)
#else
#define PGBLOOM_SNAPSHOTS_GET_TOO_OLD	false
#endif

#endif							/* PGBLOOM_COMPAT_H */
