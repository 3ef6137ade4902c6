"""Browsing the catalog over HTTP: what the mirror says is what there is, at once, whoever changed it."""

import duck


def names(pool, path):
    answer = pool.request("GET", "/api/workspaces/main/catalogs/lake/schemas" + path)
    assert answer.status_code == 200, answer.text
    return {item["name"]: item for item in answer.json()}


def test_what_was_just_made_is_listed_and_what_was_dropped_is_not(pool):
    for round in range(3):
        schema = f"browse_{round}"
        pool.execute(f"CREATE SCHEMA {schema}")
        assert schema in names(pool, "")
        pool.execute(f"CREATE TABLE {schema}.orders AS SELECT range AS id, 'x' AS name FROM range(500)")
        pool.execute(f"CREATE VIEW {schema}.few AS SELECT * FROM {schema}.orders LIMIT 3")
        listed = names(pool, f"/{schema}/tables")
        assert {name: item["table_type"] for name, item in listed.items()} == {"orders": "BASE TABLE", "few": "VIEW"}
        assert (listed["orders"]["row_count"], listed["orders"]["column_count"], listed["orders"]["file_count"]) == (500, 2, 1)
        pool.execute(f"DELETE FROM {schema}.orders WHERE id < 100")
        assert names(pool, f"/{schema}/tables")["orders"]["row_count"] == 400
        pool.execute(f"DROP VIEW {schema}.few")
        pool.execute(f"ALTER TABLE {schema}.orders RENAME TO bills")
        assert set(names(pool, f"/{schema}/tables")) == {"bills"}
        pool.execute(f"DROP TABLE {schema}.bills")
        pool.execute(f"DROP SCHEMA {schema}")
        assert schema not in names(pool, "")
        assert names(pool, f"/{schema}/tables") == {}


def test_what_another_client_makes_is_listed(make_pool):
    pool = make_pool(nodes=1)
    assert "elsewhere" not in names(pool, "/main/tables")
    connection = duck.attach_lake(pool.dir, read_only=False)
    connection.execute("CREATE TABLE elsewhere AS SELECT range AS i FROM range(70)")
    assert names(pool, "/main/tables")["elsewhere"]["row_count"] == 70
    connection.execute("CALL ducklake_merge_adjacent_files('lake')")
    connection.execute("DELETE FROM elsewhere WHERE i < 50")
    assert names(pool, "/main/tables")["elsewhere"]["row_count"] == 20
    metrics = pool.request("GET", "/metrics").text
    assert 'roost_mirror_checks_total{catalog="lake"}' in metrics
