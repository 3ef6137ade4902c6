"""Members come, go, drain, stop and change while people read: no read fails."""

import os
import signal
import threading

import psycopg
import pytest

from pool import run_roost, wait_until

HEARTBEAT = ["--heartbeat-ms", "200ms", "--node-drop-ms", "2s"]
EXPECTED = (1000, 499500)


class Readers:
    """Threads that read all the time, each on a connection of its own, one of them in transactions; what failed is in `failed`."""

    def __init__(self, pool, count=6):
        self.pool, self.stop, self.failed, self.reads = pool, threading.Event(), [], 0
        self.threads = [threading.Thread(target=self.read, args=(i == 0,), daemon=True) for i in range(count)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def read(self, in_transactions):
        with psycopg.connect(self.pool.pg_dsn, autocommit=True) as connection:
            while not self.stop.is_set():
                try:
                    if in_transactions:
                        with connection.transaction():
                            first = connection.execute("SELECT count(*), sum(id)::BIGINT FROM t").fetchone()
                            row = connection.execute("SELECT count(*), sum(id)::BIGINT FROM t").fetchone()
                            assert first == row
                    else:
                        row = connection.execute("SELECT count(*), sum(id)::BIGINT FROM t").fetchone()
                    assert row == EXPECTED, row
                    self.reads += 1
                except Exception as error:  # noqa: BLE001: every kind is a failure
                    self.failed.append((in_transactions, str(error)))

    def some_more(self, count=20):
        goal = self.reads + count
        wait_until(lambda: self.reads >= goal or self.failed, 60, f"{count} more reads")

    def __exit__(self, *_):
        self.stop.set()
        for thread in self.threads:
            thread.join(60)


def nodes(pool):
    return {node["name"]: node for node in pool.request("GET", "/api/nodes").json()}


def told(pool, action, node):
    done = run_roost("nodes", action, node, "--dir", pool.dir)
    assert done.returncode == 0, done.stderr
    return done.stdout


def is_back(pool, name, incarnation):
    node = nodes(pool)[name]
    return node["status"] != "offline" and node["incarnation"] > incarnation and node


@pytest.fixture
def busy(make_pool):
    pool = make_pool(nodes=3, flags=HEARTBEAT)
    pool.execute("CREATE TABLE t AS SELECT range AS id FROM range(1000)")
    with Readers(pool) as readers:
        yield pool, readers
    assert readers.reads > 0


def test_a_rolling_restart_of_all_nodes_fails_no_read(busy):
    pool, readers = busy
    for name, node in nodes(pool).items():
        assert "draining" in told(pool, "drain", name)
        wait_until(lambda: (now := nodes(pool)[name])["running"] == 0 and now["transactions"] == 0, 60, f"{name} is empty")  # noqa: B023
        os.kill(node["pid"], signal.SIGTERM)
        again = wait_until(lambda: is_back(pool, name, node["incarnation"]), 60, f"{name} is back")  # noqa: B023
        assert again["id"] == node["id"] and again["status"] == "draining", "a restart resumes nothing"
        told(pool, "resume", name)
        assert nodes(pool)[name]["routable"]
        readers.some_more()
    assert readers.failed == []


def test_nodes_that_are_just_told_to_end_fail_no_read(busy):
    pool, readers = busy
    for name, node in nodes(pool).items():
        os.kill(node["pid"], signal.SIGTERM)
        wait_until(lambda: is_back(pool, name, node["incarnation"]), 60, f"{name} is back")  # noqa: B023
        readers.some_more()
    assert readers.failed == []


def test_a_killed_node_fails_no_read_of_its_own(busy):
    """Transactions that were open there are lost, and say so."""
    pool, readers = busy
    for name, node in nodes(pool).items():
        os.kill(node["pid"], signal.SIGKILL)
        wait_until(lambda: is_back(pool, name, node["incarnation"]), 60, f"{name} is back")  # noqa: B023
        readers.some_more()
    assert [error for in_transaction, error in readers.failed if not in_transaction] == []
    assert all("transaction" in error for _, error in readers.failed), readers.failed


def test_a_node_that_hangs_leaves_routing_and_comes_back(busy):
    pool, readers = busy
    name, node = next(iter(nodes(pool).items()))
    os.kill(node["pid"], signal.SIGSTOP)
    try:
        hung = wait_until(lambda: (now := nodes(pool)[name])["state"] == "silent" and now, 60, "it is silent")
        assert not hung["routable"] and "no word" in hung["why"]
    finally:
        os.kill(node["pid"], signal.SIGCONT)
    wait_until(lambda: nodes(pool)[name]["routable"], 60, "it is back")
    readers.some_more()
    assert [error for in_transaction, error in readers.failed if not in_transaction] == []


def test_a_weight_follows_the_cpus_that_a_node_has_now(make_pool):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one CPU only")
    pool = make_pool(nodes=2, flags=[*HEARTBEAT, "--node-cpus", "2"])
    name, node = next(iter(nodes(pool).items()))
    assert node["cpus"] == 2
    some = sorted(os.sched_getaffinity(0))
    for cpus in (1, 2):
        for thread in os.listdir(f"/proc/{node['pid']}/task"):
            os.sched_setaffinity(int(thread), set(some[:cpus]))
        changed = wait_until(lambda: nodes(pool)[name]["cpus"] == cpus and nodes(pool)[name], 30, f"{cpus} CPUs")  # noqa: B023
        assert changed["incarnation"] == node["incarnation"] and changed["id"] == node["id"]


def test_a_drain_is_kept_and_an_unknown_node_is_an_error(make_pool):
    pool = make_pool(nodes=2, flags=HEARTBEAT)
    name = next(iter(nodes(pool)))
    told(pool, "drain", name)
    missing = run_roost("nodes", "drain", "nobody", "--dir", pool.dir)
    assert missing.returncode == 1 and "there is no node 'nobody'" in missing.stderr
    def ran():
        return [query["agent_id"] for query in pool.request("GET", "/api/workspaces/main/queries").json()["items"] if query["sql"] == "SELECT 77"]
    for _ in range(4):
        pool.sql("SELECT 77")
    assert len(ran()) == 4 and nodes(pool)[name]["id"] not in ran()
    pool.stop()
    pool.start()
    assert nodes(pool)[name]["status"] == "draining" and not nodes(pool)[name]["routable"]
    told(pool, "resume", name)

    def ran_there():
        pool.sql("SELECT 77")
        return nodes(pool)[name]["id"] in ran()
    wait_until(ran_there, 60, "it gets statements again")
