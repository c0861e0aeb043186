#!/usr/bin/python3
"""Runs the examples of the documentation and compares what they print.

    PGHOST=... PGUSER=... test/reader/check_examples.py [--update] [FILE...]

An example is a block that begins with ```sql.  If a block that begins with
```output follows, psql has to print exactly that; otherwise, it has to
run without an error.  The examples run one after the other, those of a file
in a session of its own, all in one database, which is dropped at the end.  With --update, the
output blocks are rewritten.  Output: TAP.
"""
import os
import re
import sys

from harness import SETTINGS, ServerError, Tap, psql

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                    os.pardir, os.pardir)
FILES = ['README.md', 'doc/REFERENCE.md', 'doc/FORMAT.md', 'doc/COOKBOOK.md',
         'doc/DRIVERS.md', 'doc/JOIN_FILTERS.md', 'doc/INDEX.md']
DATABASE = 'bloomfilter_examples'
CREATE = re.compile('CREATE EXTENSION (IF NOT EXISTS )?bloomfilter;')
# All pages create their objects in one schema; a reader pastes one example.
SCHEMA = 'NOTICE:  schema "examples" already exists, skipping\n'
FOREIGN = """SELECT oid::regclass FROM pg_class
  WHERE oid >= 16384 AND relkind IN ('r', 'p', 'v', 'm', 'f', 'i') AND
    relnamespace::regnamespace::text NOT IN ('examples', 'pg_toast');
SELECT oid::regprocedure FROM pg_proc p
  WHERE oid >= 16384 AND pronamespace::regnamespace::text <> 'examples' AND
    NOT EXISTS (SELECT FROM pg_depend WHERE objid = p.oid AND deptype = 'e')
"""
# VACUUM keeps rows that others may see, such as autovacuum, which may be in an ANALYZE that is older than their DELETE.
WAIT = """DO $$BEGIN
  PERFORM pg_current_xact_id();
  WHILE EXISTS (SELECT FROM pg_stat_activity
                 WHERE pid <> pg_backend_pid() AND datname = current_database() AND age(backend_xmin) > 0) LOOP
    PERFORM pg_sleep(0.01), pg_stat_clear_snapshot();
  END LOOP;
END$$;
"""
BLOCK = re.compile(r'^```sql\n(.*?)^```\n(?:\n*```output\n(.*?)^```\n)?',
                   re.DOTALL | re.MULTILINE)

def trimmed(text):
    """Without spaces at the ends of lines, which Markdown does not keep."""
    return '\n'.join(line.rstrip() for line in text.strip('\n').splitlines())

def run(blocks):
    """What psql prints for each block; all run in one session."""
    mark = '--- end of example ---'
    script = ''.join(block + '\n\\echo %s\n' % mark for block in blocks)
    # Warnings are part of what an example shows.
    script = re.sub('^VACUUM', WAIT + 'VACUUM', CREATE.sub('', script), flags=re.MULTILINE)
    output = psql('\\set QUIET 1\n' + script, '-q',
                  database=DATABASE,
                  settings=SETTINGS.replace(' error', ' notice'))
    return output.replace(SCHEMA, '').split(mark + '\n')[:-1]

def line_of(text, at):
    return text.count('\n', 0, at) + 1

def check_file(tap, name, update):
    path = name if os.path.exists(name) else os.path.join(ROOT, name)
    with open(path, encoding='utf-8') as file:
        text = file.read()
    examples = list(BLOCK.finditer(text))
    printed = run([example.group(1) for example in examples])
    if not tap.ok(len(printed) == len(examples), '%s: %d examples run' %
                  (name, len(examples))):
        return
    for example, output in zip(examples, printed):
        wanted = example.group(2)
        title = '%s, line %d: %s' % (
            name, line_of(text, example.start()),
            example.group(1).strip().splitlines()[0][:60].replace('#', ''))
        if wanted is None:
            tap.ok('ERROR:' not in output, title, output)
        else:
            tap.ok(update or trimmed(output) == trimmed(wanted), title,
                   'wanted:\n%s\nprinted:\n%s' % (
                       trimmed(wanted), trimmed(output)))
    if update:
        outputs = iter(printed)

        def replace(example):
            output = trimmed(next(outputs))
            if example.group(2) is None:
                return example.group(0)
            return '```sql\n%s```\n```output\n%s\n```\n' % (
                example.group(1), output)

        with open(path, 'w', encoding='utf-8') as file:
            file.write(BLOCK.sub(replace, text))

def main():
    arguments = sys.argv[1:]
    update = '--update' in arguments
    tap = Tap()
    tap.require_server()
    drop = 'DROP DATABASE IF EXISTS %s;\n' % DATABASE
    psql(drop + "CREATE DATABASE %s TEMPLATE template0 ENCODING 'UTF8';\n" %
         DATABASE, '-q', '-v', 'ON_ERROR_STOP=1')
    psql('CREATE EXTENSION bloomfilter;', '-q', '-v', 'ON_ERROR_STOP=1',
         database=DATABASE)
    for name in [a for a in arguments if a != '--update'] or FILES:
        try:
            check_file(tap, name, update)
        except ServerError as error:
            tap.ok(False, name, error)
    try:
        foreign = psql(FOREIGN, '-qAt', database=DATABASE).strip()
        tap.ok(not foreign, 'all is created in the schema examples', foreign)
    except ServerError as error:
        tap.ok(False, 'the schema examples', error)
    psql(drop, '-q')
    return tap.done()

if __name__ == '__main__':
    sys.exit(main())
