"""Does one of the jobs in scenarios/ and adds it to the report. scripts/scenario calls this with a server that it has
started for it."""
import argparse
import contextlib
import datetime
import importlib
import os
import re
import sys
import threading
import time

import report
from lib import Bench, Section, Server, Session, anonymous_memory, as_bytes, log

# How often processes are looked at, and how often one is told that a step still runs, in seconds.
SAMPLING = 0.02
PROGRESS = 30


class WrongResult(Exception):
    pass


class Job(Bench):
    """One scenario at a scale: sizes, sessions, steps with progress, and checks of the result."""

    def __init__(self, arguments, server, steps):
        super().__init__(arguments.scale < 1, server, arguments.work, arguments.sources)
        self.factor, self.steps = arguments.scale, steps
        self.data_dir, self.plots = arguments.data_dir, arguments.output
        self.steps_done = self.disk_peak = 0

    def size(self, full, least=1):
        """What the scale makes of a number of the job at its real size."""
        return max(least, round(full * self.factor))

    def session(self, **settings):
        return Session(self.server, **settings)

    def check(self, holds, what):
        if not holds:
            raise WrongResult(what)

    @contextlib.contextmanager
    def step(self, text, session=None):
        """Announce a step, show that it runs, and give a Step; with a session, what its backend and its parallel
        workers take is in it as well."""
        self.steps_done += 1
        title = '  [%d/%d] %s … ' % (self.steps_done, self.steps, text)
        log(title, end='' if sys.stderr.isatty() else '\n')
        step = Step(self, session)
        watcher = threading.Thread(target=step.watch, args=(title,))
        watcher.start()
        try:
            yield step
        finally:
            step.end(watcher)
        log('%s%s' % ('\r\033[K' + title if sys.stderr.isatty() else '      ', step.summary()))

    def recipe(self, file, beginning, **variables):
        """The statement of demo/recipes/FILE that begins so, with psql's variables replaced: a job is done by the very
        statements that the cookbook has."""
        with open(os.path.join(self.sources, 'demo', 'recipes', file)) as script:
            found = re.search(r'^%s(\$\$.*?\$\$|[^$;])*;' % re.escape(beginning), script.read(),
                              re.DOTALL | re.MULTILINE)
        return re.sub(r'(?<!:):(\w+)', lambda name: str(variables[name.group(1)]) if name.group(1) in variables
                      else name.group(), found.group())

    def fill(self, tables):
        """Tables (a name with its columns: a query), each by a session of its own and all at once. The rows are frozen
        as they come, so that nothing is written by who reads them first."""
        psql = "%s/psql -X -q -h %s -U postgres -d %s -v ON_ERROR_STOP=1 -c" % (
            self.server.programs, self.server.socket_dir, self.server.database)
        self.at_once(lambda name=name, query=query: self.fill_one(name, query, psql)
                     for name, query in tables.items())

    def fill_one(self, name, query, psql):
        assert '"' not in query and '$' not in query and '`' not in query
        with self.session() as session:
            session.execute('BEGIN; CREATE UNLOGGED TABLE ' + name)
            session.execute('COPY %s FROM PROGRAM %%s WITH (FREEZE)' % name.split()[0],
                            ['%s "COPY (%s) TO STDOUT"' % (psql, query)])
            session.execute('COMMIT; ANALYZE ' + name.split()[0])

    @staticmethod
    def at_once(functions):
        """Run functions in threads; the first exception of one is raised when all have ended."""
        errors = []

        def call(function):
            try:
                function()
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=call, args=(function,)) for function in functions]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]

    def temporary_bytes(self):
        """What has been written to temporary files so far, by sessions that have ended."""
        with self.session() as session:
            return session.value("SELECT temp_bytes FROM pg_stat_database WHERE datname = current_database()")

    def forget_files(self):
        """See to it that the system's cache holds none of the server's files."""
        for directory, _, files in os.walk(os.path.join(self.data_dir, 'base')):
            for file in files:
                with contextlib.suppress(OSError):
                    descriptor = os.open(os.path.join(directory, file), os.O_RDONLY)
                    os.fsync(descriptor)        # what is not written yet would stay
                    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
                    os.close(descriptor)

    def disk(self):
        total = 0
        for directory, _, files in os.walk(self.data_dir):
            for file in files:
                with contextlib.suppress(OSError):
                    total += os.stat(os.path.join(directory, file)).st_blocks * 512
        self.disk_peak = max(self.disk_peak, total)
        return total

    def processes_of(self, session, known):
        """The backend and its parallel workers. `known` remembers of other processes that they are not."""
        pids = [session.pid]
        for pid in self.server.processes() - known:
            with contextlib.suppress(OSError):
                with open('/proc/%d/cmdline' % pid) as file:
                    title = file.read()
                if 'parallel worker for PID %d' % session.pid in title:
                    pids.append(pid)
                elif 'parallel worker' not in title and 'postmaster' not in title:
                    known.add(pid)
        return pids


class Step:
    """Wall time; with a session CPU time, and the most memory that its processes had at one time: their own
    (`anonymous`) and what they share apart from the buffers (`shared`: hash tables of parallel joins)."""

    def __init__(self, job, session):
        self.job, self.session = job, session
        self.anonymous = self.shared = self.memory = 0
        self.done = threading.Event()
        self.cpu = session.cpu() if session else None
        self.began = time.monotonic()
        self.wall = None

    def watch(self, title):
        told, known = 0, set()
        while not self.done.wait(SAMPLING if self.session else 0.2):
            if self.session:
                self.sample(known)
            seconds = int(time.monotonic() - self.began)
            if seconds >= told + (1 if sys.stderr.isatty() else PROGRESS):
                told = seconds
                progress = '%d s, %s on disk' % (seconds, as_bytes(self.job.disk()))
                log('\r\033[K' + title + progress if sys.stderr.isatty() else '      ' + progress,
                    end='' if sys.stderr.isatty() else '\n')

    def sample(self, known):
        anonymous, segments = 0, {}
        for pid in self.job.processes_of(self.session, known):
            with contextlib.suppress(OSError, AttributeError):      # a worker that has just ended
                anonymous += anonymous_memory(pid)
                with open('/proc/%d/maps' % pid) as file:
                    for line in file:
                        path = line.rstrip('\n').rpartition(' ')[2]
                        if path.startswith('/dev/shm/'):
                            segments[path] = os.stat(path).st_blocks * 512
        shared = sum(segments.values())
        self.anonymous, self.shared = max(self.anonymous, anonymous), max(self.shared, shared)
        self.memory = max(self.memory, anonymous + shared)

    def end(self, watcher):
        self.wall = time.monotonic() - self.began
        self.done.set()
        watcher.join()
        if self.session and not self.session.connection.closed:
            self.cpu = self.session.cpu() - self.cpu
        self.job.disk()

    def summary(self):
        text = '%.1f s' % self.wall
        if self.session:
            text += ', %.1f s of CPU, %s of memory' % (self.cpu, as_bytes(self.memory))
        return text


def main():
    parser = argparse.ArgumentParser()
    for name in ('programs', 'socket-dir', 'data-dir', 'work', 'sources', 'output', 'pg-config', 'revision', 'command'):
        parser.add_argument('--' + name, required=True)
    parser.add_argument('--load', type=float, required=True)
    parser.add_argument('--scale', type=float, default=1)
    parser.add_argument('name')
    arguments = parser.parse_args()

    module = importlib.import_module('scenarios.' + arguments.name.replace('-', '_'))
    server = Server(arguments.programs, arguments.socket_dir, arguments.data_dir,
                    'scenario_' + arguments.name.replace('-', '_'))
    job = Job(arguments, server, module.STEPS)
    section = Section(job, arguments.name)
    began, load = time.monotonic(), os.getloadavg()[0]
    try:
        module.run(job, section)
        job.check(job.steps_done == job.steps, '%d steps announced, %d done' % (job.steps, job.steps_done))
    except WrongResult as error:
        log('WRONG RESULT: %s' % error)
        return 1
    report.add_scenario(arguments.output, {
        'name': arguments.name, 'title': module.TITLE, 'scale': arguments.scale, 'command': arguments.command,
        'revision': arguments.revision, 'date': datetime.date.today().isoformat(),
        'seconds': round(time.monotonic() - began), 'disk': job.disk_peak,
        'load': [arguments.load, load, os.getloadavg()[0]],
        'machine': report.about(job, arguments)['machine'],
        'blocks': section.blocks})
    return 0


if __name__ == '__main__':
    sys.exit(main())
