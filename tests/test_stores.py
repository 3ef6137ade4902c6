"""Lakes with their catalog in SQLite or Postgres and their files in a directory or an S3 store: what is written is there,
through HTTP and Postgres wire, after restarts too; the store's keys and the catalog's password are seen by nobody."""

import contextlib
import pathlib
import threading

import psycopg
import pytest

from pool import StatementFailed, run_roost
from stores import make_lake


@pytest.fixture(scope="module", params=["sqlite-s3", "postgres-directory", "postgres-s3"])
def lake(request, tmp_path_factory):
    with contextlib.ExitStack() as stack:
        yield make_lake(stack, tmp_path_factory.mktemp(request.param), *request.param.split("-"))


def one(pool, sql):
    rows = pool.sql(sql)
    assert len(rows) == 1 and len(rows[0]) == 1, rows
    return next(iter(rows[0].values()))


def test_what_is_written_over_http_is_there(lake):
    pool = lake.pool
    pool.sql("CREATE TABLE w_orders (id INTEGER, name VARCHAR, amount DECIMAL(18, 2))")
    pool.sql("INSERT INTO w_orders SELECT range, 'n' || range % 10, range * 0.25 FROM range(20000)")
    pool.sql("INSERT INTO w_orders VALUES (-1, NULL, NULL)")
    pool.sql("UPDATE w_orders SET name = 'changed' WHERE id < 100")
    pool.sql("DELETE FROM w_orders WHERE id >= 19000")
    pool.sql("ALTER TABLE w_orders ADD COLUMN note VARCHAR")
    pool.sql("ALTER TABLE w_orders RENAME COLUMN amount TO total")
    pool.sql("CREATE TABLE w_sums AS SELECT name, count(*) AS n, sum(total) AS s FROM w_orders GROUP BY name")
    rows = pool.sql("SELECT count(*) AS n, count(name) AS names, count(note) AS notes, sum(id) AS ids, "
                    "sum(total)::VARCHAR AS total, count(*) FILTER (name = 'changed') AS changed FROM w_orders")
    # ids 0 … 18999 and -1
    assert {k: str(v) for k, v in rows[0].items()} == {
        "n": "19001", "names": "19001", "notes": "0", "ids": str(18999 * 19000 // 2 - 1), "total": "45122625.00", "changed": "101"}
    assert pool.sql("SELECT sum(n)::INTEGER AS n, count(*) AS names FROM w_sums") == [{"n": 19001, "names": 11}]
    pool.sql("DROP TABLE w_sums")
    with pytest.raises(StatementFailed) as missing:
        pool.sql("FROM w_sums")
    assert missing.value.statement["error_code"] == "42P01" or "42P01" in str(missing.value.statement)


def test_nodes_keep_what_they_read_of_a_store_and_statements_go_by_it(lake):
    pool = lake.pool
    nodes = pool.request("GET", "/api/nodes").json()
    route = pool.request("POST", "/api/workspaces/main/explain-route", json={"sql": "SELECT 1"}).json()
    if lake.s3:
        assert all(node["cache"]["room_bytes"] > 0 and node["cache"]["disk"] == "ok" for node in nodes), nodes
        assert route["policy"] == "affinity"
    else:
        assert all(node["cache"] is None for node in nodes), nodes
        assert route["policy"] == "least_loaded"


def test_transactions_over_postgres_wire(lake):
    with psycopg.connect(lake.pool.pg_dsn) as writer, psycopg.connect(lake.pool.pg_dsn, autocommit=True) as reader:
        writer.execute("CREATE TABLE w_moves (id INTEGER, v VARCHAR)")
        writer.execute("INSERT INTO w_moves VALUES (1, 'a'), (2, 'b')")
        writer.commit()
        assert reader.execute("SELECT count(*) FROM w_moves").fetchone() == (2,)
        writer.execute("UPDATE w_moves SET v = 'z' WHERE id = 1")
        writer.execute("INSERT INTO w_moves SELECT range, 'bulk' FROM range(10, 5010)")
        assert writer.execute("SELECT count(*), min(v) FROM w_moves").fetchone() == (5002, "b")
        assert reader.execute("SELECT count(*), min(v) FROM w_moves").fetchone() == (2, "a")
        writer.rollback()
        assert reader.execute("SELECT count(*), min(v) FROM w_moves").fetchone() == (2, "a")
        writer.execute("INSERT INTO w_moves SELECT range, 'bulk' FROM range(10, 5010)")
        writer.execute("DELETE FROM w_moves WHERE id = 2")
        writer.commit()
        assert reader.execute("SELECT count(*), count(*) FILTER (id = 2) FROM w_moves").fetchone() == (5001, 0)


ODD_VALUES = ["plain", "two words", "a/b", "a?b=c&d", "50%", "..", ".", "é", "x" * 100, "#1", "a\\b", "it's", "*", "", "<&>", "a+b", None]


def test_partitions_of_any_value(lake):
    pool = lake.pool
    pool.sql("CREATE TABLE w_parts (k VARCHAR, i INTEGER)")
    pool.sql("ALTER TABLE w_parts SET PARTITIONED BY (k)")
    # More rows than are kept in the catalog itself.
    values = ", ".join("(NULL)" if v is None else "('" + v.replace("'", "''") + "')" for v in ODD_VALUES)
    pool.sql(f"INSERT INTO w_parts SELECT k, i FROM (VALUES {values}) v(k), range(50) r(i)")
    found = pool.sql("SELECT k, count(*) AS n, sum(i)::INTEGER AS s FROM w_parts GROUP BY k")
    assert sorted((row["k"] is None, row["k"] or "", row["n"], row["s"]) for row in found) == sorted(
        (v is None, v or "", 50, 1225) for v in ODD_VALUES)
    for value in ODD_VALUES:
        if value is not None:
            quoted = value.replace("'", "''")
            assert one(pool, f"SELECT count(*) AS n FROM w_parts WHERE k = '{quoted}'") == 50, value
    pool.sql("DELETE FROM w_parts WHERE k = 'two words'")
    assert one(pool, "SELECT count(*) AS n FROM w_parts") == 50 * (len(ODD_VALUES) - 1)


def test_files_are_where_the_store_is(lake):
    lake.pool.sql("CREATE TABLE w_big AS SELECT range AS i FROM range(50000)")
    local = list((lake.pool.dir / "lake" / "data").rglob("*.parquet"))
    if lake.s3:
        assert not local
        assert any(key.startswith("data/main/w_big/") for key in lake.s3.files())
    else:
        assert any("w_big" in str(path) for path in local)


def test_a_file_of_many_parts(lake):
    """More than one part of an upload, within the memory that a statement is given."""
    if not lake.s3:
        pytest.skip("no store")
    rows = 400_000
    lake.pool.sql(f"CREATE TABLE w_parts_many AS SELECT range AS i, md5(range::VARCHAR) || md5((range + 1)::VARCHAR) AS s FROM range({rows})")
    sizes = [(lake.s3.root / lake.s3.bucket / lake.s3.prefix / key).stat().st_size
             for key in lake.s3.files() if "/w_parts_many/" in key]
    assert max(sizes) > 3 * 5 * 1024 * 1024
    found = lake.pool.sql("SELECT count(*) AS n, sum(i)::BIGINT::VARCHAR AS s, "
                          "count(*) FILTER (s <> md5(i::VARCHAR) || md5((i + 1)::VARCHAR)) AS wrong FROM w_parts_many")
    assert found == [{"n": rows, "s": str(rows * (rows - 1) // 2), "wrong": 0}]


def test_an_import_is_staged_at_the_gateway(lake, tmp_path):
    source = tmp_path / "rows.csv"
    source.write_text("id,name\n" + "".join(f"{i},n{i}\n" for i in range(3000)))
    done = run_roost("import", "--dir", lake.pool.dir, "--into", "w_imported", source)
    assert done.returncode == 0, done.stdout + done.stderr
    assert lake.pool.sql("SELECT count(*) AS n, max(id) AS m FROM w_imported") == [{"n": 3000, "m": 2999}]
    staging = lake.pool.dir / ("staging" if lake.s3 else "lake/staging")
    assert [path for path in staging.rglob("*") if path.is_file()] == []


def secrets_of(lake):
    found = []
    if lake.s3:
        found += [lake.s3.secret_key, lake.s3.access_key]
    if lake.postgres:
        found += [lake.postgres.password]
    return found


LOOKS = """SELECT current_setting('s3_secret_access_key')
SELECT current_setting('s3_access_key_id')
SELECT current_setting('secret_directory')
FROM duckdb_settings()
FROM duckdb_secrets()
FROM which_secret('s3://warehouse/x', 's3')
FROM duckdb_databases()
SELECT * FROM pg_settings
SHOW DATABASES
PRAGMA database_list
FROM pragma_database_list
FROM lake.settings()
FROM lake.options()
FROM ducklake_list_files('lake', 'w_seen')
FROM postgres_query('__ducklake_metadata_lake', 'SELECT current_user')
CALL postgres_execute('__ducklake_metadata_lake', 'SELECT 1')
FROM postgres_scan('host=x', 'public', 'ducklake_snapshot')
FROM __ducklake_metadata_lake.ducklake_snapshot
FROM read_parquet('s3://warehouse/pool one/data/main/w_seen/*.parquet')
FROM 's3://warehouse/x.parquet?s3_endpoint=127.0.0.1:1'
FROM 'http://127.0.0.1:1/x.parquet'
COPY w_seen TO 's3://warehouse/out.csv'
CREATE SECRET s (TYPE s3, KEY_ID 'a', SECRET 'b')
ATTACH 'postgres:host=127.0.0.1' AS p
EXPLAIN FROM w_seen
EXPLAIN ANALYZE FROM w_seen
DESCRIBE w_seen
SUMMARIZE w_seen
FROM no_such_table
SELECT error('x')
FROM duckdb_tables()
FROM duckdb_logs()
FROM duckdb_temporary_files()
FROM duckdb_external_file_cache()""".split("\n")


def test_keys_and_passwords_are_seen_by_nobody(lake):
    pool = lake.pool
    pool.sql("CREATE TABLE IF NOT EXISTS w_seen AS SELECT range AS i FROM range(5000)")
    said = []
    for sql in LOOKS:
        try:
            statement = pool.execute(sql)
            said.append(pool.request("GET", f"/api/queries/{statement['id']}").text)
            said.append(str(pool.rows(statement)))
            said.append(pool.request("GET", f"/api/queries/{statement['id']}/profile").text)
        except StatementFailed as failed:
            said.append(str(failed.statement))
    said.append(pool.request("GET", "/api/workspaces").text)
    said.append(pool.said())
    for log in pool.dir.glob("log/*.log"):
        said.append(log.read_text(errors="replace"))
    for index in range(pool.node_count):
        process = pathlib.Path(f"/proc/{pool.node_pid(index)}")
        said.append(process.joinpath("environ").read_text(errors="replace"))
        said.append(process.joinpath("cmdline").read_text(errors="replace"))
    for secret in secrets_of(lake):
        for text in said:
            assert secret not in text, text[:500]


def test_views_of_other_clients_reach_nothing(lake):
    """A view that another DuckLake client left in the lake brings a call that no statement may make."""
    if not lake.postgres:
        pytest.skip("SQLite's functions are covered by the engine's tests")
    pool = lake.pool
    with lake.postgres.connect() as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS seen_by_view (i INTEGER)")
    pool.sql("CREATE VIEW w_view AS SELECT 1 AS i")
    with lake.postgres.connect() as connection:
        changed = connection.execute(
            "UPDATE ducklake_view SET sql = $q$SELECT * FROM postgres_query('__ducklake_metadata_lake', 'SELECT 1 AS i FROM seen_by_view')$q$ "
            "WHERE view_name = 'w_view'")
        assert changed.rowcount == 1
        # Nodes read the schema anew.
    pool.sql("CREATE TABLE w_bump (i INTEGER)")
    with pytest.raises(StatementFailed) as refused:
        pool.sql("FROM w_view")
    assert "functions.reserved" in str(refused.value.statement) or "not open to statements" in str(refused.value.statement)


def test_restarted_nodes_and_gateway_find_the_lake(lake):
    pool = lake.pool
    pool.sql("CREATE TABLE w_kept AS SELECT range AS i FROM range(12345)")
    for index in range(pool.node_count):
        pool.wait_node_replaced(index, pool.kill_node(index))
    assert one(pool, "SELECT count(*) AS n FROM w_kept") == 12345
    pool.wait_gateway_replaced(pool.kill_gateway())
    assert one(pool, "SELECT count(*) AS n FROM w_kept") == 12345
    pool.sql("INSERT INTO w_kept VALUES (1)")
    assert one(pool, "SELECT count(*) AS n FROM w_kept") == 12346


def test_conflicting_writers_get_40001(lake):
    if not lake.postgres:
        pytest.skip("a SQLite catalog has one writer at a time")
    lake.pool.sql("CREATE TABLE w_race AS SELECT range AS i, 0 AS v FROM range(5000)")
    with psycopg.connect(lake.pool.pg_dsn) as first, psycopg.connect(lake.pool.pg_dsn) as second:
        first.execute("UPDATE w_race SET v = 1")
        second.execute("UPDATE w_race SET v = 2")
        first.commit()
        with pytest.raises(psycopg.errors.SerializationFailure):
            second.commit()
        second.rollback()
        assert second.execute("SELECT min(v), max(v), count(*) FROM w_race").fetchone() == (1, 1, 5000)


def test_writers_of_different_tables_go_side_by_side(lake):
    """Without a lease on Postgres, in turns on SQLite: nothing is lost either way."""
    writers, rounds = 4, 5
    for w in range(writers):
        lake.pool.sql(f"CREATE TABLE w_side_{w} (i INTEGER)")
    failures = []

    def write(w):
        try:
            with psycopg.connect(lake.pool.pg_dsn, autocommit=True) as connection:
                for r in range(rounds):
                    connection.execute(f"INSERT INTO w_side_{w} SELECT range + {r} FROM range(100)")
        except psycopg.Error as error:
            failures.append(error)
    threads = [threading.Thread(target=write, args=(w,)) for w in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    for w in range(writers):
        assert one(lake.pool, f"SELECT count(*) AS n FROM w_side_{w}") == rounds * 100


def test_connections_to_postgres_stay_bounded(lake):
    """Each transaction holds one connection; the pool stays far below what Postgres gives."""
    if not lake.postgres:
        pytest.skip("no Postgres")
    lake.pool.sql("CREATE TABLE IF NOT EXISTS w_many AS SELECT range AS i FROM range(5000)")
    highest, stop = [0], threading.Event()

    def watch():
        while not stop.is_set():
            highest[0] = max(highest[0], lake.postgres.connections())
    watcher = threading.Thread(target=watch)
    watcher.start()

    def read():
        with psycopg.connect(lake.pool.pg_dsn, autocommit=True) as connection:
            for _ in range(10):
                assert connection.execute("SELECT count(*) FROM w_many").fetchone() == (5000,)
    readers = [threading.Thread(target=read) for _ in range(16)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    stop.set()
    watcher.join()
    assert 0 < highest[0] <= 20 * lake.pool.node_count
