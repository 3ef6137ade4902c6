"""Variables of a session: SET VARIABLE, RESET VARIABLE, getvariable() over Postgres wire, on every node of the pool."""

import psycopg
import pytest


@pytest.fixture()
def session(pool):
    with psycopg.connect(pool.pg_dsn, autocommit=True) as connection:
        yield connection


def value(session, sql):
    return session.execute(sql).fetchone()[0]


@pytest.mark.parametrize("expression", [
    "42", "'it''s'", "NULL", "[1, 2, 3]", "{'a': 1, 'b': ['x', NULL]}", "MAP {'k': 1.50::DECIMAL(9, 2)}", "DATE '2024-02-29'",
    "TIMESTAMPTZ '2024-02-29 12:00:00+02'", "'\\x00\\xFF'::BLOB", "170141183460469231731687303715884105727::HUGEINT",
    "INTERVAL '1 month 2 days'", "'NaN'::DOUBLE", "uuid()", "(SELECT max(range) FROM range(10))", "NULL::INTEGER"])
def test_a_variable_has_the_value_and_the_type_it_was_given(session, expression):
    assert session.execute(f"SET VARIABLE v = {expression}").statusmessage == "SET"
    once = value(session, "SELECT getvariable('v')::VARCHAR")
    kind = value(session, "SELECT typeof(getvariable('V'))")
    for _ in range(6):  # whatever node answers
        assert (value(session, "SELECT getvariable('v')::VARCHAR"), value(session, "SELECT typeof(getvariable('V'))")) == (once, kind)
    if "uuid" not in expression and expression != "NULL":  # a bare NULL has no type to keep
        assert value(session, f"SELECT getvariable('v') IS NOT DISTINCT FROM {expression}")
        assert kind == value(session, f"SELECT typeof({expression})")


def test_its_value_is_made_once_and_from_the_lake(session):
    session.execute("CREATE OR REPLACE TABLE variable_source AS SELECT range AS a FROM range(5)")
    session.execute("SET VARIABLE most = (SELECT max(a) FROM variable_source)")
    session.execute("INSERT INTO variable_source VALUES (100)")
    assert value(session, "SELECT getvariable('most')") == 4
    assert session.execute("SELECT a FROM variable_source WHERE a > getvariable('most')").fetchall() == [(100,)]
    session.execute("SET VARIABLE most = getvariable('most') + 1")
    assert value(session, "SELECT getvariable('most')") == 5


def test_it_ends_with_reset_with_discard_and_with_its_session(pool, session):
    session.execute("SET VARIABLE a = 1; SET VARIABLE b = 2")
    with psycopg.connect(pool.pg_dsn, autocommit=True) as other:
        assert value(other, "SELECT getvariable('a')") is None
    assert session.execute("RESET VARIABLE A").statusmessage == "RESET"
    assert session.execute("SELECT getvariable('a'), getvariable('b')").fetchone() == (None, 2)
    session.execute("DISCARD ALL")
    assert value(session, "SELECT getvariable('b')") is None


def test_in_a_transaction_and_by_parameters(session):
    with session.transaction():
        session.execute("SELECT 1")
        session.execute("SET VARIABLE a = %s::INTEGER", [7])
        assert value(session, "SELECT getvariable('a') + 1") == 8
    assert value(session, "SELECT getvariable('a')") == 7
    session.execute("SET VARIABLE a = 9", prepare=True)
    assert value(session, "SELECT getvariable('a')") == 9


def test_what_is_wrong_is_said_and_changes_nothing(session):
    session.execute("SET VARIABLE a = 1")
    for sql, state in [("SET VARIABLE a = (SELECT range FROM range(2) WHERE error('no'))", None), ("SET VARIABLE a = nothing_here + 1", None),
                       ("SET VARIABLE a = repeat('x', 300000)", "54000"), ("SET VARIABLE a = unnest([1, 2])", "21000")]:
        with pytest.raises(psycopg.Error) as caught:
            session.execute(sql)
        assert state is None or caught.value.sqlstate == state, (sql, str(caught.value))
        assert value(session, "SELECT getvariable('a')") == 1
    for hostile in ["SET VARIABLE a = (SELECT content FROM read_text('/etc/passwd'))", "SET VARIABLE a = getenv('HOME')",
                    "SELECT * FROM query(getvariable('a'))", "SELECT * FROM query_table(getvariable('a'))"]:
        with pytest.raises(psycopg.Error) as caught:
            session.execute(hostile)
        assert caught.value.diag.message_detail.startswith("rule: "), hostile


def test_there_are_so_many_and_no_more(session):
    for number in range(3):
        session.execute(f"SET VARIABLE big_{number} = repeat('x', 250000)")
    session.execute("SET VARIABLE big_2 = repeat('y', 250000)")
    with pytest.raises(psycopg.errors.ProgramLimitExceeded):
        for number in range(3, 6):
            session.execute(f"SET VARIABLE big_{number} = repeat('x', 250000)")
    session.execute("RESET VARIABLE big_0")
    assert value(session, "SELECT length(getvariable('big_1'))") == 250000
