#!/usr/bin/env python3
"""Random queries have the same results with join filters as without.

    random_queries.py [--queries=N] [--seed=S] [--keep-going] [--only=N] [--schema]

Connects as libpq does (PGHOST, PGDATABASE and so on, as a superuser), to a database of its own whose schema public it
replaces. Each query, which is made from the seed and its number alone, runs with bloomfilter.join_filters = off and
"force" under the same settings, which are random, too. Each third has bloomfilter.join_planning, which may choose another
plan, so it has neither errors nor volatile functions. Some run as prepared statements, by cursors, or as INSERT, UPDATE, or
DELETE. Rows are compared as sets, or in their order if that is total, errors by their SQLSTATE, and so is the number of
calls of a volatile function. With a filter a query may succeed that fails without, as a filter may remove the row for which
an expression fails, or it may fail for a later row in another expression. A few queries may fail only with a filter, in an
expression of an inner side that is not read without one, because the outer side is empty.

On a difference it prints a script that shows it, with as few settings as possible, and stops, unless --keep-going is
given. --only=N runs query N alone, --schema only makes the tables. The run fails, too, if too few plans had filters, if
these removed too few rows, or if they skipped no scan and no blocks. --log=FILE appends each query before it runs.
"""
import argparse
import ctypes
import ctypes.util
import math
import os
import random
import re
import sys
import time

import random_schema
from generator import Generator

TUPLES_OK = 2
FATAL_ERROR = 7
SQLSTATE = ord("C")
TIMEOUT = "57014"
# A lost connection, an internal error, or too few resources: neither is the result of a query.
BROKEN = ("08", "57P", "XX", "53")
# Except this one, with filters and without: PostgreSQL sorts a column by one collation where it merges by two.
MERGED_BY_TWO_COLLATIONS = "mergejoin input data is out of order"
# What expressions of the queries raise.
EXPRESSION = ("22", "P0001")
MAX_COST = 30000
MAX_ROWS = 50000
MAX_SHOWN = 2000
# The least shares of queries with a filter, and of rows that filters removed of those they checked.
LEAST_FILTERED = 0.2
LEAST_REMOVED = 0.05
# In so many queries, scans are skipped and a BRIN index leaves blocks out for sure. All of them are analyzed, of the later
# ones each fifth.
MANY = 300
MOST_UNSTABLE = 0.001
MOST_RAISED = 0.002
ANALYZE_ONE_IN = 5

# Setting, probability, values.
SETTINGS = (
    ("enable_nestloop", 0.6, ("off",)),
    ("enable_mergejoin", 0.7, ("off",)),
    ("enable_hashjoin", 0.03, ("off",)),
    ("enable_hashagg", 0.2, ("off",)),
    ("enable_sort", 0.1, ("off",)),
    ("enable_memoize", 0.2, ("off",)),
    ("enable_material", 0.2, ("off",)),
    ("enable_indexscan", 0.2, ("off",)),
    ("enable_bitmapscan", 0.2, ("off",)),
    ("enable_seqscan", 0.1, ("off",)),
    ("enable_incremental_sort", 0.1, ("off",)),
    ("enable_partitionwise_join", 0.3, ("on",)),
    ("enable_partitionwise_aggregate", 0.3, ("on",)),
    ("enable_parallel_hash", 0.3, ("off",)),
    ("parallel_leader_participation", 0.3, ("off",)),
    ("work_mem", 0.4, ("'64kB'", "'256kB'")),
    ("hash_mem_multiplier", 0.3, ("1", "4")),
    ("join_collapse_limit", 0.4, ("1",)),
    ("from_collapse_limit", 0.2, ("1",)),
    ("plan_cache_mode", 0.5, ("force_generic_plan", "force_custom_plan")),
    ("cursor_tuple_fraction", 0.3, ("0.001", "1")),
    ("jit_above_cost", 0.002, ("0",)),
    ("constraint_exclusion", 0.2, ("on", "off")),
    ("enable_partition_pruning", 0.2, ("off",)),
    ("enable_parallel_append", 0.2, ("off",)),
    ("role", 0.15, ("join_tester",)),
    ("bloomfilter.join_filter_memory", 0.2, ("0", "8", "64")),
)
PARALLEL = (("min_parallel_table_scan_size", "0"), ("min_parallel_index_scan_size", "0"), ("parallel_setup_cost", "0"),
            ("parallel_tuple_cost", "0"), ("max_parallel_workers_per_gather", "2"))
PLANNED = ("bloomfilter.join_planning", "on")
ALWAYS = (("statement_timeout", "'2s'"), ("bloomfilter.join_filter_min_rows", "0"),
          ("bloomfilter.join_planning", "off"), ("bloomfilter.join_planning_cost", "0"), ("max_parallel_workers_per_gather", "0"),
          ("jit_above_cost", "-1"), ("jit_inline_above_cost", "-1"), ("jit_optimize_above_cost", "-1"),
          ("synchronize_seqscans", "off"), ("app.tenant", "0"))


class ServerError(Exception):
    def __init__(self, sqlstate, message):
        super().__init__(message)
        self.sqlstate = sqlstate


def load_libpq():
    libpq = ctypes.CDLL(ctypes.util.find_library("pq") or "libpq.so.5")
    for name, result, arguments in (
            ("PQconnectdb", ctypes.c_void_p, (ctypes.c_char_p,)),
            ("PQstatus", ctypes.c_int, (ctypes.c_void_p,)),
            ("PQfinish", None, (ctypes.c_void_p,)),
            ("PQserverVersion", ctypes.c_int, (ctypes.c_void_p,)),
            ("PQerrorMessage", ctypes.c_char_p, (ctypes.c_void_p,)),
            ("PQsetNoticeProcessor", ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)),
            ("PQexec", ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_char_p)),
            ("PQresultStatus", ctypes.c_int, (ctypes.c_void_p,)),
            ("PQresultErrorField", ctypes.c_char_p, (ctypes.c_void_p, ctypes.c_int)),
            ("PQresultErrorMessage", ctypes.c_char_p, (ctypes.c_void_p,)),
            ("PQclear", None, (ctypes.c_void_p,)),
            ("PQntuples", ctypes.c_int, (ctypes.c_void_p,)),
            ("PQnfields", ctypes.c_int, (ctypes.c_void_p,)),
            ("PQgetvalue", ctypes.c_char_p, (ctypes.c_void_p, ctypes.c_int, ctypes.c_int)),
            ("PQgetisnull", ctypes.c_int, (ctypes.c_void_p, ctypes.c_int, ctypes.c_int))):
        function = getattr(libpq, name)
        function.restype, function.argtypes = result, arguments
    return libpq


class Connection:
    """Takes what the connection string does not say from PGHOST and the like."""

    def __init__(self, parameters=""):
        self.libpq = load_libpq()
        self.handle = self.libpq.PQconnectdb(parameters.encode())
        if self.libpq.PQstatus(self.handle) != 0:
            raise ServerError("08001", self.libpq.PQerrorMessage(self.handle).decode())
        self.ignore = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)(lambda _context, _message: None)
        self.libpq.PQsetNoticeProcessor(self.handle, self.ignore, None)

    def version(self):
        return self.libpq.PQserverVersion(self.handle) // 10000

    def close(self):
        self.libpq.PQfinish(self.handle)

    def run(self, statement):
        """The rows of the last statement as tuples of text, None for NULL."""
        result = self.libpq.PQexec(self.handle, statement.encode())
        try:
            if result is None or self.libpq.PQresultStatus(result) == FATAL_ERROR:
                state = result and self.libpq.PQresultErrorField(result, SQLSTATE)
                raise ServerError(state.decode() if state else "08006",
                                  self.libpq.PQerrorMessage(self.handle).decode(errors="replace").strip())
            columns = range(self.libpq.PQnfields(result))
            return [tuple(None if self.libpq.PQgetisnull(result, row, column) else
                          self.libpq.PQgetvalue(result, row, column) for column in columns)
                    for row in range(self.libpq.PQntuples(result))]
        finally:
            self.libpq.PQclear(result)


class Query:
    """Statements to run one after the other, and whether the rows of each come in a known order."""

    def __init__(self, sql, statements, settings, ordered):
        self.sql = sql
        self.statements = statements
        self.settings = settings
        self.ordered = ordered


def choose_settings(rng, debug_parallel):
    settings = [(name, rng.choice(values)) for name, probability, values in SETTINGS if rng.random() < probability]
    if rng.random() < 0.15:
        settings += PARALLEL
    elif rng.random() < 0.02:
        settings.append((debug_parallel, "on"))
    return settings


def cursor_statements(rng, sql):
    scroll = rng.choice(("", "SCROLL ", "NO SCROLL ", "SCROLL "))
    hold = " WITH HOLD" if rng.random() < 0.15 else ""
    statements = ["BEGIN", f"DECLARE c {scroll}CURSOR{hold} FOR {sql}"]
    moves = ["FORWARD 3", "NEXT", "FORWARD 40", "FORWARD 200"]
    if scroll == "SCROLL ":
        moves += ["BACKWARD 2", "PRIOR", "ABSOLUTE 5", "FIRST", "LAST", "BACKWARD ALL", "ABSOLUTE 0", "RELATIVE -3"]
    for _ in range(rng.randint(1, 6)):
        statements.append(f"FETCH {rng.choice(moves)} FROM c")
    if rng.random() < 0.2:
        statements.insert(rng.randint(2, len(statements)), "SAVEPOINT s; SELECT 1 FROM sink a JOIN sink b USING (i4)")
        statements.append("ROLLBACK TO s")
    if hold and rng.random() < 0.5:
        statements += ["COMMIT", "FETCH ALL FROM c", "CLOSE c"]
    elif rng.random() < 0.7:
        statements.append("FETCH ALL FROM c")
    return statements + ["ROLLBACK"]


def prepared_statements(rng, sql):
    numbers = [match.span() for match in re.finditer(r"(?<= [<>=] )\d+(?= |\)|$)", sql)]
    if not numbers:
        return [f"PREPARE p AS {sql}"] + ["EXECUTE p"] * rng.randint(1, 2) + ["DEALLOCATE p"]
    start, end = rng.choice(numbers)
    values = [rng.choice((0, 1, 2, 3, 5, 20, 700)) for _ in range(rng.randint(1, 7))]
    return [f"PREPARE p (int4) AS {sql[:start]}$1{sql[end:]}"] + [f"EXECUTE p ({value})" for value in values] + [
        "DEALLOCATE p"]


def changing_statements(rng, sql):
    insert = f"INSERT INTO sink (id, tx) SELECT row_number() OVER () + 1000, ROW(q.*)::text FROM ({sql}) AS q RETURNING tx"
    choices = (insert, insert, f"CREATE TEMP TABLE result ON COMMIT DROP AS {sql}",
               f"WITH q AS ({sql}), d AS (DELETE FROM sink s USING sink u WHERE s.i4 = u.id RETURNING s.id) "
               "SELECT q.*, (SELECT count(*) FROM d) FROM q",
               f"UPDATE sink s SET i4 = u.id FROM (SELECT min(b.id) AS id, b.i4 FROM sink b JOIN ten t ON b.i4 = t.i4 "
               f"GROUP BY b.i4) u WHERE s.i4 = u.i4 AND EXISTS ({sql}) RETURNING s.id, s.i4",
               f"DELETE FROM sink s USING sink u JOIN thousand t ON u.i4 = t.i8 WHERE s.i4 = u.id AND NOT EXISTS ({sql}) "
               "RETURNING s.id")
    chosen = rng.choice(choices)
    return ["BEGIN", chosen] + (["SELECT * FROM result"] if "result ON" in chosen else []) + ["ROLLBACK"]


def make_query(seed, number, available, tables, debug_parallel):
    rng = random.Random(f"{seed}/{number}")
    planned = number % 3 == 0
    sql, columns = Generator(rng, available, tables, steady=planned).query()
    settings = choose_settings(rng, debug_parallel)
    if planned:
        settings.append(PLANNED)
    order = f" ORDER BY {', '.join(str(n + 1) for n in range(columns))}"
    ordered = rng.random() < 0.2
    if ordered:
        sql += order
    form = rng.random()
    if form < 0.3:
        ordered = False
        values = ", ".join(f"c{n}" for n in range(columns))
        sql = f"SELECT count(*), sum(hashtextextended(ROW({values})::text, 0)::numeric) FROM ({sql}) AS q ({values})"
        statements = [sql]
    elif form < 0.72:
        statements = [sql]
    elif form < 0.85:
        statements = prepared_statements(rng, sql)
    elif form < 0.94:
        ordered = True
        sql = sql if sql.endswith(order) else sql + order
        statements = cursor_statements(rng, sql)
    else:
        ordered = False
        statements = changing_statements(rng, sql)
    return Query(sql, statements, settings, ordered)


def set_statement(settings):
    return "; ".join(["ROLLBACK; RESET ROLE; RESET ALL; DEALLOCATE ALL; CLOSE ALL; DISCARD PLANS"] +
                     [f"SET {name} = {value}" for name, value in (*ALWAYS, *settings)])


class Runner:
    def __init__(self, args):
        self.args = args
        self.connection = Connection(args.connection)
        self.debug_parallel = "force_parallel_mode" if self.connection.version() < 16 else "debug_parallel_query"
        self.available, self.tables = random_schema.create(self.connection)
        self.connection.run("LOAD 'bloomfilter'")
        self.run_count = self.filtered = self.filters = self.analyzed = self.checked = self.removed = 0
        self.skipped = self.skipping = self.by_index = self.limited = 0
        self.rejected = self.errors = self.avoided = self.raised = self.unstable = self.timeouts = self.different = 0

    def results(self, query, mode, settings=None):
        """What each statement returns, up to the first error; None if a statement took too long."""
        settings = query.settings if settings is None else settings
        self.connection.run("ROLLBACK; SELECT setval('calls', 1, false)")
        settings = [pair for pair in settings if pair != PLANNED or mode != "off"]
        self.connection.run(set_statement([*settings, ("bloomfilter.join_filters", mode)]))
        results = []
        for statement in (*query.statements, "SELECT last_value, is_called FROM calls"):
            try:
                rows = self.connection.run(statement)
                results.append(rows if query.ordered else sorted(rows, key=repr))
            except ServerError as error:
                if error.sqlstate == TIMEOUT:
                    return None
                if error.sqlstate.startswith(BROKEN) and MERGED_BY_TWO_COLLATIONS not in str(error):
                    raise
                results.append(error.sqlstate)
                break
        return results

    def plan(self, query):
        """EXPLAIN with filters; None if the query is expected to take long or has an error."""
        self.connection.run(set_statement([*query.settings, ("bloomfilter.join_filters", "force")]))
        try:
            lines = [row[0].decode() for row in self.connection.run(f"EXPLAIN {query.sql}")]
        except ServerError as error:
            if error.sqlstate.startswith(BROKEN):
                raise
            if self.args.verbose:
                print(f"{error}\n{query.sql}\n")
            return None
        estimates = re.findall(r"cost=\S+\.\.(\S+) rows=(\d+)", "\n".join(lines))
        if int(estimates[0][1]) > MAX_SHOWN or any(
                math.fmod(float(cost), 1e10) > MAX_COST or int(rows) > MAX_ROWS for cost, rows in estimates):
            return None
        return "\n".join(lines)

    def count_removed(self, query):
        try:
            rows = self.connection.run(f"EXPLAIN (ANALYZE, TIMING OFF) {query.sql}")
        except ServerError as error:
            if error.sqlstate.startswith(BROKEN) and MERGED_BY_TWO_COLLATIONS not in str(error):
                raise
            return
        for row in rows:
            found = re.search(r"Checked: (\d+) +Removed: (\d+)", row[0].decode())
            if found:
                self.checked += int(found[1])
                self.removed += int(found[2])
            found = re.search(r"Scans Skipped: (\d+) of \d+(?:  By Index: (\d+))?", row[0].decode())
            if found:
                self.skipped += int(found[1])
                self.skipping += int(found[1]) > 0
                self.by_index += int(found[2] or 0)
            blocks = re.search(r"Blocks Read: (\d+) of (\d+)", row[0].decode())
            if blocks and (not found or found[1] == "0"):
                self.limited += int(blocks[1]) < int(blocks[2])

    def run_query(self, number):
        query = make_query(self.args.seed, number, self.available, self.tables, self.debug_parallel)
        if self.args.log:
            with open(self.args.log, "a", encoding="utf-8") as log:
                log.write(f"-- {number}\n{script(query)}\n")
        plan = self.plan(query)
        if plan is None:
            self.rejected += 1
            return
        probes = plan.count("bloom_join_probe(")
        self.filtered += probes > 0
        self.filters += probes
        if probes > 0 and (self.run_count < MANY or number % ANALYZE_ONE_IN == 0):
            self.analyzed += 1
            self.count_removed(query)
        mode = "on" if number % 4 == 0 else "force"
        off, forced = self.results(query, "off"), self.results(query, mode)
        if off is None or forced is None:
            self.timeouts += 1
            return
        self.run_count += 1
        self.errors += isinstance(off[-1], str)
        if off != forced:
            self.judge(query, number, mode, off, forced)

    def differ(self, query, mode, settings):
        off, forced = self.results(query, "off", settings), self.results(query, mode, settings)
        return off is not None and forced is not None and off != forced

    def judge(self, query, number, mode, off, forced):
        last = forced[min(len(off), len(forced)) - 1]
        if (isinstance(off[-1], str) and off[:-1] == forced[:len(off) - 1] and
                (not isinstance(last, str) or off[-1].startswith(EXPRESSION) and last.startswith(EXPRESSION))):
            self.avoided += 1
            return
        if isinstance(last, str) and last.startswith(EXPRESSION) and forced[:-1] == off[:len(forced) - 1]:
            self.raised += 1
            return
        again = [self.results(query, "off") for _ in range(3)]
        if any(result != off for result in again):
            self.unstable += 1
            print(f"-- query {number} is unstable\n{script(query)}\n")
            return
        self.different += 1
        settings = list(query.settings)
        for setting in query.settings:
            fewer = [other for other in settings if other is not setting]
            if self.differ(query, mode, fewer):
                settings = fewer
        query.settings = settings
        position = next((i for i, pair in enumerate(zip(off, forced)) if pair[0] != pair[1]), 0)
        print(f"-- query {number} of seed {self.args.seed} differs between off and {mode}:")
        print(f"--   off: {shorten(off[position])}\n--   {mode}: {shorten(forced[position])}")
        print(f"-- the tables: random_queries.py --schema\n{script(query)}\n", flush=True)

    def report(self, seconds):
        print(f"{self.run_count} queries in {seconds:.0f} s; {self.filtered} with filters, {self.filters} in all, which "
              f"removed {self.removed} of {self.checked} rows in {self.analyzed} queries, where {self.skipping} filters "
              f"skipped {self.skipped} scans, {self.by_index} of them by an index, and {self.limited} left out "
              f"blocks; {self.errors} ended in an error, of which filters avoided {self.avoided}; {self.raised} have an error only with a filter; left out: "
              f"{self.rejected} that are long or invalid, {self.timeouts} too slow; {self.unstable} unstable, "
              f"{self.different} different")
        acted = self.args.only is not None or (self.filtered >= LEAST_FILTERED * self.run_count and
                                               self.removed > LEAST_REMOVED * self.checked > 0 and
                                               (self.run_count < MANY or
                                                self.skipping > 0 and self.by_index > 0 and self.limited > 0))
        if not acted:
            print("filters acted too seldom")
        return (acted and self.different == 0 and self.unstable <= max(1, MOST_UNSTABLE * self.run_count) and
                self.raised <= max(2, MOST_RAISED * self.run_count))


def shorten(result):
    text = result if isinstance(result, str) else f"{len(result)} rows {result}"
    return text if len(text) < 300 else text[:300] + " …"


def script(query):
    settings = "".join(f"SET {name} = {value};\n" for name, value in (*ALWAYS, *query.settings))
    return f"{settings}SET bloomfilter.join_filters = force;\n" + ";\n".join(query.statements) + ";"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--queries", type=int, default=2000)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--only", type=int)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--keep-going", action="store_true")
    parser.add_argument("--schema", action="store_true")
    parser.add_argument("--verbose", action="store_true", help="show invalid queries")
    parser.add_argument("--log")
    parser.add_argument("--connection", default="", help="a connection string, instead of PGHOST and the like")
    args = parser.parse_args()
    os.environ.setdefault("PGCLIENTENCODING", "UTF8")
    runner = Runner(args)
    if args.schema:
        return 0
    began = time.monotonic()
    number = args.first if args.only is None else args.only
    while runner.run_count < args.queries:
        try:
            runner.run_query(number)
        except KeyboardInterrupt:
            break
        except ServerError as error:
            print(f"-- query {number} of seed {args.seed}: {error.sqlstate} {error}")
            query = make_query(args.seed, number, runner.available, runner.tables, runner.debug_parallel)
            print(script(query), flush=True)
            runner.different += 1
            if error.sqlstate.startswith(("08", "57P")):
                break
        number += 1
        if args.only is not None or (runner.different and not args.keep_going):
            break
    return not runner.report(time.monotonic() - began)


if __name__ == "__main__":
    sys.exit(main())
