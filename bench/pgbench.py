"""pgbench for scenarios: many clients with prepared statements, what they wait for, and what blocks they touch."""
import collections
import os
import re
import subprocess
import threading

from lib import cpu_seconds_of_ended_children

# Of one run: transactions, their number a second, seconds of latency and of CPU for one, and the share of the time that
# clients were found waiting for a row that another has locked.
Result = collections.namedtuple('Result', 'transactions tps latency cpu row_waits')


def run(job, scripts, clients, seconds=None, transactions=None, define=(), weights=None):
    """Run scripts (a name: the text) at random by their weights, for so many seconds of a job at its real size or so
    many transactions a client, with variables ('name=value') to begin with. A statement that fails ends the job."""
    how_long = ['-t', str(transactions or 20)]
    if transactions is None and seconds * job.factor >= 1:
        how_long = ['-T', str(round(seconds * job.factor))]
    files = {}
    for number, (name, script) in enumerate(scripts.items()):
        files[name] = '%s/pgbench-%d.sql' % (job.work, number)
        with open(files[name], 'w') as file:
            file.write(script + '\n')
    with Waits(job) as waits:
        before = cpu_seconds_of_ended_children(job.server.postmaster)
        with job.server.until_ended():
            result = subprocess.run(
                [os.path.join(job.server.programs, 'pgbench'), '-h', job.server.socket_dir, '-U', 'postgres', '-n',
                 '-M', 'prepared', '-c', str(clients), '-j', '2', *how_long,
                 *('--define=' + variable for variable in define),
                 *('--file=%s@%d' % (file, (weights or {}).get(name, 1)) for name, file in files.items()),
                 job.server.database], stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
        cpu = cpu_seconds_of_ended_children(job.server.postmaster) - before
    if result.returncode != 0:
        raise RuntimeError(result.stderr)
    job.check(re.search(r'failed transactions: [^0]', result.stdout) is None, result.stdout)
    done = int(number_after('actually processed:', result.stdout))
    return Result(done, number_after('tps =', result.stdout),
                  number_after('latency average =', result.stdout) / 1e3, cpu / max(done, 1), waits.share())


def number_after(text, output):
    return float(re.search(re.escape(text) + r' ([0-9.]+)', output).group(1))


class Waits:
    """Looks again and again at what pgbench's sessions are doing."""

    def __init__(self, job):
        self.job, self.done = job, threading.Event()
        self.waiting = self.active = 0

    def __enter__(self):
        self.session = self.job.session()       # which goes on, so its CPU time is not counted with that of others
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def __exit__(self, *exception):
        self.done.set()
        self.thread.join()
        self.session.connection.close()

    def watch(self):
        while not self.done.wait(0.05):
            waiting, active = self.session.execute('''
                SELECT count(*) FILTER (WHERE wait_event IN ('transactionid', 'tuple')), count(*) FROM pg_stat_activity
                 WHERE application_name = 'pgbench' AND state = 'active' AND datname = current_database()''')[0]
            self.waiting, self.active = self.waiting + waiting, self.active + active

    def share(self):
        return self.waiting / max(self.active, 1)


def blocks(job, tables):
    """For each of these tables what has been found in the buffers and read so far, with indexes and TOAST tables."""
    with job.session() as session:
        return {name: (int(hit), int(read)) for name, hit, read in session.execute('''
            SELECT relname, coalesce(heap_blks_hit, 0) + coalesce(idx_blks_hit, 0) +
                            coalesce(toast_blks_hit, 0) + coalesce(tidx_blks_hit, 0),
                            coalesce(heap_blks_read, 0) + coalesce(idx_blks_read, 0) +
                            coalesce(toast_blks_read, 0) + coalesce(tidx_blks_read, 0)
              FROM pg_statio_user_tables WHERE relname = ANY (%s)''', [list(tables)])}
