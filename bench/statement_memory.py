"""`./dev bench admission`: what statements ask of a node's memory against what they use, under the profile `auto`.

    ./dev bench admission [--scale 1] [--node-memory 8GiB]

One node, TPC-H, each query twice, one at a time. A row a query and run: the plan's estimate, what was required for it, the peak that the buffer
manager reached, what was spilled, and where the size came from. At the end the medians of required ÷ peak and estimate ÷ peak, over all queries and over
those whose peak is at least XS (a twelfth of the budget).
"""

import argparse
import pathlib
import statistics
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests"))

import duck  # noqa: E402
from pool import Pool  # noqa: E402

MIB = 1 << 20


def measure(pool, sql):
    statement = pool.execute(sql, within_s=600)
    profile = pool.request("GET", f"/api/queries/{statement['id']}/profile").json()
    return profile["admission"] | {"lane": profile["lane"]}


def print_medians(name, runs, least_bytes):
    for what, chosen in [("all", runs), ("peak ≥ XS", [run for run in runs if run["peak_bytes"] >= least_bytes])]:
        slots = [run for run in chosen if run["lane"] == "slot" and run["peak_bytes"] > 0]
        if not slots:
            print(f"{name}, {what}: none")
            continue
        required = statistics.median(run["granted_bytes"] / run["peak_bytes"] for run in slots)
        estimated = statistics.median((run["estimate_bytes"] or 0) / run["peak_bytes"] for run in slots)
        print(f"{name}, {what}: {len(slots)} in slots, required ÷ peak {required:.2f}, estimate ÷ peak {estimated:.2f}")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", default="1")
    parser.add_argument("--node-memory", default="8GiB")
    options = parser.parse_args(arguments)
    queries = [row[0] for row in duck.connect("tpch").execute("SELECT query FROM tpch_queries() ORDER BY query_nr").fetchall()]
    with tempfile.TemporaryDirectory(prefix="roost-bench-") as directory, \
            Pool(pathlib.Path(directory) / "pool", nodes=1, sample=f"tpch:{options.scale}", node_memory=options.node_memory,
                 flags=["--admission-profile", "auto"]) as pool:
        budget = pool.request("GET", "/api/nodes").json()[0]["budget_bytes"]
        print(f"TPC-H {options.scale}, budget {budget / MIB:.0f} MiB; MiB")
        print(f"{'query':>5} {'run':>3} {'estimate':>9} {'required':>9} {'peak':>9} {'spilled':>9}  lane  why")
        rounds = {1: [], 2: []}
        for number, sql in enumerate(queries, 1):
            for turn in rounds:
                run = measure(pool, sql)
                rounds[turn].append(run)
                sizes = [(run[key] or 0) / MIB for key in ("estimate_bytes", "granted_bytes", "peak_bytes", "spilled_bytes")]
                print(f"{number:>5} {turn:>3} " + " ".join(f"{size:>9.1f}" for size in sizes) +
                      f"  {run['lane']:<5} {run['why']}", flush=True)
        print_medians("first run", rounds[1], budget / 12)
        print_medians("second run", rounds[2], budget / 12)


if __name__ == "__main__":
    main()
