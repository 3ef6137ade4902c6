"""16 writers and 16 readers at once: no client hears of a locked catalog, every count is exact, and readers do not wait for
writers.

    python tests/writers_readers.py --seconds 600             the long form, prints rates and latencies
    tests/test_writers_readers.py                             the short form, in ./dev test

Writers insert into one shared table and add to counters of their own; each fifth write is a transaction of two statements.
Readers sum a writer's counter and count its rows: what they see never goes back, and is a whole number of transactions. The
readers run alone first: that is what their latency among writers is compared with.
"""

import argparse
import contextlib
import pathlib
import sys
import tempfile
import threading
import time

import psycopg

from pool import Pool
from stores import Postgres

ROWS = 30  # of an insert
FORBIDDEN = ("database is locked", "database table is locked")


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else float("nan")


class Clients:
    def __init__(self, pool, writers=16, readers=16):
        self.pool, self.writers, self.readers = pool, writers, readers
        self.inserted = [0] * writers  # inserts that were acknowledged
        self.read_s, self.write_s, self.errors = [], [], []
        self.stop, self.lock = threading.Event(), threading.Lock()

    def prepare(self):
        self.pool.execute("CREATE TABLE shared_rows (writer INTEGER, n BIGINT, part INTEGER)")
        self.pool.execute(f"CREATE TABLE counters AS SELECT range::INTEGER AS writer, 0::BIGINT AS n FROM range({self.writers})")
        return self

    def run(self, seconds, writers):
        """Latencies of that time alone."""
        self.stop.clear()
        self.read_s, self.write_s = [], []
        threads = [threading.Thread(target=self.guarded, args=(self.read, i), daemon=True) for i in range(self.readers)]
        if writers:
            threads += [threading.Thread(target=self.guarded, args=(self.write, i), daemon=True) for i in range(self.writers)]
        for thread in threads:
            thread.start()
        self.stop.wait(seconds)
        self.stop.set()
        for thread in threads:
            thread.join(120)
        assert not any(thread.is_alive() for thread in threads), "a client hangs"

    def guarded(self, work, number):
        try:
            with psycopg.connect(self.pool.pg_dsn, autocommit=True, connect_timeout=20) as connection:
                while not self.stop.is_set():
                    work(connection, number)
        except Exception as error:  # noqa: BLE001: every kind is a failure
            with self.lock:
                self.errors.append((work.__name__, number, getattr(error, "sqlstate", None), str(error)))
            self.stop.set()

    def write(self, connection, writer):
        step = self.inserted[writer]
        began = time.monotonic()
        insert = f"INSERT INTO shared_rows SELECT {writer}, {step}, range FROM range({ROWS})"
        add = f"UPDATE counters SET n = n + 1 WHERE writer = {writer}"
        try:
            if step % 5 == 4:
                with connection.transaction():
                    connection.execute(insert)
                    connection.execute(add)
            else:
                connection.execute(insert)
                self.until_taken(connection, add)
        except psycopg.errors.SerializationFailure as error:
            assert step % 5 == 4, f"a statement of its own was not run again: {error}"
            return  # a transaction that lost a race: run again by its client, as it is told
        self.inserted[writer] += 1
        self.write_s.append(time.monotonic() - began)

    def until_taken(self, connection, statement):
        """All writers change one table: more of them lose a race than the gateway runs again."""
        while True:
            try:
                return connection.execute(statement)
            except psycopg.errors.SerializationFailure:
                if self.stop.is_set():
                    return connection.execute(statement)

    def read(self, connection, reader):
        writer = reader % self.writers
        at_least = self.inserted[writer]
        began = time.monotonic()
        rows, steps = connection.execute(
            "SELECT count(*), count(DISTINCT n) FROM shared_rows WHERE writer = %s", [writer]).fetchone()
        self.read_s.append(time.monotonic() - began)
        assert rows == steps * ROWS, f"a part of an insert: {rows} rows of {steps}"
        assert steps >= at_least, f"an acknowledged insert is not seen: {steps} of {at_least}"

    def check(self):
        assert not self.errors, self.errors[:3]
        rows = self.pool.sql("SELECT writer, count(*) AS n FROM shared_rows GROUP BY writer")
        counted = {int(row["writer"]): int(row["n"]) for row in rows}
        counters = {int(row["writer"]): int(row["n"]) for row in self.pool.sql("SELECT writer, n FROM counters")}
        for writer, inserted in enumerate(self.inserted):
            assert counted.get(writer, 0) == inserted * ROWS, f"writer {writer}: {counted.get(writer)} rows of {inserted} inserts"
            assert counters[writer] == inserted, f"writer {writer}: its counter says {counters[writer]} of {inserted}"
        for log in self.pool.dir.glob("log/gateway.log"):
            text = log.read_text(errors="replace")
            assert not any(words in text for words in FORBIDDEN)


def report(clients, seconds, what):
    ms = [1000 * s for s in clients.read_s]
    line = f"{what}: {len(ms) / seconds:7.1f} reads/s, p50 {percentile(ms, 0.5):6.1f} ms, p99 {percentile(ms, 0.99):6.1f} ms, max {max(ms):6.1f} ms"
    if clients.write_s:
        ms = [1000 * s for s in clients.write_s]
        line += f"; {len(ms) / seconds:5.1f} writes/s, p50 {percentile(ms, 0.5):6.1f} ms, p99 {percentile(ms, 0.99):6.1f} ms"
    print(line, flush=True)


def measure(pool, seconds):
    clients = Clients(pool).prepare()
    pool.execute("INSERT INTO shared_rows SELECT range % 16, -1 - range % 100, 0 FROM range(0)")
    alone = max(seconds / 4, 2)
    clients.run(alone, writers=False)
    report(clients, alone, "readers alone     ")
    clients.run(seconds, writers=True)
    report(clients, seconds, "readers and writers")
    clients.run(alone, writers=False)
    report(clients, alone, "readers afterwards ")
    clients.check()
    metrics = pool.request("GET", "/metrics").text
    for name in ("roost_conflict_retries_total", "roost_write_lease_wait_seconds_sum", "roost_write_lease_wait_seconds_count"):
        print("\n".join(line for line in metrics.splitlines() if line.startswith(name)))
    return clients


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--catalog", choices=["sqlite", "postgres"], default="sqlite")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        flags = stack.enter_context(Postgres()).flags() if options.catalog == "postgres" else []
        pool = stack.enter_context(Pool(pathlib.Path(directory) / "pool", nodes=3, node_memory="1GiB", flags=flags))
        measure(pool, options.seconds)
    print("all counts exact, no error")
    return 0


if __name__ == "__main__":
    sys.exit(main())
