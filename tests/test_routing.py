"""--routing affinity in a running pool: statements follow the table's home, and the profile and explain-route say why."""

import json

from pool import ANSWER_WITHIN_S, Pool, run_roost, wait_until


def reason_and_node(pool, sql):
    """Of a statement that is run: the outcome of its routing, the node that ran it, and why."""
    statement = pool.execute(sql)
    profile = json.loads(pool.request("GET", f"/api/queries/{statement['id']}/profile").text)
    return profile["reason"], profile["node"], profile.get("why", "")


def test_statements_follow_the_home_of_their_table(tmp_path):
    with Pool(tmp_path / "pool", nodes=3, flags=["--routing", "affinity"]) as pool:
        for number in range(6):
            pool.execute(f"CREATE TABLE t{number} AS SELECT range AS id FROM range(1000)")
        pool.execute("CREATE VIEW seen AS SELECT count(*) AS n FROM t0")
        # The gateway's mirror follows the lake within a second or two; from then on the table has a home.
        wait_until(lambda: reason_and_node(pool, "SELECT count(*) FROM t5")[0] != "no_refs", ANSWER_WITHIN_S, "the mirror")
        homes = {}
        for number in range(6):
            reason, homes[number], _ = reason_and_node(pool, f"SELECT count(*) FROM t{number}")
            assert reason in ("claim", "sticky_fresh", "sticky_stale")
        for number in range(6):
            for _ in range(3):
                reason, node, why = reason_and_node(pool, f"SELECT sum(id) FROM t{number}")
                assert (reason, node) == ("sticky_fresh", homes[number]), why
        assert len(set(homes.values())) > 1, "tables are shared out"
        assert reason_and_node(pool, "SELECT n FROM seen")[:2] == ("sticky_fresh", homes[0]), "a view is its tables"
        assert reason_and_node(pool, "SELECT 1")[0] == "no_refs"

        route = run_roost("explain-route", "--dir", str(pool.dir), "SELECT * FROM t0")
        assert route.returncode == 0, route.stderr
        assert "sticky_fresh" in route.stdout and "warm" in route.stdout, route.stdout
