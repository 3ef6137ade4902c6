"""The figures of placement, from `roost sim placement`: every table of docs/reports/*-placement.md, and whether the bounds hold.

    python bench/placement_report.py [--roost build/release/roost] [--scale 1.0] > docs/reports/DATE-placement.md

It takes a quarter of an hour on one core. Exit code 1: a bound does not hold.
"""

import argparse
import datetime
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).parent.parent
ALL = "least_loaded,round_robin,segments,seed,plain,impatient,affinity"
FEW = "least_loaded,seed,plain,impatient,affinity"
ONE_CPU = "--weights 1,1,1,1,1,1,1,1"
SMALL_POOL = ("--weights 2,2,2 --slots 2 --units 20 --unit-bytes 5000000 --cpu-us 40000 --store-bytes-per-us 25 --store-wait-us 60000 "
              "--cache-ratio 4 --in-flight 1,2")
MIXED = "--writes 0.05 --joins 0.3 --tenants 5 --scan-every 100000 --size-spread 1 --gateways 3 --cache-ratio 1.6 --in-flight 8"
MEMBERS = ("--cache-ratio 1.5 --in-flight 8 --change join@50000 --change die@90000:2 --change restart@130000:3 "
           "--change replace@170000:4 --change reweigh@210000:5:8")

# Title, thousands of statements of warm-up and measured, policies, the rest.
TABLES = [
    ("8 nodes of 4 vCPUs, memory for 16 statements each, 8,000 units, all caches 1.1 × the data, Zipf 0.8", 300, 300, ALL, "--in-flight 1,8,64"),
    ("The same, Zipf 1.1", 300, 300, ALL, "--in-flight 1,8,64 --zipf 1.1"),
    ("8 nodes of 1 vCPU, Zipf 0.8", 300, 300, FEW, f"{ONE_CPU} --in-flight 1,8"),
    ("8 nodes of 1 vCPU, Zipf 1.1", 200, 200, FEW, f"{ONE_CPU} --in-flight 1,8 --zipf 1.1"),
    ("Without `no_wait`: statements wait at their first node", 200, 200, "least_loaded,seed,plain,affinity", "--in-flight 8,64 --wait-at-first"),
    ("Mixed: 5 % writes, 30 % joins of two tables, 5 tenants, a scan of everything each 100,000 statements, sizes lognormal (σ = 1), "
     "3 gateways, caches 1.6 × the data", 200, 200, ALL, MIXED),
    ("Members: a join, a death, a restart, a replaced volume, a weight 4 → 8; caches 1.5 × the data", 50, 250, "impatient,affinity", MEMBERS),
    ("Three small nodes: memory for two statements each, 20 tables of 5 MB", 0.06, 0.4, "least_loaded,impatient,affinity", SMALL_POOL),
    ("The same, and nobody waits beside a node without work (`--patience-beside-idle 0`)", 0.06, 0.4, "affinity",
     f"{SMALL_POOL} --patience-beside-idle 0"),
]
CAPS = [(c, slack) for c in (1.5, 2, 3) for slack in (1, 2, 4)]


def simulate(roost, seed, warmup, statements, policies, rest):
    """The rows of a table, each a dictionary by column, and the table itself."""
    command = [roost, "sim", "placement", "--markdown", "--seed", str(seed), "--policies", policies, "--warmup", str(int(warmup)),
               "--statements", str(int(statements)), *rest.split()]
    table = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("|")]
    return [dict(zip(lines[0], line, strict=True)) for line in lines[2:]], table


def bounds(zipf08, zipf11):
    """(what, found, whether it holds) of issue-level promises: docs/placement.md."""
    def of(rows, policy):
        return [row for row in rows if row["policy"] == policy]
    out = []
    for row in of(zipf08, "affinity"):
        at = f"{row['in flight']} in flight"
        out.append((f"misses at {at} ≤ 0.5 %", row["misses %"], float(row["misses %"]) <= 0.5))
        rival = next(other for other in of(zipf08, "least_loaded") if other["in flight"] == row["in flight"])
        # What a statement waits while a node has nothing to do, beyond what it waits by load alone; milliseconds.
        idle_ms = float(row["wait ms"]) * float(row["beside idle %"]) / 100
        out.append((f"waiting beside an idle node at {at}, least_loaded waits {rival['wait ms']} ms in all", f"{idle_ms:.3f} ms",
                    idle_ms <= 0.05))
    for row in of(zipf11, "affinity"):
        out.append((f"max ÷ mean at Zipf 1.1, {row['in flight']} in flight, ≤ 1.75", row["max ÷ mean"], float(row["max ÷ mean"]) <= 1.75))
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--roost", default=str(ROOT / "build/release/roost"))
    parser.add_argument("--scale", type=float, default=1.0, help="of the numbers of statements")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    found = []
    sections = []
    for title, warmup, statements, policies, rest in TABLES:
        rows, table = simulate(options.roost, options.seed, 1000 * warmup * options.scale, 1000 * statements * options.scale, policies, rest)
        found.append(rows)
        sections.append(f"## {title}\n\n`--warmup {1000 * warmup:.0f} --statements {1000 * statements:.0f} {rest}`\n\n{table}\n")
    sections.append("## c and slack\n\n200,000 + 150,000 statements; misses % and stretch, 1 in flight on nodes of one vCPU, 8 on nodes of four.\n")
    sections.append("| c | slack | plain, 1 | plain, 8 | by demand, 1 | by demand, 8 |\n|---|---|---|---|---|---|")
    for c, slack in CAPS:
        cells = []
        for policy in ("plain", "affinity"):
            for where in (f"{ONE_CPU} --in-flight 1", "--in-flight 8"):
                rows, _ = simulate(options.roost, options.seed, 200_000 * options.scale, 150_000 * options.scale, policy,
                                   f"{where} --cap-c {c} --cap-slack {slack}")
                cells.append(f"{rows[0]['misses %']}, {rows[0]['stretch']}")
        sections[-1] += f"\n| {c} | {slack} | " + " | ".join(cells) + " |"
    verdicts = bounds(found[0], found[1])
    held = all(holds for *_, holds in verdicts)
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    print(f"# Placement, simulated: {datetime.date.today()}\n\n`python bench/placement_report.py`, commit {commit}, seed {options.seed}, "
          f"{os.cpu_count()} CPUs. The gateway's own placement code over modelled nodes (sim/). A statement takes 50 ms of CPU (mean), a cold unit "
          "(64 MiB) 366 ms more, unless the options under a title say otherwise.\n")
    print("Columns: *misses*: reads that found nothing of the unit at their node. *wait*: for a node's memory, mean over all statements; *beside free*, "
          "*beside idle*: shares of that waiting while some other node had memory free, had nothing to do. *stretch*: time from arrival to end ÷ the "
          "statement's CPU time. *max ÷ mean*: statements served by the busiest node. *copies*: nodes that have a unit. *passed on*: statements that their "
          "first node had no memory for and another took. *gave up*: waited at their home in vain. `impatient`: without waiting at homes.\n")
    print("| bound | found | |\n|---|---|---|")
    for what, value, holds in verdicts:
        print(f"| {what} | {value} | {'holds' if holds else '**does not hold**'} |")
    print("\n" + "\n".join(sections))
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
