"""A pool of three nodes over an S3 store behind a proxy that counts bytes and requests and lets each request wait: how often
the same bytes are fetched, by each policy of routing.

    python tests/warm_pool.py --tables 20 --rounds 30          the long form (./dev warm-pool), prints a table
    python tests/warm_pool.py --changes                        nodes join, die, restart, … (pool_changes.py)
    tests/test_placement.py                                    the short form, in ./dev test
"""

import argparse
import contextlib
import functools
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import threading
import time

import psycopg

import pool_changes
from fault_proxy import Fault, FaultProxy
from pool import Pool, clean_environment, wait_until
from stores import S3

DRIVER = "/usr/share/java/postgresql.jar"
READER = pathlib.Path(__file__).parent / "java" / "PreparedReader.java"
METHODS = re.compile(rb"(GET|HEAD|PUT|POST|DELETE) ")
CATALOG_NOISE = 1.02  # heads of answers count as bytes, too


class Meter(Fault):
    """Counts requests and the bytes of answers; each request waits first, as over a network."""

    def __init__(self, delay_s=0.0):
        self.delay_s = delay_s
        self.lock = threading.Lock()
        self.reset()

    def reset(self):
        with self.lock:
            self.requests, self.bytes = 0, 0

    def request(self, proxy, client, data):
        if METHODS.match(data):
            with self.lock:
                self.requests += 1
            if self.delay_s:
                time.sleep(self.delay_s)  # the store's distance, not a wait for something
        return data

    def response(self, proxy, client, data):
        with self.lock:
            self.bytes += len(data)
        return data


class WarmPool:
    """The pool, its store and the meter between. The tables t0, t1 … are of different sizes and cold when it is up."""

    def __init__(self, folder, tables, rows, nodes=3, delay_s=0.03, cache="1GiB"):
        self.folder, self.tables, self.rows, self.nodes, self.cache = pathlib.Path(folder), tables, rows, nodes, cache
        self.meter = Meter(delay_s)
        self.stack = contextlib.ExitStack()

    def __enter__(self):
        self.s3 = self.stack.enter_context(S3(self.folder / "s3"))
        self.proxy = self.stack.enter_context(FaultProxy(("127.0.0.1", self.s3.port)))
        self.proxy.fault = self.meter
        self.pool = Pool(self.folder / "pool", nodes=self.nodes, node_memory="1GiB", flags=self._flags("auto"),
                         env=self.s3.env())
        self.stack.enter_context(self.pool)
        for table in range(self.tables):
            self.pool.sql(f"CREATE TABLE t{table} AS SELECT range AS i, md5((range + {table})::VARCHAR) AS s "
                          f"FROM range({self._rows_of(table)})", within_s=120)
        return self

    def __exit__(self, *_):
        self.stack.close()

    def _rows_of(self, table):
        return self.rows * (1 + table % 4)

    def _flags(self, routing):
        return self.s3.flags(port=self.proxy.port) + ["--cache-max-bytes", self.cache, "--routing", routing]

    def restart(self, routing, cold):
        """As a new gateway; cold: with empty caches as well."""
        self.pool.stop()
        if cold:
            for file in self.pool.dir.rglob("cache/*"):
                file.unlink()
        self.pool.arguments = [*self.pool.arguments[:-len(self._flags(routing))], *self._flags(routing)]
        self.pool.start()
        wait_until(lambda: len(self.pool.online_nodes()) == self.nodes, 60, "all nodes are there")
        # Until the gateway has looked at the lake it knows no tables.
        self.pool.sql("SELECT count(*) FROM t0 WHERE i < 0")
        wait_until(lambda: self.explain(0)["reason"].split(":")[0] != "no_refs", 60, "the mirror has the tables")
        self.meter.reset()

    def explain(self, table):
        return self.pool.request("POST", "/api/workspaces/main/explain-route", json={"sql": self.query(table)}).json()

    def query(self, table):
        """Needs each byte of the table but its footers."""
        return f"SELECT count(*) AS n, sum(i)::BIGINT AS total, max(s) AS last FROM t{table}"

    def unique_bytes(self):
        return sum(file.stat().st_size for file in self.s3.dir.rglob("*.parquet"))

    def check(self, table, n, total):
        rows = self._rows_of(table)
        assert (int(n), int(total)) == (rows, rows * (rows - 1) // 2), (table, n, total)

    # --- readers

    def read_http(self, table):
        """Returns the profile."""
        statement = self.pool.execute(self.query(table))
        # As it came with the end of the statement: the rest of a result is where it was made, which may be gone.
        row = statement["first_page"]["rows"][0]
        self.check(table, row["n"], row["total"])
        return self.pool.request("GET", f"/api/queries/{statement['id']}/profile").json()

    def read_pg(self, tables):
        with psycopg.connect(self.pool.pg_dsn, autocommit=True) as connection:
            for table in tables:
                n, total, _ = connection.execute(self.query(table)).fetchone()
                self.check(table, n, total)

    def read_psql(self, tables):
        script = "\n".join(self.query(table) + ";" for table in tables)
        done = subprocess.run(["psql", self.pool.pg_dsn, "-v", "ON_ERROR_STOP=1", "-At", "-F", ",", "-f", "-"],
                              input=script, capture_output=True, text=True, env=clean_environment())
        assert done.returncode == 0, done.stderr
        for table, line in zip(tables, done.stdout.split(), strict=True):
            self.check(table, *line.split(",")[:2])

    def read_jdbc(self, tables):
        """Prepared statements of pgjdbc, on the server after the first."""
        ready = self.pool.ready()
        host, port = ready["pg"].rsplit(":", 1)
        env = clean_environment(PGHOST=host, PGPORT=port, PGUSER=ready["user"], PGPASSWORD=ready["password"],
                                PGDATABASE=ready["catalog"])
        done = subprocess.run(["java", "-XX:TieredStopAtLevel=1", "-cp", DRIVER, str(READER), *map(str, tables)],
                              env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        for table, line in zip(tables, done.stdout.split(), strict=True):
            self.check(table, *line.split(",")[:2])

    def load(self, seed, rounds, readers):
        """Each of `readers` (methods that take a list of tables) reads every table, then `rounds` more by Zipf."""
        weights = [1 / (1 + table) ** 0.8 for table in range(self.tables)]

        def run(reader, number):
            draw = random.Random(seed * 1000 + number)
            tables = list(range(self.tables))
            draw.shuffle(tables)
            reader(tables + draw.choices(range(self.tables), weights, k=rounds))
        self.load_with([functools.partial(run, reader, number) for number, reader in enumerate(readers)])

    @staticmethod
    def load_with(calls):
        """All at once; the first failure of any is raised."""
        failures = []

        def run(call):
            try:
                call()
            except BaseException as error:  # noqa: BLE001  told by the caller
                failures.append(error)
        threads = [threading.Thread(target=run, args=(call,)) for call in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]

    def outcomes(self):
        text = self.pool.request("GET", "/metrics").text
        return {reason: int(float(count)) for reason, count in
                re.findall(r'^roost_routing_decisions_total\{reason="(\w+)"\} (\S+)', text, re.M)}

    def homes(self, table, state=None):
        """Names of the nodes where a table (a name, or the number of one of the pool's) is warm, or in that state."""
        return [home["node"] for home in self.placed(table) if home["warm_bytes"] > 0 and state in (None, home["state"])]

    def placed(self, table):
        name = f"t{table}" if isinstance(table, int) else table
        answer = self.pool.request("GET", f"/api/workspaces/main/placement?table={name}")
        return answer.json()[0]["homes"] if answer.status_code == 200 else []

    def fetched(self, call):
        """Bytes and requests of the store meanwhile."""
        self.meter.reset()
        call()
        return self.meter.bytes, self.meter.requests


def read_by_http(warm):
    return lambda tables: [warm.read_http(table) for table in tables]


def ratio(warm, routing, seed, rounds, readers):
    """Store bytes ÷ unique bytes of a load that begins cold."""
    warm.restart(routing, cold=True)
    began = time.monotonic()
    warm.load(seed, rounds, readers)
    return {"routing": routing, "ratio": warm.meter.bytes / warm.unique_bytes(), "requests": warm.meter.requests,
            "seconds": round(time.monotonic() - began, 1), "outcomes": warm.outcomes()}


def rows_of(routing, found):
    return (f"{routing:13} store ÷ unique {found['ratio']:.3f}  requests {found['requests']:5}  {found['seconds']} s  "
            f"{found['outcomes']}")


def hot_table(warm, clients, reads):
    """Many read one table at once: how many nodes have it in the end, and what that took."""
    warm.restart("auto", cold=True)
    hot = warm.tables - 1
    warm.load_with([lambda: warm.read_pg([hot] * reads)] * clients)
    wait_until(lambda: len(warm.homes(hot)) > 1, 60, "the hot table is warm on more than one node")
    return len(warm.homes(hot)), warm.outcomes()


def killed_node(warm, seed, rounds, readers):
    """kill -9 of a node while all is warm and read: bytes fetched from then on, of all that there are."""
    warm.restart("auto", cold=True)
    warm.load(seed, 0, readers)
    warm.meter.reset()
    victim = warm.pool.node_pid(1)
    killer = threading.Timer(0.5, warm.pool.kill_node, [1])
    killer.start()
    warm.load(seed + 1, rounds, readers)
    killer.join()
    warm.pool.wait_node_replaced(1, victim)
    under_load = warm.meter.bytes / warm.unique_bytes()
    warm.meter.reset()
    warm.load(seed + 2, 0, readers)
    return under_load, warm.meter.bytes / warm.unique_bytes()


def rolling_restart(warm, seed, readers):
    """Each node killed in turn and waited for; then everything is read: bytes fetched, of all that there are."""
    warm.meter.reset()
    for index in range(warm.nodes):
        victim = warm.pool.node_pid(index)
        warm.pool.kill_node(index)
        warm.pool.wait_node_replaced(index, victim)
    wait_until(lambda: len(warm.pool.online_nodes()) == warm.nodes, 60, "all nodes are there")
    warm.load(seed, 0, readers)
    return warm.meter.bytes / warm.unique_bytes()


def changes(warm, readers, judge):
    for row in pool_changes.Changes(warm, readers).all():
        print(pool_changes.text_of(row), flush=True)
        judge(row["change"], pool_changes.is_good(row))
        for failure in row["failed"][:3]:
            print(f"    {failure}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tables", type=int, default=20)
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--rounds", type=int, default=40, help="reads of each reader past the first of each table")
    parser.add_argument("--readers", type=int, default=1, help="of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--changes", action="store_true", help="instead: members come, go and change under load")
    options = parser.parse_args()
    failed = []

    def judge(what, good):
        if not good:
            failed.append(what)
    with tempfile.TemporaryDirectory(prefix="roost-warm-") as folder, \
            WarmPool(folder, options.tables, options.rows) as warm:
        print(f"{options.tables} tables, {warm.unique_bytes() >> 20} MiB, 3 nodes, 30 ms a request")
        if options.changes:
            changes(warm, 2 * options.readers, judge)
            return finish(failed)
        readers = [warm.read_psql, warm.read_jdbc, read_by_http(warm)] * options.readers
        for routing, good in (("affinity", lambda r: r <= 1.05), ("segments", lambda r: True),
                              ("least_loaded", lambda r: r > 2), ("round_robin", lambda r: True)):
            found = ratio(warm, routing, options.seed, options.rounds, readers)
            print(rows_of(routing, found), flush=True)
            judge(routing, good(found["ratio"]))
        nodes, outcomes = hot_table(warm, 32, 10)
        print(f"a hot table under 32 clients: warm on {nodes} nodes  {outcomes}", flush=True)
        under_load, after = killed_node(warm, options.seed, options.rounds, readers)
        print(f"kill -9 of one node under load: {under_load:.3f} of the bytes fetched, {after:.3f} once it is back; no failed read")
        judge("kill -9", under_load <= 1.05 / 3 and after <= 0.02)
        again = rolling_restart(warm, options.seed, readers)
        print(f"each node killed in turn: {again:.3f} of the bytes fetched again")
        judge("rolling restart", again <= 0.02)
    finish(failed)


def finish(failed):
    if failed:
        sys.exit(f"out of bounds: {', '.join(failed)}")


if __name__ == "__main__":
    main()
