"""Bad input on each port: a clear error, and the pool goes on."""

import errno
import os
import random
import socket

import psycopg
import pytest
import requests

import wire


@pytest.fixture(autouse=True)
def pool_goes_on(pool):
    yield
    assert pool.sql("SELECT 1 AS x") == [{"x": 1}]
    assert pool.process.poll() is None


def sockets(pool):
    http = pool.http.removeprefix("http://").rsplit(":", 1)
    pg = pool.ready()["pg"].rsplit(":", 1)
    return {"http": (http[0], int(http[1])), "pg": (pg[0], int(pg[1]))}


def test_wrong_password_and_unknown_user_read_alike(pool):
    messages = []
    for user, password in ((pool.ready()["user"], "wrong"), ("nobody", "wrong")):
        with pytest.raises(psycopg.OperationalError) as failure:
            psycopg.connect(f"{pool.pg_dsn} user={user} password={password}", connect_timeout=10)
        messages.append(str(failure.value).split("FATAL:")[1].replace(user, "X"))
    assert messages[0] == messages[1]
    assert pool.request("GET", "/api/me", token="wrong").status_code == 401
    assert requests.get(pool.http + "/api/workspaces", timeout=10).status_code == 401


def test_only_three_routes_answer_without_a_token(pool):
    for path in ("/healthz", "/readyz", "/api/version"):
        assert requests.get(pool.http + path, timeout=10).status_code == 200
    for path in ("/metrics", "/api/nodes", "/api/workspaces/main/queries", "/", "/api/nothing"):
        assert requests.get(pool.http + path, timeout=10).status_code == 401


def test_unknown_workspace_catalog_and_database(pool):
    answer = pool.request("POST", "/api/workspaces/nowhere/queries", json={"sql": "SELECT 1"})
    assert (answer.status_code, answer.json()["error"]) == (404, "workspace_not_found")
    answer = pool.request("POST", "/api/workspaces/main/queries", json={"sql": "SELECT 1", "catalog": "nowhere"})
    assert (answer.status_code, answer.json()["error"]) == (404, "catalog_not_found")
    with pytest.raises(wire.ServerError) as failure:
        wire.Connection(pool, database="nowhere")
    assert failure.value.sqlstate == "3D000"


def test_broken_sql_says_where(pool):
    answer = pool.request("POST", "/api/workspaces/main/queries", json={"sql": "SELECT 1 FROM FROM x", "wait_timeout_s": 5})
    assert answer.status_code == 422
    assert answer.json()["error"] == "syntax_error"
    assert answer.json()["details"]["position"] == 15
    with wire.Connection(pool) as connection:
        with pytest.raises(wire.ServerError) as failure:
            connection.simple("SELECT 1 FROM FROM x")
        assert (failure.value.sqlstate, failure.value.fields["P"]) == ("42601", "15")
        for sql, sqlstate in (("SELECT * FROM nowhere", "42P01"), ("SELECT nothing", "42703"), ("SELECT 'x'::INTEGER", "22P02"),
                              ("SELECT nofunction(1)", "42883"), ("SELECT 9223372036854775807 + 1", "22003")):
            with pytest.raises(wire.ServerError) as failure:
                connection.simple(sql)
            assert failure.value.sqlstate == sqlstate, sql
            assert connection.simple("SELECT 1")[0] == [["1"]]


def test_seventeen_mebibytes_of_sql(pool):
    sql = "SELECT '" + "x" * (17 << 20) + "'"
    answer = pool.request("POST", "/api/workspaces/main/queries", json={"sql": sql})
    assert answer.status_code in (413, 422)
    assert "16" in answer.json()["message"] or "limit" in answer.json()["message"]
    with wire.Connection(pool) as connection:
        with pytest.raises(wire.ServerError) as failure:
            connection.simple(sql)
        assert failure.value.sqlstate == "54000"
        assert connection.simple("SELECT 1")[0] == [["1"]]


@pytest.mark.parametrize("port", ["http", "pg"])
def test_garbage_bytes(pool, port):
    rng = random.Random(20)
    for size in (1, 3, 8, 100, 5000, 200_000):
        with socket.create_connection(sockets(pool)[port], 10) as connection:
            try:
                connection.sendall(rng.randbytes(size))
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(65536):
                    pass
            except OSError as error:
                # Cut off: as good an answer to garbage as any. shutdown() after the cut is ENOTCONN, no ConnectionError.
                assert isinstance(error, ConnectionError) or error.errno == errno.ENOTCONN, error


def open_internal(address):
    if address.startswith("unix:"):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(address.removeprefix("unix:"))
        return connection
    host, port = address.rsplit(":", 1)
    return socket.create_connection((host, int(port)), 10)


def test_garbage_on_the_socket_of_the_nodes(pool):
    internal = pool.run_state()["gateway"]["internal"]
    for text in (os.urandom(3000), b"GET / HTTP/1.1\r\n\r\n", b"GET /roost/link HTTP/1.1\r\nUpgrade: roost/1\r\n"
                 b"Authorization: Bearer wrong\r\nRoost-Link: control\r\nRoost-Node: 01a22b57-3284-7081-886b-707761c3cb64\r\n\r\n"):
        with open_internal(internal) as connection:
            connection.settimeout(20)
            connection.sendall(text)
            connection.shutdown(socket.SHUT_WR)
            answer = connection.recv(100)
            assert answer == b"" or answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 401"))


def test_half_messages_then_silence_close_only_that_connection(pool):
    halves = []
    for port, text in (("http", b"POST /api/workspaces/main/queries HTTP/1.1\r\nContent-Le"), ("pg", b"\0\0\0\x40\0\3\0\0user")):
        connection = socket.create_connection(sockets(pool)[port], 10)
        connection.sendall(text)
        halves.append(connection)
    assert pool.sql("SELECT 2 AS x") == [{"x": 2}]
    for connection in halves:
        connection.close()


def test_refused_statements_name_their_rule(pool):
    for sql in ("SELECT * FROM read_csv('/etc/passwd')", "COPY (SELECT 1) TO '/tmp/x'", "ATTACH '/tmp/x.db'", "INSTALL httpfs",
                "SELECT * FROM '/etc/passwd'", "SELECT * FROM sqlite_scan('/x', 't')", "SET memory_limit = '1TB'",
                "SELECT * FROM __ducklake_metadata_lake.main.ducklake_table"):
        answer = pool.request("POST", "/api/workspaces/main/queries", json={"sql": sql, "wait_timeout_s": 5})
        assert answer.status_code == 422, sql
        assert answer.json()["error"] == "sql_not_allowed", sql
        assert answer.json()["details"]["rule"], sql
