"""Files that a killed node wrote for a commit that never came are removed once they are old; what a snapshot names, and what an
open transaction wrote, stays."""

import contextlib
import os
import time

import psycopg
import pytest

from pool import wait_until
from stores import make_lake

GRACE_S = 16


@pytest.fixture(scope="module", params=["sqlite-directory", "sqlite-s3", "postgres-directory", "postgres-s3"])
def lake(request, tmp_path_factory):
    with contextlib.ExitStack() as stack:
        yield make_lake(stack, tmp_path_factory.mktemp(request.param), *request.param.split("-"),
                        more_flags=["--orphan-grace-ms", f"{GRACE_S}s", "--log-level", "debug"])


def data_files(lake):
    """Name → path of the lake's data files, wherever they are."""
    root = (lake.s3.root / lake.s3.bucket / lake.s3.prefix if lake.s3 else lake.pool.dir / "lake") / "data"
    return {path.name: path for path in root.rglob("ducklake-*") if path.is_file()}


def sweeps(lake):
    return sum(path.read_text(errors="replace").count('"event":"lake_swept"') for path in lake.pool.dir.glob("log/node-*.log"))


def wait_for_sweeps(lake, count, within_s=120):
    goal = sweeps(lake) + count
    wait_until(lambda: sweeps(lake) >= goal, within_s, f"{count} sweeps")


def make_old(path):
    """As if it was written an hour ago."""
    then = time.time() - 3600
    os.utime(path, (then, then))


def test_what_a_killed_node_left_goes(lake):
    pool = lake.pool
    pool.sql("CREATE TABLE kept AS SELECT range AS i FROM range(50000)")
    pool.sql("DELETE FROM kept WHERE i % 2 = 0")
    named = data_files(lake)
    assert len(named) >= 2
    with psycopg.connect(pool.pg_dsn) as writer:
        writer.execute("INSERT INTO kept SELECT range FROM range(50000)")
        writer.execute("CREATE TABLE never AS SELECT range AS i FROM range(50000)")
        left = {name: path for name, path in data_files(lake).items() if name not in named}
        assert len(left) >= 2
        for index in range(pool.node_count):
            pool.wait_node_replaced(index, pool.kill_node(index))
        with pytest.raises(psycopg.Error):
            writer.execute("SELECT 1")
    for path in [*named.values(), *left.values()]:
        make_old(path)
    stranger = next(iter(left.values())).with_name("notes.parquet")
    stranger.write_bytes(b"not DuckLake's")
    make_old(stranger)
    wait_until(lambda: not set(left) & set(data_files(lake)), 120, "the orphans are gone")
    wait_for_sweeps(lake, 2)
    assert set(named) <= set(data_files(lake))
    assert stranger.exists()
    assert pool.sql("SELECT count(*) AS n, sum(i)::VARCHAR AS s FROM kept") == [{"n": 25000, "s": str(sum(range(1, 50000, 2)))}]
    logged = "".join(path.read_text(errors="replace") for path in pool.dir.glob("log/node-*.log"))
    assert all(name in logged for name in left) and '"event":"orphan_found"' in logged


def test_what_an_open_transaction_wrote_stays(lake):
    pool = lake.pool
    pool.sql("CREATE TABLE slow (i INTEGER)")
    before = data_files(lake)
    with psycopg.connect(pool.pg_dsn) as writer:
        began = time.monotonic()
        writer.execute("INSERT INTO slow SELECT range FROM range(20000)")
        wrote = set(data_files(lake)) - set(before)
        assert wrote
        wait_for_sweeps(lake, 1)
        assert wrote <= set(data_files(lake))
        if time.monotonic() - began < GRACE_S / 2 - 1:
            writer.commit()
            assert pool.sql("SELECT count(*) AS n FROM slow") == [{"n": 20000}]


def test_a_transaction_that_is_too_old_does_not_commit(lake):
    """Its files may be gone."""
    pool = lake.pool
    pool.sql("CREATE TABLE late (i INTEGER)")
    with psycopg.connect(pool.pg_dsn) as writer:
        writer.execute("INSERT INTO late SELECT range FROM range(20000)")
        began = time.monotonic()
        wait_until(lambda: time.monotonic() > began + GRACE_S / 2, GRACE_S, "it is old")
        with pytest.raises(psycopg.Error) as refused:
            writer.commit()
        assert refused.value.sqlstate == "25P04"
    assert pool.sql("SELECT count(*) AS n FROM late") == [{"n": 0}]
