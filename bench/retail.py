"""A part of the section on joins: 40 decision-support queries of retail.sql, with filters off and on.

Facts of five years are joined with a calendar of 200. They are in no order, in monthly partitions, or in the order of
days with BRIN indexes. random_page_cost is PostgreSQL's 4, or 1.1, since with right estimates the planner may choose
index lookups, which cost less than 4 where the tables are in memory.
"""
import joins_queries
from lib import ON, filter_session, log, measure_equal, settings_text

ROUNDS = (3, 1)
SCALE = ('1', '0.03')
SETTINGS = {'search_path': 'retail', 'work_mem': "'64MB'"}

# Part: in which order the facts are, random_page_cost, and the targets of the sum and of the worst query.
PARTS = {
    'retail': ('in no order', 4, ('retail', 'retail worst')),
    'retail-memory': ('in no order', 1.1, ('retail memory', 'retail memory worst')),
    'retail-months': ('in monthly partitions', 4, ('retail months', 'retail months worst')),
    'retail-dates': ('in the order of days', 4, ('retail dates', 'retail dates worst')),
}
FACTS = ('store_sales', 'mail_sales', 'web_sales', 'inventory')

MONTHS = '''
ALTER TABLE {0} RENAME TO whole;
CREATE TABLE {0} (LIKE whole INCLUDING INDEXES) PARTITION BY RANGE (day);
CREATE UNLOGGED TABLE {0}_rest PARTITION OF {0} DEFAULT;
DO $$ DECLARE m record; BEGIN
    FOR m IN SELECT month_number AS n, min(day) AS first, max(day) + 1 AS next FROM calendar
              WHERE year BETWEEN 2018 AND 2022 GROUP BY month_number LOOP
        EXECUTE format('CREATE UNLOGGED TABLE {0}_%s PARTITION OF {0} FOR VALUES FROM (%s) TO (%s)', m.n, m.first, m.next);
    END LOOP;
END $$;
INSERT INTO {0} SELECT * FROM whole;
DROP TABLE whole'''

DATES = '''
ALTER TABLE {0} RENAME TO whole;
CREATE UNLOGGED TABLE {0} (LIKE whole INCLUDING INDEXES);
INSERT INTO {0} SELECT * FROM whole ORDER BY day;
CREATE INDEX ON {0} USING brin (day) WITH (pages_per_range = 16);
DROP TABLE whole'''

ORDERS = {'in no order': None, 'in monthly partitions': MONTHS, 'in the order of days': DATES}


def fill(bench, order):
    joins_queries.fill(bench, 'retail.sql', SCALE)
    with bench.session(statement_timeout=0, search_path='retail') as session:
        for fact in FACTS if ORDERS[order] is not None else ():
            session.execute(ORDERS[order].format(fact))
            session.execute('VACUUM (FREEZE, ANALYZE) ' + fact)


def run(bench, section, part):
    order, page_cost, targets = PARTS[part]
    settings = {**SETTINGS, 'random_page_cost': page_cost,
                'bloomfilter.join_planning_cost': bench.scale(10000, 300)}
    queries = joins_queries.queries(bench, 'retail.sql')
    fill(bench, order)
    section.text('''**{} queries of a retailer**, `bench/retail.sql`, {:.2g} GB, facts {}; {}. The calendar has 200 years, the
        facts have five.'''.format(
            len(queries), joins_queries.size(bench, 'retail') / 1e9, order, settings_text(**settings)))
    measured, filters = {}, {}
    with filter_session(bench, settings) as session:
        for name, sql in queries.items():
            log('    ' + name)
            measured[name] = measure_equal(bench, session, joins_queries.variants_of(sql), bench.scale(*ROUNDS))
            session.execute(ON)
            filters[name] = session.explain(sql).count('(Bloom Filter)')
        joins_queries.report(section, measured, filters, targets)
        session.execute('DROP SCHEMA retail CASCADE')
