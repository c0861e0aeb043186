"""The tables of random_queries.py: every table has a column of each type, with values made from small integers, so that
any two tables can be joined on any type. They differ in size, skew and share of NULLs."""

ODD = ("CASE WHEN k = 0 AND i % 2 = 0 THEN '-0' WHEN k % 250 < 247 THEN k::{0} "
       "ELSE ('{{NaN,Infinity,-Infinity}}'::{0}[])[k % 250 - 246] END")

# Column: its class and type, and an expression that makes the value of integer k in row i. Columns of one class can be
# compared with each other. Where equal values can look different, rows have both looks.
COLUMNS = {
    "i2": ("int", "int2", "(k % 30000)::int2"),
    "i4": ("int", "int4", "k::int4"),
    "i8": ("int", "int8", "k::int8"),
    "dm": ("int", "positive", "k::int4"),
    "f4": ("float", "float4", ODD.format("float4")),
    "f8": ("float", "float8", ODD.format("float8")),
    "nu": ("numeric", "numeric", "(k || CASE WHEN i % 2 = 0 THEN '' ELSE '.00' END)::numeric"),
    "tx": ("text", "text", "'k' || k"),
    "vc": ("text", "varchar(100)", "'k' || k"),
    "nm": ("text", "name", "('k' || k)::name"),
    "lg": ("text", "text", "CASE WHEN i % 50 = 0 THEN repeat('k' || k, 700) ELSE 'k' || k END"),
    "tc": ("ctext", 'text COLLATE "C"', "'k' || k"),
    "ci": ("citext", "text COLLATE ci", "CASE WHEN i % 2 = 0 THEN 'K' ELSE 'k' END || k"),
    "bp": ("bpchar", "char(8)", "'k' || k"),
    "uu": ("uuid", "uuid", "md5(k::text)::uuid"),
    "dt": ("date", "date", "date '2020-01-01' + k::int4"),
    "ts": ("timestamptz", "timestamptz", "timestamptz '2020-01-01 UTC' + k * interval '1 hour'"),
    "en": ("enum", "colour", "('c' || k % 20)::colour"),
    "ar": ("array", "int4[]", "ARRAY[k, k % 3]::int4[]"),
    "co": ("composite", "pair", "ROW(k, 'k' || k % 5)::pair"),
    "iv": ("interval", "interval", "CASE WHEN i % 2 = 0 THEN interval '1 day' ELSE interval '24 hours' END * k"),
    "ra": ("range", "int4range", "int4range(k::int4, k::int4 + 2)"),
    "by": ("bytea", "bytea", "decode(md5(k::text), 'hex')"),
    "jb": ("jsonb", "jsonb", "jsonb_build_object('k', k)"),
}

# How the value of a column, of whatever looks, is shown.
SHOWN = {"float": "({} + 0.0)", "numeric": "trim_scale({})", "citext": "lower({})", "interval": "extract(epoch FROM {})",
         "text": "({})::text COLLATE \"C\"", "bpchar": "({})::text COLLATE \"C\"", "array": "({})::text"}

# Table: the number of rows, and the integers of its columns in turn.
TABLES = {
    "none": (0, ("i",)),
    "one": (1, ("i",)),
    "ten": (10, ("i", "i % 3", "NULLIF(i, 4)", "i * 100")),
    "thousand": (1000, ("i", "i % 100", "NULLIF(i % 9, 3)", "CASE WHEN i % 4 = 0 THEN 0 ELSE i END", "i * 7 % 1000")),
    "many": (20000, ("i", "i % 4000", "NULLIF(i % 3000, 7)", "CASE WHEN i % 100 = 0 THEN 0 ELSE i END",
                     "i * 13 % 5000", "i / 10")),
    "middle": (16, ("i + 240", "NULLIF(i * 20, 60)", "i + 30")),
    "parted": (3000, ("i % 500", "i", "NULLIF(i % 40, 3) * 10", "i * 7 % 3000")),
    "hashed": (3000, ("i % 600", "i", "i * 11 % 3000")),
    "listed": (2000, ("i", "i % 500", "i * 7 % 900", "NULLIF(i % 45, 7)")),
    "deep": (2000, ("i", "i % 300", "i % 900", "i % 40")),
    "dated": (2000, ("i", "i % 77", "i % 900", "NULLIF(i % 800, 40)")),
    "cased": (1500, ("i % 700", "i * 3 % 50", "i % 300")),
}

HASH = [f"WITH (MODULUS 4, REMAINDER {n})" for n in range(4)]

# Table: how it is partitioned, and the bounds of its partitions, or a bound and the same for the partitions of that one.
PARTITIONS = {
    "parted": ("RANGE (i4)", ["FROM (MINVALUE) TO (1000)", "FROM (1000) TO (2000)", "FROM (2000) TO (3000)", "DEFAULT"]),
    "hashed": ("HASH (i8)", HASH),
    "listed": ("LIST (tx)", ["IN ('k0', 'k1', 'k2')", "IN (NULL, 'k30', 'k31')", "IN ('k4', 'k5', 'k250')", "DEFAULT"]),
    "deep": ("LIST (tc)", ["IN ('k1')", "IN ('k2', NULL)", ("DEFAULT", "RANGE (f8, i8)", [
        "FROM (MINVALUE, MINVALUE) TO (0, 0)", "FROM (0, 0) TO (100, 500)", "FROM (100, 500) TO (245, MAXVALUE)",
        "FROM ('Infinity', MINVALUE) TO ('Infinity', MAXVALUE)", "FROM ('NaN', 0) TO ('NaN', 300)", "DEFAULT"])]),
    "dated": ("RANGE (dt)", ["FROM (MINVALUE) TO ('2020-02-01')",
                             ("FROM ('2020-02-01') TO ('2021-01-01')", "HASH (nu)", HASH),
                             "FROM ('2021-06-01') TO ('2022-03-10')", ("DEFAULT", "LIST (i2)", ["IN (1, 3)", "DEFAULT"])]),
    "cased": ("HASH (tc)", [*HASH[:3], (HASH[3], "RANGE (bp)", ["FROM ('k1') TO ('k2')", "DEFAULT"])]),
}

# Columns that PARTITIONS speaks of, by which joins skip scans.
SKIPPING = {"parted": ("i4",), "hashed": ("i8",), "listed": ("tx",), "deep": ("tc", "f8", "i8"), "dated": ("dt", "nu", "i2"),
            "cased": ("tc", "bp"), "spread": ("dm",)}

VIEWS = ("viewed", "barrier", "hidden", "newest", "of_tenant", "by_period")

TYPES = """
CREATE DOMAIN positive AS int4 CHECK (value >= 0);
CREATE TYPE colour AS ENUM ('c0', 'c1', 'c2', 'c3', 'c4', 'c5', 'c6', 'c7', 'c8', 'c9', 'c10', 'c11', 'c12', 'c13',
    'c14', 'c15', 'c16', 'c17', 'c18', 'c19');
CREATE TYPE pair AS (a int4, b text COLLATE "C");
"""

OTHERS = """
CREATE INDEX ON many (i4);
CREATE INDEX ON many (tx, i8);
CREATE INDEX ON thousand (i4, i8);
CREATE INDEX ON thousand (uu);
CREATE INDEX ON parted (i8);
CREATE VIEW viewed AS SELECT a.*, b.i4 AS bi4, b.tx AS btx FROM thousand a JOIN ten b ON a.i8 = b.i4;
CREATE VIEW barrier WITH (security_barrier) AS SELECT * FROM thousand WHERE i4 % 3 <> 1;
CREATE VIEW hidden WITH (security_barrier) AS SELECT a.* FROM many a JOIN ten b ON a.i4 % 10 = b.i4 WHERE b.i8 IS NOT NULL;
CREATE VIEW newest WITH (security_barrier) AS SELECT DISTINCT ON (tx) * FROM thousand ORDER BY tx, id;
CREATE TABLE rented AS SELECT * FROM thousand;
ALTER TABLE rented ENABLE ROW LEVEL SECURITY;
ALTER TABLE rented FORCE ROW LEVEL SECURITY;
CREATE POLICY p ON rented USING (id % 4 = current_setting('app.tenant')::int);
CREATE VIEW of_tenant AS SELECT * FROM many WHERE id % 4 = current_setting('app.tenant')::int;
CREATE VIEW by_period AS SELECT a.* FROM thousand a, generate_series(1, 20)
    WHERE id / 250 = current_setting('app.tenant')::int;
CREATE TABLE guarded AS SELECT * FROM thousand;
ALTER TABLE guarded ENABLE ROW LEVEL SECURITY;
ALTER TABLE guarded FORCE ROW LEVEL SECURITY;
CREATE POLICY p ON guarded USING (i8 IN (SELECT i4 FROM ten) OR i4 % 2 = 0);
CREATE TABLE sink (id int4 PRIMARY KEY, i4 int4, tx text);
INSERT INTO sink SELECT i, i % 50, 'k' || i % 70 FROM generate_series(1, 500) i;
CREATE SEQUENCE calls;
CREATE FUNCTION same(int8) RETURNS int8 LANGUAGE plpgsql VOLATILE COST 100 AS
    'BEGIN PERFORM nextval(''calls''); RETURN $1; END';
CREATE FUNCTION in_setting(int8) RETURNS int8 LANGUAGE plpgsql STABLE COST 10 AS
    'BEGIN RETURN $1 % (4 + current_setting(''app.tenant'')::int); END';
CREATE FUNCTION fussy(int8) RETURNS int8 LANGUAGE plpgsql IMMUTABLE COST 10 AS
    'BEGIN IF $1 = 13 THEN RAISE ''unlucky''; END IF; RETURN $1; END';
CREATE FUNCTION matches(int8) RETURNS SETOF int8 LANGUAGE sql STABLE SECURITY DEFINER COST 3000 ROWS 3 AS
    'SELECT a.i8 FROM ten a JOIN ten b ON a.i8 = b.i4 WHERE b.i8 > $1';
CREATE FUNCTION found(int8) RETURNS int8 LANGUAGE plpgsql STABLE COST 3000 AS '
DECLARE
    result int8;
BEGIN
    SELECT sum(1 / (a.i8 - $1)) INTO result FROM thousand a JOIN ten b ON a.i8 = b.i4;
    RETURN result;
EXCEPTION WHEN division_by_zero THEN
    RETURN -1;
END';
CREATE FUNCTION first_few(int8) RETURNS SETOF int8 LANGUAGE plpgsql STABLE COST 3000 ROWS 3 AS '
DECLARE
    r record;
BEGIN
    FOR r IN SELECT a.i8 FROM thousand a JOIN ten b ON a.i8 = b.i4 ORDER BY a.i8 LOOP
        EXIT WHEN r.i8 > $1;
        RETURN NEXT r.i8;
    END LOOP;
END';
"""

# Children that have constraints, each just as wide as its rows, and one that has one that is not valid.
HEIRS = """
CREATE TABLE heirs (LIKE many);
INSERT INTO heirs SELECT * FROM many WHERE id BETWEEN 2000 AND 2020;
ALTER TABLE heirs ADD CHECK (id >= 2000), ADD CHECK (i4 >= 2000) NO INHERIT;
ALTER TABLE heirs DROP CONSTRAINT heirs_id_check;
DO $$
DECLARE
    child text;
    c text;
    ends text[];
BEGIN
    FOR n IN 0 .. 7 LOOP
        child := 'heirs_' || n;
        EXECUTE format('CREATE TABLE %I (gone int4, LIKE many); ALTER TABLE %1$I DROP gone, INHERIT heirs', child);
        EXECUTE format('INSERT INTO %I SELECT * FROM many WHERE id BETWEEN %s AND %2$s + 150', child, n * 100);
        FOR c IN SELECT attname FROM pg_attribute
            WHERE attrelid = 'many'::regclass AND attnum > 0 AND attname NOT IN ('lg', 'co')
        LOOP
            EXECUTE format('SELECT ARRAY[(SELECT %I FROM %I ORDER BY 1 NULLS LAST LIMIT 1)::text, '
                '(SELECT %1$I FROM %2$I ORDER BY 1 DESC NULLS LAST LIMIT 1)::text]', c, child) INTO ends;
            IF n < 6 THEN
                EXECUTE format('ALTER TABLE %I ADD CHECK (%I >= %L), ADD CHECK (%2$I <= %4$L)', child, c, ends[1], ends[2]);
            ELSIF n = 6 THEN
                EXECUTE format('ALTER TABLE %I ADD CHECK (%I > %L) NOT VALID', child, c, ends[2]);
            END IF;
        END LOOP;
    END LOOP;
END $$;
"""

# A table in the order of its columns, with BRIN indexes: rows out of order, an index that is partial, and one that misses
# rows because it is not valid.
ORDERED = ("CREATE TABLE {0} (LIKE many) WITH (autovacuum_enabled = off)",
           "INSERT INTO {0} SELECT * FROM many WHERE id < 4000 ORDER BY id",
           "CREATE INDEX {0}_all ON {0} USING brin (i2, i4, i8, dm, f4, f8, nu, tx, vc, nm, tc, bp, uu, dt, ts, iv, by) "
           "WITH (pages_per_range = 2)",
           "CREATE INDEX ON {0} USING brin (i8, i4 int4_bloom_ops, tx text_bloom_ops, nu) WITH (pages_per_range = 5)",
           "CREATE INDEX ON {0} USING brin (i4, dt, f8) WITH (pages_per_range = 1) WHERE id < 100",
           "CREATE INDEX {0}_stale ON {0} USING brin (i2, i8, tx, nu, ts) WITH (pages_per_range = 1)",
           "UPDATE pg_index SET indisvalid = false, indisready = false WHERE indexrelid = '{0}_stale'::regclass",
           "DELETE FROM {0} WHERE id % 400 IN (340, 341)", "VACUUM {0}",
           "INSERT INTO {0} SELECT * FROM many WHERE id IN (245, 1000, 12000) ORDER BY id")

# The same with ranges of blocks that are not summarized.
PATCHY = (*ORDERED, "INSERT INTO {0} SELECT * FROM many WHERE id BETWEEN 4000 AND 4300 ORDER BY id",
          "SELECT brin_desummarize_range('{0}_all', n) FROM unnest('{{60, 62, 90}}'::int[]) n")

# Indexes of the extension on partitions, children and tables, all of which have some of the keys. One is left out, one is
# partial, and one is not valid and misses rows.
KEYED = """
DO $$
DECLARE
    t text;
    c text;
BEGIN
    FOREACH t IN ARRAY '{parted, hashed, listed, deep, dated, cased, heirs, heirs_1, heirs_3, heirs_5, ordered, many}'::text[] LOOP
        FOREACH c IN ARRAY '{i4, i8, dm, f4, nu, tx, nm, bp, uu, dt, ts, iv}'::text[] LOOP
            EXECUTE format('CREATE INDEX ON %I USING bloomfilter (%I) WITH (fpp = 1e-5)', t, c);
        END LOOP;
    END LOOP;
END $$;
CREATE INDEX ON hashed_2 USING bloomfilter (i2);
CREATE INDEX ON thousand USING bloomfilter (i4) WHERE i4 < 3;
CREATE INDEX thousand_stale ON thousand USING bloomfilter (i8);
UPDATE pg_index SET indisvalid = false, indisready = false WHERE indexrelid = 'thousand_stale'::regclass;
INSERT INTO thousand (id, i8) SELECT 1000 + i, 10000 + i FROM generate_series(1, 9) i;
"""

FOREIGN = """
CREATE EXTENSION postgres_fdw;
DO $$
BEGIN
    EXECUTE format('CREATE SERVER loopback FOREIGN DATA WRAPPER postgres_fdw OPTIONS (dbname %L, host %L, port %L)',
        current_database(), split_part(current_setting('unix_socket_directories'), ',', 1), current_setting('port'));
END $$;
DO $$
BEGIN
    EXECUTE format('CREATE USER MAPPING FOR PUBLIC SERVER loopback OPTIONS (user %L, password_required %L)', session_user,
        'false');
END $$;
CREATE SCHEMA remote;
IMPORT FOREIGN SCHEMA public LIMIT TO (ten, thousand) FROM SERVER loopback INTO remote;
CREATE TABLE far (LIKE thousand);
CREATE TABLE spread (LIKE thousand) PARTITION BY RANGE (dm);
CREATE TABLE spread_0 PARTITION OF spread FOR VALUES FROM (1) TO (300);
CREATE FOREIGN TABLE spread_1 PARTITION OF spread FOR VALUES FROM (300) TO (600) SERVER loopback OPTIONS (table_name 'far');
CREATE TABLE spread_rest PARTITION OF spread DEFAULT;
INSERT INTO far SELECT * FROM thousand WHERE dm BETWEEN 300 AND 599;
INSERT INTO spread SELECT * FROM thousand WHERE (dm BETWEEN 300 AND 599) IS NOT TRUE;
GRANT ALL ON ALL TABLES IN SCHEMA public TO join_tester;
GRANT USAGE ON SCHEMA remote TO join_tester;
GRANT ALL ON ALL TABLES IN SCHEMA remote TO join_tester;
"""

# Row security does not apply to superusers.
ROLE = """
DO $$
BEGIN
    CREATE ROLE join_tester;
EXCEPTION WHEN duplicate_object THEN
END $$;
GRANT ALL ON SCHEMA public TO join_tester;
GRANT ALL ON ALL TABLES IN SCHEMA public TO join_tester;
GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO join_tester;
"""


def columns(collations):
    """The columns that a server with these collations can have."""
    return {name: column for name, column in COLUMNS.items() if collations or column[0] != "citext"}


def partition_by(name):
    return f"PARTITION BY {PARTITIONS[name][0]}" if name in PARTITIONS else ""


def partition_statements(parent, definitions, partitions):
    """Partitions, every second of which has its columns at other places."""
    statements = []
    for number, bound in enumerate(partitions[1] if partitions else ()):
        bound, *below = (bound,) if isinstance(bound, str) else bound
        name = f"{parent}_{number}"
        options = f"PARTITION BY {below[0]}" if below else ""
        values = bound if bound == "DEFAULT" else f"FOR VALUES {bound}"
        statements += [f"CREATE TABLE {name} (gone int4, {definitions}, id int4) {options}", f"ALTER TABLE {name} DROP gone",
                       f"ALTER TABLE {parent} ATTACH PARTITION {name} {values}"] if number % 2 else [
                           f"CREATE TABLE {name} PARTITION OF {parent} {values} {options}"]
        statements += partition_statements(name, definitions, below)
    return statements


def table_statements(name, available):
    rows, integers = TABLES[name]
    definitions = ", ".join(f"{column} {sql_type}" for column, (_, sql_type, _) in available.items())
    values = []
    for position, (_, _, value) in enumerate(available.values()):
        # unlike columns of one class, so that joins across them have some matches
        integer = integers[position % len(integers)]
        values.append(f"(SELECT {value} FROM (SELECT ({integer}) AS k) AS k WHERE k IS NOT NULL)")
    return [f"CREATE TABLE {name} (id int4, {definitions}) {partition_by(name)}",
            *partition_statements(name, definitions, PARTITIONS.get(name)),
            f"INSERT INTO {name} SELECT i, {', '.join(values)} FROM generate_series(0, {rows - 1}) AS i"]


def create(connection):
    """Make the schema; returns the columns, and the tables to query."""
    connection.run("SET client_min_messages = error; SET app.tenant = 0; DROP SCHEMA public CASCADE; CREATE SCHEMA public;"
                   "DROP EXTENSION IF EXISTS postgres_fdw CASCADE; DROP SCHEMA IF EXISTS remote CASCADE;"
                   "CREATE EXTENSION IF NOT EXISTS bloomfilter")
    tables = [*TABLES, *VIEWS, "guarded", "rented", "heirs", "ordered", "patchy"]
    collations = connection.run("SELECT 1 FROM pg_collation WHERE collprovider = 'i'") != []
    if collations:
        connection.run("CREATE COLLATION ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
    available = columns(collations)
    connection.run(TYPES)
    for name in TABLES:
        for statement in table_statements(name, available):
            connection.run(statement)
    connection.run(OTHERS)
    for statement in (HEIRS, *(s.format("ordered") for s in ORDERED), *(s.format("patchy") for s in PATCHY)):
        connection.run(statement)
    connection.run(KEYED)
    connection.run(ROLE)
    if connection.run("SELECT 1 FROM pg_available_extensions WHERE name = 'postgres_fdw'"):
        connection.run(FOREIGN)
        tables += ["remote.ten", "remote.thousand", "spread"]
    connection.run("ANALYZE")
    return available, tables
