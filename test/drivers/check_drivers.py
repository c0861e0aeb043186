#!/usr/bin/python3
"""Probes filters through client drivers.  Output: TAP.

    PGHOST=... PGUSER=... PGDATABASE=... test/drivers/check_drivers.py

Each driver's program is run in a directory of its own, as PROGRAM CASES.

Each query in the examples of doc/DRIVERS.md has to be one of a program or of
a case.  The table there says what type the server sees for a value; the
programs write 'sends VALUE', a tab and the type, or 'none'.

CASES has a query a line: what it tests|type of the parameter|parameter|query
with $1, which has to give true.  The type "none" means a parameter without a
type, as far as the driver can; "list" means a list of strings as the driver
has it, or else its text as an array without a type.  The program writes to
stdout, for each case, what it tests, a tab, and t or what it got instead.

Then it fetches f of the table driver_text, in text and in binary, into the
files "text" and "binary", and inserts into driver_back (how, f) the contents
of the files "back.text" as 'text' and "back.binary" as 'binary'.  The reader
of doc/FORMAT.md probes what the program fetched, and writes what it sends.
Drivers that do not know the binary format of a type use the casts between
bloom and bytea.

psql has literals, psycopg 3 is libpq and sends types of its own and binary
values, JDBC sends a type for each method, node-postgres none: other drivers
do what one of these does.
"""
import base64
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, 'reader'))

from bloomfilter_reader import Filter  # noqa: E402
from harness import ServerError, Tap, psql, rows  # noqa: E402

CASES = os.path.join(HERE, 'cases')
PYTHON_DRIVERS = os.path.join(HERE, 'python_drivers.py')
PAGE = os.path.join(HERE, os.pardir, os.pardir, 'doc', 'DRIVERS.md')
SETUP = """
DROP TABLE IF EXISTS driver_text, driver_bigint, driver_numeric, driver_float,
    driver_uuid, driver_date, driver_time, driver_back;
CREATE TABLE driver_text AS
    SELECT bloom_add_all(bloom_agg('key ' || i, 0.001, 1000),
                         ARRAY['red', 'Zürich']) AS f
    FROM generate_series(1, 998) i;
CREATE TABLE driver_bigint AS SELECT bloom_agg(bigint '5') AS f;
CREATE TABLE driver_numeric AS SELECT bloom_agg(1.5) AS f;
CREATE TABLE driver_float AS SELECT bloom_agg(float8 '1.5') AS f;
CREATE TABLE driver_uuid AS
    SELECT bloom_agg(uuid '00000000-0000-0000-0000-00000000000a') AS f;
CREATE TABLE driver_date AS SELECT bloom_agg(date '2026-01-31') AS f;
CREATE TABLE driver_time AS
    SELECT bloom_agg(timestamptz '2026-01-31 12:00:00+00') AS f;
CREATE TABLE driver_back (how text, f bloom);
"""
NEW = 'from the client'


class Missing(Exception):
    """A driver is not installed; the message says which."""


def run(command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **options)


def need(command, what):
    try:
        works = run(command).returncode == 0
    except OSError:
        works = False
    if not works:
        raise Missing(what)


def python_with(module):
    """A Python that has the module: packaged ones have it in /usr/bin."""
    for python in (sys.executable, '/usr/bin/python3', 'python3'):
        try:
            if run([python, '-c', 'import ' + module]).returncode == 0:
                return python
        except OSError:
            pass
    raise Missing('no Python module ' + module)


def psycopg3(build):
    return [python_with('psycopg'), PYTHON_DRIVERS, 'psycopg3']


def jdbc(build):
    jar = os.environ.get('PGJDBC', '/usr/share/java/postgresql.jar')
    if not os.path.exists(jar):
        raise Missing('no ' + jar)
    need(['javac', '-version'], 'no javac')
    version = run(['javac', '-version']).stdout.decode()
    if int(re.search(r'\d+', version).group()) < 16:
        raise Missing('no javac 16 or later, which knows Unix sockets')
    compiled = run(['javac', '-Xlint:all', '-Werror', '-cp', jar, '-d', build,
                    os.path.join(HERE, 'JdbcDriver.java')])
    if compiled.returncode != 0:
        raise RuntimeError(compiled.stdout.decode())
    return ['java', '-cp', jar + os.pathsep + build, 'JdbcDriver']


def node(build):
    # Only Debian's node finds the module of Debian's package.
    paths = [os.environ.get('NODE_PATH', ''), '/usr/share/nodejs']
    os.environ['NODE_PATH'] = os.pathsep.join(p for p in paths if p)
    need(['node', '-e', 'require("pg")'], 'no node with the module pg')
    return ['node', os.path.join(HERE, 'node_driver.js')]


def psql_driver(build):
    return [sys.executable, PYTHON_DRIVERS, 'psql']


def page():
    with open(PAGE, encoding='utf-8') as file:
        return file.read()


def documented_types():
    """{value: {driver: type}} of the table that begins with 'value'."""
    table, names = {}, None
    for line in page().splitlines():
        cells = [re.sub(r'\(.*\)', '', cell).strip()
                 for cell in line.strip('|').split('|')]
        if cells[0] == 'value':
            names = cells[1:]
        elif names and not line.startswith('|'):
            break
        elif names and not line.startswith('|--'):
            table[cells[0]] = {name: cell for name, cell in
                               zip(names, cells[1:]) if cell != '–'}
    return table


def plain_query(query):
    """Remove what differs: parameters, quotes, spaces, names of tables."""
    query = re.sub(r"\$\d|%s|\?", '$', query)
    query = re.sub(r'driver_\w+', 'filters', query)
    return re.sub(r'[\s"\']+', ' ', query)


def check_page(tap):
    queries = []
    for name in os.listdir(HERE):
        if os.path.isfile(os.path.join(HERE, name)):
            with open(os.path.join(HERE, name), encoding='utf-8') as file:
                queries.append(plain_query(file.read()))
    examples = re.findall(r'"((?:SELECT|INSERT|UPDATE) [^"]*)"',
                          ''.join(re.findall(r'^```.*?^```', page(),
                                             re.M | re.S)))
    tap.ok(len(examples) > 10, 'doc/DRIVERS.md has examples', examples)
    for example in examples:
        tap.ok(any(plain_query(example) in text for text in queries),
               'doc/DRIVERS.md: %s is tried' % example.replace('#', ''))


def check(tap, name, command, image):
    directory = tempfile.mkdtemp()
    psql('TRUNCATE driver_back;', '-q')
    changed = Filter.load(image)
    changed.add(NEW)
    with open(os.path.join(directory, 'back.binary'), 'wb') as file:
        file.write(changed.image())
    with open(os.path.join(directory, 'back.text'), 'w') as file:
        file.write(changed.text())
    process = subprocess.run(
        command + [CASES], cwd=directory, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE)
    tap.ok(process.returncode == 0, name + ': the program ends well',
           process.stderr.decode(errors='replace'))
    got = dict(line.split('\t', 1) for line in
               process.stdout.decode().splitlines() if '\t' in line)
    for value, types in documented_types().items():
        if name in types:
            tap.ok(got.get('sends ' + value) == types[name],
                   '%s: sends %s as doc/DRIVERS.md says' % (name, value),
                   'wanted %s, got %s' % (types[name],
                                          got.get('sends ' + value)))
    with open(CASES, encoding='utf-8') as file:
        for line in file:
            case = line.split('|')[0]
            answer = got.get(case, 'no answer')
            tap.ok(answer == 't', '%s: %s' % (name, case), answer)
    for how in ('text', 'binary'):
        try:
            with open(os.path.join(directory, how), 'rb') as file:
                fetched = file.read()
            if how == 'text':
                fetched = base64.b64decode(fetched, validate=True)
            reader = Filter.load(fetched)
            answer = (fetched == image, 'red' in reader, 'Zürich' in reader,
                      'blue' in reader)
        except (OSError, ValueError) as error:
            answer = error
        tap.ok(answer == (True, True, True, False),
               '%s: a filter fetched in %s, read by the client' % (name, how),
               answer)
        try:
            answer = rows(
                "SELECT count(*), bool_and(b.f = bloom_add(t.f, '%s'))"
                " FROM driver_back b, driver_text t WHERE how = '%s'"
                % (NEW, how))
        except ServerError as error:
            answer = error
        tap.ok(answer == [['1', 't']],
               '%s: one that the client made, sent back in %s' % (name, how),
               answer)
    shutil.rmtree(directory)


def main():
    tap = Tap()
    tap.require_server()
    os.environ['PGCLIENTENCODING'] = 'UTF8'
    psql(SETUP, '-q', '-v', 'ON_ERROR_STOP=1')
    image = bytes.fromhex(rows(
        "SELECT encode(f::bytea, 'hex') FROM driver_text")[0][0])
    check_page(tap)
    build = tempfile.mkdtemp()
    for name, driver in (
            ('psql', psql_driver), ('psycopg 3', psycopg3), ('JDBC', jdbc),
            ('node-postgres', node)):
        try:
            check(tap, name, driver(build), image)
        except Missing as error:
            tap.skip(name, error)
        except RuntimeError as error:
            tap.ok(False, name + ': the program builds', error)
    shutil.rmtree(build)
    return tap.done()


if __name__ == '__main__':
    sys.exit(main())
