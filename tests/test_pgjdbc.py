"""pgjdbc, as Debian ships it: java/Pgjdbc.java does what Java programs do, one check a test."""

import pathlib
import re
import subprocess

import pytest

from pool import clean_environment

PROGRAM = pathlib.Path(__file__).parent / "java" / "Pgjdbc.java"
DRIVER = "/usr/share/java/postgresql.jar"
CHECKS = re.findall(r'CHECKS\.put\("(\w+)",', PROGRAM.read_text())


def postgres_environment(pool):
    ready = pool.ready()
    host, port = ready["pg"].rsplit(":", 1)
    return clean_environment(PGHOST=host, PGPORT=port, PGUSER=ready["user"], PGPASSWORD=ready["password"], PGDATABASE=ready["catalog"])


@pytest.fixture(scope="module")
def outcome(pool):
    """Check name → None or why it failed, of one run of the program."""
    done = subprocess.run(["java", "-Duser.timezone=Europe/Paris", "-XX:TieredStopAtLevel=1", "-cp", DRIVER, str(PROGRAM)],
                          env=postgres_environment(pool), capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    found = dict(re.findall(r"^(?:PASS|FAIL) (\w+)(?:: (.*))?$", done.stdout, re.M))
    return {name: why or None for name, why in found.items()}


@pytest.mark.parametrize("check", CHECKS)
def test_pgjdbc(outcome, check):
    assert outcome.get(check, "it did not run") is None


def test_the_pool_goes_on(pool, outcome):
    assert pool.sql("SELECT 1 AS x") == [{"x": 1}]
    assert pool.process.poll() is None
