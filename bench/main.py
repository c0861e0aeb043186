"""Runs the sections and writes the report. bench/run calls this with a server that it has started."""
import argparse
import importlib
import os
import sys
import time
import traceback

import report
from lib import Bench, Section, Server, log

SECTIONS = ['core', 'rates', 'scans', 'aggregates', 'joins', 'lookups', 'index', 'churn', 'keys']

# exit status when a section did not reach its end, but there is a report
STOPPED = 3


def main():
    parser = argparse.ArgumentParser()
    for name in ('programs', 'socket-dir', 'data-dir', 'work', 'sources', 'output', 'pg-config', 'revision', 'command'):
        parser.add_argument('--' + name, required=True)
    parser.add_argument('--load', type=float, required=True)
    parser.add_argument('--quick', action='store_true')
    parser.add_argument('--parts', type=lambda names: names.split(','))
    parser.add_argument('--rounds', type=int)
    parser.add_argument('sections', nargs='+')
    arguments = parser.parse_args()

    bench = Bench(arguments.quick, Server(arguments.programs, arguments.socket_dir, arguments.data_dir),
                  arguments.work, arguments.sources)
    bench.parts, bench.forced_rounds = arguments.parts, arguments.rounds
    bench.plots = arguments.output
    os.makedirs(bench.plots, exist_ok=True)
    began = time.monotonic()
    modules = [importlib.import_module(name) for name in SECTIONS if name in arguments.sections]
    left = sum(module.SECONDS[bench.quick] for module in modules)
    failed = []
    results = {'run': report.about(bench, arguments), 'sections': []}
    for number, module in enumerate(modules):
        log('%d of %d, %s: about %s; %s to go in all' % (
            number + 1, len(modules), module.__name__, minutes(module.SECONDS[bench.quick]), minutes(left)))
        section_began, load = time.monotonic(), os.getloadavg()[0]
        section = Section(bench, module.__name__)
        try:
            module.run(bench, section)
        except Exception:       # what has been measured so far is not thrown away
            failed.append(module.__name__)
            log(traceback.format_exc())
            section.text('**This section stopped before its end.**')
        results['sections'].append({
            'name': module.__name__, 'title': module.TITLE, 'seconds': round(time.monotonic() - section_began),
            'load': [arguments.load, load, os.getloadavg()[0]],
            'blocks': section.blocks, 'facts': section.facts, 'targets': section.targets})
        left -= module.SECONDS[bench.quick]
    results['run']['seconds'] = round(time.monotonic() - began)
    for section in results['sections']:
        section['run'] = '`%s` on %s, %s' % (arguments.command, results['run']['date'], arguments.revision)
    results['sections'] = report.keep_others(results, arguments.output, SECTIONS)
    report.write(results, arguments.output)
    if failed:
        log('stopped before their end: ' + ', '.join(failed))
    return STOPPED if failed else 0


def minutes(seconds):
    return '%d s' % seconds if seconds < 90 else '%d min' % round(seconds / 60)


if __name__ == '__main__':
    sys.exit(main())
