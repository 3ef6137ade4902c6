"""`roost up` as a person and a script meet it: start, ready file, crashes, stopping, mistakes."""

import json
import os
import pathlib
import re
import signal
import socket
import stat
import subprocess
import time

import psutil
import pytest
import requests

from pool import ROOST, Pool, clean_environment, run_roost, wait_until


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def gone(process):
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


# --- starting


def test_ready_file_says_how_to_connect_and_it_works(pool):
    ready = pool.ready()
    assert set(ready) == {"http", "pg", "user", "password", "token", "workspace", "catalog", "nodes"}
    assert mode(pool.ready_file) == 0o600
    assert (ready["user"], ready["workspace"], ready["catalog"]) == ("admin", "main", "lake")
    assert [pathlib.Path(node["dir"]) for node in ready["nodes"]] == [pool.dir / "nodes" / "1", pool.dir / "nodes" / "2"]
    for node in ready["nodes"]:
        assert (pathlib.Path(node["dir"]) / "identity").read_text().strip() == node["id"]
        assert "node" in psutil.Process(node["pid"]).cmdline()
    assert {(node["id"], node["pid"]) for node in pool.online_nodes()} == {(n["id"], n["pid"]) for n in ready["nodes"]}
    assert pool.sql("SELECT 42 AS x") == [{"x": 42}]


def test_secrets_are_private(pool):
    assert mode(pool.dir) == 0o700
    for name in ("credentials", "join-token", "pgpass", "ready.json", "run.json"):
        assert mode(pool.dir / name) == 0o600, name
    credentials = json.loads((pool.dir / "credentials").read_text())
    assert credentials == {key: pool.ready()[key] for key in ("user", "password", "token")}
    secrets = [credentials["password"], credentials["token"], (pool.dir / "join-token").read_text().strip()]
    told = [pool.said()] + [" ".join(process.cmdline()) for process in pool.known]
    told += [log.read_text() for log in (pool.dir / "log").iterdir()]
    assert not [secret for secret in secrets for text in told if secret in text]


def test_the_printed_psql_line_works_as_it_stands(pool, tmp_path):
    line = re.search(r"^PGPASSFILE=.*$", pool.said(), re.M).group()
    done = subprocess.run(["sh", "-c", line + " -Atc 'SELECT 6 * 7'"], env=clean_environment(), cwd=tmp_path,
                          capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "42\n", "")


def test_processes_are_apart_and_do_not_hear_the_terminal(pool):
    children = psutil.Process(pool.process.pid).children()
    assert len(children) == 3
    for child in children:
        assert os.getpgid(child.pid) == child.pid
        assert child.name() in ("roost-gateway", "roost-node")


def test_flags_reach_the_processes(make_pool, tmp_path):
    store, catalog = tmp_path / "elsewhere", tmp_path / "the catalog.sqlite"
    config = tmp_path / "roost.toml"
    config.write_text('routing = "round_robin"\nnodes = 5\n')
    pool = make_pool(nodes=1, flags=["--store", str(store), "--catalog", f"sqlite:{catalog}", "--config", str(config)],
                     env={"ROOST_NODE_CPUS": "1", "ROOST_HTTP": "127.0.0.1:1"})
    pool.execute("CREATE TABLE t AS SELECT range AS i FROM range(50000)")
    assert catalog.exists() and list(store.rglob("*.parquet"))
    (node,) = pool.online_nodes()
    assert (node["cpus"], node["memory_bytes"]) == (1, 512 * 1024 * 1024)
    route = pool.request("POST", "/api/workspaces/main/explain-route", json={"sql": "SELECT * FROM t"}).json()
    assert "round_robin" in route["policy"] + route["reason"]


def test_the_sample_fills_an_empty_lake_once(make_pool):
    pool = make_pool(nodes=1, sample="tpch:0.01")
    count = "SELECT count(*) AS n FROM lineitem"
    assert pool.sql(count) == [{"n": 60175}]
    pool.execute("DELETE FROM lineitem WHERE l_orderkey > 100")
    left = pool.sql(count)
    assert pool.stop()[0] == 0
    pool.start()
    assert pool.sql(count) == left
    pool.execute("DROP TABLE lineitem")
    pool.stop()
    pool.start()
    assert "lineitem" not in [row["table_name"] for row in pool.sql("SELECT table_name FROM information_schema.tables")]


def test_a_sample_that_was_cut_short_is_made_whole_at_the_next_start(make_pool):
    pool = make_pool(start=False, nodes=1, sample="tpch:0.1")
    pool.launch()
    wait_until(lambda: list((pool.dir / "lake").rglob("*.parquet")), 60, "the lake is being filled")
    pool.process.kill()
    pool.process.wait()
    pool.start()
    counts = pool.sql("SELECT (SELECT count(*) FROM region) AS region, (SELECT count(*) FROM lineitem) AS lineitem")
    assert counts == [{"region": 5, "lineitem": 600572}]


# --- crashes


def test_a_killed_node_comes_back_with_its_identity(make_pool):
    pool = make_pool()
    before = pool.ready()
    entry = pool.wait_node_replaced(0, pool.kill_node(0))
    assert entry["id"] == before["nodes"][0]["id"]
    assert pool.ready()["nodes"][1] == before["nodes"][1]
    assert {(node["id"], node["pid"]) for node in pool.online_nodes()} == {(n["id"], n["pid"]) for n in pool.ready()["nodes"]}
    assert pool.sql("SELECT 1 AS x") == [{"x": 1}]


def test_a_killed_gateway_comes_back_on_its_ports(make_pool):
    pool = make_pool()
    pool.execute("CREATE TABLE t AS SELECT 7 AS i")
    before = pool.ready()
    pool.wait_gateway_replaced(pool.kill_gateway())
    after = pool.ready()
    assert after == before
    assert pool.sql("SELECT * FROM t") == [{"i": 7}]


def test_a_node_that_keeps_crashing_is_started_with_growing_pauses(make_pool):
    pool = make_pool(nodes=1)
    pauses = []
    for _ in range(4):
        pid = pool.kill_node(0)
        pool.wait_node_replaced(0, pid)
        pauses = [int(ms) for ms in re.findall(r"node-1 was killed by signal 9.* in (\d+) ms", pool.said())]
    assert pauses == [100, 200, 400, 800]
    assert pool.sql("SELECT 1 AS x") == [{"x": 1}]


def test_nothing_outlives_a_killed_supervisor_and_the_next_one_recovers(make_pool):
    pool = make_pool()
    pool.execute("CREATE TABLE t AS SELECT 7 AS i")
    ids = [node["id"] for node in pool.ready()["nodes"]]
    pool.process.kill()
    pool.process.wait()
    wait_until(lambda: all(gone(process) for process in pool.known), 10, "the processes are gone")
    assert pool.ready_file.exists(), "left by the kill; the next start must not take it for its own"
    pool.launch()
    wait_until(lambda: not pool.ready_file.exists(), 10, "the stale ready file is removed")
    pool.wait_ready()
    assert [node["id"] for node in pool.ready()["nodes"]] == ids
    assert pool.sql("SELECT * FROM t") == [{"i": 7}]


# --- stopping


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_stops_cleanly_when_told(make_pool, signum):
    pool = make_pool()
    status, seconds = pool.stop(signum=signum)
    assert status == 0
    assert seconds < 5, "nothing ran: there is nothing to wait for"
    assert not pool.ready_file.exists() and not (pool.dir / "ready.json").exists()
    assert not (pool.dir / "gateway.sock").exists() and not (pool.dir / "run.json").exists()


# Runs for minutes on any machine.
ENDLESS = "SELECT count(*) AS n FROM range(1000000) a, range(1000000) b WHERE a.range + b.range = -1"


def test_stops_in_time_while_a_statement_runs_that_would_not_end(make_pool):
    pool = make_pool()
    statement = pool.submit(ENDLESS)
    wait_until(lambda: pool.request("GET", f"/api/queries/{statement['id']}").json()["status"] == "running", 30, "it runs")
    status, _ = pool.stop()
    assert status == 0
    pool.start()
    told = pool.request("GET", f"/api/queries/{statement['id']}").json()
    assert told["status"] in ("failed", "cancelled") and told["error"]


def test_stops_in_time_when_a_node_does_not_listen(make_pool):
    pool = make_pool()
    os.kill(pool.node_pid(0), signal.SIGSTOP)
    assert pool.stop()[0] == 0


def test_a_second_interrupt_stops_at_once(make_pool):
    pool = make_pool()
    statement = pool.submit(ENDLESS)
    wait_until(lambda: pool.request("GET", f"/api/queries/{statement['id']}").json()["status"] == "running", 30, "it runs")
    pool.remember()
    pool.process.send_signal(signal.SIGINT)
    began = time.monotonic()
    # Two within half a second are one wish.
    while pool.process.poll() is None:
        pool.process.send_signal(signal.SIGINT)
        assert time.monotonic() - began < 4
        time.sleep(0.1)
    assert all(gone(process) for process in pool.known)


# --- mistakes


def up(tmp_path, *flags, **kwargs):
    return run_roost("up", "--dir", tmp_path / "pool", "--http", "127.0.0.1:0", "--pg", "127.0.0.1:0", "--sample", "none",
                     *flags, **kwargs)


def test_a_second_up_on_the_same_directory_names_the_first(pool, tmp_path):
    second = run_roost("up", "--dir", pool.dir, "--http", "127.0.0.1:0", "--pg", "127.0.0.1:0")
    assert second.returncode == 1
    assert f"pid {pool.process.pid}" in second.stderr and str(pool.dir) in second.stderr
    assert pool.sql("SELECT 1 AS x") == [{"x": 1}]


@pytest.mark.parametrize("flag", ["--http", "--pg"])
def test_a_port_in_use_is_named_with_its_flag(tmp_path, flag):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = up(tmp_path, flag, f"127.0.0.1:{port}")
    assert done.returncode == 1
    assert f"port {port} is already in use" in done.stderr and flag in done.stderr


@pytest.mark.parametrize("flags, words", [
    (["--store", "s3://b/prefix"], ["--store", "is not a bucket name"]),
    (["--store", "gs://bucket/prefix"], ["--store", "only s3:// and directories"]),
    (["--catalog", "postgres:password=geheim x"], ["the connection string of the Postgres catalog can't be understood"]),
    (["--catalog", "mysql:host=x"], ["--catalog", "starts with sqlite: or postgres:"]),
    (["--meta", "postgres:host=x"], ["--meta postgres:", "not supported yet"]),
    (["--nodse", "3"], ["unknown flag --nodse", "did you mean --nodes?"]),
    (["--nodes", "many"], ["--nodes", "many"]),
    (["--http", "nowhere"], ["--http", "nowhere"]),
    (["--http", "127.0.0.1:9999", "--pg", "127.0.0.1:9999"], ["same address"]),
    (["--config", "/nowhere/roost.toml"], ["/nowhere/roost.toml"]),
])
def test_wrong_settings_say_what_is_wrong_and_start_nothing(tmp_path, flags, words):
    done = up(tmp_path, *flags)
    assert done.returncode == 2, done.stderr
    assert all(word in done.stderr for word in words), done.stderr
    assert done.stdout == ""


def test_a_directory_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "pool").mkdir(mode=0o755)
    (tmp_path / "pool" / "letter.txt").write_text("dear")
    done = up(tmp_path)
    assert done.returncode == 1 and "not roost's" in done.stderr
    assert mode(tmp_path / "pool") == 0o755 and os.listdir(tmp_path / "pool") == ["letter.txt"]


def test_a_directory_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    done = run_roost("up", "--dir", tmp_path / "file" / "pool")
    assert done.returncode == 1 and str(tmp_path / "file") in done.stderr


def test_a_gateway_that_cannot_start_ends_up_with_its_reason(make_pool, tmp_path):
    (tmp_path / "meta.sqlite").write_text("this is no database, and long enough to be taken for a broken one " * 20)
    pool = make_pool(start=False, flags=["--meta", f"sqlite:{tmp_path / 'meta.sqlite'}"])
    pool.launch()
    assert pool.process.wait(60) == 1
    assert "gateway exited with status 1" in pool.said() and "meta.sqlite" in pool.said()
    assert not pool.ready_file.exists()


def test_a_node_that_cannot_start_ends_up_with_its_reason(make_pool):
    pool = make_pool(start=False, nodes=1)
    (pool.dir / "nodes" / "1").mkdir(parents=True)
    (pool.dir / "lock").write_text("")
    (pool.dir / "nodes" / "1" / "identity").write_text("not an id at all, but longer than one would be\n")
    pool.launch()
    assert pool.process.wait(90) == 1
    assert "identity" in pool.said()
    pool.remember()
    assert all(gone(process) for process in pool.known)


def test_only_health_and_version_answer_without_credentials(pool):
    for path in ("/healthz", "/readyz", "/api/version"):
        assert requests.get(pool.http + path, timeout=30).status_code == 200, path
    for path in ("/api/nodes", "/metrics", "/api/workspaces", "/api/me"):
        assert requests.get(pool.http + path, timeout=30).status_code == 401, path


# --- without a pool


def test_help_and_version():
    assert re.fullmatch(r"roost \d+\.\d+\.\d+\n", run_roost("version").stdout)
    for command in ("up", "gateway", "node", "sql", "nodes", "explain-route", "import", "config"):
        done = run_roost(command, "--help")
        assert done.returncode == 0 and f"roost {command}" in done.stdout, command
        assert command in run_roost("help").stdout


def test_unknown_commands_and_flags_exit_with_2():
    assert run_roost().returncode == 2
    done = run_roost("improt")
    assert done.returncode == 2 and "did you mean import?" in done.stderr
    for command, flag, meant in (("sql", "--comand", "--command"), ("nodes", "--fromat", "--format"), ("import", "--int", "--into")):
        arguments = ["x.csv", "--into", "t"] if command == "import" else []
        done = run_roost(command, *arguments, flag, "x")
        assert done.returncode == 2 and f"did you mean {meant}?" in done.stderr, done.stderr


def test_config_prints_values_and_sources(tmp_path):
    done = run_roost("config", "--nodes", "7", env=clean_environment(ROOST_PG="127.0.0.1:7777"), cwd=tmp_path)
    assert done.returncode == 0
    assert re.search(r"nodes\b.*7", done.stdout) and "127.0.0.1:7777" in done.stdout and "ROOST_PG" in done.stdout
    assert isinstance(json.loads(run_roost("config", "--json", cwd=tmp_path).stdout), (list, dict))


def test_clients_without_a_pool_say_what_to_do(tmp_path):
    for arguments in (["sql", "-c", "SELECT 1"], ["nodes"]):
        done = run_roost(*arguments, "--dir", tmp_path / "none")
        assert done.returncode == 1 and "roost up" in done.stderr
    done = run_roost("sql", "--url", "http://example.invalid:1", "-c", "SELECT 1")
    assert done.returncode == 1 and "ROOST_TOKEN" in done.stderr
