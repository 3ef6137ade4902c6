"""Columns whose type was altered: DuckLake and DuckDB keep what they knew of the old one; a pool's answers don't show it."""

import psycopg
import pytest

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
