"""How a pool is pointed at its catalog and its store, and the bounds it keeps there: buckets, sockets, URLs, a gateway and a node
apart, connections; and the published answers of TPC-H on S3 and Postgres."""

import contextlib
import json
import subprocess

import psycopg
import pytest
import requests

import duck
from pool import ROOST, Pool, clean_environment, wait_until
from stores import S3, Postgres, free_port, listens, make_lake
from test_tpch import check, parse_answer


def test_tpch_answers_are_the_published_ones(tmp_path):
    connection = duck.connect("tpch")
    queries = dict(connection.execute("SELECT query_nr, query FROM tpch_queries()").fetchall())
    answers = dict(connection.execute("SELECT query_nr, answer FROM tpch_answers() WHERE scale_factor = 0.1").fetchall())
    with contextlib.ExitStack() as stack:
        lake = make_lake(stack, tmp_path, "postgres", "s3", nodes=2, sample="tpch:0.1")
        with psycopg.connect(lake.pool.pg_dsn, autocommit=True) as reader:
            for number in sorted(queries):
                rows = reader.execute(queries[number].strip().rstrip(";")).fetchall()
                check(parse_answer(answers[number]), rows)


def test_a_bucket_that_is_not_there_is_said_at_the_start(tmp_path):
    with S3(tmp_path / "s3") as s3:
        s3.bucket = "no-such-bucket"
        pool = Pool(tmp_path / "pool", flags=s3.flags(), env=s3.env(), start=False)
        try:
            pool.launch()
            assert pool.process.wait(60) != 0
        finally:
            pool.kill()
        assert "the lake's bucket does not exist" in pool.said() and "make it, or correct --store" in pool.said()


def test_a_bucket_in_the_host_name(tmp_path):
    with S3(tmp_path / "s3", virtual_hosts=True) as s3:
        flags = ["--store", s3.url, "--s3-endpoint", f"http://localhost:{s3.port}", "--s3-url-style", "vhost"]
        with Pool(tmp_path / "pool", nodes=1, flags=flags, env=s3.env()) as pool:
            pool.sql("CREATE TABLE t AS SELECT range AS i FROM range(5000)")
            assert pool.sql("SELECT sum(i)::INTEGER AS s FROM t") == [{"s": 5000 * 4999 // 2}]
        assert any("data/main/t/" in key for key in s3.files())


def test_open_transactions_are_bounded_and_a_node_comes_back_when_its_catalog_does(tmp_path):
    with Postgres() as postgres:
        with Pool(tmp_path / "pool", nodes=1, flags=postgres.flags()) as pool:
            pool.sql("CREATE TABLE t AS SELECT 42 AS i")
            sessions = [psycopg.connect(pool.pg_dsn) for _ in range(9)]
            for session in sessions[:8]:
                assert session.execute("SELECT i FROM t").fetchone() == (42,)
            with pytest.raises(psycopg.errors.TooManyConnections):
                sessions[8].execute("SELECT i FROM t")
            sessions[8].rollback()
            # Others go on meanwhile, and so does the one that waited once there is room.
            assert pool.sql("SELECT i FROM t") == [{"i": 42}]
            sessions[0].rollback()
            assert sessions[8].execute("SELECT i FROM t").fetchone() == (42,)
            for session in sessions:
                session.close()
            # A node that starts while the catalog is away keeps trying.
            postgres.stop()
            old = pool.kill_node(0)
            wait_until(lambda: "instance_failed" in (pool.dir / "log" / "node-1.log").read_text(), 30, "the node finds no catalog")
            postgres.start()
            pool.wait_node_replaced(0, old)
            wait_until(lambda: len(pool.online_nodes()) == 1, 60, "the node is back")
            assert pool.sql("SELECT i FROM t") == [{"i": 42}]


def test_a_gateway_and_a_node_apart(tmp_path):
    """As on two machines: they share a store, a catalog and a token, and no directory but for the token's."""
    with Postgres() as postgres, S3(tmp_path / "s3") as s3:
        # A password from a file that the connection string names.
        passfile = tmp_path / "pgpass"
        passfile.write_text(f"127.0.0.1:{postgres.port}:*:*:{postgres.password}\n")
        passfile.chmod(0o600)
        dsn = f"postgres:host=127.0.0.1 port={postgres.port} user={postgres.user} dbname={postgres.database} passfile={passfile}"
        lake = ["--catalog", dsn, *s3.flags()]
        http, listen = free_port(), free_port()
        gateway_dir, node_dir = tmp_path / "gateway", tmp_path / "node"
        commands = [
            ["gateway", "--dir", gateway_dir, "--http", f"127.0.0.1:{http}", "--pg", "127.0.0.1:0", "--listen", f"127.0.0.1:{listen}",
             "--sample", "none", *lake],
            ["node", "--dir", node_dir, "--join", f"http://127.0.0.1:{listen}", "--token-file", gateway_dir / "join-token",
             "--memory", "512MiB", *lake]]
        running = []
        try:
            with open(tmp_path / "output", "wb") as output:
                for command in commands:
                    running.append(subprocess.Popen([ROOST, *map(str, command)], stdout=output, stderr=output,
                                                    env=clean_environment(**s3.env())))
                    assert running[-1].poll() is None
                    if len(running) == 1:
                        wait_until(lambda: listens(http), 60, "the gateway answers")
            token = json.loads((gateway_dir / "credentials").read_text())["token"]
            header = {"Authorization": f"Bearer {token}"}

            def run(sql):
                answer = requests.post(f"http://127.0.0.1:{http}/api/workspaces/main/queries", headers=header, timeout=60,
                                       json={"sql": sql, "wait_timeout_s": 20}).json()
                return answer if answer.get("status") == "done" else None
            wait_until(lambda: run("SELECT 1"), 60, "the node has joined")
            assert run("CREATE TABLE t AS SELECT range AS i FROM range(5000)")
            assert run("SELECT sum(i)::INTEGER AS s FROM t")["first_page"]["rows"] == [{"s": 5000 * 4999 // 2}]
        finally:
            for process in running:
                process.kill()
                process.wait()


def test_a_socket_folder_and_a_url_do_as_well(tmp_path):
    with Postgres() as postgres:
        with Pool(tmp_path / "socket", nodes=1, flags=postgres.flags(host=postgres.sockets)) as pool:
            pool.sql("CREATE TABLE t AS SELECT 42 AS i")
        url = f"postgresql://{postgres.user}:{postgres.password}@127.0.0.1:{postgres.port}/{postgres.database}?sslmode=disable"
        # Another pool on the same lake: the data is in the first one's directory.
        with Pool(tmp_path / "url", nodes=1, flags=["--catalog", url, "--store", str(tmp_path / "socket" / "lake")]) as pool:
            assert pool.sql("SELECT i FROM t") == [{"i": 42}]
