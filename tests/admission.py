"""One node under more than its memory holds: what admission promises, on real DuckDB.

    python tests/admission.py mix --seconds 600 --clients 32     must-show 4 (./dev admission mix)
    python tests/admission.py lane --seconds 60                  must-show 6: SELECT 1 beside a full budget and a line
    python tests/admission.py switch --seconds 300               must-show 7: another profile every second under load
    tests/test_admission.py                                      the short forms, in ./dev test
"""

import argparse
import collections
import json
import os
import pathlib
import random
import statistics
import sys
import tempfile
import threading
import time

import psycopg

import duck
from pool import Pool, wait_until

PROFILES = ["auto", "single", "equal_2", "decaying_2", "decaying_3"]


def queries():
    connection = duck.connect("tpch")
    return [row[0].strip().rstrip(";") for row in connection.execute("SELECT query FROM tpch_queries() ORDER BY query_nr").fetchall()]


def one_node(directory, memory, scale, profile="auto", flags=()):
    return Pool(pathlib.Path(directory) / "pool", nodes=1, node_memory=memory, sample=f"tpch:{scale}",
                flags=["--admission-profile", profile, *flags])


def heavy(groups):
    """Holds some 60 bytes for each of its groups."""
    return f"SELECT count(*) AS n FROM (SELECT hash(i) AS h, count(*) AS c FROM range({groups}) AS t(i) GROUP BY 1)"


def node_of(pool):
    (node,) = pool.request("GET", "/api/nodes").json()
    return node


def profile_of(pool, statement):
    answer = pool.request("GET", f"/api/queries/{statement['id']}/profile")
    answer.raise_for_status()
    return answer.json()


def set_profile(pool, name):
    node = node_of(pool)
    answer = pool.request("POST", f"/api/nodes/{node['id']}/profile", json={"profile": name})
    assert answer.status_code == 200, answer.text
    assert answer.json()["admission_profile"] == name, answer.text


def wait_until_idle(pool):
    """Nothing runs, and nothing is promised but what idle sessions keep."""
    def idle():
        node = node_of(pool)
        return node["running"] == 0 and node["waiting"] == 0 and node["required_bytes"] == 0
    wait_until(idle, 60, "the node is idle and has its memory back")


class Watch(threading.Thread):
    """Samples the node's process and what it says of itself; its process must live through it all."""

    def __init__(self, pool):
        super().__init__(daemon=True)
        self.pool, self.ends = pool, threading.Event()
        self.pid = pool.node_pid(0)
        self.process = pool.node_process(0)
        self.resident, self.waiting, self.faults = [], [], []

    def run(self):
        while not self.ends.wait(0.1):
            try:
                self.resident.append(self.process.memory_info().rss)
                node = node_of(self.pool)
                self.waiting.append(node["waiting"])
                if node["required_bytes"] + node["elastic_bytes"] > node["budget_bytes"]:
                    self.faults.append(node)
            except Exception as error:  # told by check()
                self.faults.append(repr(error))

    def check(self, memory_bytes):
        self.ends.set()
        self.join()
        assert not self.faults, self.faults[:3]
        assert self.pool.node_pid(0) == self.pid, "the node's process died"
        assert max(self.resident) <= memory_bytes, f"{max(self.resident) >> 20} MiB of {memory_bytes >> 20} MiB"


class Clients:
    """Clients of one user, each on a connection of its own, running `texts` in an order of its own until told to stop."""

    def __init__(self, pool, texts, count, seed=1):
        self.pool, self.texts = pool, texts
        self.stopped = threading.Event()
        self.lock = threading.Lock()
        self.done, self.seconds, self.errors = 0, [], collections.Counter()
        self.threads = [threading.Thread(target=self.run, args=(random.Random(seed * 1000 + i),), daemon=True) for i in range(count)]
        for thread in self.threads:
            thread.start()

    def run(self, order):
        with psycopg.connect(self.pool.pg_dsn, autocommit=True, connect_timeout=30) as connection:
            while not self.stopped.is_set():
                start = time.monotonic()
                try:
                    connection.execute(order.choice(self.texts)).fetchall()
                    error = None
                except psycopg.Error as failure:
                    error = f"{failure.sqlstate}: {str(failure)[:200]}"
                with self.lock:
                    if error:
                        self.errors[error] += 1
                    else:
                        self.done += 1
                        self.seconds.append(time.monotonic() - start)

    def stop(self, within_s=300):
        self.stopped.set()
        for thread in self.threads:
            thread.join(within_s)
            assert not thread.is_alive(), "a client hangs"


def run_mix(directory, seconds, clients, memory="2GiB", scale=1, profile="auto"):
    """Statements in a second and what was seen; asserts that nothing ran out of memory and the node lived."""
    with one_node(directory, memory, scale, profile) as pool:
        texts = queries()
        watch = Watch(pool)
        watch.start()
        start = time.monotonic()
        load = Clients(pool, texts, clients)
        time.sleep(seconds)
        load.stop()
        took = time.monotonic() - start
        wait_until_idle(pool)
        watch.check(node_of(pool)["memory_bytes"])
        assert not load.errors, load.errors
        return {"profile": profile, "clients": clients, "statements": load.done, "per_s": round(load.done / took, 3),
                "p50_s": round(statistics.median(load.seconds), 2), "max_s": round(max(load.seconds), 2),
                "waiting_max": max(watch.waiting), "resident_max_mib": max(watch.resident) >> 20}


def fill(pool, statements, groups):
    """Statements that hold the budget and wait for it; they run until they are cancelled."""
    endless = f"SELECT max(h) FROM (SELECT hash(i) AS h, count(*) FROM range({groups}) AS t(i), range(1000) AS u(j) GROUP BY 1)"
    return [pool.submit(endless, timeout_s=600) for _ in range(statements)]


def cancel(pool, statements):
    for statement in statements:
        pool.request("DELETE", f"/api/queries/{statement['id']}").raise_for_status()
    for statement in statements:
        pool.wait(statement)


def run_lane(directory, count, memory="1GiB"):
    """How long SELECT 1 and point reads wait for memory while the budget is full and ten statements are in line, ms."""
    with one_node(directory, memory, 0.01) as pool:
        full = fill(pool, 16, 50_000_000)
        try:
            wait_until(lambda: node_of(pool)["waiting"] >= 10, 60, "ten statements wait")
            waits = []
            for i in range(count):
                text = "SELECT 1 AS x" if i % 2 else f"SELECT * FROM nation WHERE n_nationkey = {i % 25}"
                profile = profile_of(pool, pool.execute(text))
                assert profile["lane"] == "small", profile
                waits.append(profile["admission_wait_ms"])
            assert node_of(pool)["waiting"] >= 10, "they still wait"
        finally:
            cancel(pool, full)
        wait_until_idle(pool)
        return {"statements": count, "wait_p99_ms": sorted(waits)[int(count * 0.99) - 1], "wait_max_ms": max(waits)}


def run_switch(directory, seconds, every_s, clients=8, memory="1GiB", scale=0.1):
    """Another profile again and again under load: nothing is dropped."""
    with one_node(directory, memory, scale) as pool:
        watch = Watch(pool)
        watch.start()
        load = Clients(pool, queries() + [heavy(300_000)], clients)
        end = time.monotonic() + seconds
        switches = 0
        while time.monotonic() < end:
            set_profile(pool, PROFILES[switches % len(PROFILES)])
            switches += 1
            time.sleep(every_s)
        load.stop()
        wait_until_idle(pool)
        watch.check(node_of(pool)["memory_bytes"])
        assert not load.errors, load.errors
        return {"switches": switches, "statements": load.done, "waiting_max": max(watch.waiting)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["mix", "lane", "switch"])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--memory", default="2GiB")
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--statements", type=int, default=1000, help="lane: how many small ones")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        if options.what == "mix":
            mixed = run_mix(directory, options.seconds, options.clients, options.memory, options.scale)
            print(json.dumps(mixed))
            with tempfile.TemporaryDirectory() as other:
                alone = run_mix(other, options.seconds, options.clients, options.memory, options.scale, "single")
            print(json.dumps(alone))
            print(f"throughput against one statement at a time: {mixed['per_s'] / alone['per_s']:.2f}")
        elif options.what == "lane":
            print(json.dumps(run_lane(directory, options.statements, options.memory)))
        else:
            print(json.dumps(run_switch(directory, options.seconds, 1.0, options.clients, options.memory, options.scale)))


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main())
