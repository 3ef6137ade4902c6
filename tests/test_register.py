"""`roost import --in-place`: Parquet of others becomes a table's without being copied. The answers are plain DuckDB's over the
same files; a file that changes afterwards is an error and never other rows; nothing is written or removed where the files lie."""

import contextlib
import hashlib
import os
import sqlite3
import uuid

import duckdb
import psycopg
import pytest

import duck
from pool import Pool, StatementFailed, run_roost, wait_until
from stores import Lake, Postgres, S3

LAKES = ["sqlite-directory", "sqlite-s3", "postgres-directory", "postgres-s3"]


class Foreign:
    """A running pool, and a folder of somebody's files: below `files` on disk, below `place` as the pool names it."""

    def __init__(self, lake, files, place):
        self.lake, self.pool, self.files, self.place = lake, lake.pool, files, place
        if lake.s3:
            self.client = duck.connect("httpfs")
            for name, value in (("endpoint", f"127.0.0.1:{lake.s3.port}"), ("region", "us-east-1"), ("use_ssl", "false"), ("url_style", "path"),
                                ("access_key_id", lake.s3.access_key), ("secret_access_key", lake.s3.secret_key)):
                self.client.execute(f"SET s3_{name} = '{value}'")

    def write(self, name, rows):
        """Its path on disk; a store's object is put there by the store, which gives it an ETag."""
        path = self.files / name
        if self.lake.s3:
            self.client.execute(f"COPY ({rows}) TO '{self.place}/{name}' (FORMAT parquet)")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            duckdb.execute(f"COPY ({rows}) TO '{path}' (FORMAT parquet)")
        return path

    def register(self, *arguments, **kwargs):
        return run_roost("import", "--in-place", "--dir", self.pool.dir, *arguments, **kwargs)

    def registered(self, *arguments):
        done = self.register(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr + self.pool.logs()
        return done.stdout

    def refused(self, *arguments):
        done = self.register(*arguments)
        assert done.returncode != 0, done.stdout
        assert "nothing was registered" in done.stderr
        return done.stderr

    def fingerprint(self):
        """Of every file of somebody's: its bytes, and when it was written."""
        return {str(p.relative_to(self.files)): (hashlib.sha256(p.read_bytes()).hexdigest(), p.stat().st_mtime_ns)
                for p in self.files.rglob("*") if p.is_file()}


def make_foreign(stack, folder, catalog, store, **kwargs):
    postgres = s3 = None
    flags, env = [], {}
    if catalog == "postgres":
        postgres = stack.enter_context(Postgres())
        flags += postgres.flags()
    if store == "s3":
        s3 = stack.enter_context(S3(folder / "s3"))
        flags += s3.flags()
        env |= s3.env()
        files = s3.root / "theirs" / "landing zone"
        place = "s3://theirs/landing zone"
    else:
        files = folder / "theirs"
        place = str(files)
    files.mkdir(parents=True)
    flags += ["--external", place, *kwargs.pop("flags", [])]
    pool = stack.enter_context(Pool(folder / "pool", flags=flags, env=env, **kwargs))
    return Foreign(Lake(pool, postgres, s3), files, place)


@pytest.fixture(scope="module", params=LAKES)
def foreign(request, tmp_path_factory):
    with contextlib.ExitStack() as stack:
        yield make_foreign(stack, tmp_path_factory.mktemp(request.param), *request.param.split("-"))


def rows_of(pool, sql):
    with psycopg.connect(pool.pg_dsn, autocommit=True) as connection:
        return connection.execute(sql).fetchall()


def same_as_duckdb(foreign, sql, table, reader):
    """`sql` over {t}: the table at the pool, `reader` in plain DuckDB."""
    assert rows_of(foreign.pool, sql.format(t=table)) == duckdb.execute(sql.format(t=reader)).fetchall()


def failure(pool, sql):
    with pytest.raises(StatementFailed) as failed:
        pool.sql(sql)
    return str(failed.value.statement)


SUMS = "SELECT count(*), sum(id), min(name), max(made), sum(amount), count(marks), max(place.x) FROM {t}"
ROWS = """SELECT range AS id, CASE WHEN range % 7 > 0 THEN 'n' || range % 100 END AS name,
       TIMESTAMP '2024-01-01' + to_seconds(range) AS made, (range * 0.25)::DECIMAL(12, 2) AS amount,
       CASE WHEN range % 3 > 0 THEN [range, NULL] END AS marks, {{'x': range, 'y': 'v' || range % 5}} AS place
FROM range({begin}, {end})"""


def test_the_answers_are_those_of_the_files(foreign):
    for i in range(3):
        foreign.write(f"plain/part{i}.parquet", ROWS.format(begin=i * 5000, end=(i + 1) * 5000))
    said = foreign.registered("--into", "plain", f"{foreign.place}/plain/*.parquet")
    assert "registered 15000 rows in place into plain" in said
    reader = f"read_parquet('{foreign.files}/plain/*.parquet')"
    same_as_duckdb(foreign, SUMS, "plain", reader)
    same_as_duckdb(foreign, "SELECT * FROM {t} WHERE id % 1000 = 3 ORDER BY id", "plain", reader)
    same_as_duckdb(foreign, "SELECT place.y, count(*) FROM {t} WHERE id BETWEEN 4990 AND 5010 GROUP BY ALL ORDER BY ALL", "plain", reader)
    # Nothing of it was copied.
    data = foreign.lake.s3.files() if foreign.lake.s3 else [str(p) for p in (foreign.pool.dir / "lake" / "data").rglob("*")]
    assert not any("plain" in name for name in data)


def test_a_copy_of_them_is_the_tables_own(foreign):
    """Without --in-place the nodes copy, from the store or from a folder of theirs."""
    for i in range(3):
        foreign.write(f"taken_over/deep/part{i}.parquet", ROWS.format(begin=i * 5000, end=(i + 1) * 5000))
    before = foreign.fingerprint()
    where = ["--dir", foreign.pool.dir] + ([] if foreign.lake.s3 else ["--from-pool"])
    done = run_roost("import", *where, "--into", "taken_over", f"{foreign.place}/taken_over/")
    assert done.returncode == 0, done.stdout + done.stderr + foreign.pool.logs()
    assert "imported 15000 rows into taken_over" in done.stdout
    same_as_duckdb(foreign, SUMS, "taken_over", f"read_parquet('{foreign.files}/taken_over/**/*.parquet')")
    expected = rows_of(foreign.pool, SUMS.format(t="taken_over"))
    done = run_roost("import", *where, "--into", "taken_over", f"{foreign.place}/taken_over/deep/part1.parquet")
    assert done.returncode == 0 and "imported 5000 rows" in done.stdout, done.stderr
    assert rows_of(foreign.pool, "SELECT count(*) FROM taken_over") == [(20000,)]
    assert foreign.fingerprint() == before
    for path in (foreign.files / "taken_over").rglob("*.parquet"):
        path.unlink()
    rows = rows_of(foreign.pool, "SELECT count(*), count(DISTINCT id) FROM taken_over")
    assert rows == [(20000, 15000)] and expected[0][0] == 15000


def test_a_copy_from_where_nobody_may_read_takes_nothing(foreign):
    where = ["--dir", foreign.pool.dir, "--from-pool", "--into", "stolen"]
    for source, why in [("/etc/passwd.csv", "/etc/passwd.csv"), ("s3://elsewhere/x.parquet", "elsewhere"),
                        (f"{foreign.place}/nothing/*.parquet", "nothing"), (f"{foreign.place}/../../pool/*.csv", "pool")]:
        done = run_roost("import", *where, source)
        assert done.returncode == 1 and "nothing was imported" in done.stderr, (source, done.stderr)
        assert why in done.stderr, (source, done.stderr)
    assert rows_of(foreign.pool, "SELECT count(*) FROM information_schema.tables WHERE table_name = 'stolen'") == [(0,)]


def test_partitions_in_paths_are_columns(foreign):
    for year in (2023, 2024):
        for kind in ("a", "b"):
            foreign.write(f"parts/year={year}/kind={kind}/x.parquet", f"SELECT range AS id, {year} * 2 AS twice FROM range({year})")
    foreign.registered("--into", "parts", f"{foreign.place}/parts/")
    reader = f"read_parquet('{foreign.files}/parts/**/*.parquet', hive_partitioning = true)"
    for sql in ("SELECT year, kind, count(*), sum(id), max(twice) FROM {t} GROUP BY ALL ORDER BY ALL",
                "SELECT count(*) FROM {t} WHERE year = 2023", "SELECT sum(id) FROM {t} WHERE kind = 'b' AND year > 2023",
                "SELECT * FROM {t} WHERE id = 5 ORDER BY year, kind"):
        same_as_duckdb(foreign, sql, "parts", reader)


def test_a_changed_file_is_an_error_and_says_which(foreign):
    """Whatever reads it: live and frozen plans, cached or not; and never the rows of another version."""
    path = foreign.write("changed/one.parquet", "SELECT range AS id FROM range(1000)")
    foreign.write("changed/two.parquet", "SELECT range AS id FROM range(1000, 2000)")
    foreign.registered("--into", "changed", f"{foreign.place}/changed/")
    times = path.stat()
    for _ in range(3):
        assert rows_of(foreign.pool, "SELECT count(*), sum(id) FROM changed") == [(2000, 1999000)]
    # As many rows, as many bytes, other values.
    foreign.write("changed/one.parquet", "SELECT 999 - range AS id FROM range(1000)")
    for _ in range(3):
        said = failure(foreign.pool, "SELECT sum(id) FROM changed")
        assert "changed/one.parquet" in said and "was changed after it was registered" in said, said
        assert "roost import --in-place" in said
    # The other file is as it was.
    assert rows_of(foreign.pool, "SELECT count(*) FROM changed WHERE id >= 1500") == [(500,)]
    # Put back, time included.
    foreign.write("changed/one.parquet", "SELECT range AS id FROM range(1000)")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert rows_of(foreign.pool, "SELECT count(*), sum(id) FROM changed") == [(2000, 1999000)]
    path.unlink()
    said = failure(foreign.pool, "SELECT sum(id) FROM changed")
    assert "changed/one.parquet" in said and "is gone" in said, said


def test_registered_again_after_a_change(foreign):
    """The new table has the new rows, from every node and however warm; what still names the old version is refused."""
    foreign.write("again/x.parquet", "SELECT range AS id FROM range(3000)")
    foreign.registered("--into", "again", f"{foreign.place}/again/x.parquet")
    for _ in range(4):
        assert rows_of(foreign.pool, "SELECT sum(id) FROM again") == [(4498500,)]
    before = rows_of(foreign.pool, "SELECT max(snapshot_id) FROM ducklake_snapshots('lake')")[0][0]
    foreign.write("again/x.parquet", "SELECT 2999 - range AS id FROM range(3000)")
    foreign.pool.sql("DROP TABLE again")
    foreign.registered("--into", "again", f"{foreign.place}/again/x.parquet")
    for _ in range(4):
        assert rows_of(foreign.pool, "SELECT sum(id), first(id) FROM again") == [(4498500, 2999)]
    assert "was changed" in failure(foreign.pool, f"SELECT first(id) FROM again AT (VERSION => {before})")


def test_missing_and_other_columns(foreign):
    foreign.write("cols/a.parquet", "SELECT 1 AS id, 'x' AS name")
    foreign.write("cols/b.parquet", "SELECT 2 AS id, 2.5::DOUBLE AS price")
    foreign.write("cols/c.parquet", "SELECT 3::BIGINT AS id, 0.5::FLOAT AS price")
    foreign.registered("--into", "cols", f"{foreign.place}/cols/*.parquet")
    same_as_duckdb(foreign, "SELECT id, name, price FROM {t} ORDER BY id", "cols",
                   f"read_parquet('{foreign.files}/cols/*.parquet', union_by_name = true)")
    # Into a table that is there, a file must have its columns, no more and no fewer, unless it is asked for.
    foreign.pool.sql("CREATE TABLE narrow (id BIGINT, name VARCHAR)")
    said = foreign.refused("--into", "narrow", f"{foreign.place}/cols/b.parquet")
    assert "cols/b.parquet" in said and "price" in said and "--ignore-extra" in said
    said = foreign.refused("--into", "narrow", "--ignore-extra", f"{foreign.place}/cols/b.parquet")
    assert "cols/b.parquet" in said and "name" in said and "--allow-missing" in said
    foreign.registered("--into", "narrow", "--ignore-extra", "--allow-missing", f"{foreign.place}/cols/*.parquet")
    assert rows_of(foreign.pool, "SELECT * FROM narrow ORDER BY id") == [(1, "x"), (2, None), (3, None)]


def test_types_that_clash_are_named(foreign):
    foreign.write("clash/a.parquet", "SELECT 1 AS id, 5 AS v")
    foreign.write("clash/b.parquet", "SELECT 2 AS id, 'five' AS v")
    said = foreign.refused("--into", "clash", f"{foreign.place}/clash/")
    assert 'column "v" is INTEGER in' in said and "clash/a.parquet" in said and "VARCHAR in" in said and "clash/b.parquet" in said
    assert "42P01" in failure(foreign.pool, "FROM clash")
    if foreign.lake.s3:
        foreign.client.execute(f"COPY (SELECT 'PAR1 this is none PAR1') TO '{foreign.place}/clash/b.parquet' (FORMAT csv)")
    else:
        (foreign.files / "clash" / "b.parquet").write_bytes(b"PAR1 this is none PAR1")
    assert "clash/b.parquet" in foreign.refused("--into", "clash", f"{foreign.place}/clash/")


def test_a_file_is_registered_once(foreign):
    foreign.write("once/a.parquet", "SELECT 1 AS id")
    foreign.registered("--into", "once", f"{foreign.place}/once/*.parquet", f"{foreign.place}/once/a.parquet")
    assert rows_of(foreign.pool, "SELECT count(*) FROM once") == [(1,)]
    said = foreign.refused("--into", "once", f"{foreign.place}/once/*.parquet")
    assert "once/a.parquet" in said and "--skip-registered" in said
    foreign.write("once/b.parquet", "SELECT 2 AS id")
    foreign.registered("--into", "once", "--skip-registered", f"{foreign.place}/once/*.parquet")
    foreign.registered("--into", "once", "--skip-registered", f"{foreign.place}/once/*.parquet")
    assert rows_of(foreign.pool, "SELECT count(*), sum(id)::INTEGER FROM once") == [(2, 3)]
    # In another table it may be too.
    foreign.registered("--into", "once_more", f"{foreign.place}/once/*.parquet")
    assert rows_of(foreign.pool, "SELECT count(*) FROM once_more") == [(2,)]


def test_what_is_outside_or_missing_says_what_to_do(foreign, tmp_path):
    duckdb.execute(f"COPY (SELECT 1 AS i) TO '{tmp_path}/x.parquet'")
    outside = [f"{tmp_path}/x.parquet", f"{tmp_path}/*.parquet", f"{foreign.place}/../x.parquet", f"{foreign.place}x/a.parquet",
               "s3://elsewhere/x.parquet", "/etc/passwd", f"{foreign.pool.dir}/**/*.parquet"]
    for place in outside:
        said = foreign.refused("--into", "nowhere", place)
        assert "--external" in said, (place, said)
    if not foreign.lake.s3:
        (foreign.files / "link.parquet").symlink_to(tmp_path / "x.parquet")
        assert "--external" in foreign.refused("--into", "nowhere", f"{foreign.place}/link.parquet")
        (foreign.files / "link.parquet").unlink()
    assert "no file" in foreign.refused("--into", "nowhere", f"{foreign.place}/none/*.parquet")
    missing = foreign.refused("--into", "nowhere", f"{foreign.place}/none.parquet")
    assert "none.parquet" in missing


def test_sql_reaches_no_file_by_its_path(foreign):
    path = foreign.write("secret/a.parquet", "SELECT 'canary-7' AS id")
    place = f"{foreign.place}/secret/a.parquet"
    foreign.registered("--into", "open_table", place)
    for sql in (f"FROM read_parquet('{place}')", f"FROM parquet_scan('{place}')", f"FROM '{place}'", f"FROM glob('{place}')",
                f"SELECT * FROM read_text('{place}')", f"FROM parquet_schema('{place}')", f"FROM parquet_file_metadata('{place}')",
                f"COPY open_table TO '{place}'", f"COPY open_table FROM '{place}'",
                f"CALL ducklake_add_data_files('lake', 'open_table', '{place}')", "FROM roost_pinned_file"):
        assert "canary" not in failure(foreign.pool, sql).replace(sql, "")
    outside = attach(foreign)
    outside.execute(f"CREATE VIEW lake.main.w_path AS SELECT * FROM read_parquet('{path}')")
    outside.execute("CREATE VIEW lake.main.w_pins AS SELECT * FROM open_table")
    outside.close()
    # The same view with the path as the pool knows it, as a client of the catalog may write it.
    metadata(foreign, f"UPDATE ducklake_view SET sql = replace(sql, '{path}', '{place}') WHERE view_name = 'w_path'")
    foreign.pool.sql("CREATE TABLE w_bump (i INTEGER)")
    foreign.pool.sql("DROP TABLE w_bump")
    assert "canary" not in failure(foreign.pool, "FROM w_path")
    assert rows_of(foreign.pool, "FROM w_pins") == [("canary-7",)]


def test_writes_leave_the_files_alone(foreign):
    for i in range(2):
        foreign.write(f"kept/part{i}.parquet", f"SELECT range AS id, 'a' AS v FROM range({i * 3000}, {i * 3000 + 3000})")
    before = foreign.fingerprint()
    foreign.registered("--into", "kept", f"{foreign.place}/kept/")
    foreign.pool.sql("INSERT INTO kept SELECT range, 'b' FROM range(6000, 8000)")
    foreign.pool.sql("UPDATE kept SET v = 'c' WHERE id % 2 = 0")
    foreign.pool.sql("DELETE FROM kept WHERE id >= 7000 OR id < 1000")
    foreign.pool.sql("ALTER TABLE kept ADD COLUMN note VARCHAR")
    foreign.pool.sql("ALTER TABLE kept RENAME COLUMN v TO w")
    want = [(6000, sum(range(1000, 7000)), 3000, 0)]
    for _ in range(3):
        assert rows_of(foreign.pool, "SELECT count(*), sum(id)::BIGINT, count(*) FILTER (w = 'c'), count(note) FROM kept") == want
    foreign.pool.sql("CREATE TABLE copied AS FROM kept")
    foreign.pool.sql("DROP TABLE kept")
    assert foreign.fingerprint() == before


def test_a_file_added_by_another_client_is_refused(foreign):
    """It bears no version to compare with. What that client does with files that roost registered is its own affair."""
    path = foreign.write("other/a.parquet", "SELECT 1 AS id")
    outside = attach(foreign)
    outside.execute("CREATE TABLE lake.main.other (id INTEGER)")
    outside.execute(f"CALL ducklake_add_data_files('lake', 'other', '{path}')")
    outside.close()
    metadata(foreign, f"UPDATE ducklake_data_file SET path = '{foreign.place}/other/a.parquet' WHERE path = '{path}'")
    foreign.pool.sql("CREATE TABLE w_bump2 (i INTEGER)")
    assert "roost import --in-place" in failure(foreign.pool, "FROM other")


def attach(foreign):
    """Another DuckLake client on the same catalog; it sees the store's files in their folder."""
    lake = foreign.lake
    outside = duck.connect("httpfs", "sqlite_scanner", "postgres_scanner", "ducklake")
    where = f"postgres:{lake.postgres.dsn()}" if lake.postgres else f"sqlite:{foreign.pool.dir}/catalog/lake.sqlite"
    outside.execute(f"ATTACH 'ducklake:{where}' AS lake")
    return outside


def metadata(foreign, sql):
    if foreign.lake.postgres:
        with foreign.lake.postgres.connect() as connection:
            connection.execute(sql)
    else:
        with contextlib.closing(sqlite3.connect(foreign.pool.dir / "catalog" / "lake.sqlite", timeout=20)) as connection, connection:
            connection.execute(sql)


def many_files(foreign, folder, count):
    """Cheap ones: names of one file."""
    first = foreign.write(f"{folder}/part=0/f.parquet", "SELECT range AS id, 'v' || range AS v FROM range(10)")
    for i in range(1, count):
        path = foreign.files / folder / f"part={i}" / "f.parquet"
        path.parent.mkdir()
        os.link(first, path)


def test_many_files(tmp_path):
    """In the memory that a small node has, with progress, and answered right; in a directory, where files cost nothing. Nearly
    all of the time is DuckLake's, which takes some milliseconds a file; REGISTER_FILES=10000 is the long form."""
    count = int(os.environ.get("REGISTER_FILES", "1000"))
    with contextlib.ExitStack() as stack:
        foreign = make_foreign(stack, tmp_path, "sqlite", "directory", nodes=1)
        many_files(foreign, "many", count)
        body = {"schema": "main", "table": "many", "wait_timeout_s": 0, "in_place": {"paths": [f"{foreign.place}/many/"]}}
        statement = foreign.pool.request("POST", f"/api/workspaces/main/imports/{uuid.uuid4()}", json=body).json()
        seen, highest = set(), 0
        while statement["status"] in ("queued", "running"):
            highest = max(highest, foreign.pool.node_process(0).memory_info().rss)
            statement = foreign.pool.request("GET", f"/api/queries/{statement['id']}?wait_timeout_s=0").json()
            seen.add(statement.get("progress"))
        assert statement["status"] == "done", statement
        assert statement["row_count"] == 10 * count
        assert len(seen - {None}) > 3, seen
        assert highest < 512 << 20, highest
        assert rows_of(foreign.pool, "SELECT count(*), count(DISTINCT part), sum(id)::BIGINT FROM many") == [(10 * count, count, 45 * count)]
        assert rows_of(foreign.pool, "SELECT id, v FROM many WHERE part = 777 AND id = 3") == [(3, "v3")]


@pytest.mark.parametrize("catalog", ["sqlite", "postgres"])
@pytest.mark.parametrize("victim", ["node", "gateway"])
def test_killed_in_a_registration(tmp_path, catalog, victim):
    """All of it or nothing, at whatever moment; and asked for again it is there once."""
    with contextlib.ExitStack() as stack:
        foreign = make_foreign(stack, tmp_path, catalog, "directory", nodes=1)
        pool = foreign.pool
        many_files(foreign, "many", 150)
        for attempt, moment in enumerate(("list", 45, 90)):
            table = f"many_{attempt}"
            body = {"schema": "main", "table": table, "wait_timeout_s": 0, "in_place": {"paths": [f"{foreign.place}/many/"]}}
            statement = pool.request("POST", f"/api/workspaces/main/imports/{uuid.uuid4()}", json=body).json()

            def reached():
                state = pool.request("GET", f"/api/queries/{statement['id']}").json()
                return state["status"] not in ("queued", "running") or moment == "list" or (state.get("progress") or 0) >= moment
            wait_until(reached, 60, "it is that far")
            if victim == "node":
                pool.wait_node_replaced(0, pool.kill_node(0))
            else:
                pool.wait_gateway_replaced(pool.kill_gateway())

            def over():
                answer = pool.request("GET", f"/api/queries/{statement['id']}")
                return answer.status_code == 200 and answer.json()["status"] not in ("queued", "running") and answer.json()
            ended = wait_until(over, 90, "it is over")
            there = pool.sql(f"SELECT count(*) AS n FROM information_schema.tables WHERE table_name = '{table}'")[0]["n"]
            if ended["status"] == "done":
                assert there == 1
            if there:
                assert rows_of(pool, f"SELECT count(*) FROM {table}") == [(1500,)]
            foreign.registered("--into", table, "--skip-registered", f"{foreign.place}/many/")
            assert rows_of(pool, f"SELECT count(*), count(DISTINCT part) FROM {table}") == [(1500, 150)]


@pytest.mark.parametrize("catalog", ["sqlite", "postgres"])
def test_reads_by_a_frozen_catalog_look_at_the_files_too(tmp_path, catalog):
    """The node's copy of the metadata names the same files, and pins are asked for all the same."""
    with contextlib.ExitStack() as stack:
        foreign = make_foreign(stack, tmp_path, catalog, "directory", nodes=1, node_memory="2GiB")
        foreign.write("f/k=1/a.parquet", "SELECT range AS id FROM range(1000)")
        foreign.write("f/k=2/b.parquet", "SELECT range AS id FROM range(1000, 2000)")
        foreign.registered("--into", "t", f"{foreign.place}/f/")

        def frozen():
            assert rows_of(foreign.pool, "SELECT k, count(*), sum(id)::BIGINT FROM t GROUP BY k ORDER BY k") == [
                (1, 1000, 499500), (2, 1000, 1499500)]
            return '"event":"frozen_catalog"' in (foreign.pool.dir / "log" / "node-1.log").read_text(errors="replace")
        wait_until(frozen, 60, "a frozen catalog is used")
        assert frozen()
        foreign.write("f/k=1/a.parquet", "SELECT 999 - range AS id FROM range(1000)")
        assert "was changed" in failure(foreign.pool, "SELECT sum(id) FROM t")
        assert rows_of(foreign.pool, "SELECT count(*) FROM t WHERE k = 2") == [(1000,)]
