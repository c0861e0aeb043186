"""What the extension is held against: ratios of CPU time (of wall time where that is said) in one run."""
import collections

Target = collections.namedtuple('Target', 'what against at_most')

TARGETS = {
    'scan': Target('scan with `bloom_contains(f, url)`, 1 million keys, 1 %, a row', 'the scan with `hashtextextended`', 1.25),
    'stored': Target('the same scan, the filter stored in a table', 'the filter in memory', 1.05),
    'large': Target('scan with a 125 MB filter (100 million keys)', 'the scan with 1.2 MB', 2.5),
    'probe 16 MiB': Target('core probe, 16 MiB, 1 %', 'one random cache line read', 1.5),
    'probe 1 GiB': Target('core probe, 1 GiB, 1 %', 'one random cache line read', 1.5),
    'sized': Target('`bloom_agg(url, 0.01, 10000000)`, 10 million rows', '`hll_add_agg(hll_hash_text(url))`', 1.3),
    'self-sizing': Target('`bloom_agg(url)`, which sizes itself', 'sized', 1.05),
    'parallel': Target('`bloom_agg` in two processes, wall time', 'in one', 0.57),
    'parallel memory': Target('its memory, for each process', 'the filter', 2.2),
    'union': Target('`bloom_union_agg` of 1,000 filters of 1.2 MB', 'OR of the same words', 1.5),
    'spilling join': Target('join of 10 million URLs × 1 million, 1 % of them matching, `work_mem` 4 MB, by hand', 'the plain hash join, which spills', 0.5),
    'join in memory': Target('the same in memory, by hand', 'the plain hash join', 0.7),
    'grouping': Target('10 million rows grouped below a join that keeps 0.1 % of the groups, by hand',
                       'without the filter', 0.25),
    'three-way': Target('three-way join, fact of 10 million, 10 % match, by hand', 'without the filter', 0.75),
    'foreign': Target('the join of 10 million × 1 million rows, 1 % matching, by hand, with the small side on another '
                      'server than the large one (postgres_fdw)', 'without the filter', 0.2),
    'auto spilling': Target('join of 10 million URLs × 1 million, 1 % of them matching, `work_mem` 4 MB',
                            'off; the join spills', 0.40),
    'auto memory': Target('the same join in memory', 'off', 0.38),
    'auto parallel': Target('the same join with two workers and Parallel Hash', 'off', 0.50),
    'auto grouping': Target('10 million rows grouped below a join that keeps 0.1 % of the groups', 'off', 0.30),
    'auto partitions': Target('fact in 100 partitions, join by another column than the partition key, 1 % match',
                              'off', 0.60),
    'auto star': Target('star: fact of 10 million rows of 100 bytes, four dimensions, 10 % of each', 'off', 0.70),
    'auto match': Target('10 million rows join 1 million, every one matches', 'off', 1.03),
    'auto small match': Target('10 million narrow rows join a small table, every one matches', 'off', 1.05),
    'auto planning': Target('planning of a join of ten tables', 'off', 1.05),
    'auto analytic': Target('20 analytic queries over 1 GB, the sum', 'off', 0.85),
    'auto worst': Target('the worst single one of these that has a filter', 'off', 1.05),
    'auto generated': Target('the worst of 200 generated queries that has a filter', 'off', 1.10),
    'auto by hand': Target('the worst of these joins', 'the same with the filter written by hand', 1.0),
    'lookup': Target('one lookup in a stored 120 MB filter', 'one btree lookup by primary key', 2.0),
    'index size': Target('size of an index at fpp 0.001, 10 million URLs', 'a btree', 0.05),
    'index build': Target('building that index, wall time', 'building the btree', 0.5),
    'index insert': Target('INSERT of 1 million rows in batches, random keys, btree larger than shared_buffers',
                           'the same with a btree', 0.7),
    'index wal': Target('WAL of those rows, beyond the table\'s', 'the btree\'s', 0.5),
    'index clients': Target('time for a key that 16 clients add to one set', 'that of one client, wall time', 1.0),
    'index waits': Target('99th percentile of the latency of 16 clients, beyond that without an index', '1 ms', 1.0),
    'index add': Target('a single add: prepared INSERT, `synchronous_commit = off`, unix socket',
                        'the Redis script, k = 14, over loopback', 1.5),
    'index lookup': Target('lookup of an absent key, prepared, cached', 'a btree lookup', 1.0),
    'index cold': Target('lookups of absent keys from disk, the btree ten times larger than memory', 'a btree', 0.3),
    'lookups': Target('1,000 keys looked up in that filter in one statement', '1,000 btree lookups', 1.0),
}


def is_met(key, ratios):
    """Without ratios something took too long to be measured, so it is not."""
    return ratios is not None and ratios[0] <= TARGETS[key].at_most
