"""Users, members and grants: what somebody may read and change, through both fronts, and what they can't even see."""

import contextlib
import uuid

import psycopg
import pytest
import requests

from pool import Pool, wait_until


class People:
    """Users of a pool, made over the HTTP interface as its admin."""

    def __init__(self, pool):
        self.pool = pool
        self.tokens, self.ids = {}, {}

    def call(self, method, path, as_user=None, **body):
        token = self.tokens[as_user] if as_user else self.pool.token
        return requests.request(method, self.pool.http + path, json=body or None, headers={"Authorization": f"Bearer {token}"}, timeout=30)

    def must(self, *args, **kwargs):
        answer = self.call(*args, **kwargs)
        assert answer.status_code < 300, answer.text
        return answer.json() if answer.content else None

    def add(self, name, role=None):
        made = self.must("POST", "/api/admin/users", name=name, email=f"{name}@example.org", password=f"password-of-{name}")
        self.tokens[name], self.ids[name] = made["token"], made["id"]
        if role:
            self.must("POST", "/api/workspaces/main/members", user_id=made["id"], role=role)
        return self

    def grant(self, name, tier, schema=None, table=None):
        body = {"user_id": self.ids[name], "tier": tier}
        body |= {"schema_name": schema} if schema else {}
        body |= {"table_name": table} if table else {}
        return self.must("PUT", "/api/workspaces/main/catalogs/lake/grants", **body)

    def pg(self, name, **kwargs):
        host, port = self.pool.ready()["pg"].rsplit(":", 1)
        return psycopg.connect(host=host, port=port, user=name, password=f"password-of-{name}", dbname="lake", autocommit=True, **kwargs)

    def http(self, name, sql):
        """The ended statement, or the refusal."""
        return self.must_end(self.call("POST", "/api/workspaces/main/queries", as_user=name, sql=sql, wait_timeout_s=30))

    @staticmethod
    def must_end(answer):
        found = answer.json()
        assert found.get("status") not in ("queued", "running"), found
        return found


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    with Pool(tmp_path_factory.mktemp("grants") / "pool", nodes=2) as pool:
        for sql in ("CREATE SCHEMA sales", "CREATE SCHEMA hr",
                    "CREATE TABLE sales.orders AS SELECT range AS id, range * 2 AS amount FROM range(100)",
                    "CREATE TABLE sales.customers AS SELECT range AS id FROM range(10)",
                    "CREATE TABLE hr.salaries AS SELECT range AS id, 1000 AS salary_of_the_boss FROM range(5)",
                    "CREATE VIEW sales.totals AS SELECT sum(amount) AS total FROM sales.orders",
                    "CREATE VIEW sales.costs AS SELECT sum(salary_of_the_boss) AS cost FROM hr.salaries",
                    "CREATE MACRO sales.peek() AS TABLE SELECT * FROM hr.salaries",
                    "CREATE MACRO sales.twice(x) AS x * 2",
                    "CREATE TABLE open_to_all AS SELECT 1 AS x"):
            pool.execute(sql)
        people = People(pool)
        people.must("PATCH", "/api/workspaces/main/catalogs/lake/access-mode", access_mode="scoped")
        people.add("olive", "owner").add("rita", "reader").add("walt", "writer").add("mia", "reader").add("nobody")
        people.grant("rita", "reader", "sales")
        people.grant("walt", "writer", "sales")
        people.grant("mia", "metadata", "sales")
        people.grant("mia", "reader", "sales", "orders")
        yield people


def refused(session, sql):
    """The error of a statement that must fail; the session stays usable."""
    with pytest.raises(psycopg.Error) as error:
        session.execute(sql)
    assert session.execute("SELECT 1").fetchone() == (1,)
    return error.value


HIDDEN = [
    "SELECT * FROM hr.salaries",
    "SELECT * FROM lake.hr.salaries",
    'SELECT * FROM "HR"."Salaries"',
    "SELECT salary_of_the_boss FROM hr.salaries WHERE id = 1",
    "SELECT nothing_like_it FROM hr.salaries",
    "SELECT (SELECT count(*) FROM hr.salaries)",
    "WITH s AS (SELECT * FROM hr.salaries) SELECT * FROM s",
    "SELECT * FROM sales.orders WHERE id IN (SELECT id FROM hr.salaries)",
    "SELECT * FROM sales.costs",
    "SELECT * FROM sales.peek()",
    "FROM sales.orders UNION ALL FROM hr.salaries",
    "EXPLAIN SELECT * FROM hr.salaries",
    "DESCRIBE hr.salaries",
    "SUMMARIZE hr.salaries",
    "PIVOT hr.salaries ON id USING sum(salary_of_the_boss)",
    "SELECT * FROM hr.salaries AT (VERSION => 3)",
    "SELECT * FROM ducklake_table_insertions('lake', 'hr', 'salaries', 0, 3)",
    "SELECT * FROM lake.snapshots()",
    "SELECT * FROM lake.table_info()",
    "SELECT * FROM pragma_table_info('hr.salaries')",
    "INSERT INTO sales.customers SELECT id FROM hr.salaries",
    "UPDATE sales.orders SET amount = (SELECT max(salary_of_the_boss) FROM hr.salaries)",
    "CREATE TABLE sales.copy AS SELECT * FROM hr.salaries",
    "INSERT INTO hr.salaries VALUES (1, 1)",
    "DELETE FROM hr.salaries",
    "DROP TABLE hr.salaries",
    "ALTER TABLE hr.salaries ADD COLUMN x INTEGER",
    "CREATE TABLE hr.mine (x INTEGER)",
    "CREATE SCHEMA another",
    "DROP SCHEMA hr CASCADE",
]


@pytest.mark.parametrize("sql", HIDDEN)
@pytest.mark.parametrize("name", ["rita", "walt", "mia"])
def test_what_is_not_granted_is_refused_and_tells_nothing(people, name, sql):
    with people.pg(name) as session:
        error = refused(session, sql)
        assert error.sqlstate in ("42P01", "42501", "42000", "0A000", "3F000"), str(error)
        assert "salary_of_the_boss" not in str(error).replace(sql, "") or "salary_of_the_boss" in sql
        with pytest.raises(psycopg.Error):
            session.execute(sql, prepare=True)
    ended = people.http(name, sql)
    assert ended.get("status") != "done", ended


def test_where_a_hidden_table_is_is_not_explained(people):
    for sql, allowed in (("SELECT * FROM hr.salaries", False), ("SELECT * FROM sales.orders", True)):
        answer = people.call("POST", "/api/workspaces/main/explain-route", as_user="rita", sql=sql)
        assert (answer.status_code == 200) == allowed, answer.text


def test_nothing_was_changed_by_them(people):
    assert people.pool.sql("SELECT count(*) AS n, sum(salary_of_the_boss)::BIGINT AS s FROM hr.salaries") == [{"n": 5, "s": 5000}]
    assert people.pool.sql("SELECT count(*) AS n FROM sales.orders WHERE amount = id * 2") == [{"n": 100}]


def test_macros_are_their_callers_matter(people):
    for name in ("olive", "rita"):
        with people.pg(name) as session:
            assert session.execute("SELECT sales.twice(21)").fetchone() == (42,)
    with people.pg("olive") as session:
        assert len(session.execute("SELECT * FROM sales.peek()").fetchall()) == 5
        assert refused(session, "SELECT * FROM sales.no_such()").sqlstate == "42883"


def test_a_reader_reads_and_a_writer_writes(people):
    with people.pg("rita") as session:
        assert session.execute("SELECT count(*) FROM sales.orders").fetchone() == (100,)
        assert session.execute("SELECT total FROM sales.totals").fetchone() == (9900,)
        assert [row[0] for row in session.execute("DESCRIBE sales.orders")] == ["id", "amount"]
        for sql in ("INSERT INTO sales.customers VALUES (77)", "DELETE FROM sales.customers", "CREATE TABLE sales.t (x INTEGER)",
                    "DROP TABLE sales.customers", "TRUNCATE sales.customers", "UPDATE sales.customers SET id = 0",
                    "CREATE VIEW sales.v AS SELECT 1", "COMMENT ON TABLE sales.orders IS 'x'"):
            assert refused(session, sql).sqlstate == "42501", sql
    with people.pg("walt") as session:
        session.execute("INSERT INTO sales.customers VALUES (77)")
        session.execute("DELETE FROM sales.customers WHERE id = 77")
        session.execute("CREATE TABLE sales.made AS SELECT * FROM sales.orders")
        session.execute("ALTER TABLE sales.made ADD COLUMN note VARCHAR")
        session.execute("BEGIN")
        session.execute("CREATE TABLE sales.inside (x INTEGER)")
        session.execute("INSERT INTO sales.inside VALUES (1)")
        assert session.execute("SELECT * FROM sales.inside").fetchall() == [(1,)]
        session.execute("ROLLBACK")
        session.execute("DROP TABLE sales.made")


def test_metadata_shows_that_it_is_there_but_not_what_is_in_it(people):
    with people.pg("mia") as session:
        assert [row[0] for row in session.execute("DESCRIBE sales.customers")] == ["id"]
        assert refused(session, "SELECT * FROM sales.customers").sqlstate == "42501"
        assert refused(session, "SUMMARIZE sales.customers").sqlstate == "42501"
        assert refused(session, "SELECT count(*) FROM sales.customers").sqlstate == "42501"
        assert session.execute("SELECT count(*) FROM sales.orders").fetchone() == (100,)
        assert refused(session, "SELECT * FROM sales.totals").sqlstate == "42501"


@pytest.mark.parametrize("sql, shown", [
    ("SELECT table_schema || '.' || table_name FROM information_schema.tables ORDER BY 1", {"sales.orders", "sales.customers", "sales.totals", "sales.costs"}),
    ("SELECT schema_name || '.' || table_name FROM duckdb_tables() ORDER BY 1", {"sales.orders", "sales.customers"}),
    ("SELECT DISTINCT schema_name || '.' || table_name FROM duckdb_columns() WHERE database_name = 'lake'", {"sales.orders", "sales.customers", "sales.totals", "sales.costs"}),
    ("SELECT schema_name || '.' || view_name FROM duckdb_views() WHERE NOT internal", {"sales.totals", "sales.costs"}),
    ("SELECT DISTINCT schema_name FROM duckdb_schemas() WHERE database_name = 'lake'", {"sales"}),
    ("SELECT DISTINCT schema_name FROM information_schema.schemata WHERE catalog_name = 'lake'", {"sales"}),
    ("SELECT DISTINCT function_name FROM duckdb_functions() WHERE database_name = 'lake' AND schema_name IN ('hr', 'sales')", {"peek", "twice"}),
    ("SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname IN ('sales', 'hr', 'main')", {"orders", "customers"}),
    ("SELECT schema || '.' || name FROM (SHOW ALL TABLES)", {"sales.orders", "sales.customers", "sales.totals", "sales.costs"}),
    ("SELECT name FROM sqlite_master WHERE type = 'table'", {"orders", "customers"}),
])
def test_introspection_shows_what_may_be_seen(people, sql, shown):
    with people.pg("rita") as session:
        assert {row[0] for row in session.execute(sql)} == shown
    with people.pg("olive") as session:
        assert {row[0] for row in session.execute(sql)} >= shown


def test_browsing_shows_what_may_be_seen(people):
    schemas = people.must("GET", "/api/workspaces/main/catalogs/lake/schemas", as_user="mia")
    assert [schema["name"] for schema in schemas] == ["sales"]
    tables = people.must("GET", "/api/workspaces/main/catalogs/lake/schemas/sales/tables", as_user="mia")
    assert [table["name"] for table in tables] == ["costs", "customers", "orders", "totals"]
    assert people.must("GET", "/api/workspaces/main/catalogs/lake/schemas/hr/tables", as_user="mia") == []


def test_who_is_no_member_sees_nothing(people):
    with pytest.raises(psycopg.OperationalError):
        people.pg("nobody")
    assert people.call("GET", "/api/workspaces", as_user="nobody").json() == []
    assert people.call("GET", "/api/workspaces/main", as_user="nobody").status_code == 404
    assert people.call("POST", "/api/workspaces/main/queries", as_user="nobody", sql="SELECT 1").status_code in (403, 404)


@pytest.mark.parametrize("name", ["rita", "walt", "nobody"])
def test_only_owners_and_admins_change_access(people, name):
    some = str(uuid.uuid4())
    for method, path, body in (
            ("PUT", "/api/workspaces/main/catalogs/lake/grants", {"user_id": people.ids[name], "tier": "writer"}),
            ("GET", "/api/workspaces/main/catalogs/lake/grants", {}),
            ("DELETE", f"/api/workspaces/main/catalogs/lake/grants/{some}", {}),
            ("PATCH", "/api/workspaces/main/catalogs/lake/access-mode", {"access_mode": "open"}),
            ("POST", "/api/workspaces/main/members", {"user_id": people.ids[name], "role": "owner"}),
            ("PUT", f"/api/admin/users/{people.ids[name]}/workspaces/main", {"role": "owner"}),
            ("POST", "/api/admin/users", {"name": "x", "password": "long enough"}),
            ("PATCH", f"/api/admin/users/{people.ids[name]}", {"role": "admin"}),
            ("POST", "/api/workspaces", {"slug": "mine"}),
            ("GET", "/api/admin/users", {})):
        assert people.call(method, path, as_user=name, **body).status_code in (403, 404), (method, path)


def test_an_owner_grants_and_takes_back(people):
    people.add("temp", "reader")
    with people.pg("olive") as owner:
        assert owner.execute("SELECT count(*) FROM hr.salaries").fetchone() == (5,)
    answer = people.call("PUT", "/api/workspaces/main/catalogs/lake/grants", as_user="olive", user_id=people.ids["temp"], tier="reader", schema_name="HR", table_name="Salaries")
    assert answer.status_code == 200, answer.text
    grant = answer.json()
    assert (grant["schema_name"], grant["table_name"], grant["tier"]) == ("hr", "salaries", "reader")
    with people.pg("temp") as session:
        assert session.execute("SELECT count(*) FROM hr.salaries").fetchone() == (5,)
        again = people.call("PUT", "/api/workspaces/main/catalogs/lake/grants", as_user="olive", user_id=people.ids["temp"], tier="metadata", schema_name="hr", table_name="salaries").json()
        assert again["id"] == grant["id"] and again["tier"] == "metadata"
        assert refused(session, "SELECT count(*) FROM hr.salaries").sqlstate == "42501"
        assert people.call("DELETE", f"/api/workspaces/main/catalogs/lake/grants/{grant['id']}", as_user="olive").status_code == 204
        assert refused(session, "SELECT count(*) FROM hr.salaries").sqlstate == "42P01"
        assert people.call("DELETE", f"/api/workspaces/main/members/{people.ids['temp']}", as_user="olive").status_code == 204
        with pytest.raises(psycopg.Error):
            session.execute("SELECT * FROM sales.orders")


def test_prepared_statements_lose_what_is_taken_back(people):
    people.add("prep", "reader")
    grant = people.grant("prep", "reader", "sales", "orders")
    with people.pg("prep") as session:
        for _ in range(3):
            assert session.execute("SELECT count(*) FROM sales.orders WHERE id < %s", (10,), prepare=True).fetchone() == (10,)
        people.must("DELETE", f"/api/workspaces/main/catalogs/lake/grants/{grant['id']}")
        with pytest.raises(psycopg.Error) as error:
            session.execute("SELECT count(*) FROM sales.orders WHERE id < %s", (10,), prepare=True)
        assert error.value.sqlstate == "42P01"


def test_an_open_catalog_goes_by_the_role(people):
    people.must("PATCH", "/api/workspaces/main/catalogs/lake/access-mode", access_mode="open")
    try:
        with people.pg("rita") as session:
            assert session.execute("SELECT count(*) FROM hr.salaries").fetchone() == (5,)
            assert refused(session, "INSERT INTO hr.salaries VALUES (1, 1)").sqlstate == "42501"
        with people.pg("walt") as session:
            session.execute("CREATE TABLE hr.by_walt AS SELECT 1 AS x")
            session.execute("DROP TABLE hr.by_walt")
    finally:
        people.must("PATCH", "/api/workspaces/main/catalogs/lake/access-mode", access_mode="scoped")


def test_an_inactive_user_is_out(people):
    people.add("leaver", "reader")
    people.grant("leaver", "reader", "sales")
    with contextlib.closing(people.pg("leaver")) as session:
        assert session.execute("SELECT count(*) FROM sales.orders").fetchone()[0] > 0
        people.must("PATCH", f"/api/admin/users/{people.ids['leaver']}", is_active=False)
        with pytest.raises(psycopg.Error):
            session.execute("SELECT count(*) FROM sales.orders")
    with pytest.raises(psycopg.OperationalError):
        people.pg("leaver")
    wait_until(lambda: people.call("GET", "/api/me", as_user="leaver").status_code == 401, 15, "the token is refused")


def test_who_is_no_admin_any_more_is_none_in_open_sessions(people):
    people.add("once", "reader")
    people.must("PATCH", f"/api/admin/users/{people.ids['once']}", role="admin")
    with people.pg("once") as session:
        assert session.execute("SELECT count(*) FROM hr.salaries").fetchone() == (5,)
        people.must("PATCH", f"/api/admin/users/{people.ids['once']}", role="user")
        assert refused(session, "SELECT count(*) FROM hr.salaries").sqlstate == "42P01"


def test_acts_and_refusals_are_in_the_audit(people):
    people.add("seen", "reader")
    people.grant("seen", "reader", "sales")
    with people.pg("seen") as session:
        refused(session, "SELECT * FROM hr.salaries")
    events = people.must("GET", "/api/audit")["items"]
    assert {"user_created", "member_set", "grant_set", "statement_refused"} <= {event["event"] for event in events}
    mine = [event for event in events if event.get("user") == "seen" or event.get("user_name") == "seen"]
    assert any(event["rule"] == "grant" for event in mine), mine
    assert "password-of-seen" not in str(events)


@pytest.mark.parametrize("body, status", [
    ({"name": "", "password": "long enough"}, 422),
    ({"name": "a b", "password": "long enough"}, 422),
    ({"name": "short", "password": "short"}, 422),
    ({"name": "rita", "password": "long enough"}, 409),
    ({"name": "x", "password": "long enough", "role": "god"}, 422),
])
def test_users_that_are_wrong_are_refused(people, body, status):
    answer = people.call("POST", "/api/admin/users", **body)
    assert answer.status_code in (status, 400), answer.text
