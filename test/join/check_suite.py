#!/usr/bin/env python3
"""PostgreSQL's own regression suite gives the same results with join filters and index pruning as without.

Runs the tests of src/test/regress in throwaway servers, once with bloomfilter.join_filters = off and once with it on
"force", and compares the results of the two runs, not with the expected ones. EXPLAIN output is left out. Each variant
below has settings that make other plans. Where two runs differ, both are repeated: a test is wrong if no run with filters
has the results of a run without. Tests that are unstable without filters, too, must be known, with a reason.

In the variant "pruned" an event trigger gives each table bloomfilter indexes on all of its columns, as far as their types
can be keys, and bloomfilter.index_pruning is off and on.

auto_explain writes each plan to the server's log, from which the filters and the rows that they removed are counted, or
the plans with gates and the tables that were pruned before planning.

    check_suite.py --programs=DIR --suite=DIR --libraries=DIR --pg-regress=FILE --work=DIR [VARIANT...]

The programs are those of a server that has the extension; suite is src/test/regress of PostgreSQL's source of the same
major; libraries has regress, refint and autoinc; work is a new directory, kept if a test fails. Not as root.
Output in the Test Anything Protocol.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

JOINS = {"enable_nestloop": "off", "enable_mergejoin": "off", "bloomfilter.join_planning": "off"}
PARALLEL = {"min_parallel_table_scan_size": 0, "min_parallel_index_scan_size": 0, "parallel_setup_cost": 0,
            "parallel_tuple_cost": 0, "max_parallel_workers": 4}
# A gate is there if the scan behind it costs much.
DEAR_PAGES = {"seq_page_cost": 1000, "random_page_cost": 4000, "max_parallel_workers_per_gather": 0}

# The settings of each variant, and the least number of plans with filters and of rows that these removed.
VARIANTS = {
    "plain": ({"bloomfilter.join_planning": "off"}, 100, 1000),
    "hash": (JOINS, 500, 10000),
    "parallel": ({**JOINS, **PARALLEL}, 500, 10000),
    "planned": ({}, 100, 1000),
    "pruned": ({**DEAR_PAGES, "bloomfilter.join_filters": "off", "log_min_messages": "debug1"}, 300, 20),
}

# What is off and then on, and what the log shows of it: in a plan, and elsewhere, with a number that is summed up.
FILTERS = ("bloomfilter.join_filters = {}", "force", "bloom_join_probe(", re.compile(r"Checked: \d+ +Removed: (\d+)"))
PRUNING = ("bloomfilter.index_pruning = {}", "on", "bloom_index_gate(",
           re.compile(r"index .* leaves \d+ of \d+ partitions()"))
SWITCHES = {"pruned": PRUNING}

# A variant may have some of the tests alone, and those that make their tables.
TESTS = {"pruned": "test_setup create_index create_misc create_view inherit updatable_views rowsecurity rules plancache"
                   " partition_prune partition_join partition_aggregate prepare portals foreign_key triggers subselect"
                   " union with merge"}

# Variants in which the order of rows without ORDER BY depends on timing or the plan: there, rows are compared as sets.
UNORDERED = {"parallel", "planned", "pruned"}

# Here, tests run one at a time: parallel workers of one and VACUUM FULL pg_class of another end in a deadlock, and workers
# that are taken by others change what a test does.
ONE_AT_A_TIME = {"parallel"}

# Tests whose output may differ in a variant.
DIFFERENT = {
    "parallel": {"cluster": "a window without an order, over the rows of a parallel scan",
                 "portals": "a cursor fetches some rows of a parallel scan"},
    "planned": {"join_hash": "shows the batches of a hash table, and another one is made"},
}

SETTINGS = """
listen_addresses = ''
unix_socket_directories = '{sockets}'
fsync = off
max_wal_size = 4GB
autovacuum = off
synchronize_seqscans = off
jit = off
max_prepared_transactions = 2
session_preload_libraries = 'auto_explain, bloomfilter'
auto_explain.log_min_duration = 0
auto_explain.log_nested_statements = on
auto_explain.log_analyze = on
auto_explain.log_timing = off
bloomfilter.join_filter_min_rows = 0
"""

# A partition has the indexes of its parent.
INDEXES = """
CREATE FUNCTION bloomfilter.add_indexes() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
  command text;
BEGIN
  FOR command IN
    SELECT format('CREATE INDEX %I ON %s.%I USING bloomfilter (%I)', 'bf_' || c.relname || '_' || a.attname,
        c.relnamespace::regnamespace, c.relname, a.attname)
      FROM pg_event_trigger_ddl_commands() d JOIN pg_class c ON c.oid = d.objid AND d.classid = 'pg_class'::regclass
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
      WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition
  LOOP
    BEGIN
      EXECUTE command;
    EXCEPTION WHEN OTHERS THEN
    END;
  END LOOP;
END $$;
CREATE EVENT TRIGGER add_indexes ON ddl_command_end WHEN TAG IN ('CREATE TABLE', 'CREATE TABLE AS', 'SELECT INTO')
  EXECUTE FUNCTION bloomfilter.add_indexes();
"""

# What pg_regress sets in a database that it makes itself.
DATABASE_SETTINGS = {"lc_messages": "C", "lc_monetary": "C", "lc_numeric": "C", "lc_time": "C", "bytea_output": "hex",
                     "timezone_abbreviations": "Default"}

EXPLAIN_HEADER = re.compile(r" *(QUERY PLAN|explain_\w+|plan_line) *$")
STARTED_EXPLAIN = re.compile(r"explain [^;]*$", re.IGNORECASE)    # \gexec prints it without a header
RULE = re.compile(r"-+(\+-+)*$")
ROWS = re.compile(r"\(\d+ rows?\)$")


def run(command, log, **options):
    with open(log, "a", encoding="utf-8") as output:
        return subprocess.run([str(word) for word in command], stdout=output, stderr=subprocess.STDOUT, check=False,
                              **options).returncode


class Suite:
    def __init__(self, args):
        self.args = args
        self.work = args.work
        self.template = self.work / "template"
        self.work.mkdir()

    def program(self, name, *words, log):
        if run([self.args.programs / name, *words], log) != 0:
            raise RuntimeError(f"{name} failed, see {log}")

    def init(self):
        self.program("initdb", "-D", self.template, "-U", "postgres", "-A", "trust", "--no-locale", "-E", "UTF8",
                     "--no-sync", log=self.work / "initdb.log")

    def psql(self, sockets, database, *commands, log):
        words = [word for command in commands for word in ("-c", command)]
        self.program("psql", "-X", "-q", "-h", sockets, "-U", "postgres", "-d", database, "-v", "ON_ERROR_STOP=1",
                     *words, log=log)

    def run_tests(self, variant, suffix, mode):
        """Run all tests in a server of its own; returns the directory of the run."""
        settings = VARIANTS[variant][0]
        switch = SWITCHES.get(variant, FILTERS)[0]
        directory = self.work / f"{variant}-{suffix}"
        data = directory / "data"
        log = directory / "output"
        directory.mkdir()
        shutil.copytree(self.template, data)
        with open(data / "postgresql.conf", "a", encoding="utf-8") as conf:
            conf.write(SETTINGS.format(sockets=directory) + switch.format(mode) + "\n")
            for setting, value in settings.items():
                conf.write(f"{setting} = {value}\n")
        self.program("pg_ctl", "-D", data, "-l", directory / "log", "-w", "start", log=log)
        try:
            self.psql(directory, "postgres", "CREATE DATABASE regression TEMPLATE template0", log=log)
            self.psql(directory, "regression", "CREATE SCHEMA bloomfilter",
                      "CREATE EXTENSION bloomfilter SCHEMA bloomfilter", *([INDEXES] if variant == "pruned" else []),
                      *(f"ALTER DATABASE regression SET {setting} = '{value}'"
                        for setting, value in DATABASE_SETTINGS.items()), log=log)
            run([self.args.pg_regress, "--use-existing", f"--host={directory}", "--user=postgres",
                 f"--dlpath={self.args.libraries}", f"--bindir={self.args.programs}", f"--inputdir={self.args.suite}",
                 f"--outputdir={directory}", f"--max-connections={1 if variant in ONE_AT_A_TIME else 10}",
                 *(TESTS[variant].split() if variant in TESTS else
                   [f"--schedule={self.args.suite / 'parallel_schedule'}"])], log, cwd=directory)
        finally:
            run([self.args.programs / "pg_ctl", "-D", data, "-w", "-m", "fast", "stop"], log)
        shutil.rmtree(data)
        return directory


def table_end(lines, start):
    """The line after the table of which this line is the header, or 0 if it is none."""
    rule = lines[start + 1] if start + 1 < len(lines) else ""
    if lines[start][:1] != " " or len(lines[start]) != len(rule) or not RULE.match(rule):
        return 0
    end = next((i for i in range(start + 2, len(lines)) if lines[i] == "" or ROWS.match(lines[i])), start)
    return end + 1 if ROWS.match(lines[end]) else 0


def shown(text, unordered):
    """The output of a test without that of EXPLAIN, and perhaps with the rows of each table sorted."""
    result = []
    lines = text.split("\n")
    i = 0
    while i < len(lines):
        end = table_end(lines, i)
        if STARTED_EXPLAIN.match(lines[i]):
            end = next((j for j in range(i, len(lines)) if lines[j] == ""), len(lines))
        elif end == 0:
            result.append(lines[i])
            end = i + 1
        elif not EXPLAIN_HEADER.match(lines[i]):
            rows = lines[i + 2:end]
            result += [lines[i], *(sorted(rows) if unordered else rows)]
        i = end
    return "\n".join(result)


def results(directory, unordered):
    return {path.stem: shown(path.read_bytes().decode("utf-8", "surrogateescape"), unordered)
            for path in sorted((directory / "results").glob("*.out"))}


def scheduled_tests(suite):
    names = []
    for line in (suite / "parallel_schedule").read_text().splitlines():
        if line.startswith("test:"):
            names += line.split()[1:]
    return sorted(names)


def crashes(directory):
    log = (directory / "log").read_text(errors="replace")
    return re.findall(r"^.*(?:was terminated by signal|PANIC: |TRAP: ).*$", log, re.MULTILINE)


def count_filters(directory, variant):
    """The number of plans with filters, and of the rows that filters removed; or those with gates, and pruned tables."""
    _, _, in_plan, elsewhere = SWITCHES.get(variant, FILTERS)
    plans = removed = 0
    with open(directory / "log", encoding="utf-8", errors="replace") as log:
        in_filtered_plan = False
        for line in log:
            if not line.startswith("\t"):
                in_filtered_plan = False
            elif in_plan in line and not in_filtered_plan:
                in_filtered_plan = True
                plans += 1
            found = elsewhere.search(line)
            if found:
                removed += int(found[1] or 1)
    return plans, removed


class Report:
    def __init__(self):
        self.count = self.failed = 0

    def check(self, name, passed, *details):
        self.count += 1
        self.failed += not passed
        print(f"{'ok' if passed else 'not ok'} {self.count} - {name}")
        for detail in details:
            print("    " + str(detail).replace("\n", "\n    "))
        sys.stdout.flush()


def differing(one, other):
    return {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)}


def check_variant(suite, report, variant):
    _, least_plans, least_removed = VARIANTS[variant]
    on = SWITCHES.get(variant, FILTERS)[1]
    unordered = variant in UNORDERED
    expected = sorted(TESTS[variant].split()) if variant in TESTS else scheduled_tests(suite.args.suite)
    without = suite.run_tests(variant, "off", "off")
    forced = suite.run_tests(variant, on, on)
    results_without, results_forced = results(without, unordered), results(forced, unordered)
    report.check(f"{variant}: all tests ran", sorted(results_without) == sorted(results_forced) == expected)
    found = crashes(without) + crashes(forced)
    report.check(f"{variant}: no crash", not found, *found)
    different = differing(results_without, results_forced)
    different -= DIFFERENT.get(variant, {}).keys()
    wrong, unstable = sorted(different), set()
    if different:
        again = results(suite.run_tests(variant, "off-again", "off"), unordered)
        forced_again = results(suite.run_tests(variant, f"{on}-again", on), unordered)
        unstable = differing(results_without, again)
        wrong = [name for name in wrong if not {results_without.get(name), again.get(name)} &
                 {results_forced.get(name), forced_again.get(name)}]
    print(f"# {variant}: {len(expected)} tests, {len(different)} differ: {' '.join(sorted(different)) or 'none'};"
          f" unstable without filters: {' '.join(sorted(unstable)) or 'none'}")
    report.check(f"{variant}: the same results", not wrong,
                 *(f"diff {without}/results/{name}.out {forced}/results/{name}.out" for name in wrong))
    plans, removed = count_filters(forced, variant)
    report.check(f"{variant}: {plans} plans with gates, {removed} tables pruned" if variant == "pruned" else
                 f"{variant}: {plans} plans with filters, which removed {removed} rows",
                 plans >= least_plans and removed >= least_removed)
    report.check(f"{variant}: no plan has them when they are off", count_filters(without, variant) == (0, 0))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    for name in ("programs", "suite", "libraries", "pg-regress", "work"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("variants", nargs="*", metavar="VARIANT", help=", ".join(VARIANTS))
    args = parser.parse_args()
    if not set(args.variants) <= VARIANTS.keys():
        parser.error(f"the variants are {', '.join(VARIANTS)}")
    os.environ["LC_ALL"] = "C"
    report = Report()
    suite = Suite(args)
    suite.init()
    for variant in args.variants or VARIANTS:
        check_variant(suite, report, variant)
    print(f"1..{report.count}")
    if report.failed == 0:
        shutil.rmtree(suite.work)
    return report.failed > 0


if __name__ == "__main__":
    sys.exit(main())
