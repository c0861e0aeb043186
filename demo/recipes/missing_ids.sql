-- Requests for ids that do not exist do not read the large table: a filter has all ids, and an insert-only delta has
-- those inserted since. doc/COOKBOOK.md explains it; test/tap/003_concurrency.pl runs this file and then uses its tables in
-- many sessions.
CREATE EXTENSION IF NOT EXISTS bloomfilter;

CREATE TABLE items (id bigint PRIMARY KEY, body text);
INSERT INTO items SELECT i * 7, 'item ' || i FROM generate_series(1, 20000) i;

CREATE TABLE item_filter (filter bloom NOT NULL);       -- one row
INSERT INTO item_filter VALUES (bloom_empty(0.001, 30000));
CREATE TABLE item_delta (id bigint NOT NULL) WITH (vacuum_truncate = off);
CREATE INDEX ON item_delta (id);
INSERT INTO item_delta SELECT generate_series(1, 5000); -- pages that stay, which makes the planner use the index

-- Writing an item adds its id to the delta in the same transaction.
CREATE FUNCTION note_item() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO item_delta VALUES (NEW.id);
    RETURN NULL;
END $$;
CREATE TRIGGER note_item AFTER INSERT OR UPDATE OF id ON items
    FOR EACH ROW EXECUTE FUNCTION note_item();
ALTER TABLE items ENABLE ALWAYS TRIGGER note_item;      -- also what replication writes

-- One statement, hence one snapshot, reads filter, delta and table.
CREATE FUNCTION find_item(wanted bigint) RETURNS SETOF items LANGUAGE sql STABLE AS $$
    SELECT * FROM items
     WHERE id = wanted
       AND ((SELECT filter @> wanted FROM item_filter)
            OR EXISTS (SELECT FROM item_delta WHERE id = wanted))
$$;

-- Every minute: move the rows of the delta, and only those deleted from it, to the filter.
CREATE FUNCTION merge_items() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    LOCK TABLE item_filter IN SHARE ROW EXCLUSIVE MODE; -- one job at a time; lookups go on
    WITH gone AS (DELETE FROM item_delta RETURNING id)
    UPDATE item_filter SET filter = bloom_add_all(filter, ARRAY(SELECT id FROM gone))
     WHERE EXISTS (SELECT FROM gone);
END $$;

-- Every night: rebuild the filter from the existing ids, without deleted ones.
CREATE FUNCTION rebuild_items(expected bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    LOCK TABLE item_filter IN SHARE ROW EXCLUSIVE MODE;
    WITH gone AS (DELETE FROM item_delta)
    UPDATE item_filter SET filter = (SELECT bloom_agg(id, 0.001, expected) FROM items);
END $$;

SELECT rebuild_items(30000);

-- Whether looking up an id would read the table items
CREATE FUNCTION touches_items(wanted bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE format('EXPLAIN (ANALYZE, FORMAT json) SELECT * FROM find_item(%s)', wanted) INTO plan;
    RETURN EXISTS (
        SELECT FROM jsonb_path_query(plan::jsonb, 'strict $.** ? (@."Relation Name" == "items")') node
         WHERE (node ->> 'Actual Loops')::int > 0);
END $$;

DO $$
DECLARE
    n bigint;
BEGIN
    ASSERT (SELECT bool_and(EXISTS (SELECT FROM find_item(id))) FROM items), 'every item is found';
    ASSERT touches_items(7), 'an item is read';
    -- 20 are expected if the filter is full; four standard deviations are 18
    SELECT count(*) INTO n FROM generate_series(1, 140000) id, item_filter WHERE id % 7 <> 0 AND filter @> id;
    ASSERT n <= 120 + 4 * sqrt(120), n || ' of 120000 missing ids pass';
    SELECT count(*) INTO n FROM generate_series(1, 200) id WHERE id % 7 <> 0 AND touches_items(id);
    ASSERT n <= 3, n || ' of 172 lookups of missing ids touch the table';

    -- a new item, before and after it is merged
    ASSERT NOT EXISTS (SELECT FROM item_delta), 'nothing to merge';
    INSERT INTO items SELECT -i, 'new' FROM generate_series(1, 500) i;
    UPDATE items SET id = -501 WHERE id = 7;
    ASSERT (SELECT count(*) FROM item_delta) = 501, 'new ids are in the delta';
    ASSERT (SELECT count(*) FROM item_filter, item_delta WHERE filter @> id) < 10, 'and not in the filter';
    ASSERT (SELECT bool_and(EXISTS (SELECT FROM find_item(id))) FROM items), 'every item is found before the merge';
    PERFORM merge_items();
    ASSERT NOT EXISTS (SELECT FROM item_delta), 'the delta is empty';
    ASSERT (SELECT bool_and(EXISTS (SELECT FROM find_item(id))) FROM items), 'every item is found after the merge';
    PERFORM merge_items();
    ASSERT (SELECT filter @> -501 FROM item_filter), 'merging nothing keeps the filter';

    -- a rebuild drops deleted ids
    DELETE FROM items WHERE id > 70000;
    SELECT count(*) INTO n FROM generate_series(70007, 140000, 7) id, item_filter WHERE filter @> id;
    ASSERT n = 10000, 'deleted ids stay in the filter';
    INSERT INTO items VALUES (-1000, 'newer');
    PERFORM rebuild_items(30000);
    SELECT count(*) INTO n FROM generate_series(70007, 140000, 7) id, item_filter WHERE filter @> id;
    ASSERT n < 30, n || ' of 10000 deleted ids are left';
    ASSERT (SELECT bool_and(EXISTS (SELECT FROM find_item(id))) FROM items), 'every item is found after the rebuild';
    ASSERT NOT EXISTS (SELECT FROM item_delta), 'the delta is empty again';
END $$;

-- Lookups use the index of the delta even if it is empty: a prepared lookup keeps its plan while the delta grows.
VACUUM item_delta;
DO $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT json) SELECT * FROM find_item(8)' INTO plan;
    ASSERT jsonb_path_exists(plan::jsonb, 'strict $.** ? (@."Index Name" starts with "item_delta")'), plan::text;
END $$;
