"""The tables of random_queries.py: every table has a column of each type, with values made from small integers, so that
any two tables can be joined on any type. They differ in size, skew and share of NULLs."""

# Column: its class and type, and an expression that makes the value of integer k in row i. Columns of one class can be
# compared with each other. Where equal values can look different, rows have both looks.
COLUMNS = {
    "i2": ("int", "int2", "(k % 30000)::int2"),
    "i4": ("int", "int4", "k::int4"),
    "i8": ("int", "int8", "k::int8"),
    "dm": ("int", "positive", "k::int4"),
    "f4": ("float", "float4", "CASE WHEN k = 0 AND i % 2 = 0 THEN '-0' WHEN k % 50 = 49 THEN 'NaN' ELSE k::float4 END"),
    "f8": ("float", "float8", "CASE WHEN k = 0 AND i % 2 = 0 THEN '-0' WHEN k % 50 = 49 THEN 'NaN' ELSE k::float8 END"),
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
    "parted": (3000, ("i % 500", "i", "NULLIF(i % 40, 3) * 10", "i * 7 % 3000")),
    "hashed": (3000, ("i", "i % 600", "i * 11 % 3000")),
}

VIEWS = ("viewed", "barrier", "hidden", "newest", "of_tenant")

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


def table_statements(name, available):
    rows, integers = TABLES[name]
    definitions = ", ".join(f"{column} {sql_type}" for column, (_, sql_type, _) in available.items())
    partitions = []
    options = ""
    if name == "parted":
        options = "PARTITION BY RANGE (i4)"
        partitions = [f"CREATE TABLE parted{n} PARTITION OF parted FOR VALUES FROM ({n * 1000}) TO ({n * 1000 + 1000})"
                      for n in range(4)] + ["CREATE TABLE parted_rest PARTITION OF parted DEFAULT"]
    elif name == "hashed":
        options = "PARTITION BY HASH (i8)"
        partitions = [f"CREATE TABLE hashed{n} PARTITION OF hashed FOR VALUES WITH (MODULUS 3, REMAINDER {n})"
                      for n in range(3)]
    values = []
    for position, (_, _, value) in enumerate(available.values()):
        # unlike columns of one class, so that joins across them have some matches
        integer = integers[position % len(integers)]
        values.append(f"(SELECT {value} FROM (SELECT ({integer}) AS k) AS k WHERE k IS NOT NULL)")
    return [f"CREATE TABLE {name} (id int4, {definitions}) {options}", *partitions,
            f"INSERT INTO {name} SELECT i, {', '.join(values)} FROM generate_series(0, {rows - 1}) AS i"]


def create(connection):
    """Make the schema; returns the columns, and the tables to query."""
    connection.run("SET client_min_messages = error; SET app.tenant = 0; DROP SCHEMA public CASCADE; CREATE SCHEMA public;"
                   "DROP EXTENSION IF EXISTS postgres_fdw CASCADE; DROP SCHEMA IF EXISTS remote CASCADE;"
                   "CREATE EXTENSION IF NOT EXISTS bloomfilter")
    tables = [*TABLES, *VIEWS, "guarded", "rented"]
    collations = connection.run("SELECT 1 FROM pg_collation WHERE collprovider = 'i'") != []
    if collations:
        connection.run("CREATE COLLATION ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
    available = columns(collations)
    connection.run(TYPES)
    for name in TABLES:
        for statement in table_statements(name, available):
            connection.run(statement)
    connection.run(OTHERS)
    connection.run(ROLE)
    if connection.run("SELECT 1 FROM pg_available_extensions WHERE name = 'postgres_fdw'"):
        connection.run(FOREIGN)
        tables += ["remote.ten", "remote.thousand"]
    connection.run("ANALYZE")
    return available, tables
