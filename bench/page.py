#!/usr/bin/python3
"""Puts the figures of a report into doc/BENCHMARKS.md and draws its pictures.

    bench/page.py [DIR]     DIR has results.json, as bench/run writes it; bench/out unless given

A row of a table of the page whose first two cells are a target's `what` and `against` (report.py) gets the ratio and
the range of the single rounds; the line that begins with "Measured" gets the date, the revision and the machine of a
report of all sections. What is not in the report stays. Everything else on the page is written by hand.
"""
import os
import shutil
import sys

import plots
import report
from report import TARGETS

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
    if not ratios.get(key):
        return line
    digits = '%.2f' if ratios[key][0] >= 0.1 else '%.3f'
    return '| %s |' % ' | '.join([*cells[:2], digits % ratios[key][0],
                                  ' to '.join(digits % ratio for ratio in ratios[key][1:])])


def measured(results):
    run, machine = results['run'], dict(results['run']['machine'])
    return 'Measured on %s with %s on %s; %s of memory, PostgreSQL %s.' % (
        run['date'], 'bloomfilter ' + machine['bloomfilter'], machine['processor'],
        machine['memory'].split(';')[0], machine['PostgreSQL'].split()[0])


def draw_bars(name, title, values):
    os.makedirs(IMAGES, exist_ok=True)
    plots.bars(os.path.join(IMAGES, name), title, values)


def draw_pictures(sections, directory, ratios):
    """Those of the parts that are in the report."""
    facts = sections.get('joins', {}).get('facts', {})
    if all(ratios.get(key) for key, _ in JOINS):
        draw_bars('joins.svg', 'time with join filters, without = 1',
                  [(label, ratios[key][0], True) for key, label in JOINS])
    if 'rows' in facts:
        draw_bars('removed.svg', 'million rows that come to the join',
                  [(label, facts['rows'][key] / 1e6, ours) for label, key, ours in (
                      ('without filter', 'read', False), ('with join filter', 'passed', True),
                      ('rows that match', 'joined', False))])
    if 'blocks' in facts:
        draw_bars('blocks.svg', 'thousand blocks that are read',
                  [(label, blocks / 1000, ours) for label, blocks, ours in facts['blocks']])
    for block in sections.get('index', {}).get('blocks', []):
        if block['kind'] == 'table':
            draw_bars('index.svg', 'bytes a key, 10 million URLs',
                      [(row[0], float(row[2]), row[0] == 'bloomfilter') for row in block['rows']])
            break
    for section, name in (('rates', 'rate'), ('keys', 'keys'), ('churn', 'churn-size')):
        if section in sections:
            shutil.copy(os.path.join(directory, name + '.svg'), IMAGES)


def main():
    directory = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, 'bench', 'out')
    results = report.read_json(directory, 'results')
    if results is None:
        sys.exit('bench/page.py: there is no results.json in %s; bench/run writes it' % directory)
    sections = {section['name']: section for section in results['sections']}
    ratios = {target['key']: target['ratios'] for section in results['sections'] for target in section['targets']}
    with open(PAGE, encoding='utf-8') as file:
        lines = file.read().split('\n')
    if sections.keys() >= {'index', 'joins', 'rates', 'scans'}:
        lines = [measured(results) if line.startswith('Measured') else line for line in lines]
    lines = [fill_in(line, ratios) for line in lines]
    with open(PAGE, 'w', encoding='utf-8') as file:
        file.write('\n'.join(lines))
    draw_pictures(sections, directory, ratios)


if __name__ == '__main__':
    main()
