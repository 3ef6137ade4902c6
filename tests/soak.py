"""The long run: python3 tests/soak.py [MINUTES] (./dev soak). A pool under mixed load from both fronts, with cancels,
clients that vanish and a node that is killed now and then; then the fuzz targets. What must hold is checked, and a dated
report with figures goes to docs/reports/. Ends with status 1 when something did not hold.

    ./dev soak 60                     the lake in a directory
    ./dev soak 10 --store-faults      the lake in an S3 store, and faults of store and disk beside (soak_faults.py)

test_soak.py runs the short forms: Soak(pool, seconds).run() → (failures, figures).
"""

import argparse
import collections
import contextlib
import datetime
import functools
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import psycopg
import psutil
import requests

import soak_clients
import wire
from pool import ROOT, Pool, StatementFailed, wait_until
from soak_faults import Faults

NODES = 2
NODE_MEMORY_MIB = 768
RETENTION_S = 20  # of results, so that the sweep of the results directory is part of the run
RETRYABLE = {"57P01", "57P03", "08006", "08001", "08000", "08007", "40001", "53300"}
HANG_S = 90
# How long after a node is back an error may still be of its death.
GRACE_S = 5
# What may be more in the last quarter of the run than in the second. Judged from LONG_S on: a short run warms up.
LONG_S = 300
GATEWAY_GROWTH_MIB, NODE_GROWTH_MIB, GROWTH_FDS = 48, 160, 24


class Tally:
    """What the clients did, by kind. Thread-safe."""

    def __init__(self):
        self.lock = threading.Lock()
        self.latencies_s = collections.defaultdict(list)
        self.errors = []  # (kind, began, ended, code, text)
        self.wrong = []   # what no kill excuses
        self.acknowledged = collections.Counter()  # statements, by what the history calls them

    def done(self, kind, seconds):
        with self.lock:
            self.latencies_s[kind].append(seconds)

    def acknowledge(self, what, count=1):
        with self.lock:
            self.acknowledged[what] += count

    def error(self, kind, began, code, text):
        with self.lock:
            self.errors.append((kind, began, time.monotonic(), code, text))

    def failed(self, text):
        with self.lock:
            self.wrong.append(text)


def code_of(error):
    """The SQLSTATE or HTTP status of what a client met; None: the connection was cut."""
    if isinstance(error, (psycopg.Error, wire.ServerError)):
        return error.sqlstate
    if isinstance(error, StatementFailed):
        return error.statement.get("sqlstate") or error.statement.get("details", {}).get("sqlstate") or error.statement.get("http_status")
    if isinstance(error, requests.HTTPError):
        return error.response.status_code
    return None


class Client(threading.Thread):
    """Runs steps of one kind until told to stop."""

    def __init__(self, soak, kind, number):
        super().__init__(name=f"{kind.__name__}-{number}", daemon=True)
        self.soak, self.step_since = soak, None
        self.work = kind(soak.pool, soak.tally, random.Random(f"{soak.seed} {self.name}"), number)

    def run(self):
        while not self.soak.stopping.is_set():
            began = self.step_since = time.monotonic()
            try:
                self.work.step()
                self.soak.tally.done(self.work.name, time.monotonic() - began)
            except AssertionError as error:
                self.soak.tally.failed(f"{self.name}: {error}")
            except (psycopg.Error, wire.ServerError, StatementFailed, requests.RequestException, OSError, EOFError) as error:
                self.soak.tally.error(self.work.name, began, code_of(error), f"{type(error).__name__} {error}")
                self.work.after_error()
            self.step_since = None
            self.soak.stopping.wait(self.work.pause_s())
        self.work.close()


class Watch:
    """Resident size and descriptors of the pool's processes, once a second."""

    def __init__(self, pool):
        self.pool, self.began = pool, time.monotonic()
        self.samples = collections.defaultdict(list)  # process name → [(pid, second, MiB, descriptors, threads)]

    def look(self):
        state = self.pool.run_state()
        for name, pid in [("gateway", state["gateway"]["pid"])] + [(f"node-{i + 1}", n["pid"]) for i, n in enumerate(state["nodes"])]:
            try:
                process = psutil.Process(pid)
                with process.oneshot():
                    self.samples[name].append((pid, time.monotonic() - self.began, process.memory_info().rss / 2**20,
                                               process.num_fds(), process.num_threads()))
            except (psutil.NoSuchProcess, ValueError):
                pass  # being replaced

    def quarter(self, name, number, field):
        """Median of a field in the second (1) or last (3) quarter of the run."""
        end = self.samples[name][-1][1]
        values = [sample[field] for sample in self.samples[name] if end * number / 4 <= sample[1] <= end * (number + 1) / 4]
        return statistics.median(values) if values else 0

    def most(self, name, field):
        return max(sample[field] for sample in self.samples[name])


class Soak:
    def __init__(self, pool, seconds, kill_every_s=60, seed=None, say=lambda text: None, faults=None):
        self.pool, self.seconds, self.kill_every_s, self.say, self.faults = pool, seconds, kill_every_s, say, faults
        self.seed = seed if seed is not None else random.randrange(1 << 30)
        self.tally, self.stopping, self.watch = Tally(), threading.Event(), Watch(pool)
        self.kills = []  # (when, back again)
        self.clients = []

    def run(self):
        """What did not hold, and the figures of the run."""
        soak_clients.prepare(self.pool)
        for kind, count in soak_clients.MIX if self.faults is None else soak_clients.FAULTS_MIX:
            self.clients += [Client(self, kind, number) for number in range(count)]
        for client in self.clients:
            client.start()
        beside = [threading.Thread(target=self.kill_now_and_then, daemon=True)]
        if self.faults is not None:
            beside.append(threading.Thread(target=self.faults.run, args=(self.stopping,), daemon=True))
        for thread in beside:
            thread.start()
        failures = self.watch_over()
        self.stopping.set()
        for thread in [*beside, *self.clients]:
            thread.join(HANG_S)
        failures += [f"{thread.name} did not stop" for thread in [*self.clients, *beside] if thread.is_alive()]
        failures += self.judge_errors() + self.settle() + self.judge_growth()
        failures += [f"wrong: {text}" for text in self.tally.wrong]
        return failures, self.figures()

    def watch_over(self):
        end, hung = time.monotonic() + self.seconds, []
        told = time.monotonic()
        while time.monotonic() < end and not hung and not self.tally.wrong:
            self.stopping.wait(1)
            self.watch.look()
            now = time.monotonic()
            hung = [f"{c.name} hangs" for c in self.clients if c.step_since and now - c.step_since > HANG_S]
            if now - told > 30:
                told = now
                steps = sum(map(len, self.tally.latencies_s.values()))
                self.say(f"{int(end - now)} s to go: {steps} steps, {len(self.tally.errors)} errors, {len(self.kills)} kills")
        return hung

    def kill_now_and_then(self):
        """The first node; the others live through the whole run."""
        while not self.stopping.wait(self.kill_every_s):
            began = time.monotonic()
            self.kills.append((began, float("inf")))
            try:
                old = self.pool.kill_node(0)
                self.pool.wait_node_replaced(0, old)
            except (AssertionError, OSError) as error:
                self.tally.failed(f"the killed node did not come back: {error}")
                return
            self.kills[-1] = (began, time.monotonic())

    def judge_errors(self):
        def excused(began, ended, code):
            near = any(began <= back + GRACE_S and ended >= killed for killed, back in self.kills)
            return (near and (code in RETRYABLE or code in (502, 503, 504, 410))) or (
                self.faults is not None and self.faults.excused(began, ended, code, GRACE_S))
        return [f"{kind} failed: {code} {text[:300]}" for kind, began, ended, code, text in self.tally.errors
                if not excused(began, ended, code)][:20]

    def settle(self):
        """What must be so once the clients are gone."""
        failures = []

        def expect(what, condition, within_s=30):
            try:
                wait_until(condition, within_s, what)
            except AssertionError as error:
                failures.append(str(error))

        expect("all nodes are online and idle", lambda: sum(n["running"] == 0 for n in self.pool.online_nodes()) == self.pool.node_count)
        expect("nothing is spilled", lambda: self.files("spill") == [])
        failures += [f"left in spill: {path.relative_to(self.pool.dir)}, {path.stat().st_size} bytes, "
                     f"{time.time() - path.stat().st_mtime:.0f} s old" for path in self.files("spill")]
        if self.seconds >= LONG_S:
            # A node sweeps once a minute.
            expect("results are swept", lambda: self.files("results") == [], RETENTION_S + 90)
        if self.faults is not None and self.seconds >= LONG_S:
            # A disk that failed again and again is looked at every minute, by a node without reads at its next sweep.
            expect("the caches are back", lambda: set(self.faults.cache_modes(self.pool)) == {0}, 150)
        failures += [f"lost or wrong: {text}" for client in self.clients for text in client.work.check()]
        failures += self.judge_history()
        return failures

    def files(self, folder):
        return [path for path in self.pool.dir.glob(f"nodes/*/{folder}/**/*") if path.is_file()]

    def judge_history(self):
        history, cursor = [], ""
        while cursor is not None:
            answer = self.pool.request("GET", "/api/workspaces/main/queries?limit=1000" + (f"&cursor={cursor}" if cursor else ""))
            answer.raise_for_status()
            page = answer.json()
            history += page["items"]
            cursor = page["cursor"] if page["has_more"] else None
        self.history = len(history)
        failures = []
        open_ones = [item["id"] for item in history if item["status"] in ("queued", "running")]
        if open_ones:
            failures.append(f"the history says of {len(open_ones)} statements that they run: {open_ones[:3]}")
        if len({item["id"] for item in history}) != len(history):
            failures.append("a statement is in the history twice")
        found = collections.Counter(f"{item['statement_type']} {item['status']}" for item in history)
        for what, count in self.tally.acknowledged.items():
            if found[what] < count:
                failures.append(f"the history has {found[what]} of at least {count} of: {what}")
        return failures

    def judge_growth(self):
        failures = []
        if self.watch.most(f"node-{NODES}", 2) > NODE_MEMORY_MIB:
            failures.append(f"a node took {self.watch.most(f'node-{NODES}', 2):.0f} MiB of {NODE_MEMORY_MIB}")
        if self.seconds < LONG_S:
            return failures
        for name, limit_mib in (("gateway", GATEWAY_GROWTH_MIB), (f"node-{NODES}", NODE_GROWTH_MIB)):
            grown = self.watch.quarter(name, 3, 2) - self.watch.quarter(name, 1, 2)
            if grown > limit_mib:
                failures.append(f"{name} grew by {grown:.0f} MiB")
            more = self.watch.quarter(name, 3, 3) - self.watch.quarter(name, 1, 3)
            if more > GROWTH_FDS:
                failures.append(f"{name} has {more:.0f} more descriptors")
        return failures

    def figures(self):
        lines = [f"{self.history} statements in the history, {len(self.kills)} kills of a node"
                 + (f" (back after {max(back - killed for killed, back in self.kills):.1f} s at most)" if self.kills else "")
                 + f", seed {self.seed}", *([self.faults.figures()] if self.faults else []), "",
                 "| client | steps | steps/s | p50 ms | p99 ms | most ms | errors by code |", "|---|---|---|---|---|---|---|"]
        for kind in sorted(set(self.tally.latencies_s) | {error[0] for error in self.tally.errors}):
            times = sorted(self.tally.latencies_s[kind]) or [0]
            codes = collections.Counter(str(error[3]) for error in self.tally.errors if error[0] == kind)
            lines.append(f"| {kind} | {len(times)} | {len(times) / self.seconds:.1f} | {times[len(times) // 2] * 1000:.0f} | "
                         f"{times[int(len(times) * 0.99)] * 1000:.0f} | {times[-1] * 1000:.0f} | "
                         f"{', '.join(f'{code}: {n}' for code, n in sorted(codes.items()))} |")
        lines += ["", "| process | resident MiB: second quarter | last quarter | most | descriptors: second quarter | last quarter | most | threads, most |",
                  "|---|---|---|---|---|---|---|---|"]
        for name in sorted(self.watch.samples):
            q = self.watch.quarter
            lines.append(f"| {name} | {q(name, 1, 2):.0f} | {q(name, 3, 2):.0f} | {self.watch.most(name, 2):.0f} | {q(name, 1, 3):.0f} | "
                         f"{q(name, 3, 3):.0f} | {self.watch.most(name, 3)} | {self.watch.most(name, 4)} |")
        return "\n".join(lines)


def make_pool(directory, faults=None):
    make = functools.partial(Pool, directory) if faults is None else faults.pool
    return make(nodes=NODES, node_memory=f"{NODE_MEMORY_MIB}MiB", env={"ROOST_RESULT_RETENTION_MS": f"{RETENTION_S}s"})


def fuzz(seconds, say):
    """What ./dev fuzz says of each target, and whether there was a finding."""
    say(f"fuzz targets, {seconds} s each")
    done = subprocess.run([ROOT / "dev", "fuzz", str(seconds)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    lines = [line for line in done.stdout.splitlines() if line]
    return (["./dev fuzz failed"] if done.returncode else []), lines


def report(path, minutes, failures, figures, fuzzed):
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    memory_gib = psutil.virtual_memory().total / 2**30
    text = [f"# Soak of {datetime.date.today()}", "",
            f"{minutes:g} minutes of mixed load on a pool of {NODES} nodes of {NODE_MEMORY_MIB} MiB; commit {commit}; "
            f"{os.cpu_count()} CPUs, {memory_gib:.0f} GiB; load of the machine at the end {os.getloadavg()[1]:.1f}. "
            "What is done and checked: tests/soak.py, tests/soak_clients.py.", "",
            "**All held.**" if not failures else "**Did not hold:**", ""]
    text += [f"- {failure}" for failure in failures] + [""] * bool(failures) + [figures, ""]
    text += ["## Fuzz targets", ""] + ([f"- {line}" for line in fuzzed] or ["Not run."])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(text) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("minutes", type=float, nargs="?", default=60)
    parser.add_argument("--fuzz-seconds", type=int, default=300, help="for each fuzz target afterwards; 0: none (default 300)")
    parser.add_argument("--kill-every", type=float, default=60, metavar="SECONDS")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--store-faults", action="store_true", help="the lake in an S3 store, with faults of store and disk")
    parser.add_argument("--report", type=pathlib.Path)
    options = parser.parse_args()
    name = "soak-store-faults" if options.store_faults else "soak"
    options.report = options.report or ROOT / "docs" / "reports" / f"{datetime.date.today()}-{name}.md"
    options.seed = options.seed if options.seed is not None else random.randrange(1 << 30)

    def say(text):
        print(f"soak: {text}", file=sys.stderr, flush=True)

    with contextlib.ExitStack() as stack:
        directory = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="roost-soak-")))
        faults = stack.enter_context(Faults(directory, options.seed)) if options.store_faults else None
        pool = stack.enter_context(make_pool(directory / "pool", faults))
        soak = Soak(pool, options.minutes * 60, options.kill_every, options.seed, say, faults)
        say(f"{options.minutes:g} minutes, seed {soak.seed}, logs in {pool.dir}/log")
        failures, figures = soak.run()
        status, seconds = pool.stop()
        if status != 0:
            failures.append(f"roost up ended with status {status} after {seconds:.1f} s")
        if failures:
            print(pool.logs(lines=40), file=sys.stderr)
    fuzzed = []
    if options.fuzz_seconds > 0:
        found, fuzzed = fuzz(options.fuzz_seconds, say)
        failures += found
    report(options.report, options.minutes, failures, figures, fuzzed)
    print(options.report.read_text())
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
