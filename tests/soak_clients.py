"""The clients of the soak: one class a kind, each knows what its statements must answer."""

import socket
import threading
import time

import psycopg

import wire
from pool import StatementFailed

STATIC_ROWS = 100_000
ENDLESS = "SELECT count(*) FROM range(1000000000) a, range(1000000000) b"


def prepare(pool):
    pool.execute(f"CREATE TABLE soak_static AS SELECT range AS k, range * 7 AS v, 's' || range AS s FROM range({STATIC_ROWS})")


class Work:
    """step() does one thing and asserts what must be; an error of the pool goes up. check() at the end of the run: what
    did not hold, as texts."""

    name = "?"
    rest_s = 0.0

    def __init__(self, pool, tally, random, number):
        self.pool, self.tally, self.random, self.number = pool, tally, random, number
        self.connection = None

    def step(self):
        raise NotImplementedError

    def check(self):
        return []

    def pause_s(self):
        return self.rest_s * self.random.random() * 2

    def connect(self):
        if self.connection is None or self.connection.closed:
            self.connection = psycopg.connect(self.pool.pg_dsn, autocommit=True, connect_timeout=30)
        return self.connection

    def after_error(self):
        """Half of the time the connection is used on, as clients do."""
        if self.connection is not None and (self.connection.broken or self.random.random() < 0.5):
            self.close()

    def close(self):
        if self.connection is not None:
            self.connection.close()
        self.connection = None


class Points(Work):
    name = "point queries (pg, prepared)"

    def step(self):
        k = self.random.randrange(STATIC_ROWS)
        rows = self.connect().execute("SELECT v, s FROM soak_static WHERE k = %s", (k,), prepare=True).fetchall()
        assert rows == [(k * 7, f"s{k}")], f"k {k}: {rows}"
        self.tally.acknowledge("select done")


class Aggregates(Work):
    name = "aggregates (HTTP)"
    rest_s = 0.1

    def step(self):
        remainder = self.random.randrange(7)
        (row,) = self.pool.sql(f"SELECT count(*) AS n, sum(v)::BIGINT AS s FROM soak_static WHERE k % 7 = {remainder}")
        keys = range(remainder, STATIC_ROWS, 7)
        assert row == {"n": len(keys), "s": sum(keys) * 7}, row
        self.tally.acknowledge("select done")


class Writer(Work):
    """Inserts and deletes, single and in transactions. Knows what was acknowledged and what nobody can say."""

    name = "inserts, deletes, transactions (pg)"
    rest_s = 0.05
    STEPS_A_TABLE = 60

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.generation, self.steps, self.lost = 0, None, []

    def table(self):
        return f"soak_w{self.number}_{self.generation}"

    def begin_table(self):
        # Either may have been done by a statement whose answer was lost.
        self.connect().execute(f"DROP TABLE IF EXISTS {self.table()}")
        self.connect().execute(f"CREATE TABLE IF NOT EXISTS {self.table()} (k BIGINT)")
        self.present, self.unsure, self.steps = set(), set(), 0

    def step(self):
        if self.steps is None:
            self.begin_table()
        self.steps += 1
        if self.steps > self.STEPS_A_TABLE:
            self.compare()
            self.connect().execute(f"DROP TABLE IF EXISTS {self.table()}")
            self.generation, self.steps = self.generation + 1, None
            return
        match self.random.randrange(4):
            case 0 | 1:
                self.change({self.key()}, lambda c, keys: c.execute(f"INSERT INTO {self.table()} VALUES ({min(keys)})"))
                self.tally.acknowledge("insert done")
            case 2 if self.present:
                self.change({min(self.present)}, lambda c, keys: c.execute(f"DELETE FROM {self.table()} WHERE k = {min(keys)}"), gone=True)
                self.tally.acknowledge("delete done")
            case _:
                self.transaction()

    def key(self):
        return self.steps * 100

    def change(self, keys, statement, gone=False):
        connection = self.connect()
        self.present -= keys
        self.unsure |= keys
        try:
            statement(connection, keys)
        except psycopg.Error as error:
            if "nothing was written" in str(error):
                self.unsure -= keys
                self.present |= keys if gone else set()
            raise
        self.unsure -= keys
        if not gone:
            self.present |= keys

    def transaction(self):
        keys = {self.key() + i for i in range(3)}
        commit = self.random.random() < 0.5

        def run(connection, keys):
            with connection.transaction(force_rollback=not commit):
                for key in sorted(keys):
                    connection.execute(f"INSERT INTO {self.table()} VALUES ({key})")
                inside = connection.execute(f"SELECT count(*) FROM {self.table()} WHERE k IN ({','.join(map(str, keys))})").fetchone()[0]
                assert inside == len(keys), f"a transaction sees {inside} of its {len(keys)} rows"

        if commit:
            self.change(keys, run)
        else:
            # Rolled back or lost: it never comes.
            run(self.connect(), keys)

    def compare(self):
        stored = [row[0] for row in self.connect().execute(f"SELECT k FROM {self.table()}").fetchall()]
        assert len(set(stored)) == len(stored), f"{self.table()}: rows are there twice"
        missing, extra = self.present - set(stored), set(stored) - self.present - self.unsure
        assert not missing and not extra, f"{self.table()}: lost {sorted(missing)}, never acknowledged {sorted(extra)}"

    def check(self):
        if self.steps is None:
            return []
        try:
            self.compare()
        except AssertionError as error:
            return [str(error)]
        finally:
            self.close()
        return []


class Tables(Work):
    name = "CREATE TABLE AS, count, drop (pg)"
    rest_s = 0.5

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.made = 0

    def step(self):
        self.made += 1
        table, rows = f"soak_c{self.number}_{self.made}", self.random.choice([1, 1000, 2049, 200_000])
        connection = self.connect()
        connection.execute(f"CREATE TABLE {table} AS SELECT range AS n, repeat('x', 20) AS s FROM range({rows})")
        found = connection.execute(f"SELECT count(*), sum(n)::BIGINT FROM {table}").fetchone()
        assert found == (rows, rows * (rows - 1) // 2), f"{table}: {found}"
        connection.execute(f"DROP TABLE {table}")
        self.tally.acknowledge("create done")


class Streams(Work):
    name = "big streams (pg)"
    rest_s = 0.5

    def step(self):
        rows = self.random.choice([100_000, 300_000])
        seen = total = 0
        for n, _ in self.connect().cursor().stream(f"SELECT range, 'row ' || range FROM range({rows})", size=1000):
            seen, total = seen + 1, total + n
        assert (seen, total) == (rows, rows * (rows - 1) // 2), f"{seen} of {rows} rows, sum {total}"
        self.tally.acknowledge("select done")


class Pages(Work):
    name = "stored results by pages (HTTP)"
    rest_s = 0.5

    def step(self):
        rows = self.random.choice([0, 1, 1024, 10_000])
        got = [row["n"] for row in self.pool.sql(f"SELECT range AS n FROM range({rows}) ORDER BY n")]
        assert got == list(range(rows)), f"{len(got)} of {rows} rows"
        self.tally.acknowledge("select done")


class Portals(Work):
    name = "row limits in a transaction (pg)"
    rest_s = 0.3

    def step(self):
        rows, limit = self.random.choice([(2049, 1), (5000, 1024), (30_000, 1000)])
        with wire.Connection(self.pool) as connection:
            got, _ = connection.fetch_by(f"SELECT range FROM range({rows}) ORDER BY 1", limit)
        assert [int(row[0]) for row in got] == list(range(rows)), f"{len(got)} of {rows} rows"
        self.tally.acknowledge("select done")


class Cancels(Work):
    name = "endless statements and their cancels (pg and HTTP)"
    rest_s = 0.3
    WITHIN_S = 10  # a machine whose every core has ten clients is slow; how long they took stands in the report

    def step(self):
        wait_s = self.random.random() * 0.5
        if self.random.random() < 0.5:
            self.by_http(wait_s)
        else:
            self.by_pg(wait_s)

    def by_pg(self, wait_s):
        connection, over, asked = self.connect(), threading.Event(), []

        def cancel():
            # One that comes before the statement does nothing, so it is said again.
            while not over.wait(wait_s + 0.1 * len(asked)):
                asked.append(time.monotonic())
                connection.cancel_safe(timeout=10)

        canceller = threading.Thread(target=cancel, daemon=True)
        canceller.start()
        try:
            connection.execute(ENDLESS)
        except psycopg.errors.QueryCanceled:
            took = time.monotonic() - asked[0]
            assert took < self.WITHIN_S, f"a cancel took {took:.1f} s"
            self.tally.done("endless statements: from a cancel by pg to its end", took)
            self.tally.acknowledge("select cancelled")
        else:
            raise AssertionError("an endless statement ended")
        finally:
            over.set()
            canceller.join()

    def by_http(self, wait_s):
        statement = self.pool.submit(ENDLESS)
        threading.Event().wait(wait_s)
        asked = time.monotonic()
        answer = self.pool.request("DELETE", f"/api/queries/{statement['id']}")
        answer.raise_for_status()
        statement = self.pool.wait(statement)
        took = time.monotonic() - asked
        if statement["status"] == "failed":
            raise StatementFailed(statement)  # its node was killed
        assert statement["status"] == "cancelled" and took < self.WITHIN_S, f"{statement['status']} {took:.1f} s after a cancel"
        self.tally.done("endless statements: from a cancel by HTTP to its end", took)
        self.tally.acknowledge("select cancelled")


class Vanishing(Work):
    name = "clients that vanish (pg)"
    rest_s = 0.5

    def step(self):
        query = self.random.choice(["SELECT range, repeat('x', 100) FROM range(100000000)", ENDLESS,
                                    "SELECT md5(range::VARCHAR) AS h FROM range(3000000) ORDER BY h"])
        with wire.Connection(self.pool) as connection:
            connection.send(b"Q", query.encode() + b"\0")
            if "repeat" in query:
                for _ in range(self.random.randrange(2000)):
                    kind, body = connection.receive()
                    wire.raise_error(kind, body)
            else:
                threading.Event().wait(self.random.random() * 0.3)
            connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


class Spilling(Work):
    name = "sorts and groups that spill (pg)"
    rest_s = 3

    def step(self):
        connection = self.connect()
        if self.random.random() < 0.5:
            sql, want = "SELECT count(*) FROM (SELECT md5(range::VARCHAR) AS h FROM range(1500000) GROUP BY h)", 1_500_000
        else:
            sql, want = "SELECT count(*) FROM (SELECT h, row_number() OVER (ORDER BY h) AS n FROM (SELECT md5(range::VARCHAR) AS h FROM range(1000000))) WHERE n > 0", 1_000_000
        found = connection.execute(sql).fetchone()[0]
        assert found == want, f"{found} of {want}"
        self.tally.acknowledge("select done")


class Mistakes(Work):
    name = "mistakes (pg and HTTP)"
    rest_s = 0.3
    KINDS = (("SELECT * FROM soak_nowhere", "42P01"), ("SELEC 1", "42601"), ("SELECT nothing FROM soak_static", "42703"),
             ("SELECT s::INTEGER FROM soak_static", "22P02"), ("SELECT * FROM read_csv('/etc/passwd')", "42501"))

    def step(self):
        sql, want = self.random.choice(self.KINDS)
        try:
            if self.random.random() < 0.5:
                self.connect().execute(sql)
            else:
                self.pool.execute(sql)
        except psycopg.Error as error:
            if error.sqlstate != want:
                raise
        except StatementFailed as error:
            found = error.statement.get("sqlstate") or error.statement.get("details", {}).get("sqlstate")
            if found != want:
                raise
        else:
            raise AssertionError(f"no error: {sql}")


MIX = ((Points, 3), (Aggregates, 2), (Writer, 3), (Tables, 1), (Streams, 1), (Pages, 1), (Portals, 1), (Cancels, 2), (Vanishing, 1),
       (Spilling, 1), (Mistakes, 1))


class Scans(Work):
    """Reads a table of a few files and, now and then, replaces it. What is read is one version, whole."""

    name = "scans of tables that are replaced (pg)"
    rest_s = 0.1
    ROWS = 120_000
    FILES = 3

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.version, self.possible = 0, set()
        self.table = f"soak_scan{self.number}"

    def step(self):
        if not self.possible or self.random.random() < 0.15:
            self.replace()
        else:
            self.read()
            self.tally.acknowledge("select done")

    def replace(self):
        """In one transaction, so that whoever reads finds the old one or the new one."""
        self.version += 1
        connection = self.connect()
        before = set(self.possible) or {None}
        self.possible = before | {self.version}
        with connection.transaction():
            connection.execute(f"CREATE OR REPLACE TABLE {self.table} (i BIGINT, version INTEGER, s VARCHAR)")
            part = self.ROWS // self.FILES
            for file in range(self.FILES):
                connection.execute(f"INSERT INTO {self.table} SELECT range, {self.version}, md5(range::VARCHAR || {self.version}) "
                                   f"FROM range({file * part}, {(file + 1) * part})")
        self.possible = {self.version}

    def read(self):
        connection = self.connect()
        try:
            found = connection.execute(f"SELECT count(*), sum(i)::BIGINT, min(version), max(version), count(DISTINCT s) FROM {self.table}").fetchone()
        except psycopg.errors.UndefinedTable:
            assert None in self.possible, f"{self.table} is gone"
            self.possible = set()
            return
        version = found[2]
        assert version in self.possible, f"{self.table} is of version {version}, not one of {self.possible}"
        wanted = (self.ROWS, self.ROWS * (self.ROWS - 1) // 2, version, version, self.ROWS)
        assert found == wanted, f"{self.table}: {found}, not {wanted}"
        self.possible = {version}


# Less of what needs no store.
FAULTS_MIX = ((Points, 2), (Aggregates, 1), (Writer, 2), (Tables, 1), (Streams, 1), (Pages, 1), (Cancels, 1), (Vanishing, 1), (Scans, 4))
