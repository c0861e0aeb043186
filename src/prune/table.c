/*-------------------------------------------------------------------------
 *
 * table.c
 *	  Pruning of a partitioned table that is looked up by keys which the planner
 *	  knows, before it opens the partitions.
 *
 * The planner goes on to open those in live_parts, which its own pruning has left.
 *
 *-------------------------------------------------------------------------
 */
#include "prune/prune.h"

#include "access/relation.h"
#include "access/table.h"
#include "catalog/partition.h"
#include "catalog/pg_class_d.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "parser/parsetree.h"
#include "partitioning/partdesc.h"

/*
 * Find the leaves that may have a key.  They do not prune the table if they are
 * too many, or as large a part of all as one of these, or the index does not tell.
 */
void
bfp_find_leaves(BfpTable *table, int parts)
{
	Const	   *key = (Const *) table->value;
	BfiIndex	index;
	BfiKeys		keys;
	BfiPartition *leaves = NULL;
	int			i;

	table->leaves = table->indexes = NIL;
	table->prunes = false;
	bfi_open_for_query(&index, table->index);
	if (index.relation != NULL && index.partitioned &&
		bfi_read_keys(key->constvalue, key->consttype, table->is_array,
					  index.relation->rd_indcollation[0], &keys))
	{
		leaves = bfi_leaves(index.relation, &table->nleaves);
		table->prunes = true;
	}
	bfi_close(&index);
	for (i = 0; table->prunes && i < table->nleaves; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (bfi_leaf_may_have(&leaves[i], &keys))
		{
			table->leaves = lappend_oid(table->leaves, leaves[i].table);
			table->indexes = lappend_oid(table->indexes, leaves[i].index);
			table->prunes = list_length(table->leaves) <=
				Min(BFP_MAX_LEAVES, (table->nleaves - 1) / parts);
		}
	}
}

/*
 * Find the partitions that the leaves of a table are, or are below.  Returns false
 * if one is being detached: catalogs no longer tell what it is below.
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

/*
 * What an index says of a key, which is asked once for a statement.  It is asked
 * later if the planner does not know the key.
 */
static BfpTable *
ask_index(Relation index, const BfpEquality *equality)
{
	Oid			oid = RelationGetRelid(index);
	BfpTable   *table;
	ListCell   *cell;

	foreach(cell, bfp_planning->tables)
	{
		table = lfirst(cell);
		if (table->index == oid && equal(table->key, equality->key) &&
			table->is_array == equality->is_array)
			return table;
	}
	table = palloc0(sizeof(*table));
	table->index = oid;
	table->key = copyObject(equality->key);
	table->is_array = equality->is_array;
	if (IsA(table->key, Const))
	{
		table->value = table->key;
		bfp_find_leaves(table, 1);
	}
	bfp_planning->tables = lappend(bfp_planning->tables, table);
	return table;
}

/* What an index says if a condition compares its column; NULL if none does. */
static BfpTable *
ask_index_of(RelOptInfo *rel, Relation index)
{
	IndexOptInfo column = {.type = T_IndexOptInfo};
	int			number = bfi_column_of(RelationGetRelid(index));
	BfpEquality equality;
	BfpTable   *table;

	column.rel = rel;
	column.indexkeys = &number;
	column.indexcollations = index->rd_indcollation;
	if (number <= 0 ||
		!bfp_find_equality(rel, &column, bfi_key_sql_type(index),
						   &equality) ||
		(IsA(equality.key, Const) && ((Const *) equality.key)->constisnull))
		return NULL;
	table = ask_index(index, &equality);
	if (table->value == NULL)
		return table;
	if (table->prunes && table->parts == NIL)
		table->prunes = find_parts(table, index->rd_index->indrelid);
	if (table->nleaves > 0 && PGBLOOM_TELLS_OF_PLANS())
		ereport(DEBUG1,
				(errmsg_internal("index \"%s\" leaves %d of %d partitions%s",
								 RelationGetRelationName(index),
								 list_length(table->leaves), table->nleaves,
								 table->prunes ? "" : " or more, and prunes none")));
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
		next = ask_index_of(rel, index);
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
 * The partitioned table of a partition, or NULL.  Other extensions have relations
 * that look like one, with private data of their own.
 */
RelOptInfo *
bfp_table_of(PlannerInfo *root, RelOptInfo *rel)
{
	AppendRelInfo *info = root->append_rel_array == NULL ? NULL :
		root->append_rel_array[rel->relid];
	RelOptInfo *parent = info == NULL ? NULL :
		root->simple_rel_array[info->parent_relid];

	return parent != NULL && parent->part_scheme != NULL &&
		planner_rt_fetch(parent->relid, root)->relkind ==
		RELKIND_PARTITIONED_TABLE ? parent : NULL;
}

static RelOptInfo *
top_of(PlannerInfo *root, RelOptInfo *rel)
{
	RelOptInfo *above;

	while ((above = bfp_table_of(root, rel)) != NULL)
		rel = above;
	return rel;
}

/* Has the planner asked the index of a leaf for this key, and not ruled it out? */
bool
bfp_has_key(PlannerInfo *root, RelOptInfo *rel, Oid index, Node *key)
{
	RelOptInfo *top = top_of(root, rel);
	BfpTable   *table = top == rel ? NULL : top->fdw_private;

	return table != NULL && list_member_oid(table->indexes, index) &&
		equal(table->key, key);
}

/* A scan costs more than to look this list up. */
void
bfp_list_pays(Node *key)
{
	ListCell   *cell;

	foreach(cell, bfp_planning == NULL ? NIL : bfp_planning->tables)
	{
		BfpTable   *table = lfirst(cell);

		table->pays |= equal(table->key, key);
	}
}

/* Are there conditions on the partition key, by which PostgreSQL may prune? */
static bool
has_key_conditions(RelOptInfo *rel)
{
	Bitmapset  *key = NULL;
	Bitmapset  *columns = NULL;
	int			i;

	for (i = 0; i < rel->part_scheme->partnatts; i++)
		pull_varattnos((Node *) rel->partexprs[i], rel->relid, &key);
	pull_varattnos((Node *) extract_actual_clauses(rel->baserestrictinfo, false),
				   rel->relid, &columns);
	return bms_overlap(key, columns);
}

/*
 * The planner begins with a relation, of which it knows what catalogs say.  If
 * it is the first partition of a table of which PostgreSQL leaves many, ask the
 * index of the table above all others: eight leaves in the time of planning one.
 */
void
bfp_prune_table(PlannerInfo *root, RelOptInfo *rel)
{
	RelOptInfo *parent = bfp_table_of(root, rel);
	RelOptInfo *top;
	BfpTable   *table;
	int			n;

	if (bfp_planning == NULL || bfp_planning->query == NULL ||
		parent == NULL || parent->all_partrels != NULL)
		return;
	if (bfp_planning->pass != root->glob)
		bfp_planning->nopened = 0;
	bfp_planning->pass = root->glob;
	top = top_of(root, parent);
	table = top->fdw_private;
	if (table == NULL)
	{
		n = bms_num_members(parent->live_parts);
		if ((n <= Max(BFP_MAX_LEAVES, parent->nparts / 8) &&
			 (parent != top || n < parent->nparts)) ||
			bfp_has_barrier(root) || !bfp_is_permitted(root, NULL))
			return;
		table = ask_indexes(root, top);
		top->fdw_private = table;
	}
	if (table->prunes)
		leave_parts(root, parent, rel, table->parts);
	else if (table->key != NULL && !has_key_conditions(top) &&
			 !has_key_conditions(parent))
		bfp_planning->nopened += bms_num_members(parent->live_parts);
}
