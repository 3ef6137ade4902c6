"""TPC-H on the sample lake: all 22 queries give the published answers, through every way in."""

import datetime
import decimal

import psycopg
import pytest

import duck

SCALE = 0.1
QUERIES = list(range(1, 23))


@pytest.fixture(scope="session")
def tpch():
    """DuckDB's own tables of the queries and of the published answers."""
    connection = duck.connect("tpch")
    queries = dict(connection.execute("SELECT query_nr, query FROM tpch_queries()").fetchall())
    answers = dict(connection.execute("SELECT query_nr, answer FROM tpch_answers() WHERE scale_factor = ?", [SCALE]).fetchall())
    assert sorted(queries) == sorted(answers) == QUERIES
    return {n: (queries[n].strip().rstrip(";"), parse_answer(answers[n])) for n in QUERIES}


def parse_answer(text):
    lines = text.rstrip("\n").split("\n")
    return [line.split("|") for line in lines[1:]]


def same_value(expected, value):
    """The published answers are text; numbers are compared as numbers, as exactly as they are printed."""
    if value is None:
        return expected in ("", "NULL")
    if isinstance(value, (datetime.date, bool)):
        return expected == str(value)
    if isinstance(value, (int, decimal.Decimal)):
        return decimal.Decimal(expected) == value
    if isinstance(value, float):
        return abs(float(expected) - value) <= 1e-9 * max(1.0, abs(value)) + 0.005
    text = str(value).rstrip()
    if expected.rstrip() == text:
        return True
    try:  # JSON sends decimals and wide integers as strings
        return decimal.Decimal(expected) == decimal.Decimal(text)
    except decimal.InvalidOperation:
        return False


def check(expected, rows):
    assert len(rows) == len(expected)
    for want, got in zip(expected, rows, strict=True):
        assert len(want) == len(got)
        assert all(same_value(w, g) for w, g in zip(want, got, strict=True)), f"want {want}, got {got}"


@pytest.mark.parametrize("number", QUERIES)
def test_http_gives_the_published_answer(tpch_pool, tpch, number):
    sql, answer = tpch[number]
    statement = tpch_pool.execute(sql)
    columns = [column["name"] for column in statement["column_schema"]]
    check(answer, [[row[name] for name in columns] for row in tpch_pool.rows(statement)])


@pytest.mark.parametrize("prepare", [False, True], ids=["plain", "prepared"])
def test_psycopg_gives_the_published_answers(tpch_pool, tpch, prepare):
    with psycopg.connect(tpch_pool.pg_dsn, autocommit=True) as connection:
        for number in QUERIES:
            sql, answer = tpch[number]
            for _ in range(2 if prepare else 1):  # the second run uses the prepared statement
                check(answer, connection.execute(sql, prepare=prepare).fetchall())


def test_simple_protocol_gives_the_published_answers(tpch_pool, tpch):
    with psycopg.connect(tpch_pool.pg_dsn, autocommit=True, cursor_factory=psycopg.ClientCursor) as connection:
        for number in QUERIES:
            sql, answer = tpch[number]
            check(answer, connection.execute(sql).fetchall())


def test_parameters_reach_the_engine_typed(tpch_pool):
    with psycopg.connect(tpch_pool.pg_dsn, autocommit=True) as connection:
        for prepare in (False, True):
            row = connection.execute(
                "SELECT count(*), max(l_shipdate) FROM lineitem WHERE l_shipdate <= %s AND l_quantity < %s AND l_returnflag = %s",
                (datetime.date(1994, 1, 1), decimal.Decimal("24"), "R"), prepare=prepare).fetchone()
            literal = connection.execute(
                "SELECT count(*), max(l_shipdate) FROM lineitem "
                "WHERE l_shipdate <= DATE '1994-01-01' AND l_quantity < 24 AND l_returnflag = 'R'").fetchone()
            assert row == literal
            assert row[0] > 0
