"""Random queries over the tables of random_schema.py, as text. Results do not depend on the plan: whatever PostgreSQL may
choose freely, such as the order of rows or the look of equal values, is ordered or made equal at the top."""
from dataclasses import dataclass

from random_schema import SHOWN, SKIPPING, VIEWS

# SQL of a value of each class, made from a small integer.
LITERALS = {
    "int": "{}", "float": "{}::float8", "numeric": "{}::numeric", "text": "'k{}'", "ctext": "'k{}' COLLATE \"C\"",
    "citext": "'k{}' COLLATE ci", "bpchar": "'k{}'::bpchar", "uuid": "md5('{}')::uuid",
    "date": "(date '2020-01-01' + {})", "timestamptz": "(timestamptz '2020-01-01 UTC' + {} * interval '1 hour')",
    "enum": "'c{}'::colour", "array": "ARRAY[{}]::int4[]", "composite": "ROW({}, 'k1')::pair",
    "interval": "{} * interval '1 day'", "range": "int4range({0}, {0} + 2)", "bytea": "decode(md5('{}'), 'hex')",
    "jsonb": "jsonb_build_object('k', {})",
}
# Classes whose values have a smallest and a largest one, for min and max.
ORDERED = {"int", "float", "numeric", "text", "ctext", "bpchar", "date", "timestamptz", "enum", "interval"}
# Expressions over a key that are equal for equal keys.
KEYS = {"int": ("{} + 1", "abs({})", "{} % 7", "COALESCE({}, 0)", "in_setting({})"), "numeric": ("{} * 2",),
        "text": ("lower({})", "{} || 'x'", "substr({}, 2)"), "date": ("{} + 1",), "citext": ("{} || 'x'",),
        "float": ("{} * 2",), "array": ("{} || 1",)}
# Tables whose scans may be skipped or limited.
SKIPPED = {*SKIPPING, "heirs", "ordered", "patchy"}
TEXTS = {"text", "ctext", "citext"}
TABLE_WEIGHTS = {"none": 1, "one": 2, "ten": 5, "thousand": 6, "many": 3, "ordered": 5, "middle": 4}


@dataclass(frozen=True)
class Column:
    sql: str
    kind: str
    skipping: bool = False


@dataclass(frozen=True)
class Relation:
    sql: str
    columns: list


class Generator:
    def __init__(self, random, available, tables, steady=False):
        """If steady, there are no errors and no calls that depend on the order of joins."""
        self.random = random
        self.steady = steady
        self.available = available
        self.tables = tables
        self.kinds = sorted({column[0] for column in available.values()})
        self.names = 0
        self.with_list = []

    def chance(self, probability):
        return self.random.random() < probability

    def name(self, prefix):
        self.names += 1
        return f"{prefix}{self.names}"

    def literal(self, kind):
        return LITERALS[kind].format(self.random.choice((0, 1, 2, 3, 5, 7, 11, 19, 40, 250)) % (20 if kind == "enum" else 1000))

    # --- relations ----------------------------------------------------------------------------------------------

    def table(self, among=None):
        tables = [table for table in self.tables if among is None or table in among]
        table = self.random.choices(tables, [TABLE_WEIGHTS.get(table, 2) for table in tables])[0]
        alias = self.name("t")
        sample = ""
        if "." not in table and table not in VIEWS and self.chance(0.02):
            sample = " TABLESAMPLE BERNOULLI (50) REPEATABLE (3)"
        columns = [Column(f"{alias}.{column}", kind, column in SKIPPING.get(table, ()))
                   for column, (kind, _, _) in self.available.items()]
        return Relation(f"{table} AS {alias}{sample}", columns)

    def few_rows(self):
        """Rows of a table that have neighbouring values of a column."""
        table, alias = self.table(), self.name("n")
        column = self.random.choice([c.sql for c in table.columns if c.kind == "int"])
        least = self.random.choice((0, 1, 2, 5, 40, 100, 240, 245, 299, 500, 999))
        most = least + self.random.choice((0, 1, 3, 50))
        return Relation(f"(SELECT * FROM {table.sql} WHERE {column} BETWEEN {least} AND {most}) AS {alias}", [
                        Column(f"{alias}.{c.sql.split('.')[1]}", c.kind) for c in table.columns])

    def values(self):
        alias = self.name("v")
        number = "same({})" if self.chance(0.3) and not self.steady else "{}"
        rows = ", ".join(f"({number.format(n)}, 'k{n}')" for n in self.random.sample(range(30), self.random.randint(1, 8)))
        return Relation(f"(VALUES {rows}) AS {alias} (i, x)", [Column(f"{alias}.i", "int"), Column(f"{alias}.x", "text")])

    def function(self, outer):
        alias = self.name("f")
        argument = self.random.choice([c.sql for c in outer if c.kind == "int"] or [str(self.random.randint(0, 9))])
        call = self.random.choice(("generate_series(0, ({}) % 20)", "matches(({}) % 12)", "first_few(({}) % 9)"))
        lateral = "LATERAL " if outer else ""
        return Relation(f"{lateral}{call.format(argument)} AS {alias} (i)", [Column(f"{alias}.i", "int")])

    def subquery(self, depth, outer):
        select, kinds = self.select(depth, outer)
        if self.chance(0.06) and not self.steady:
            select = f"SELECT {self.name('q')}.*, same(1) FROM ({select}) AS q{self.names} OFFSET 0"
        alias = self.name("s")
        names = [f"c{n}" for n in range(len(kinds))]
        lateral = "LATERAL " if outer else ""
        return Relation(f"{lateral}({select}) AS {alias} ({', '.join(names)})",
                        [Column(f"{alias}.{name}", kind) for name, kind in zip(names, kinds)])

    def common_table(self, depth):
        """A reference to a WITH query, new or an earlier one."""
        if not self.with_list or self.chance(0.6):
            select, kinds = self.recursion() if self.chance(0.2) else self.select(depth, [])
            name = self.name("w")
            names = ", ".join(f"c{n}" for n in range(len(kinds)))
            form = self.random.choice(("MATERIALIZED ", "MATERIALIZED ", "NOT MATERIALIZED ", ""))
            if "REC" in select:
                form = ""
            self.with_list.append((name, kinds, f"{name} ({names}) AS {form}({select.replace('REC', name)})"))
            if self.chance(0.1):
                self.chain(name, kinds)
        name, kinds, _ = self.random.choice(self.with_list)
        alias = self.name("c")
        return Relation(f"{name} AS {alias}", [Column(f"{alias}.c{n}", kind) for n, kind in enumerate(kinds)])

    def chain(self, name, kinds):
        """WITH queries that each read the one before twice."""
        names = ", ".join(f"c{n}" for n in range(len(kinds)))
        key = f"c{self.random.randrange(len(kinds))}"
        for _ in range(self.random.randint(2, 12)):
            before, name = name, self.name("w")
            self.with_list.append((name, kinds, f"{name} ({names}) AS MATERIALIZED (SELECT * FROM {before} AS a WHERE "
                                   f"EXISTS (SELECT 1 FROM {before} AS b WHERE a.{key} = b.{key}))"))

    def recursion(self):
        seed, step = self.table(), self.table()
        next_ = self.random.choice(("c1 + 1", "c1 * 2", "c1 - 1"))
        column = self.random.choice([c.sql for c in step.columns if c.kind == "int"])
        extra = self.join(1, [], self.table()) if self.chance(0.4) else step
        if extra is not step:
            column = self.random.choice([c.sql for c in extra.columns if c.kind == "int"])
        start = self.random.choice([c.sql for c in seed.columns if c.kind == "int"])
        return (f"SELECT 1, ({start})::int8 FROM {seed.sql} WHERE {start} < 20 UNION SELECT r.c0 + 1, ({column})::int8 "
                f"FROM REC AS r JOIN {extra.sql} ON r.{next_} = {column} WHERE r.c0 < 5", ["int", "int"])

    def relation(self, depth, outer=()):
        choice = self.random.random()
        lateral = list(outer)
        if depth <= 0 or choice < 0.2:
            return self.table() if self.chance(0.95) else self.values()
        if choice < 0.6:
            return self.join(depth, lateral)
        if choice < 0.83:
            return self.subquery(depth - 1, lateral)
        if choice < 0.94:
            return self.common_table(depth - 1)
        if choice < 0.97:
            return self.function(lateral)
        return self.values()

    # --- joins --------------------------------------------------------------------------------------------------

    def key(self, column):
        if self.chance(0.1) and column.kind in KEYS:
            return "(" + self.random.choice(KEYS[column.kind]).format(column.sql) + ")"
        if column.kind == "int" and self.chance(0.015) and not self.steady:
            return self.random.choice(("(1000 / {})", "fussy({})")).format(column.sql)
        return column.sql

    def pick(self, columns, kinds):
        """A column of these classes, preferably one by which a scan may be skipped."""
        columns = [c for c in columns if c.kind in kinds]
        return self.random.choice([c for c in columns if c.skipping and self.chance(0.7)] or columns)

    def equalities(self, left, right, only_equal=False):
        common = sorted({c.kind for c in left} & {c.kind for c in right})
        if not common:
            return None
        conditions = []
        for _ in range(self.random.choice((1, 1, 1, 1, 2, 2, 3))):
            kinds = [c.kind for c in left if c.skipping and c.kind in common and self.chance(0.5)]
            kind = self.random.choice(kinds or common + ["int"] * 3 * ("int" in common))
            sides = [self.pick(columns, {kind}) for columns in (left, right)]
            keys = [self.key(side) for side in sides]
            self.random.shuffle(keys)
            if kind in TEXTS and self.chance(0.2):
                sides = [self.pick(columns, TEXTS) for columns in (left, right)]
                collation = self.random.choice(('"C"', "ci") if "citext" in self.kinds else ('"C"',))
                # PostgreSQL hashes a name without the collation, so by hash it equals no text that ignores case.
                cast = "::text" if collation == "ci" else ""
                keys = [side.sql + cast * (side.kind == "text") for side in sides]
                keys[1] += " COLLATE " + collation
            if kind == "text" and self.chance(0.05):
                keys = [f"({key} = {value})" for key, value in zip(keys, ("current_setting('app.tenant')", "'k1'"))]
            conditions.append(f"{keys[0]} = {keys[1]}")
        if not only_equal and self.chance(0.15):
            conditions.append(self.predicate(left + right, 0))
        return " AND ".join(conditions)

    def join_again(self, depth):
        """A join of two, and a third relation, perhaps grouped, on the key of one of them."""
        first, second = self.table({"many", "ordered", "thousand", "middle"}), self.few_rows()
        third = self.table() if self.chance(0.6) else self.join(depth - 1, []) if depth > 1 else self.few_rows()
        kinds = {c.kind for c in first.columns} & {c.kind for c in third.columns}
        kind = self.random.choice(sorted(kinds) + ["int"] * 3 * ("int" in kinds))
        keys = [self.pick(relation.columns, {kind}).sql for relation in (first, second, third)]
        columns, name = [*first.columns, *second.columns], self.name("g")
        if self.chance(0.6):
            select = self.random.choice(("{0} AS c0, count(*) AS c1", "DISTINCT {0} AS c0, 1 AS c1")).format(keys[2])
            group = "" if "DISTINCT" in select else f" GROUP BY {keys[2]}"
            keys[2] = f"{name}.c0"
            third = Relation(f"(SELECT {select} FROM {third.sql}{group}) AS {name}", [Column(f"{name}.c1", "int")])
        above = self.random.choice(("JOIN", "JOIN", "JOIN", "LEFT JOIN"))
        return Relation(f"({first.sql} JOIN {second.sql} ON {keys[0]} = {keys[1]} {above} {third.sql} ON "
                        f"{self.random.choice(keys[:2])} = {keys[2]})", columns + third.columns)

    def join(self, depth, outer, right=None):
        if right is None and self.chance(0.12):
            return self.join_again(depth)
        kind = self.random.choice(("JOIN",) * 6 + ("LEFT JOIN",) * 3 + ("RIGHT JOIN", "RIGHT JOIN", "FULL JOIN"))
        if right is None and self.chance(0.25):
            left, right = self.table(SKIPPED), self.few_rows()
        else:
            left = self.relation(depth - 1, outer)
        if right is None:
            visible = left.columns if kind in ("JOIN", "LEFT JOIN") and self.chance(0.2) else []
            right = self.relation(depth - 1, visible)
        condition = self.equalities(left.columns, right.columns, kind == "FULL JOIN")
        columns = left.columns + right.columns
        if condition is None:
            if kind in ("RIGHT JOIN", "FULL JOIN"):
                kind = "LEFT JOIN"
            condition = "true"
        return Relation(f"({left.sql} {kind} {right.sql} ON {condition})", columns)

    # --- conditions ---------------------------------------------------------------------------------------------

    def predicate(self, columns, depth):
        column = self.random.choice(columns)
        choice = self.random.random()
        if depth > 0 and choice < 0.35:
            return self.subquery_predicate(columns, depth)
        if choice < 0.5 and column.kind in ORDERED:
            return f"{column.sql} {self.random.choice(('<', '<=', '>', '>='))} {self.literal(column.kind)}"
        if choice < 0.65:
            return f"{column.sql} = {self.literal(column.kind)}"
        if choice < 0.75:
            return f"{column.sql} IS {self.random.choice(('NOT ', 'NOT ', ''))}NULL"
        if choice < 0.85 and column.kind == "int":
            return f"{column.sql} % {self.random.randint(2, 5)} <> 0"
        if choice < 0.87 and column.kind == "int" and not self.steady:
            return f"same({column.sql}) <> 3"
        if choice < 0.88 and column.kind == "int":
            return f"found({column.sql}) <> 3"
        if choice < 0.95:
            return f"NOT ({self.predicate(columns, 0)})"
        return f"({self.predicate(columns, 0)} OR {self.predicate(columns, 0)})"

    def subquery_predicate(self, columns, depth):
        inner = self.relation(depth - 1)
        condition = self.equalities(columns, inner.columns)
        if condition is None:
            return "true"
        choice = self.random.random()
        where = f" AND {self.predicate(inner.columns, depth - 1)}" if self.chance(0.4) else ""
        if choice < 0.55:
            negation = "NOT " if self.chance(0.4) else ""
            return f"{negation}EXISTS (SELECT 1 FROM {inner.sql} WHERE {condition}{where})"
        outer_key, inner_key = self.matching(columns, inner.columns)
        if choice < 0.9:
            negation = "NOT " if self.chance(0.25) else ""
            if self.chance(0.3):
                where += f" AND {condition}"
            return f"{outer_key} {negation}IN (SELECT {inner_key} FROM {inner.sql} WHERE true{where})"
        return f"(SELECT count(*) FROM {inner.sql} WHERE {condition}{where}) > {self.random.randint(0, 3)}"

    def matching(self, left, right):
        kind = self.random.choice(sorted({c.kind for c in left} & {c.kind for c in right}))
        return [self.random.choice([c for c in columns if c.kind == kind]).sql for columns in (left, right)]

    # --- SELECT -------------------------------------------------------------------------------------------------

    def some(self, columns, least, most):
        return self.random.sample(columns, min(len(columns), self.random.randint(least, most)))

    def select(self, depth, outer, kinds=None):
        """A SELECT and the classes of its columns, which may be given."""
        if kinds is None and depth > 0 and self.chance(0.12):
            left, kinds = self.select(depth - 1, outer)
            right, _ = self.select(depth - 1, outer, kinds)
            operator = self.random.choice(("UNION ALL", "UNION ALL", "UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL",
                                           "EXCEPT ALL"))
            return f"({left}) {operator} ({right})", kinds
        relation = self.relation(depth, outer)
        while self.chance(0.15) and depth > 0:
            relation = self.join(depth, outer, relation)
        conditions = [self.predicate(relation.columns, depth) for _ in range(self.random.choice((0, 0, 0, 1, 1, 2)))]
        if outer and self.chance(0.7):
            conditions.append(self.equalities(list(outer), relation.columns) or "true")
        tail = f"FROM {relation.sql}" + (f" WHERE {' AND '.join(conditions)}" if conditions else "")
        if kinds is not None:
            return self.select_kinds(tail, relation.columns, kinds), kinds
        form = self.random.choice((self.select_plain,) * 8 + (self.select_groups,) * 4 + (
            self.select_distinct_on, self.select_windows, self.select_limit, self.select_one_row))
        return form(tail, relation.columns)

    def select_kinds(self, tail, columns, kinds):
        expressions = []
        for kind in kinds:
            candidates = [c.sql for c in columns if c.kind == kind]
            expressions.append(self.random.choice(candidates) if candidates else self.literal(kind))
        return f"SELECT {', '.join(expressions)} {tail}"

    def select_plain(self, tail, columns):
        chosen = self.some(columns, 1, 4)
        distinct = "DISTINCT " if self.chance(0.15) else ""
        expressions = [c.sql for c in chosen]
        kinds = [c.kind for c in chosen]
        if not distinct and self.chance(0.05):
            inner = self.relation(1)
            condition = self.equalities(columns, inner.columns)
            if condition is not None:
                expressions.append(f"(SELECT count(*) FROM {inner.sql} WHERE {condition})")
                kinds.append("int")
        return f"SELECT {distinct}{', '.join(expressions)} {tail}", kinds

    def aggregates(self, columns):
        result = [("count(*)", "int")]
        for column in self.some(columns, 0, 2):
            if column.kind in ORDERED:
                result.append((f"{self.random.choice(('min', 'max'))}({column.sql})", column.kind))
            result.append((f"count(DISTINCT {column.sql})", "int"))
            if column.kind == "int":
                result.append((f"sum({column.sql}) FILTER (WHERE {self.predicate(columns, 0)})", "int"))
        return result

    def select_groups(self, tail, columns):
        keys = self.some(columns, 1, 3)
        results = [(key.sql, key.kind) for key in keys] + self.aggregates(columns)
        if self.chance(0.05) and not self.steady:
            results.append(("100 / (count(*) - 1)", "int"))
        names = [key.sql for key in keys]
        group = ", ".join(names)
        if self.chance(0.2):
            group = self.random.choice((f"ROLLUP ({group})", f"CUBE ({group})", f"GROUPING SETS (({group}), ({names[0]}), ())"))
        having = self.random.choice(("", "", "", " HAVING count(*) > 1", f" HAVING NOT {keys[0].sql} IS NULL"))
        return f"SELECT {', '.join(sql for sql, _ in results)} {tail} GROUP BY {group}{having}", [kind for _, kind in results]

    def select_one_row(self, tail, columns):
        results = self.aggregates(columns)
        return f"SELECT {', '.join(sql for sql, _ in results)} {tail}", [kind for _, kind in results]

    def select_distinct_on(self, tail, columns):
        chosen = self.some(columns, 1, 3)
        names = ", ".join(c.sql for c in chosen)
        on = chosen[0].sql
        return f"SELECT DISTINCT ON ({on}) {names} {tail} ORDER BY {names}", [c.kind for c in chosen]

    def select_windows(self, tail, columns):
        chosen = self.some(columns, 1, 3)
        over = f"PARTITION BY {', '.join(c.sql for c in self.some(columns, 1, 2))}"
        functions = [f"count(*) OVER ({over})"]
        if self.chance(0.5):
            functions.append(f"rank() OVER ({over} ORDER BY {self.random.choice(columns).sql})")
        names = ", ".join(c.sql for c in chosen)
        return f"SELECT {names}, {', '.join(functions)} {tail}", [c.kind for c in chosen] + ["int"] * len(functions)

    def select_limit(self, tail, columns):
        chosen = self.some(columns, 1, 3)
        names = ", ".join(c.sql for c in chosen)
        offset = f" OFFSET {self.random.randint(1, 20)}" if self.chance(0.3) else ""
        return (f"SELECT {names} {tail} ORDER BY {names} LIMIT {self.random.choice((1, 3, 10, 100, 1000))}{offset}",
                [c.kind for c in chosen])

    def select_rented(self):
        """A SELECT of rows that have a match among those of a tenant, from tables of few pages and of many."""
        table = self.random.choice(("one", "ten", "thousand", *sorted(SKIPPED - {"spread"})))
        key = self.random.choice(SKIPPING.get(table, ("i2", "f8", "dt")) if self.chance(0.5) else sorted(self.available))
        kind = self.available[key][0]
        other = self.random.choice([name for name, column in sorted(self.available.items()) if column[0] == kind])
        condition = f"a.{key} = b.{other}" + self.random.choice(("", "", f" AND b.i8 <> {self.random.randint(0, 20)}"))
        rented = self.random.choice(("of_tenant", "rented", "by_period", "by_period"))
        if self.chance(0.4):
            return f"SELECT a.{key} FROM {table} AS a JOIN {rented} AS b ON {condition}", [kind]
        return f"SELECT a.{key} FROM {table} AS a WHERE EXISTS (SELECT 1 FROM {rented} AS b WHERE {condition})", [kind]

    def select_tenants(self, depth):
        """A SELECT that is executed for one tenant after the other."""
        outer = [Column("tenant.t", "int")] if self.chance(0.3) else []
        select, kinds = self.select_rented() if self.chance(0.6) else self.select(depth, outer)
        if self.chance(0.5):
            names = ", ".join(f"c{n}" for n in range(len(kinds)))
            return (f"SELECT q.* FROM generate_series(0, 3) AS tenant (t), LATERAL (SELECT set_config('app.tenant', t::text, "
                    f"false) AS s OFFSET 0) AS c, LATERAL (SELECT * FROM ({select}) AS l WHERE c.s IS NOT NULL OFFSET 0) "
                    f"AS q ({names})", kinds)
        return (f"SELECT t, length(set_config('app.tenant', t::text, false)), (SELECT count(*) + 0 * t FROM ({select}) AS q) "
                "FROM generate_series(0, 3) AS tenant (t)", ["int", "int", "int"])

    def query(self):
        """A whole query, which shows equal values alike; and its number of columns."""
        self.names, self.with_list = 0, []
        form = self.select_tenants if self.chance(0.12) and not self.steady else lambda depth: self.select(depth, [])
        select, kinds = form(self.random.choice((1, 1, 2, 2, 2, 3)))
        names = [f"c{n}" for n in range(len(kinds))]
        shown = ", ".join(SHOWN.get(kind, "{}").format(name) for name, kind in zip(names, kinds))
        with_list = ""
        if self.with_list:
            with_list = f"WITH RECURSIVE {', '.join(sql for _, _, sql in self.with_list)} "
        return f"{with_list}SELECT {shown} FROM ({select}) AS result ({', '.join(names)})", len(kinds)
