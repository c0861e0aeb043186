"""Lookups of single keys, by pgbench: stored filters and a btree."""
import os
import re
import statistics
import subprocess

import data
import plots
import redis
from lib import Timing, cpu_seconds_of_ended_children

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
        section.target('lookups', of_many['stored 120 MB, many'], of_many['btree, many'],
                       profile=(session, repeatedly(statement_of(many['stored 120 MB, many']))))
        for name, script in many.items():
            section.plan('{:,} keys in one statement: {}'.format(MANY, name), session, statement_of(script),
                         ['Index' if 'btree' in name else 'bloom_contains'])

    in_redis = redis.run(bench, section, of_one['stored 1.2 MB'], per_key['stored 1.2 MB, many'])
    plots.bars(section.plot('lookups', 'Wall time of one lookup; "many": one of 1,000 in a statement'),
               'µs, logarithmic', [(name, statistics.median(t.wall for t in series) * 1e6, 'stored' in name)
                                   for name, series in {**of_one, **per_key, **in_redis}.items()
                                   if None not in series], log_x=True)


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


def repeatedly(statement):
    """Long enough for a profile."""
    return 'DO $$ BEGIN FOR i IN 1..1000 LOOP EXECUTE $sql$%s$sql$; END LOOP; END $$' % statement


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
