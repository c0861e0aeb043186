"""Lookups of single keys, by pgbench: stored filters and a btree; and a filter in Redis, as applications build one
without a module."""
import contextlib
import os
import re
import secrets
import shutil
import socket
import statistics
import subprocess
import time

import data
from lib import Timing, cpu_seconds, cpu_seconds_of_ended_children, log, median_ratio, significant

TITLE = 'Lookups of single keys'
SECONDS = (300, 50)
MANY = 1000     # keys in one statement


def run(bench, section):
    filters = ['1.2 MB', '12 MB', '120 MB'] + bench.scale(['500 MB'], [])
    bench.fill('urls', *('number filter ' + name for name in filters))
    one = scripts_of_one(bench, filters)
    many = scripts_of_many(bench, ['1.2 MB', '120 MB'])
    timings = measure(bench, {**one, **many})
    of_one = {name: timings[name] for name in one}
    of_many = {name: timings[name] for name in many}
    per_key = {name: [t and Timing(t.wall / MANY, t.cpu / MANY) for t in series] for name, series in of_many.items()}

    section.text('''pgbench, one client on a unix socket, prepared statements; half of the keys are there. CPU time is
        the backend's. The filters hold {} million keys; the table of the btree has {:,} rows.'''.format(
            ', '.join('%g' % (data.filter_keys(name, bench)[1] / 1e6) for name in filters), bench.rows))
    section.code('sql', text_of(one))
    section.code('sh', 'pgbench -n -M prepared -c 1 -t TRANSACTIONS -f SCRIPT')
    section.timing_table('one key in a statement', of_one, 1, 'btree', ['SELECT 1'], 'µs a key')
    section.text('**{:,} keys in one statement**'.format(MANY))
    section.code('sql', text_of(many))
    section.timing_table('{:,} keys in one statement'.format(MANY), of_many, MANY, 'btree, many',
                         unit='µs a key')
    section.target('lookup', of_one['stored 120 MB'], of_one['btree'])
    with bench.session() as session:
        section.target('lookups', of_many['stored 120 MB, many'], of_many['btree, many'])
        for name, script in many.items():
            section.plan('{:,} keys in one statement: {}'.format(MANY, name), session, statement_of(script),
                         ['Index' if 'btree' in name else 'bloom_contains'])

    compare_redis(bench, section, of_one['stored 1.2 MB'], per_key['stored 1.2 MB, many'])


def scripts_of_one(bench, filters):
    """For pgbench, by name. Filters hold multiples of ten."""
    scripts = {'SELECT 1': '\\set i random(1, 1000)\nSELECT :i;',
               'btree': '\\set i random(1, %d)\nSELECT EXISTS (SELECT FROM urls WHERE id = :i);' % (2 * bench.rows)}
    for name in filters:
        scripts['stored ' + name] = '\\set i 5 * random(1, %d)\nSELECT bloom_contains(f, :i::bigint) FROM %s;' % (
            2 * data.filter_keys(name, bench)[1], data.filter_table('number', name))
    return scripts


def scripts_of_many(bench, filters):
    """Keys that differ from statement to statement, in no order, and half of them there."""
    def script(most, step, condition):
        return ('\\set i random(1, %d)\nSELECT count(*) FROM (SELECT (:i + n * 7919 * 104729) %% %d * %d AS key '
                'FROM generate_series(1::bigint, %d) n OFFSET 0) k WHERE %s;' % (most, most, step, MANY, condition))

    scripts = {'btree, many': script(2 * bench.rows, 1, 'EXISTS (SELECT FROM urls WHERE id = key)')}
    for name in filters:
        scripts['stored %s, many' % name] = script(
            2 * data.filter_keys(name, bench)[1], 5,
            'bloom_contains((SELECT f FROM %s), key)' % data.filter_table('number', name))
    return scripts


def statement_of(script):
    """What a script for pgbench executes, once."""
    return re.sub(':i ', '42 ', script.split('\n')[1].rstrip(';'))


def text_of(scripts):
    return '\n'.join('-- %s\n%s' % item for item in scripts.items())


def measure(bench, scripts):
    """Each script by pgbench for about a second a round; a short run beforehand tells how often that is."""
    variants = {}
    for number, (name, script) in enumerate(scripts.items()):
        path = os.path.join(bench.work, 'script-%d.sql' % number)
        with open(path, 'w') as file:
            file.write(script + '\n')
        times = 1
        trial = pgbench(bench, path, times)
        while trial is not None and trial.wall * times < 0.1:
            times *= 10
            trial = pgbench(bench, path, times)
        if trial is not None:
            times = int(max(1, bench.scale(1.0, 0.4) / trial.wall))
        variants[name] = lambda path=path, times=times: pgbench(bench, path, times)
    return bench.in_turns(variants)


def pgbench(bench, script, times):
    """What one transaction takes; None if one was stopped by statement_timeout. The backend is a new one, and all of
    its CPU time counts."""
    before = cpu_seconds_of_ended_children(bench.server.postmaster)
    with bench.server.until_ended():
        result = subprocess.run(
            [os.path.join(bench.server.programs, 'pgbench'), '-h', bench.server.socket_dir, '-U', 'postgres', '-n',
             '-M', 'prepared', '-c', '1', '-t', str(times), '-f', script, 'bench'],
            env={**os.environ, 'PGOPTIONS': '-c statement_timeout=%ds' % bench.timeout},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    if 'statement timeout' in result.stderr:
        return None
    if result.returncode != 0:
        raise RuntimeError(result.stderr)
    wall = float(re.search(r'latency average = ([0-9.]+) ms', result.stdout).group(1)) / 1e3
    return Timing(wall, (cpu_seconds_of_ended_children(bench.server.postmaster) - before) / times)


def compare_redis(bench, section, lookup, lookups):
    """Measure, and compare to Timings of one lookup by itself and of one among many in a statement."""
    keys = bench.scale(1_000_000, 20_000)
    with redis_client(bench, keys) as call:
        timings = bench.in_turns({
            'Redis, check, unix socket': lambda: call(0, 'check'),
            'Redis, check, TCP, pipelined': lambda: call(1, 'pipelined-check'),
        })

    section.text('''**Redis** {} on loopback, without persistence: a filter of {:,} keys in a string, by a Lua script of
        SETBIT or GETBIT with k = 14 (bench/redis.c, with hiredis). CPU time is that of redis-server. The ratio is to
        one lookup by pgbench in the stored 1.2 MB filter; where 1,000 requests are sent ahead of the first answer, to
        one of 1,000 in a statement.'''.format(redis_version(), keys))
    rows = []
    for name, series in timings.items():
        peer = lookups if 'pipelined' in name else lookup
        rows.append([name, significant(statistics.median(t.cpu for t in series) * 1e6),
                     significant(statistics.median(t.wall for t in series) * 1e6),
                     '' if None in peer else
                     '%.2f' % median_ratio([t.wall for t in series], [t.wall for t in peer])[0]])
    section.table(['', 'CPU, µs a key', 'wall, µs a key', 'wall, × bloomfilter'], rows)


@contextlib.contextmanager
def redis_client(bench, keys):
    """A function that times an operation on a filter of so many keys: over a unix socket (0) or TCP (1)."""
    program = bench.compile('redis', '-lhiredis')
    times = bench.scale(20_000, 2000)
    with redis_server(bench) as (redis, addresses, password):
        log('    filling the filter in Redis')
        with subprocess.Popen([program, str(keys), *addresses], env={**os.environ, 'REDIS_PASSWORD': password},
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=1,
                              universal_newlines=True) as client:
            def call(address, operation):
                cpu = cpu_seconds(redis.pid)
                client.stdin.write('%d %s %d\n' % (address, operation, times))
                wall = float(client.stdout.readline()) / 1e9
                return Timing(wall, (cpu_seconds(redis.pid) - cpu) / times)

            if client.stdout.readline() != 'ready\n':
                raise RuntimeError('the client of Redis failed')
            yield call
            client.stdin.close()


def redis_binary():
    """Debian's redis-tools has the server under the name of another program, and no service to be started."""
    return shutil.which('redis-server') or shutil.which('redis-check-rdb')


def redis_version():
    output = subprocess.run(['redis-server', '--version'], executable=redis_binary(), stdout=subprocess.PIPE,
                            universal_newlines=True).stdout
    return re.search(r'v=(\S+)', output).group(1)


@contextlib.contextmanager
def redis_server(bench):
    """A Redis of our own: the process, its unix socket and its port on loopback, and its password."""
    directory = os.path.join(bench.work, 'redis-data')
    os.makedirs(directory, exist_ok=True)
    unix_socket, port, password = os.path.join(directory, 'socket'), free_port(), secrets.token_hex(16)
    process = subprocess.Popen(['redis-server', '-'], executable=redis_binary(), stdin=subprocess.PIPE,
                               stdout=subprocess.DEVNULL)
    try:
        process.stdin.write(('requirepass %s\nbind 127.0.0.1\nport %d\nunixsocket %s\nunixsocketperm 700\nsave ""\n'
                             'dir %s\n' % (password, port, unix_socket, directory)).encode())
        process.stdin.close()
        while not is_listening(unix_socket):
            if process.poll() is not None:
                raise RuntimeError('redis-server ended at once')
            time.sleep(0.05)
        yield process, (unix_socket, str(port)), password
    finally:
        process.terminate()
        process.wait()


def is_listening(path):
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(path) == 0


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]
