"""A Bloom filter in Redis, as applications build one without a module; a part of the section on lookups."""
import contextlib
import os
import re
import secrets
import shutil
import socket
import statistics
import subprocess
import time

from lib import Timing, cpu_seconds, log, median_ratio, significant


def run(bench, section, lookup, lookups):
    """Measure, and compare to Timings of one lookup by itself and of one among many in a statement."""
    keys = bench.scale(1_000_000, 20_000)
    with client_of(bench, keys) as call:
        timings = bench.in_turns({
            'Redis, check, unix socket': lambda: call(0, 'check'),
            'Redis, check, TCP': lambda: call(1, 'check'),
            'Redis, add, TCP': lambda: call(1, 'add'),
            'Redis, check, TCP, pipelined': lambda: call(1, 'pipelined-check'),
        })

    section.text('''**Redis** {} on loopback, without persistence: a filter of {:,} keys in a string, by a Lua script of
        SETBIT or GETBIT with k = 14 (bench/redis.c, with hiredis). CPU time is that of redis-server. The ratio is to
        one lookup by pgbench in the stored 1.2 MB filter; where 1,000 requests are sent ahead of the first answer, to
        one of 1,000 in a statement.'''.format(version(), keys))
    rows = []
    for name, series in timings.items():
        peer = lookups if 'pipelined' in name else lookup
        rows.append([name, significant(statistics.median(t.cpu for t in series) * 1e6),
                     significant(statistics.median(t.wall for t in series) * 1e6),
                     '' if None in peer else
                     '%.2f' % median_ratio([t.wall for t in series], [t.wall for t in peer])[0]])
    section.table(['', 'CPU, µs a key', 'wall, µs a key', 'wall, × bloomfilter'], rows)
    return timings


@contextlib.contextmanager
def client_of(bench, keys):
    """A function that times an operation on a filter of so many keys: over a unix socket (0) or TCP (1)."""
    program = bench.compile('redis', '-lhiredis')
    times = bench.scale(20_000, 2000)
    with server(bench) as (redis, addresses, password):
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


def binary():
    """Debian's redis-tools has the server under the name of another program, and no service to be started."""
    return shutil.which('redis-server') or shutil.which('redis-check-rdb')


def version():
    output = subprocess.run(['redis-server', '--version'], executable=binary(), stdout=subprocess.PIPE,
                            universal_newlines=True).stdout
    return re.search(r'v=(\S+)', output).group(1)


@contextlib.contextmanager
def server(bench):
    """A Redis of our own: the process, its unix socket and its port on loopback, and its password."""
    directory = os.path.join(bench.work, 'redis-data')
    os.makedirs(directory, exist_ok=True)
    unix_socket, port, password = os.path.join(directory, 'socket'), free_port(), secrets.token_hex(16)
    process = subprocess.Popen(['redis-server', '-'], executable=binary(), stdin=subprocess.PIPE,
                               stdout=subprocess.DEVNULL)
    try:
        process.stdin.write(('requirepass %s\nbind 127.0.0.1\nport %d\nunixsocket %s\nunixsocketperm 700\nsave ""\n'
                             'dir %s\n' % (password, port, unix_socket, directory)).encode())
        process.stdin.close()
        while not os.path.exists(unix_socket):
            if process.poll() is not None:
                raise RuntimeError('redis-server ended at once')
            time.sleep(0.05)
        yield process, (unix_socket, str(port)), password
    finally:
        process.terminate()
        process.wait()


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]
