# job|two-lists|20|45|1|which URLs are in both of two lists of 100 million, with 1 GB of memory
"""Which URLs are in both of two lists that do not fit into memory?"""
from lib import as_bytes, settings_text, significant

TITLE = 'URLs in both of two lists, with 1 GB of memory'
STEPS = 9
MEMORY = 1e9

# Of one worker next to the backend. A parallel hash join may use the sum of what each process may: 720 MiB, and the
# rest is for the buffers and for what a process takes anyway.
SETTINGS = {'max_parallel_workers_per_gather': 1, 'work_mem': '180MB', 'hash_mem_multiplier': 2}

# For the large filter. Two processes would have nine times its size in memory while one hands its part to the other.
SERIAL = 'SET max_parallel_workers_per_gather = 0'
PARALLEL = 'SET max_parallel_workers_per_gather = 1'

URL = "'https://www.example.org/' || md5(i::text) || lpad(to_hex(i), 8, '0')"
LIST = 'SELECT %s FROM (SELECT generate_series(%%d::bigint, %%d) AS i) n' % URL

# The URLs end with the number they were made from.
CHECK = '''SELECT count(*), sum(i), sum(i * i), bool_and(url = %s)
  FROM (SELECT url, ('x' || right(url, 8))::bit(32)::bigint::numeric AS i FROM {}) n
''' % URL.replace('(i)', '(i::bigint)')


def run(job, section):
    n = job.size(100_000_000, 1000)
    first_common = n - n // 10 + 1
    with job.step('two lists of {:,} URLs, a tenth of each in the other'.format(n)):
        job.fill({'list_a (url text)': LIST % (1, n), 'list_b (url text)': LIST % (first_common, 2 * n - n // 10)})
    with job.session() as session:
        job.check(session.value('SELECT min(length(url)) = 64 AND max(length(url)) = 64 FROM list_b'), '64 bytes a URL')
        list_size = session.value("SELECT pg_table_size('list_a')")
        buffers = session.value("SELECT setting::bigint * 8192 FROM pg_settings WHERE name = 'shared_buffers'")

    filtered, filtered_temporary = with_filters(job, section, n)
    for name, step in filtered.items():
        job.check(step.memory + buffers < MEMORY, '%s takes %s' % (name, as_bytes(step.memory + buffers)))
    check(job, 'in_both', first_common, n)
    plain, plain_temporary = by_hash_join(job, section)
    check(job, 'in_both_plain', first_common, n)

    wall, cpu = (sum(getattr(step, what) for step in filtered.values()) for what in ('wall', 'cpu'))
    memory = max(step.memory for step in filtered.values())
    section.text('''Two unlogged tables of {:,} URLs of 64 bytes, {} each, a tenth of the rows common to both. Both ways
        have the same settings, but for the first filter, which is built without a worker to save memory. Both begin
        with none of the tables in the cache of the system, which is not counted as memory and not limited. Memory is that of the backend and one parallel worker; with shared_buffers, {} more,
        it has to stay below 1 GB with the filters. Both answers are exact: {:,} URLs, checked one by one.'''.format(
            n, as_bytes(list_size), as_bytes(buffers), n // 10))
    section.code('sql', settings_text(**{name: "'%s'" % value for name, value in SETTINGS.items()}))
    section.table(['step', 'wall, s', 'CPU, s', 'memory', 'written to temporary files'],
                  [[name, significant(step.wall), significant(step.cpu), as_bytes(step.memory), '']
                   for name, step in filtered.items()] +
                  [['**with filters, all steps**', significant(wall), significant(cpu), as_bytes(memory),
                    as_bytes(filtered_temporary)],
                   ['**plain hash join**', significant(plain.wall), significant(plain.cpu), as_bytes(plain.memory),
                    as_bytes(plain_temporary)],
                   ['filters / plain', '%.2f' % (wall / plain.wall), '%.2f' % (cpu / plain.cpu), '', '']])


def with_filters(job, section, n):
    """The statements of the recipe, each a Step; and what they have written to temporary files."""
    before = job.temporary_bytes()
    steps = {}
    with job.session(**SETTINGS) as session:
        for title, beginning in (
                ('filter of a', 'CREATE UNLOGGED TABLE filter_a'), ('b through it', 'CREATE UNLOGGED TABLE left_b'),
                ('filter of what is left of b', 'CREATE UNLOGGED TABLE filter_b'),
                ('a through it', 'CREATE UNLOGGED TABLE left_a'),
                ('exact join of what is left', 'CREATE UNLOGGED TABLE in_both')):
            if not steps:
                job.forget_files()
            session.execute(PARALLEL if steps else SERIAL)
            statement = job.recipe('two_lists.sql', beginning, n=n)
            with job.step(title, session) as steps[title]:
                if 'join' in title:
                    session.execute('ANALYZE left_a, left_b')
                session.execute(statement)
            section.plan(title, session, statement.partition(' AS ')[2].strip().rstrip(';'),
                         ['Hash Join'] if 'join' in title else ['Scan on'])
        most = n // 10 + 0.009 * n + 6 * (0.009 * n) ** 0.5
        for left in ('left_a', 'left_b'):
            rows = session.value('SELECT count(*) FROM ' + left)
            job.check(n // 10 <= rows <= most, '%d rows in %s' % (rows, left))
    return steps, job.temporary_bytes() - before


def by_hash_join(job, section):
    before = job.temporary_bytes()
    query = 'SELECT url FROM list_a JOIN list_b USING (url)'
    with job.session(**SETTINGS) as session:
        job.forget_files()
        session.execute('SET enable_mergejoin = off')
        section.plan('plain hash join', session, query, ['Hash Join'])
        with job.step('plain hash join', session) as step:
            session.execute('CREATE UNLOGGED TABLE in_both_plain AS ' + query)
    return step, job.temporary_bytes() - before


def check(job, table, first, last):
    """That a result has each of the numbers from first to last, once, and their URLs."""
    def sums(of):
        return of, of * (of + 1) // 2, of * (of + 1) * (2 * of + 1) // 6

    with job.step('checking each of ' + table), job.session() as session:
        *found, right = session.execute(CHECK.format(table))[0]
        expected = [to - before for to, before in zip(sums(last), sums(first - 1))]
        job.check(right and [int(x or 0) for x in found] == expected, '%s has %s, not %s' % (table, found, expected))
