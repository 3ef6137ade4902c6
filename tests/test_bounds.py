"""Statistics that miss rows: DuckLake's clients make them (docs/mirror.md) and answer by them; a pool does not."""

import psycopg
import pyarrow
import pyarrow.parquet
import pytest

import duck
from pool import run_roost

ALTERED = [("TINYINT", "INTEGER"), ("INTEGER", "BIGINT"), ("FLOAT", "DOUBLE")]


@pytest.fixture
def session(pool):
    with psycopg.connect(pool.pg_dsn, autocommit=True) as session:
        yield session


def one(session, sql):
    return session.execute(sql).fetchone()[0]


@pytest.mark.parametrize(("before", "after"), ALTERED)
def test_each_node_answers_by_the_new_type(session, before, after):
    table = f"typed_{after}"
    session.execute(f"CREATE TABLE {table} (x {before}, y INTEGER)")
    session.execute(f"INSERT INTO {table} SELECT range, range FROM range(100)")
    for _ in range(6):  # each node has seen it
        assert one(session, f"SELECT count(*) FROM {table} WHERE x >= 14") == 86
    session.execute(f"ALTER TABLE {table} ALTER x TYPE {after}")
    for _ in range(6):
        assert one(session, f"SELECT count(*) FROM {table} WHERE x >= 14") == 86
        assert one(session, f"SELECT max(x)::INTEGER FROM {table}") == 99
    # What is inserted afterwards does not hide what was there.
    for value in (100, 101):
        session.execute(f"INSERT INTO {table} VALUES ({value}, {value})")
    for _ in range(6):
        assert one(session, f"SELECT count(*) FROM {table} WHERE x < 100") == 100
        assert one(session, f"SELECT min(x)::INTEGER FROM {table}") == 0
    assert session.execute(f"DELETE FROM {table} WHERE x >= 90").rowcount == 12
    session.execute(f"DROP TABLE {table}")


@pytest.mark.parametrize(("before", "after"), ALTERED)
def test_an_altered_column_is_joined(session, before, after):
    table = f"joined_{after}"
    session.execute(f"CREATE TABLE {table} (x {before}, y INTEGER)")
    session.execute(f"INSERT INTO {table} SELECT range, range FROM range(100)")
    session.execute(f"ALTER TABLE {table} ALTER x TYPE {after}")
    for _ in range(4):
        assert one(session, f"SELECT count(*) FROM {table} a JOIN {table} b ON a.x = b.x WHERE b.y < 5") == 5
    session.execute(f"CREATE TABLE {table}_made AS SELECT a.* FROM {table} a WHERE a.x IN (SELECT x FROM {table} WHERE y < 7)")
    assert one(session, f"SELECT count(*) FROM {table}_made") == 7
    for name in (table, table + "_made"):
        session.execute(f"DROP TABLE {name}")


def expect_all_rows(session, table, newest):
    """0 … 99 and `newest`, by whatever copy of the catalog it is read."""
    for _ in range(40):
        assert one(session, f"SELECT count(*) FROM {table} WHERE x < 50") == 50
        assert one(session, f"SELECT count(*) FROM {table} WHERE x >= {newest}") == 1
        assert one(session, f"SELECT min(x)::INTEGER FROM {table}") == 0


def test_bounds_that_another_client_left_wrong(pool, session):
    with duck.attach_lake(pool.dir, read_only=False) as lake:
        lake.execute("CREATE TABLE narrowed (x INTEGER)")
        lake.execute("INSERT INTO narrowed SELECT range FROM range(100)")
        lake.execute("SELECT count(*) FROM narrowed WHERE x > 3")
        lake.execute("ALTER TABLE narrowed ALTER x TYPE BIGINT")
        lake.execute("INSERT INTO narrowed VALUES (100)")
    with duck.attach_lake(pool.dir, read_only=False) as lake:
        lake.execute("DELETE FROM narrowed WHERE x = 100")
        lake.execute("INSERT INTO narrowed VALUES (101)")
        told = lake.execute("SELECT count(*) FROM narrowed WHERE x < 50").fetchone()[0]
    if told == 50:
        pytest.skip("this DuckLake does not leave them wrong any more: see docs/mirror.md")
    expect_all_rows(session, "narrowed", 101)
    assert session.execute("DELETE FROM narrowed WHERE x < 10").rowcount == 10


def test_a_file_without_statistics_that_was_registered(make_pool, tmp_path):
    files = tmp_path / "files"
    files.mkdir()
    pyarrow.parquet.write_table(pyarrow.table({"x": pyarrow.array(range(100), pyarrow.int64())}), files / "silent.parquet", write_statistics=False)
    pool = make_pool(nodes=1, flags=["--external", str(files)])
    done = run_roost("import", "--dir", pool.dir, "--in-place", str(files / "silent.parquet"), "--into", "silent")
    assert done.returncode == 0, done.stderr
    with psycopg.connect(pool.pg_dsn, autocommit=True) as session:
        session.execute("INSERT INTO silent VALUES (200)")
        expect_all_rows(session, "silent", 200)
