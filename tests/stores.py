"""A Postgres 15 cluster and an S3 store (versitygw over a directory) of a test's own, on free ports and in temporary folders.

    with Postgres(tmp_path / "pg") as postgres, S3(tmp_path / "s3") as s3:
        Pool(tmp_path / "pool", flags=postgres.flags() + s3.flags(), env=s3.env())
"""

import os
import pathlib
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile

import psycopg

from pool import ROOT, Pool, wait_until

POSTGRES_BIN = pathlib.Path("/usr/lib/postgresql/15/bin")
VERSITYGW = ROOT / ".deps" / "bin" / "versitygw"
START_WITHIN_S = 60


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def listens(port):
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def unprivileged():
    """What makes a child run as another user: Postgres refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


class Postgres:
    """A cluster of its own; `host` is 127.0.0.1 or, with the folder `sockets`, its Unix socket."""

    user = "lakeowner"

    def __init__(self, _directory=None, database="lake", **settings):
        # Not below pytest's folders: those are closed to others, and a socket's path is short.
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="roost-pg-"))
        self.password = "pg-" + secrets.token_hex(8)
        self.database = database
        self.port = free_port()
        self.sockets = self.dir
        self.settings = {"max_connections": 100, "fsync": "off", "shared_buffers": "16MB", **settings}
        self.process = None
        self.data = self.dir / "data"
        self._initialise()
        self.start()
        with psycopg.connect(self.dsn("postgres"), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{database}"')

    def _initialise(self):
        as_user = unprivileged()
        if as_user:
            os.chown(self.dir, as_user["user"], as_user["group"])
        self.dir.chmod(0o755)
        password_file = self.dir / "password"
        password_file.write_text(self.password)
        password_file.chmod(0o644)
        subprocess.run([POSTGRES_BIN / "initdb", "-D", self.data, "-U", self.user, "-A", "scram-sha-256", "--no-sync",
                        "--no-instructions", f"--pwfile={password_file}", "-E", "UTF8", "--locale=C.UTF-8"],
                       check=True, cwd="/", stdout=subprocess.DEVNULL, **as_user)
        password_file.unlink()

    def start(self):
        arguments = [POSTGRES_BIN / "postgres", "-D", self.data, "-k", self.sockets, "-p", str(self.port), "-h", "127.0.0.1"]
        for name, value in self.settings.items():
            arguments += ["-c", f"{name}={value}"]
        log = open(self.dir / "log", "ab")
        self.process = subprocess.Popen(arguments, cwd="/", stdin=subprocess.DEVNULL, stdout=log, stderr=log, **unprivileged())
        log.close()

        def ready():
            assert self.process.poll() is None, (self.dir / "log").read_text()
            try:
                psycopg.connect(self.dsn("postgres"), connect_timeout=5).close()
                return True
            except psycopg.OperationalError:
                return False
        wait_until(ready, START_WITHIN_S, "Postgres answers")

    def stop(self, signum=signal.SIGINT):
        """SIGINT: ends connections; SIGQUIT: at once, as a crash would."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signum)
            self.process.wait(30)

    def restart(self):
        self.stop()
        self.start()

    def dsn(self, database=None, port=None, host="127.0.0.1", password=None):
        return (f"host={host} port={port or self.port} user={self.user} password={password or self.password} "
                f"dbname={database or self.database}")

    def flags(self, **dsn):
        return ["--catalog", "postgres:" + self.dsn(**dsn)]

    def connect(self):
        return psycopg.connect(self.dsn(), autocommit=True)

    def end_connections(self):
        """As when an operator, or a proxy between, ends them all."""
        with self.connect() as connection:
            connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
                               "AND pid <> pg_backend_pid()")

    def connections(self):
        """Of clients, but this one's."""
        with self.connect() as connection:
            return connection.execute("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' "
                                      "AND pid <> pg_backend_pid()").fetchone()[0]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.dir, ignore_errors=True)


class S3:
    """versitygw over a folder; each folder in it is a bucket."""

    def __init__(self, directory, bucket="warehouse", prefix="pool one", virtual_hosts=False):
        self.dir = pathlib.Path(directory)
        self.root = self.dir / "buckets"
        self.access_key = "AK" + secrets.token_hex(8)
        self.secret_key = "sk-" + secrets.token_hex(16)
        self.bucket, self.prefix = bucket, prefix
        self.port = free_port()
        self.virtual_hosts = virtual_hosts  # BUCKET.localhost beside /BUCKET
        self.process = None
        (self.root / bucket).mkdir(parents=True)
        (self.dir / "iam").mkdir()
        self.start()

    def start(self):
        log = open(self.dir / "log", "ab")
        env = {"PATH": os.environ["PATH"], "ROOT_ACCESS_KEY": self.access_key, "ROOT_SECRET_KEY": self.secret_key}
        more = ["--virtual-domain", f"localhost:{self.port}"] if self.virtual_hosts else []
        self.process = subprocess.Popen([VERSITYGW, "--port", f"127.0.0.1:{self.port}", "--iam-dir", self.dir / "iam",
                                         "--quiet", *more, "posix", self.root],
                                        stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env)
        log.close()

        def ready():
            assert self.process.poll() is None, (self.dir / "log").read_text()
            return listens(self.port)
        wait_until(ready, START_WITHIN_S, "the store answers")

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    @property
    def url(self):
        return f"s3://{self.bucket}" + (f"/{self.prefix}" if self.prefix else "")

    def flags(self, port=None):
        return ["--store", self.url, "--s3-endpoint", f"http://127.0.0.1:{port or self.port}", "--s3-url-style", "path"]

    def env(self):
        return {"ROOST_S3_ACCESS_KEY_ID": self.access_key, "ROOST_S3_SECRET_ACCESS_KEY": self.secret_key}

    def files(self):
        """Keys of the lake's objects, relative to its prefix."""
        below = self.root / self.bucket / self.prefix
        return sorted(str(path.relative_to(below)) for path in below.rglob("*") if path.is_file())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


class Lake:
    """A running pool, and where its lake is."""

    def __init__(self, pool, postgres, s3):
        self.pool, self.postgres, self.s3 = pool, postgres, s3


def make_lake(stack, folder, catalog, store, more_flags=(), **kwargs):
    postgres = s3 = None
    flags, env = list(more_flags), {}
    if catalog == "postgres":
        postgres = stack.enter_context(Postgres())
        flags += postgres.flags()
    if store == "s3":
        s3 = stack.enter_context(S3(folder / "s3"))
        flags += s3.flags()
        env |= s3.env()
    return Lake(stack.enter_context(Pool(folder / "pool", flags=flags, env=env, **kwargs)), postgres, s3)
