#!/usr/bin/python3
"""Puts the figures of a report into doc/BENCHMARKS.md and draws its pictures.

    bench/page.py [DIR]     DIR has results.json, as bench/run writes it; bench/out unless given

A row of a table of the page whose first two cells are a target's `what` and `against` (targets.py) gets the ratio and
the range of the single rounds; the line that begins with "Measured" gets the date, the revision and the machine.
Everything else on the page is written by hand.
"""
import os
import shutil
import sys

import plots
import report
from targets import TARGETS

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir)
PAGE = os.path.join(ROOT, 'doc', 'BENCHMARKS.md')
IMAGES = os.path.join(ROOT, 'doc', 'images')
NAMES = {(target.what, target.against): key for key, target in TARGETS.items()}
JOINS = [('auto spilling', 'spills to disk'), ('auto memory', 'in memory'), ('auto parallel', 'parallel'),
         ('auto grouping', 'below GROUP BY'), ('auto partitions', '100 partitions'), ('auto star', 'star, 4 dimensions'),
         ('auto analytic', '20 analytic queries'), ('auto match', 'every row matches')]


def fill_in(line, ratios):
    cells = [cell.strip() for cell in line.strip('|').split('|')]
    key = NAMES.get(tuple(cells[:2])) if len(cells) == 4 else None
    if key is None:
        return line
    figures = ['%.2f' % ratios[key][0], '%.2f to %.2f' % tuple(ratios[key][1:])] if ratios.get(key) else ['', '']
    return '| %s |' % ' | '.join(cells[:2] + figures)


def measured(results):
    run, machine = results['run'], dict(results['run']['machine'])
    return 'Measured on %s with %s on %s; %s of memory, PostgreSQL %s.' % (
        run['date'], 'bloomfilter ' + machine['bloomfilter'], machine['processor'],
        machine['memory'].split(';')[0], machine['PostgreSQL'].split()[0])


def draw_pictures(results, directory, ratios):
    os.makedirs(IMAGES, exist_ok=True)
    plots.bars(os.path.join(IMAGES, 'joins.svg'), 'time with join filters, without = 1',
               [(label, ratios[key][0], True) for key, label in JOINS if ratios.get(key)], width=480)
    rows = next(block['rows'] for section in results['sections'] if section['name'] == 'index'
                for block in section['blocks'] if block['kind'] == 'table')
    plots.bars(os.path.join(IMAGES, 'index.svg'), 'bytes a key, 10 million URLs',
               [(row[0], float(row[2]), row[0] == 'bloomfilter') for row in rows], width=480)
    shutil.copy(os.path.join(directory, 'rate.svg'), IMAGES)
    rows = next(section['facts']['rows'] for section in results['sections'] if section['name'] == 'joins')
    plots.bars(os.path.join(IMAGES, 'removed.svg'), 'million rows that come to the join',
               [(label, rows[key] / 1e6, ours) for label, key, ours in (
                   ('without filter', 'read', False), ('with join filter', 'passed', True),
                   ('rows that match', 'joined', False))], width=480)


def main():
    directory = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, 'bench', 'out')
    results = report.read_json(directory, 'results')
    if results is None:
        sys.exit('bench/page.py: there is no results.json in %s; bench/run writes it' % directory)
    ratios = {target['key']: target['ratios'] for section in results['sections'] for target in section['targets']}
    with open(PAGE, encoding='utf-8') as file:
        lines = file.read().split('\n')
    lines = [measured(results) if line.startswith('Measured') else fill_in(line, ratios) for line in lines]
    with open(PAGE, 'w', encoding='utf-8') as file:
        file.write('\n'.join(lines))
    draw_pictures(results, directory, ratios)


if __name__ == '__main__':
    main()
