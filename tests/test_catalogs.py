"""Several catalogs and workspaces in one pool: each is a lake of its own, a statement may name any of its workspace's, and
nothing of another workspace's is there.
"""

import psycopg
import pytest
import requests

from pool import Pool, StatementFailed, run_roost

FILE = """
[sales]

[lab]
workspace = "science"
"""


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    directory = tmp_path_factory.mktemp("catalogs") / "pool"
    directory.mkdir()
    (directory / "catalogs.toml").write_text(FILE)
    with Pool(directory, nodes=2, node_memory="768MiB") as pool:
        pool.execute("CREATE TABLE lake.main.orders AS SELECT range AS id, range % 7 AS customer FROM range(1000)")
        pool.execute("CREATE TABLE sales.main.customers AS SELECT range AS id, 'c' || range AS name FROM range(7)")
        yield pool


def connect(pool, database):
    dsn = pool.pg_dsn.replace("dbname=lake", f"dbname={database}")
    return psycopg.connect(dsn, autocommit=True)


def sqlstate(error):
    return error.value.sqlstate


JOIN = "SELECT name, count(*) FROM lake.main.orders o JOIN sales.main.customers c ON c.id = o.customer GROUP BY name ORDER BY name"


def test_a_statement_joins_two_catalogs(pool):
    expected = [(f"c{n}", 1000 // 7 + (1 if n < 1000 % 7 else 0)) for n in range(7)]
    for database in ("lake", "sales"):
        with connect(pool, database) as session:
            assert session.execute(JOIN).fetchall() == expected
            assert session.execute(JOIN, prepare=True).fetchall() == expected
    rows = pool.sql(JOIN)
    assert [tuple(row.values()) for row in rows] == expected


def test_a_single_qualifier_is_a_schema_or_a_catalog(pool):
    with connect(pool, "lake") as session:
        assert session.execute("SELECT count(*) FROM sales.customers").fetchone() == (7,)
        with pytest.raises(psycopg.Error) as missing:
            session.execute("SELECT * FROM customers")
        assert sqlstate(missing) == "42P01"
        session.execute("USE sales")
        assert session.execute("SELECT count(*) FROM customers").fetchone() == (7,)
        assert session.execute("SELECT count(*) FROM lake.orders").fetchone() == (1000,)


def test_writing_goes_to_the_catalog_that_is_named(pool):
    with connect(pool, "lake") as session:
        session.execute("CREATE TABLE sales.main.by_customer AS SELECT customer, count(*) AS n FROM orders GROUP BY ALL")
        session.execute("INSERT INTO sales.by_customer SELECT -1, count(*) FROM lake.main.orders")
        session.execute("CREATE SCHEMA sales.reports")
        session.execute("CREATE TABLE sales.reports.t (x INTEGER)")
    with connect(pool, "sales") as session:
        assert session.execute("SELECT sum(n) FROM by_customer").fetchone() == (2000,)
        assert session.execute("SELECT count(*) FROM reports.t").fetchone() == (0,)
        session.execute("DROP TABLE by_customer")
        session.execute("DROP SCHEMA reports CASCADE")
    with connect(pool, "lake") as session, pytest.raises(psycopg.Error) as gone:
        session.execute("SELECT * FROM by_customer")
    assert sqlstate(gone) == "42P01"


def test_a_view_over_another_catalog_is_read(pool):
    with connect(pool, "sales") as session:
        session.execute("CREATE VIEW big AS SELECT customer, count(*) AS n FROM lake.main.orders GROUP BY ALL")
        session.execute("CREATE VIEW bigger AS SELECT * FROM big WHERE n > 142")
        assert session.execute("SELECT sum(n) FROM big").fetchone() == (1000,)
        assert session.execute("SELECT count(*) FROM bigger").fetchone() == (6,)
        session.execute("DROP VIEW bigger")
        session.execute("DROP VIEW big")


def test_a_transaction_keeps_the_catalogs_of_its_first_statement(pool):
    with connect(pool, "lake") as session:
        session.execute("BEGIN")
        session.execute(JOIN)
        session.execute("INSERT INTO sales.customers VALUES (100, 'new')")
        assert session.execute("SELECT count(*) FROM sales.customers").fetchone() == (8,)
        session.execute("ROLLBACK")
        assert session.execute("SELECT count(*) FROM sales.customers").fetchone() == (7,)
        session.execute("BEGIN")
        session.execute("INSERT INTO sales.customers VALUES (100, 'new')")
        session.execute("COMMIT")
        assert session.execute("SELECT count(*) FROM sales.customers").fetchone() == (8,)
        session.execute("DELETE FROM sales.customers WHERE id = 100")
        session.execute("BEGIN")
        session.execute("SELECT count(*) FROM orders")
        with pytest.raises(psycopg.Error) as late:
            session.execute(JOIN)
        assert sqlstate(late) == "0A000"
        session.execute("ROLLBACK")
        session.execute("BEGIN")
        session.execute("SELECT count(*) FROM orders")
        with pytest.raises(psycopg.Error) as moved:
            session.execute("USE sales")
        assert sqlstate(moved) == "25001"
        session.execute("ROLLBACK")


def test_a_transaction_of_one_catalog_does_not_block_writers_of_another(pool):
    with connect(pool, "lake") as one, connect(pool, "sales") as other:
        one.execute("BEGIN")
        one.execute("INSERT INTO orders VALUES (-1, 0)")
        other.execute("CREATE TABLE meanwhile AS SELECT 1 AS x")
        other.execute("DROP TABLE meanwhile")
        one.execute("ROLLBACK")


@pytest.mark.parametrize("database", ["lake", "sales", "lab"])
def test_lists_tell_of_the_sessions_own_catalog(pool, database):
    with connect(pool, database) as session:
        assert session.execute("SHOW DATABASES").fetchall() == [(database,)]
        assert (database, "main") in [row[:2] for row in session.execute("SHOW SCHEMAS").fetchall()]
        rows = dict(session.execute("select database_name, type from duckdb_databases()").fetchall())  # dbt's words
        assert rows.pop(database) == "ducklake" and set(rows.values()) == {"duckdb"}


def test_catalogs_of_another_workspace_are_not_there(pool):
    with connect(pool, "lab") as session:
        session.execute("CREATE TABLE secret_lab AS SELECT 42 AS answer")
        with pytest.raises(psycopg.Error):
            session.execute("SELECT * FROM lake.main.orders")
        session.execute("USE sales")  # a schema of that name may come to be
        with pytest.raises(psycopg.Error) as other:
            session.execute("SELECT * FROM customers")
        assert sqlstate(other) == "42P01"
        session.execute("USE main")
        assert session.execute("SELECT DISTINCT table_catalog FROM information_schema.tables WHERE table_schema = 'main'").fetchall() == [("lab",)]
    with connect(pool, "lake") as session:
        with pytest.raises(psycopg.Error):
            session.execute("SELECT * FROM lab.main.secret_lab")
        with pytest.raises(psycopg.Error):
            session.execute("INSERT INTO lab.main.secret_lab VALUES (1)")
    with pytest.raises(StatementFailed):
        pool.sql("SELECT * FROM lab.main.secret_lab")


def test_they_are_listed_by_workspace(pool):
    def get(path):
        return requests.get(pool.http + path, headers={"Authorization": f"Bearer {pool.token}"}, timeout=30)

    def ask(path):
        return get(path).json()

    workspaces = {workspace["slug"]: workspace for workspace in ask("/api/workspaces")}
    assert workspaces.keys() == {"main", "science"}
    assert workspaces["main"]["default_catalog"] == "lake" and workspaces["science"]["default_catalog"] == "lab"
    assert [c["slug"] for c in ask("/api/workspaces/main/catalogs")] == ["lake", "sales"]
    assert [c["slug"] for c in ask("/api/workspaces/science/catalogs")] == ["lab"]
    assert {c["slug"] for c in ask("/api/catalogs")} == {"lake", "sales", "lab"}
    tables = ask("/api/workspaces/main/catalogs/sales/schemas/main/tables")
    assert [table["name"] for table in tables] == ["customers"]
    assert get("/api/workspaces/main/catalogs/lab/schemas").status_code == 404


def test_all_of_them_take_turns_in_little_memory(pool):
    """More catalogs than the small lane has room for at a time."""
    sessions = [connect(pool, name) for name in ("lake", "sales", "lab")]
    for _ in range(15):
        for session in sessions:
            assert session.execute("SELECT 1").fetchone() == (1,)
            assert session.execute("SELECT count(*) >= 0 FROM information_schema.tables").fetchone() == (True,)
        assert sessions[0].execute(JOIN).rowcount == 7
    for session in sessions:
        session.close()


@pytest.mark.parametrize("text, said", [
    ("[lake]\n", "is taken"),
    ("[Sales]\n", "a catalog's name is"),
    ("[a]\nstoer = 'x'\n", "a section may have catalog, store and workspace"),
    ("x = 1\n", "outside a section"),
    ("[a]\nstore = '/tmp/one'\n[b]\nstore = '/tmp/one'\n", "has the store of another catalog"),
    ("[a]\ncatalog = 'mysql:x'\n", "catalog"),
])
def test_a_file_that_is_wrong_is_named_with_the_line(tmp_path, text, said):
    from pool import run_roost
    (tmp_path / "catalogs.toml").write_text(text)
    done = run_roost("up", "--dir", tmp_path, "--http", "127.0.0.1:0", "--pg", "127.0.0.1:0", timeout_s=60)
    assert done.returncode != 0
    assert "catalogs.toml" in done.stderr and said in done.stderr, done.stderr


def test_an_import_goes_to_the_catalog_that_it_names(pool, tmp_path):
    (tmp_path / "rows.csv").write_text("a,b\n1,x\n2,y\n")
    done = run_roost("import", "--dir", pool.dir, "--catalog", "sales", "--into", "imported.rows", tmp_path / "rows.csv")
    assert done.returncode == 0, done.stderr
    with connect(pool, "sales") as session:
        assert session.execute("SELECT count(*), max(b) FROM imported.rows").fetchone() == (2, "y")
    (tmp_path / "bad.csv").write_text("a,b\n1,x\nnot a number,y\n")
    done = run_roost("import", "--dir", pool.dir, "--catalog", "sales", "--into", "imported.rows", tmp_path / "bad.csv")
    assert done.returncode == 1 and f"{tmp_path}/bad.csv" in done.stderr and ":staging" not in done.stderr, done.stderr
    for catalog in ("lab", "nowhere"):
        done = run_roost("import", "--dir", pool.dir, "--catalog", catalog, "--into", "t", tmp_path / "rows.csv")
        assert done.returncode == 1 and "does not exist" in done.stderr, done.stderr
