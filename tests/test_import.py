"""`roost import` at size: five million rows of Parquet with nested types and CSV, joined through psql; what is damaged is
named with its place, and nothing of it stays."""

import csv
import io
import os
import pty
import subprocess

import duckdb
import pytest

from pool import ROOST, clean_environment, run_roost

FILES = 4
EVENTS = 4_000_000
PRICES = 1_000_000
BAD_LINE = 4_000_001

EVENT_ROWS = """
SELECT range::INTEGER AS id,
       (range % {prices})::INTEGER AS price_id,
       CASE WHEN range % 7 = 0 THEN NULL ELSE 'e' || (range % 1000) END AS name,
       CASE WHEN range % 11 = 0 THEN NULL
            ELSE {{'city': 'c' || (range % 50), 'at': {{'x': range * 0.5, 'y': NULL::INTEGER}}}} END AS place,
       CASE WHEN range % 5 = 0 THEN NULL WHEN range % 5 = 1 THEN [] ELSE [range, NULL, -range] END AS marks,
       CASE WHEN range % 8 = 3 THEN MAP {{'a': range, 'b': NULL}} END AS tags,
       [{{'k': range % 3, 'v': [range % 2 = 0]}}] AS nested,
       (range * 0.01)::DECIMAL(18, 2) AS amount,
       DATE '2020-01-01' + (range % 1000)::INTEGER AS day,
       CASE WHEN range % 13 = 0 THEN NULL ELSE TIMESTAMP '2020-01-01' + to_microseconds(range * 1000001) END AS at
FROM range({begin}, {end})"""

PRICE_ROWS = """
SELECT range AS price_id, CASE WHEN range % 9 = 0 THEN NULL ELSE 'p, "' || (range % 100) || E'"\\né' END AS label,
       (range % 1000) * 0.25 AS price, DATE '2021-01-01' + (range % 100)::INTEGER AS since
FROM range({begin}, {end})"""

JOIN = """
SELECT p.label, count(*) AS n, count(e.name) AS names, sum(e.amount * p.price::DECIMAL(9, 2)) AS total, count(e.place) AS places,
       sum(e.marks[3]) AS marks, sum(e.tags['a']) AS tags, max(e.place.at.x) AS x, max(e.at) AS at,
       count(*) FILTER (e.nested[1].v[1]) AS even, min(p.since) AS since
FROM {events} e JOIN {prices} p USING (price_id)
WHERE p.price > 225
GROUP BY p.label ORDER BY p.label NULLS LAST"""

SAMPLE = """
SELECT e.id, e.name, to_json(e.place) AS place, to_json(e.marks) AS marks, to_json(e.tags) AS tags, to_json(e.nested) AS nested,
       e.amount, e.day, e.at, p.label, p.price::DECIMAL(9, 2) AS price
FROM {events} e JOIN {prices} p ON p.price_id = e.price_id WHERE e.id % 40008 = 3 ORDER BY e.id"""


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """events/*.parquet and prices/*.csv, one of those compressed."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "events").mkdir()
    (folder / "prices").mkdir()
    for i in range(FILES):
        part = EVENTS // FILES
        rows = EVENT_ROWS.format(prices=PRICES, begin=i * part, end=(i + 1) * part)
        duckdb.execute(f"COPY ({rows}) TO '{folder}/events/part{i}.parquet'")
    half = PRICES // 2
    for name, begin in (("a.csv", 0), ("b.csv.gz", half)):
        duckdb.execute(f"COPY ({PRICE_ROWS.format(begin=begin, end=begin + half)}) TO '{folder}/prices/{name}' (HEADER)")
    return folder


@pytest.fixture(scope="module")
def imported(pool, data):
    """The pool with both tables."""
    for source, table, rows, files in ((data / "events", "main.events", EVENTS, FILES),
                                       (f"{data}/prices/*.csv*", "main.prices", PRICES, 2)):
        done = import_files(pool, source, "--into", table)
        assert done.returncode == 0, done.stderr
        assert f"imported {rows} rows from {files} files" in done.stdout
    return pool


def import_files(pool, *arguments):
    return run_roost("import", "--dir", pool.dir, *arguments)


def psql(pool, *arguments, **kwargs):
    """psql as a person runs it: with the password file that the pool wrote."""
    ready = pool.ready()
    host, port = ready["pg"].rsplit(":", 1)
    environment = clean_environment(PGPASSFILE=str(pool.dir / "pgpass"), PSQLRC=os.devnull)
    return subprocess.run(["psql", "-X", "-w", "-h", host, "-p", port, "-U", ready["user"], "-d", ready["catalog"], *arguments],
                          env=environment, capture_output=True, text=True, timeout=120, **kwargs)


def psql_rows(pool, sql):
    done = psql(pool, "--csv", "-v", "ON_ERROR_STOP=1", "-c", sql)
    assert done.returncode == 0, done.stderr
    return list(csv.reader(io.StringIO(done.stdout)))


def reference(data, sql):
    """What DuckDB alone answers from the files, as rows of text under their header."""
    connection = duckdb.connect()
    answer = connection.execute(f"SELECT COLUMNS(*)::VARCHAR FROM ({sql})")
    return [[column[0] for column in answer.description]] + [[value or "" for value in row] for row in answer.fetchall()]


def tables_named(pool, name):
    return pool.sql(f"SELECT table_name FROM information_schema.tables WHERE table_name = '{name}'")


def staging(pool):
    return list((pool.dir / "lake" / "staging").glob("*"))


# --- what is whole


def test_a_join_of_both_through_psql_is_what_duckdb_says(imported, data):
    sources = {"events": f"read_parquet('{data}/events/*.parquet')", "prices": f"read_csv('{data}/prices/*.csv*')"}
    tables = {"events": "events", "prices": "prices"}
    assert psql_rows(imported, JOIN.format(**tables)) == reference(data, JOIN.format(**sources))


def test_single_joined_rows_keep_their_nested_values(imported, data):
    sources = {"events": f"read_parquet('{data}/events/*.parquet')", "prices": f"read_csv('{data}/prices/*.csv*')"}
    rows = psql_rows(imported, SAMPLE.format(events="events", prices="prices"))
    assert rows == reference(data, SAMPLE.format(**sources))
    assert len(rows) == 1 + len(range(3, EVENTS, 40008))


def test_column_types_are_those_of_the_files(imported, data):
    ours = imported.sql("SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'events' ORDER BY ordinal_position")
    theirs = duckdb.execute(f"DESCRIBE SELECT * FROM read_parquet('{data}/events/*.parquet')").fetchall()
    assert [(row["column_name"], row["data_type"]) for row in ours] == [row[:2] for row in theirs]


def test_progress_is_shown_to_people_and_not_to_programs(imported, data):
    control, terminal = pty.openpty()
    command = [ROOST, "import", "--dir", str(imported.dir), str(data / "events" / "part0.parquet"), "--into", "watched"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=terminal, env=clean_environment())
    os.close(terminal)
    said = b""
    while True:
        try:
            said += os.read(control, 4096)
        except OSError:  # the other end is closed
            break
    os.close(control)
    assert process.wait(60) == 0
    assert b"uploading [" in said and b"file 1 of 1" in said and b"importing, " in said
    assert import_files(imported, data / "events" / "part0.parquet", "--into", "watched").stderr == ""


# --- what is damaged


def test_a_truncated_parquet_file_among_good_ones(imported, data, tmp_path):
    for name in ("part0.parquet", "part3.parquet"):
        os.symlink(data / "events" / name, tmp_path / name)
    whole = (data / "events" / "part1.parquet").read_bytes()
    for name, content in (("cut", whole[:-1000]), ("empty", b""), ("footless", whole[:len(whole) // 2] + b"PAR1"),
                          ("hole", whole[:len(whole) // 3] + bytes(65536) + whole[len(whole) // 3 + 65536:])):
        bad = tmp_path / f"part2_{name}.parquet"
        bad.write_bytes(content)
        done = import_files(imported, tmp_path, "--into", "main.truncated")
        assert done.returncode == 1 and done.stdout == "", (name, done.stdout)
        assert str(bad) in done.stderr and "nothing was imported" in done.stderr, (name, done.stderr)
        assert "staging" not in done.stderr, (name, done.stderr)
        bad.unlink()
    assert tables_named(imported, "truncated") == [] and staging(imported) == []
    assert imported.sql("SELECT count(*) AS n FROM events") == [{"n": EVENTS}]


@pytest.fixture(scope="module")
def long_csv(tmp_path_factory):
    """4,000,000 good lines under a header, without a line after them."""
    file = tmp_path_factory.mktemp("csv") / "long.csv"
    duckdb.execute(f"COPY (SELECT range AS id, range % 100 AS n FROM range({BAD_LINE - 1})) TO '{file}' (HEADER)")
    return file


def test_a_bad_line_four_million_rows_in(imported, long_csv):
    size = long_csv.stat().st_size
    imported.execute("CREATE TABLE long_csv AS SELECT 1::BIGINT AS id, 2::BIGINT AS n")
    for into, line, reason in (("main.fresh", "not a number,7", "not a number"), ("main.long_csv", "1,2,3,4", "olumn")):
        with open(long_csv, "r+b") as file:
            file.truncate(size)
            file.seek(size)
            file.write((line + "\n" + "5,6\n" * 1000).encode())
        done = import_files(imported, long_csv, "--into", into)
        assert done.returncode == 1 and done.stdout == ""
        # The header is line 1.
        assert f"{long_csv}: " in done.stderr and f"Line: {BAD_LINE + 1}" in done.stderr and reason in done.stderr, done.stderr
        assert "nothing was imported" in done.stderr and "staging" not in done.stderr
        assert tables_named(imported, "fresh") == [] and staging(imported) == []
        assert imported.sql("SELECT count(*) AS n FROM long_csv") == [{"n": 1}]
        assert len(imported.online_nodes()) == imported.node_count


BAD_LINES = {
    "a value of another type": (b"x,n7\n", "x"),
    "too many values": (b"1,2,3\n", "olumn"),
    "too few values": (b"1\n", "olumn"),
    "a quote that never ends": (b'1,"n\n', "quote"),
    "text that is no UTF-8": (b"1,\xff\xfe\n", "utf"),
    "a number too large": (b"99999999999999999999999,n\n", "99999999999999999999999"),
}


@pytest.mark.parametrize("kind", BAD_LINES)
def test_each_kind_of_bad_line_is_named_with_its_place(pool, tmp_path, kind):
    line, reason = BAD_LINES[kind]
    good = b"".join(b'%d,"n%d"\n' % (i, i) for i in range(50000))
    (tmp_path / "a.csv").write_bytes(b"id,name\n" + good)
    (tmp_path / "b.csv").write_bytes(b"id,name\n" + good + line + good)
    name = "bad_" + "".join(c if c.isalpha() else "_" for c in kind)
    done = import_files(pool, f"{tmp_path}/*.csv", "--into", name)
    assert done.returncode == 1 and done.stdout == ""
    assert f"{tmp_path}/b.csv: " in done.stderr and "Line: 50002" in done.stderr and reason in done.stderr.lower(), done.stderr
    assert "nothing was imported" in done.stderr and "staging" not in done.stderr
    assert tables_named(pool, name) == [] and staging(pool) == []
