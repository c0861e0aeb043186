#!/usr/bin/env bash
# Lookups of stored filters against lookups in memory and against a btree: CPU time of the backend, median of
# interleaved rounds, as a ratio to the first variant of each group.
#
#   PGHOST=... PGDATABASE=... bench/stored.sh [ROUNDS [ROWS [KEYS]]]
#
# in an empty database with the extension, on the same machine. ROWS is the number of rows of the scan and of the
# btree; the large filter is made for ten times KEYS. Full size: bench/stored.sh 5 10000000 10000000.
set -euo pipefail
rounds=${1:-5} rows=${2:-1000000} keys=${3:-1000000}

psql=(psql -XqAt -v ON_ERROR_STOP=1)
"${psql[@]}" <<SQL
SET client_min_messages = warning;
DROP TABLE IF EXISTS fact, filters, btree, looked_up;
CREATE TABLE fact AS
	SELECT i, 'https://www.example.org/some/path/to/a/page-number-padded/' || lpad(i::text, 8, '0') AS url
	FROM generate_series(1, $rows) i;
CREATE TABLE btree AS SELECT i::bigint AS id FROM generate_series(1, $rows) i;
ALTER TABLE btree ADD PRIMARY KEY (id);
CREATE TABLE filters (id int PRIMARY KEY, f bloom);
INSERT INTO filters SELECT 1, bloom_agg(url, 0.01, 1000000) FROM fact WHERE i <= 1000000;
INSERT INTO filters SELECT 2, bloom_agg(i, 0.01, 10 * $keys::bigint) FROM generate_series(1::bigint, 2 * $keys::bigint) i;
CREATE TABLE looked_up AS
	SELECT array_agg(1 + (random() * ($rows - 1))::bigint) AS present, array_agg(-i::bigint) AS absent
	FROM generate_series(1, 1000) i;
VACUUM ANALYZE;
SQL

# One session runs all variants; its CPU time is in nanoseconds.
coproc session { "${psql[@]}"; }
query() {
	local line
	printf '%s;\n\\echo end\n' "$1" >&"${session[1]}"
	answer=
	while read -r line <&"${session[0]}" && [ "$line" != end ]; do answer=$line; done
}
cpu() { read -r nanoseconds _ <"/proc/$pid/schedstat"; }
query 'SELECT pg_backend_pid()'
pid=$answer
query 'SET max_parallel_workers_per_gather = 0; SET jit = off'

# group TITLE PER NAME QUERY [NAME QUERY]...; PER is what the time is divided by
group() {
	local title=$1 per=$2 i round began dir
	shift 2
	dir=$(mktemp -d)
	for ((round = 0; round <= rounds; round++)); do
		for ((i = 1; i <= $#; i += 2)); do
			cpu; began=$nanoseconds
			query "${@:i+1:1}"
			cpu
			[ "$round" -eq 0 ] || echo $((nanoseconds - began)) >>"$dir/$i"
		done
	done
	printf '%s\n' "$title"
	local base=
	for ((i = 1; i <= $#; i += 2)); do
		median=$(sort -n "$dir/$i" | sed -n "$(((rounds + 1) / 2))p")
		base=${base:-$median}
		awk -v name="${!i}" -v t="$median" -v b="$base" -v per="$per" \
			'BEGIN { printf "  %-44s %10.1f ns   %.2f\n", name, t / per, t / b }'
	done
	rm -r "$dir"
}

memory="(SELECT bloom_union(f, f) FROM filters WHERE id = 1)"
group 'Scan, a row' "$rows" \
	'f in memory' "SELECT count(*) FROM fact WHERE bloom_contains($memory, url)" \
	'f stored, subquery' "SELECT count(*) FROM fact WHERE bloom_contains((SELECT f FROM filters WHERE id = 1), url)" \
	'f in memory, joined' "SELECT count(*) FROM fact, (SELECT bloom_union(f, f) AS f FROM filters WHERE id = 1 OFFSET 0) m WHERE bloom_contains(f, url)" \
	'f stored, joined' "SELECT count(*) FROM fact, filters WHERE filters.id = 1 AND bloom_contains(f, url)" \
	'hashtextextended' "SELECT count(*) FROM fact WHERE hashtextextended(url, 0) <> 0" \
	'count(*)' "SELECT count(*) FROM fact"

group '1,000 keys in one statement, a key' 1000 \
	'btree, nested loop' "SELECT count(*) FROM looked_up, unnest(present) k WHERE EXISTS (SELECT FROM btree WHERE id = k)" \
	'large filter, nested loop, present' "SELECT count(*) FROM looked_up, unnest(present) k, filters WHERE filters.id = 2 AND bloom_contains(f, k)" \
	'large filter, nested loop, absent' "SELECT count(*) FROM looked_up, unnest(absent) k, filters WHERE filters.id = 2 AND bloom_contains(f, k)" \
	'bloom_contains_all, present' "SELECT bloom_contains_all(f, present) FROM looked_up, filters WHERE filters.id = 2" \
	'bloom_new_keys, absent' "SELECT cardinality(bloom_new_keys(f, absent)) FROM looked_up, filters WHERE filters.id = 2"

query "PREPARE one AS SELECT 1; PREPARE btree(bigint) AS SELECT EXISTS (SELECT FROM btree WHERE id = \$1);
PREPARE filter(bigint) AS SELECT bloom_contains(f, \$1) FROM filters WHERE id = 2"
many() { seq 1 2000 | awk -v name="$1" -v rows="$rows" '{ printf "EXECUTE %s%s;", name, name == "one" ? "" : "(" int(rows * (($1 * 0.6180339887) % 1)) + 1 ")" }'; }
group 'One lookup, prepared, a statement' 2000 \
	'btree' "$(many btree)" \
	'large filter' "$(many filter)" \
	'SELECT 1' "$(many one)"
