"""`./dev bench`: roost against in-process DuckDB on the same lake, in one run, as ratios.

    ./dev bench [--scale 0.1] [--seconds 5] [--json FILE]
    ./dev bench cache …      the segment cache alone, over a store at a distance: bench/cache.py
    ./dev bench admission …  what statements ask of a node's memory against what they use: bench/statement_memory.py

Each figure is taken by turns with DuckDB in process (Python, the same lake attached), so that a busy machine slows both. For times a
ratio above 1 is slower than in process; for rates (per second) one below 1 is. CPU seconds are those of each process while the
figure was taken. The machine's cores are shared by client, gateway and nodes.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests"))

import psycopg  # noqa: E402
from psycopg.pq import ExecStatus  # noqa: E402

import cache  # noqa: E402
import duck  # noqa: E402
import statement_memory  # noqa: E402
from pool import ROOST, Pool  # noqa: E402

POINT = "SELECT o_totalprice, o_orderdate FROM orders WHERE o_orderkey = {}"
RELAY_ROWS = 2_000_000
RELAY = f"SELECT l.* FROM lineitem l, range(40) LIMIT {RELAY_ROWS}"


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


class InProcess:
    name = "in process"

    def __init__(self, lake=None, parent=None):
        self.connection = parent.connection.cursor() if parent else lake
        if parent:
            self.connection.execute("USE lake")

    def rows(self, sql):
        return self.connection.execute(sql).fetchall()

    def drain(self, sql):
        return sum(batch.num_rows for batch in self.connection.execute(sql).to_arrow_reader(65536))


class Pg:
    """libpq through psycopg's low level: what the wire costs, not Python's conversion of values."""
    name = "pg"

    def __init__(self, pool, prepared=False):
        self.connection = psycopg.connect(pool.pg_dsn, autocommit=True, prepare_threshold=None)
        self.pg = self.connection.pgconn
        self.prepared = prepared
        self.names = {}

    def rows(self, sql):
        if self.prepared:
            if sql not in self.names:
                self.names[sql] = f"s{len(self.names)}".encode()
                self.pg.prepare(self.names[sql], sql.encode())
            result = self.pg.exec_prepared(self.names[sql], [])
        else:
            result = self.pg.exec_(sql.encode())
        if result.status != ExecStatus.TUPLES_OK:
            raise RuntimeError(result.error_message.decode())
        return [[result.get_value(i, j) for j in range(result.nfields)] for i in range(result.ntuples)]

    def drain(self, sql):
        self.pg.send_query(sql.encode())
        self.pg.set_single_row_mode() if not hasattr(self.pg, "set_chunked_rows_mode") else self.pg.set_chunked_rows_mode(4096)
        count = 0
        while (result := self.pg.get_result()) is not None:
            if result.status == ExecStatus.FATAL_ERROR:
                raise RuntimeError(result.error_message.decode())
            count += result.ntuples
        return count


class Http:
    name = "http"

    def __init__(self, pool):
        self.pool = pool

    def rows(self, sql):
        return self.pool.execute(sql)["first_page"]["rows"]

    def drain(self, sql):
        """Submit, then the whole result as Arrow."""
        import pyarrow.ipc  # noqa: PLC0415

        statement = self.pool.execute(sql, within_s=300)
        answer = self.pool.request("GET", f"/api/queries/{statement['id']}/result?format=arrow", timeout=300, stream=True)
        answer.raise_for_status()
        return sum(batch.num_rows for batch in pyarrow.ipc.open_stream(answer.raw))


def point_sql(i):
    return POINT.format((i * 7919 % 4000) * 32 + i % 8)


def latencies(client, sql_of, count):
    out = []
    for i in range(count):
        began = time.perf_counter()
        client.rows(sql_of(i))
        out.append((time.perf_counter() - began) * 1e6)
    return out


def by_turns(clients, sql_of, count, rounds=4):
    """p50 and p99 in µs of each client, measured in slices by turns."""
    samples = [[] for _ in clients]
    for client in clients:
        latencies(client, sql_of, max(20, count // 20))
    for _ in range(rounds):
        for client, kept in zip(clients, samples, strict=True):
            kept += latencies(client, sql_of, count // rounds)
    return [(statistics.median(s), percentile(s, 0.99)) for s in samples]


def rate(make_client, sql_of, clients, seconds):
    """Statements a second, p50 and p99 in µs, of `clients` threads."""
    workers = [make_client() for _ in range(clients)]
    kept = [[] for _ in workers]
    barrier = threading.Barrier(clients + 1)
    stop = [float("inf")]

    def run(index):
        workers[index].rows(sql_of(index))
        barrier.wait()
        i = index * 1000
        while time.perf_counter() < stop[0]:
            i += 1
            began = time.perf_counter()
            workers[index].rows(sql_of(i))
            kept[index].append((time.perf_counter() - began) * 1e6)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(clients)]
    for thread in threads:
        thread.start()
    barrier.wait()
    began = time.perf_counter()
    stop[0] = began + seconds
    for thread in threads:
        thread.join()
    wall = time.perf_counter() - began
    every = [value for part in kept for value in part]
    return len(every) / wall, statistics.median(every), percentile(every, 0.99)


def guard_us():
    """What the guard takes of one point query, µs of CPU: the walk and the verdict alone, and with the parse before them
    (texts never seen before; those seen lately are not parsed again)."""
    done = subprocess.run([str(pathlib.Path(ROOST).parent / "sql_bench"), "--benchmark_filter=run_(check|front)/point_query_of_bench",
                           "--benchmark_format=json", "--benchmark_min_time=0.2"], capture_output=True, text=True, check=True)
    times = {entry["name"].split("/")[0]: entry["cpu_time"] / 1000 for entry in json.loads(done.stdout)["benchmarks"]}
    return times["run_check"], times["run_front"]


def benchmark(program, pattern):
    """Google Benchmark's entries by name: medians of five rounds."""
    done = subprocess.run([str(pathlib.Path(ROOST).parent / program), f"--benchmark_filter={pattern}", "--benchmark_format=json",
                           "--benchmark_repetitions=5", "--benchmark_report_aggregates_only=true", "--benchmark_min_time=0.1"],
                          capture_output=True, text=True, check=True)
    return {entry["run_name"]: entry for entry in json.loads(done.stdout)["benchmarks"]
            if entry["aggregate_name"] == "median"}


def placement(line, point_us):
    """Rank and routing: each against what it is an alternative to, in one run."""
    ranks = benchmark("placement_bench", "BM_owner|against_anew")
    for what, equal in (("equal weights", 1), ("mixed weights", 0)):
        straight = ranks[f"BM_owner_straightforward/equal:{equal}"]["cpu_time"]
        ours = ranks[f"BM_owner/equal:{equal}"]["cpu_time"]
        line(f"owner of a segment, 8 nodes, {what}", f"{ours:.0f} ns, {ours / straight:.2f} × hash, logarithm, compare",
             ours_ns=ours, straightforward_ns=straight)
    for what, name in (("leaves and joins, equal weights", "BM_leave_and_join_against_anew/equal:1"),
                       ("leaves and joins, mixed weights", "BM_leave_and_join_against_anew/equal:0"),
                       ("has other weight", "BM_weight_up_and_down_against_anew")):
        ratio = ranks[name]["ratio"]
        line(f"a node {what}", f"{ratio:.3f} × ranking 100,000 segments anew (at most 0.2)", ratio=ratio)
    for tables in (1, 5):
        route_us = benchmark("routing_bench", f"BM_route/tables:{tables}")[f"BM_route/tables:{tables}"]["cpu_time"] / 1000
        line(f"routing of {tables} of 10,000 tables", f"{route_us:.1f} µs, {route_us / point_us:.2%} of the point query over pg "
             f"({point_us:.0f} µs p50; at most 2 %)", route_us=route_us, point_query_us=point_us)


class CpuSeconds:
    """CPU seconds of the pool's processes over a stretch."""

    def __init__(self, pool):
        self.processes = {"gateway": [pool.gateway_process()], "nodes": [pool.node_process(i) for i in range(pool.node_count)]}

    def now(self):
        return {name: sum(sum(p.cpu_times()[:2]) for p in processes) for name, processes in self.processes.items()}

    def __enter__(self):
        self.before = self.now()
        return self

    def __exit__(self, *_):
        after = self.now()
        self.spent = {name: round(after[name] - self.before[name], 2) for name in after}


def main():
    if sys.argv[1:2] == ["cache"]:
        return cache.main(sys.argv[2:])
    if sys.argv[1:2] == ["admission"]:
        return statement_memory.main(sys.argv[2:])
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", default="0.1")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--json")
    options = parser.parse_args()
    report = {}
    with tempfile.TemporaryDirectory() as directory, \
            Pool(pathlib.Path(directory) / "pool", nodes=3, sample=f"tpch:{options.scale}", node_memory="2GiB") as pool:
        lake = InProcess(duck.attach_lake(pool.dir))
        pg, prepared, http = Pg(pool), Pg(pool, prepared=True), Http(pool)

        def line(what, text, **figures):
            report[what] = figures
            print(f"{what:<34} {text}", flush=True)

        for what, sql_of, count in (("SELECT 1", lambda _: "SELECT 1", options.count), ("point query", point_sql, options.count // 5)):
            with CpuSeconds(pool) as cpu:
                base, simple, ready, web = by_turns([lake, pg, prepared, http], sql_of, count)
            line(f"{what}, one connection",
                 f"in process {base[0]:.0f}/{base[1]:.0f} µs p50/p99; pg {simple[0] / base[0]:.2f} × / {simple[1] / base[1]:.2f} ×; "
                 f"prepared {ready[0] / base[0]:.2f} ×; http {web[0] / base[0]:.2f} ×; CPU s {cpu.spent}",
                 in_process_us=base, pg_us=simple, prepared_us=ready, http_us=web, cpu=cpu.spent)
            shared = rate(lambda: InProcess(parent=lake), sql_of, 32, options.seconds)
            with CpuSeconds(pool) as cpu:
                wire = rate(lambda: Pg(pool), sql_of, 32, options.seconds)
            line(f"{what}, 32 connections",
                 f"in process {shared[0]:.0f}/s; pg {wire[0] / shared[0]:.2f} × the rate ({wire[0]:.0f}/s, p50 {wire[1] / 1000:.2f} ms, "
                 f"p99 {wire[2] / 1000:.2f} ms); CPU s {cpu.spent}",
                 in_process=shared, pg=wire, cpu=cpu.spent)

        verdicts, with_parse = zip(*(guard_us() for _ in range(3)), strict=True)
        verdict, parsed, point = min(verdicts), min(with_parse), report["point query, one connection"]["pg_us"][0]
        line("guard of a point query", f"verdict {verdict:.2f} µs, {verdict / point:.2%} of the point query over pg ({point:.0f} µs p50); "
             f"with its parse {parsed:.1f} µs, {parsed / point:.2%}", verdict_us=verdict, with_parse_us=parsed, point_query_us=point)

        placement(line, point)

        queries = [row[0] for row in duck.connect("tpch").execute("SELECT query FROM tpch_queries() ORDER BY query_nr").fetchall()]
        totals = {}
        with CpuSeconds(pool) as cpu:
            for client in (lake, pg):
                best = [float("inf")] * len(queries)
                for _ in range(4):
                    for i, sql in enumerate(queries):
                        began = time.perf_counter()
                        client.rows(sql)
                        best[i] = min(best[i], time.perf_counter() - began)
                totals[client.name] = sum(best)
        line("TPC-H warm, sum of 22", f"in process {totals['in process']:.2f} s; pg {totals['pg'] / totals['in process']:.2f} ×; CPU s {cpu.spent}",
             seconds=totals, cpu=cpu.spent)

        best = {}
        for client in (lake, pg, http):
            with CpuSeconds(pool) as cpu:
                times = []
                for _ in range(2):
                    began = time.perf_counter()
                    assert client.drain(RELAY) == RELAY_ROWS
                    times.append(time.perf_counter() - began)
            best[client.name] = min(times), cpu.spent
        base = best["in process"][0]
        line("2 million rows", f"in process (Arrow) {base:.2f} s; pg {best['pg'][0] / base:.2f} × (CPU s {best['pg'][1]}); "
             f"http, kept and read as Arrow {best['http'][0] / base:.2f} × (CPU s {best['http'][1]})", best=best)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
