"""A store or a catalog that is down, slow or refuses: a clear error with a code in bounded time, no wrong answer, and all
is well again once it is back, without a restart of anything of roost's."""

import contextlib
import threading
import time

import psycopg
import pytest

from fault_proxy import Answer, Cut, FaultProxy, Hang, LoseCommit, Refuse
from pool import Pool, StatementFailed, wait_until
from stores import S3, Postgres

ROWS = 200_000
SUM = ROWS * (ROWS - 1) // 2


class Lake:
    pass


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    """Postgres and S3, both behind a proxy."""
    folder = tmp_path_factory.mktemp("faults")
    with contextlib.ExitStack() as stack:
        lake = Lake()
        lake.postgres = stack.enter_context(Postgres(log_connections="on"))
        lake.s3 = stack.enter_context(S3(folder / "s3", prefix="pool"))
        lake.store = stack.enter_context(FaultProxy(("127.0.0.1", lake.s3.port)))
        lake.catalog = stack.enter_context(FaultProxy(("127.0.0.1", lake.postgres.port)))
        flags = lake.postgres.flags(port=lake.catalog.port) + lake.s3.flags(port=lake.store.port)
        lake.pool = stack.enter_context(Pool(folder / "pool", nodes=1, flags=[*flags, "--s3-timeout-ms", "1s", "--cache-max-bytes", "0", "--catalog-timeout-ms", "3s"], env=lake.s3.env()))
        yield lake


@pytest.fixture(autouse=True)
def whole_afterwards(lake):
    """Each test finds a table that nobody has read yet (the engine keeps what it has read), and leaves a lake that works."""
    make_kept(lake)
    yield
    lake.store.fault = lake.catalog.fault = None
    make_kept(lake)
    assert total(lake) == SUM


def make_kept(lake):
    lake.pool.sql(f"CREATE OR REPLACE TABLE kept AS SELECT range AS i, repeat('x', 50) || range AS s FROM range({ROWS})")


def total(lake):
    return int(lake.pool.sql("SELECT sum(i) AS s, max(s) AS m FROM kept")[0]["s"])


def failure(call, within_s=50):
    """The statement that failed, in time: the client gives an upload that gets no answer up after 8 s, and tries it four times."""
    began = time.monotonic()
    with pytest.raises(StatementFailed) as failed:
        call()
    assert time.monotonic() - began < within_s
    return failed.value.statement


def said(statement):
    return str(statement)


def unseen(lake, statement):
    for secret in (lake.s3.secret_key, lake.s3.access_key, lake.postgres.password, lake.postgres.user, str(lake.catalog.port)):
        assert secret not in said(statement), said(statement)


STORE_FAULTS = {
    "refused": (Refuse, "can't be reached"),
    "hangs": (Hang, "can't be reached"),
    "cut short": (lambda: Cut(10), "can't be reached"),
    "403": (lambda: Answer(403, "Forbidden", b"<Error><Code>AccessDenied</Code></Error>"), "refused roost's keys"),
    "500": (lambda: Answer(500), "does not answer as it should"),
    "503": (lambda: Answer(503, "Slow Down", b"<Error><Code>SlowDown</Code></Error>"), "does not answer as it should"),
    "no such bucket": (lambda: Answer(404, "Not Found", b"<Error><Code>NoSuchBucket</Code></Error>"), "bucket"),
}


@pytest.mark.parametrize("fault", STORE_FAULTS)
def test_reads_of_a_store_that_fails(lake, fault):
    make, words = STORE_FAULTS[fault]
    lake.store.fault = make()
    statement = failure(lambda: total(lake))
    assert "58030" in said(statement) and words in said(statement), statement
    unseen(lake, statement)
    lake.store.fault = None
    assert total(lake) == SUM


@pytest.mark.parametrize("fault", STORE_FAULTS)
def test_writes_to_a_store_that_fails(lake, fault):
    make, _ = STORE_FAULTS[fault]
    lake.pool.sql("CREATE TABLE IF NOT EXISTS written (i BIGINT, s VARCHAR)")
    before = lake.pool.sql("SELECT count(*) AS n FROM written")
    insert = f"INSERT INTO written SELECT range, 'y' || range FROM range({ROWS})"
    lake.store.fault = make()
    statement = failure(lambda: lake.pool.sql(insert))
    assert "58030" in said(statement), statement
    unseen(lake, statement)
    lake.store.fault = None
    assert lake.pool.sql("SELECT count(*) AS n FROM written") == before
    lake.pool.sql(insert)
    assert lake.pool.sql("SELECT count(*) AS n FROM written") == [{"n": before[0]["n"] + ROWS}]


CATALOG_FAULTS = {"refused": Refuse, "cut short": lambda: Cut(50), "hangs": Hang}


@pytest.mark.parametrize("fault", CATALOG_FAULTS)
def test_a_catalog_that_fails(lake, fault):
    lake.pool.sql("CREATE TABLE IF NOT EXISTS noted (i INTEGER)")
    before = lake.pool.sql("SELECT count(*) AS n FROM noted")
    lake.catalog.fault = CATALOG_FAULTS[fault]()
    for call in (lambda: total(lake), lambda: lake.pool.sql("INSERT INTO noted VALUES (1)")):
        statement = failure(call)
        assert "57P03" in said(statement) and "the lake's catalog can't be reached" in said(statement), statement
        unseen(lake, statement)
    # What needs nothing of the lake goes on.
    assert lake.pool.sql("SELECT 1 AS x") == [{"x": 1}]
    lake.catalog.fault = None
    assert total(lake) == SUM
    assert lake.pool.sql("SELECT count(*) AS n FROM noted") == before
    lake.pool.sql("INSERT INTO noted VALUES (1)")


@pytest.mark.parametrize("arrives", [False, True], ids=["before", "after"])
def test_a_commit_whose_connection_is_lost_is_told_truly(lake, arrives):
    """The catalog knows whether it took effect, and roost asks."""
    lake.pool.sql("CREATE TABLE IF NOT EXISTS counted (i INTEGER)")
    before = lake.pool.sql("SELECT count(*) AS n FROM counted")[0]["n"]
    fault = lake.catalog.fault = LoseCommit(forward=arrives)
    insert = "INSERT INTO counted SELECT range FROM range(1000)"
    try:
        lake.pool.sql(insert)
        written = 1000
    except StatementFailed as failed:
        assert not arrives, failed.statement
        unseen(lake, failed.statement)
        written = 0
    assert fault.lost == 1
    lake.catalog.fault = None
    assert lake.pool.sql("SELECT count(*) AS n, count(DISTINCT i) AS d FROM counted") in (
        [{"n": before + written, "d": 1000}], [{"n": 0, "d": 0}] if before + written == 0 else None)


def test_a_postgres_that_restarts_needs_no_restart_of_roost(lake):
    with psycopg.connect(lake.pool.pg_dsn) as session:
        session.execute("SELECT count(*) FROM kept").fetchone()
        lake.postgres.stop()
        statement = failure(lambda: total(lake))
        assert "57P03" in said(statement), statement
        lake.postgres.start()
        assert total(lake) == SUM
        lake.pool.sql("CREATE OR REPLACE TABLE after_restart AS SELECT 1 AS i")
        # The transaction that was open is lost, and says so; the session goes on.
        with pytest.raises(psycopg.Error):
            session.execute("SELECT count(*) FROM kept").fetchone()
        session.rollback()
        assert session.execute("SELECT i FROM after_restart").fetchone() == (1,)


def test_a_password_that_is_wrong_and_right_again(lake):
    with lake.postgres.connect() as connection:
        connection.execute(f"ALTER USER {lake.postgres.user} PASSWORD 'another'")
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                           "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()")
        statement = failure(lambda: total(lake))
        assert "58030" in said(statement) and "refused roost's login" in said(statement), statement
        unseen(lake, statement)
        connection.execute(f"ALTER USER {lake.postgres.user} PASSWORD '{lake.postgres.password}'")
    assert total(lake) == SUM


def test_a_postgres_without_connections_to_spare(lake):
    with lake.postgres.connect() as connection:
        connection.execute(f"ALTER USER {lake.postgres.user} CONNECTION LIMIT 0")
        held = []
        with contextlib.suppress(psycopg.OperationalError):
            while True:
                held.append(lake.postgres.connect())
        try:
            connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'roost'")
            with contextlib.suppress(psycopg.OperationalError):
                while True:
                    held.append(lake.postgres.connect())
            statement = failure(lambda: total(lake))
            assert "53300" in said(statement), statement
            unseen(lake, statement)
        finally:
            for one in held:
                one.close()
            connection.execute(f"ALTER USER {lake.postgres.user} CONNECTION LIMIT -1")
    assert total(lake) == SUM


def test_a_cancel_is_heard_while_the_store_hangs(lake):
    """The engine looks up when its request ends, which it does in time."""
    lake.store.fault = Hang()
    running = lake.pool.submit("SELECT sum(i) AS s, max(s) AS m FROM kept")
    began = time.monotonic()
    lake.pool.request("POST", f"/api/queries/{running['id']}/cancel")
    ended = lake.pool.wait(running)
    assert ended["status"] in ("cancelled", "failed") and time.monotonic() - began < 15
    assert lake.pool.sql("SELECT 1 AS x") == [{"x": 1}]


def test_answers_are_whole_or_none_while_the_store_breaks_off(lake):
    """Under a store that cuts each connection somewhere else, what is answered is right."""
    answers, failures = 0, 0
    for after_bytes in range(200, 400_000, 20_011):
        lake.store.fault = None
        make_kept(lake)
        lake.store.fault = Cut(after_bytes)
        try:
            assert total(lake) == SUM
            answers += 1
        except StatementFailed as failed:
            assert "58030" in said(failed.statement)
            failures += 1
    assert failures > 0
