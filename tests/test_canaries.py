"""The walls' short form: with all of them up, no statement of a sample of the guard's corpora, and none that leans on what
an outside DuckLake client left in the lake, reaches a canary; verdicts are those of the files. `./dev walls` runs all
statements, also with each wall away and each alone (walls/run.py). The product's binary has no such switches."""

import pathlib
import subprocess

import pytest

from pool import ROOST
from walls.canaries import Canaries
from walls.run import Trial, by_http, by_pg, read_lines

# Lines that say what DuckDB's parser does with commands that roost answers itself in a session.
ROOST_COMMANDS = {"G482", "G483", "G488", "G489", "G515"}
SAMPLE_EVERY = 7


@pytest.fixture(scope="module")
def canaries(tmp_path_factory):
    with Canaries(tmp_path_factory.mktemp("canaries")) as canaries:
        yield canaries


def test_no_canary_sings_with_all_walls_up(canaries):
    said = []
    lines = read_lines(every=SAMPLE_EVERY)
    trial = Trial(canaries, ROOST, [], said.append).run(lines)
    assert not trial.sang, "\n".join(said)
    assert trial.crashes == trial.restarts == 0
    let_through = {line.id for line in lines if line.verdict == "deny"} & trial.ran - ROOST_COMMANDS
    assert not let_through


@pytest.fixture(scope="module")
def canaries_on_s3(tmp_path_factory):
    with Canaries(tmp_path_factory.mktemp("canaries-s3"), "s3") as canaries:
        yield canaries


def test_no_canary_sings_when_the_lake_is_on_s3(canaries_on_s3):
    """Also none in another prefix of the bucket or in another bucket, which the pool's key opens; nor the key itself."""
    said = []
    lines = read_lines(every=SAMPLE_EVERY * 3)
    trial = Trial(canaries_on_s3, ROOST, [], said.append).run(lines)
    assert not trial.sang, "\n".join(said)
    assert trial.crashes == trial.restarts == 0
    assert not {line.id for line in lines if line.verdict == "deny"} & trial.ran - ROOST_COMMANDS


def test_canaries_on_s3_sing_for_whoever_uses_the_key(canaries_on_s3):
    """Else silence would say nothing."""
    outsider = canaries_on_s3.outsider()
    for place in canaries_on_s3.elsewhere:
        canaries_on_s3.touched("")
        said = outsider.execute(f"SELECT * FROM read_csv('{place}/secret.csv')").fetchall()
        sung = canaries_on_s3.touched(str(said))
        assert "file private/secret.csv" in sung and any(name.startswith("text of") for name in sung), sung
        outsider.execute(f"SELECT count(*) FROM parquet_scan('{place}/secret.parquet')")
        assert "file private/secret.parquet" in canaries_on_s3.touched("")
        outsider.execute(f"COPY (SELECT 1 AS a) TO '{place}/new.csv'")
        assert "file private/new.csv" in canaries_on_s3.touched("")
    assert canaries_on_s3.sung(canaries_on_s3.s3.secret_key) == {"text of secret key"}


def test_a_refusal_tells_its_rule_and_its_place(canaries):
    pool = canaries.pool
    answer = by_pg(pool, None, "SELECT 1, getenv('HOME')")
    assert "rule: function:getenv" in answer.text
    answer = by_http(pool, "SELECT 1, getenv('HOME')")
    for part in ("'http_status': 422", "function:getenv", "'position': 11"):
        assert part in answer.text


def test_the_product_knows_no_switch(canaries):
    """Its walls stand whatever is said to it, and the switch's name is nowhere in it."""
    assert b"CANARY_WALLS_DOWN" not in pathlib.Path(ROOST).read_bytes()
    pool = canaries.start_pool(down="guard,statement_kinds,functions,replacement_scans,configuration,bound_plan,files,process",
                               binary=ROOST, outsiders=False)
    text = f"SELECT content FROM read_text('{canaries.private}/secret.txt')"
    assert "rule: function:read_text" in by_pg(pool, None, text).text
    assert not canaries.touched("")
    # The node stands behind Landlock too, where the kernel has it.
    if pathlib.Path("/sys/kernel/security/lsm").exists() and "landlock" in pathlib.Path("/sys/kernel/security/lsm").read_text():
        assert '"process_wall"' in pool.logs(500)


def test_the_switches_are_not_installed():
    assert subprocess.run([ROOST, "--version"], capture_output=True, check=True).returncode == 0
    cmake = (pathlib.Path(__file__).resolve().parent.parent / "cmake" / "roost.cmake").read_text()
    assert "install(TARGETS roost DESTINATION bin)" in cmake
    assert "add_executable(roost_switched_walls EXCLUDE_FROM_ALL" in cmake
