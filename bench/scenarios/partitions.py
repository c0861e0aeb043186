# job|partitions|6|11|2|one key in 10,000 filters of 10,000 keys, and in the 100 million rows
"""Which of 10,000 partitions, days, files or tenants may hold this key? A filter of 10,000 keys for each."""
import contextlib
import statistics

from lib import as_bytes, significant

TITLE = 'Which of 10,000 partitions has this key?'
STEPS = 9
PARTITIONS, KEYS, FPP = 10_000, 10_000, 0.001
ROUNDS, LOOKUPS = 5, 10

# Keys are all over the range of bigint, in no order.
ROWS = '''SELECT ((i - 1) / {})::int AS part, hashint8extended(i, 0) AS key
  FROM (SELECT generate_series(1::bigint, {}) AS i) n'''
FILTERS = '''INSERT INTO filters
SELECT part, (SELECT bloom_agg(key, %g) FROM events WHERE events.part = parts.part)
  FROM generate_series({}, {}, 2) AS parts (part)''' % FPP
MISSED = '''SELECT count(*) FROM events JOIN filters USING (part) WHERE NOT bloom_contains(keys, key)'''

CANDIDATES = 'SELECT part FROM filters, bloom_hash({}) AS hash WHERE bloom_contains_hash(keys, hash)'
SLICES = 'SELECT part FROM images WHERE substr(image, 1, 40) = substr(image, 8001, 40)'
FIND = '''SELECT e.*
  FROM (SELECT part FROM filters, bloom_hash({0}) AS hash WHERE bloom_contains_hash(keys, hash)) p,
       LATERAL (SELECT * FROM events WHERE part = p.part AND key = {0} OFFSET 0) e'''
SCAN = 'SELECT * FROM events WHERE key = {}'
PARALLEL = {'max_parallel_workers_per_gather': 1, 'parallel_setup_cost': 0, 'parallel_tuple_cost': 0,
            'min_parallel_table_scan_size': 0}


def run(job, section):
    parts = job.size(PARTITIONS, 10)
    with job.session(maintenance_work_mem='1GB') as session:
        with job.step('{:,} partitions of {:,} rows'.format(parts, KEYS)):
            session.execute('CREATE UNLOGGED TABLE events AS ' + ROWS.format(KEYS, parts * KEYS))
            session.execute('CREATE INDEX events_part ON events USING brin (part) WITH (pages_per_range = 64)')
            session.execute('VACUUM ANALYZE events')
            session.execute('CREATE UNLOGGED TABLE filters (part int, keys bloom) WITH (parallel_workers = 1)')
        with job.step('a filter of each') as building:
            job.at_once([lambda which=which: build(job, which, parts) for which in range(2)])
        session.execute('VACUUM ANALYZE filters')
        with job.step('looking for each key in the filter of its partition'), job.session(**PARALLEL) as parallel:
            job.check(session.value('SELECT count(*) FROM filters') == parts, 'all filters are there')
            job.check(parallel.value(MISSED) == 0, 'no key is missed')
        with job.step('bytea values as large as the filters'):
            session.execute('''CREATE UNLOGGED TABLE images (part int, image bytea);
                ALTER TABLE images ALTER image SET STORAGE external;
                INSERT INTO images SELECT part, keys::bytea FROM filters''')
            session.execute('VACUUM ANALYZE images')
        lookups = Lookups(job, parts)
        lookups.compare(section, ways_without_index())
        # last: it would be used for the partitions, too
        with job.step('an index of all keys', session) as index:
            session.execute('CREATE INDEX events_key ON events (key)')
        lookups.compare(section, {'the index of all keys': (SCAN, {'enable_seqscan': 'off'}, True)})
        filters, table, btree = (session.value('SELECT ' + size) for size in (
            "pg_total_relation_size('filters')", "pg_relation_size('events')", "pg_relation_size('events_key')"))
        named = statistics.mean(lookups.named)
        job.check(named <= FPP * parts + 4 * (FPP * parts / (ROUNDS * LOOKUPS)) ** 0.5 + 0.1,
                  '%g partitions are named in vain' % named)

    section.text('''{:,} filters of {:,} keys, one for each partition, made by `bloom_agg(key, {:g})` in {} s by
        two sessions: {} with their table. The rows of all partitions, {:,} in number, are in one table of {} with a
        BRIN index on the partition; a btree on the key has {}, and took {} s. {} keys were looked up in each of {}
        rounds; the medians are those of one key, by one process unless said. A key is in one partition; {:.2f} others
        were named on average, {:g} expected. *Two slices*: what PostgreSQL takes to read 40 bytes at two places of
        values as large, without any filter. *From disk*: the first time, when the system had forgotten all files.
        '''.format(
            parts, KEYS, FPP, significant(building.wall), as_bytes(filters), parts * KEYS, as_bytes(table),
            as_bytes(btree), significant(index.wall), LOOKUPS, ROUNDS, named, FPP * parts))
    section.code('sql', '\n'.join('-- %s\n%s;' % item for item in {
        'the filters probed': CANDIDATES.format('$1'), 'two slices': SLICES,
        'the filters, then the partitions': FIND.format('$1'), 'the table, the index': SCAN.format('$1')}.items()))
    section.table(['', 'wall, ms', 'CPU, ms', 'µs of CPU a filter', 'blocks', 'from disk, ms'], lookups.rows)


def build(job, which, parts):
    with job.session() as session:
        session.execute(FILTERS.format(which, parts - 1))


def key(number, present):
    return 'hashint8extended(%d, %d)' % (number, 0 if present else 1)


def ways_without_index():
    """Each a query, settings, and whether it looks up keys that are there."""
    return {'the filters probed': (CANDIDATES, {}, True),
            'the same, with a parallel worker': (CANDIDATES, PARALLEL, True),
            'two slices of each': (SLICES, {}, True),
            'the filters, then the partitions: a key that is there': (FIND, {}, True),
            'the filters, then the partitions: one that is not': (FIND, {}, False),
            'a scan of all rows': (SCAN, {}, True),
            'a scan of all rows, with a parallel worker': (SCAN, PARALLEL, True)}


class Lookups:
    """Key after key, in one way after the other; rows of the table, and how many partitions were named in vain."""

    def __init__(self, job, parts):
        self.job, self.parts = job, parts
        self.rows, self.named = [], []

    def look_up(self, session, query, present, number):
        timing, found = self.job.timed(session, query.format(key(number, present)))
        part = (number - 1) // KEYS
        if query is CANDIDATES:
            self.job.check((part,) in found, 'partition %d is named' % part)
            self.named.append(len(found) - 1)
        elif query is not SLICES:
            self.job.check([row[0] for row in found] == ([part] if present else []), '%s: %s' % (query, found))
        return timing

    def compare(self, section, ways):
        cold, timings = {}, {way: [] for way in ways}
        with contextlib.ExitStack() as stack:
            sessions = {way: stack.enter_context(self.job.session(**settings))
                        for way, (_, settings, _) in ways.items()}
            with self.job.step('from disk: %s' % next(iter(ways)) + (', and other ways' if len(ways) > 1 else '')):
                for way, (query, _, present) in ways.items():
                    if not cold or self.job.factor >= 0.01:
                        self.job.forget_files()
                    cold[way] = self.look_up(sessions[way], query, present, 1)
            with self.job.step('the same in turns'):
                for number in range(ROUNDS):
                    for way, (query, _, present) in ways.items():
                        for i in range(LOOKUPS if 'scan' not in way else number < 3):
                            timings[way].append(self.look_up(sessions[way], query, present, 1 + (
                                number * LOOKUPS + i) * self.parts * KEYS // (ROUNDS * LOOKUPS)))
            for way, (query, _, present) in ways.items():
                query = query.format(key(1, present))
                plan = sessions[way].value('EXPLAIN (ANALYZE, BUFFERS, FORMAT json) ' + query)[0]['Plan']
                wall, cpu = (statistics.median(getattr(t, what) for t in timings[way]) for what in ('wall', 'cpu'))
                self.rows.append([
                    way, significant(wall * 1e3), significant(cpu * 1e3),
                    '' if query.startswith(SCAN[:20]) else significant(cpu / self.parts * 1e6),
                    '{:,}'.format(plan['Shared Hit Blocks'] + plan['Shared Read Blocks']),
                    significant(cold[way].wall * 1e3)])
                section.plan(way, sessions[way], query, ['Parallel' if 'parallel' in way else 'Scan'])
