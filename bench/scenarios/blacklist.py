# job|blacklist|14|28|3|10 billion URLs at 0.01 % in 64 shards, 23 GB: one built and probed, all looked up in
"""A blacklist of ten billion URLs in 64 shards, of which one is built at its real size and then stands for each."""
import os
import re
import subprocess

from lib import as_bytes, cpu_seconds_of_ended_children, significant

TITLE = 'A blacklist of 10 billion URLs'
STEPS = 9
KEYS, FPP, SHARDS, LIMIT = 10_000_000_000, 1e-4, 64, 26e9
CACHED = 8                              # shards: what one of eight servers has

URL = "'https://www.example.org/blacklist/' || md5(i::text)"
NUMBERS = '(SELECT generate_series(%d::bigint, %d) AS i) n'

# URLs that are not in the list, over all shards and over the first few of them
ANY_SHARD = '''\\set i random(1, 1000000000000)
SELECT blacklisted('https://www.example.org/page/' || md5(:i::text));'''
FEW_SHARDS = '''\\set i random(1, 1000000000000)
\\set shard random(0, %d)
SELECT urls @> ('https://www.example.org/page/' || md5(:i::text)) FROM blacklist WHERE shard = :shard;''' % (CACHED - 1)


def run(job, section):
    keys = job.size(KEYS // SHARDS, 1000)       # of a shard
    with job.session() as session:
        layout = session.execute('SELECT filters, bytes, bits_per_key FROM bloom_sizing(%s, %s)', [FPP, KEYS])[0]
        margin, shard_bytes = session.execute('''SELECT expected, bytes
              FROM CAST(%s::float8 / %s + 4 * sqrt(%s::float8 / %s) AS bigint) AS expected,
                   bloom_sizing(%s, expected)''', [KEYS, SHARDS, KEYS, SHARDS, FPP])[0]
        job.check(layout[0] <= SHARDS and layout[1] < LIMIT and SHARDS * shard_bytes < LIMIT, 'the computed sizes')
        make_tables(job, session)

        with job.step('building a shard of {:,} URLs'.format(keys), session) as build:
            session.execute('INSERT INTO blacklist SELECT 0, bloom_agg(%s, %s, %s) FROM %s' % (
                URL, FPP, round(keys + 4 * keys ** 0.5), NUMBERS % (1, keys)))
    size, over_capacity = check_shard(job, keys, shard_bytes)
    found, probed = false_positives(job, keys)
    with job.step('{} more of these shards'.format(SHARDS - 1)):
        job.at_once(lambda which=which: copy_shards(job, which) for which in range(2))
    with job.session() as session:
        on_disk = session.value('''SELECT sum(pg_total_relation_size(inhrelid)) FROM pg_inherits
                                    WHERE inhparent = 'blacklist'::regclass''')
        job.check(session.value('SELECT count(*) FROM blacklist') == SHARDS, 'all shards are there')
    lookups = measure_lookups(job)
    with job.session() as session:
        with job.step('adding 1,000 URLs to one shard', session) as adding:
            session.execute('''UPDATE blacklist SET urls = bloom_add_all(urls, ARRAY(
                SELECT 'https://www.example.org/new/' || i FROM generate_series(1, 1000) i)) WHERE shard = 0''')
        job.check(session.value('''SELECT bool_and(urls @> ('https://www.example.org/new/' || i))
            FROM blacklist, generate_series(1, 1000) i WHERE shard = 0'''), 'what was added is found')

    section.text('''**The layout.** `bloom_sizing({}, {})` says {} filters, {}, {:.2f} bits a URL. In {} shards, each
        with room for {:,} URLs (four standard deviations more than the mean), it is {} a shard and {} together.'''.format(
            FPP, KEYS, layout[0], as_bytes(layout[1]), layout[2], SHARDS, margin, as_bytes(shard_bytes),
            as_bytes(SHARDS * shard_bytes)))
    section.text('''**One shard** was built of as many URLs as one gets, {:,}. They are numbered ones, of 67 bytes, and
        not just those that `bloom_shard` sends there: ten billion would have to be made for them. All were found in it
        afterwards; of {:,} that were never added {:,} were, {:.4f} %.'''.format(
            keys, probed, found, 100 * found / probed))
    section.table(['', 'wall, s', 'CPU, s', 'µs of CPU a URL', 'memory', ''], [
        ['building it, URLs made in the same statement', significant(build.wall), significant(build.cpu),
         significant(build.cpu / keys * 1e6), as_bytes(build.memory), '%s%s' % (
             as_bytes(size), ', over capacity' if over_capacity else '')],
        ['adding 1,000 URLs to it', significant(adding.wall), significant(adding.cpu),
         significant(adding.cpu / 1000 * 1e6), as_bytes(adding.memory), 'it is written again']])
    section.text('''**Lookups**, one URL a statement, prepared, by pgbench. The built shard was put in the place of all
        {}, {} on disk with the indexes. *Not in any cache*: to begin with, neither the buffers nor the system have
        any of it, and the server reads from the disk. *In the cache*: {} shards, {}, in the cache of the system: what
        one of eight servers has. Blocks are of 8 kB, per lookup, found in the 128 MB of shared_buffers and read from
        the system.'''.format(SHARDS, as_bytes(on_disk), CACHED, as_bytes(CACHED * size)))
    section.code('sql', '-- all shards\n%s\n-- %d shards\n%s' % (ANY_SHARD, CACHED, FEW_SHARDS))
    section.table(['', 'clients', 'lookups a second', 'ms a lookup', 'µs of CPU a lookup', 'blocks found',
                   'blocks read'], lookups)


def make_tables(job, session):
    """As in the recipe, but for the number of shards, and without WAL, which would be as large again."""
    session.execute(job.recipe('shards.sql', 'CREATE TABLE blacklist (').replace(';', ''))
    for partition in range(4):
        session.execute(job.recipe('shards.sql', 'CREATE TABLE blacklist_%d' % partition).replace(
            'CREATE TABLE', 'CREATE UNLOGGED TABLE'))
    session.execute(job.recipe('shards.sql', 'ALTER TABLE blacklist'))
    function = job.recipe('shards.sql', 'CREATE FUNCTION blacklisted')
    assert 'bloom_shard(url, 8)' in function
    session.execute(function.replace('bloom_shard(url, 8)', 'bloom_shard(url, %d)' % SHARDS))


def check_shard(job, keys, expected_bytes):
    """That every URL is in it; two sessions look up a half each."""
    def look_up(first, last):
        with job.session() as session:
            job.check(session.value('SELECT bool_and((SELECT urls FROM blacklist WHERE shard = 0) @> (%s)) FROM %s' % (
                URL, NUMBERS % (first, last))), 'the shard has all of its URLs')

    with job.step('looking up each of them'):
        job.at_once([lambda: look_up(1, keys // 2), lambda: look_up(keys // 2 + 1, keys)])
    with job.session() as session:
        size, over = session.execute('''SELECT pg_column_size(urls), over_capacity
                                          FROM blacklist, bloom_info(urls) WHERE shard = 0''')[0]
    job.check(not over, 'the shard is not over capacity')
    job.check(not job.factor == 1 or abs(size - expected_bytes) < 100, '%d bytes, not %d' % (size, expected_bytes))
    return size, over


def false_positives(job, keys):
    """How many of URLs that were never added are found, and how many were looked up."""
    probed = job.size(20_000_000, 100_000)
    with job.step('{:,} that were never added'.format(probed)), job.session() as session:
        found = session.value('SELECT count(*) FROM %s WHERE (SELECT urls FROM blacklist WHERE shard = 0) @> (%s)' % (
            NUMBERS % (keys + 1, keys + probed), URL))
    job.check(found <= FPP * probed + 4 * (FPP * probed) ** 0.5, '%d of %d are found' % (found, probed))
    return found, probed


def copy_shards(job, which):
    with job.session() as session:
        for shard in range(1 + which, SHARDS, 2):
            session.execute('INSERT INTO blacklist SELECT %s, urls FROM blacklist WHERE shard = 0', [shard])


def measure_lookups(job):
    """Rows of the table. Whatever one variant does not look up stays out of the cache for the next."""
    with job.step('taking all of it out of the caches'):
        job.forget_files()
    rows = []
    for clients in (1, 8):
        with job.step('lookups in all shards, {} at a time'.format(clients)):
            rows.append(lookups_by(job, 'all %d shards, not in any cache' % SHARDS, ANY_SHARD, clients))
    with job.step('lookups in %d shards, and nothing but a statement' % CACHED):
        with job.session() as session:
            session.execute('SELECT bloom_cardinality(urls) FROM blacklist WHERE shard < %s', [CACHED])
        for clients in (1, 2):
            rows.append(lookups_by(job, '%d shards, in the cache' % CACHED, FEW_SHARDS, clients))
        rows.append(lookups_by(job, '`SELECT 1`', 'SELECT 1;', 1))
    return rows


def lookups_by(job, title, script, clients):
    """By pgbench, with the blocks that are found in the buffers and read, by lookup."""
    path = os.path.join(job.work, 'script.sql')
    with open(path, 'w') as file:
        file.write(script + '\n')
    found, read = blocks(job)
    cpu = cpu_seconds_of_ended_children(job.server.postmaster)
    with job.server.until_ended():
        output = subprocess.run(
            [os.path.join(job.server.programs, 'pgbench'), '-h', job.server.socket_dir, '-U', 'postgres', '-n', '-M',
             'prepared', '-c', str(clients), '-j', '2', '-T', str(round(max(1, 20 * job.factor))), '-f', path,
             job.server.database], stdout=subprocess.PIPE, check=True, universal_newlines=True).stdout
    cpu = cpu_seconds_of_ended_children(job.server.postmaster) - cpu
    done, tps, latency = (float(re.search(re.escape(name) + r' ([0-9.]+)', output).group(1))
                          for name in ('actually processed:', 'tps =', 'latency average ='))
    found, read = (after - before for before, after in zip((found, read), blocks(job)))
    return [title, clients, *map(significant, (tps, latency, cpu / done * 1e6)),
            significant(found / done, 2), significant(read / done, 2)]


def blocks(job):
    with job.session() as session:
        return map(int, session.execute("""
            SELECT sum(heap_blks_hit + coalesce(idx_blks_hit + toast_blks_hit + tidx_blks_hit, 0)),
                   sum(heap_blks_read + coalesce(idx_blks_read + toast_blks_read + tidx_blks_read, 0))
              FROM pg_statio_user_tables WHERE relname LIKE 'blacklist%'""")[0])
