"""What happens when processes die: errors that say so, nothing lost, nothing hung, nothing short."""

import threading
import time

import psycopg
import pytest

import duck
import wire
from pool import StatementFailed, wait_until

RETRYABLE = {"57P01", "57P03", "08006", "08001", "08000", "08007", "40001", "53300"}


def connect(pool):
    return psycopg.connect(pool.pg_dsn, autocommit=True, connect_timeout=10)


def test_node_killed_mid_stream_is_an_error_and_never_a_short_result(make_pool):
    pool = make_pool(nodes=1)
    for _ in range(3):
        with wire.Connection(pool) as connection:
            connection.send(b"Q", b"SELECT range, repeat('x', 200) FROM range(5000000)\0")
            seen = 0
            while seen < 1000:
                kind, _ = connection.receive()
                seen += kind == b"D"
            old = pool.kill_node(0)
            with pytest.raises((wire.ServerError, EOFError)) as failure:
                for kind, _ in connection.until_ready():
                    assert kind != b"C", "a command tag after a lost node"
            assert isinstance(failure.value, EOFError) or failure.value.sqlstate in RETRYABLE
        pool.wait_node_replaced(0, old)
        assert pool.sql("SELECT 42 AS x") == [{"x": 42}]


def test_killed_node_comes_back_with_its_identity(make_pool):
    pool = make_pool(nodes=2)
    before = {node["id"] for node in pool.ready()["nodes"]}
    old = pool.kill_node(0)
    entry = pool.wait_node_replaced(0, old)
    assert entry["id"] in before
    wait_until(lambda: {node["id"] for node in pool.online_nodes()} == before, 30, "the same two nodes are online")


class Load:
    """16 clients that read and write until told to stop; keeps what each was acknowledged and every error."""

    def __init__(self, pool, clients=16, each=None):
        self.pool, self.clients, self.each = pool, clients, each
        self.acknowledged = [set() for _ in range(clients)]
        self.unsure = [set() for _ in range(clients)]
        self.errors, self.done, self.lock = [], threading.Event(), threading.Lock()
        self.statements = 0
        self.threads = [threading.Thread(target=self.run, args=(i,), daemon=True) for i in range(clients)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        for thread in self.threads:
            thread.join(120)
        assert not any(thread.is_alive() for thread in self.threads), "a client hangs"

    def run(self, client):
        connection, step = None, 0
        while not self.done.is_set() and (self.each is None or step < self.each):
            step += 1
            try:
                if connection is None or connection.closed:
                    connection = connect(self.pool)
                self.step(connection, client, step)
            except psycopg.Error as error:
                self.note(error, client, step)
        if connection is not None:
            connection.close()

    def step(self, connection, client, step):
        with self.lock:
            self.statements += 1
        if step % 3 == 0:
            key = client * 1_000_000 + step
            self.unsure[client].add(key)
            connection.execute(f"INSERT INTO load_t VALUES ({key}, {client})")
            self.acknowledged[client].add(key)
            self.unsure[client].discard(key)
        elif step % 3 == 1:
            rows = connection.execute("SELECT range FROM range(3000)").fetchall()
            assert len(rows) == 3000
        else:
            own = connection.execute(f"SELECT count(*) FROM load_t WHERE client = {client}").fetchone()[0]
            least, most = len(self.acknowledged[client]), len(self.acknowledged[client]) + len(self.unsure[client])
            assert least <= own <= most, f"client {client} sees {own} rows of {least} to {most}"

    def note(self, error, client, step):
        key = client * 1_000_000 + step
        if error.sqlstate in RETRYABLE - {"08007"} and "nothing was written" in str(error):
            self.unsure[client].discard(key)
        with self.lock:
            self.errors.append((error.sqlstate, str(error)))

    def check(self, pool):
        stored = {row["k"] for row in pool.sql("SELECT k FROM load_t")}
        acknowledged = set().union(*self.acknowledged)
        unsure = set().union(*self.unsure)
        assert acknowledged <= stored, f"lost: {sorted(acknowledged - stored)[:10]}"
        assert stored <= acknowledged | unsure, f"never asked for or said not written: {sorted(stored - acknowledged - unsure)[:10]}"
        assert len(stored) == pool.sql("SELECT count(*) AS n FROM load_t")[0]["n"], "a row is there twice"


def test_kill_of_a_node_under_load(make_pool):
    pool = make_pool(nodes=3)
    pool.execute("CREATE TABLE load_t (k BIGINT, client INTEGER)")
    with Load(pool) as load:
        wait_until(lambda: load.statements > 100, 60, "the load runs")
        for index in (0, 1):
            old = pool.kill_node(index)
            pool.wait_node_replaced(index, old)
            more = load.statements + 50
            wait_until(lambda: load.statements > more, 60, "statements go on")
    for sqlstate, text in load.errors:
        assert sqlstate in RETRYABLE, f"{sqlstate}: {text}"
    load.check(pool)


def test_kill_of_the_gateway_under_load(make_pool):
    pool = make_pool(nodes=2)
    pool.execute("CREATE TABLE load_t (k BIGINT, client INTEGER)")
    running = pool.submit("SELECT count(*) FROM range(100000000) a, range(100000) b")
    with Load(pool, clients=8) as load:
        wait_until(lambda: load.statements > 60, 60, "the load runs")
        old = pool.kill_gateway()
        pool.wait_gateway_replaced(old)
        more = load.statements + 30
        wait_until(lambda: load.statements > more, 60, "statements go on")
    for sqlstate, text in load.errors:
        assert sqlstate is None or sqlstate in RETRYABLE, f"{sqlstate}: {text}"  # None: the connection was cut
    load.check(pool)
    # What was under way is marked, what was accepted is in the history.
    record = pool.request("GET", f"/api/queries/{running['id']}").json()
    assert record["status"] == "failed"
    assert record["error_code"] == "gateway_restarted"


def test_whole_pool_killed_and_started_again_keeps_what_was_acknowledged(make_pool):
    pool = make_pool(nodes=2)
    pool.execute("CREATE TABLE kept (k BIGINT)")
    for k in range(20):
        pool.execute(f"INSERT INTO kept VALUES ({k})")
    statement = pool.execute("SELECT k FROM kept ORDER BY k")
    pool.kill()
    pool.start()
    assert [row["k"] for row in pool.sql("SELECT k FROM kept ORDER BY k")] == list(range(20))
    assert len(pool.rows(statement)) == 20, "a kept result survives the restart of its node"
    history = pool.request("GET", "/api/workspaces/main/queries?limit=1000").json()
    assert sum(item["statement_type"] == "insert" and item["status"] == "done" for item in history["items"]) == 20


def test_reads_are_retried_once_when_no_row_was_sent(make_pool):
    pool = make_pool(nodes=2)
    slow = "SELECT count(*) FROM range(400000000) t(a) WHERE a % 7 = 3"
    result = {}

    def read():
        with connect(pool) as connection:
            try:
                result["count"] = connection.execute(slow).fetchone()[0]
            except psycopg.Error as error:
                result["error"] = error

    thread = threading.Thread(target=read, daemon=True)
    thread.start()

    def busy():
        return [node["id"] for node in pool.online_nodes() if node["running"] > 0]

    node = wait_until(busy, 30, "a node runs the statement")[0]
    index = [entry["id"] for entry in pool.ready()["nodes"]].index(node)
    pool.kill_node(index)
    thread.join(120)
    assert result == {"count": (400000000 - 4) // 7 + 1}
    assert "roost_statement_retries_total 1" in pool.request("GET", "/metrics").text


def test_the_lake_is_whole_for_another_client(make_pool):
    """What roost wrote, DuckDB in process reads."""
    pool = make_pool(nodes=2)
    pool.execute("CREATE TABLE seen AS SELECT range AS n FROM range(1000)")
    pool.execute("DELETE FROM seen WHERE n % 2 = 0")
    pool.stop()
    connection = duck.attach_lake(pool.dir)
    assert connection.execute("SELECT count(*), sum(n) FROM seen").fetchone() == (500, 250_000)


def test_sixteen_clients_of_mixed_statements(make_pool):
    """No lost write, no wrong count, each error a clear one with a code."""
    pool = make_pool(nodes=3)
    pool.execute("CREATE TABLE shared_t (client INTEGER, n INTEGER)")
    errors, lock = [], threading.Lock()
    expected = [0] * 16

    def client(number):
        connection = connect(pool)
        for step in range(50):
            table = f"own_{number}"
            try:
                match step % 10:
                    case 0:
                        connection.execute(f"CREATE TABLE {table} AS SELECT range AS n FROM range({step + 10})")
                    case 1 | 6:
                        connection.execute(f"INSERT INTO shared_t VALUES ({number}, {step})")
                        expected[number] += 1
                    case 2:
                        assert connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] == step + 8
                    case 3:
                        assert connection.execute(f"UPDATE {table} SET n = n + 1000").rowcount == step + 7
                    case 4:
                        assert connection.execute(f"SELECT min(n) FROM {table}").fetchone()[0] == 1000
                    case 5:
                        assert connection.execute(f"DELETE FROM {table} WHERE n < 1005").rowcount == 5
                    case 7:
                        mine = connection.execute(f"SELECT count(*) FROM shared_t WHERE client = {number}").fetchone()[0]
                        assert mine == expected[number]
                    case 8:
                        assert len(connection.execute("SELECT * FROM range(2500)").fetchall()) == 2500
                    case 9:
                        connection.execute(f"DROP TABLE {table}")
            except Exception as error:  # noqa: BLE001: every kind is a failure of the test
                with lock:
                    errors.append((number, step, getattr(error, "sqlstate", None), str(error)))
        connection.close()

    threads = [threading.Thread(target=client, args=(i,), daemon=True) for i in range(16)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 300
    for thread in threads:
        thread.join(max(0, deadline - time.monotonic()))
    assert not any(thread.is_alive() for thread in threads)
    assert errors == []
    rows = pool.sql("SELECT client, count(*) AS c FROM shared_t GROUP BY client ORDER BY client")
    assert [row["c"] for row in rows] == expected == [10] * 16


def test_a_failed_statement_says_why_over_http(pool):
    with pytest.raises(StatementFailed) as failure:
        pool.execute("SELECT * FROM nowhere")
    assert failure.value.statement["sqlstate"] == "42P01"
