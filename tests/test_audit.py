"""Who was refused what: the audit over HTTP, its metric, and a flood that it outlives."""

import psycopg
import pytest
import requests

import duck
from pool import Pool, StatementFailed, wait_until


def records(pool, **filters):
    answer = pool.request("GET", "/api/audit", params=filters)
    assert answer.status_code == 200, answer.text
    return answer.json()["items"]


def refuse_over_http(pool, sql):
    with pytest.raises(StatementFailed) as failed:
        pool.submit(sql)
    return failed.value.statement


def test_refusals_are_told_and_kept(pool):
    refused = refuse_over_http(pool, "SELECT 1, getenv('HOME')")
    assert (refused["http_status"], refused["error"]) == (422, "sql_not_allowed")
    assert refused["details"]["rule"] == "function:getenv"
    assert refused["details"]["position"] == 11
    assert refused["details"]["hint"]
    with psycopg.connect(pool.pg_dsn, autocommit=True) as session:
        with pytest.raises(psycopg.errors.InsufficientPrivilege) as failed:
            session.execute("SELECT o FROM read_csv('/etc/passwd')")
        diag = failed.value.diag
        assert (diag.message_detail, diag.statement_position) == ("rule: function:read_csv", "15")
        assert diag.message_hint
    by_rule = {record["rule"]: record for record in records(pool, event="statement_refused")}
    http, pg = by_rule["function:getenv"], by_rule["function:read_csv"]
    assert (http["front"], pg["front"]) == ("http", "pg")
    assert http["sql"] == "SELECT 1, getenv('HOME')" and http["position"] == 11
    for record in (http, pg):
        assert record["user_name"] == pool.ready()["user"]
        assert record["peer"].startswith("127.0.0.1:")
        assert record["session_id"] and record["workspace"] == "main" and record["shape"]
        assert record["at"].startswith("20")
    metrics = pool.request("GET", "/metrics").text
    assert 'roost_guard_refusals_total{rule="function:getenv"} 1' in metrics


def test_what_a_node_refuses_is_kept_with_its_statement(pool):
    """A view that another client made, which the guard can't look into."""
    lake = duck.attach_lake(pool.dir, read_only=False)
    lake.execute("CREATE VIEW outside AS SELECT current_setting('temp_directory') AS a")
    lake.close()
    with pytest.raises(StatementFailed) as failed:
        pool.execute("SELECT * FROM outside")
    assert failed.value.statement["status"] == "failed"
    kept = records(pool, rule="function:current_setting")[0]
    assert kept["query_id"] == failed.value.statement["id"]
    assert kept["sql"] == "SELECT * FROM outside"


def test_failed_logins_are_kept(pool):
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(pool.pg_dsn + " user=mallory password=guess")
    assert requests.get(pool.http + "/api/me", headers={"Authorization": "Bearer wrong"}, timeout=10).status_code == 401
    fronts = {record["front"]: record for record in records(pool, event="login_failed")}
    assert fronts["pg"]["user_name"] == "mallory"
    assert fronts["pg"]["peer"].startswith("127.0.0.1:") and fronts["http"]["peer"].startswith("127.0.0.1:")
    assert "guess" not in str(fronts)


def test_keys_are_not_kept(pool):
    refuse_over_http(pool, "CREATE SECRET s (TYPE s3, KEY_ID 'AKIA77', SECRET 'hunter2')")
    kept = records(pool, rule="statement:create_secret")[0]
    assert kept["sql"] == "CREATE SECRET s (TYPE s3, KEY_ID '***', SECRET '***')"


def test_a_flood_is_bounded_and_holds_up_nobody(tmp_path):
    with Pool(tmp_path / "pool", nodes=1) as pool:
        with psycopg.connect(pool.pg_dsn, autocommit=True) as session:
            for number in range(1_000):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    session.execute(f"SELECT getenv('{number}')", prepare=False)
            assert session.execute("SELECT 1").fetchone() == (1,)

        def left_out():
            return sum(record["count"] for record in records(pool, event="left_out"))
        kept = lambda: len(records(pool, event="statement_refused", limit=1000))  # noqa: E731
        # Everything is a record or counted.
        wait_until(lambda: kept() + left_out() == 1_000, 30, "all refusals are accounted for", every_s=0.5)
        assert 200 <= kept() < 400
        pool.kill_gateway()
        wait_until(lambda: pool.online_nodes(), 60, "the gateway is back")
        assert 200 <= kept() < 400
