"""What the parts of the section on joins share: variants are pairs of a setting and a query."""
import contextlib

import psycopg2

from lib import top_symbols
from targets import is_met

OFF = 'SET bloomfilter.join_filters = off'
ON = 'SET bloomfilter.join_filters = on; SET bloomfilter.join_planning = off'
PLANNED = 'SET bloomfilter.join_filters = on; SET bloomfilter.join_planning = on'


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


def hold(section, key, timings, to, session, variants, name, title=None):
    """Hold a target; if it is missed, keep what perf and EXPLAIN ANALYZE say. Variants are as of variants_of."""
    section.target(key, timings, to)
    if not is_met(key, section.targets[-1]['ratios']):
        keep_analysis(section, key, session, variants, name, title)


def keep_analysis(section, key, session, variants, name, title=None):
    """What perf says of the variant `name`, and what EXPLAIN ANALYZE says of each, unless it takes too long."""
    analyzed = {}
    for other in ('off', 'on', 'planned', 'by hand'):
        if other in variants:
            setting, sql = variants[other]
            session.execute(setting)
            with contextlib.suppress(psycopg2.errors.QueryCanceled):
                analyzed[other] = session.explain(sql, 'ANALYZE, COSTS OFF')
    setting, sql = variants[name]
    session.execute(setting)
    profile = {'key': key, 'symbols': top_symbols(session, sql), 'analyzed': analyzed}
    section.profiles.append({**profile, 'title': title} if title else profile)
