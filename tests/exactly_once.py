"""Writes while processes die: each that was acknowledged is there once, each other at most once, and what roost says of a
write when it is asked again is true.

    python tests/exactly_once.py --writes 500 --seed 7        the long form, prints what happened
    tests/test_exactly_once.py                                the short form, in ./dev test

One round: a write begins; after a random part of the time that writes take, something is killed with SIGKILL (a node, the
gateway, both, or the catalog's connections where there is a server). So the kill falls before, into and after the COMMIT, and
between the COMMIT and the reply. The seed is printed; the same seed makes the same rounds, though not the same races.
"""

import argparse
import collections
import contextlib
import pathlib
import random
import re
import sys
import tempfile
import threading
import time

import psycopg
import requests

import duck
from pool import Pool, wait_until
from stores import Postgres

ROWS = 40  # of a write: enough for a file of its own, past what the catalog takes inline
CLAIMS_NOTHING = re.compile("nothing was written")


class Write:
    """One write of ROWS rows with key `key`, over one of the ways in, and what came of it."""

    def __init__(self, key, way):
        self.key, self.way = key, way
        self.id = None
        self.said = "nothing"  # acknowledged | written | not written | unknown: what the client was told
        self.error = ""

    @property
    def sql(self):
        return f"INSERT INTO once SELECT {self.key}, range FROM range({ROWS})"

    def run(self, pool):
        try:
            getattr(self, self.way)(pool)
            self.said = "acknowledged"
        except psycopg.Error as error:
            self.note(error.sqlstate, str(error))
        except (requests.RequestException, KeyError, OSError) as error:
            self.note(None, repr(error))

    def note(self, sqlstate, text):
        self.error = f"{sqlstate}: {text}"
        if CLAIMS_NOTHING.search(text):
            self.said = "not written"
        elif "took effect" in text:
            self.said = "written"
        else:
            self.said = "unknown"
            found = re.search(r"history \(([0-9a-f-]{36})\)", text)
            self.id = self.id or (found and found.group(1))

    def pg(self, pool):
        with psycopg.connect(pool.pg_dsn, autocommit=True, connect_timeout=20) as connection:
            connection.execute(self.sql)

    def pg_transaction(self, pool):
        connection = psycopg.connect(pool.pg_dsn, connect_timeout=20)
        try:
            half = ROWS // 2
            connection.execute(f"INSERT INTO once SELECT {self.key}, range FROM range({half})")
            connection.execute(f"INSERT INTO once SELECT {self.key}, range FROM range({half}, {ROWS})")
            connection.commit()
        finally:
            connection.close()

    def http(self, pool):
        statement = pool.submit(self.sql)
        self.id = statement["id"]
        statement = pool.wait(statement)
        if statement["status"] != "done":
            raise psycopg.OperationalError(statement.get("error") or statement["status"])


class Rounds:
    """`postgres`: the server of the catalog (stores.Postgres), whose connections are ended too; None where it is a file."""

    def __init__(self, pool, writes, seed, postgres=None, say=lambda text: None):
        self.pool, self.count, self.random, self.say = pool, writes, random.Random(seed), say
        self.postgres = postgres
        self.writes = []
        self.kills = collections.Counter()
        self.took_s = []
        self.killed, self.killed_gateway = [], None

    def run(self):
        self.pool.execute("CREATE TABLE once (k BIGINT, part BIGINT)")
        for key in range(self.count):
            self.round(key)
            if key % 50 == 49:
                self.say(f"{key + 1} writes, {sum(self.kills.values())} kills: {dict(self.kills)}")
        return self

    def round(self, key):
        write = Write(key, self.random.choice(["pg", "pg_transaction", "http"]))
        self.writes.append(write)
        kinds = ["node", "nodes", "gateway", "all"] + (["catalog"] * 3 if self.postgres else [])
        kind = self.random.choice(kinds) if key >= 5 and self.random.random() < 0.6 else None
        usual_s = sorted(self.took_s)[len(self.took_s) // 2] if self.took_s else 0.1
        after_s = self.random.random() * 1.5 * usual_s
        thread = threading.Thread(target=write.run, args=(self.pool,), daemon=True)
        began = time.monotonic()
        thread.start()
        if kind:
            thread.join(after_s)  # the moment of the kill is what is drawn
            self.kill(kind)
        thread.join(120)
        assert not thread.is_alive(), f"write {key} over {write.way} hangs"
        if kind is None and write.said == "acknowledged":
            self.took_s.append(time.monotonic() - began)
        assert kind or write.said == "acknowledged", f"write {key} failed, though nothing was killed: {write.error}"
        if kind:
            self.wait_whole()

    def kill(self, kind):
        self.kills[kind] += 1
        if kind == "catalog":
            return self.postgres.end_connections()
        victims = [self.random.randrange(self.pool.node_count)] if kind == "node" else []
        if kind in ("nodes", "all"):
            victims = range(self.pool.node_count)
        self.killed = [(index, self.pool.kill_node(index)) for index in victims]
        self.killed_gateway = self.pool.kill_gateway() if kind in ("gateway", "all") else None

    def wait_whole(self):
        if self.killed_gateway:
            self.pool.wait_gateway_replaced(self.killed_gateway)
        for index, pid in self.killed:
            self.pool.wait_node_replaced(index, pid)
        self.killed, self.killed_gateway = [], None
        def whole():
            try:
                return len(self.pool.online_nodes()) == self.pool.node_count and self.pool.sql("SELECT 1 AS x")
            except (AssertionError, requests.RequestException, KeyError):
                return False
            except Exception as error:  # noqa: BLE001: a statement may still meet what was killed
                if "StatementFailed" in type(error).__name__:
                    return False
                raise
        wait_until(whole, 60, "the pool is whole again")
        self.pool.remember()

    # --- the judgement

    def check(self):
        rows = self.pool.sql("SELECT k, count(*) AS n, count(DISTINCT part) AS d FROM once GROUP BY k ORDER BY k")
        stored = {row["k"]: (int(row["n"]), int(row["d"])) for row in rows}
        for key, counts in stored.items():
            assert counts == (ROWS, ROWS), f"write {key} is there in part or twice: {counts}"
        for write in self.writes:
            there = write.key in stored
            if write.said in ("acknowledged", "written"):
                assert there, f"write {write.key} over {write.way} is lost: {write.said} {write.error}"
            if write.said == "not written":
                assert not there, f"write {write.key} over {write.way} is there: {write.error}"
            if write.id:
                self.check_asked_again(write, there)
        self.check_history(stored)
        self.check_files()
        return collections.Counter(f"{write.said}{'' if write.key in stored else ', absent'}" for write in self.writes)

    def check_asked_again(self, write, there):
        def over():
            answer = self.pool.request("GET", f"/api/queries/{write.id}?wait_timeout_s=5")
            if answer.status_code == 404:
                return "unheard of"  # its beginning had not been acknowledged
            statement = answer.json()
            settled = statement["status"] not in ("queued", "running") and statement.get("error_code") != "commit_unknown"
            return settled and statement["status"]
        status = wait_until(over, 60, f"write {write.key} is settled")
        assert (status == "done") == there, f"write {write.key} over {write.way} is told to be {status}, there: {there}"

    def check_history(self, stored):
        """Every record of a write by itself that has an end says what is true."""
        cursor, seen = "", 0
        while cursor is not None:
            path = "/api/workspaces/main/queries?limit=1000" + (f"&cursor={cursor}" if cursor else "")
            page = self.pool.request("GET", path).json()
            for item in page["items"]:
                found = re.fullmatch(rf"INSERT INTO once SELECT (\d+), range FROM range\({ROWS}\)", item["sql"])
                if not found or item["status"] in ("queued", "running"):
                    continue
                seen += 1
                there = int(found.group(1)) in stored
                assert (item["status"] == "done") == there, f"the history says {item}, there: {there}"
            cursor = page.get("cursor")
        assert seen > 0

    def check_files(self):
        """Every file that the catalog names is there."""
        missing = [path for path in self.referenced_files() if not path.exists()]
        assert not missing, f"files that the catalog names are gone: {missing[:5]}"

    def referenced_files(self):
        return duck.referenced_files(self.pool.dir, self.postgres and self.postgres.dsn())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--writes", type=int, default=500)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--catalog", choices=["sqlite", "postgres"], default="sqlite")
    options = parser.parse_args()
    print(f"{options.catalog}, seed {options.seed}", flush=True)
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        postgres = stack.enter_context(Postgres()) if options.catalog == "postgres" else None
        flags = postgres.flags() if postgres else []
        pool = stack.enter_context(Pool(pathlib.Path(directory) / "pool", nodes=2, flags=flags))
        rounds = Rounds(pool, options.writes, options.seed, postgres, say=lambda text: print(text, flush=True))
        outcomes = rounds.run().check()
    print(f"kills: {dict(rounds.kills)}")
    for outcome, count in sorted(outcomes.items()):
        print(f"{count:5}  {outcome}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
