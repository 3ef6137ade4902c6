"""What no statement may reach, planted round a pool, and how to tell that one did.

    with Canaries(tmp_path) as canaries:
        pool = canaries.start_pool(down="guard")       # a wall away: needs the binary roost_switched_walls
        for sql in canaries.variants(line):
            touched = canaries.touched(run(pool, sql))

A canary sings when its text stands in an answer or an error, when a planted file is opened, changed, removed or joined
by another (inotify), or when somebody dials the loopback listener. At the end `left_behind` looks for the texts in all
that the pool wrote: logs, history, kept results, data files.
"""

import ctypes
import os
import pathlib
import secrets
import socket
import sqlite3
import struct
import threading

import duck
from pool import Pool
from stores import S3

IN_ACCESS, IN_MODIFY, IN_ATTRIB = 0x1, 0x2, 0x4
IN_MOVED, IN_CREATE, IN_DELETE, IN_OPEN = 0xC0, 0x100, 0x200, 0x20
IN_ISDIR = 0x40000000
IN_NONBLOCK = 0x800
OTHER = "5f0c1f6e-0000-4000-8000-00000000beef"  # the import of another tenant
STRAY = "canary_stray"


class Watch:
    """What happened to files, by folder: names of the files that were opened, read, changed, made or removed."""

    def __init__(self):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.fd = self.libc.inotify_init1(IN_NONBLOCK)
        assert self.fd >= 0, os.strerror(ctypes.get_errno())
        self.folders = {}

    def add(self, folder, only=None):
        """`only`: names in it that matter; None: all."""
        mask = IN_ACCESS | IN_MODIFY | IN_ATTRIB | IN_MOVED | IN_CREATE | IN_DELETE | IN_OPEN
        descriptor = self.libc.inotify_add_watch(self.fd, str(folder).encode(), mask)
        assert descriptor >= 0, os.strerror(ctypes.get_errno())
        self.folders[descriptor] = (folder, only)

    def drain(self):
        seen = set()
        while True:
            try:
                data = os.read(self.fd, 1 << 16)
            except BlockingIOError:
                return seen
            at = 0
            while at < len(data):
                descriptor, mask, _, size = struct.unpack_from("iIII", data, at)
                name = data[at + 16:at + 16 + size].rstrip(b"\0").decode(errors="replace")
                at += 16 + size
                folder, only = self.folders.get(descriptor, (None, None))
                if folder is None or mask & IN_ISDIR and mask & (IN_OPEN | IN_ACCESS):
                    continue  # a folder that is listed, not a file that is read
                if name and (only is None or name in only):
                    seen.add(f"file {pathlib.Path(folder).name}/{name}")

    def close(self):
        os.close(self.fd)


class Listener:
    """Counts who dials it, and answers as a web server with a table."""

    def __init__(self, body):
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.socket.getsockname()[1]
        self.calls = 0
        self.answer = (f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}").encode()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                caller, _ = self.socket.accept()
            except OSError:
                return
            self.calls += 1
            with caller:
                try:
                    caller.settimeout(2)
                    caller.recv(1 << 16)
                    caller.sendall(self.answer)
                except OSError:
                    pass

    def close(self):
        self.socket.close()


class Canaries:
    """`store`: "directory" or "s3". With S3 there are more of them: in another prefix of the lake's bucket and in another
    bucket, both of which the lake's own key opens, and the key itself."""

    def __init__(self, directory, store="directory"):
        self.dir = pathlib.Path(directory).resolve()
        self.private = self.dir / "private"
        self.marks = {}  # what it is -> its text
        self.s3 = S3(self.dir / "s3") if store == "s3" else None
        self.elsewhere = {}  # of S3: URL of a folder of private files -> its folder on disk
        self.pools = 0
        self.pool = None
        self.watch = None
        (self.private / "w").mkdir(parents=True)
        (self.private / "imp").mkdir()
        self.listener = Listener(f"a,b\n{self.mark('listener')},7\n")
        self.plant_private()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.pool:
            self.pool.kill()
        if self.watch:
            self.watch.close()
        self.listener.close()
        if self.s3:
            self.s3.stop()

    def mark(self, name):
        return self.marks.setdefault(name, "Canary" + secrets.token_hex(9))

    # --- planting

    def plant_private(self):
        self.plant_files(self.private)
        if not self.s3:
            return
        self.marks["access key"], self.marks["secret key"] = self.s3.access_key, self.s3.secret_key
        for name, bucket, prefix in (("prefix", self.s3.bucket, "another pool/private"), ("bucket", "vault", "private")):
            folder = self.s3.root / bucket / prefix
            (folder / "w").mkdir(parents=True)
            (folder / "imp").mkdir()
            self.plant_files(folder, name + " ")
            self.elsewhere[f"s3://{bucket}/{prefix}"] = folder

    def plant_files(self, private, of=""):
        """Files of every kind that an engine reads; `of`: what their marks' names begin with."""
        (private / "secret.txt").write_text(f"C{self.mark(of + 'text')}\n")
        (private / "secret.csv").write_text(f"a,b\n{self.mark(of + 'csv')},7\n")
        (private / "secret.json").write_text(f'{{"a": "{self.mark(of + "json")}", "b": 7}}\n')
        (private / "evil.duckdb_extension").write_text(self.mark(of + "extension"))
        (private / "imp" / "schema.sql").write_text(f"CREATE TABLE imported AS SELECT '{self.mark(of + 'import')}' AS a;\n")
        (private / "imp" / "load.sql").write_text("")
        duckdb = duck.connect()
        duckdb.execute(f"COPY (SELECT '{self.mark(of + 'parquet')}' AS a, 7 AS b) TO '{private}/secret.parquet'")
        duckdb.execute(f"ATTACH '{private}/secret.duckdb' AS s; CREATE TABLE s.t AS SELECT '{self.mark(of + 'duckdb')}' AS a, 7 AS b")
        duckdb.close()
        with sqlite3.connect(private / "secret.db") as database:
            database.execute("CREATE TABLE t (a TEXT, b INTEGER)")
            database.execute("INSERT INTO t VALUES (?, 7)", (self.mark(of + "sqlite"),))

    def plant_in_pool(self, pool):
        """What stands nearer: a stray file in the lake's data, another tenant's upload, a row of the lake's own catalog."""
        self.data = self.s3.root / self.s3.bucket / self.s3.prefix / "data" if self.s3 else next(pool.dir.glob("**/data"))
        self.data.mkdir(parents=True, exist_ok=True)  # of a store: there is nothing before the first row
        self.data_place = self.s3.url + "/data" if self.s3 else str(self.data)
        self.staging = pool.dir / "staging" if self.s3 else self.data.parent / "staging"
        (self.staging / OTHER).mkdir(parents=True, exist_ok=True)
        (self.staging / OTHER / "in.csv").write_text(f"c_id,name\n7,{self.mark('staging')}\n")
        (self.data / f"{STRAY}.txt").write_text(self.mark("stray text"))
        duckdb = duck.connect()
        duckdb.execute(f"COPY (SELECT '{self.mark('stray')}' AS a, 7 AS b) TO '{self.data}/{STRAY}.parquet'")
        duckdb.close()
        self.catalog = next(path for path in pool.dir.glob("**/*.sqlite") if "lake" in path.name or "catalog" in path.name)
        with sqlite3.connect(self.catalog, timeout=20) as database:
            database.execute("INSERT INTO ducklake_metadata VALUES ('canary', ?, NULL, NULL)", (self.mark("catalog"),))
        ready = pool.ready()
        self.marks["token"], self.marks["password"] = ready["token"], ready["password"]

    def outsider(self):
        """A DuckDB of somebody who holds the store's key."""
        client = duck.connect("sqlite_scanner", "ducklake", "httpfs")
        if self.s3:
            client.execute(f"CREATE SECRET (TYPE s3, KEY_ID '{self.s3.access_key}', SECRET '{self.s3.secret_key}', USE_SSL false, "
                           f"ENDPOINT '127.0.0.1:{self.s3.port}', URL_STYLE 'path', REGION 'us-east-1')")
        return client

    def plant_outsiders(self, pool):
        """Views and macros that another DuckLake client made, where no guard of ours looks. The names of those it could make."""
        private, data = self.private, self.data_place
        url = f"http://127.0.0.1:{self.listener.port}/x.csv"
        bodies = {
            "text": f"SELECT content AS a FROM read_text('{private}/secret.txt')",
            "blob": f"SELECT content AS a FROM read_blob('{private}/secret.txt')",
            "csv": f"SELECT a FROM read_csv('{private}/secret.csv')",
            "json": f"SELECT a FROM read_json('{private}/secret.json')",
            "parquet": f"SELECT a FROM read_parquet('{private}/secret.parquet')",
            "path": f"SELECT a FROM '{private}/secret.csv'",
            "path_parquet": f"SELECT a FROM \"{private}/secret.parquet\"",
            "glob": f"SELECT file AS a FROM glob('{private}/*')",
            "sqlite": f"SELECT a FROM sqlite_scan('{private}/secret.db', 't')",
            "stray": f"SELECT a FROM parquet_scan('{data}/{STRAY}.parquet')",
            "stray_path": f"SELECT a FROM '{data}/{STRAY}.parquet'",
            "stray_text": f"SELECT content AS a FROM read_text('{data}/{STRAY}.txt')",
            "staging": f"SELECT name AS a FROM read_csv('{self.staging}/{OTHER}/in.csv')",
            "http": f"SELECT a FROM read_csv('{url}')",
            "meta": "SELECT value AS a FROM __ducklake_metadata_lake.main.ducklake_metadata",
            "setting": "SELECT current_setting('temp_directory') AS a",
            "settings": "SELECT value AS a FROM duckdb_settings()",
            "pg_settings": "SELECT setting AS a FROM pg_catalog.pg_settings",
            "databases": "SELECT path AS a FROM duckdb_databases()",
            "secrets": "SELECT secret_string AS a FROM duckdb_secrets()",
            "options": "SELECT value AS a FROM ducklake_options('lake')",
            "files": "SELECT data_file AS a FROM ducklake_list_files('lake', 'orders')",
            "query": f"SELECT * FROM query('SELECT a FROM ''{private}/secret.csv''')",
            "query_table": f"SELECT a FROM query_table('{private}/secret.csv')",
            "expire": "SELECT snapshot_id AS a FROM ducklake_expire_snapshots('lake', older_than => TIMESTAMP '1990-01-01')",
            "error": f"SELECT error((SELECT a FROM '{private}/secret.csv')) AS a",
            "cast": f"SELECT (SELECT a FROM '{private}/secret.csv')::INTEGER AS a",
        }
        for number, place in enumerate(self.elsewhere):
            bodies |= {
                f"csv_{number}": f"SELECT a FROM read_csv('{place}/secret.csv')",
                f"json_{number}": f"SELECT a FROM read_json('{place}/secret.json')",
                f"text_{number}": f"SELECT content AS a FROM read_text('{place}/secret.txt')",
                f"parquet_{number}": f"SELECT a FROM parquet_scan('{place}/secret.parquet')",
                f"path_{number}": f"SELECT a FROM '{place}/secret.parquet'",
                f"glob_{number}": f"SELECT file AS a FROM glob('{place}/*')",
                f"beside_{number}": f"SELECT a FROM parquet_scan('{data}/../../{place.split('/', 3)[3]}/secret.parquet')",
            }
        made = []
        client = self.outsider()
        client.execute(f"ATTACH 'ducklake:sqlite:{self.catalog}' AS lake (META_JOURNAL_MODE 'WAL', META_BUSY_TIMEOUT 20000)")
        client.execute("USE lake")
        for name, body in bodies.items():
            for kind, sql in (("v", f"CREATE OR REPLACE VIEW ov_{name} AS {body}"),
                              ("m", f"CREATE OR REPLACE MACRO om_{name}() AS TABLE {body}"),
                              ("s", f"CREATE OR REPLACE MACRO os_{name}() AS ({body} LIMIT 1)")):
                try:
                    client.execute(sql)
                    made.append((kind, name))
                except Exception:
                    pass  # this client can't make it; others might, but not through DuckDB
        for sql in ("CREATE OR REPLACE MACRO op_text(p) AS (SELECT content FROM read_text(p))",
                    "CREATE OR REPLACE MACRO op_setting(p) AS current_setting(p)",
                    "CREATE OR REPLACE MACRO op_query(p) AS TABLE FROM query(p)",
                    "CREATE OR REPLACE MACRO op_table(p) AS TABLE FROM query_table(p)",
                    "CREATE OR REPLACE VIEW ov_deep AS SELECT a FROM ov_csv UNION ALL SELECT os_text()"):
            try:
                client.execute(sql)
            except Exception:
                pass
        client.close()
        return made

    def start_pool(self, down="", binary=None, outsiders=True, nodes=1):
        """A pool with all planted; `down`: names of walls that are away. What planting touched does not count."""
        if self.pool:
            self.pool.kill()
        if self.watch:
            self.watch.close()
        self.pools += 1
        env, flags = {"CANARY_WALLS_DOWN": down, "CANARY_VARIABLE": self.mark("variable")}, []
        if self.s3:
            self.s3.prefix = f"pool {self.pools}"
            env, flags = env | self.s3.env(), self.s3.flags()
        pool = Pool(self.dir / f"pool{self.pools}", nodes=nodes, start=False, env=env, flags=flags)
        if binary:
            pool.arguments[0] = str(binary)
        self.pool = pool.start()
        self.plant_in_pool(pool)
        for sql in FIXTURE:
            pool.execute(sql)
        self.outsiders = self.plant_outsiders(pool) if outsiders else []
        self.watch = Watch()
        for private in (self.private, *self.elsewhere.values()):
            for folder in (private, private / "w", private / "imp"):
                self.watch.add(folder)
        self.watch.add(self.staging / OTHER)
        self.watch.add(self.data, {f"{STRAY}.txt", f"{STRAY}.parquet"})
        self.listener.calls = 0
        return pool

    # --- statements

    def variants(self, sql):
        """A line of the corpus with its paths and hosts turned into those of the canaries: one for each place of private files."""
        places = [str(self.private)]
        if "/srv/priv" in sql or "'/srv/' ||" in sql or "/srv/lake/../private" in sql:
            places += self.elsewhere
        return [self.placed(sql, place) for place in places]

    def placed(self, sql, private):
        port, above = self.listener.port, private.removesuffix("private")
        beside = f"../../{private.split('/', 3)[3]}" if private in self.elsewhere else os.path.relpath(self.private, self.data)
        replaced = [("/srv/priv\\x61te", f"{above}priv\\x61te"), ("'/srv/' ||", f"'{above}' ||"),
                    ("/srv/lake/../private", f"{self.data_place}/{beside}"),
                    ("/srv/private", private), ("/srv/lake", self.data_place),
                    ("postgres:host=203.0.113.9", f"postgres:host=127.0.0.1 port={port}"),
                    ("203.0.113.9:3128", f"127.0.0.1:{port}"), ("host=203.0.113.9", f"host=127.0.0.1 port={port}"),
                    ("203.0.113.9", f"127.0.0.1:{port}"), ("s3://lake/staging/", f"{self.staging}/"),
                    ("OTHER", OTHER), ("STRAY", f"{self.data_place}/{STRAY}"), ("CATALOG", str(self.catalog))]
        if self.s3:
            replaced += [("s3://lake/", self.s3.url + "/"), ("s3://other-bucket/x.parquet", "s3://vault/private/secret.parquet")]
        for old, new in replaced:
            sql = sql.replace(old, new)
        return sql

    def of_outsiders(self):
        """Statements that lean on what the outside client made: class, text."""
        lines = []
        for kind, name in self.outsiders:
            if kind == "v":
                lines += [f"SELECT * FROM ov_{name}", f"DESCRIBE ov_{name}", f"CREATE TABLE stolen_{name} AS FROM ov_{name}",
                          f"PIVOT ov_{name} ON a USING count(*)", f"EXPLAIN ANALYZE FROM ov_{name}"]
            elif kind == "m":
                lines += [f"SELECT * FROM om_{name}()", f"SELECT (SELECT a FROM om_{name}() LIMIT 1)::INTEGER"]
            else:
                lines += [f"SELECT os_{name}()", f"INSERT INTO customers SELECT 1, os_{name}()",
                          f"SELECT o_id FROM orders ORDER BY os_{name}() LIMIT 1", f"SELECT * FROM range(length(os_{name}()))"]
        lines += ["SELECT * FROM ov_deep", "SUMMARIZE ov_deep", "SHOW ALL TABLES", "SELECT * FROM duckdb_views()",
                  f"SELECT op_text('{self.private}/secret.txt')", "SELECT op_setting('temp_directory')",
                  f"SELECT * FROM op_query('FROM ''{self.private}/secret.csv''')",
                  f"SELECT * FROM op_table('{self.private}/secret.csv')"]
        for place in self.elsewhere:
            lines += [f"SELECT op_text('{place}/secret.txt')", f"SELECT * FROM op_query('FROM ''{place}/secret.csv''')",
                      f"SELECT * FROM op_table('{place}/secret.csv')"]
        return [("outsider", sql) for sql in lines]

    # --- listening

    def sung(self, text):
        """The marks that stand in what was answered."""
        return {f"text of {name}" for name, mark in self.marks.items() if mark in text}

    def touched(self, text):
        """What has been touched since the last call; `text` is all that was answered meanwhile."""
        calls, self.listener.calls = self.listener.calls, 0
        return self.sung(text) | self.watch.drain() | ({"listener dialled"} if calls else set())

    def left_behind(self):
        """Marks in files of the pool where none belongs: {mark: [files]}."""
        found = {}
        planted = {self.catalog.name, self.catalog.name + "-wal", "credentials", "pgpass", "ready.json", "run.json"}
        written = list(self.pool.dir.rglob("*")) + (list(self.data.rglob("*")) if self.s3 else [])
        for path in written:
            if not path.is_file() or path.name in planted or path.name.startswith(STRAY) or OTHER in path.parts:
                continue
            try:
                content = path.read_bytes()
            except OSError:
                continue
            for name, mark in self.marks.items():
                if mark.encode() in content:
                    found.setdefault(name, []).append(str(path.relative_to(self.dir)))
        return found


FIXTURE = """DROP VIEW IF EXISTS v_big
DROP TABLE IF EXISTS orders
DROP TABLE IF EXISTS customers
CREATE TABLE orders(o_id BIGINT, cust BIGINT, amount DECIMAL(12,2), d DATE)
CREATE TABLE customers(c_id BIGINT, name VARCHAR)
INSERT INTO orders SELECT range, range % 10, range * 1.5, DATE '2024-01-01' + range::INT FROM range(200)
INSERT INTO customers SELECT range, 'c' || range FROM range(10)
CREATE VIEW v_big AS SELECT * FROM orders WHERE amount > 100""".splitlines()
