"""`./dev bench cache`: the segment cache against plain DuckDB, in one run, as ratios.

    ./dev bench cache [--scale 3] [--days 200] [--rounds 5] [--delay-ms 30] [--json FILE]

One node over an S3 server (versitygw) behind a proxy that lets each request wait. Two tables: TPC-H's lineitem in a few large files,
and events, a file for each day as nightly loads leave them. What roost is held against reads the same files with the same
DuckDB, as many threads and as much memory as the statement is granted in roost:

    httpfs   read_parquet over S3 through the same proxy, nothing known of any file (cold)
    local    read_parquet over the same files on the disk, without DuckDB's cache of external files: read anew each time
    lake     the same files on the disk as a DuckLake, as roost reads them: what is between it and `local` is DuckLake's own work
    in RAM   the same as httpfs, read before: DuckDB's own cache of external files holds it

"One row" is a statement that reads one row: what planning and the wire take however much is read, which is little beside a scan that
takes a second. Times are by turns and medians. The page cache of the system is warm in all of them: nothing here says how fast the disk is.
"""

import argparse
import contextlib
import json
import os
import pathlib
import statistics
import tempfile
import time

import psutil
import psycopg

import duck
from delay_proxy import DelayProxy
from pool import Pool, wait_until
from stores import S3

CACHE_BYTES = "16GiB"
GENERATE_WITHIN_S = 1800  # the sample, on a busy machine
MAKE_EVENTS = """
CREATE TABLE {schema}events AS SELECT TIMESTAMP '2026-01-01' AS at, 0::BIGINT AS visitor, '' AS session, '' AS page, '' AS referrer,
    '' AS country, '' AS device, 0::INTEGER AS took_ms, 0::DECIMAL(12, 2) AS amount, FALSE AS bought, '' AS agent LIMIT 0"""
ADD_A_DAY = """
INSERT INTO {schema}events SELECT TIMESTAMP '2026-01-01' + INTERVAL ({day}) DAY + INTERVAL (i * 86400000000 // {rows}) MICROSECOND,
    hash(i, {day}) % 400000, md5((i // 7)::VARCHAR || {day}), '/shop/' || (hash(i, 1, {day}) % 900) || '/item-' || (hash(i, 2, {day}) % 30000),
    CASE WHEN i % 3 = 0 THEN NULL ELSE 'https://search.example/q=' || (hash(i, 3) % 5000) END,
    ['DE','FR','US','GB','NL','ES','IT','PL','SE','JP'][1 + (hash(i, 4, {day}) % 100 // 11)::INTEGER],
    ['phone','desktop','tablet'][1 + (hash(i, 5, {day}) % 3)::INTEGER], (20 + hash(i, 6, {day}) % 900)::INTEGER,
    ((hash(i, 7, {day}) % 30000) / 100)::DECIMAL(12, 2), hash(i, 8, {day}) % 23 = 0, 'agent/' || (hash(i, 9) % 400)
    FROM range({rows}) r(i)"""

WARM_SOURCES = ("roost", "local", "lake", "in RAM")
# What every statement costs, however much it reads.
ONE_ROW = {"lineitem": "SELECT l_linestatus FROM {} LIMIT 1", "events": "SELECT device FROM {} LIMIT 1"}
ONE_ROW_ROUNDS = 12

QUERIES = {
    "lineitem, 4 columns (TPC-H 6)": ("lineitem", "SELECT sum(l_extendedprice * l_discount) FROM {} WHERE l_shipdate >= DATE '1994-01-01' "
        "AND l_shipdate < DATE '1995-01-01' AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24"),
    "lineitem, 7 columns (TPC-H 1)": ("lineitem", "SELECT l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice), "
        "sum(l_extendedprice * (1 - l_discount)), sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)), avg(l_quantity), "
        "avg(l_extendedprice), avg(l_discount), count(*) FROM {} WHERE l_shipdate <= DATE '1998-09-02' GROUP BY ALL ORDER BY 1, 2"),
    "lineitem, all columns": ("lineitem", "SELECT count(*), max(COLUMNS(*)) FROM {}"),
    "events, 3 columns": ("events", "SELECT country, count(*), sum(amount) FROM {} WHERE bought GROUP BY ALL ORDER BY 1"),
    "events, all columns": ("events", "SELECT count(*), max(COLUMNS(*)) FROM {}"),
}


def milliseconds(call):
    began = time.perf_counter()
    answer = call()
    return (time.perf_counter() - began) * 1000, answer


class Bench:
    def __init__(self, folder, options):
        self.folder, self.options = pathlib.Path(folder), options
        self.stack = contextlib.ExitStack()

    def __enter__(self):
        self.s3 = self.stack.enter_context(S3(self.folder / "s3", prefix="lake"))
        self.proxy = self.stack.enter_context(DelayProxy(("127.0.0.1", self.s3.port), self.options.delay_ms / 1000))
        self.pool = self.stack.enter_context(Pool(self.folder / "pool", nodes=1, sample=f"tpch:{self.options.scale}",
                                                  node_memory=self.options.node_memory, flags=self._flags(self.s3.port), env=self.s3.env(), start=False))
        self.pool.launch()
        self.pool.wait_ready(GENERATE_WITHIN_S)
        self.pool.execute(MAKE_EVENTS.format(schema=""))
        for day in range(self.options.days):
            self.pool.execute(ADD_A_DAY.format(schema="", day=day, rows=self.options.day_rows))
        self.files = {table: self._files(table) for table in ("lineitem", "events")}
        self.pool.stop()
        self.start(self.options.node_memory)
        return self

    def __exit__(self, *_):
        self.stack.close()

    def _flags(self, port):
        return self.s3.flags(port=port) + ["--cache-max-bytes", CACHE_BYTES]

    def _files(self, table):
        # All that are there are of the newest snapshot: nothing was deleted.
        return sorted(str(path) for path in (self.s3.root / self.s3.bucket).rglob("*.parquet") if f"/{table}/" in str(path))

    def start(self, node_memory):
        """With the store at its distance."""
        flags = self._flags(self.s3.port)
        self.pool.arguments = [*self.pool.arguments[:-len(flags)], *self._flags(self.proxy.port)]
        self.pool.arguments[self.pool.arguments.index("--node-memory") + 1] = node_memory
        self._start()

    def _start(self):
        self.pool.start()
        wait_until(lambda: len(self.pool.online_nodes()) == 1, 60, "the node is there")
        self.connection = psycopg.connect(self.pool.pg_dsn, autocommit=True)
        # Instances are made, the small one and a large one, and the catalog is read; nothing of the tables is.
        for _ in range(3):
            self.roost("SELECT count(*), max(c_comment) FROM {}", "customer")
            self.roost("SELECT count(*), max(o_orderkey) FROM {}", "orders")

    def restart(self, cold):
        self.connection.close()
        self.pool.stop()
        if cold:
            for file in self.pool.dir.rglob("cache/*"):
                file.unlink()
        self._start()

    # --- what is measured

    def roost(self, sql, table):
        return self.connection.execute(sql.format(table)).fetchall()

    def duckdb(self, source, memory_bytes):
        """A function as roost(): a DuckDB in process that reads the same files."""
        connection = duck.connect("sqlite_scanner", "httpfs", "ducklake")
        port = self.proxy.port
        for name, value in (("endpoint", f"127.0.0.1:{port}"), ("region", "us-east-1"), ("use_ssl", "false"), ("url_style", "path"),
                            ("access_key_id", self.s3.access_key), ("secret_access_key", self.s3.secret_key)):
            connection.execute(f"SET s3_{name} = '{value}'")
        connection.execute(f"SET threads = {os.cpu_count()}")
        connection.execute(f"SET memory_limit = '{memory_bytes}B'")
        connection.execute(f"SET enable_external_file_cache = {'false' if source in ('local', 'lake') else 'true'}")

        def run(sql, table):
            files = self.files[table]
            if source != "local":
                files = ["s3://" + str(pathlib.Path(file).relative_to(self.s3.root)) for file in files]
            return connection.execute(sql.format(f"read_parquet({files})")).fetchall()
        if source == "lake":
            catalog = next(path for path in self.pool.dir.rglob("*.sqlite") if "catalog" in path.name or "lake" in path.name)
            connection.execute(f"ATTACH 'ducklake:sqlite:{catalog}' AS lake (READ_ONLY, META_JOURNAL_MODE 'WAL', DATA_PATH "
                               f"'{self.s3.root}/{self.s3.bucket}/{self.s3.prefix}/data/', OVERRIDE_DATA_PATH true)")
            connection.execute("USE lake")
            return lambda sql, table: connection.execute(sql.format(table)).fetchall()
        if source != "local":
            connection.execute("SELECT count(*) FROM glob('s3://warehouse/lake/nothing-*')").fetchall()  # connected
        return run

    def granted_bytes(self, what):
        """Memory of the statement in roost, for the others to have as much."""
        table, sql = QUERIES[what]
        statement = self.pool.execute(sql.format(table), within_s=300)
        granted = self.pool.request("GET", f"/api/queries/{statement['id']}/profile").json()["granted_bytes"]
        return max(granted, 256 << 20)  # a small statement shares an instance and is granted nothing of its own

    def table_bytes(self, table):
        return sum(pathlib.Path(file).stat().st_size for file in self.files[table])

    def runner(self, what, source, memory_bytes, table=None):
        table, sql = QUERIES[what] if what else (table, ONE_ROW[table])
        run = self.roost if source == "roost" else self.duckdb(source, memory_bytes)
        return lambda: run(sql, table)

    def cold(self, what, memory_bytes):
        """Milliseconds, requests, most requests at once and bytes, by source."""
        found = {"httpfs": [], "roost": []}
        for _ in range(self.options.cold_rounds):
            answers = []
            for source, kept in found.items():
                if source == "roost":
                    self.restart(cold=True)
                run = self.runner(what, source, memory_bytes)
                self.proxy.reset()
                took, answer = milliseconds(run)
                kept.append((took, self.proxy.requests, self.proxy.most_waiting, self.proxy.bytes))
                answers.append(answer)
            assert answers[0] == answers[1], f"{what}: {answers}"
        return {source: [statistics.median(column) for column in zip(*kept, strict=True)] for source, kept in found.items()}

    def warm(self, what, memory_bytes):
        """Milliseconds, those of CPU, and milliseconds of a statement that reads one row, by source; each has read it twice before."""
        runs = {source: self.runner(what, source, memory_bytes) for source in WARM_SOURCES}
        answers = [[run() for run in runs.values()] for _ in range(2)]
        assert all(answer == answers[0][0] for answer in answers[0] + answers[1]), what
        found = {source: [] for source in runs}
        for _ in range(self.options.rounds):
            for source, run in runs.items():
                cpu = self.cpu_ms()
                took = milliseconds(run)[0]
                found[source].append((took, self.cpu_ms() - cpu))
        one = {source: [] for source in runs}
        one_runs = {source: self.runner(None, source, memory_bytes, QUERIES[what][0]) for source in WARM_SOURCES}
        for _ in range(ONE_ROW_ROUNDS):
            for source, run in one_runs.items():
                one[source].append(milliseconds(run)[0])
        return {source: (*[statistics.median(column) for column in zip(*times, strict=True)], statistics.median(one[source][2:]))
                for source, times in found.items()}

    def cpu_ms(self):
        """Of this process, which DuckDB runs in, of the node and of the gateway; in steps of 10."""
        processes = [psutil.Process(), self.pool.node_process(0), self.pool.gateway_process()]
        return sum(1000 * (times.user + times.system) for times in (process.cpu_times() for process in processes))

    def first_after_restart(self, what, memory_bytes):
        """Milliseconds of the first run in a new process (roost, whose cache is warm) or a new instance (local)."""
        found = {"roost": [], "local": [], "lake": []}
        for _ in range(self.options.cold_rounds):
            for source, kept in found.items():
                if source == "roost":
                    self.restart(cold=False)
                kept.append(milliseconds(self.runner(what, source, memory_bytes))[0])
        return {source: statistics.median(times) for source, times in found.items()}


def measure(bench, what, kinds):
    report = {}
    memory = bench.granted_bytes(what)
    if "cold" in kinds:
        cold = report["cold"] = bench.cold(what, memory)
        for source, (took, requests, most, size) in cold.items():
            print(f"  cold, {source:<7} {took:7.0f} ms  {requests:.0f} requests, {most:.0f} at once, {size / 2**20:.0f} MiB")
    if "warm" in kinds:
        found = report["warm"] = bench.warm(what, memory)
        warm, cpu, one = ({source: took[i] for source, took in found.items()} for i in range(3))
        print("  warm   " + ", ".join(f"{source} {took:.0f} ms (CPU {cpu[source]:.0f}, one row {one[source]:.1f})" for source, took in warm.items()))
    if "restart" in kinds:
        again = report["restart"] = bench.first_after_restart(what, memory)
        print("  first after a restart   " + ", ".join(f"{source} {took:.0f} ms" for source, took in again.items()))
    lines = []
    if "cold" in kinds:
        lines.append(f"cold {cold['httpfs'][0] / cold['roost'][0]:.2f} × httpfs")
    if "cold" in kinds and "warm" in kinds:
        lines.append(f"warm {cold['roost'][0] / warm['roost']:.1f} × cold, {cold['httpfs'][0] / warm['roost']:.1f} × httpfs cold; "
                     f"local {cold['roost'][0] / warm['local']:.1f} × cold, {cold['httpfs'][0] / warm['local']:.1f} × httpfs cold")
    if "warm" in kinds:
        def beyond(source):
            return (warm[source] - one[source]) / (warm["roost"] - one["roost"])
        lines.append(f"warm {warm['local'] / warm['roost']:.2f} × local, {warm['lake'] / warm['roost']:.2f} × lake, "
                     f"{warm['in RAM'] / warm['roost']:.2f} × in RAM; beyond one row {beyond('local'):.2f} × local, "
                     f"{beyond('lake'):.2f} × lake, {beyond('in RAM'):.2f} × in RAM; CPU {cpu['local'] / cpu['roost']:.2f} × local")
    if "restart" in kinds:
        lines.append(f"after a restart {again['local'] / again['roost']:.2f} × local, {again['lake'] / again['roost']:.2f} × lake" +
                     (f", {warm['in RAM'] / again['roost']:.2f} × in RAM without one" if "warm" in kinds else ""))
    print("  SPEED  " + "; ".join(lines), flush=True)
    return report


def main(arguments):
    parser = argparse.ArgumentParser(prog="bench cache")
    parser.add_argument("--scale", default="4", help="of TPC-H; lineitem takes about 190 MB each")
    parser.add_argument("--days", type=int, default=200)
    parser.add_argument("--day-rows", type=int, default=60_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cold-rounds", type=int, default=3)
    parser.add_argument("--delay-ms", type=float, default=30)
    parser.add_argument("--node-memory", default="4GiB")
    parser.add_argument("--small-memory", default="768MiB", help="of a node whose statements get a quarter of lineitem's bytes")
    parser.add_argument("--only", default="", help="queries whose name holds this")
    parser.add_argument("--kinds", default="cold,warm,restart,small")
    parser.add_argument("--json")
    options = parser.parse_args(arguments)
    kinds, report = options.kinds.split(","), {}
    with tempfile.TemporaryDirectory(prefix="roost-bench-") as folder, Bench(folder, options) as bench:
        print(f"DuckDB {duck.connect().execute('SELECT version()').fetchone()[0]}, {os.cpu_count()} threads, {options.delay_ms:g} ms a request; "
              "SPEED is how many times as fast roost is")
        for table, files in bench.files.items():
            print(f"{table}: {bench.table_bytes(table) >> 20} MiB in {len(files)} files")
        for what in QUERIES:
            if options.only in what:
                print(f"{what}   (load {os.getloadavg()[0]:.1f})", flush=True)
                report[what] = measure(bench, what, kinds)
        if "small" in kinds:
            bench.pool.stop()
            bench.start(options.small_memory)
            what = "lineitem, all columns"
            granted = bench.granted_bytes(what)
            print(f"{what}, memory {granted >> 20} MiB, {bench.table_bytes('lineitem') / granted:.1f} × that of data   (load {os.getloadavg()[0]:.1f})", flush=True)
            report["small"] = measure(bench, what, [kind for kind in kinds if kind != "small"] or ["cold", "warm", "restart"])
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(report, indent=2) + "\n")
