"""The report: Markdown from what the sections have measured.

    python3 bench/report.py DIR      writes DIR/REPORT.md again from results.json and scenarios.json in DIR
"""
import datetime
import json
import os
import platform
import re
import shutil
import subprocess
import sys

from targets import TARGETS, is_met


def first_line(*command):
    """What a program says of its version; nothing if it is not there."""
    if shutil.which(command[0]) is None:
        return ''
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
    return result.stdout.strip().split('\n')[0]


def read(path):
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ''


def package_version(name):
    return first_line('dpkg-query', '-W', '-f', '${Version}', name) if shutil.which('dpkg-query') else ''


def about(bench, arguments):
    """The machine and the versions, as rows of two tables."""
    cpu = dict(re.findall(r'^(.+?):\s+(.+)$', first_lines('lscpu'), re.M))
    memory = int(re.search(r'MemTotal:\s+(\d+)', read('/proc/meminfo')).group(1)) / 2 ** 20
    pages = re.search(r'\[(\w+)\]', read('/sys/kernel/mm/transparent_hugepage/enabled'))
    distribution = re.search(r'PRETTY_NAME="(.*)"', read('/etc/os-release'))
    with bench.session() as session:
        version = session.value('SHOW server_version')
        extension = session.value("SELECT extversion FROM pg_extension WHERE extname = 'bloomfilter'")
        buffers = session.value('SHOW shared_buffers')
        hll = session.execute("SELECT default_version FROM pg_available_extensions WHERE name = 'hll'")
    return {
        'date': datetime.date.today().isoformat(),
        'command': arguments.command,
        'quick': bench.quick,
        'rows': bench.rows,
        'rounds': bench.rounds,
        'machine': [
            ['processor', '%s, %s cores%s' % (cpu.get('Model name', platform.machine()), os.cpu_count(),
                                              ', virtual' if 'Hypervisor vendor' in cpu else '')],
            ['caches', ', '.join('%s %s' % (level, cpu[level + ' cache']) for level in ('L1d', 'L2', 'L3')
                                 if level + ' cache' in cpu)],
            ['memory', '%.0f GB; transparent huge pages: %s' % (memory, pages.group(1) if pages else 'none')],
            ['system', '%s, Linux %s' % (distribution.group(1) if distribution else '', platform.release())],
            ['PostgreSQL', '%s; jit off, no parallel workers unless said, shared_buffers %s, locale C' % (
                version, buffers)],
            ['bloomfilter', '%s, %s' % (extension, arguments.revision)],
            ['built by', '%s, %s' % (first_line(os.environ.get('CC', 'gcc'), '--version'),
                                     first_line(arguments.pg_config, '--cflags').split(' -g')[-1].strip() or '')],
            ['peers', '; '.join(peer for peer in (
                'postgresql-hll ' + hll[0][0] if hll else '',
                'Guava ' + package_version('libguava-java') if package_version('libguava-java') else '',
                first_line('java', '--version')) if peer)],
        ],
    }


def first_lines(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, universal_newlines=True).stdout \
        if shutil.which(command[0]) else ''


def table(header, rows):
    def cells(row):
        return '| ' + ' | '.join(str(cell).replace('|', '\\|') for cell in row) + ' |'
    return [cells(header), '|' + '---|' * len(header), *map(cells, rows), '']


def targets_table(sections):
    held = {target['key']: target['ratios'] for section in sections for target in section['targets']}
    rows = []
    for key, target in TARGETS.items():
        if key not in held:
            continue
        ratios = held[key]
        outcome = 'met' if is_met(key, ratios) else '**missed**'
        rows.append([target.what, target.against, '%g' % target.at_most,
                     '%.2f' % ratios[0] if ratios else 'took too long',
                     '%.2f to %.2f' % tuple(ratios[1:]) if ratios else '', outcome])
    return table(['what', 'against', 'at most', 'measured', 'single rounds', ''], rows) if rows else []


def block(item):
    if item['kind'] == 'text':
        return [item['text'], '']
    if item['kind'] == 'table':
        return table(item['header'], item['rows'])
    if item['kind'] == 'code':
        return ['```' + item['language'], item['code'], '```', '']
    return ['![%s](%s.svg)' % (item['caption'], item['name']), '', '*%s*' % item['caption'], '']


def details(summary, *lines):
    return ['<details><summary>%s</summary>' % summary, '', *lines, '', '</details>', '']


def markdown(results, scenarios):
    if results is None:
        return '\n'.join(['# Benchmarks', '', *jobs(scenarios, [])]).rstrip('\n') + '\n'
    run, sections = results['run'], results['sections']
    lines = ['# Benchmarks', '']
    if run['quick']:
        lines += ['**A quick run, on %s rows: it shows that the benchmark works, its figures mean little.**' %
                  '{:,}'.format(run['rows']), '']
    runs = {section['run'] for section in sections}
    lines += ['Written by `%s` on %s; bench/README.md tells how.%s' % (run['command'], run['date'],
                           ' Sections are from different runs, which stand below their titles.' if len(runs) > 1
                           else ''),
              'CPU time is user and system time of the server processes that did the work. Variants ran in turns; a '
              'figure is the median of %d rounds, a ratio the median of the ratios of the rounds.' % run['rounds'], '']
    held = targets_table(sections)
    if held:
        lines += ['## Targets', '', *held]
    for section in sections:
        for profile in section['profiles']:
            lines += where_it_goes(profile)
    lines += ['## The machine', '', *table(['', ''], run['machine'])]
    for section in sections:
        lines += ['## ' + section['title'], '']
        lines += ['Measured by %s%s.' % (section['run'], load_average(section)), '']
        for item in section['blocks']:
            lines += block(item)
    lines += jobs(scenarios, run['machine'])
    all_plans = [plan for section in sections for plan in section['plans']]
    if all_plans:
        lines += ['## Plans', '', *plans(all_plans)]
    return '\n'.join(lines).rstrip('\n') + '\n'


def where_it_goes(profile):
    """Of a missed target: what perf says, and what EXPLAIN ANALYZE says of each variant that was looked at."""
    lines = table(['share', 'symbol', 'in'], profile['symbols']) if profile['symbols'] else \
        ['`perf` is not to be had here, or has no samples.', '']
    for name, plan in profile.get('analyzed', {}).items():
        lines += [name + ':', '', '```', shortened(plan), '```', '']
    what = TARGETS[profile['key']].what
    return details('Where it goes: ' + (what + ': ' + profile['title'] if 'title' in profile else what), *lines)


def plans(some):
    lines = []
    for plan in some:
        warning = ['**Not the plan that was meant**: no match for ' +
                   ', '.join('`%s`' % pattern for pattern in plan['missing']), ''] if plan['missing'] else []
        lines += details(plan['title'], *warning, '```', shortened(plan['plan']), '```')
    return lines


def jobs(scenarios, machine):
    """What scripts/scenario has measured; `machine` is what stands in the report already."""
    if not scenarios:
        return []
    lines = ['## Jobs at their real size', '',
             'The recipes of doc/COOKBOOK.md done by `scripts/scenario`, once each; a wrong result would have ended '
             'it. Memory is the most that the backend and its parallel workers had at one time, without '
             'shared_buffers: what each has for itself, and the segments that they share.', '']
    for scenario in scenarios:
        lines += ['### ' + scenario['title'], '',
                  '%sMeasured by `%s` on %s, %s, in %s, with %.1f GB of disk%s.' % (
                      '' if scenario['scale'] == 1 else
                      '**At %g of the real size: it shows that the job works, its figures mean little.** ' %
                      scenario['scale'],
                      scenario['command'], scenario['date'], scenario['revision'],
                      '%d s' % scenario['seconds'] if scenario['seconds'] < 90 else
                      '%d min' % round(scenario['seconds'] / 60), scenario['disk'] / 1e9, load_average(scenario)), '']
        others = [row for row in scenario['machine']
                  if row[0] in ('processor', 'memory', 'system', 'PostgreSQL') and row not in machine]
        if others:
            lines += [*('%s: %s  ' % tuple(row) for row in others), '']
        for item in scenario['blocks']:
            lines += block(item)
        lines += plans(scenario['plans'])
    return lines


def load_average(measured):
    return '; load average of the minute before the command %.2f, before this part %.2f, at its end %.2f' % tuple(
        measured['load'])


def shortened(plan):
    return '\n'.join(line if len(line) <= 200 else line[:200] + ' …' for line in plan.split('\n'))


def keep_others(results, directory, order):
    """The sections of this run, and of the last report in this place those that were not measured again."""
    sections = {section['name']: section for section in results['sections']}
    last = read_json(directory, 'results')
    if last is not None and last['run']['quick'] == results['run']['quick']:
        sections = {**{section['name']: section for section in last['sections']}, **sections}
    return [sections[name] for name in order if name in sections]


def add_scenario(directory, scenario):
    """Put what scripts/scenario has measured in the place of what is there of the same job, and keep the others."""
    os.makedirs(directory, exist_ok=True)
    scenarios = {other['name']: other for other in read_json(directory, 'scenarios') or []}
    scenarios[scenario['name']] = scenario
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'scenarios', 'index')) as file:
        order = [line.split('|')[0] for line in file if not line.startswith('#')]
    write_json([scenarios[name] for name in order if name in scenarios], directory, 'scenarios')
    render(directory)


def read_json(directory, name):
    path = os.path.join(directory, name + '.json')
    if not os.path.exists(path):
        return None
    with open(path, encoding='utf-8') as file:
        return json.load(file)


def write_json(what, directory, name):
    with open(os.path.join(directory, name + '.json'), 'w', encoding='utf-8') as file:
        json.dump(what, file, indent=1, ensure_ascii=False)
        file.write('\n')


def write(results, directory):
    write_json(results, directory, 'results')
    render(directory)


def render(directory):
    text = markdown(read_json(directory, 'results'), read_json(directory, 'scenarios'))
    with open(os.path.join(directory, 'REPORT.md'), 'w', encoding='utf-8') as file:
        file.write(text)


if __name__ == '__main__':
    render(sys.argv[1])
