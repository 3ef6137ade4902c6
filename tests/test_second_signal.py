"""A gateway or a node that is told to stop a second time stops at once, and takes itself apart in order whatever it is at."""

import json
import signal
import threading
import time

import psycopg
import pytest

from pool import Pool, wait_until

# Long enough that the first signal alone would wait for it.
LONG = "SELECT sum(a.range * b.range) FROM range(2000000) a, range(2000000) b"


@pytest.fixture
def pool(tmp_path):
    with Pool(tmp_path / "pool", nodes=1) as running:
        yield running


def how_it_ended(pool, pid):
    for line in (pool.dir / "log" / "up.log").read_text().splitlines():
        event = json.loads(line)
        if event["event"] == "exited" and event["pid"] == pid:
            return event["how"]
    return None


def keep_busy(pool):
    """Statements of each kind under way: over Postgres wire with a slow reader and with none, over HTTP, waiting for a lease."""
    def run(sql):
        try:
            with psycopg.connect(pool.pg_dsn) as connection:
                connection.execute(sql)
        except psycopg.Error:
            pass  # that is what it is told

    reader = psycopg.connect(pool.pg_dsn, autocommit=True)
    rows = psycopg.ClientCursor(reader).stream("SELECT * FROM range(100000000)", size=1)
    next(rows)
    pool.sql("CREATE TABLE IF NOT EXISTS t (i BIGINT)")
    threads = [threading.Thread(target=run, args=(sql,), daemon=True)
               for sql in (LONG, f"INSERT INTO t {LONG}", f"INSERT INTO t {LONG}")]
    for thread in threads:
        thread.start()
    pool.submit(LONG)
    pool.submit(f"SELECT 1; {LONG}")
    wait_until(lambda: len(pool.request("GET", "/api/workspaces/main/queries?status=running").json()["items"]) >= 2, 30,
               "statements run")
    return reader, rows, threads


@pytest.mark.parametrize("which", ["gateway", "node"])
def test_a_second_signal_stops_it_at_once_and_in_order(pool, which):
    held = keep_busy(pool)
    pid = pool.gateway_pid() if which == "gateway" else pool.node_pid(0)
    process = pool.gateway_process() if which == "gateway" else pool.node_process(0)
    process.send_signal(signal.SIGTERM)
    time.sleep(0.2)  # so that the two do not arrive as one
    assert process.is_running()
    process.send_signal(signal.SIGTERM)
    how = wait_until(lambda: how_it_ended(pool, pid), 5, "it has ended")
    assert how == "exited with status 0"
    del held
    if which == "gateway":
        pool.wait_gateway_replaced(pid)
    else:
        pool.wait_node_replaced(0, pid)
    wait_until(lambda: pool.sql("SELECT 1 AS x") == [{"x": 1}], 30, "it answers again")
