"""Long results and impatient clients: flat memory, work that stops when nobody wants it, cancels at every stage."""

import random
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

import wire
from pool import wait_until

MANY = 10_000_000


def busy(pool):
    return sum(node["running"] for node in pool.online_nodes())


def resident_mib(process):
    return process.memory_info().rss / 2**20


def test_ten_million_rows_to_a_slow_reader_leave_memory_flat(make_pool):
    pool = make_pool(nodes=1, node_memory="1GiB")
    query = f"SELECT range AS n, 'some text of row ' || range AS s FROM range({MANY})"
    gateway, node = pool.gateway_process(), pool.node_process(0)
    with psycopg.connect(pool.pg_dsn, autocommit=True) as connection:
        samples, seen, total = [], 0, 0
        for n, _ in connection.cursor().stream(query, size=10_000):
            seen, total = seen + 1, total + n
            if seen % 250_000 == 0:
                samples.append((resident_mib(gateway), resident_mib(node)))
                time.sleep(0.02)  # the slow reader itself, not a wait for something
        assert (seen, total) == (MANY, MANY * (MANY - 1) // 2)
    early, late = samples[4], max(samples[5:])
    print(f"resident MiB, gateway and node: after 1.25 million rows {early}, at most {late}")
    assert max(s[0] for s in samples) - early[0] < 32
    assert max(s[1] for s in samples) - early[1] < 128


@pytest.mark.parametrize("query", [
    "SELECT range, repeat('x', 100) FROM range(1000000000)",
    "SELECT count(*) FROM range(1000000000) a, range(1000000) b",
], ids=["streaming", "computing"])
def test_a_client_that_disconnects_stops_the_work(pool, query):
    connection = wire.Connection(pool)
    connection.send(b"Q", query.encode() + b"\0")
    wait_until(lambda: busy(pool) > 0, 30, "the statement runs")
    connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    connection.close()
    began = time.monotonic()
    wait_until(lambda: busy(pool) == 0, 5, "the node has stopped")
    assert time.monotonic() - began < 1.5  # a second, and the asking


def expect_cancel(connection):
    with pytest.raises(wire.ServerError) as failure:
        for _ in connection.until_ready():
            pass
    assert failure.value.sqlstate == "57014"
    assert connection.simple("SELECT 7")[0] == [["7"]], "the session stays usable"


@pytest.mark.parametrize("query", [
    "SELECT range, repeat('x', 100) FROM range(1000000000)",
    "SELECT count(*) FROM range(1000000000) a, range(1000000) b",
    "SELECT * FROM range(50000000) ORDER BY hash(range)",
    "CREATE TABLE never AS SELECT range AS n FROM range(2000000000)",
], ids=["streaming", "computing", "sorting", "writing"])
def test_cancel_while_it_runs(pool, query):
    with wire.Connection(pool) as connection:
        connection.send(b"Q", query.encode() + b"\0")
        wait_until(lambda: busy(pool) > 0, 30, "the statement runs")
        began = time.monotonic()
        connection.cancel()
        expect_cancel(connection)
        assert time.monotonic() - began < 2
    wait_until(lambda: busy(pool) == 0, 5, "the node has stopped")


def test_cancel_while_it_waits_for_memory(make_pool):
    pool = make_pool(nodes=1, flags=["--admission-profile", "single"])
    heavy = b"SELECT count(*) FROM range(1000000000) a, range(1000000) b\0"
    with wire.Connection(pool) as first, wire.Connection(pool) as second:
        first.send(b"Q", heavy)
        wait_until(lambda: busy(pool) == 1, 30, "the first one runs")
        second.send(b"Q", heavy)
        wait_until(lambda: any(node["waiting"] == 1 for node in pool.online_nodes()), 30, "the second one waits")
        assert second.simple is not None
        began = time.monotonic()
        second.cancel()
        expect_cancel(second)
        assert time.monotonic() - began < 2
        # Small statements go on beside the one that holds all slots.
        with wire.Connection(pool) as small:
            assert small.simple("SELECT 1")[0] == [["1"]]
        first.cancel()
        expect_cancel(first)


def test_cancel_while_it_waits_for_its_turn_to_write(pool):
    pool.execute("CREATE TABLE turns (n INTEGER)")
    with wire.Connection(pool) as holder, wire.Connection(pool) as waiter:
        holder.simple("BEGIN")
        holder.simple("INSERT INTO turns VALUES (1)")
        waiter.send(b"Q", b"INSERT INTO turns VALUES (2)\0")
        waiter.socket.settimeout(0.3)
        with pytest.raises(TimeoutError):
            waiter.receive()
        waiter.socket.settimeout(60)
        began = time.monotonic()
        waiter.cancel()
        expect_cancel(waiter)
        assert time.monotonic() - began < 2
        holder.simple("COMMIT")
    assert pool.sql("SELECT n FROM turns") == [{"n": 1}]


def test_statement_timeout_names_itself_and_leaves_the_session_usable(pool):
    with wire.Connection(pool) as connection:
        connection.simple("SET statement_timeout = '300ms'")
        with pytest.raises(wire.ServerError) as failure:
            connection.simple("SELECT count(*) FROM range(1000000000) a, range(1000000) b")
        assert failure.value.sqlstate == "57014"
        assert "timeout" in str(failure.value)
        assert connection.simple("SELECT 1")[0] == [["1"]]


def test_cancel_over_http(pool):
    statement = pool.submit("SELECT count(*) FROM range(1000000000) a, range(1000000) b")
    wait_until(lambda: busy(pool) > 0, 30, "the statement runs")
    assert pool.request("DELETE", f"/api/queries/{statement['id']}").status_code == 204
    ended = pool.wait(statement, within_s=5)
    assert ended["status"] == "cancelled"
    assert pool.request("DELETE", f"/api/queries/{statement['id']}").status_code == 204


def test_a_hundred_cancels_leave_nothing_behind(pool):
    before = {process.pid: process.num_fds() for process in (pool.gateway_process(), pool.node_process(0), pool.node_process(1))}

    def rush(count):
        for i in range(count):
            with wire.Connection(pool) as connection:
                connection.send(b"Q", b"SELECT range, repeat('x', 100) FROM range(100000000)\0")
                for _ in range(i % 7):
                    connection.receive()
                if i % 2:
                    connection.cancel()
                    expect_cancel(connection)

    threads = [threading.Thread(target=rush, args=(25,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    wait_until(lambda: busy(pool) == 0, 10, "nothing runs")
    for process in (pool.gateway_process(), pool.node_process(0), pool.node_process(1)):
        # Idle result links are kept: at most eight a node.
        wait_until(lambda process=process: process.num_fds() <= before[process.pid] + 20, 10, f"descriptors of {process.pid} are back")


def cancel_until_over(connection):
    """One that comes before the statement does nothing, so it is said again."""
    while True:
        connection.cancel()
        try:
            return expect_cancel(connection)
        except TimeoutError:
            pass


def test_cancels_and_disconnects_while_the_nodes_are_full_leave_nothing_running(pool):
    """A statement that one node has refused and the next one has not got yet is as cancelled as any other."""
    endless, over = "SELECT count(*) FROM range(1000000000) a, range(1000000000) b", time.monotonic() + 12

    def client(number):
        chance = random.Random(number)
        while time.monotonic() < over:
            with wire.Connection(pool) as connection:
                connection.send(b"Q", endless.encode() + b"\0")
                # Anywhere between routing and running.
                connection.socket.settimeout(0.001 + chance.random() * 0.1)
                with pytest.raises(TimeoutError):
                    connection.receive()
                connection.socket.settimeout(10)
                if number % 2:
                    cancel_until_over(connection)
                else:
                    connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

    with ThreadPoolExecutor(6) as clients:
        for done in [clients.submit(client, number) for number in range(6)]:
            done.result()

    def idle():
        nodes = pool.online_nodes()
        return len(nodes) == pool.node_count and not any(node["granted_bytes"] or node["waiting"] for node in nodes)

    wait_until(idle, 15, "the nodes have nothing to do")
