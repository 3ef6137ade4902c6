"""Sessions over HTTP: what they keep, their order, their end. The published clients use them for everything but one-shots."""

import threading
import uuid

import pytest

from pool import ANSWER_WITHIN_S, Pool, wait_until


ON = {"ROOST_HTTP_SESSIONS": "on"}


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    with Pool(tmp_path_factory.mktemp("sessions") / "pool", env=ON) as pool:
        yield pool


class Session:
    """Of a pool; statements are run to their end."""

    def __init__(self, pool, **fields):
        self.pool = pool
        answer = pool.request("POST", "/api/workspaces/main/sql/sessions", json=fields)
        assert answer.status_code == 201, answer.text
        self.object = answer.json()
        self.path = f"/api/sql/sessions/{self.object['id']}"
        assert answer.headers["Location"] == self.path

    def post(self, sql, **fields):
        return self.pool.request("POST", self.path + "/statements", json={"sql": sql, "wait_timeout_s": 10, **fields})

    def run(self, sql, **fields):
        answer = self.post(sql, **fields)
        assert answer.status_code < 400, answer.text
        return self.pool.wait(answer.json())

    def value(self, sql, **fields):
        done = self.run(sql, **fields)
        assert done["status"] == "done", done["error"]
        return next(iter(self.pool.rows(done)[0].values()))

    def look(self):
        return self.pool.request("GET", self.path).json()

    def close(self):
        assert self.pool.request("DELETE", self.path).status_code == 204


@pytest.fixture
def session(pool):
    session = Session(pool)
    yield session
    session.close()


def test_a_session_is_open_at_once_and_says_who_it_is(pool):
    session = Session(pool, catalog="lake", on_wait_timeout="continue", wait_timeout_s=10)
    seen = session.look()
    assert (seen["status"], seen["active_catalog"], seen["error"], seen["closed_at"]) == ("open", "lake", None, None)
    assert session.run("SELECT 1")["session_id"] == seen["id"]
    listed = pool.request("GET", "/api/workspaces/main/sql/sessions?status=open").json()["items"]
    assert [each["statement_count"] for each in listed if each["id"] == seen["id"]] == [1]
    session.close()
    session.close()
    seen = session.look()
    assert (seen["status"], seen["close_reason"]) == ("closed", "client") and seen["error"]
    refused = session.post("SELECT 1")
    assert (refused.status_code, refused.json()["error"]) == (409, "session_not_open")
    unknown = f"/api/sql/sessions/{uuid.uuid4()}"
    assert pool.request("GET", unknown).status_code == 404
    assert pool.request("POST", unknown + "/statements", json={"sql": "SELECT 1"}).status_code == 404
    assert pool.request("POST", "/api/workspaces/main/sql/sessions", json={"catalog": "nowhere"}).status_code == 404


def test_transactions_are_of_the_session(pool, session):
    session.run("CREATE TABLE kept (i INTEGER)")
    assert session.run("BEGIN")["has_result"] is False
    assert session.run("INSERT INTO kept VALUES (1), (2)")["row_count"] == 2
    assert session.value("SELECT count(*) FROM kept") == 2
    assert pool.sql("SELECT count(*) AS n FROM kept") == [{"n": 0}], "nobody else sees it"
    assert session.look()["agent_id"] is not None
    assert session.run("COMMIT /* now */")["status"] == "done"
    assert pool.sql("SELECT count(*) AS n FROM kept") == [{"n": 2}]
    session.run("BEGIN; DELETE FROM kept")
    session.run("ROLLBACK")
    assert session.value("SELECT count(*) FROM kept") == 2


def test_what_fails_in_a_transaction_fails_it_and_not_the_session(session):
    session.run("CREATE OR REPLACE TABLE tried (i INTEGER)")
    session.run("BEGIN")
    session.run("INSERT INTO tried VALUES (1)")
    assert session.run("SELECT * FROM no_such_table")["status"] == "failed"
    again = session.run("SELECT 1")
    assert again["status"] == "failed" and "aborted" in again["error"]
    assert session.run("COMMIT")["status"] == "done"  # as in Postgres: a ROLLBACK
    assert session.value("SELECT count(*) FROM tried") == 0


def test_settings_stay_in_the_session(pool, session):
    session.run("CREATE SCHEMA IF NOT EXISTS apart")
    session.run("CREATE OR REPLACE TABLE apart.only_here AS SELECT 7 AS n")
    session.run('USE "lake"."apart"')
    assert session.value("SELECT n FROM only_here") == 7
    session.run("SET TimeZone = 'Asia/Tokyo'")
    for _ in range(4):  # whatever node it runs on
        assert session.value("SELECT current_setting('TimeZone')") == "Asia/Tokyo"
    session.run("RESET TimeZone")
    assert session.value("SELECT current_setting('TimeZone')") != "Asia/Tokyo"
    other = Session(pool)
    assert other.run("SELECT n FROM only_here")["status"] == "failed"
    other.close()


def test_the_guard_judges_the_whole_text_before_anything_runs(session):
    refused = session.post("CREATE TABLE never (i INTEGER); SELECT * FROM read_csv('/etc/passwd')")
    assert (refused.status_code, refused.json()["error"]) == (422, "statement_not_allowed"), refused.text
    assert refused.json()["details"]["rule"]
    assert session.run("SELECT * FROM never")["status"] == "failed"
    for text in ("DISCARD ALL", "SET LOCAL TimeZone = 'UTC'", "SET memory_limit = '1TB'"):
        assert session.post(text).status_code == 422, text
    assert session.value("SELECT 1") == 1


def test_statements_run_in_their_order_and_results_stay(pool, session):
    first = session.post("SELECT count(*) FROM range(300000000) a(i) WHERE i % 7 = 3", wait_timeout_s=0).json()
    second = session.post("SELECT 2 AS two", wait_timeout_s=0).json()
    assert second["status"] == "queued"
    assert pool.request("DELETE", f"/api/queries/{first['id']}").status_code == 204
    assert pool.wait(first)["status"] == "cancelled"
    assert pool.rows(pool.wait(second)) == [{"two": 2}]
    listed = pool.request("GET", session.path + "/statements").json()["items"]
    assert [each["id"] for each in listed] == [first["id"], second["id"]]
    session.close()
    assert pool.rows(pool.wait(second)) == [{"two": 2}]


def test_what_waits_can_be_cancelled_and_goes_with_the_session(pool):
    session = Session(pool)
    running = session.post("SELECT count(*) FROM range(100000000000) a(i) WHERE i % 7 = 3", wait_timeout_s=0).json()
    waiting = [session.post(f"SELECT {i}", wait_timeout_s=0).json() for i in range(2)]
    assert pool.request("DELETE", f"/api/queries/{waiting[0]['id']}").status_code == 204
    assert pool.request("GET", f"/api/queries/{waiting[0]['id']}").json()["status"] == "cancelled"
    session.close()
    ended = [pool.wait(each) for each in (running, waiting[1])]
    assert [each["status"] for each in ended] == ["cancelled", "cancelled"]
    assert "session" in ended[0]["error"]


def test_two_statements_in_one_text_and_the_last_ones_answer(session):
    done = session.run("CREATE OR REPLACE TABLE pair (i INTEGER); INSERT INTO pair VALUES (1), (2), (3)")
    assert (done["status"], done["row_count"], done["has_result"]) == ("done", 3, False)
    failed = session.run("INSERT INTO pair VALUES (4); SELECT * FROM nowhere; INSERT INTO pair VALUES (5)")
    assert failed["status"] == "failed"
    assert session.value("SELECT count(*) FROM pair") == 4


def test_nobody_else_uses_it(pool, session):
    made = pool.request("POST", "/api/admin/users", json={"name": "eve", "email": "eve@example.com", "password": "long enough for eve"})
    assert made.status_code < 400, made.text
    token = made.json().get("token")
    if token is None:
        pytest.fail(f"no token in {made.json()}")
    assert pool.request("GET", session.path, token=token).status_code == 404
    assert pool.request("DELETE", session.path, token=token).status_code == 404
    assert pool.request("POST", session.path + "/statements", token=token, json={"sql": "SELECT 1"}).status_code == 404


def test_a_lost_node_takes_the_transaction_and_leaves_the_session(make_pool):
    pool = make_pool(nodes=2, env=ON)
    session = Session(pool)
    session.run("CREATE TABLE lost (i INTEGER)")
    session.run("BEGIN")
    session.run("INSERT INTO lost VALUES (1)")
    node = session.look()["agent_id"]
    index = next(i for i, each in enumerate(pool.ready()["nodes"]) if each["id"] == node)
    victim = pool.kill_node(index)
    pool.wait_node_replaced(index, victim)
    failed = session.run("INSERT INTO lost VALUES (2)")
    assert failed["status"] == "failed", failed
    session.run("ROLLBACK")
    assert session.value("SELECT count(*) FROM lost") == 0
    assert session.look()["status"] == "open"


def test_idle_and_old_sessions_are_closed(make_pool):
    pool = make_pool(nodes=1, env=ON | {"ROOST_SESSION_IDLE_TIMEOUT_MS": "2s"})
    idle = Session(pool)
    wait_until(lambda: idle.look()["status"] == "expired", ANSWER_WITHIN_S, "it has been idle for too long")
    assert idle.look()["close_reason"] == "idle"
    assert idle.post("SELECT 1").status_code == 409


def test_parallel_sessions_do_not_mix(pool):
    failures = []

    def use(number):
        session = Session(pool)
        session.run(f"SET VARIABLE mine = {number}")
        for _ in range(5):
            seen = session.value("SELECT getvariable('mine')::INTEGER")
            if seen != number:
                failures.append((number, seen))
        session.close()
    threads = [threading.Thread(target=use, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_they_are_off_where_nobody_has_asked_for_them(make_pool):
    answer = make_pool(nodes=1).request("POST", "/api/workspaces/main/sql/sessions", json={})
    assert (answer.status_code, answer.json()["error"]) == (501, "not_implemented")
