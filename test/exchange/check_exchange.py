#!/usr/bin/python3
"""Passes filters between servers.  Output: TAP.

    PGHOST=... PGUSER=... test/exchange/check_exchange.py DIRECTORY/NAME

The server makes the filters of filters.sql and writes them to the directory
NAME, by COPY in text and in binary and by pg_dump.  Then it reads all
directories in DIRECTORY: what servers of other majors and on other machines
have written, and its own.  Filters have to be the same, bit for bit, and to
find every key.  Those of opclass-hashed types depend on the byte order; where
it differs, a probe has to be an error.
"""
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, 'reader'))

from harness import Tap, psql, rows  # noqa: E402

MINE = 'exchange'
RESTORED = 'exchange_restored'

SAME = """
SELECT count(*), count(*) FILTER (WHERE theirs.f::bytea = mine.f::bytea)
FROM {table} theirs JOIN filters mine USING (key_type, form, low, high)
JOIN key_types USING (key_type) WHERE {which};
"""
ALIKE = 'NOT opclass_hashed OR low > high'


def create_database(name):
    psql("""
        DROP DATABASE IF EXISTS {0};
        CREATE DATABASE {0} TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C';
        """.format(name), '-q', '-v', 'ON_ERROR_STOP=1', database='postgres')


def run(*command):
    """Run a program that prints nothing unless it fails."""
    process = subprocess.run(command, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT)
    return process.stdout.decode('utf-8', 'replace').strip() or (
        process.returncode and 'exit status %d' % process.returncode)


def describe():
    """The server: its major, its byte order, and what its filters are."""
    return {
        'major': int(rows('SHOW server_version_num;')[0][0]) // 10000,
        # byte 10 of an image of an opclass-hashed type
        'byte order': rows('SELECT get_byte(bloom_agg(ARRAY[1])::bytea, 10);'),
        'fingerprint': rows('SELECT fingerprint();')}


def write(directory, mine):
    os.makedirs(directory, exist_ok=True)
    for form in ('text', 'binary'):
        psql("\\copy (SELECT * FROM filters ORDER BY key_type COLLATE \"C\", form "
             "COLLATE \"C\") TO '%s/filters.%s' (FORMAT %s)\n" %
             (directory, form, form), '-q', '-v', 'ON_ERROR_STOP=1')
    difference = run('pg_dump', '--format=custom',
                     '--file=%s/dump' % directory)
    with open(directory + '/server', 'w', encoding='utf-8') as file:
        json.dump(mine, file)
    return difference


def lost_keys(table, which):
    """What keys of filters in a table are lost."""
    answers = rows("SELECT key_type, probed, lost FROM lost_keys('%s', $$%s$$);" %
                   (table, which))
    for key_type, probed, lost in answers:
        if int(probed) < 4000 or lost != '0':
            yield '%s: of %s keys, %s are lost' % (key_type, probed, lost)
    if len(answers) < 25:
        yield 'only %d key types were probed' % len(answers)


def probes_answered(table):
    """Whether probes are answered that have to be an error."""
    (probed, answered), = rows("SELECT * FROM probes_answered('%s');" % table)
    if int(probed) < 100 or answered != '0':
        yield 'of %s probes %s were answered' % (probed, answered)


def check_keys(tap, table, what, same_order):
    tap.run(what + ': every key is found', lambda: '\n'.join(lost_keys(
        table, 'true' if same_order else 'NOT opclass_hashed')))
    if not same_order:
        tap.run(what + ': keys that were hashed in the other byte order are '
                'an error', lambda: '\n'.join(probes_answered(table)))


def check_copied(tap, directory, form, what, same_order):
    """Check filters that COPY has transferred."""
    table = 'from_' + form
    which = 'true' if same_order else ALIKE

    def test_same():
        psql('DROP TABLE IF EXISTS {0};\n'
             'CREATE TABLE {0} (LIKE filters);\n'
             "\\copy {0} FROM '{1}/filters.{2}' (FORMAT {2})\n".format(
                 table, directory, form), '-q', '-v', 'ON_ERROR_STOP=1')
        (count, same), = rows(SAME.format(table=table, which=which))
        (wanted,), = rows('SELECT count(*) FROM filters JOIN key_types '
                          'USING (key_type) WHERE %s;' % which)
        if int(wanted) < 400 or [count, same] != [wanted, wanted]:
            return 'of %s filters %s arrived, and %s are the same' % (
                wanted, count, same)

    tap.run(what + ': the same bits', test_same)
    check_keys(tap, table, what, same_order)


def check_restored(tap, directory, what, same_order, fingerprint):
    """Check filters that pg_dump has written."""
    create_database(RESTORED)

    def test_same():
        difference = run('pg_restore', '--exit-on-error',
                         '--dbname=' + RESTORED, directory + '/dump')
        if not difference and rows('SELECT fingerprint();') != fingerprint:
            difference = 'fingerprint() differs'
        return difference

    os.environ['PGDATABASE'] = RESTORED
    try:
        tap.run(what + ': the same bits', test_same)
        check_keys(tap, 'filters', what, same_order)
    finally:
        os.environ['PGDATABASE'] = MINE


def read(tap, directory, mine):
    """Check what a server has written."""
    name = os.path.basename(directory)
    with open(directory + '/server', encoding='utf-8') as file:
        theirs = json.load(file)
    same_order = theirs['byte order'] == mine['byte order']
    for form in ('text', 'binary'):
        check_copied(tap, directory, form,
                     'from %s, by COPY in %s' % (name, form), same_order)
    # pg_restore does not read the output of a newer pg_dump
    if theirs['major'] <= mine['major']:
        check_restored(tap, directory, 'from %s, by pg_dump' % name,
                       same_order, theirs['fingerprint'])


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    directory = os.path.abspath(sys.argv[1])
    tap = Tap()
    os.environ['PGDATABASE'] = MINE
    create_database(MINE)
    psql('\\i %s/filters.sql\n' % HERE, '-q', '-v', 'ON_ERROR_STOP=1')
    mine = describe()
    tap.run('%s: it writes its filters' % os.path.basename(directory),
            lambda: write(directory, mine))
    parent = os.path.dirname(directory)
    for name in sorted(os.listdir(parent)):
        read(tap, os.path.join(parent, name), mine)
    return tap.done()


if __name__ == '__main__':
    sys.exit(main())
