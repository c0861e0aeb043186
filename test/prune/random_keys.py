#!/usr/bin/env python3
"""Queries by a key find what they find without pruning, while other sessions write.

    random_keys.py [--queries=N] [--readers=N] [--seed=S]

Connects as libpq does (PGHOST, PGDATABASE and so on, as a superuser), to a database of its own, whose schema "keys" it
replaces.

Writers move rows with fixed keys between partitions, in one statement or by DELETE and INSERT, so in READ COMMITTED each
of these keys is in exactly one row, whenever a query looks. They insert new keys, of which the newest has to be found by
every query that begins after its commit, some after they have moved the index to another tablespace, and delete old ones.
Others attach and detach a partition, rebuild indexes, vacuum, and roll back. Half of the keys that readers look for are
not there. Forms: literals, lists, kept plans of PL/pgSQL and PREPARE, custom and generic, views, UNION ALL, subqueries,
joins, cursors, UPDATE and DELETE that are rolled back. In REPEATABLE READ and SERIALIZABLE, the result is compared with
that of bloomfilter.index_pruning = off.
"""
import argparse
import os
import random
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "join"))
from random_queries import Connection, ServerError  # noqa: E402

PARTITIONS = 24
FIXED = 2000
ABSENT = 10**9
RETRIED = ("40001", "40P01", "55P03", "55000")
LITERALS = 20
BATCH = 50                      # queries of one call, and queries by themselves after it
ALONE = 15
KEPT = 500                      # of the new keys
PAUSE = 0.003

SCHEMA = """
DROP SCHEMA IF EXISTS keys CASCADE;
CREATE EXTENSION IF NOT EXISTS bloomfilter;
CREATE SCHEMA keys;
SET search_path = keys, public;
CREATE TABLE part (day int, id bigint, v text) PARTITION BY RANGE (day);
SELECT 1;
""" + "".join(f"CREATE TABLE part_{d} PARTITION OF part FOR VALUES FROM ({d}) TO ({d + 1})"
              + (" PARTITION BY LIST (v)" if d == 3 else "") + ";\n" for d in range(PARTITIONS)) + f"""
CREATE TABLE part_3_a PARTITION OF part_3 FOR VALUES IN ('a');
CREATE TABLE part_3_b PARTITION OF part_3 FOR VALUES IN ('b');
CREATE INDEX part_id ON part USING bloomfilter (id) WITH (fpp = 0.001, expected = 100);
CREATE INDEX part_btree ON part (id);
CREATE TABLE hashed (id bigint, other int) PARTITION BY HASH (other);
CREATE TABLE hashed_0 PARTITION OF hashed FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE hashed_1 PARTITION OF hashed FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE INDEX ON hashed USING bloomfilter (id) WITH (fpp = 0.001);
CREATE TABLE one (id bigint, v text);
CREATE INDEX one_id ON one USING bloomfilter (id) WITH (fpp = 0.001);
INSERT INTO part SELECT i % {PARTITIONS}, i, CASE i % 2 WHEN 0 THEN 'a' ELSE 'b' END FROM generate_series(1, {FIXED}) i;
INSERT INTO hashed SELECT i, i FROM generate_series(1, {FIXED}) i;
INSERT INTO one SELECT i, repeat('x', 50) FROM generate_series(1, {FIXED}) i;
CREATE VIEW part_view AS SELECT id AS key, day, upper(v) FROM part;
CREATE TABLE loose (LIKE part);
CREATE FUNCTION counts(queries text[]) RETURNS SETOF bigint LANGUAGE plpgsql AS $$
DECLARE
  query text;
  n bigint;
BEGIN
  FOREACH query IN ARRAY queries LOOP
    EXECUTE query INTO n;
    RETURN NEXT n;
  END LOOP;
END $$;
ANALYZE;
""" + "".join(f"""
CREATE FUNCTION literal_{i}() RETURNS SETOF bigint LANGUAGE plpgsql AS $$
BEGIN RETURN QUERY SELECT id FROM part WHERE id = {i * 7 + 1 if i % 2 else ABSENT + i}; END $$;""" for i in range(LITERALS))

FORMS = (
    "SELECT count(*) FROM part WHERE id = {k}",
    "SELECT count(*) FROM part WHERE id = {k} AND v IN ('a', 'b')",
    "SELECT count(*) FROM part WHERE id IN ({k}, {a}, {a} + 1)",
    "SELECT count(*) FROM part WHERE id = ANY ('{{{k},{a},NULL}}')",
    "SELECT count(*) FROM part_view WHERE key = {k}",
    "SELECT count(*) FROM (SELECT id, v FROM part UNION ALL SELECT {a}, 'x') u WHERE id = {k}",
    "SELECT count(*) FROM part p JOIN (VALUES ({k}::bigint)) w (id) ON p.id = w.id WHERE p.id = {k}",
    "SELECT count(*) FROM part a JOIN part b USING (id) WHERE id = {k}",
    "SELECT sum((EXISTS (SELECT FROM part WHERE id = {k}))::int)",
    "WITH c AS MATERIALIZED (SELECT id FROM part WHERE id = {k}) SELECT count(*) FROM c",
    "EXECUTE custom({k})",
    "EXECUTE generic({k})",
    "EXECUTE listed(ARRAY[{k},{a},NULL]::bigint[])",
    "EXECUTE joined({k})",
    "SELECT count(*) FROM hashed WHERE id = {k}",
    "SELECT count(*) FROM one WHERE id = {k}",
)
CHANGES = (
    "UPDATE part SET v = v WHERE id = {k} RETURNING 1",
    "DELETE FROM part WHERE id = {k} RETURNING 1",
    "SELECT 1 FROM part WHERE id = {k} FOR UPDATE",
)


class Shared:
    """What the sessions know of each other."""

    def __init__(self):
        self.newest = FIXED
        self.stop = False
        self.failures = []
        self.queries = 0
        self.lock = threading.Lock()
        self.writing = threading.Lock()

    def fail(self, text):
        with self.lock:
            self.failures.append(text)
        self.stop = True


def connect():
    connection = Connection()
    connection.run("LOAD 'bloomfilter'; SET search_path = keys, public; SET lock_timeout = '5s'")
    return connection


def attempt(connection, statement):
    """Run what may conflict with others."""
    try:
        return connection.run(statement)
    except ServerError as error:
        connection.run("ROLLBACK")
        if error.sqlstate not in RETRIED and "moved to another partition" not in str(error):
            raise
        return None


def write(shared, rng):
    connection = connect()
    while not shared.stop:
        key = rng.randint(1, FIXED)
        day = rng.randrange(PARTITIONS)
        what = rng.random()
        if what < 0.4:
            attempt(connection, f"UPDATE part SET day = {day} WHERE id = {key}")
        elif what < 0.6:
            attempt(connection, f"WITH d AS (DELETE FROM part WHERE id = {key} RETURNING v)"
                    f" INSERT INTO part SELECT {day}, {key}, v FROM d")
        elif what < 0.7:
            attempt(connection, f"BEGIN; INSERT INTO part VALUES ({day}, {ABSENT + key}, 'a'); ROLLBACK")
        elif what < 0.8:
            attempt(connection, f"BEGIN; DELETE FROM part WHERE id = {key}; SAVEPOINT s;"
                    f" INSERT INTO part VALUES ({day}, {key}, 'b'); ROLLBACK TO s;"
                    f" INSERT INTO part VALUES ({(day + 1) % PARTITIONS}, {key}, 'a'); ROLLBACK")
        else:
            with shared.writing:
                new = shared.newest + 1
                space = rng.choice(("pg_default", "keys_space"))
                move = f"LOCK part IN ROW EXCLUSIVE MODE; ALTER INDEX part_{day}_id_idx SET TABLESPACE {space};"
                attempt(connection, f"BEGIN; {move if rng.random() < 0.1 else ''} INSERT INTO part VALUES ({day}, {new}, 'a');"
                        f" INSERT INTO hashed VALUES ({new}, {new}); INSERT INTO one VALUES ({new}, 'x'); COMMIT")
                if new > FIXED + KEPT:
                    for table in ("part", "hashed", "one"):
                        attempt(connection, f"DELETE FROM {table} WHERE id = {new - KEPT}")
                if connection.run(f"SELECT count(*) FROM one WHERE id + 0 = {new}") == [(b"1",)]:
                    shared.newest = new
        time.sleep(PAUSE)
    connection.close()


def alter(shared, rng):
    connection = connect()
    statements = (
        f"ALTER TABLE part ATTACH PARTITION loose FOR VALUES FROM ({PARTITIONS}) TO ({PARTITIONS + 1})",
        "ALTER TABLE part DETACH PARTITION loose CONCURRENTLY",
        "ALTER TABLE part DETACH PARTITION loose",
        "REINDEX INDEX CONCURRENTLY part_5_id_idx", "REINDEX INDEX part_7_id_idx",
        "VACUUM part_1", "VACUUM one", "ANALYZE part", "REINDEX INDEX CONCURRENTLY one_id",
        "TRUNCATE loose", f"INSERT INTO loose VALUES ({PARTITIONS}, {2 * ABSENT}, 'a')")
    while not shared.stop:
        try:
            connection.run(rng.choice(statements))
        except ServerError as error:
            if error.sqlstate[:2] not in ("40", "42", "55", "57", "22"):
                shared.fail(f"{error}")
        time.sleep(0.05)
    connection.close()


def choose_key(shared, rng):
    """A key, and in how many rows it is."""
    if rng.random() < 0.5:
        return rng.randint(1, FIXED) if rng.random() < 0.7 else shared.newest, 1
    return ABSENT + rng.randint(1, FIXED), 0


def expect(shared, connection, statement, expected):
    rows = connection.run(statement)
    if rows[0][0] != str(expected).encode():
        shared.fail(f"{rows} instead of {expected}: {statement}")


def read_batch(shared, rng, connection):
    """Queries of one transaction, each with a snapshot of its own."""
    keys = [choose_key(shared, rng) for _ in range(BATCH)]
    queries = [rng.choice(FORMS).format(k=key, a=ABSENT * 3) for key, _ in keys]
    rows = connection.run("SELECT * FROM counts(ARRAY[" + ", ".join(f"$${query}$$" for query in queries) + "])")
    for query, (_, expected), (count,) in zip(queries, keys, rows):
        if count != str(expected).encode():
            shared.fail(f"{count} instead of {expected}: {query}")


def read_committed(shared, rng, connection):
    key, expected = choose_key(shared, rng)
    what = rng.random()
    if what < 0.7:
        expect(shared, connection, rng.choice(FORMS).format(k=key, a=ABSENT * 3), expected)
    elif what < 0.8:
        literal = rng.randrange(LITERALS)
        expect(shared, connection, f"SELECT count(*) FROM literal_{literal}()", literal % 2)
    elif what < 0.9:
        rows = connection.run("BEGIN; DECLARE c CURSOR FOR SELECT id FROM part"
                              f" WHERE id = {key}; FETCH ALL FROM c")
        connection.run("ROLLBACK")
        if len(rows) != expected:
            shared.fail(f"cursor: {rows} instead of {expected} for {key}")
    else:
        rows = attempt(connection, "BEGIN; " + rng.choice(CHANGES).format(k=key))
        connection.run("ROLLBACK")
        # A row that another session moves meanwhile is an error, or is gone.
        if rows is not None and len(rows) > expected:
            shared.fail(f"change: {rows} instead of {expected} for {key}")


def compare(shared, rng, connection):
    key, _ = choose_key(shared, rng)
    form = rng.choice([form for form in FORMS if not form.startswith("EXECUTE")]).format(k=key, a=ABSENT * 3)
    connection.run("BEGIN ISOLATION LEVEL " + rng.choice(("REPEATABLE READ", "SERIALIZABLE READ ONLY")))
    try:
        if rng.random() < 0.3:
            connection.run("SELECT 1 FROM one LIMIT 1")
            time.sleep(0.01)
        with_pruning = connection.run(form)
        connection.run("SET LOCAL bloomfilter.index_pruning = off")
        without = connection.run(form)
        if with_pruning != without:
            shared.fail(f"{with_pruning} instead of {without}: {form}")
    except ServerError as error:
        if error.sqlstate not in RETRIED:
            raise
    finally:
        connection.run("ROLLBACK")


def read(shared, rng, queries):
    connection = connect()
    connection.run("PREPARE custom(bigint) AS SELECT count(*) FROM part WHERE id = $1;"
                   "PREPARE generic(bigint) AS SELECT count(*) FROM part WHERE id = $1;"
                   "PREPARE listed(bigint[]) AS SELECT count(*) FROM part WHERE id = ANY ($1);"
                   "PREPARE joined(bigint) AS SELECT count(*) FROM part_view p WHERE key = $1"
                   " AND EXISTS (SELECT FROM part WHERE id = $1 OFFSET 0);")
    done = 0
    while done < queries and not shared.stop:
        connection.run("SET plan_cache_mode = " + rng.choice(("auto", "force_custom_plan", "force_generic_plan")))
        read_batch(shared, rng, connection)
        for _ in range(ALONE):
            (compare if rng.random() < 0.4 else read_committed)(shared, rng, connection)
        done += BATCH + ALONE
        with shared.lock:
            shared.queries += BATCH + ALONE
    connection.close()


def guard(shared, function, *args):
    try:
        function(shared, *args)
    except Exception as error:  # pylint: disable=broad-except
        shared.fail(f"{function.__name__}: {error!r} {error}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--queries", type=int, default=5000)
    parser.add_argument("--readers", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    setup = Connection()
    setup.run(SCHEMA)
    if not setup.run("SELECT FROM pg_tablespace WHERE spcname = 'keys_space'"):
        setup.run("SET allow_in_place_tablespaces = on")
        setup.run("CREATE TABLESPACE keys_space LOCATION ''")
    setup.close()
    shared = Shared()
    begin = time.time()
    readers = [threading.Thread(target=guard, args=(shared, read, random.Random(args.seed * 1000 + i),
                                                    args.queries // args.readers)) for i in range(args.readers)]
    writers = [threading.Thread(target=guard, args=(shared, function, random.Random(args.seed * 1000 + 100 + i)))
               for i, function in enumerate((write, write, alter))]
    for thread in readers + writers:
        thread.start()
    for thread in readers:
        thread.join()
    shared.stop = True
    for thread in writers:
        thread.join()
    print(f"{shared.queries} queries by keys in {time.time() - begin:.0f} s, {shared.newest - FIXED} keys inserted, "
          f"{len(shared.failures)} failures")
    for failure in shared.failures:
        print(failure)
    sys.exit(1 if shared.failures or shared.queries == 0 or shared.newest == FIXED else 0)


if __name__ == "__main__":
    main()
