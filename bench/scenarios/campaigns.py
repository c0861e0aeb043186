# job|campaigns|3|4|1|one prize a user: a thousand campaigns, 16 clients that probe and add
"""Has this user taken part in this sale? A filter for each of a thousand campaigns, which 16 clients probe and add to."""
import pgbench
from lib import as_bytes, significant

TITLE = 'One prize a user'
STEPS = 11
CAMPAIGNS, CLIENTS, SHARDS = 1000, 16, 16

# The clients count, so each user comes once and it is known afterwards who has come; to the campaigns in turn.
WHO = '''\\set n :n + 1
\\set who 1000000007 * (1 + :client_id) + :n
'''
IN_TURN = '\\set campaign 1 + (7919 * :who) % {}\n'.format(CAMPAIGNS)
CAME = '''(SELECT who, 1 + (7919 * who) %% {} AS campaign
             FROM (SELECT 1000000007 * (1 + c::bigint) + n AS who
                     FROM generate_series(0, {} - 1) c, generate_series(1, %s) n) x) came'''.format(CAMPAIGNS, CLIENTS)
TAKE_PART = 'SELECT take_part(:campaign, :who);'
PROBE = '''\\set who 1000000007 * (1 + random(0, {})) + random(1, {})
''' + IN_TURN + 'SELECT taken @> :who::bigint FROM campaigns WHERE id = :campaign;'

# What it is compared with: a row for each who has taken part
PAIRS = '''CREATE TABLE pairs (campaign int, who bigint, PRIMARY KEY (campaign, who));
CREATE FUNCTION take_part_pairs(campaign int, who bigint) RETURNS boolean LANGUAGE sql AS $$
    WITH first AS (INSERT INTO pairs VALUES (campaign, who) ON CONFLICT DO NOTHING RETURNING 1)
    SELECT EXISTS (SELECT FROM first)
$$;'''

# What the cookbook advises for a campaign that all want to take part in at once
SHARDED = '''CREATE TABLE sharded (shard int PRIMARY KEY, taken bloom NOT NULL) WITH (fillfactor = 50);
INSERT INTO sharded SELECT s, bloom_empty(1e-6) FROM generate_series(0, {0} - 1) s;
CREATE FUNCTION take_part_sharded(who bigint) RETURNS boolean LANGUAGE sql AS $$
    WITH first AS (
        UPDATE sharded SET taken = bloom_add(taken, who)
         WHERE shard = bloom_shard(who, {0}) AND NOT taken @> who RETURNING 1)
    SELECT EXISTS (SELECT FROM first)
$$;'''.format(SHARDS)


def run(job, section):
    users, hot = job.size(320_000, 4 * CLIENTS) // CLIENTS, job.size(16_000, 4 * CLIENTS) // CLIENTS    # of each client
    rows = []
    with job.session() as session:
        with job.step('{:,} campaigns'.format(CAMPAIGNS)):
            for beginning in ('CREATE TABLE campaigns', 'INSERT INTO campaigns', 'CREATE FUNCTION take_part'):
                session.execute(job.recipe('registered.sql', beginning))
            session.execute(PAIRS + SHARDED)
            session.execute('INSERT INTO campaigns VALUES (0, bloom_empty(1e-6))')
        job.check(session.value('SELECT count(*) FROM campaigns WHERE id > 0') == CAMPAIGNS, 'so many campaigns')

        take_part(job, rows, 'campaigns', 'take part, a filter a campaign', WHO + IN_TURN + TAKE_PART, users)
        with job.step('looking for each of them'):
            lost = session.value('''SELECT count(*) FROM %s JOIN campaigns ON id = campaign
                                     WHERE NOT taken @> who''' % CAME, [users])
            counted = session.value('SELECT sum(bloom_cardinality(taken)) FROM campaigns')
            job.check(lost == 0, '%d of those who took part are not found' % lost)
            rejected = users * CLIENTS - int(counted)
            job.check(0 <= rejected <= 1e-6 * users * CLIENTS + 5, '%d are recorded of %d' % (counted, users * CLIENTS))
        take_part(job, rows, 'campaigns', 'the same users once more: none may',
                  WHO + IN_TURN + 'SELECT 1 / (NOT take_part(:campaign, :who))::int;', max(1, users // 4))
        with job.step('probing who has taken part'):
            result = pgbench.run(job, {'probe': PROBE.format(CLIENTS - 1, 2 * users)}, CLIENTS, seconds=15)
            rows.append(row('only probed, half of them took part', result, '', ''))
        take_part(job, rows, 'pairs', 'take part, a table of pairs',
                  WHO + IN_TURN + TAKE_PART.replace('part(', 'part_pairs('), users)

        with job.step('the size of all that, before and after VACUUM'):
            sizes = [size_of(session, 'a filter a campaign', 'campaigns', 'taken'),
                     size_of(session, 'a table of pairs', 'pairs')]

        take_part(job, rows, 'campaigns', 'all in one campaign', WHO + '\\set campaign 0\n' + TAKE_PART, hot)
        take_part(job, rows, 'sharded', 'all in one campaign of %d rows' % SHARDS,
                  WHO + 'SELECT take_part_sharded(:who);', hot)
        with job.step('looking for each of them'):
            job.check(session.value('SELECT bool_and(taken @> who) FROM %s, campaigns WHERE id = 0' % CAME, [hot]),
                      'all are found in one campaign')
            job.check(session.value('''SELECT bool_and(taken @> who)
                FROM %s JOIN sharded ON shard = bloom_shard(who, %d)''' % (CAME, SHARDS), [hot]),
                      'all are found in a campaign of several rows')
        with job.step('the size of that, before and after VACUUM'):
            sizes += [size_of(session, 'the same, with one that all want', 'campaigns', 'taken'),
                      size_of(session, 'that one, in %d rows' % SHARDS, 'sharded', 'taken')]
        job.check(session.value('SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()') == 0,
                  'no deadlocks')

    section.text('''{:,} campaigns, {:g} users in each, {:,} requests by pgbench with {} clients and prepared
        statements. Every user comes once; afterwards each of them was found in the filter of the campaign, {} had been
        rejected as false positives, and of those who came again none was admitted. *Waiting*: how much of the time a
        client was waiting for the row that another was changing. `fsync` is off, so nobody waits for the disk;
        autovacuum runs.'''.format(
            CAMPAIGNS, users * CLIENTS / CAMPAIGNS, users * CLIENTS, CLIENTS, rejected or 'none'))
    section.code('sql', '-- a filter a campaign\n' + job.recipe('registered.sql', 'CREATE FUNCTION take_part') +
                 '\n\n-- a table of pairs\n' + PAIRS + '\n\n-- %d rows\n' % SHARDS + SHARDED)
    section.table(['', 'requests a second', 'ms each', 'µs of CPU each', 'waiting', 'WAL each', 'in the same page'],
                  rows)
    section.text('Sizes with indexes and TOAST tables; *live* is what the filters themselves have.')
    section.table(['', 'live', 'then', 'after VACUUM'], sizes)


def take_part(job, rows, table, title, script, times):
    """Clients do this so many times each."""
    with job.step('%s: %d times %d' % (title, CLIENTS, times)):
        with job.session() as session:
            before = session.execute("SELECT pg_current_wal_insert_lsn(), %s" % UPDATES, [table])[0]
        result = pgbench.run(job, {'take part': script}, CLIENTS, transactions=times, define=['n=0'])
        with job.session() as session:
            wal, updates, hot = session.execute('SELECT pg_current_wal_insert_lsn() - %%s, %s' % UPDATES,
                                                [before[0], table])[0]
    updates, hot = updates - before[1], hot - before[2]
    rows.append(row(title, result, as_bytes(int(wal) // result.transactions),
                    '%.1f %%' % (100 * hot / updates) if updates else ''))


UPDATES = '''n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = %s'''


def row(title, result, wal, hot):
    return [title, significant(result.tps), significant(result.latency * 1e3), significant(result.cpu * 1e6),
            '%.1f %%' % (100 * result.row_waits), wal, hot]


def size_of(session, title, table, column=None):
    total = "SELECT pg_total_relation_size('%s')" % table
    live = session.value('SELECT sum(pg_column_size(%s)) FROM %s' % (column, table)) if column else None
    before = session.value(total)
    session.execute('VACUUM ' + table)
    return [title, as_bytes(int(live)) if live else '', as_bytes(before), as_bytes(session.value(total))]
