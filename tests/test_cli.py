"""The command line against a running pool: roost sql, nodes, explain-route, import."""

import csv
import io
import json
import os
import pty
import signal
import subprocess
import time

import duckdb
import pytest

from pool import ROOST, clean_environment, run_roost, wait_until
from test_up import ENDLESS


def sql(pool, *arguments, **kwargs):
    return run_roost("sql", "--dir", pool.dir, *arguments, **kwargs)


# --- sql


def test_prints_a_table(pool):
    done = sql(pool, "-c", "SELECT 7 AS n, 'ann' AS name, NULL AS nothing, [1, 2] AS list")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (" n | name | nothing | list\n"
                           "---+------+---------+-------\n"
                           " 7 | ann  |    NULL | [1,2]\n"
                           "(1 row)\n")


def test_values_keep_their_digits_in_every_format(pool):
    query = ("SELECT 170141183460469231731687303715884105727::HUGEINT AS huge, 1.50::DECIMAL(9, 2) AS money, 3::DOUBLE AS whole,"
             " 'NaN'::DOUBLE AS nan, '' AS empty, NULL::VARCHAR AS nothing, 'a,\"b\"' AS quoted")
    table = sql(pool, "--format", "csv", "-c", query).stdout
    assert table.splitlines()[1] == '170141183460469231731687303715884105727,1.50,3.0,NaN,"",,"a,""b"""'
    (row,) = json.loads(sql(pool, "--format", "json", "-c", query).stdout)
    assert (row["huge"], row["money"], row["whole"]) == ("170141183460469231731687303715884105727", "1.50", 3.0)
    assert row["nan"] != row["nan"] and row["empty"] == "" and row["nothing"] is None


@pytest.mark.parametrize("rows", [0, 1, 200, 201, 1200, 1201, 5000])
def test_all_pages_arrive(pool, rows):
    done = sql(pool, "--format", "csv", "-c", f"SELECT range AS i FROM range({rows}) ORDER BY i")
    assert done.returncode == 0
    assert list(csv.reader(io.StringIO(done.stdout))) == [["i"]] + [[str(i)] for i in range(rows)]


def test_runs_statements_in_order_and_stops_at_the_first_failure(pool):
    done = sql(pool, "-c", "CREATE TABLE cli_order (i INTEGER); INSERT INTO cli_order VALUES (1), (2); -- two; rows\n",
               "-c", "SELECT count(*) AS n FROM cli_order; SELECT nothing FROM cli_order; DROP TABLE cli_order")
    assert done.returncode == 1
    assert done.stdout.splitlines()[:2] == ["CREATE", "INSERT 2"] and "(1 row)" in done.stdout
    assert done.stderr.startswith("error: ") and "nothing" in done.stderr
    assert pool.sql("SELECT count(*) AS n FROM cli_order") == [{"n": 2}]


def test_a_syntax_error_is_marked(pool):
    done = sql(pool, "-c", "SELECT 1\nFORM t")
    assert done.returncode == 1 and done.stdout == ""
    lines = done.stderr.splitlines()
    marker = next(i for i, line in enumerate(lines) if line.lstrip() == "^")
    assert lines[marker - 1].startswith("LINE 2: FORM t")


def test_files_and_standard_input(pool, tmp_path):
    script = tmp_path / "script.sql"
    script.write_text("SELECT 'one;' AS a;\n\nSELECT\n  2 AS b;\nSELECT broken here;\nSELECT 4 AS d")
    done = sql(pool, "--format", "csv", "-f", script)
    assert (done.returncode, done.stdout) == (1, "a\none;\nb\n2\n")
    assert done.stderr.startswith(f"{script}:5: error: ")
    done = sql(pool, "--format", "csv", input="SELECT 1 AS a; SELECT 2 AS b")
    assert (done.returncode, done.stdout) == (0, "a\n1\nb\n2\n")
    assert sql(pool, "-f", tmp_path / "none.sql").returncode == 1


def test_a_reader_that_goes_away_is_no_crash(pool):
    done = subprocess.run(["sh", "-c", f"{ROOST} sql --dir {pool.dir} -c 'SELECT range FROM range(100000)' | head -3"],
                          env=clean_environment(), capture_output=True, text=True, timeout=60)
    assert len(done.stdout.splitlines()) == 3 and "internal" not in done.stderr


def test_interrupting_cancels_the_statement(pool):
    process = subprocess.Popen([ROOST, "sql", "--dir", str(pool.dir), "-c", ENDLESS.replace("AS n", "AS cancel_me")], env=clean_environment(),
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def mine(*statuses):
        page = pool.request("GET", "/api/workspaces/main/queries?limit=20&q=cancel_me").json()
        return [item for item in page["items"] if item["status"] in statuses]

    wait_until(lambda: mine("queued", "running"), 30, "the statement runs")
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 130 and "cancel" in stderr
    assert time.monotonic() - began < 5
    assert mine("cancelled") and not mine("queued", "running")


def test_a_terminal_session_goes_on_after_errors(pool):
    control, terminal = pty.openpty()
    process = subprocess.Popen([ROOST, "sql", "--dir", str(pool.dir)], stdin=terminal, stdout=terminal, stderr=terminal,
                               env=clean_environment(), start_new_session=True)
    os.close(terminal)
    said = ""

    def until(text):
        nonlocal said
        deadline = time.monotonic() + 30
        while text not in said:
            assert time.monotonic() < deadline and process.poll() is None, said
            said += os.read(control, 4096).decode()
        said = said.split(text, 1)[1]

    until("lake=> ")
    os.write(control, b"SELECT 40\n")
    until("   -> ")
    os.write(control, b"+ 2 AS x;\n")
    until(" 42\r\n(1 row)\r\n")
    until("lake=> ")
    os.write(control, b"SELECT broken;\n")
    until("error: ")
    until("lake=> ")
    os.write(control, b"SELECT 5 AS y;\n")
    until(" 5\r\n(1 row)\r\n")
    until("lake=> ")
    os.write(control, b"\x04")
    assert process.wait(30) == 0
    os.close(control)


def test_wrong_credentials_and_addresses_are_clear(pool):
    done = run_roost("sql", "--url", pool.http, "--token", "wrong", "-c", "SELECT 1")
    assert done.returncode == 1 and pool.token not in done.stderr
    done = run_roost("sql", "--url", "http://127.0.0.1:1", "--token", "x", "-c", "SELECT 1")
    assert done.returncode == 1 and "no answer from http://127.0.0.1:1" in done.stderr
    done = run_roost("sql", "-c", "SELECT 6 AS x", "--format", "csv",
                     env=clean_environment(ROOST_URL=pool.http, ROOST_TOKEN=pool.token))
    assert (done.returncode, done.stdout) == (0, "x\n6\n")


# --- nodes, explain-route


def test_nodes_and_routes_are_shown(pool):
    done = run_roost("nodes", "--dir", pool.dir)
    assert done.returncode == 0 and done.stdout.count("online") == 2
    assert {node["id"] for node in json.loads(run_roost("nodes", "--dir", pool.dir, "--format", "json").stdout)} == {
        node["id"] for node in pool.ready()["nodes"]}
    done = run_roost("explain-route", "--dir", pool.dir, "SELECT 1")
    assert done.returncode == 0 and "reason" in done.stdout
    assert json.loads(run_roost("explain-route", "--dir", pool.dir, "--format", "json", "SELECT 1").stdout)["candidates"]
    done = run_roost("explain-route", "--dir", pool.dir, "SELEC 1")
    assert done.returncode == 1 and "syntax" in done.stderr


# --- import


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with Parquet and CSV of the same columns, 3 × 20,000 rows, one gzipped, one tab-separated below."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "more").mkdir()
    rows = "SELECT range + {0} AS id, 'n' || range AS name, CASE WHEN range % 3 = 0 THEN NULL ELSE range * 0.5 END AS x FROM range(20000)"
    duckdb.execute(f"COPY ({rows.format(0)}) TO '{folder}/a.parquet'")
    duckdb.execute(f"COPY ({rows.format(20000)}) TO '{folder}/b.csv.gz'")
    duckdb.execute(f"COPY ({rows.format(40000)}) TO '{folder}/more/c.tsv' (DELIMITER '\t', HEADER)")
    (folder / "README.txt").write_text("not data")
    (folder / "more" / "_SUCCESS").write_text("")
    return folder


def imported(pool, *arguments, **kwargs):
    return run_roost("import", "--dir", pool.dir, *arguments, **kwargs)


def staging(pool):
    folder = pool.dir / "lake" / "staging"
    return list(folder.iterdir()) if folder.exists() else []


def test_imports_a_folder_of_mixed_files(pool, files):
    done = imported(pool, files, "--into", "cli_mixed")
    assert done.returncode == 0, done.stderr
    assert "imported 60000 rows from 3 files" in done.stdout
    assert pool.sql("SELECT count(*) AS n, sum(id)::BIGINT AS s, count(x) AS x FROM cli_mixed") == [
        {"n": 60000, "s": sum(range(60000)), "x": 39999}]
    assert staging(pool) == []


def test_imports_quoted_globs_into_another_schema_and_appends(pool, files):
    for times in (1, 2):
        done = imported(pool, f"{files}/**/*.tsv", "--into", '"cli schema".t')
        assert done.returncode == 0, done.stderr
        assert pool.sql('SELECT count(*) AS n FROM "cli schema".t') == [{"n": 20000 * times}]


def test_a_broken_file_is_named_and_nothing_is_imported(pool, files, tmp_path):
    whole = (files / "a.parquet").read_bytes()
    (tmp_path / "good.parquet").write_bytes(whole)
    (tmp_path / "truncated.parquet").write_bytes(whole[:len(whole) // 2])
    done = imported(pool, tmp_path, "--into", "cli_broken")
    assert done.returncode == 1 and done.stdout == ""
    assert str(tmp_path / "truncated.parquet") in done.stderr and "nothing was imported" in done.stderr
    assert "staging" not in done.stderr
    assert pool.sql("SELECT count(*) AS n FROM information_schema.tables WHERE table_name = 'cli_broken'") == [{"n": 0}]
    assert staging(pool) == []


def test_a_bad_line_is_named_with_its_place(pool, tmp_path):
    lines = ["id,name"] + [f"{i},n{i}" for i in range(100000)]
    lines[90001] = "not a number,n"
    (tmp_path / "bad.csv").write_text("\n".join(lines) + "\n")
    pool.execute("CREATE TABLE cli_bad_line (id INTEGER, name VARCHAR)")
    done = imported(pool, tmp_path / "bad.csv", "--into", "cli_bad_line")
    assert done.returncode == 1
    assert f"{tmp_path / 'bad.csv'}: " in done.stderr and "Line: 90002" in done.stderr and "not a number" in done.stderr
    assert "staging" not in done.stderr and "Possible solutions" not in done.stderr
    assert pool.sql("SELECT count(*) AS n FROM cli_bad_line") == [{"n": 0}]


def test_import_mistakes_upload_nothing(pool, files, tmp_path):
    (tmp_path / "x.json").write_text("{}")
    for arguments, word in ((["/nowhere.csv"], "no such file: /nowhere.csv"), ([tmp_path / "x.json"], "cannot tell the format"),
                            ([f"{files}/*.orc"], "no file matches")):
        done = imported(pool, *arguments, "--into", "t")
        assert done.returncode in (1, 2) and word in done.stderr
    assert imported(pool, files, "--into", "a.b.c").returncode == 2
    assert imported(pool, files).returncode == 2
    done = imported(pool, files, "--into", "t", "--workspace", "none")
    assert done.returncode == 1 and "none" in done.stderr


def test_interrupting_an_import_leaves_nothing(pool, tmp_path):
    # Large enough to be caught in the act.
    duckdb.execute(f"COPY (SELECT range AS id, md5(range::VARCHAR) AS a, md5((range + 1)::VARCHAR) AS b FROM range(3000000))"
                   f" TO '{tmp_path}/large.csv'")
    process = subprocess.Popen([ROOST, "import", "--dir", str(pool.dir), str(tmp_path / "large.csv"), "--into", "cli_large"],
                               env=clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: staging(pool), 30, "the upload began")
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130 and "nothing was imported" in stderr
    wait_until(lambda: staging(pool) == [], 10, "staging is empty")
    assert pool.sql("SELECT count(*) AS n FROM information_schema.tables WHERE table_name = 'cli_large'") == [{"n": 0}]
