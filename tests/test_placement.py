"""Warm seats in a real pool of three nodes over an S3 store: statements go where the bytes are, and everybody can see why.
The long form, through psql and pgjdbc as well, is tests/warm_pool.py."""

import json

import psycopg
import pytest

import duck
from pool import ANSWER_WITHIN_S, run_roost, wait_until
from warm_pool import CATALOG_NOISE, WarmPool, ratio, read_by_http

TABLES = 6


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    with WarmPool(tmp_path_factory.mktemp("warm"), TABLES, 30_000, delay_s=0.002) as warm:
        yield warm


def test_each_byte_is_fetched_once_by_affinity_and_once_a_node_by_load(warm):
    found = ratio(warm, "auto", 1, 10, [read_by_http(warm), warm.read_pg])
    assert found["ratio"] <= 1.05 * CATALOG_NOISE, found
    assert found["outcomes"].get("sticky_fresh", 0) > 0, found
    spread = ratio(warm, "round_robin", 1, 24, [read_by_http(warm), warm.read_pg])
    assert spread["ratio"] > 2, spread


def test_three_in_a_row_go_to_one_node_and_two_fetch_nothing(warm):
    warm.restart("auto", cold=True)
    profiles, fetched = [], []
    for _ in range(3):
        fetched.append(warm.fetched(lambda: profiles.append(warm.read_http(3)))[0])
    assert len({profile["node"] for profile in profiles}) == 1
    assert [profile["reason"] for profile in profiles] == ["claim", "sticky_fresh", "sticky_fresh"]
    assert fetched[0] > 1_000_000 and fetched[1:] == [0, 0], fetched
    first, second = profiles[0]["reads"], profiles[1].get("reads")
    assert first["units"][0]["table"] == "lake.main.t3"
    assert first["store_bytes"] == sum(segment["store_bytes"] for segment in first["units"][0]["segments"])
    assert first["store_bytes"] == pytest.approx(fetched[0], rel=0.02)
    assert first["units"][0]["warm_bytes"] == first["store_bytes"]
    assert second is None or second["store_bytes"] == 0


def test_a_new_gateway_hears_what_is_warm(warm):
    home = warm.read_http(2)["node"]
    warm.restart("auto", cold=False)
    wait_until(lambda: warm.homes(2), ANSWER_WITHIN_S, "the node says what it has")
    fetched, profiles = [], []
    fetched.append(warm.fetched(lambda: profiles.append(warm.read_http(2)))[0])
    assert (profiles[0]["node"], profiles[0]["reason"]) == (home, "sticky_fresh")
    assert fetched == [0] and profiles[0]["reads"]["cache_bytes"] > 0


def test_a_write_leaves_its_home_fresh_and_costs_the_next_read_nothing(warm):
    home = warm.read_http(1)["node"]
    rows = warm._rows_of(1)
    statement = warm.pool.execute(f"INSERT INTO t1 SELECT range, md5(range::VARCHAR) FROM range({rows // 20})")
    profile = warm.pool.request("GET", f"/api/queries/{statement['id']}/profile").json()
    assert profile["node"] == home
    assert [unit["written"] for unit in profile["reads"]["units"] if unit["table"] == "lake.main.t1"] == [True]
    seen = []

    def read():
        again = warm.pool.execute("SELECT count(*) AS n, max(s) AS last, sum(i) AS total FROM t1")
        seen.append(warm.pool.request("GET", f"/api/queries/{again['id']}/profile").json())
    fetched, _ = warm.fetched(read)
    assert (seen[0]["node"], seen[0]["reason"]) == (home, "sticky_fresh"), seen[0]
    assert fetched == 0, "the writer has what it wrote"


def test_of_a_write_by_somebody_else_only_the_new_file_is_fetched(warm):
    home = warm.read_http(0)["node"]
    warm.pool.execute("SELECT max(s) FROM t0")
    before = {file for file in warm.s3.dir.rglob("*.parquet")}
    lake = duck.connect("httpfs", "sqlite_scanner", "ducklake")
    lake.execute(f"CREATE SECRET (TYPE s3, KEY_ID '{warm.s3.access_key}', SECRET '{warm.s3.secret_key}', "
                 f"ENDPOINT '127.0.0.1:{warm.s3.port}', REGION 'us-east-1', URL_STYLE 'path', USE_SSL false)")
    catalog = next(path for path in warm.pool.dir.rglob("*.sqlite") if "catalog" in str(path) or "lake" in path.name)
    lake.execute(f"ATTACH 'ducklake:sqlite:{catalog}' AS lake (META_JOURNAL_MODE 'WAL', META_BUSY_TIMEOUT 5000)")
    lake.execute(f"INSERT INTO lake.t0 SELECT range, md5(range::VARCHAR) FROM range({warm._rows_of(0) // 20})")
    lake.close()
    new_bytes = sum(file.stat().st_size for file in warm.s3.dir.rglob("*.parquet") if file not in before)
    assert new_bytes > 0
    seen = []

    def read():
        statement = warm.pool.execute("SELECT count(*) AS n, max(s) AS last, sum(i) AS total FROM t0")
        seen.append((statement, warm.pool.request("GET", f"/api/queries/{statement['id']}/profile").json()))
    fetched, _ = warm.fetched(read)
    assert seen[0][1]["node"] == home
    assert new_bytes <= fetched <= new_bytes * 1.05 + 2_000, (fetched, new_bytes)
    assert warm.fetched(read)[0] == 0
    assert seen[1][1]["node"] == home


def test_a_new_table_is_read_where_it_was_written(warm):
    for way in ("CREATE TABLE made", "CREATE OR REPLACE TABLE made"):
        statement = warm.pool.execute(f"{way} AS SELECT range AS i, md5(range::VARCHAR) AS s FROM range(50000)")
        writer = warm.pool.request("GET", f"/api/queries/{statement['id']}/profile").json()["node"]
        wait_until(lambda: warm.homes("made", "fresh"), ANSWER_WITHIN_S, "the gateway has seen the table")
        seen = []

        def read():
            again = warm.pool.execute("SELECT count(*) AS n, max(s) AS last, sum(i) AS total FROM made")
            seen.append(warm.pool.request("GET", f"/api/queries/{again['id']}/profile").json())
        fetched, _ = warm.fetched(read)
        assert (seen[0]["node"], seen[0]["reason"], fetched) == (writer, "sticky_fresh", 0), (way, seen[0])


def test_what_a_transaction_writes_is_fresh_at_its_node(warm):
    warm.read_http(3)
    with psycopg.connect(warm.pool.pg_dsn) as connection:
        connection.execute("INSERT INTO t3 SELECT range, md5(range::VARCHAR) FROM range(5000)")
        connection.execute("DELETE FROM t3 WHERE i < 10")
        connection.commit()
    wait_until(lambda: warm.homes(3, "fresh"), ANSWER_WITHIN_S, "its home is fresh again")
    fetched, _ = warm.fetched(lambda: warm.pool.execute("SELECT count(*) AS n, max(s) AS last, sum(i) AS total FROM t3"))
    assert fetched == 0


def test_a_hot_table_spreads(warm):
    warm.restart("auto", cold=True)
    warm.load_with([lambda: warm.read_pg([5] * 6)] * 32)
    assert warm.outcomes().get("overflow", 0) > 0, warm.outcomes()
    wait_until(lambda: len(warm.homes(5)) > 1, ANSWER_WITHIN_S, "it is warm on more than one node")


def test_people_see_and_move_what_is_warm(warm):
    warm.read_http(4)
    home = warm.homes(4)[0]
    directory = ["--dir", str(warm.pool.dir)]
    placed = run_roost("placement", "t4", *directory)
    assert placed.returncode == 0 and home in placed.stdout and "fresh" in placed.stdout, placed
    assert run_roost("placement", "nothing", *directory).returncode == 1
    listed = run_roost("cache", *directory)
    assert "lake.main.t4" in listed.stdout, listed
    nodes = json.loads(run_roost("nodes", "--format", "json", *directory).stdout)
    assert all(node["cache"]["room_bytes"] == 1 << 30 for node in nodes)
    assert any(node["cache"]["warm_bytes"] > 0 for node in nodes)

    evicted = run_roost("cache", "evict", "t4", *directory)
    assert evicted.returncode == 0, evicted
    wait_until(lambda: not warm.homes(4), ANSWER_WITHIN_S, "nothing of it is warm")
    other = next(node["name"] for node in nodes if node["name"] != home)
    warmed = run_roost("cache", "warm", "t4", "--node", other, *directory)
    assert warmed.returncode == 0, warmed
    wait_until(lambda: warm.homes(4) == [other], ANSWER_WITHIN_S, "it is warm where somebody wanted it")
    fetched, _ = warm.fetched(lambda: warm.read_http(4))
    assert fetched == 0
    pinned = run_roost("cache", "pin", "t4", "--node", other, "--format", "json", *directory)
    assert json.loads(pinned.stdout)[0]["bytes"] > 0, pinned
    refused = run_roost("cache", "warm", "t4", "--node", "nobody", *directory)
    assert refused.returncode == 1 and "nobody" in refused.stderr


def test_a_replaced_volume_is_another_node(warm):
    warm.restart("auto", cold=True)
    unwritten = (2, 4, 5)
    for table in unwritten:
        warm.read_http(table)
    wait_until(lambda: all(warm.homes(table) for table in unwritten), ANSWER_WITHIN_S, "all is warm")
    name = warm.homes(5)[0]
    index = int(name.rsplit("-", 1)[1]) - 1
    nodes = {node["id"]: node["name"] for node in warm.pool.request("GET", "/api/nodes").json()}
    warm.pool.replace_volume(index)
    fetched, _ = warm.fetched(lambda: [warm.read_pg([table]) for table in unwritten])
    assert fetched > 0, "what it had is fetched again"
    known = {home["node_id"] for table in unwritten for home in warm.placed(table)}
    assert not [id for id, node in nodes.items() if node == name and id in known], "and its old identity is forgotten"


def test_bytes_by_source_are_in_the_metrics(warm):
    warm.read_http(5)
    text = warm.pool.request("GET", "/metrics").text
    for source in ("store", "cache"):
        assert f'roost_cache_statement_bytes_total{{source="{source}"}}' in text
    assert "roost_cache_warm_bytes" in text and "roost_placement_units" in text


def test_what_was_recorded_can_be_simulated(warm, tmp_path):
    trace = tmp_path / "load.trace"
    warm.pool.env["ROOST_PLACEMENT_TRACE"] = str(trace)
    warm.restart("auto", cold=True)
    del warm.pool.env["ROOST_PLACEMENT_TRACE"]
    for _ in range(3):
        warm.read_pg([2, 4, 5])
    warm.pool.execute("INSERT INTO t1 VALUES (1, 'x')")
    warm.restart("auto", cold=False)  # the gateway that stops writes the rest
    text = trace.read_text()
    lines = text.splitlines()
    assert lines[0] == "roost-trace 1" and sum(line.startswith("unit ") for line in lines) in (4, 5), lines  # and t0, by restart()
    runs = [line.split()[2] for line in lines if line.startswith("run ")]
    assert runs.count("r") in (9, 10) and runs.count("w") == 1, lines
    assert "t1" not in text and "SELECT" not in text
    done = run_roost("sim", "placement", "--trace", trace, "--in-flight", "1", "--policies", "affinity", "--markdown", "--warmup", "0")
    assert done.returncode == 0 and "| affinity |" in done.stdout, done
