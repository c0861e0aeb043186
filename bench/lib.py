"""What the sections of the benchmark share: sessions, CPU time, interleaved rounds, and the parts of the report.

A figure is worth little alone: machines differ, and one is not the same from minute to minute. So variants that are
to be compared run in turns, round after round, and a ratio is the median of the ratios of the single rounds.
"""
import collections
import contextlib
import os
import re
import statistics
import subprocess
import sys
import threading
import time

import psycopg2

import data

# Seconds. CPU is user and system time of the process that did the work and of those it made do it.
Timing = collections.namedtuple('Timing', 'wall cpu')


def log(text, end='\n'):
    print(text, end=end, file=sys.stderr, flush=True)


def cpu_seconds(pid):
    """CPU time of a process with one thread: to the nanosecond where the kernel counts so, else to 10 ms."""
    try:
        with open('/proc/%d/schedstat' % pid) as file:
            return int(file.read().split()[0]) / 1e9
    except OSError:
        return sum(process_ticks(pid)[:2])


def cpu_seconds_of_ended_children(pid):
    return sum(process_ticks(pid)[2:])


def process_ticks(pid):
    """utime, stime, cutime and cstime in seconds; see proc(5)"""
    with open('/proc/%d/stat' % pid) as file:
        fields = file.read().rpartition(')')[2].split()
    return [int(field) / os.sysconf('SC_CLK_TCK') for field in fields[11:15]]


def anonymous_memory(pid):
    """Bytes that a process has for itself, without the server's shared memory."""
    with open('/proc/%d/status' % pid) as file:
        return int(re.search(r'RssAnon:\s+(\d+) kB', file.read()).group(1)) * 1024


class Session:
    """A connection to the throwaway server. Settings are those of its postgresql.conf but for the ones given."""

    def __init__(self, server, **settings):
        self.server = server
        self.connection = psycopg2.connect(host=server.socket_dir, user='postgres', dbname=server.database)
        self.connection.autocommit = True
        self.pid = self.connection.get_backend_pid()
        for name, value in settings.items():
            self.execute('SET %s = %%s' % name, [str(value)])

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.connection.close()
        while self.pid in self.server.processes():      # see until_ended
            time.sleep(0.01)

    def execute(self, sql, parameters=None):
        with self.connection.cursor() as cursor:
            cursor.execute(sql, parameters)
            return cursor.fetchall() if cursor.description else []

    def value(self, sql, parameters=None):
        return self.execute(sql, parameters)[0][0]

    def explain(self, sql, options='VERBOSE, COSTS OFF'):
        return '\n'.join(row[0] for row in self.execute('EXPLAIN (%s) %s' % (options, sql)))

    def cpu(self, others=()):
        """Of the backend, of parallel workers (which have ended by the time a query has) and of other backends."""
        return (sum(cpu_seconds(pid) for pid in (self.pid, *others)) +
                cpu_seconds_of_ended_children(self.server.postmaster))

    def measure(self, sql, others=()):
        """The time that a query takes; None if it was stopped by statement_timeout. `result` has its rows."""
        self.result = None
        cpu, wall = self.cpu(others), time.perf_counter()
        try:
            self.result = self.execute(sql)
        except psycopg2.errors.QueryCanceled:
            return None
        return Timing(time.perf_counter() - wall, self.cpu(others) - cpu)

    def peak_memories(self, sql):
        """What the backend and each process that begins meanwhile take for themselves while the backend runs a query,
        above what they had before: {pid: bytes}; None if it was stopped."""
        before = {self.pid: anonymous_memory(self.pid)}
        peaks = {self.pid: 0}
        others = self.server.processes() - {self.pid}
        done = threading.Event()

        def watch():
            while not done.wait(0.002):
                for pid in self.server.processes() - others:
                    with contextlib.suppress(OSError, AttributeError):      # it has ended
                        now = anonymous_memory(pid)
                        peaks[pid] = max(peaks.get(pid, 0), now - before.setdefault(pid, now))

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            self.execute(sql)
        except psycopg2.errors.QueryCanceled:
            return None
        finally:
            done.set()
            watcher.join()
        return peaks


class Server:
    """The throwaway server."""

    def __init__(self, programs, socket_dir, data_dir, database='bench'):
        self.programs, self.socket_dir = programs, socket_dir
        self.database = 'postgres'
        with open(os.path.join(data_dir, 'postmaster.pid')) as file:
            self.postmaster = int(file.readline())
        with Session(self) as session:
            session.execute('CREATE DATABASE ' + database)
        self.database = database
        with Session(self) as session:
            session.execute('CREATE EXTENSION bloomfilter')

    def processes(self):
        with open('/proc/%d/task/%d/children' % (self.postmaster, self.postmaster)) as file:
            return set(map(int, file.read().split()))

    @contextlib.contextmanager
    def until_ended(self):
        """Wait in the end for backends that were started meanwhile: their CPU time then counts as that of children of
        the postmaster, all at once, and must not come in the middle of something else."""
        before = self.processes()
        yield
        while not self.processes() <= before:
            time.sleep(0.01)


class Bench:
    """One run: how large it is, the server, the directories, and tables that several sections need."""

    def __init__(self, quick, server, work, sources):
        self.quick, self.server, self.work, self.sources = quick, server, work, sources
        self.rounds = 5
        self.forced_rounds = None
        self.rows = self.scale(10_000_000, 200_000)
        self.timeout = self.scale(120, 4)
        self.tables = set()
        self.parts = None

    def wants(self, part):
        """Is this part of a section to be measured?"""
        return self.parts is None or part in self.parts

    def scale(self, full, quick):
        return quick if self.quick else full

    def session(self, **settings):
        settings.setdefault('statement_timeout', '%ds' % self.timeout)
        return Session(self.server, **settings)

    def fill(self, *names):
        """Fill tables of data.py that no section has used before."""
        for name in names:
            if name not in self.tables:
                self.tables.add(name)
                log('    filling %s' % name)
                with self.session(statement_timeout=0) as session:
                    for statement in data.statements(name, self):
                        session.execute(statement)

    def drop(self, *names):
        """Drop tables that no other section needs, for the sake of disk space."""
        with self.session() as session:
            for name in self.tables.intersection(names):
                session.execute('DROP TABLE ' + name)
        self.tables.difference_update(names)

    def compile(self, name, *options):
        """A program of this directory, linked with the very object files that are in the extension."""
        program = os.path.join(self.work, name)
        core = os.path.join(self.sources, 'src', 'core')
        objects = [os.path.join(core, file) for file in sorted(os.listdir(core)) if file.endswith('.o')]
        compiler = os.environ.get('CC', 'gcc')
        subprocess.run([compiler, '-std=gnu11', '-O2', '-I' + core, '-o', program,
                        os.path.join(self.sources, 'bench', name + '.c'), *objects, '-lm', *options], check=True)
        return program

    def in_turns(self, variants, rounds=None):
        """Run the functions of a dictionary in turns, and give the Timings of each; no more of one that gave up."""
        timings = {name: [] for name in variants}
        names = list(variants)
        rounds = self.forced_rounds or rounds or self.rounds
        for turn in range(rounds):
            log('    round %d of %d' % (turn + 1, rounds) if turn == 0 else ', %d' % (turn + 1), end='')
            for name in names[turn % len(names):] + names[:turn % len(names)]:
                if None not in timings[name]:
                    timings[name].append(variants[name]())
        log('')
        return timings


def median_ratio(values, to):
    """The median ratio of a round, the smallest and the largest."""
    ratios = [value / other for value, other in zip(values, to)]
    return statistics.median(ratios), min(ratios), max(ratios)


def significant(value, digits=3):
    """As many digits as mean something, with thousands separated."""
    if value == 0:
        return '0'
    if abs(value) >= 10 ** digits:
        return '{:,.0f}'.format(float('%.*g' % (digits, value)))
    text = '%#.*g' % (digits, value)
    return text.rstrip('.') if 'e' not in text else '%.*g' % (digits, value)


def as_bytes(size):
    for unit in ('B', 'kB', 'MB'):
        if size < 1000:
            return '%s %s' % (significant(size) if unit != 'B' else size, unit)
        size /= 1000
    return '%s GB' % significant(size)


class Section:
    """What one section has to say: blocks in the order of the report, targets, and facts, which are numbers for
    pictures."""

    def __init__(self, bench, name):
        self.bench, self.name = bench, name
        self.blocks, self.targets = [], []
        self.facts = {}

    def text(self, text):
        self.blocks.append({'kind': 'text', 'text': ' '.join(text.split())})

    def table(self, header, rows):
        self.blocks.append({'kind': 'table', 'header': header, 'rows': rows})

    def code(self, language, code):
        self.blocks.append({'kind': 'code', 'language': language, 'code': code.strip('\n')})

    def plot(self, name, caption):
        """A place for NAME.svg; returns where to write it."""
        self.blocks.append({'kind': 'plot', 'name': name, 'caption': caption})
        return os.path.join(self.bench.plots, name + '.svg')

    def timing_table(self, what, timings, per, floor, peers=(), unit='ns a row'):
        """A line for each variant: CPU and wall time for one of `per` rows, and its ratios to floor and peers."""
        factor = 1e9 if unit.startswith('ns') else 1e6
        references = (floor, *peers)
        rows = []
        for name, series in timings.items():
            row = [name]
            if None in series:
                row += ['> ' + significant(self.bench.timeout * factor / per), 'stopped'] + [''] * len(references)
            else:
                row += [significant(statistics.median(times) * factor / per)
                        for times in ([t.cpu for t in series], [t.wall for t in series])]
                row += ['' if None in timings[to] else
                        '%.2f' % median_ratio([t.cpu for t in series], [t.cpu for t in timings[to]])[0]
                        for to in references]
            rows.append(row)
        header = [what, 'CPU, ' + unit, 'wall, ' + unit, *('CPU, × ' + name for name in references)]
        self.table(header, rows)

    def target(self, key, series, to, measure='cpu'):
        """Hold a target of report.py against rounds: Timings, or plain numbers."""
        if None in series or None in to:
            ratios = None
        elif isinstance(series[0], Timing):
            ratios = median_ratio([getattr(t, measure) for t in series], [getattr(t, measure) for t in to])
        else:
            ratios = median_ratio(series, to)
        self.targets.append({'key': key, 'ratios': ratios})

    def plan(self, title, session, sql, expected):
        """A query's plan has to match each of some regular expressions to be the one meant."""
        plan = session.explain(sql)
        for pattern in expected:
            if not re.search(pattern, plan, re.DOTALL):
                log('    NOTE: the plan of "%s" has no match for %s' % (title, pattern))
                self.text('**Not the plan that was meant**: %s has no match for `%s`' % (title, pattern))


def settings_text(**settings):
    return '; '.join('SET %s = %s' % item for item in settings.items())


# Queries with and without join filters: variants are pairs of a setting and a query.
OFF = 'SET bloomfilter.join_filters = off'
ON = 'SET bloomfilter.join_filters = on; SET bloomfilter.join_planning = on'
UNPLANNED = 'SET bloomfilter.join_filters = on; SET bloomfilter.join_planning = off'


def filter_session(bench, settings):
    """A session with the library loaded, so that it knows the settings of join filters."""
    session = bench.session()
    session.execute("LOAD 'bloomfilter'")
    for name, value in settings.items():
        session.execute('SET %s = %s' % (name, value))
    return session


def measure_equal(bench, session, variants, rounds, others=()):
    """Timings of variants that have to return the same rows, in any order."""
    expected = None

    def measure(setting, sql):
        nonlocal expected
        session.execute(setting)
        timing = session.measure(sql, others)
        if timing is not None:
            rows = sorted(map(repr, session.result))
            if expected is None:
                expected = rows
            elif rows != expected:
                raise AssertionError('%s; %s: %d other rows' % (setting, sql, len(set(rows) ^ set(expected))))
        return timing

    return bench.in_turns({name: (lambda variant=variant: measure(*variant)) for name, variant in variants.items()},
                          rounds)
