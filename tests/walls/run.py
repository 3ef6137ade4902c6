"""The walls, tried: every statement of the guard's corpora, and what outside clients left in the lake, against a pool
whose walls are up, away one by one, and up one by one.

    python tests/walls/run.py [--binary build/release/roost_switched_walls] [--report FILE] [--only REGEX] [--store both|directory|s3]
                              [--part all|single|alone] [--every N] [--away WALL,…]

Prints two tables for each store and writes them to the report. Ends with status 1 when a canary sang with all walls up or
with any single wall away. Takes some twenty minutes a store; tests/test_canaries.py is the short form.
"""

import argparse
import collections
import contextlib
import datetime
import os
import pathlib
import re
import sys
import tempfile
import time

import psycopg

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from walls.canaries import FIXTURE, Canaries  # noqa: E402
from pool import ROOT, StatementFailed  # noqa: E402

WALLS = ["guard", "statement_kinds", "functions", "replacement_scans", "configuration", "bound_plan", "files", "process"]
CORPORA = [ROOT / "sql" / "testdata" / name for name in ("guard.tsv", "classmates.tsv")]
WHOLE = "SELECT (SELECT count(*) FROM lake.main.orders), (SELECT count(*) FROM lake.main.customers), (SELECT count(*) FROM lake.main.v_big)"
Line = collections.namedtuple("Line", "id context verdict cls sql first")


def read_lines(only=".", every=1):
    lines = []
    for corpus in CORPORA:
        if not corpus.exists():
            continue
        for row in corpus.read_text(encoding="utf-8").rstrip("\n").split("\n")[1:]:
            id_, context, verdict, cls, sql, note = row.split("\t")
            first = re.search(r"\{first: (.*?)\} \[", note + " [")
            if re.search(only, f"{id_} {context} {verdict} {cls}"):
                lines.append(Line(id_, context, verdict, cls, sql, first.group(1) if first else None))
    return lines[::every]


Answer = collections.namedtuple("Answer", "ran text lost")


def by_pg(pool, first, sql):
    """Postgres wire, a session of its own."""
    said = []
    try:
        with psycopg.connect(pool.pg_dsn, autocommit=True, options="-c statement_timeout=5000", connect_timeout=10) as session:
            session.add_notice_handler(lambda notice: said.append(str(notice.message_primary)))
            if first:
                try:
                    session.execute(first.encode())
                except psycopg.Error as error:
                    said.append(str(error))
            cursor = session.execute(sql.encode(), prepare=False)
            while True:
                if cursor.description:
                    said.append(str([column.name for column in cursor.description]))
                    said.append(str(cursor.fetchmany(50)))
                if not cursor.nextset():
                    break
        return Answer(True, "\n".join(said), False)
    except psycopg.Error as error:
        diag = error.diag
        said += [str(error), str(diag.message_primary), str(diag.message_detail), str(diag.message_hint)]
        return Answer(False, "\n".join(said), error.sqlstate is None)


def by_http(pool, sql):
    """HTTP, one shot; with its kept rows and its profile."""
    said = []
    try:
        done = pool.execute(sql, within_s=20, timeout_s=5)
        said.append(str(done))
        if done.get("columns"):
            answer = pool.request("GET", f"/api/queries/{done['id']}/rows?limit=50")
            said.append(answer.text)
        said.append(pool.request("GET", f"/api/queries/{done['id']}/profile").text)
        return Answer(True, "\n".join(said), False)
    except StatementFailed as failed:
        return Answer(False, str(failed.statement), failed.statement.get("http_status", 0) >= 500)
    except Exception as error:  # the gateway was away
        return Answer(False, str(error), True)


class Trial:
    """One setting of the walls: what each statement came to."""

    def __init__(self, canaries, binary, down, log=print):
        self.canaries, self.binary, self.down, self.log = canaries, binary, down, log
        self.ran, self.sang = set(), {}  # keys of statements: without an error; with what they touched
        self.statements = self.crashes = self.restarts = 0
        self.start()

    def start(self):
        self.pool = self.canaries.start_pool(",".join(self.down), self.binary)
        self.node = self.pool.node_pid(0)

    def whole(self):
        """Whether the pool answers as before; waits for a node that was lost."""
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            answer = by_pg(self.pool, None, WHOLE)
            if answer.ran:
                return "(200, 10, 133)" in answer.text
            if not answer.lost and "57P" not in answer.text and "node" not in answer.text:
                return False
            time.sleep(0.05)
        return False

    def mend(self):
        """After a statement that may have changed something."""
        if self.pool.node_pid(0) != self.node:
            self.crashes += 1
        if not self.whole() and not (all(by_pg(self.pool, None, sql).ran for sql in FIXTURE) and self.whole()):
            self.restarts += 1
            self.collect("end of a pool")
            self.start()
        self.node = self.pool.node_pid(0)

    def one(self, key, way, first, sql, changes):
        answer = by_http(self.pool, sql) if way == "http" else by_pg(self.pool, first, sql)
        self.statements += 1
        touched = self.canaries.touched(answer.text)
        if answer.ran:
            self.ran.add(key)
        if touched:
            self.sang.setdefault(key, set()).update(touched)
            if len(self.down) <= 1:
                self.log(f"  SANG with {','.join(self.down) or 'nothing'} away: {key} {way}: {sql[:150]!r}: {sorted(touched)} {answer.text[:300]!r}")
        if answer.lost or (answer.ran and changes) or self.pool.node_pid(0) != self.node:
            self.mend()
            self.canaries.touched("")

    def run(self, lines, ways=("pg", "http"), each_way=False):
        """`each_way`: a line that may be sent both ways is; else the ways take turns."""
        for number, line in enumerate(lines):
            fitting = [way for way in ways if line.context in ("both", "oneshot" if way == "http" else "session")
                       and not (way == "http" and line.first)]
            for way in fitting if each_way else fitting[number % max(len(fitting), 1):][:1]:
                changes = line.verdict == "deny" or line.cls in ("ddl", "dml", "multi", "session")
                first = line.first and self.canaries.variants(line.first)[0]
                for sql in self.canaries.variants(line.sql):
                    self.one(line.id, way, first, sql, changes)
        for number, (_, sql) in enumerate(self.canaries.of_outsiders()):
            self.one(f"outsider {number}: {sql[:60]}", ways[number % len(ways)], None, sql, False)
        self.collect("the end")
        return self

    def collect(self, when):
        """What stands in tables and files after all."""
        tables = by_pg(self.pool, None, "SELECT table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE'")
        for name in re.findall(r"\('(\w+)',\)", tables.text):
            kept = by_pg(self.pool, None, f'SELECT * FROM "{name}" LIMIT 1000')
            if marks := self.canaries.sung(kept.text):
                self.sang[f"{when}: table {name}"] = marks
        for mark, files in self.canaries.left_behind().items():
            self.sang[f"{when}: {mark} in {', '.join(files[:3])}"] = {f"file of {mark}"}
        for key in [key for key in self.sang if key.startswith(when)]:
            if len(self.down) <= 1:
                self.log(f"  SANG with {','.join(self.down) or 'nothing'} away: {key}")


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows])


def singles(canaries, binary, lines, log, away=("none", *WALLS)):
    """All up ("none"), then each wall away. The table, and whether a canary sang."""
    rows, good = [], True
    for down in [[] if wall == "none" else [wall] for wall in away]:
        began = time.monotonic()
        trial = Trial(canaries, binary, down, log).run(lines, each_way=not down)
        denied = [line for line in lines if line.verdict == "deny"]
        ran = sum(line.id in trial.ran for line in denied)
        rows.append([down[0] if down else "none", trial.statements, f"{len(denied)} / {ran}", len(trial.sang), trial.crashes])
        good &= not trial.sang
        log(f"away: {rows[-1]} in {time.monotonic() - began:.0f} s; denied that ran: "
            f"{[line.id for line in denied if line.id in trial.ran]}")
    return table(["wall away", "statements run", "hostile / ran without an error", "canaries that sang", "nodes lost"], rows), good


def alones(canaries, binary, lines, log):
    """What each wall stops alone, of what does harm when none stands."""
    hostile = [line for line in lines if line.verdict == "deny" and line.cls != "parse"]
    trials = {}
    for name in ["none", *WALLS]:
        down = [wall for wall in WALLS if wall != name]
        trials[name] = Trial(canaries, binary, down, log).run(hostile)
        log(f"alone: {name}: {trials[name].statements} statements, {len(trials[name].sang)} sang, "
            f"{trials[name].crashes} nodes lost, {trials[name].restarts} pools started again")
    bare = trials["none"]
    harm = {line.id for line in hostile if line.id in bare.ran or line.id in bare.sang}
    outside = {key for key in bare.sang if key.startswith("outsider")}
    rows = []
    for cls in sorted({line.cls for line in hostile}):
        here = {line.id for line in hostile if line.cls == cls and line.id in harm}
        sang = {key for key in here if key in bare.sang}
        row = [cls, sum(line.cls == cls for line in hostile), f"{len(here)} ({len(sang)})"]
        for wall in WALLS:
            trial = trials[wall]
            left = [key for key in here if key in trial.ran or key in trial.sang]
            row.append(f"{len(here) - len(left)} ({sum(key not in trial.sang for key in sang)})")
        rows.append(row)
    row = ["outsider", len(canaries.of_outsiders()), f"{len(outside)} ({len(outside)})"]
    for wall in WALLS:
        stopped = sum(key not in trials[wall].sang for key in outside)
        row.append(f"{stopped} ({stopped})")
    rows.append(row)
    rows.append(["nodes lost", "", bare.crashes] + [trials[wall].crashes for wall in WALLS])
    return table(["class", "hostile", "harm when none stands (of these a canary)"] + WALLS, rows)


def tried(store, options, lines, log):
    """The report's part for one store, and whether no canary sang."""
    report, good = [], True
    kind = {"directory": "a directory", "s3": "S3"}[store]
    # In that folder: with walls away a relative path is written to.
    with tempfile.TemporaryDirectory(prefix="walls-") as directory, contextlib.chdir(directory), Canaries(directory, store) as canaries:
        if options.part in ("all", "single"):
            text, good = singles(canaries, options.binary, lines, log, options.away.split(","))
            report += [f"## Canaries, with each wall away: the lake's data on {kind}", "", text, ""]
        if options.part in ("all", "alone"):
            text = alones(canaries, options.binary, lines, log)
            report += [f"## What each wall stops alone: the lake's data on {kind}", "", text, ""]
    return report, good


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", default=str(ROOT / "build" / "release" / "roost_switched_walls"))
    parser.add_argument("--report")
    parser.add_argument("--only", default=".")
    parser.add_argument("--store", default="both", choices=["both", "directory", "s3"])
    parser.add_argument("--part", default="all", choices=["all", "single", "alone"])
    parser.add_argument("--away", default=",".join(["none", *WALLS]), help="of the part single: only these walls away, or none")
    parser.add_argument("--every", type=int, default=1, help="only each Nth line of the corpora")
    options = parser.parse_args()
    options.binary = os.path.abspath(options.binary)
    options.report = options.report and os.path.abspath(options.report)
    lines = read_lines(options.only, options.every)
    report, good = [], True
    log = lambda text: print(text, flush=True)  # noqa: E731
    for store in ("directory", "s3") if options.store == "both" else (options.store,):
        log(f"store: {store}")
        part, silent = tried(store, options, lines, log)
        report += part
        good &= silent
    text = "\n".join(report)
    print(text)
    if options.report:
        head = (HERE / "report_head.md").read_text().replace("DATE", datetime.date.today().isoformat())
        pathlib.Path(options.report).write_text(head + f"\n{len(lines)} statements of the corpora.\n\n" + text)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
