# job|missing-ids|4|6|1|ids that do not exist: lookups that do not reach the table, while it is written
"""Requests for ids that do not exist must not reach the big table: lookups with the filter and without it, then with
writers, merges and a rebuild at the same time."""
import contextlib
import glob
import os
import statistics
import threading
import time

import pgbench
from lib import as_bytes, significant

TITLE = 'Ids that do not exist'
ITEMS, DELTA, ROUNDS, CLIENTS = 30_000_000, 10_000, 5, 8
STEPS = 7

# Ids are multiples of seven; 95 requests in 100 are for others.
LOOK = '''\\set i random(1, {})
\\set miss random(1, 100)
\\set id 7 * :i + CASE WHEN :miss <= 95 THEN 1 + :i % 6 ELSE 0 END
'''
LOOKUPS = {'table alone': 'SELECT * FROM items WHERE id = :id;', 'filter first': 'SELECT * FROM find_item(:id);'}

# Ids that no other client draws. What a client has committed, it has to find.
WRITE = '''\\set n :n + 1
\\set id -1000000007 * (1 + :client_id) - :n
INSERT INTO items VALUES (:id, 'new');
SELECT 1 / count(*) FROM find_item(:id);'''

# How many items the clients have written, and whether none of them is lost: then a client's last number is how many
# it has. pgbench does not tell, because its threads count the transactions of a script without a lock.
WRITTEN = '''SELECT coalesce(sum(items), 0)::bigint, coalesce(bool_and(items = last), true)
  FROM (SELECT count(*) AS items, max(-id % 1000000007) AS last
          FROM items WHERE id < -1000000007 GROUP BY id / 1000000007) clients'''

MISSED = '''SELECT count(*) FROM items, item_filter
 WHERE NOT (filter @> id OR EXISTS (SELECT FROM item_delta d WHERE d.id = items.id))'''


def run(job, section):
    n, delta = job.size(ITEMS, 1000), job.size(DELTA, 100)
    room = n + n // 10
    with job.session(maintenance_work_mem='1GB') as session:
        with job.step('{:,} items with an index'.format(n)):
            session.execute('''CREATE UNLOGGED TABLE items AS
                SELECT 7 * i AS id, 'item ' || i AS body FROM (SELECT generate_series(1::bigint, %s) AS i) n''', [n])
            session.execute('ALTER TABLE items ADD PRIMARY KEY (id)')
            session.execute('VACUUM ANALYZE items')
        for beginning in ('CREATE TABLE item_filter', 'INSERT INTO item_filter', 'CREATE TABLE item_delta',
                          'CREATE INDEX ON item_delta', 'INSERT INTO item_delta', 'CREATE FUNCTION note_item',
                          'CREATE TRIGGER note_item', 'ALTER TABLE items', 'CREATE FUNCTION find_item',
                          'CREATE FUNCTION merge_items', 'CREATE FUNCTION rebuild_items'):
            session.execute(job.recipe('missing_ids.sql', beginning))
        with job.step('a filter of them', session) as build:
            session.execute('SELECT rebuild_items(%s)', [room])
        with job.step('{:,} more items, which go to the delta'.format(delta)):
            session.execute("INSERT INTO items SELECT -i, 'new' FROM generate_series(1, %s) i", [delta])
            for table in ('item_filter', 'item_delta', 'items'):
                session.execute('VACUUM ANALYZE ' + table)
        job.check(session.value('SELECT count(*) FROM item_delta') == delta, 'they are in the delta')
        table, index, filter_size, buffers = session.execute('''
            SELECT pg_relation_size('items'), pg_relation_size('items_pkey'), pg_column_size(filter),
                   setting::bigint * 8192
              FROM item_filter, pg_settings WHERE name = 'shared_buffers' ''')[0]
        job.check(job.factor < 1 or index > 4 * buffers, 'the index is several times larger than the buffers')
        session.execute('SET plan_cache_mode = force_generic_plan; PREPARE find(bigint) AS SELECT * FROM find_item($1)')
        section.plan('a lookup, prepared', session, 'EXECUTE find(8)', ['Index .*item_delta', 'items_pkey'])

    rows = lookups(job, n, 'in memory') + lookups(job, n, 'on disk')
    alone = rows[1]
    at_once = everything(job, n, delta, room)

    section.text('''{:,} items: a table of {}, an index of {}, shared_buffers of {}. The filter, with room for a
        tenth more at a rate of 0.001, has {}, and was built from the table in {} s; the delta has {:,} ids. pgbench,
        {} clients, prepared statements; 95 % of the ids do not exist. {} rounds in turns, medians. *In memory*: the
        system has table and index in its cache. *On disk*: it is made to forget both, ten times a second, as if they
        were far larger than memory. Blocks are those of a lookup, found in the buffers or read from the system.
        '''.format(n, as_bytes(table), as_bytes(index), as_bytes(buffers), as_bytes(filter_size),
                   significant(build.wall), delta, CLIENTS, ROUNDS))
    section.code('sql', LOOK.format(n) + '\n'.join('-- %s\n%s' % lookup for lookup in LOOKUPS.items()))
    section.table(['', 'lookups a second', 'ms each', 'µs of CPU each', 'blocks of items', 'of these read',
                   'blocks of filter and delta', 'of these read'], rows)
    section.text(at_once.format(alone[1]))


def lookups(job, n, where):
    """Rows of the table: both ways in turns."""
    rounds = {name: [] for name in LOOKUPS}
    with job.session() as session:
        session.execute('CHECKPOINT')
    with contextlib.ExitStack() as stack:
        if where == 'on disk':
            job.forget_files()
            stack.enter_context(Forgetting(job))
        else:
            read_all(job)
        with job.step('lookups with table and index %s' % where):
            for number in range(ROUNDS if job.factor >= 0.01 else 1):
                for name in list(LOOKUPS)[::-1 if number % 2 else 1]:
                    rounds[name].append(one_round(job, LOOK.format(n) + LOOKUPS[name]))
    medians = {name: [statistics.median(values) for values in zip(*results)] for name, results in rounds.items()}
    touched, without = medians['filter first'][3], medians['table alone'][3]
    job.check(touched < 0.3 * without or job.factor < 0.001,
              'with the filter a lookup touches %.2f blocks of the table, without it %.2f' % (touched, without))
    ratio = statistics.median(second[0] / first[0] for first, second in zip(*rounds.values()))
    return [['%s, %s' % (name, where), *map(significant, values)] for name, values in medians.items()] + [
        ['filter / alone, ' + where, '%.2f' % ratio] + 6 * ['']]


def one_round(job, script):
    """Lookups a second, milliseconds and microseconds of CPU each; blocks of the items each, of these read; the same of
    the filter with its delta."""
    tables = 'items', 'item_filter', 'item_delta'
    before = pgbench.blocks(job, tables)
    result = pgbench.run(job, {'look': script}, CLIENTS, seconds=6)
    after = pgbench.blocks(job, tables)
    hit, read = ([(after[name][i] - before[name][i]) / result.transactions for name in tables] for i in (0, 1))
    return (result.tps, result.latency * 1e3, result.cpu * 1e6, hit[0] + read[0], read[0], sum(hit[1:]) + sum(read[1:]),
            sum(read[1:]))


def files_of_items(job):
    with job.session() as session:
        paths = [session.value('SELECT pg_relation_filepath(%s)', [name]) for name in ('items', 'items_pkey')]
    return [file for path in paths for file in glob.glob(os.path.join(job.data_dir, path) + '*')]


def read_all(job):
    for path in files_of_items(job):
        with open(path, 'rb') as file:
            while file.read(1 << 20):
                pass


class Forgetting:
    """The system forgets what it has in its cache of the table and its index, again and again."""

    def __init__(self, job):
        self.files = [os.open(path, os.O_RDONLY) for path in files_of_items(job)]
        self.done = threading.Event()

    def __enter__(self):
        self.thread = threading.Thread(target=self.forget)
        self.thread.start()

    def __exit__(self, *exception):
        self.done.set()
        self.thread.join()
        for file in self.files:
            os.close(file)

    def forget(self):
        while not self.done.wait(0.1):
            for file in self.files:
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)


def everything(job, n, delta, room):
    """Lookups and writers, while a job merges each second and another one rebuilds."""
    done, took, results = threading.Event(), {'merge': [], 'rebuild': []}, []

    def requests():
        try:
            results.append(pgbench.run(
                job, {'look': LOOK.format(n) + LOOKUPS['filter first'], 'write': WRITE}, CLIENTS, seconds=20,
                define=['n=0'], weights={'look': 19}))
        finally:
            done.set()

    with job.session() as session, job.step('lookups, writers, merges and a rebuild'):
        job.at_once([requests, lambda: merge_and_rebuild(job, session, room, done, took)])
    result = results[0]
    with job.session() as session, job.step('looking for every item'):
        there = session.value('SELECT count(*) FROM items')
        written, complete = session.execute(WRITTEN)[0]
        job.check(complete and (written > 0 or job.factor < 0.01),
                  'each client finds what it has written, %d in all' % written)
        job.check(there == n + delta + written, '%d items, of which %d were written' % (there, written))
        job.check(session.value(MISSED) == 0, 'no item is missed')
        session.execute('SELECT merge_items()')
        job.check(session.value(MISSED) == 0, 'nor after a merge')
    return '''**All at once.** The same clients, with one request in 20 a new item, which then had to be found; the
        delta was merged once a second, and the filter was rebuilt and swapped in the middle, all without a lookup
        or a writer waiting for it: {:,.0f} requests a second, as against {{}} of lookups alone, {:,} of them new items. {}
        merges took {} s (median), the rebuild {} s. Afterwards each item was found.'''.format(
            result.tps, written, len(took['merge']), significant(statistics.median(took['merge'])),
            significant(max(took['rebuild'])))


def merge_and_rebuild(job, session, room, done, took):
    while not done.is_set() or not took['rebuild']:
        what = 'rebuild' if len(took['merge']) >= 3 and not took['rebuild'] else 'merge'
        began = time.monotonic()
        session.execute('SELECT merge_items()' if what == 'merge' else 'SELECT rebuild_items(%d)' % room)
        took[what].append(time.monotonic() - began)
        session.execute('VACUUM item_filter')
        session.execute('VACUUM item_delta')
        done.wait(job.factor)
