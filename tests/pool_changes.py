"""Members of a pool come, go, restart, lose their volume and change weight while people read: no read fails, and what is fetched
anew is what rank says has moved. Over the pool of warm_pool.py.

    python tests/warm_pool.py --changes                        the long form (./dev warm-pool --changes), prints a table
    tests/test_changes.py                                      the short form, in ./dev test
"""

import os
import random
import signal
import subprocess
import threading

import psycopg

from pool import ANSWER_WITHIN_S, ROOST, run_roost, wait_until

JOINER = "joiner"
ROOM_BYTES = 30_000  # heads of answers, and a listing here and there


class Load:
    """Readers that go through all tables again and again, each in an order of its own, on a connection of its own."""

    def __init__(self, warm, readers):
        self.warm, self.ending, self.failed = warm, threading.Event(), []
        self.passes = [0] * readers
        self.turn = threading.Condition()
        self.paused, self.reading = False, 0
        self.threads = [threading.Thread(target=self._read, args=(number,), daemon=True) for number in range(readers)]

    def _read(self, number):
        draw = random.Random(number)
        with psycopg.connect(self.warm.pool.pg_dsn, autocommit=True) as connection:
            while not self.ending.is_set():
                for table in draw.sample(range(self.warm.tables), self.warm.tables):
                    with self.turn:
                        self.turn.wait_for(lambda: not self.paused)
                        self.reading += 1
                    try:
                        if self.ending.is_set():
                            return
                        n, total, _ = connection.execute(self.warm.query(table)).fetchone()
                        self.warm.check(table, n, total)
                    except Exception as error:  # noqa: BLE001  every kind is a failure
                        self.failed.append(f"t{table}: {error}")
                    finally:
                        with self.turn:
                            self.reading -= 1
                            self.turn.notify_all()
                self.passes[number] += 1

    def between_two_reads(self, do):
        """Done while nobody reads: what was under way has ended, what comes after has not begun."""
        with self.turn:
            self.paused = True
            assert self.turn.wait_for(lambda: self.reading == 0, 120), "the reads under way do not end"
            do()
            self.paused = False
            self.turn.notify_all()

    def whole_passes(self, count=1):
        """Returns when each reader has gone through all tables so often, from now on."""
        goals = [done + count + 1 for done in self.passes]  # the one under way began before
        wait_until(lambda: self.failed or all(done >= goal for done, goal in zip(self.passes, goals, strict=True)),
                   600, f"{count} more reads of everything")

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        for thread in self.threads:
            thread.join(ANSWER_WITHIN_S)


class Changes:
    """Each method makes one change under load and returns a row: name, failed reads, bytes fetched anew, the most that they may
    be, and what else is to be seen."""

    def __init__(self, warm, readers=3):
        self.warm, self.pool, self.readers = warm, warm.pool, readers
        self.joiner = None

    # --- what is where

    def nodes(self):
        return {node["name"]: node for node in self.pool.request("GET", "/api/nodes").json() if node["status"] != "offline"}

    def tables(self):
        """By name: bytes, owner by rank, and the names of the nodes that have it whole."""
        answer = self.pool.request("GET", "/api/workspaces/main/placement").json()
        return {table["table"]: table for table in answer if table["table"][1:].isdigit()}

    def owners(self):
        return {name: (table["owner"], self.nodes()[table["owner"]]["id"]) for name, table in self.tables().items()}

    def bytes_of(self, names):
        tables = self.tables()
        return sum(tables[name]["bytes"] for name in names)

    def warm_up(self):
        """One after the other, so that each table is claimed by its owner."""
        self.warm.restart("auto", cold=True)
        for table in range(self.warm.tables):
            self.warm.read_pg([table])
        wait_until(lambda: all(table["homes"] for table in self.tables().values()), ANSWER_WITHIN_S, "all is warm")

    def under_load(self, name, change, moved):
        """`change` makes it and returns when it is in force; `moved(before, after)`: names of the tables that rank moves, one that
        moves twice twice."""
        before = self.owners()
        with Load(self.warm, self.readers) as load:
            load.whole_passes()
            self.warm.meter.reset()
            outcomes = self.warm.outcomes()
            change(load)
            load.whole_passes(2)
        after = self.owners()
        names = moved(before, after)
        bound = self.bytes_of(names)
        everything = self.bytes_of(before)
        ways = {reason: count - outcomes.get(reason, 0) for reason, count in self.warm.outcomes().items()}
        return {"change": name, "ways": {reason: count for reason, count in ways.items() if count}, "failed": load.failed, "moved_tables": len(names), "share": bound / everything,
                "bound_bytes": int(1.05 * bound) + ROOM_BYTES, "fetched_bytes": self.warm.meter.bytes,
                "whole_bytes": everything, "moved": names}

    @staticmethod
    def whose_owner_changed(before, after):
        return [name for name in before if before[name] != after[name]]

    # --- the changes

    def join(self):
        """As a node of another machine would, with what the README tells to give it."""
        pool = self.pool
        directory = pool.dir.with_name("joiner") / JOINER
        directory.mkdir(parents=True, exist_ok=True)
        gateway = pool.run_state()["gateway"]["internal"]
        address = gateway if gateway.startswith("unix:") else f"http://{gateway}"
        flags = self.warm.s3.flags(port=self.warm.proxy.port) + ["--cache-max-bytes", self.warm.cache]

        def change(_):
            output = open(directory.with_suffix(".output"), "wb")
            self.joiner = subprocess.Popen([ROOST, "node", "--join", address, "--token-file", str(pool.dir / "join-token"),
                                            "--dir", str(directory), "--catalog", f"sqlite:{pool.dir}/catalog/lake.sqlite", "--memory", "1GiB", *flags],
                                           env=pool.env, stdout=output, stderr=output)
            output.close()
            wait_until(lambda: self.joiner.poll() is None and f"node-{JOINER}" in self.nodes(), ANSWER_WITHIN_S, "it has joined")
        row = self.under_load("a node joins (3 → 4)", change, self.whose_owner_changed)
        after = self.tables()
        there = {name for name, table in after.items()
                 for home in table["homes"] if home["node"] == f"node-{JOINER}" and home["warm_bytes"] > 0}
        row["note"] = f"of {len(row['moved'])} tables that are its own it has {len(there & set(row['moved']))}, of others {len(there - set(row['moved']))}"
        row["took"] = there
        return row

    def kill(self):
        """kill -9 of the node that joined; nobody starts it again."""
        def change(_):
            self.joiner.kill()
            self.joiner.wait()
            wait_until(lambda: f"node-{JOINER}" not in self.nodes(), ANSWER_WITHIN_S, "it is gone")
        return self.under_load("kill -9 of one (4 → 3)", change, self.whose_owner_changed)

    def end_joiner(self):
        if self.joiner and self.joiner.poll() is None:
            self.joiner.kill()
            self.joiner.wait()

    def rolling_restart(self):
        """Drained, told to end, waited for, resumed, one after the other. What a node is not there to read, others must; of what
        it has it reads nothing again."""
        away_bytes = []

        def change(load):
            for name, node in self.nodes().items():
                told(self.pool, "drain", name)
                wait_until(lambda: (now := self.nodes()[name])["running"] == 0 and now["transactions"] == 0,  # noqa: B023
                           ANSWER_WITHIN_S, f"{name} is empty")
                os.kill(node["pid"], signal.SIGTERM)
                wait_until(lambda: self.nodes().get(name, node)["incarnation"] > node["incarnation"],  # noqa: B023
                           ANSWER_WITHIN_S, f"{name} is back")
                told(self.pool, "resume", name)
                wait_until(lambda: self.nodes()[name]["routable"], ANSWER_WITHIN_S, f"{name} gets statements")  # noqa: B023

            def all_back():
                away_bytes.append(self.warm.meter.bytes)
                self.warm.meter.reset()
            load.between_two_reads(all_back)  # what was read elsewhere meanwhile has been fetched by then
        homes = {name: {home["node"] for home in table["homes"]} for name, table in self.tables().items()}
        row = self.under_load("a rolling restart of all", change, self.whose_owner_changed)
        lost = [name for name, table in self.tables().items() if not homes[name] <= {home["node"] for home in table["homes"]}]
        row["note"] = f"while they were away others fetched {away_bytes[0] / row['whole_bytes']:.3f}; homes lost: {len(lost)}"
        row["away_bytes"], row["lost"] = away_bytes[0], lost
        return row

    def replaced_volume(self):
        """One node leaves for good, and another comes: what the first one had is read at the next in rank, until the second is there,
        and then what that one owns is its."""
        name = sorted(self.nodes())[0]
        index = int(name.rsplit("-", 1)[1]) - 1

        def change(_):
            self.pool.replace_volume(index)

        def moved(before, after):
            return [table for owners in (before, after) for table, (owner, _) in owners.items() if owner == name]
        return self.under_load("a volume is replaced", change, moved)

    def weight(self, cpus, some):
        """The CPUs that a node may run on; it tells its weight with each heartbeat."""
        name, node = sorted(self.nodes().items())[0]

        def change(_):
            for thread in os.listdir(f"/proc/{node['pid']}/task"):
                os.sched_setaffinity(int(thread), set(some[:cpus]))
            wait_until(lambda: self.nodes()[name]["cpus"] == cpus, ANSWER_WITHIN_S, "its weight has changed")
        return self.under_load(f"{name} has {cpus} CPU{'s' if cpus > 1 else ''} now", change, self.whose_owner_changed)

    def all(self):
        """One after the other; each begins with everything warm."""
        self.warm_up()
        try:
            yield self.join()
            yield self.kill()
        finally:
            self.end_joiner()
        yield self.rolling_restart()
        yield self.replaced_volume()
        some = sorted(os.sched_getaffinity(0))
        if len(some) > 1:
            self.warm_up()  # what others have fetched while the nodes were away would hide what moves
            yield self.weight(1, some)
            yield self.weight(2, some)


def told(pool, action, node):
    done = run_roost("nodes", action, node, "--dir", pool.dir)
    assert done.returncode == 0, done.stderr


def text_of(row):
    return (f"{row['change']:26} moved by rank {row['share']:.3f} of the bytes  may fetch {row['bound_bytes'] / row['whole_bytes']:.3f}  "
            f"fetched {row['fetched_bytes'] / row['whole_bytes']:.3f}  failed reads {len(row['failed'])}  {row.get('note', '')}"
            f"\n    {row['ways']}")


def is_good(row):
    return not row["failed"] and row["fetched_bytes"] <= row["bound_bytes"] and not row.get("lost")
