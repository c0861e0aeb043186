"""Lookups of single keys, by pgbench: stored filters, a btree, and a filter in Redis."""
import os
import re
import secrets
import socket
import statistics
import subprocess
import time

import data
import plots
from lib import Timing, cpu_seconds, cpu_seconds_of_ended_children, log, median_ratio, significant

TITLE = 'Lookups of single keys'
SECONDS = (300, 35)
MANY = 1000     # keys in one statement


def run(bench, section):
    filters = ['1.2 MB', '12 MB', '120 MB'] + bench.scale(['500 MB'], [])
    bench.provide('urls', *('number filter ' + name for name in filters))
    one = scripts(bench, filters)
    many = scripts_of_many(bench)
    timings = measure(bench, {**one, **many})
    one_timings = {name: timings[name] for name in one}
    many_timings = {name: [Timing(t.wall / MANY, t.cpu / MANY) for t in timings[name]] for name in many}

    section.text('''pgbench, one client on a unix socket, prepared statements; half of the keys are there. CPU time is the
        backend's. The filters of {} hold {} million keys; the table of the btree has {:,} rows.'''.format(
            ', '.join(filters), ', '.join('%g' % (data.filter_keys(name, bench)[1] / 1e6) for name in filters),
            bench.rows))
    section.code('sql', '\n'.join('%s    -- %s' % (script.replace('\n', '  '), name) for name, script in one.items()))
    section.code('sh', 'pgbench -n -M prepared -c 1 -t TRANSACTIONS -f SCRIPT')
    section.timing_table('one key in a statement', one_timings, 1, 'btree', ('SELECT 1',), unit='lookup')
    section.text('**{:,} keys in one statement**, figures per key'.format(MANY))
    section.code('sql', '\n'.join('%s    -- %s' % (script.replace('\n', '  '), name) for name, script in many.items()))
    section.timing_table('{:,} keys in a statement'.format(MANY), many_timings, 1, 'btree', unit='key')
    section.target('lookup', one_timings['stored 120 MB'], one_timings['btree'])
    section.target('lookups', many_timings['stored 120 MB'], many_timings['btree'])
    with bench.session() as session:
        for name, script in many.items():
            sql = re.sub(':i', '42', script.split('\n')[1].rstrip(';'))
            section.plan('1,000 keys: %s' % name, session, sql, ['Index' if name == 'btree' else 'bloom_contains'])

    redis = measure_redis(bench, section, one_timings['stored 1.2 MB'], many_timings['stored 1.2 MB'])
    plots.bars(section.plot('lookups', 'Wall time of one lookup'), 'µs, logarithmic', [
        (name, statistics.median(t.wall for t in series) * 1e6, 'stored' in name)
        for name, series in (*(('%s' % n, s) for n, s in one_timings.items()),
                             *(('%s, 1,000 a statement' % n, s) for n, s in many_timings.items()),
                             *(('Redis, ' + n, s) for n, s in redis.items()))], log_x=True)


def scripts(bench, filters):
    result = {'SELECT 1': '\\set i random(1, 1000)\nSELECT :i;',
              'btree': '\\set i random(1, %d)\nSELECT EXISTS (SELECT FROM urls WHERE id = :i);' % (2 * bench.rows)}
    for name in filters:
        keys = data.filter_keys(name, bench)[1]
        result['stored ' + name] = '\\set i 5 * random(1, %d)\nSELECT bloom_contains(f, :i::bigint) FROM %s;' % (
            2 * keys, data.filter_table('number', name))
    return result


def scripts_of_many(bench):
    """Keys that differ from statement to statement, in no order, and half of them there."""
    keys = data.filter_keys('120 MB', bench)[1]
    series = '(SELECT (:i + n * 7919 * 104729) %% %d %s AS key FROM generate_series(1::bigint, %d) n OFFSET 0) k'
    return {
        'btree': '\\set i random(1, %d)\nSELECT count(*) FROM %s WHERE EXISTS (SELECT FROM urls WHERE id = key);' % (
            2 * bench.rows, series % (2 * bench.rows, '+ 1', MANY)),
        'stored 120 MB': '\\set i random(1, %d)\nSELECT count(*) FROM %s WHERE bloom_contains((SELECT f FROM %s), key);' % (
            2 * keys, series % (2 * keys, '* 5', MANY), data.filter_table('number', '120 MB')),
        'stored 1.2 MB': '\\set i random(1, %d)\nSELECT count(*) FROM %s WHERE bloom_contains((SELECT f FROM %s), key);' % (
            2 * keys, series % (2 * keys, '* 5', MANY), data.filter_table('number', '1.2 MB')),
    }


def measure(bench, scripts):
    """Each script by pgbench for about a second a round; a short run beforehand tells how often that is."""
    variants = {}
    for number, (name, script) in enumerate(scripts.items()):
        path = os.path.join(bench.work, 'script-%d.sql' % number)
        with open(path, 'w') as file:
            file.write(script + '\n')
        trial = pgbench(bench, path, 5)
        if trial.wall < 0.005:
            trial = pgbench(bench, path, 200)
        times = int(max(5, min(100_000, bench.scale(1.0, 0.4) / trial.wall)))
        variants[name] = lambda path=path, times=times: pgbench(bench, path, times)
    return bench.in_turns(variants)


def pgbench(bench, script, times):
    """What one transaction takes; the backend is a new one, and all of its CPU time counts."""
    before = cpu_seconds_of_ended_children(bench.server.postmaster)
    result = subprocess.run(
        [os.path.join(bench.server.programs, 'pgbench'), '-h', bench.server.socket_dir, '-U', 'postgres', '-n',
         '-M', 'prepared', '-c', '1', '-t', str(times), '-f', script, 'bench'],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    if result.returncode != 0:
        raise RuntimeError(result.stderr)
    time.sleep(0.05)    # for the backend to end
    wall = float(re.search(r'latency average = ([0-9.]+) ms', result.stdout).group(1)) / 1e3
    return Timing(wall, (cpu_seconds_of_ended_children(bench.server.postmaster) - before) / times)


def measure_redis(bench, section, lookup, lookups):
    program = bench.compile('redis', '-lhiredis')
    keys = bench.scale(1_000_000, 20_000)
    directory = os.path.join(bench.work, 'redis-data')
    os.makedirs(directory)
    unix_socket, port, password = os.path.join(bench.work, 'redis.sock'), free_port(), secrets.token_hex(16)
    # Debian's redis-tools has the server under the name of another program, and no service to be started.
    binary = next(path for name in ('redis-server', 'redis-check-rdb')
                  for path in [os.path.join(d, name) for d in os.environ['PATH'].split(':')] if os.path.exists(path))
    config = 'requirepass %s\nbind 127.0.0.1\nport %d\nunixsocket %s\nunixsocketperm 700\nsave ""\ndir %s\n' % (
        password, port, unix_socket, directory)
    server = subprocess.Popen(['redis-server', '-'], executable=binary, stdin=subprocess.PIPE,
                              stdout=subprocess.DEVNULL)
    client = None
    try:
        server.stdin.write(config.encode())
        server.stdin.close()
        while not os.path.exists(unix_socket):
            if server.poll() is not None:
                raise RuntimeError('redis-server ended at once')
            time.sleep(0.05)
        log('    filling the filter in Redis')
        client = subprocess.Popen([program, str(keys), unix_socket, str(port)], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, universal_newlines=True, bufsize=1,
                                  env={**os.environ, 'REDIS_PASSWORD': password})
        if client.stdout.readline() != 'ready\n':
            raise RuntimeError('the client of Redis failed')

        def operation(address, what, times):
            cpu = cpu_seconds(server.pid)
            client.stdin.write('%d %s %d\n' % (address, what, times))
            wall = float(client.stdout.readline()) / 1e9
            return Timing(wall, (cpu_seconds(server.pid) - cpu) / times)

        times = bench.scale(20_000, 2000)
        timings = bench.in_turns({
            'check, unix socket': lambda: operation(0, 'check', times),
            'check, TCP': lambda: operation(1, 'check', times),
            'add, TCP': lambda: operation(1, 'add', times),
            'check, TCP, pipelined by 1,000': lambda: operation(1, 'pipelined-check', times),
        })
    finally:
        for process in (client, server):
            if process is not None:
                process.terminate()
                process.wait()
    version = subprocess.run(['redis-server', '--version'], executable=binary, stdout=subprocess.PIPE,
                             universal_newlines=True).stdout
    section.text('''**Redis** {}, on loopback and without persistence: a filter of {:,} keys in a string, by a Lua script of
        SETBIT or GETBIT with k = 14 (bench/redis.c, hiredis). CPU time is that of redis-server. The ratio is to one
        lookup by pgbench in the stored 1.2 MB filter, for the pipelined to {:,} in one statement.'''.format(
            re.search(r'v=(\S+)', version).group(1), keys, MANY))
    rows = []
    for name, series in timings.items():
        peer = lookups if 'pipelined' in name else lookup
        rows.append([name, significant(statistics.median(t.cpu for t in series) * 1e6),
                     significant(statistics.median(t.wall for t in series) * 1e6),
                     '%.2f' % median_ratio([t.wall for t in series], [t.wall for t in peer])[0]])
    section.table(['Redis', 'CPU, µs a key', 'wall, µs a key', 'wall, × bloomfilter'], rows)
    return timings


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]
