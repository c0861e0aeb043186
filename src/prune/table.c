/*-------------------------------------------------------------------------
 *
 * table.c
 *	  Pruning of a partitioned table that is looked up by keys which the planner
 *	  knows, before it opens the partitions.
 *
 * When the planner begins with the first partition of a table, it knows all
 * conditions of the table, with the values of parameters, and has pruned it by
 * them.  It goes on to open those that are left in live_parts, so partitions that
 * the index rules out are taken away from these.
 *
 *-------------------------------------------------------------------------
 */
#include "prune/prune.h"

#include "access/relation.h"
#include "access/table.h"
#include "catalog/partition.h"
#include "optimizer/paths.h"
#include "partitioning/partdesc.h"

static bool
is_known(PlannerInfo *root, Node *key)
{
	(void) root;
	return IsA(key, Const) && !((Const *) key)->constisnull;
}

/*
 * Find the partitions that the leaves of a table are, or are below.  Returns false
 * if one of them is being detached: older snapshots still have it, but the catalogs
 * no longer tell what it is below.
 */
static bool
find_parts(BfpTable *table, Oid top)
{
	ListCell   *cell;

	foreach(cell, table->leaves)
	{
		List	   *ancestors = get_partition_ancestors(lfirst_oid(cell));

		if (!list_member_oid(ancestors, top))
			return false;
		table->parts = lappend_oid(table->parts, lfirst_oid(cell));
		table->parts = list_concat_unique_oid(table->parts, ancestors);
	}
	return true;
}

/* What an index says of a key, which is asked once for a statement. */
static BfpTable *
ask_index(Relation index, const BfpEquality *equality)
{
	Oid			oid = RelationGetRelid(index);
	MemoryContext old_context;
	BfpTable   *table;
	ListCell   *cell;

	foreach(cell, bfp_planning->tables)
	{
		table = lfirst(cell);
		if (table->index == oid && equal(table->key, equality->key) &&
			table->is_array == equality->is_array)
			return table;
	}
	old_context = MemoryContextSwitchTo(bfp_planning->context);
	table = palloc0(sizeof(*table));
	table->index = oid;
	table->key = copyObject((Const *) equality->key);
	table->is_array = equality->is_array;
	table->prunes = bfp_find_leaves(table) &&
		find_parts(table, index->rd_index->indrelid);
	bfp_planning->tables = lappend(bfp_planning->tables, table);
	MemoryContextSwitchTo(old_context);
	return table;
}

/* What an index says if a condition compares its column; NULL if none does. */
static BfpTable *
ask_index_of(PlannerInfo *root, RelOptInfo *rel, Relation index)
{
	IndexOptInfo column = {.type = T_IndexOptInfo};
	int			number = bfi_column_of(RelationGetRelid(index));
	BfpEquality equality;
	BfpTable   *table;

	column.rel = rel;
	column.indexkeys = &number;
	column.indexcollations = index->rd_indcollation;
	if (number <= 0 ||
		!bfp_find_equality(root, rel, &column, bfi_key_sql_type(index),
						   is_known, &equality))
		return NULL;
	table = ask_index(index, &equality);
	ereport(DEBUG1,
			(table->prunes ?
			 errmsg_internal("index \"%s\" leaves %d of %d partitions",
							 RelationGetRelationName(index),
							 list_length(table->leaves), table->nleaves) :
			 errmsg_internal("index \"%s\" does not prune before planning: too many partitions may have the key",
							 RelationGetRelationName(index))));
	return table;
}

/* What the first index says that prunes a table; one that does not if none. */
static BfpTable *
ask_indexes(PlannerInfo *root, RelOptInfo *rel)
{
	Relation	relation = table_open(root->simple_rte_array[rel->relid]->relid,
									  NoLock);
	BfpTable   *table = palloc0(sizeof(*table));
	ListCell   *cell;

	foreach(cell, bfi_is_citus_table(relation) ? NIL :
			RelationGetIndexList(relation))
	{
		Relation	index;
		BfpTable   *next;

		if (table->prunes)
			break;
		index = relation_open(lfirst_oid(cell), AccessShareLock);
		next = ask_index_of(root, rel, index);
		table = next != NULL ? next : table;
		relation_close(index, AccessShareLock);
	}
	table_close(relation, NoLock);
	return table;
}

/*
 * Leave these partitions of a table.  The first one has been opened: it becomes
 * one that PostgreSQL finds to be without rows.  It stays in the set if this
 * were empty otherwise, as PostgreSQL goes through that.
 */
static void
leave_parts(PlannerInfo *root, RelOptInfo *rel, RelOptInfo *first,
			const List *leaves)
{
	Relation	relation = table_open(root->simple_rte_array[rel->relid]->relid,
									  NoLock);
	PartitionDesc descriptor = PartitionDirectoryLookup(root->glob->partition_directory,
														relation);
	int			number = bms_next_member(rel->live_parts, -1);
	Bitmapset  *left = NULL;
	int			i;

	for (i = number; i >= 0; i = bms_next_member(rel->live_parts, i))
	{
		if (list_member_oid(leaves, descriptor->oids[i]))
			left = bms_add_member(left, i);
	}
	table_close(relation, NoLock);
	if (!bms_is_member(number, left))
	{
		mark_dummy_rel(first);
		first->nparts = 0;
	}
	if (left == NULL)
		left = bms_make_singleton(number);
	rel->live_parts = bms_int_members(rel->live_parts, left);
}

/*
 * Does whoever executes the query lack a privilege for it, or for the view whose
 * owner may read the table?  PostgreSQL checks this when the query is executed,
 * which is later than the index is asked.
 */
static bool
is_forbidden(PlannerInfo *root)
{
	while (root != NULL && bfp_is_permitted(root->parse, NULL))
		root = root->parent_root;
	return root != NULL;
}

/* The partitioned table of a partition, or NULL. */
static RelOptInfo *
table_of(PlannerInfo *root, RelOptInfo *rel)
{
	AppendRelInfo *info = root->append_rel_array == NULL ? NULL :
		root->append_rel_array[rel->relid];
	RelOptInfo *parent = info == NULL ? NULL :
		root->simple_rel_array[info->parent_relid];

	return parent != NULL && parent->part_scheme != NULL ? parent : NULL;
}

/*
 * The planner begins with a relation, of which it knows what catalogs say.  If
 * it is the first partition of a table of which PostgreSQL leaves many, ask the
 * index of the table above all others.
 */
void
bfp_prune_table(PlannerInfo *root, RelOptInfo *rel)
{
	RelOptInfo *parent = table_of(root, rel);
	RelOptInfo *top = parent;
	RelOptInfo *above;
	BfpTable   *table;
	int			n;

	if (bfp_planning == NULL || bfp_planning->query == NULL ||
		parent == NULL || parent->all_partrels != NULL)
		return;
	while ((above = table_of(root, top)) != NULL)
		top = above;
	table = top->fdw_private;
	if (table == NULL)
	{
		n = bms_num_members(parent->live_parts);
		if ((n <= BFP_MAX_LEAVES && (parent != top || n < parent->nparts)) ||
			bfp_has_barrier(root) || is_forbidden(root))
			return;
		table = ask_indexes(root, top);
		top->fdw_private = table;
	}
	if (table->prunes)
		leave_parts(root, parent, rel, table->parts);
}
