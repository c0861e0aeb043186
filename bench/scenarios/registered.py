# job|registered|7|11|5|1, 10 and 100 million numbers at 1e-4 and 1e-7: sizes beside index and hash set, the rates
"""Is this phone number registered? Filters of 1, 10 and 100 million numbers at two rates, their sizes and what they
answer for numbers that were never added."""
from lib import as_bytes, significant

TITLE = 'Is this phone number registered?'
NUMBERS = 1_000_000, 10_000_000, 100_000_000
RATES = {1e-4: 20_000_000, 1e-7: 200_000_000}      # and how many that were never added are looked up
STEPS = len(NUMBERS) * (3 + 3 * len(RATES)) - 1

FIRST, APART = 490_000_000_000_000, 1000            # every thousandth number is registered
SETTINGS = {'max_parallel_workers_per_gather': 1, 'parallel_setup_cost': 0, 'parallel_tuple_cost': 0,
            'min_parallel_table_scan_size': 0, 'max_parallel_maintenance_workers': 1, 'maintenance_work_mem': '1GB'}

# Each process reads the filter once.
FOUND = 'SELECT count(*) FROM numbers WHERE bloom_contains((SELECT registered FROM phones), phone)'
FALSE = '''SELECT count(*) FROM numbers, generate_series(1, {}) other
 WHERE bloom_contains((SELECT registered FROM phones), phone + other)'''


def run(job, section):
    sizes, builds, rates = [], [], []
    with job.session(**SETTINGS) as session:
        for full in NUMBERS:
            one_size(job, session, full, sizes, builds, rates)
        section.plan('numbers that were never added', session, FALSE.format(4), ['Parallel Seq Scan', 'bloom_contains'])
        session.execute('DROP TABLE numbers, phones')

    section.text('''Numbers of 15 digits, as bigint; every thousandth is registered. Sizes are in MiB. *Standard*:
        the fewest bits there can be for a Bloom filter of so many keys. *Hash set*: eight bytes a number at load
        factors of 0.87 and 0.5, reckoned. Table, btree and hash index are PostgreSQL's, of these numbers alone.''')
    section.table(['numbers', 'fpp', 'filter', 'standard', 'filter / standard', 'hash set', 'btree', 'hash index',
                   'table'], sizes)
    section.text('**Making them** of that table, by a backend and one parallel worker; the filter by')
    section.code('sql', 'CREATE TABLE phones AS SELECT bloom_agg(phone, 1e-4, 1000000) AS registered FROM numbers;')
    section.table(['numbers', '', 'wall, s', 'CPU, s', 'memory'], builds)
    section.text('''**The rate.** All numbers are found. Of those that were never added, so many are, too; the
        interval is the one that the true rate is in with 95 % confidence.''')
    section.code('sql', FALSE.format('…') + ';')
    section.table(['numbers', 'fpp', 'looked up', 'found', 'expected', 'measured rate', '95 % interval',
                   'CPU, ns each'], rates)


def one_size(job, session, full, sizes, builds, rates):
    n = job.size(full, 100)
    name = '{:,}'.format(n)
    with job.step('a table of %s numbers' % name):
        session.execute('DROP TABLE IF EXISTS numbers, phones')
        session.execute('''CREATE UNLOGGED TABLE numbers AS
            SELECT %s + %s * generate_series(1::bigint, %s) AS phone''', [FIRST, APART, n])
        session.execute('VACUUM ANALYZE numbers')
    built = {}
    # A hash index of the last would take as long as all of the rest.
    methods = ('btree', 'hash') if full != NUMBERS[-1] else ('btree',)
    for method in methods:
        with job.step('a %s of them' % method, session) as built[method]:
            session.execute('CREATE INDEX numbers_{0} ON numbers USING {0} (phone)'.format(method))
    table, *indexes = (session.value("SELECT pg_relation_size(%s)", [relation])
                       for relation in ('numbers', *('numbers_' + method for method in methods)))
    session.execute('DROP INDEX ' + ', '.join('numbers_' + method for method in methods))

    for fpp, probes in RATES.items():
        session.execute('DROP TABLE IF EXISTS phones')
        with job.step('a filter of them at %g' % fpp, session) as built['filter at %g' % fpp]:
            session.execute('CREATE TABLE phones AS SELECT bloom_agg(phone, %s, %s) AS registered FROM numbers',
                            [fpp, n])
        size, standard = session.execute('''SELECT pg_column_size(registered), standard_bits / 8
                                              FROM phones, bloom_sizing(%s, %s)''', [fpp, n])[0]
        job.check(size <= 1.06 * standard or job.factor < 1, '%d bytes, standard %d' % (size, standard))
        sizes.append([name, '%g' % fpp, *(mebibytes(x) for x in (size, standard)), '%.3f' % (size / standard),
                      '%s to %s' % (mebibytes(8 * n / 0.87), mebibytes(8 * n / 0.5)),
                      mebibytes(indexes[0]), ''.join(map(mebibytes, indexes[1:])), mebibytes(table)])

        with job.step('looking up each of them'):
            job.check(session.value(FOUND) == n, 'every number is found')
        each = max(1, job.size(probes) // n)
        with job.step('{:,} that were never added'.format(each * n), session) as probing:
            found = session.value(FALSE.format(each))
        expected = fpp * each * n
        job.check(found <= expected + 4 * expected ** 0.5 + 4, '%d found, %d expected' % (found, expected))
        rates.append([name, '%g' % fpp, '{:,}'.format(each * n), '{:,}'.format(found), '{:,.0f}'.format(expected),
                      '%.3g' % (found / each / n), '%.2g to %.2g' % tuple(x / each / n for x in interval(found)),
                      significant(probing.cpu / each / n * 1e9)])
    builds += [[name, what, significant(step.wall), significant(step.cpu), as_bytes(step.memory)]
               for what, step in built.items()]


def mebibytes(size):
    return '%.2f' % (size / 1048576)


def interval(found):
    """Between which means a Poisson variable with this value lies, with 95 % confidence (Byar's approximation)."""
    def bound(n, z):
        return n * (1 - 1 / (9 * n) + z / (3 * n ** 0.5)) ** 3 if n else 0

    return bound(found, -1.96), bound(found + 1, 1.96)
