#!/usr/bin/python3
"""Hands filters to other servers, and takes theirs.  Output: TAP.

    PGHOST=... PGUSER=... test/exchange/check_exchange.py DIRECTORY/NAME

The server makes the filters of filters.sql and writes them to the directory
NAME, by COPY in text and in binary and by pg_dump.  Then it reads what lies
in all directories beside: what servers of other majors and on other machines
have written, and its own.  Filters have to be the same, bit for bit, and to
find every key.  Those with keys that PostgreSQL hashes are bound to the byte
order; where it is another, they have to refuse to answer.
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
FROM {table} theirs JOIN filters mine USING (kind, form, low, high)
JOIN kinds USING (kind) WHERE {which};
"""
ALIKE = 'NOT foreign_kind OR low > high'


def create_database(name):
    psql("""
        DROP DATABASE IF EXISTS {0};
        CREATE DATABASE {0} TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C';
        """.format(name), '-q', '-v', 'ON_ERROR_STOP=1', database='postgres')


def run(*command):
    """Run a program that has nothing to say."""
    process = subprocess.run(command, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT)
    return process.stdout.decode('utf-8', 'replace').strip() or (
        process.returncode and 'exit status %d' % process.returncode)


def describe():
    """The server: its major, its byte order, and what its filters are."""
    return {
        'major': int(rows('SHOW server_version_num;')[0][0]) // 10000,
        # byte 10 of an image with foreign keys tells
        'byte order': rows('SELECT get_byte(bloom_agg(ARRAY[1])::bytea, 10);'),
        'fingerprint': rows('SELECT fingerprint();')}


def write(directory, mine):
    os.makedirs(directory, exist_ok=True)
    for form in ('text', 'binary'):
        psql("\\copy (SELECT * FROM filters ORDER BY kind COLLATE \"C\", form "
             "COLLATE \"C\") TO '%s/filters.%s' (FORMAT %s)\n" %
             (directory, form, form), '-q', '-v', 'ON_ERROR_STOP=1')
    difference = run('pg_dump', '--format=custom',
                     '--file=%s/dump' % directory)
    with open(directory + '/server', 'w', encoding='utf-8') as file:
        json.dump(mine, file)
    return difference


def lost_keys(table, which):
    """What keys of filters in a table are lost."""
    answers = rows("SELECT kind, asked, lost FROM lost_keys('%s', $$%s$$);" %
                   (table, which))
    for kind, asked, lost in answers:
        if int(asked) < 4000 or lost != '0':
            yield '%s: of %s keys, %s are lost' % (kind, asked, lost)
    if len(answers) < 25:
        yield 'only %d kinds were asked' % len(answers)


def answers_given(table):
    """Whether filters answer that have to refuse that."""
    (asked, answered), = rows("SELECT * FROM answers_given('%s');" % table)
    if int(asked) < 100 or answered != '0':
        yield 'of %s questions %s were answered' % (asked, answered)


def check_keys(tap, table, what, same_order):
    tap.run(what + ': every key is found', lambda: '\n'.join(lost_keys(
        table, 'true' if same_order else 'NOT foreign_kind')))
    if not same_order:
        tap.run(what + ': keys that were hashed in the other byte order are '
                'an error', lambda: '\n'.join(answers_given(table)))


def check_copied(tap, directory, form, what, same_order):
    """Check filters that came by COPY."""
    table = 'from_' + form
    which = 'true' if same_order else ALIKE

    def test_same():
        psql('DROP TABLE IF EXISTS {0};\n'
             'CREATE TABLE {0} (LIKE filters);\n'
             "\\copy {0} FROM '{1}/filters.{2}' (FORMAT {2})\n".format(
                 table, directory, form), '-q', '-v', 'ON_ERROR_STOP=1')
        (count, same), = rows(SAME.format(table=table, which=which))
        (wanted,), = rows('SELECT count(*) FROM filters JOIN kinds '
                          'USING (kind) WHERE %s;' % which)
        if int(wanted) < 400 or [count, same] != [wanted, wanted]:
            return 'of %s filters %s came, and %s are the same' % (
                wanted, count, same)

    tap.run(what + ': the same bits', test_same)
    check_keys(tap, table, what, same_order)


def check_restored(tap, directory, what, same_order, fingerprint):
    """Check filters that came by pg_dump and pg_restore."""
    create_database(RESTORED)

    def test_same():
        difference = run('pg_restore', '--exit-on-error',
                         '--dbname=' + RESTORED, directory + '/dump')
        if not difference and rows('SELECT fingerprint();') != fingerprint:
            difference = 'fingerprint() tells of a difference'
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
    # pg_restore does not take what a newer pg_dump has written
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
    beside = os.path.dirname(directory)
    for name in sorted(os.listdir(beside)):
        read(tap, os.path.join(beside, name), mine)
    return tap.done()


if __name__ == '__main__':
    sys.exit(main())
