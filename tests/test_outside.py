"""Another DuckLake client works on the lake while the pool serves it."""

import contextlib

import psycopg
import pytest

import duck
from stores import make_lake


@pytest.fixture(params=["sqlite", "postgres"])
def lake(request, tmp_path):
    with contextlib.ExitStack() as stack:
        yield make_lake(stack, tmp_path, request.param, "directory", nodes=2)


def test_rows_moved_out_of_the_catalog_by_another_client(lake):
    """DuckLake keeps small writes in the catalog; whoever flushes them drops tables that other instances remember."""
    pool = lake.pool
    outside = duck.attach_lake(pool.dir, read_only=False, postgres=lake.postgres and lake.postgres.dsn())
    for round in range(1, 4):
        for table in ("a", "b"):
            if round == 1:
                pool.execute(f"CREATE TABLE {table} (i INTEGER, t VARCHAR)")
            pool.execute(f"INSERT INTO {table} (i, t) VALUES ({round}, 'x'), ({round}, 'y')")
        pool.execute(f"ALTER TABLE a ADD COLUMN c{round} INTEGER")
        for _ in range(4):  # they remember where the rows of the older shape are
            assert pool.sql("SELECT count(*) AS n FROM a JOIN b USING (i)") == [{"n": 4 * round}]
        outside.execute("CALL ducklake_flush_inlined_data('lake')")
        for _ in range(4):
            assert pool.sql("SELECT count(*) AS n FROM a JOIN b USING (i)") == [{"n": 4 * round}]
        pool.execute(f"UPDATE a SET t = 'z' WHERE i = {round}")
        pool.execute(f"DELETE FROM b WHERE i = {round} AND t = 'nothing'")
    assert pool.sql("SELECT count(*) AS n FROM a WHERE t = 'z'") == [{"n": 6}]


def test_a_stream_over_postgres_wire_survives_it_too(lake):
    pool = lake.pool
    outside = duck.attach_lake(pool.dir, read_only=False, postgres=lake.postgres and lake.postgres.dsn())
    pool.execute("CREATE TABLE a (i INTEGER)")
    with psycopg.connect(pool.pg_dsn, autocommit=True) as connection:
        for round in range(1, 4):
            connection.execute("INSERT INTO a (i) VALUES (1), (2)")
            connection.execute(f"ALTER TABLE a ADD COLUMN c{round} INTEGER")
            assert connection.execute("SELECT sum(i) FROM a").fetchone() == (3 * round,)
            outside.execute("CALL ducklake_flush_inlined_data('lake')")
            assert connection.execute("SELECT i, sum(i) FROM a GROUP BY i ORDER BY i").fetchall() == [(1, round), (2, 2 * round)]
    logs = pool.logs(lines=100000)
    assert "__ducklake_metadata" not in logs and "engine_internal_error" not in logs
