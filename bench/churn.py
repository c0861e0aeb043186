"""Indexes of access method bloomfilter while keys come and go: what a rebuild by VACUUM costs, and what it is for."""
import statistics
import threading
import time

import plots
from index import small_server
from lib import Timing, significant

TITLE = 'Indexes while keys come and go'
SECONDS = (400, 30)

WAITING = '''CREATE FUNCTION may_wait(k bigint) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS
    $$ BEGIN IF current_setting('test.wait', true) = 'on' THEN PERFORM pg_advisory_xact_lock_shared(1); END IF; RETURN k; END $$'''


def run(bench, section):
    with small_server(bench) as small:     # which logs what REINDEX writes
        rebuild(small, section)
        meanwhile(small, section)
        over_time(small, section)


def rebuild(bench, section):
    """VACUUM that has nothing else to do, and REINDEX."""
    rows = bench.scale(5_000_000, 50_000)
    wal = {}
    with bench.session(statement_timeout=0, maintenance_work_mem='256MB', synchronous_commit='off') as session:
        session.execute('CREATE TABLE rebuilt AS SELECT (random() * 1e18)::bigint AS k FROM generate_series(1, %d)' % rows)
        session.execute('CREATE INDEX rebuilt_k ON rebuilt USING bloomfilter (k) WITH (fpp = 0.001)')

        def measure(name, statement):
            session.execute('ALTER INDEX rebuilt_k SET (rebuild_scale_factor = %d)' % (0 if name == 'rebuild' else -1))
            at = session.value('SELECT pg_current_wal_insert_lsn()')
            timing = session.measure(statement)
            wal.setdefault(name, []).append(
                float(session.value('SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), %s)', [at])))
            return timing

        measure('rebuild', 'VACUUM rebuilt')
        wal.clear()
        timings = bench.in_turns({name: lambda name=name, sql=sql: measure(name, sql) for name, sql in (
            ('rebuild', 'VACUUM rebuilt'), ('VACUUM alone', 'VACUUM rebuilt'), ('REINDEX', 'REINDEX INDEX rebuilt_k'))})
    section.text('A rebuild by VACUUM, which does nothing else, of an index over {:,} keys.'.format(rows))
    section.table(['', 'CPU, s', 'WAL, bytes a key'], [
        [name, significant(statistics.median(t.cpu for t in series)), significant(statistics.median(wal[name]) / rows)]
        for name, series in timings.items()])
    section.target('rebuild', timings['rebuild'], timings['REINDEX'])
    section.target('rebuild wal', wal['rebuild'], wal['REINDEX'])


def meanwhile(bench, section):
    """One-row INSERTs, each a transaction, and lookups, with and without a VACUUM that has begun a next set, and waits."""
    rows = bench.scale(20_000, 1000)
    last = 0
    with (bench.session(statement_timeout=0, synchronous_commit='off') as session,
          bench.session(statement_timeout=0) as vacuum):
        session.execute(WAITING)
        vacuum.execute("SET test.wait = 'on'")
        session.execute('CREATE TABLE meanwhile (k bigint)')
        session.execute('CREATE INDEX meanwhile_k ON meanwhile USING bloomfilter (may_wait(k)) '
                        'WITH (expected = %d, rebuild_scale_factor = 0)' % (100 * rows))
        session.execute('INSERT INTO meanwhile SELECT -i FROM generate_series(1, %d) i' % rows)
        session.execute('PREPARE add AS INSERT INTO meanwhile VALUES ($1)')

        def measure(what, is_rebuilt):
            if not is_rebuilt:
                return measure_alone(what)
            session.execute('SELECT pg_advisory_lock(1)')
            rebuild = threading.Thread(target=vacuum.execute, args=('VACUUM meanwhile',))
            rebuild.start()
            while not session.value("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"):
                time.sleep(0.01)
            timing = measure_alone(what)
            session.execute('SELECT pg_advisory_unlock(1)')
            rebuild.join()
            return timing

        def measure_alone(what):
            nonlocal last
            if what == 'lookup':
                return session.measure("SELECT count(bloom_index_contains('meanwhile_k', k)) FROM generate_series(1, %d) k" %
                                       (10 * rows))
            cpu = session.cpu()
            for last in range(last + 1, last + rows + 1):
                session.execute('EXECUTE add(%d)' % last)
            return Timing(0, session.cpu() - cpu)

        timings = bench.in_turns({(what, is_rebuilt): lambda what=what, is_rebuilt=is_rebuilt: measure(what, is_rebuilt)
                                  for what in ('INSERT', 'lookup') for is_rebuilt in (False, True)})
    section.text('INSERT of one row, each a transaction, and lookups, while VACUUM rebuilds the index and before.')
    section.table(['', 'µs before', 'meanwhile'], [
        [what, *(significant(statistics.median(t.cpu for t in timings[what, is_rebuilt]) / count * 1e6)
                 for is_rebuilt in (False, True))] for what, count in (('INSERT', rows), ('lookup', 10 * rows))])
    for what in ('INSERT', 'lookup'):
        section.target('rebuild meanwhile ' + what, timings[what, True], timings[what, False])


def over_time(bench, section):
    """The oldest tenth of 90 % of the keys is replaced ten times an hour."""
    rows, probes, hours = bench.scale(1_000_000, 20_000), bench.scale(100_000, 5000), bench.scale(8, 2)
    tables = {'rebuilt by VACUUM': 0.5, 'never rebuilt': -1}
    seen = {(name, what): [] for name in tables for what in ('size', 'rate', 'lookup')}
    with bench.session(statement_timeout=0, synchronous_commit='off') as session:
        for name, factor in tables.items():
            table = 'churn_%d' % (factor > 0)
            session.execute('CREATE TABLE %s (k bigint)' % table)
            session.execute('CREATE INDEX %s_k ON %s USING bloomfilter (k) WITH (rebuild_scale_factor = %s)' %
                            (table, table, factor))
            step = rows * 9 // 100
            for turn in range(10 * hours + 1):
                begin, end = (1, rows) if turn == 0 else (rows + (turn - 1) * step + 1, rows + turn * step)
                session.execute('INSERT INTO %s SELECT generate_series(%d, %d)' % (table, begin, end))
                session.execute('DELETE FROM %s WHERE k <= %d' % (table, end - rows))
                session.execute('VACUUM ' + table)
                timing = session.measure("SELECT avg(bloom_index_contains('%s_k', -k)::int) FROM generate_series(1, %d) k" %
                                         (table, probes))
                values = (session.value("SELECT pg_relation_size('%s_k')" % table) / 2**20, float(session.result[0][0]),
                          timing.cpu / probes * 1e6)
                for what, value in zip(('size', 'rate', 'lookup'), values):
                    seen[name, what].append((turn / 10, value))
    section.text('''An index at the default rate over the latest {:,} keys: nine tenths of them are replaced an hour, ten times
        an hour a part of them, with a VACUUM each time.'''.format(rows))
    section.table(['after {} hours'.format(hours), 'size, MB', 'rate', 'lookup, µs'], [
        [name, *(significant(seen[name, what][-1][1]) for what in ('size', 'rate', 'lookup'))] for name in tables])
    for what, title, label in (('size', 'Size of an index while keys come and go', 'MB'),
                               ('rate', 'Its measured rate', 'rate of absent keys that are found'),
                               ('lookup', 'CPU time of a lookup in it', 'µs')):
        plots.lines(section.plot('churn-' + what, title), x='hours', y=label,
                    series=[(name, seen[name, what]) for name in tables])
