"""Row counts arrive exact: around vector, chunk and page edges, by every protocol and with row limits."""

import struct

import psycopg
import pytest
from psycopg import pq

import wire

COUNTS = [0, 1, 1023, 1024, 1025, 2047, 2048, 2049, 100_000]
LIMITS = [1, 2, 1000, 1024]


def query(count):
    return f"SELECT range AS n, 'row ' || range AS s FROM range({count})"


def expected_sum(count):
    return count * (count - 1) // 2


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("limit", LIMITS)
def test_http_pages(pool, count, limit):
    if limit < 1000 and count > 3000:
        pytest.skip("a hundred thousand requests of one row show nothing more")
    statement = pool.execute(query(count))
    assert statement["row_count"] == count
    rows = pool.rows(statement, limit=min(limit, 1000))
    assert [row["n"] for row in rows] == list(range(count))
    assert all(row["s"] == f"row {row['n']}" for row in rows)


@pytest.mark.parametrize("count", COUNTS)
def test_simple_protocol(pool, count):
    with psycopg.connect(pool.pg_dsn, autocommit=True) as connection:
        result = connection.pgconn.exec_(query(count).encode())
        assert result.status == pq.ExecStatus.TUPLES_OK
        assert result.ntuples == count
        assert result.command_status == f"SELECT {count}".encode()
        assert sum(int(result.get_value(i, 0)) for i in range(count)) == expected_sum(count)


@pytest.mark.parametrize("count", COUNTS)
def test_extended_protocol(pool, count):
    with psycopg.connect(pool.pg_dsn, autocommit=True) as connection:
        for binary in (False, True):
            rows = connection.execute(query(count), prepare=True, binary=binary).fetchall()
            assert [row[0] for row in rows] == list(range(count))


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("count", COUNTS)
def test_row_limits(pool, count, limit):
    """Execute with a row limit gives exactly that many rows, then PortalSuspended, and goes on where it stopped."""
    if limit < 1000 and count > 3000:
        count = 3001
    with wire.Connection(pool) as connection:
        seen, batches = connection.fetch_by(query(count), limit)
        assert [int(row[0]) for row in seen] == list(range(count))
        assert all(size == limit for size in batches[:-1])
        assert batches[-1] <= limit
        assert connection.simple("SELECT 1")[0] == [["1"]]


def test_three_million_rows(pool):
    count = 3_000_000
    statement = pool.execute(query(count), within_s=300)
    assert statement["row_count"] == count
    last = pool.request("GET", f"/api/queries/{statement['id']}/rows?limit=1000").json()
    assert last["total"] == count
    arrow = pool.request("GET", f"/api/queries/{statement['id']}/result?format=arrow", timeout=300)
    import pyarrow.compute  # noqa: PLC0415
    import pyarrow.ipc  # noqa: PLC0415

    table = pyarrow.ipc.open_stream(arrow.content).read_all()
    assert table.num_rows == count
    assert pyarrow.compute.sum(table.column("n")).as_py() == expected_sum(count)
    with psycopg.connect(pool.pg_dsn, autocommit=True) as connection:
        total = rows = 0
        for row in connection.cursor().stream(query(count)):
            total += row[0]
            rows += 1
        assert (rows, total) == (count, expected_sum(count))
        result = connection.pgconn.exec_(query(count).encode())
        assert result.ntuples == count
        assert result.get_value(count - 1, 0) == str(count - 1).encode()
    with wire.Connection(pool) as raw:
        seen, _ = raw.fetch_by(f"SELECT range FROM range({count})", 100_000)
        assert len(seen) == count
        assert int(seen[-1][0]) == count - 1


def test_every_page_of_a_large_result(pool):
    count = 100_001
    statement = pool.execute(query(count))
    rows = pool.rows(statement)
    assert [row["n"] for row in rows] == list(range(count))
    # Pages stay readable from any earlier cursor.
    first = pool.request("GET", f"/api/queries/{statement['id']}/rows?limit=10").json()
    again = pool.request("GET", f"/api/queries/{statement['id']}/rows?limit=10").json()
    assert first == again


def test_two_suspended_portals_take_turns(pool):
    """Inside a transaction portals survive Sync; each keeps its own place."""
    with wire.Connection(pool) as connection:
        connection.simple("BEGIN")
        connection.bind("a", "SELECT range FROM range(5000)")
        connection.bind("b", "SELECT -range FROM range(3000)")
        seen_a, seen_b, done_a, done_b = [], [], False, False
        while not (done_a and done_b):
            if not done_a:
                rows, done_a = connection.execute_portal("a", 700)
                seen_a += rows
            if not done_b:
                rows, done_b = connection.execute_portal("b", 300)
                seen_b += rows
        assert [int(r[0]) for r in seen_a] == list(range(5000))
        assert [int(r[0]) for r in seen_b] == [-n for n in range(3000)]
        assert connection.simple("COMMIT")[1] == "COMMIT"


def test_data_rows_are_whole_messages(pool):
    """The relay never cuts a message: every DataRow's length agrees with its fields."""
    with wire.Connection(pool) as connection:
        connection.send(b"Q", query(50_000).encode() + b"\0")
        count = 0
        for kind, body in connection.until_ready():
            if kind == b"D":
                fields = struct.unpack("!h", body[:2])[0]
                at = 2
                for _ in range(fields):
                    size = struct.unpack("!i", body[at:at + 4])[0]
                    at += 4 + max(size, 0)
                assert at == len(body)
                count += 1
        assert count == 50_000
