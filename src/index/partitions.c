/*-------------------------------------------------------------------------
 *
 * partitions.c
 *	  The partitions of a partitioned index.
 *
 * They are those of its table, each with its own index.  To list a thousand
 * takes longer than to look into them, so lists are remembered until one of
 * their relations changes, to which also all partitioned tables and indexes
 * belong.  A plan that has a partition was made after this session had learned
 * of it, and so had forgotten the list without it.
 *
 * A partition that is being detached concurrently is one until that is done:
 * older snapshots, and plans in progress, still have its rows.  Then it loses
 * the table and the index at once, but a list that is being made may have got
 * the table before and the index after that.  A table without an index may
 * have any key.
 *
 *-------------------------------------------------------------------------
 */
#include "index/index.h"

#include "access/xlog.h"
#include "catalog/index.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

typedef struct PartitionList
{
	Oid			index;
	int			n;
	struct PartitionList *next;
	BfiPartition partitions[FLEXIBLE_ARRAY_MEMBER];
} PartitionList;

/* What is remembered, since so many changes of lists, and all its relations. */
static MemoryContext lists_context = NULL;
static PartitionList *lists = NULL;
static uint64 lists_changes = 0;
static HTAB *relations = NULL;

/* How many changes of relations this session has learned of; of those of lists. */
uint64		bfi_relation_changes = 0;
uint64		bfi_list_changes = 0;

/* Of these relations were the last ones. */
static Oid	last_changed[1024];

static void
count_relation_change(Datum arg, Oid relation)
{
	(void) arg;
	last_changed[bfi_relation_changes++ % lengthof(last_changed)] = relation;
	if (relations != NULL &&
		(!OidIsValid(relation) ||
		 hash_search(relations, &relation, HASH_FIND, NULL) != NULL))
		bfi_list_changes++;
}

/* Has one of these relations changed since there were so many changes? */
bool
bfi_have_changed(const List *oids, uint64 changes)
{
	if (bfi_relation_changes - changes > lengthof(last_changed))
		return true;
	for (; changes < bfi_relation_changes; changes++)
	{
		Oid			oid = last_changed[changes % lengthof(last_changed)];

		if (!OidIsValid(oid) || list_member_oid(oids, oid))
			return true;
	}
	return false;
}

static Size
list_size(int n)
{
	return offsetof(PartitionList, partitions) + n * sizeof(BfiPartition);
}

/* Forget all lists when a relation of one of them changes. */
static void
watch(Oid relation)
{
	(void) hash_search(relations, &relation, HASH_ENTER, NULL);
}

void
bfi_count_relation_changes(void)
{
	CacheRegisterRelcacheCallback(count_relation_change, (Datum) 0);
}

/*
 * Append the leaves below a partitioned table or index, or this itself if it is
 * none, to a list.  Nothing is locked.  The catalogs are read, as a descriptor in
 * the cache may be older than the snapshot, and would be that of the planner then.
 * Sets changing if somebody may be about to add a partition, who locks its parent
 * until he is about to tell others.
 */
static List *
append_leaves(List *leaves, Oid oid, bool *changing)
{
	char		relkind = get_rel_relkind(oid);
	LOCKTAG		tag;
	int			nholders;
	ListCell   *cell;

	check_stack_depth();
	watch(oid);
	if (relkind != RELKIND_PARTITIONED_TABLE &&
		relkind != RELKIND_PARTITIONED_INDEX)
		return lappend_oid(leaves, oid);
	SET_LOCKTAG_RELATION(tag, MyDatabaseId, oid);
	pfree(GetLockConflicts(&tag, ShareUpdateExclusiveLock, &nholders));
	*changing |= nholders > 0;
	foreach(cell, find_inheritance_children_extended(oid, false, NoLock, NULL,
													 NULL))
		leaves = append_leaves(leaves, lfirst_oid(cell), changing);
	return leaves;
}

static int
compare_tables(const void *a, const void *b)
{
	Oid			left = ((const BfiPartition *) a)->table;
	Oid			right = ((const BfiPartition *) b)->table;

	return (left > right) - (left < right);
}

static bool
is_heap(Oid table)
{
	return pgbloom_relation_row(table).relam == HEAP_TABLE_AM_OID;
}

/* List the partitions of an index, in the order of the OIDs of their tables. */
static PartitionList *
make_list(Relation index, bool *changing)
{
	List	   *tables = append_leaves(NIL, index->rd_index->indrelid, changing);
	PartitionList *list = palloc(list_size(list_length(tables)));
	ListCell   *cell;

	list->index = RelationGetRelid(index);
	list->n = 0;
	foreach(cell, tables)
	{
		BfiPartition *partition = &list->partitions[list->n++];

		memset(partition, 0, sizeof(*partition));
		partition->table = lfirst_oid(cell);
		partition->is_heap = is_heap(partition->table);
	}
	qsort(list->partitions, list->n, sizeof(BfiPartition), compare_tables);
	foreach(cell, append_leaves(NIL, list->index, changing))
	{
		BfiPartition key = {.table = IndexGetRelation(lfirst_oid(cell), true)};
		BfiPartition *partition = bsearch(&key, list->partitions, list->n,
										  sizeof(BfiPartition), compare_tables);

		if (partition != NULL)
			partition->index = lfirst_oid(cell);
	}
	return list;
}

/* The remembered list of an index, or NULL. */
static PartitionList *
remembered_list(Oid index)
{
	PartitionList *list;

	if (lists_context == NULL)
		lists_context = AllocSetContextCreate(CacheMemoryContext,
											  "partitions of Bloom filter indexes",
											  ALLOCSET_DEFAULT_SIZES);
	if (relations == NULL || lists_changes != bfi_list_changes)
	{
		HASHCTL		control = {.keysize = sizeof(Oid),
			.entrysize = sizeof(Oid),
		.hcxt = lists_context};

		lists = NULL;
		relations = NULL;
		MemoryContextReset(lists_context);
		relations = hash_create("relations of Bloom filter indexes", 256,
								&control,
								HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
		lists_changes = bfi_list_changes;
	}
	list = lists;
	while (list != NULL && list->index != index)
		list = list->next;
	return list;
}

/* Remember a list, and what will be known of its indexes. */
static PartitionList *
remember_list(const PartitionList *made)
{
	PartitionList *list = MemoryContextAlloc(lists_context, list_size(made->n));
	BfiCache  **known = MemoryContextAllocZero(lists_context,
											   made->n * sizeof(BfiCache *));
	int			i;

	memcpy(list, made, list_size(made->n));
	for (i = 0; i < list->n; i++)
	{
		list->partitions[i].known = &known[i];
		list->partitions[i].changes = lists_changes;
	}
	list->next = lists;
	lists = list;
	return list;
}

/*
 * The partitions of an index at all levels, or this itself if it is not
 * partitioned.  Nothing is locked, so an index may be gone when it is opened.
 */
BfiPartition *
bfi_leaves(Relation index, int *n)
{
	PartitionList *list;
	BfiPartition *partitions;

	if (index->rd_rel->relkind != RELKIND_PARTITIONED_INDEX)
	{
		partitions = palloc0(sizeof(BfiPartition));
		partitions->table = index->rd_index->indrelid;
		partitions->index = RelationGetRelid(index);
		partitions->is_heap = is_heap(partitions->table);
		*n = 1;
		return partitions;
	}
	list = remembered_list(RelationGetRelid(index));
	if (list == NULL)
	{
		/* On a standby, nobody tells of changes in time. */
		bool		changing = RecoveryInProgress();

		list = make_list(index, &changing);
		if (!changing)
			list = remember_list(list);
	}

	/* A copy, as functions of key types may do anything. */
	*n = list->n;
	partitions = palloc(list->n * sizeof(BfiPartition));
	memcpy(partitions, list->partitions, list->n * sizeof(BfiPartition));
	return partitions;
}

/*
 * Remember the index of a partition of a list, which has been read since, and the
 * buffers of its pages.
 */
void
bfi_remember_leaf(const BfiPartition *leaf, const BfiIndex *index)
{
	BfiCache   *cache = index->relation->rd_amcache;
	Size		size = offsetof(BfiMeta, current.layers) +
		index->meta.current.nlayers * sizeof(BfiLayer);
	BfiCache   *known;
	int			i;

	if (leaf->known == NULL || leaf->changes != bfi_list_changes ||
		RelationUsesLocalBuffers(index->relation))
		return;
	known = *leaf->known;
	if (known == NULL)
	{
		known = MemoryContextAlloc(lists_context,
								   offsetof(BfiCache, meta) + size);
		memcpy(known, cache, offsetof(BfiCache, meta));
		memcpy(&known->meta, &index->meta, size);
		*leaf->known = known;
	}
	for (i = 0; i < BFI_RECENT; i++)
	{
		if (BufferIsValid(cache->recent[i]))
			known->recent[i] = cache->recent[i];
	}
}

/* The same with locked tables, so that the indexes stay. */
BfiPartition *
bfi_partitions(Relation index, int *n)
{
	BfiPartition *partitions = bfi_leaves(index, n);
	int			i;

	for (i = 0; i < *n; i++)
		LockRelationOid(partitions[i].table, AccessShareLock);
	return partitions;
}

/* Raise an error if a partition is a foreign table: nothing tells its keys. */
void
bfi_check_partitions(Relation index, const BfiPartition *partitions, int n)
{
	int			i;

	for (i = 0; i < n; i++)
	{
		if (!OidIsValid(partitions[i].index) &&
			get_rel_relkind(partitions[i].table) == RELKIND_FOREIGN_TABLE)
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("cannot look up keys in index \"%s\"",
							RelationGetRelationName(index)),
					 errdetail("Partition \"%s\" is a foreign table, which has no index.",
							   get_rel_name(partitions[i].table)),
					 errhint("Look up keys in the indexes of the other partitions.")));
	}
}

/*
 * The partitions that have the index, for a function that tells about all of
 * them.  The user may read them.
 */
BfiPartition *
bfi_complete_partitions(Oid oid, int *n)
{
	BfiIndex	index;
	BfiPartition *partitions;
	int			all;
	int			i;

	bfi_open(&index, oid);
	bfi_check_complete(&index, oid);
	partitions = bfi_partitions(index.relation, &all);
	bfi_check_partitions(index.relation, partitions, all);
	bfi_close(&index);
	*n = 0;
	for (i = 0; i < all; i++)
	{
		if (OidIsValid(partitions[i].index))
			partitions[(*n)++] = partitions[i];
	}
	return partitions;
}
