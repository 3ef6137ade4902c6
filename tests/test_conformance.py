"""The conformance suites under conformance/, as they are, against a pool: the guard's corpus and the Postgres wire cases.

What does not pass yet is listed with its reason in conformance/not_yet.txt. A failure that is not listed fails here, and
so does a listed case that passes or that does not exist: the list only shrinks.

The guard's corpus has lines for one-shot statements, for sessions, and for both. HTTP sessions do not exist yet, so
session lines run over Postgres wire alone.
"""

import pathlib
import re
import subprocess
import sys

import pytest

from pool import ROOT, clean_environment

HERE = pathlib.Path(__file__).resolve().parent / "conformance"
CORPUS = ROOT / "sql" / "testdata" / "guard.tsv"

# Cases of clients that are not installed here: asyncpg, psycopg2, SQLAlchemy, and the programs for Node and Go.
GROUPS = "startup|robust|simple|extended|portal|type|duck|sqlstate|cursor|copy|cancel|timeout|show|set|session|catalog|psql|psycopg3|jdbc"


def not_yet():
    """Case name → why it does not pass yet."""
    lines = (HERE / "not_yet.txt").read_text().splitlines()
    return dict(line.split(None, 1) for line in lines if line and not line.startswith("#"))


def judge(failures, passes, listed):
    """What the list gets wrong, as lines."""
    wrong = [f"fails: {name}: {why}" for name, why in failures.items() if name not in listed]
    wrong += [f"passes, so take it off the list: {name}" for name in listed if name in passes]
    wrong += [f"no such case, so take it off the list: {name}" for name in listed if name not in passes and name not in failures]
    return wrong


def run(arguments):
    return subprocess.run([sys.executable, *map(str, arguments)], env=clean_environment(PYTHONDONTWRITEBYTECODE="1"),
                          capture_output=True, text=True, timeout=900)


def test_guard(pool):
    ready = pool.ready()
    done = run([HERE / "guard_check.py", "--url", ready["http"], "--token", ready["token"], "--workspace", ready["workspace"],
                "--pg", ready["pg"], "--user", ready["user"], "--password", ready["password"], "--corpus", CORPUS,
                "--ways", "oneshot,pg"])
    found = re.findall(r"^FAIL (G\d+) (\w+) (.*)$", done.stdout, re.M)
    failures = {f"{line}.{way}": why for line, way, why in found}
    counted = re.search(r"^(\d+) passed, (\d+) failed$", done.stdout, re.M)
    assert counted, done.stdout[-2000:] + done.stderr[-2000:]
    assert int(counted[2]) == len(failures), done.stdout[-4000:]
    # Each line of the corpus ran at least one way, but for those that need the id of an HTTP session.
    lines = CORPUS.read_text(encoding="utf-8").splitlines()[1:]
    assert int(counted[1]) + int(counted[2]) >= sum("SESSION" not in line for line in lines)
    listed = {name: why for name, why in not_yet().items() if re.match(r"G\d+\.", name)}
    # Only failures are printed: a listed line that is not among them passes.
    passes = {name for name in listed if name not in failures}
    assert judge(failures, passes, listed) == []


@pytest.fixture(scope="module")
def wire_cases(pool):
    """(failures, passes, skips) of the Postgres wire suite; name → why for the first."""
    ready = pool.ready()
    host, port = ready["pg"].rsplit(":", 1)
    done = run([HERE / "pg" / "pg_clients.py", "--host", host, "--port", port, "--user", ready["user"],
                "--password", ready["password"], "--dbname", ready["catalog"], "--only", rf"^({GROUPS})(\.|$)",
                "--no-startup", "--jdbc-jar", "/usr/share/java/postgresql.jar"])
    found = re.findall(r"^(PASS|FAIL|SKIP) ([\w.]+)(?:: (.*))?$", done.stdout, re.M)
    assert re.search(r"^\d+ passed, \d+ failed", done.stdout, re.M), done.stdout[-2000:] + done.stderr[-2000:]
    return tuple({name: why for how, name, why in found if how == want} for want in ("FAIL", "PASS", "SKIP"))


def test_postgres_wire(wire_cases):
    failures, passes, _ = wire_cases
    listed = {name: why for name, why in not_yet().items() if not re.match(r"G\d+\.", name)}
    assert judge(failures, passes, listed) == []


def test_no_case_is_skipped_but_for_a_known_reason(wire_cases):
    _, passes, skips = wire_cases
    known = {"the server has no TLS", "the fixture has no keys"}
    assert {name: why for name, why in skips.items() if why not in known} == {}
    ran = {name.split(".")[0] for name in passes}
    assert ran == set(GROUPS.split("|")) - {"copy"}, "every group has cases that pass; COPY is to come"
