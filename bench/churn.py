"""Indexes of access method bloomfilter while keys come and go: what a rebuild by VACUUM costs, and what it is for."""
import statistics
import threading
import time

import plots
from index import small_server
from lib import significant

TITLE = 'Indexes while keys come and go'
SECONDS = (500, 30)


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
    """One-row INSERTs, each a transaction, and lookups: in turns in an index for which VACUUM has begun a next set, and
    waits, and in an equal one that is not rebuilt; then without VACUUM."""
    rows, spans = bench.scale(500, 50), bench.scale(40, 4)
    last, turn = 0, 0
    with (bench.session(statement_timeout=0, synchronous_commit='off') as session,
          bench.session(statement_timeout=0) as vacuum, bench.session(statement_timeout=0) as holder):
        for table in ('meanwhile_0', 'meanwhile_1'):
            session.execute('CREATE TABLE %s (k text)' % table)
            session.execute('ALTER TABLE %s ALTER k SET STORAGE EXTERNAL' % table)
            session.execute('CREATE INDEX %s_k ON %s USING bloomfilter (k) '
                            'WITH (expected = %d, rebuild_scale_factor = 0)' % (table, table, 4000 * rows))
            session.execute("INSERT INTO %s SELECT CASE i WHEN 1 THEN repeat('x', 9000) ELSE 'old ' || i END "
                            'FROM generate_series(1, %d) i' % (table, 40 * rows))
            session.execute('PREPARE add_to_%s AS INSERT INTO %s VALUES ($1)' % (table, table))

        def measure(what, table):
            nonlocal last
            cpu = session.cpu()
            if what == 'lookup':
                session.execute("SELECT count(bloom_index_contains('%s_k', 'absent ' || k)) "
                                'FROM generate_series(1, %d) k' % (table, 20 * rows))
            else:
                for last in range(last + 1, last + rows + 1):
                    session.execute("EXECUTE add_to_%s('%d')" % (table, last))
            return session.cpu() - cpu

        def measure_round():
            nonlocal turn
            turn += 1
            tables = {'rebuilt': 'meanwhile_%d' % (turn % 2), 'another': 'meanwhile_%d' % (1 - turn % 2)}
            seconds = {(what, name): 0 for what in ('INSERT', 'lookup') for name in ('rebuilt', 'another', 'alone')}
            holder.execute('BEGIN')         # VACUUM waits for the key that is stored outside of its row
            holder.execute('REINDEX INDEX ' + session.value(
                'SELECT indexrelid::regclass::text FROM pg_index JOIN pg_class t ON reltoastrelid = indrelid '
                "WHERE t.relname = '%s'" % tables['rebuilt']))
            rebuild = threading.Thread(target=vacuum.execute,
                                       args=('VACUUM (PROCESS_TOAST off) ' + tables['rebuilt'],))
            rebuild.start()
            while not session.value('SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = %d' % vacuum.pid):
                time.sleep(0.01)
            for span in range(spans):
                for what, name in sorted(seconds, reverse=span % 2 == 1):
                    if name != 'alone':
                        seconds[what, name] += measure(what, tables[name])
            holder.execute('COMMIT')
            rebuild.join()
            for span in range(spans):
                for what in ('INSERT', 'lookup'):
                    seconds[what, 'alone'] += measure(what, tables['rebuilt'])
            return seconds

        seconds = bench.in_turns({'all': measure_round}, bench.scale(10, 2))['all']
    section.text('''INSERT of one row, each a transaction, and lookups, in an index while VACUUM rebuilds it, meanwhile in
        an equal one that is not rebuilt, and without VACUUM.''')
    section.table(['', 'µs in the rebuilt one', 'in the other', 'without VACUUM'], [
        [what, *(significant(statistics.median(one[what, name] for one in seconds) / (count * spans) * 1e6)
                 for name in ('rebuilt', 'another', 'alone'))]
        for what, count in (('INSERT', rows), ('lookup', 20 * rows))])
    for what in ('INSERT', 'lookup'):
        section.target('rebuild meanwhile ' + what,
                       *([one[what, name] for one in seconds] for name in ('rebuilt', 'another')))


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
