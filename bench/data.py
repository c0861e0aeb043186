"""The tables that the sections measure on. Everything is computed from row numbers, so it is the same in each run.

URLs have 64 bytes and a common beginning. Tables are unlogged, frozen and analyzed.
"""

URL = "'https://www.example.org/item/' || md5(%s::text) || '/en'"

# A number that looks random, from the row number and the number of a column.
RANDOM = '(hashint8extended(i, %d) & 2147483647)'

# Filters of URLs and of numbers that are stored, by size: the keys they are made for at 1 %, how many are in them, and
# how many in a quick run. With less than a sixth they would still be a list of hashes.
FILTERS = {
    '1.2 MB': (1_000_000, 1_000_000, 200_000),
    '12 MB': (10_000_000, 10_000_000, 2_000_000),
    '120 MB': (100_000_000, 100_000_000, 16_000_000),
    '500 MB': (400_000_000, 80_000_000, 80_000_000),
}


def filter_table(key_type, name):
    """The table that holds just one filter, of 'url' or 'number' keys."""
    return '%s_filter_%s' % (key_type, name.split()[0].replace('.', '_'))


def filter_keys(name, bench):
    """How many keys a filter is made for, and how many it has."""
    expected, *added = FILTERS[name]
    return expected, bench.scale(*added)


def statements(table, bench):
    """The SQL that makes a table."""
    key_type, _, name = table.partition(' filter ')
    if name:
        return filter_statements(key_type, name, bench)
    query = TABLES[table].format(rows=bench.rows, tenth=bench.rows // 10, hundredth=bench.rows // 100,
                                 url=URL % 'i', matching_url=URL % '(10 * i)', other_url=URL % '(-i)',
                                 page_url=URL % 'page', **{'random_%d' % n: RANDOM % n for n in range(1, 5)})
    if table == 'events':
        return [*partitions(bench), 'INSERT INTO events ' + query, 'VACUUM (FREEZE, ANALYZE) events']
    return ['CREATE UNLOGGED TABLE %s AS %s' % (table, query), *EXTRA.get(table, []),
            'VACUUM (FREEZE, ANALYZE) ' + table]


# Row numbers, without having them all in a temporary file first as generate_series() in FROM has.
TABLES = {
    'urls': 'SELECT i::bigint AS id, {url} AS url FROM (SELECT generate_series(1, {rows}) AS i) n',
    # every tenth of them
    'some_urls': 'SELECT {url} AS url FROM (SELECT generate_series(10, {rows}, 10) AS i) n',
    # a tenth as many as urls; one in ten is among them, which are all of those with id % 100 = 0
    'pages': '''SELECT CASE WHEN i % 10 = 0 THEN {matching_url} ELSE {other_url} END AS url, i % 1000 AS score
                  FROM (SELECT generate_series(1, {tenth}) AS i) n''',
    # ten visits of each page, in no order
    'visits': '''SELECT page, {page_url} AS url, ms
                   FROM (SELECT i * 7919 % {tenth} AS page, (i % 997)::int AS ms
                           FROM (SELECT generate_series(1::bigint, {rows}) AS i) n) v''',
    'kept_pages': 'SELECT {page_url} AS url FROM (SELECT generate_series(0, {tenth} - 1, 1000) AS page) n',
    'sales': '''SELECT i * 7919 % {tenth} AS customer, i * 104729 % {tenth} AS product, (i % 997)::int AS amount
                  FROM (SELECT generate_series(1::bigint, {rows}) AS i) n''',
    'customers': '''SELECT i AS customer, (i % 50)::int AS region, 'customer ' || i AS name
                      FROM (SELECT generate_series(0::bigint, {tenth} - 1) AS i) n''',
    # of all values of sales.amount
    'amounts': "SELECT i AS amount, 'amount ' || i AS name FROM generate_series(0, 996) AS i",
    # amount is the last of 102 columns
    'wide_sales': 'SELECT %s, (i %% 997)::int AS amount FROM (SELECT generate_series(1, {tenth}) AS i) n' % ', '.join(
        'i AS c%d' % n for n in range(101)),
    # one in a hundred rows of events is of a subscriber
    'events': '''SELECT ((i - 1) * 100 / {rows})::int AS day, {random_1} % {rows} AS visitor, (i % 997)::int AS ms
                   FROM (SELECT generate_series(1::bigint, {rows}) AS i) n''',
    'subscribers': '''SELECT i AS visitor, (i / 100 % 5)::int AS plan
                        FROM (SELECT generate_series(0::bigint, {rows} - 1, 100) AS i) n''',
    # rows of 100 bytes; a tenth of each dimension has part = 3. Without an index, each dimension is hashed.
    'star_facts': '''SELECT ({random_1} % 2500)::int AS day, ({random_2} % 1000)::int AS store,
                             ({random_3} % 10000)::int AS product, ({random_4} % {hundredth})::int AS customer,
                             (i % 997)::int AS amount, repeat('x', 79) AS note
                        FROM (SELECT generate_series(1::bigint, {rows}) AS i) n''',
    'star_days': 'SELECT i AS day, i % 10 AS part FROM generate_series(0, 2499) AS i',
    'star_stores': 'SELECT i AS store, i % 10 AS part, i % 7 AS region FROM generate_series(0, 999) AS i',
    'star_products': 'SELECT i AS product, i % 10 AS part FROM generate_series(0, 9999) AS i',
    'star_customers': 'SELECT i AS customer, i % 10 AS part FROM generate_series(0, {hundredth} - 1) AS i',
}

EXTRA = {
    'urls': ['ALTER TABLE urls ADD PRIMARY KEY (id)'],
}


def partitions(bench):
    """An empty table of events, with one partition for each of 100 days."""
    return ['CREATE TABLE events (day int, visitor bigint, ms int) PARTITION BY LIST (day)',
            *('CREATE UNLOGGED TABLE events_{0} PARTITION OF events FOR VALUES IN ({0})'.format(day)
              for day in range(100))]


def filter_statements(key_type, name, bench):
    expected, added = filter_keys(name, bench)
    table = filter_table(key_type, name)
    if key_type == 'number':
        # multiples of ten, a tenth of the numbers that are scanned
        keys = 'SELECT generate_series(10::bigint, %d, 10) AS key' % (10 * added)
    else:
        # A tenth of the table that is scanned is in each filter; the rest of the keys are short texts.
        keys = 'SELECT url AS key FROM some_urls'
        rest = added - bench.rows // 10
        if rest > 0:
            keys += ' UNION ALL SELECT i::text FROM (SELECT generate_series(1, %d) AS i) n' % rest
    return ['CREATE UNLOGGED TABLE %s (f bloom)' % table,
            'INSERT INTO %s SELECT bloom_agg(key, 0.01, %d) FROM (%s) k' % (table, expected, keys)]
