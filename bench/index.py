"""Indexes of access method bloomfilter: size, building, inserting, WAL and lookups, beside other indexes and Redis."""
import contextlib
import glob
import os
import pwd
import re
import shutil
import statistics
import subprocess
import time

import lookups
from lib import Bench, Server, Timing, as_bytes, log, significant

TITLE = 'Indexes'
SECONDS = (1500, 60)

KINDS = {
    'btree': 'USING btree ({column})',
    'hash': 'USING hash ({column})',
    'BRIN bloom': 'USING brin ({column} {operators}_bloom_ops)',
    'contrib/bloom': 'USING bloom ({column})',
    'bloomfilter': 'USING bloomfilter ({column}) WITH (fpp = 0.001)',
}
INSERTED = {'no index': None, 'btree': KINDS['btree'], 'hash': KINDS['hash'],
            'bloomfilter': 'USING bloomfilter ({column}) WITH (fpp = 0.001, expected = {expected})'}


def run(bench, section):
    size_and_build(bench, section)
    cached_lookups(bench, section)
    with small_server(bench) as small:
        inserts(small, section)
        adds(small, section)
        cold_lookups(small, section)


# --- in the server of the other sections ---

def size_and_build(bench, section):
    """Of each kind of index, over text; and looking up absent keys in it, without sequential scans."""
    bench.fill('urls')
    sizes, lookup_times = {}, {}
    number = bench.scale(20, 5)

    def look_up(session, name):
        question = "bloom_index_contains('built', url)" if name == 'bloomfilter' else \
            'EXISTS (SELECT FROM urls u WHERE u.url = q.url)'
        session.execute('SELECT ' + question + " FROM (VALUES ('')) q (url)")       # reads what stays in memory
        began = time.perf_counter()
        session.execute("SELECT %s FROM (SELECT 'absent ' || i AS url FROM generate_series(1, %d) i OFFSET 0) q" %
                        (question, number))
        return (time.perf_counter() - began) / number

    def build(session, name):
        began = time.perf_counter()
        session.execute('CREATE INDEX built ON urls ' + KINDS[name].format(column='url', operators='text'))
        timing = Timing(time.perf_counter() - began, 0)
        sizes[name] = session.value("SELECT pg_relation_size('built')")
        lookup_times.setdefault(name, []).append(look_up(session, name))
        session.execute('DROP INDEX built')
        return timing

    with bench.session(statement_timeout=0, enable_seqscan='off') as session:
        session.execute('CREATE EXTENSION IF NOT EXISTS bloom')
        timings = bench.in_turns({name: lambda name=name: build(session, name) for name in KINDS})
    section.text('''Size and time to build, over {:,} URLs, with parallel workers as PostgreSQL chooses; and the time of one
        of {} lookups of absent URLs in a statement.'''.format(bench.rows, number))
    section.table(['', 'size', 'bytes a key', 'build, s', 'lookup, ms'], [
        [name, as_bytes(sizes[name]), significant(sizes[name] / bench.rows),
         significant(statistics.median(t.wall for t in series)),
         significant(statistics.median(lookup_times[name]) * 1e3)] for name, series in timings.items()])
    section.target('index size', [sizes['bloomfilter']], [sizes['btree']])
    section.target('index build', timings['bloomfilter'], timings['btree'], 'wall')


def cached_lookups(bench, section):
    """Of absent keys: a filter is probed in place of the btree for those."""
    with bench.session(statement_timeout=0) as session:
        session.execute('CREATE INDEX filter_of_ids ON urls USING bloomfilter (id) WITH (fpp = 0.001)')
    absent = '\\set i random(%d, %d)\n' % (bench.rows + 1, 3 * bench.rows)
    scripts = {
        'SELECT 1': absent + 'SELECT :i;',
        'btree': absent + 'SELECT EXISTS (SELECT FROM urls WHERE id = :i);',
        'bloomfilter': absent + "SELECT bloom_index_contains('filter_of_ids', :i::bigint);",
    }
    timings = lookups.measure(bench, scripts)
    section.text('Lookups of absent keys, all cached: pgbench, one client, prepared.')
    section.code('sql', lookups.text_of(scripts))
    section.timing_table('', timings, 1, 'btree', ['SELECT 1'], 'µs a key')
    section.target('index lookup', timings['bloomfilter'], timings['btree'])


# --- in a server with few shared buffers, and with WAL for replicas ---

@contextlib.contextmanager
def small_server(bench):
    """A Bench with the same programs and extension, on a server of its own."""
    directory = os.path.join(bench.work, 'small')
    shutil.rmtree(directory, ignore_errors=True)
    with bench.session() as session:
        paths = session.execute("SELECT name, setting FROM pg_settings WHERE name IN "
                                "('dynamic_library_path', 'extension_destdir', 'extension_control_path')")
    os.makedirs(directory, mode=0o700)
    user = os.stat('/proc/%d' % bench.server.postmaster).st_uid     # PostgreSQL does not run as root
    os.chown(directory, user, -1)

    def server_program(name, *arguments):
        def become_user():
            if os.geteuid() == 0:
                os.setgid(pwd.getpwuid(user).pw_gid)
                os.setuid(user)
        subprocess.run([os.path.join(bench.server.programs, name), '-D', directory, *arguments],
                       stdout=subprocess.DEVNULL, check=True, cwd='/', preexec_fn=become_user)

    server_program('initdb', '-U', 'postgres', '-A', 'trust', '--no-sync', '--locale=C')
    with open(os.path.join(directory, 'postgresql.conf'), 'a') as file:
        for name, value in paths:
            file.write("%s = '%s'\n" % (name, value))
        file.write("listen_addresses = ''\nunix_socket_directories = '%s'\nshared_buffers = %s\nautovacuum = off\n"
                   "jit = off\nmax_wal_size = 16GB\ncheckpoint_timeout = 1h\nmax_connections = 30\n" %
                   (directory, bench.scale('64MB', '2MB')))
    server_program('pg_ctl', '-w', '-l', directory + '/log', 'start')
    try:
        yield Bench(bench.quick, Server(bench.server.programs, directory, directory), bench.work, bench.sources)
    finally:
        server_program('pg_ctl', '-w', '-m', 'immediate', 'stop')
        shutil.rmtree(directory, ignore_errors=True)


def table_of(name):
    return 'keys_' + re.sub(r'\W', '_', name)


def inserts(bench, section):
    rows, batch = bench.scale(1_000_000, 20_000), bench.scale(10_000, 2000)
    key = '(random() * 1e18)::bigint'
    with bench.session(statement_timeout=0, synchronous_commit='off', maintenance_work_mem='512MB') as session:
        for name, index in INSERTED.items():
            log('    filling the table with ' + name)
            session.execute('CREATE TABLE %s AS SELECT %s AS k FROM generate_series(1, %d)' %
                            (table_of(name), key, bench.rows))
            if index:
                session.execute('CREATE INDEX %s_k ON %s %s' % (
                    table_of(name), table_of(name), index.format(column='k', expected=2 * bench.rows)))
        session.execute('CHECKPOINT')
        sizes = {name: session.value("SELECT pg_relation_size('%s_k')" % table_of(name))
                 for name, index in INSERTED.items() if index}
        wal = {name: [] for name in INSERTED}

        def insert(name):
            at = session.value('SELECT pg_current_wal_insert_lsn()')
            began = time.perf_counter()
            for _ in range(rows // batch):
                session.execute('INSERT INTO %s SELECT %s FROM generate_series(1, %d)' % (table_of(name), key, batch))
            timing = Timing(time.perf_counter() - began, 0)
            wal[name].append(session.value('SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), %s)', [at]))
            return timing

        timings = bench.in_turns({name: lambda name=name: insert(name) for name in INSERTED})
        buffers = session.value('SHOW shared_buffers')
    section.text('''INSERT of {:,} rows in batches of {:,}, each a statement and a transaction, into a table with {:,}
        rows; random keys of type bigint; shared_buffers {}. The first round follows a checkpoint.'''.format(
            rows, batch, bench.rows, buffers))
    section.table(['', 'index', 'µs a row', 'WAL, bytes a row', 'beyond the table'], [
        [name, as_bytes(sizes[name]) if name in sizes else '',
         significant(statistics.median(t.wall for t in series) / rows * 1e6),
         significant(statistics.median(float(w) for w in wal[name]) / rows),
         significant(statistics.median(float(w - v) for w, v in zip(wal[name], wal['no index'])) / rows)]
        for name, series in timings.items()])
    section.target('index insert', timings['bloomfilter'], timings['btree'], 'wall')
    section.target('index wal', *([float(w - v) for w, v in zip(wal[name], wal['no index'])]
                                  for name in ('bloomfilter', 'btree')))


def adds(bench, section):
    """Single keys, each a transaction: by one client, by 16, and into a filter in Redis."""
    seconds = bench.scale(10, 1)
    with bench.session(statement_timeout=0) as session:
        for name in INSERTED:
            session.execute('CREATE TABLE single_%s (k bigint)' % table_of(name))
            if INSERTED[name]:
                session.execute('CREATE INDEX ON single_%s %s' % (table_of(name), INSERTED[name].format(
                    column='k', expected=bench.scale(10_000_000, 200_000))))
    latencies = {}

    def add(name, clients):
        script = os.path.join(bench.work, 'add.sql')
        with open(script, 'w') as file:
            file.write('\\set k random(1, 1000000000000)\nINSERT INTO single_%s VALUES (:k);\n' % table_of(name))
        prefix = os.path.join(bench.work, 'latency')
        for old in glob.glob(prefix + '.*'):
            os.remove(old)
        with bench.server.until_ended():
            result = subprocess.run(
                [os.path.join(bench.server.programs, 'pgbench'), '-h', bench.server.socket_dir, '-U', 'postgres', '-n',
                 '-M', 'prepared', '-c', str(clients), '-j', '2', '-T', str(seconds), '-l', '--log-prefix=' + prefix,
                 '-f', script, bench.server.database], env={**os.environ, 'PGOPTIONS': '-c synchronous_commit=off'},
                stdout=subprocess.PIPE, universal_newlines=True, check=True)
        taken = sorted(int(line.split()[2]) for path in glob.glob(prefix + '.*') for line in open(path))
        latencies.setdefault((name, clients), []).append(taken[len(taken) * 99 // 100] / 1e3)
        return Timing(1 / float(re.search(r'tps = ([0-9.]+)', result.stdout).group(1)), 0)

    with lookups.redis_client(bench, bench.scale(1_000_000, 20_000)) as call:
        variants = {(name, clients): lambda name=name, clients=clients: add(name, clients)
                    for name in INSERTED for clients in (1, 16)}
        timings = bench.in_turns({**variants, 'Redis': lambda: call(1, 'add')})
    section.text('''Single adds, each an INSERT into a table of one column and a transaction: pgbench on a unix socket,
        prepared, synchronous_commit = off; Redis: the script of the section on lookups, over loopback. Time is that
        of all clients together for one key; the percentile is of the latency of a client.''')
    section.table(['', 'clients', 'wall, µs a key', '99th percentile, ms'], [
        [name if name == 'Redis' else name[0], '1' if name == 'Redis' else str(name[1]),
         significant(statistics.median(t.wall for t in series) * 1e6),
         '' if name == 'Redis' else significant(statistics.median(latencies[name]))]
        for name, series in timings.items()])
    section.target('index clients', timings['bloomfilter', 16], timings['bloomfilter', 1], 'wall')
    section.target('index waits', [w - v for w, v in zip(latencies['bloomfilter', 16], latencies['no index', 16])],
                   [1.0] * bench.rounds)
    section.target('index add', timings['bloomfilter', 1], timings['Redis'], 'wall')


def empty_caches(bench, session):
    """Of the server, by reading other tables, and of the kernel, of files of this server."""
    session.execute('CHECKPOINT')
    session.execute('DISCARD ALL')
    for other in ('no index', 'hash'):
        session.execute("SELECT pg_prewarm('%s', 'buffer')" % table_of(other))
    subprocess.run(['sync'], check=True)
    for path in glob.glob(session.value('SHOW data_directory') + '/base/*/*'):
        with open(path, 'rb') as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def cold_lookups(bench, section):
    """As if memory held a tenth of the btree: that much of each index is cached, nothing else."""
    number = bench.scale(2000, 200)
    with bench.session(statement_timeout=0) as session:
        session.execute('CREATE EXTENSION IF NOT EXISTS pg_prewarm')
        blocks = {name: session.value("SELECT pg_relation_size('%s_k') / 8192" % table_of(name))
                  for name in ('btree', 'bloomfilter')}
        question = {
            'btree': 'EXISTS (SELECT FROM %s WHERE k = key)' % table_of('btree'),
            'bloomfilter': "bloom_index_contains('%s_k', key)" % table_of('bloomfilter')}
        # Other keys, so that no block of the other table is read.
        key = '(random() * 1e18)::bigint'

        def look_up(name):
            empty_caches(bench, session)
            session.execute("SELECT pg_prewarm('%s_k', 'buffer', 'main', 0, %d)" % (
                table_of(name), min(blocks[name], blocks['btree'] // 10) - 1))
            began = time.perf_counter()
            session.execute('SELECT count(*) FROM (SELECT %s AS key FROM generate_series(1, %d) OFFSET 0) q WHERE %s' %
                            (key, number, question[name]))
            return Timing((time.perf_counter() - began) / number, 0)

        timings = bench.in_turns({name: lambda name=name: look_up(name) for name in question})
    section.text('''Lookups of {:,} absent keys from disk, as if memory held a tenth of the btree: the caches of the
        kernel and the server are emptied, then as many blocks of the index are read as a tenth of the btree has.'''
                 .format(number))
    section.table(['', 'size', 'wall, µs a key'], [
        [name, as_bytes(blocks[name] * 8192), significant(statistics.median(t.wall for t in series) * 1e6)]
        for name, series in timings.items()])
    section.target('index cold', timings['bloomfilter'], timings['btree'], 'wall')
