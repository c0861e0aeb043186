"""What the extension is held against: ratios of CPU time (of wall time where that is said) in one run."""
import collections

Target = collections.namedtuple('Target', 'what against at_most')

TARGETS = {
    'scan': Target('scan with `bloom_contains(f, url)`, 1 million keys, 1 %', 'the scan with `hashtextextended`', 1.25),
    'stored': Target('the same with a stored f', 'with f in memory', 1.05),
    'large': Target('scan with a 125 MB filter (100 million keys)', 'the same with the 1.2 MB filter', 2.5),
    'probe 16 MiB': Target('core probe, 16 MiB, 1 %', 'one random cache line read', 1.5),
    'probe 1 GiB': Target('core probe, 1 GiB, 1 %', 'one random cache line read', 1.5),
    'sized': Target('`bloom_agg(url, 0.01, 10000000)`, 10 million rows', '`hll_add_agg(hll_hash_text(url))`', 1.2),
    'self-sizing': Target('self-sizing `bloom_agg(url)`', 'sized', 2.0),
    'parallel': Target('`bloom_agg`, two processes', 'serial, wall time', 0.6),
    'spilling join': Target('pre-filtered join of 10 million × 1 million rows, 1 % of them matching, '
                            '`work_mem` 4 MB', 'the plain hash join, which spills', 0.5),
    'join in memory': Target('the same, all in memory', 'the plain hash join', 0.7),
    'grouping': Target('10 million rows grouped below a join whose other side keeps 0.1 % of the groups',
                       'without the filter', 0.25),
    'three-way': Target('three-way join, fact of 10 million, 10 % kept', 'without the filter', 0.75),
    'foreign': Target('the join of 10 million × 1 million rows, 1 % matching, with the small side on another server '
                      'than the large one (postgres_fdw)', 'without the filter', 0.2),
    'lookup': Target('one lookup in a stored 120 MB filter', 'one btree lookup by primary key', 2.0),
    'lookups': Target('1,000 keys looked up in it in one statement', '1,000 btree lookups', 1.0),
}


def is_met(key, ratios):
    """Without ratios something took too long to be measured, so it is not."""
    return ratios is not None and ratios[0] <= TARGETS[key].at_most
