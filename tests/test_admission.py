"""What a node promises of its memory, on real DuckDB: the incidents of docs/admission.md and short forms of what
tests/admission.py shows at length."""

import threading

import psycopg
import pytest

import admission
from admission import cancel, fill, heavy, node_of, one_node, profile_of, set_profile, wait_until_idle
from pool import StatementFailed, run_roost, wait_until


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    with one_node(tmp_path_factory.mktemp("admission"), "1GiB", 0.01, flags=["--heartbeat-ms", "100ms"]) as pool:
        yield pool


def test_a_statement_says_what_it_got_and_why(pool):
    profile = profile_of(pool, pool.execute(heavy(2_000_000)))
    got = profile["admission"]
    assert got["profile"] == "auto" and got["why"] in ("plan", "unknown", "measured", "spilled"), got
    assert got["granted_bytes"] >= 64 << 20 and got["bucket"] in ("XS", "S", "M", "L", "XL"), got
    assert got["elastic"] and got["elastic"][0]["bytes"] > 0, "it was alone"
    assert got["wait_ms"] == 0 and not got["overdue"]
    small = profile_of(pool, pool.execute("SELECT 1 AS x"))
    assert small["admission"]["why"] == "lane" and small["lane"] == "small"


def test_a_burst_is_served_one_after_the_other_and_nothing_runs_out_of_memory(pool):
    watch = admission.Watch(pool)
    watch.start()
    # One that would take all, and many small ones.
    burst = [pool.submit(heavy(6_000_000 if i == 0 else 400_000)) for i in range(22)]
    for statement in burst:
        assert pool.wait(statement)["status"] == "done", statement
    wait_until_idle(pool)
    watch.check(node_of(pool)["memory_bytes"])


def test_what_waits_says_where_it_stands_and_a_cancelled_one_gives_everything_back(pool):
    full = fill(pool, 8, 50_000_000)
    wait_until(lambda: node_of(pool)["waiting"] >= 4, 60, "some wait")
    node = node_of(pool)
    assert 0 < node["required_bytes"] <= node["budget_bytes"]
    cancel(pool, full)
    wait_until_idle(pool)
    profile = profile_of(pool, pool.execute(heavy(400_000)))
    assert profile["admission"]["wait_ms"] < 5_000, "nobody has to wait on an idle node"


def test_a_wait_that_is_over_ends_with_a_clear_error_and_not_with_too_little(tmp_path):
    with one_node(tmp_path, "1GiB", 0.01, flags=["--statement-admission-wait-ms", "1s"]) as pool:
        full = fill(pool, 4, 50_000_000)
        try:
            late = [pool.wait(pool.submit(heavy(1_000_000))) for _ in range(2)]
        finally:
            cancel(pool, full)
        for statement in late:
            # Out of turn with its floor, or not at all.
            if statement["status"] == "done":
                assert profile_of(pool, statement)["admission"]["granted_bytes"] >= 64 << 20
            else:
                assert statement["error_code"] == "admission_timeout", statement
        wait_until_idle(pool)


def test_a_session_keeps_what_it_cached_until_it_ends(pool):
    with psycopg.connect(pool.pg_dsn, autocommit=True) as connection:
        for _ in range(2):
            assert connection.execute(heavy(1_000_000)).fetchone() == (1_000_000,)
        wait_until(lambda: node_of(pool)["elastic_bytes"] > 0 and node_of(pool)["required_bytes"] == 0, 20, "it keeps something")
    wait_until(lambda: node_of(pool)["elastic_bytes"] == 0, 20, "nothing is kept for a session that is gone")


def test_idle_sessions_hold_nobody_up(pool):
    connections = [psycopg.connect(pool.pg_dsn, autocommit=True) for _ in range(6)]
    try:
        def run(connection):
            assert connection.execute(heavy(1_000_000)).fetchone() == (1_000_000,)
        threads = [threading.Thread(target=run, args=(connection,)) for connection in connections]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        wait_until(lambda: node_of(pool)["required_bytes"] == 0, 20, "all are idle")
        profile = profile_of(pool, pool.execute(heavy(4_000_000)))
        assert profile["admission"]["wait_ms"] < 5_000
    finally:
        for connection in connections:
            connection.close()
    wait_until_idle(pool)


def test_an_aggregate_that_no_limit_holds_harms_its_statement_alone(pool):
    pid = pool.node_pid(0)
    try:
        pool.execute("SELECT len(list(x ORDER BY y)) AS n FROM (SELECT i AS x, hash(i) AS y FROM range(30000000) AS t(i))")
    except StatementFailed as failure:
        assert failure.statement["sqlstate"] == "53200" if "sqlstate" in failure.statement else True, failure.statement
    assert pool.node_pid(0) == pid
    assert pool.sql("SELECT 1 AS x") == [{"x": 1}]
    wait_until_idle(pool)


def test_small_statements_wait_for_nobody(tmp_path):
    assert admission.run_lane(tmp_path, 40)["wait_max_ms"] == 0


def test_profiles_are_switched_under_load(tmp_path):
    seen = admission.run_switch(tmp_path, 8, 0.3, clients=4)
    assert seen["switches"] > 5 and seen["statements"] > 10, seen


def test_the_profile_is_set_by_hand_and_by_admins_alone(pool):
    name = node_of(pool)["name"]
    told = run_roost("nodes", "set-profile", name, "decaying_3", "--dir", pool.dir)
    assert told.returncode == 0, told.stderr
    assert node_of(pool)["admission_profile"] == "decaying_3"
    assert "decaying_3" in run_roost("nodes", "--dir", pool.dir).stdout
    wrong = run_roost("nodes", "set-profile", name, "many", "--dir", pool.dir)
    assert wrong.returncode != 0 and "profile" in wrong.stderr
    set_profile(pool, "auto")


def test_a_mix_of_tpch_beyond_the_memory_has_no_errors(tmp_path):
    seen = admission.run_mix(tmp_path, 10, 8, "1GiB", 0.1)
    assert seen["statements"] > 10, seen
