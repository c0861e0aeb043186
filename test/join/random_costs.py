#!/usr/bin/env python3
"""CPU time of random queries with join filters, of that without.

    random_costs.py [--queries=N] [--seed=S] [--least=MS]

Connects as random_queries.py does, whose tables it makes, with statistics. Each query runs in turns with
bloomfilter.join_filters = off and on, under PostgreSQL's settings, and with limits for filters and for planning that
suit tables of 20,000 rows. Of those that have another plan then, and take at least --least ms without filters, it
prints the sum, the three with the worst ratio, and the plans of these. It fails if one takes three times as long.
"""
import argparse
import random
import sys

import random_queries
from generator import Generator

ROUNDS = 5
MOST = 3
SHOWN = 3
LIMITS = [("bloomfilter.join_filter_min_rows", "1000"), ("bloomfilter.join_planning_cost", "100"),
          ("bloomfilter.join_planning", "on")]


class Costs(random_queries.Runner):
    def __init__(self, args):
        super().__init__(args)
        self.process = int(self.connection.run("SELECT pg_backend_pid()")[0][0])
        self.measured = []

    def set(self, mode):
        self.connection.run(random_queries.set_statement([*LIMITS, ("bloomfilter.join_filters", mode)]))

    def cpu(self, mode, sql):
        """In ms"""
        self.set(mode)
        times = []
        for statement in ("SELECT", sql):
            self.connection.run(statement)
            with open(f"/proc/{self.process}/schedstat", encoding="ascii") as file:
                times.append(int(file.read().split()[0]) / 1e6)
        return times[1] - times[0]

    def explain(self, mode, sql, options="COSTS OFF"):
        self.set(mode)
        return "\n".join(row[0].decode() for row in self.connection.run(f"EXPLAIN ({options}) {sql}"))

    def run_query(self, number):
        rng = random.Random(f"{self.args.seed}/{number}")
        sql, _ = Generator(rng, self.available, self.tables, steady=True).query()
        if self.plan(random_queries.Query(sql, [sql], LIMITS, False)) is None:
            return
        self.run_count += 1
        try:
            if self.cpu("off", sql) < self.args.least or self.explain("off", sql) == self.explain("on", sql):
                return
            times = [(self.cpu("off", sql), self.cpu("on", sql)) for _ in range(ROUNDS)]
        except random_queries.ServerError as error:
            if error.sqlstate.startswith(random_queries.BROKEN):
                raise
            return
        off, on = map(min, zip(*times))
        self.measured.append((on / off, off, on, number, sql))

    def report(self):
        self.measured.sort(reverse=True)
        off, on = (sum(query[n] for query in self.measured) for n in (1, 2))
        print(f"{self.run_count} queries, {len(self.measured)} with other plans and of at least {self.args.least} ms: "
              f"sum {on / max(off, 1):.2f}")
        for ratio, off, on, number, sql in self.measured[:SHOWN]:
            print(f"\n-- query {number}: {on:.0f} of {off:.0f} ms, {ratio:.2f}\n{sql}")
            for mode in ("off", "on"):
                print(f"-- {mode}\n{self.explain(mode, sql, 'ANALYZE, TIMING OFF')}")
        return self.measured and self.measured[0][0] < MOST


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--least", type=float, default=20)
    parser.set_defaults(connection="", verbose=False, only=None)
    costs = Costs(parser.parse_args())
    number = 0
    while costs.run_count < costs.args.queries:
        costs.run_query(number)
        number += 1
    return not costs.report()


if __name__ == "__main__":
    sys.exit(main())
