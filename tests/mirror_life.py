"""The random life of a lake, led by a running pool and an outside DuckLake client in turns: DDL, DML, transactions, compactions,
flushes, expiries, files of others. After each step roost's answers are held against DuckLake's: names and shapes, snapshots,
the mirror's counts of rows and files, all rows of all tables, reads that prune, reads of the past.

    python tests/mirror_life.py --steps 3000 --seed 7 [--catalog postgres]     the long form: ./dev mirror
    tests/test_mirror_life.py                                                  the short form, in ./dev test
"""

import argparse
import collections
import contextlib
import pathlib
import random
import sys
import tempfile
import time

import psycopg
import requests

import duck
from pool import StatementFailed, run_roost
from stores import make_lake

TYPES = ["INTEGER", "INTEGER", "BIGINT", "VARCHAR", "VARCHAR", "DOUBLE", "DATE", "TIMESTAMP", "DECIMAL(12,2)", "BOOLEAN", "HUGEINT",
         "UUID", "TIMESTAMPTZ", "STRUCT(a INTEGER, b VARCHAR)", "INTEGER[]", "TINYINT"]
COMPARED = {"INTEGER", "BIGINT", "VARCHAR", "DOUBLE", "DATE", "TIMESTAMP", "DECIMAL(12,2)", "HUGEINT", "TINYINT"}
TABLES_MAX = 8
COLUMNS = ("SELECT schema_name, table_name, column_name, data_type, is_nullable FROM duckdb_columns() WHERE database_name = 'lake' AND "
           "(schema_name, table_name) IN (SELECT (schema_name, table_name) FROM duckdb_tables() WHERE database_name = 'lake') "
           "ORDER BY schema_name, table_name, column_index")
VIEWS = "SELECT schema_name, view_name FROM duckdb_views() WHERE database_name = 'lake' AND NOT internal ORDER BY ALL"
SNAPSHOTS = "SELECT count(*) AS n, max(snapshot_id) AS newest FROM ducklake_snapshots('lake')"


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def value(kind, n):
    """SQL that makes a value of a type from a number; every few rows a NULL."""
    made = {"VARCHAR": f"'v' || lpad(({n})::VARCHAR, 6, '0')",
            "DOUBLE": f"CASE WHEN ({n}) % 97 = 0 THEN 'nan'::DOUBLE ELSE ({n}) / 8.0 END",
            "DATE": f"DATE '2020-01-01' + ({n})::INTEGER",
            "TIMESTAMP": f"TIMESTAMP '2020-01-01 10:00:00' + INTERVAL 1 HOUR * ({n})",
            "TIMESTAMPTZ": f"TIMESTAMPTZ '2020-01-01 10:00:00+00' + INTERVAL 1 HOUR * ({n})",
            "BOOLEAN": f"({n}) % 2 = 0",
            "UUID": f"('00000000-0000-0000-0000-' || lpad(({n})::VARCHAR, 12, '0'))::UUID",
            "TINYINT": f"(({n}) % 100)::TINYINT",
            "STRUCT(a INTEGER, b VARCHAR)": f"{{'a': ({n})::INTEGER, 'b': 's' || ({n})::VARCHAR}}",
            "INTEGER[]": f"[({n})::INTEGER, 7]"}.get(kind, f"({n})::{kind}")
    return f"CASE WHEN ({n}) % 13 = 5 THEN NULL ELSE {made} END"


class Table:
    def __init__(self, schema, name, columns):
        self.schema, self.name, self.columns = schema, name, columns  # columns: (name, type)
        self.sql = f"lake.{quoted(schema)}.{quoted(name)}"


class Life:
    """The statements. `tables`: what there is, from the outside client; the same seed and answers give the same life."""

    def __init__(self, seed, outside_dir):
        self.random = random.Random(seed)
        self.made = 0
        self.outside_dir = outside_dir

    def chance(self, percent):
        return self.random.randrange(100) < percent

    def fresh(self, prefix):
        self.made += 1
        return f"{prefix}{self.made}"

    def literal(self, kind):
        return value(kind, str(self.random.randrange(3000) * 13))  # never NULL: not 5 modulo 13

    def condition(self, table):
        name, kind = self.random.choice(table.columns)
        if kind not in COMPARED:
            return f"{quoted(name)} IS NOT NULL"
        return self.random.choice([f"{quoted(name)} IS NULL", "true", f"{quoted(name)} < {self.literal(kind)}",
                                   f"{quoted(name)} > {self.literal(kind)}", f"{quoted(name)} = {self.literal(kind)}"])

    def create(self, schemas):
        schema = self.random.choice(schemas) if self.chance(30) else "main"
        name = f"lake.{quoted(schema)}.{quoted(self.fresh('Tab le,') if self.chance(20) else self.fresh('t'))}"
        if self.chance(25):
            return [f"CREATE TABLE {name} AS SELECT i::INTEGER AS k, 'v' || i AS c0, DATE '2020-01-01' + i::INTEGER AS c1 "
                    f"FROM range({self.random.randrange(200)}) r(i)"]
        kinds = [self.random.choice(TYPES) for _ in range(self.random.randint(1, 4))]
        columns = "".join(f", c{i} {kind}" + (" DEFAULT 42" if kind == "INTEGER" and self.chance(20) else "")
                          for i, kind in enumerate(kinds))
        made = [f"CREATE TABLE {name} (k INTEGER{columns})"]
        # Later, rows written before it would be lost to DuckLake's own pruning (docs/mirror.md).
        if self.chance(25):
            made.append(f"ALTER TABLE {name} SET PARTITIONED BY (bucket(4, k))")
        return made

    def insert(self, table):
        rows = self.random.randint(1, 8) if self.chance(60) else self.random.randint(40, 440)
        base = self.random.randrange(3000)
        values = ", ".join(value(kind, f"i + {base}") for _, kind in table.columns)
        return f"INSERT INTO {table.sql} SELECT {values} FROM range({rows}) r(i)"

    def write(self, table):
        kind = self.random.randrange(10)
        if kind < 5:
            return self.insert(table)
        if kind < 7:
            return f"DELETE FROM {table.sql} WHERE {self.condition(table)}"
        if kind < 9:
            name, of = self.random.choice(table.columns)
            return f"UPDATE {table.sql} SET {quoted(name)} = {value(of, self.random.randrange(3000))} WHERE {self.condition(table)}"
        return f"DELETE FROM {table.sql} WHERE k % 7 = {self.random.randrange(7)}"

    def alter(self, table):
        name, kind = self.random.choice(table.columns)
        column, sql = quoted(name), f"ALTER TABLE {table.sql} "
        added = self.random.choice(TYPES)
        default = " DEFAULT 17" if added in ("INTEGER", "BIGINT") and self.chance(60) else ""
        partition = "k IS NULL"
        if kind in ("DATE", "TIMESTAMP"):
            partition = f"year({column})" + (f", month({column})" if self.chance(50) else "")
        choices = [sql + "RENAME TO " + self.fresh("r"),
                   sql + f"ADD COLUMN {self.fresh('a')} {added}{default}",
                   sql + f"ADD COLUMN {self.fresh('a')} {added}{default}",
                   f"COMMENT ON TABLE {table.sql} IS 'it''s {self.fresh('comment')}'",
                   sql + "RESET PARTITIONED BY"]
        if name != "k":
            choices += [sql + f"RENAME {column} TO {self.fresh('n')}", sql + f"ALTER {column} DROP DEFAULT"]
        if name != "k" and len(table.columns) > 2:
            choices.append(sql + f"DROP COLUMN {column}")
        if kind == "INTEGER":
            choices += [sql + f"ALTER {column} SET DATA TYPE BIGINT", sql + f"ALTER {column} SET DEFAULT 5"]
        if partition != "k IS NULL":
            choices.append(sql + f"SET PARTITIONED BY ({partition})")
        return self.random.choice(choices)

    def names(self, tables, schemas, views):
        kind = self.random.randrange(5)
        if kind == 0:
            return f"CREATE SCHEMA lake.{quoted(self.fresh('s,'))}"
        if kind == 1 and len(schemas) > 1:
            return f"DROP SCHEMA lake.{quoted(self.random.choice([name for name in schemas if name != 'main']))}"
        if kind == 2 and views:
            return f"DROP VIEW lake.main.{quoted(self.random.choice(views)[1])}"
        table = self.random.choice(tables)
        return f"CREATE OR REPLACE VIEW lake.main.v{self.random.randrange(4)} AS SELECT count(*) AS n FROM {table.sql}"

    def maintain(self):
        """The outside client's alone: to roost's clients the guard refuses these."""
        newest = "(SELECT max(snapshot_id) FROM ducklake_snapshots('lake'))"
        return self.random.choice([
            "CALL ducklake_merge_adjacent_files('lake')", "CALL ducklake_rewrite_data_files('lake', delete_threshold => 0.01)",
            "CALL ducklake_flush_inlined_data('lake')", "CALL ducklake_flush_inlined_data('lake')",
            "CALL ducklake_expire_snapshots('lake', older_than => now())",
            f"CALL ducklake_expire_snapshots('lake', versions => [{self.random.randrange(3000)}])" if self.chance(50) else
            f"SELECT * FROM ducklake_snapshots('lake') WHERE snapshot_id = {newest}",
            "CALL ducklake_cleanup_old_files('lake', cleanup_all => true)"])

    def add_file(self, table):
        path = self.outside_dir / (self.fresh("foreign") + ".parquet")
        columns = ", ".join(f"{value(kind, 'i + 100')} AS {quoted(name)}" for name, kind in table.columns)
        return [f"COPY (SELECT {columns} FROM range({self.random.randint(1, 50)}) r(i)) TO '{path}' (FORMAT parquet)",
                f"{quoted(table.schema)}.{quoted(table.name)}", str(path)]

    def step(self, tables, schemas, views):
        """Who acts (roost: pg or http; outside), and what is said: a list, with BEGIN and an end when it is a transaction."""
        kind = self.random.randrange(100)
        who = self.random.choice(["pg", "http", "outside", "outside"])
        if len(tables) < 2 or (kind < 5 and len(tables) < TABLES_MAX):
            return who, self.create(schemas)
        table = self.random.choice(tables)
        if kind < 8:
            return who, [f"DROP TABLE {table.sql}"]
        if kind < 52:
            return who, [self.write(table)]
        if kind < 64:
            return who, [self.alter(table)]
        if kind < 72:
            return who, [self.names(tables, schemas, views)]
        if kind < 84:
            return "outside", [self.maintain()]
        if kind < 87:
            return "register", self.add_file(table)
        said = [self.write(self.random.choice(tables) if self.chance(50) else table) for _ in range(self.random.randint(1, 4))]
        return ("outside" if who == "outside" else "pg"), ["BEGIN", *said, "COMMIT" if self.chance(75) else "ROLLBACK"]


class Difference(AssertionError):
    pass


class Trial:
    def __init__(self, lake, outside_dir, seed):
        self.pool, self.postgres = lake.pool, lake.postgres
        self.life = Life(seed, outside_dir)
        self.counts, self.refused, self.by_roost_alone = collections.Counter(), collections.Counter(), []
        self.outside = None
        self.attach()
        self.session = psycopg.connect(self.pool.pg_dsn, autocommit=True)
        self.session.execute("SET TimeZone = 'UTC'")

    def attach(self, inlined_rows=10):
        """Anew: what this client remembers of the lake goes. Writes of so many rows stay in the catalog."""
        if self.outside:
            self.outside.close()
        self.inlined_rows = inlined_rows
        self.outside = duck.attach_lake(self.pool.dir, read_only=False, postgres=self.postgres and self.postgres.dsn(),
                                        options={"DATA_INLINING_ROW_LIMIT": inlined_rows})
        self.outside.execute("SET threads = 1; SET TimeZone = 'UTC'")

    # --- what is said

    def say(self, who, sql):
        """The error, or None. Roost may refuse, but neither lose its head nor its connection."""
        self.counts[who] += 1
        try:
            if who == "outside":
                self.outside.execute(sql).fetchall()
            elif who == "pg":
                self.session.execute(sql, prepare=False)
            else:
                self.pool.execute(sql)
            return None
        except psycopg.Error as error:
            text = f"{error.sqlstate} {error.diag.message_primary}"
            if not error.sqlstate or error.sqlstate[:2] in ("XX", "08", "57", "58"):
                raise Difference(f"{who}: {sql}\n{error}") from error
        except StatementFailed as failed:
            text = str(failed)
            if failed.statement.get("http_status", 0) >= 500 or failed.statement.get("error_code") in ("internal", "io_error"):
                raise Difference(f"{who}: {sql}\n{failed.statement}") from failed
        except duck.duckdb.Error as error:
            text = str(error)
        self.refused[f"{who} {sql.split(' ')[0]}: {text.splitlines()[0][:120]}"] += 1
        return text

    def register(self, copy, into, path):
        """A file of others: registered in place by roost, which notes its version; unpinned ones its nodes do not read."""
        self.outside.execute(copy)
        self.counts["register"] += 1
        done = run_roost("import", "--in-place", "--dir", self.pool.dir, "--into", into, path)
        if done.returncode:
            self.refused[f"register: {done.stderr.splitlines()[0][:120]}"] += 1

    def act(self, who, said):
        if who == "register":
            return self.register(*said)
        if who == "outside" and self.life.chance(10):
            self.attach(self.life.random.choice([0, 10]))
        # Else DuckLake can't read rows that are put into the catalog later (docs/mirror.md).
        if who == "outside" and not self.inlined_rows and said[0].startswith("ALTER"):
            self.attach()
        for sql in said:
            error = self.say(who, sql)
            # What one refuses, the other must refuse as well; the lake has not changed meanwhile.
            if error and who != "outside" and "BEGIN" not in said and not self.say("outside", sql):
                self.by_roost_alone.append(f"{who}: {sql}\n  {error[:300]}")
        if "BEGIN" in said:
            with contextlib.suppress(psycopg.Error, duck.duckdb.Error):
                (self.session if who == "pg" else self.outside).execute("ROLLBACK")
        if who == "outside" and any("flush" in sql for sql in said):
            self.attach()

    # --- what is compared

    def ask(self, who, sql):
        """Rows as tuples of texts; None for NULL. An error is an answer too: the word "error"."""
        try:
            if who == "outside":
                rows = self.outside.execute(sql).fetchall()
            elif who == "pg":
                rows = self.session.execute(sql, prepare=False).fetchall()
            else:
                statement = self.pool.execute(sql)
                rows = [list(row.values()) for row in self.pool.rows(statement)]
        except (duck.duckdb.Error, psycopg.Error, StatementFailed) as error:
            return "error", str(getattr(error, "statement", error))[:500]
        return [tuple(None if cell is None else str(cell).lower() if isinstance(cell, bool) else str(cell) for cell in row) for row in rows], ""

    def same(self, sql, may_fail=False):
        """Roost answers as DuckLake does: over the Postgres wire or HTTP, in turns. DuckLake's answer."""
        self.counts["compared"] += 1
        who = ("pg", "http")[self.counts["compared"] % 2]
        theirs, why = self.ask("outside", sql)
        mine, error = self.ask(who, sql)
        if theirs == "error" and not may_fail:
            raise Difference(f"the outside client can't answer: {sql}\n{why}")
        if mine != theirs:
            raise Difference(f"{who}: {sql}\nroost:    {str(mine)[:1500]} {error}\nDuckLake: {str(theirs)[:1500]} {why}")
        return theirs

    def tables(self):
        shapes = collections.defaultdict(list)
        for schema, name, column, kind, _ in self.same(COLUMNS):
            kind = {"TIMESTAMP WITH TIME ZONE": "TIMESTAMPTZ"}.get(kind, kind)
            shapes[schema, name].append((column, kind))
        return [Table(schema, name, columns) for (schema, name), columns in sorted(shapes.items())]

    def check_rows(self, tables):
        """Every row of every table, by its hash."""
        each = [f"SELECT '{table.schema}.{table.name}' AS name, count(*) AS n, sum(hash({', '.join(quoted(name) for name, _ in table.columns)})"
                f"::HUGEINT)::VARCHAR AS sum FROM {table.sql}" for table in tables]
        return {row[0]: int(row[1]) for row in self.same(" UNION ALL ".join(each) + " ORDER BY ALL")} if each else {}

    def check_mirror(self, tables, views, rows):
        """What the gateway's mirror says without asking DuckLake."""
        # No two schemas have a table of one name here.
        files = dict(self.outside.execute("SELECT table_name, file_count FROM ducklake_table_info('lake')").fetchall())
        base = "/api/workspaces/main/catalogs/lake/schemas"
        schemas = [item["name"] for item in self.pool.request("GET", base).json()]
        theirs = sorted(row[0] for row in self.outside.execute("SELECT schema_name FROM duckdb_schemas() WHERE database_name = 'lake'").fetchall())
        if sorted(schemas) != theirs:
            raise Difference(f"schemas: roost {sorted(schemas)}, DuckLake {theirs}")
        mine = {}
        for schema in schemas:
            answer = self.pool.request("GET", f"{base}/{requests.utils.quote(schema, safe='')}/tables")
            for item in answer.json():
                mine[schema, item["name"]] = (item["table_type"], item["row_count"], item["column_count"], item["file_count"]) \
                    if item["table_type"] == "BASE TABLE" else ("VIEW",)
        theirs = {(table.schema, table.name): ("BASE TABLE", rows[f"{table.schema}.{table.name}"], len(table.columns),
                                               files[table.name]) for table in tables}
        theirs |= {(schema, name): ("VIEW",) for schema, name in views}
        if mine != theirs:
            raise Difference(f"mirror: roost {sorted(mine.items() - theirs.items())}\nDuckLake {sorted(theirs.items() - mine.items())}")

    def check_pruned(self, table):
        name, kind = self.life.random.choice(table.columns)
        if kind not in COMPARED:
            return
        comparison = self.life.random.choice(["=", "<", "<=", ">", ">=", "<>"])
        columns = ", ".join(quoted(column) for column, _ in table.columns)
        self.same(f"SELECT count(*) AS n, sum(hash({columns})::HUGEINT)::VARCHAR AS sum FROM {table.sql} "
                  f"WHERE {quoted(name)} {comparison} {self.life.literal(kind)}")

    def check_past(self, table):
        snapshots = [row[0] for row in self.outside.execute("SELECT snapshot_id FROM ducklake_snapshots('lake') ORDER BY 1").fetchall()]
        self.same(f"SELECT count(*) AS n FROM {table.sql} AT (VERSION => {self.life.random.choice(snapshots)})", may_fail=True)

    def check(self):
        """Everything, as it is now. Tables, schemas and views for the next step."""
        tables = self.tables()
        views = self.same(VIEWS)
        self.same(SNAPSHOTS)
        rows = self.check_rows(tables)
        self.check_mirror(tables, views, rows)
        if tables:
            self.check_pruned(self.life.random.choice(tables))
            if self.life.chance(25):
                self.check_past(self.life.random.choice(tables))
        schemas = sorted({row[0] for row in self.outside.execute("SELECT schema_name FROM duckdb_schemas() WHERE database_name = 'lake'").fetchall()})
        return tables, schemas, views

    def run(self, steps, log=lambda text: None):
        state, began = self.check(), time.monotonic()
        for number in range(steps):
            who, said = self.life.step(*state)
            try:
                self.act(who, said)
                state = self.check()
            except Difference as difference:
                raise Difference(f"step {number}, {who}: {'; '.join(said)[:3000]}\n{difference}") from difference
            if number % 100 == 99:
                log(f"{number + 1} steps in {time.monotonic() - began:.0f} s; {len(state[0])} tables; {dict(self.counts)}")
        return self

    def close(self):
        self.session.close()
        self.outside.close()


@contextlib.contextmanager
def trial(folder, catalog, seed):
    """A pool with its lake's catalog on SQLite or Postgres, and the outside client."""
    outside_dir = pathlib.Path(folder) / "outside"
    outside_dir.mkdir(parents=True)
    with contextlib.ExitStack() as stack:
        lake = make_lake(stack, pathlib.Path(folder), catalog, "directory", more_flags=["--external", str(outside_dir)], nodes=2)
        made = Trial(lake, outside_dir, seed)
        stack.callback(made.close)
        yield made


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=random.randrange(1, 1 << 31))
    parser.add_argument("--catalog", default="sqlite", choices=["sqlite", "postgres"])
    options = parser.parse_args()
    print(f"{options.steps} steps through a pool on {options.catalog}, seed {options.seed}", flush=True)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="life-") as folder, trial(folder, options.catalog, options.seed) as made:
        try:
            made.run(options.steps, lambda text: print(text, flush=True))
        except Difference:
            print(made.pool.logs(lines=8))
            raise
        finally:
            for refusal, count in sorted(made.refused.items()):
                print(f"{count:5}  {refusal}")
            for refusal in made.by_roost_alone:
                print(f"refused by roost alone: {refusal}")
    print(f"no difference in {options.steps} steps, {time.monotonic() - began:.0f} s; {dict(made.counts)}; "
          f"{sum(made.refused.values())} refused, {len(made.by_roost_alone)} of them by roost alone")
    sys.exit(1 if made.by_roost_alone else 0)


if __name__ == "__main__":
    main()
