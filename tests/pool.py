"""A running pool for tests: `roost up` on free ports in a directory of its own.

    with Pool(tmp_path, nodes=2) as pool:
        assert pool.sql("SELECT 1 AS x") == [{"x": 1}]

Everything waits on conditions with deadlines. A pool that is not stopped is killed, and with it its processes.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

import psutil
import requests

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROOST = os.environ.get("ROOST_BINARY", str(ROOT / "build" / "release" / "roost"))

# Sanitizer builds and busy machines are slow; a deadline that is too short only makes noise.
START_WITHIN_S = 180
ANSWER_WITHIN_S = 60
STOP_WITHIN_S = 10  # what `roost up` promises


def wait_until(condition, within_s, what, every_s=0.02):
    """The first true value of condition(); AssertionError when there is none in time."""
    deadline = time.monotonic() + within_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within_s} s: {what}")
        time.sleep(every_s)


def runs(pid):
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def clean_environment(**extra):
    """This process's, without settings that would change what is tested."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("ROOST_", "PG"))}
    # The whole suite under another profile of admission than the default.
    if profile := os.environ.get("ROOST_TEST_ADMISSION_PROFILE"):
        kept["ROOST_ADMISSION_PROFILE"] = profile
    return kept | extra


def run_roost(*arguments, timeout_s=120, **kwargs):
    """A subcommand that ends; stdout and stderr as text."""
    kwargs.setdefault("env", clean_environment())
    return subprocess.run([ROOST, *map(str, arguments)], capture_output=True, text=True, timeout=timeout_s, **kwargs)


class StatementFailed(Exception):
    """A statement that did not end as `done`; `statement` is the query object, or the error envelope with `http_status`."""

    def __init__(self, statement):
        super().__init__(statement.get("error_code") or statement.get("error"), statement.get("message") or statement.get("error"))
        self.statement = statement


class Pool:
    """`roost up` and what it says of itself. `flags` are more flags for it: ["--routing", "round_robin"]."""

    def __init__(self, directory, nodes=2, sample="none", node_memory="512MiB", flags=(), env=None, start=True):
        self.dir = pathlib.Path(directory)
        self.ready_file = self.dir.with_name(self.dir.name + ".ready.json")
        self.output = self.dir.with_name(self.dir.name + ".output")
        self.arguments = [ROOST, "up", "--dir", str(self.dir), "--http", "127.0.0.1:0", "--pg", "127.0.0.1:0",
                          "--nodes", str(nodes), "--node-memory", node_memory, "--sample", sample,
                          "--ready-file", str(self.ready_file), *flags]
        self.node_count = nodes
        self.env = clean_environment(**(env or {}))
        self.process = None
        self.known = []  # psutil.Process of every process of the pool that was seen
        if start:
            self.start()

    # --- life

    def start(self):
        """Starts it and waits until it answers queries."""
        self.launch()
        return self.wait_ready()

    def launch(self):
        assert self.process is None or self.process.poll() is not None, "it runs already"
        self.ready_file.unlink(missing_ok=True)  # of a pool that was killed
        self.output = self.dir.with_name(self.dir.name + ".output")
        with open(self.output, "wb") as output:
            self.process = subprocess.Popen(self.arguments, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                            env=self.env)
        self.known = [psutil.Process(self.process.pid)]

    def wait_ready(self, within_s=START_WITHIN_S):
        def ready():
            assert self.process.poll() is None, f"roost up ended ({self.process.returncode}):\n{self.said()}\n{self.logs()}"
            return self.ready_file.exists()
        try:
            wait_until(ready, within_s, "the pool is ready")
        except AssertionError:
            self.kill()
            raise
        self.remember()
        return self

    def stop(self, within_s=STOP_WITHIN_S, signum=signal.SIGTERM):
        """Tells it to stop; the exit status and the seconds it took. Fails when it takes longer or leaves a process behind."""
        self.remember()
        began = time.monotonic()
        self.process.send_signal(signum)
        try:
            status = self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"roost up did not stop within {within_s} s:\n{self.said()}\n{self.logs()}") from None
        seconds = time.monotonic() - began
        left = [process for process in self.known if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]
        self.kill()
        assert not left, f"left behind: {left}"
        return status, seconds

    def kill(self):
        """kill -9 of `roost up`, and of what it should have taken with it."""
        if self.process is None:
            return
        self.remember()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for process in self.known:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    # --- what it says

    def said(self):
        """stdout and stderr of `roost up`."""
        return self.output.read_text(errors="replace") if self.output.exists() else ""

    def logs(self, lines=30):
        """The ends of the logs, for messages of failed tests."""
        ends = []
        for log in sorted(self.dir.glob("log/*.log")):
            ends.append(f"--- {log.name}\n" + "\n".join(log.read_text(errors="replace").splitlines()[-lines:]))
        return "\n".join(ends)

    def ready(self):
        """The ready file."""
        return json.loads(self.ready_file.read_text())

    def run_state(self):
        """DIR/run.json: process ids of this moment, also of processes that are not ready yet."""
        return json.loads((self.dir / "run.json").read_text())

    @property
    def http(self):
        return self.ready()["http"]

    @property
    def token(self):
        return self.ready()["token"]

    @property
    def pg_dsn(self):
        """For psycopg.connect()."""
        info = self.ready()
        host, port = info["pg"].rsplit(":", 1)
        return f"host={host} port={port} user={info['user']} password={info['password']} dbname={info['catalog']}"

    # --- processes

    def gateway_pid(self):
        return self.run_state()["gateway"]["pid"]

    def node_pid(self, index):
        """Of the node in DIR/nodes/(index + 1), as it is known now."""
        return self.run_state()["nodes"][index]["pid"]

    def gateway_process(self):
        return psutil.Process(self.gateway_pid())

    def node_process(self, index):
        return psutil.Process(self.node_pid(index))

    def remember(self):
        """Notes the processes there are, so that what is left of them can be found later."""
        try:
            for child in psutil.Process(self.process.pid).children(recursive=True):
                if child not in self.known:
                    self.known.append(child)
        except psutil.NoSuchProcess:
            pass

    def kill_node(self, index, signum=signal.SIGKILL):
        """The process id that was killed."""
        self.remember()
        pid = self.node_pid(index)
        os.kill(pid, signum)
        return pid

    def kill_gateway(self, signum=signal.SIGKILL):
        self.remember()
        pid = self.gateway_pid()
        os.kill(pid, signum)
        return pid

    def wait_node_replaced(self, index, old_pid, within_s=ANSWER_WITHIN_S):
        """Waits until another process serves in that place: it is in the ready file then, and linked. Its entry there."""
        def replaced():
            entry = self.ready()["nodes"][index]
            return entry if entry["pid"] != old_pid else None
        entry = wait_until(replaced, within_s, f"node {index} is replaced")
        self.remember()
        return entry

    def replace_volume(self, index):
        """kill -9 of a node whose directory is then emptied: it comes back as another one."""
        self.process.send_signal(signal.SIGSTOP)  # so that nobody starts it again before its volume is gone
        try:
            old = self.kill_node(index)
            wait_until(lambda: not runs(old), ANSWER_WITHIN_S, "it is dead")
            shutil.rmtree(self.dir / "nodes" / str(index + 1))
        finally:
            self.process.send_signal(signal.SIGCONT)
        self.wait_node_replaced(index, old)

    def wait_gateway_replaced(self, old_pid, within_s=ANSWER_WITHIN_S):
        """Waits until another gateway answers, with all nodes linked."""
        wait_until(lambda: self.gateway_pid() not in (old_pid, -1), within_s, "the gateway is started again")
        wait_until(lambda: len(self.online_nodes()) == self.node_count, within_s, "the nodes have joined the new gateway")
        self.remember()

    def online_nodes(self):
        """GET /api/nodes, those that are online; none when nobody answers."""
        try:
            answer = self.request("GET", "/api/nodes", timeout=5)
        except requests.ConnectionError:
            return []
        return [node for node in answer.json() if node["status"] == "online"] if answer.status_code == 200 else []

    # --- HTTP

    def request(self, method, path, token=None, timeout=ANSWER_WITHIN_S, **kwargs):
        headers = {"Authorization": f"Bearer {token or self.token}"} | kwargs.pop("headers", {})
        return requests.request(method, self.http + path, headers=headers, timeout=timeout, **kwargs)

    def submit(self, sql, wait_s=0, **fields):
        """The query object as the submit answers it."""
        answer = self.request("POST", "/api/workspaces/main/queries", json={"sql": sql, "wait_timeout_s": wait_s, **fields})
        if answer.status_code >= 400:
            raise StatementFailed(answer.json() | {"http_status": answer.status_code})
        return answer.json()

    def wait(self, statement, within_s=ANSWER_WITHIN_S):
        """The query object of a statement that is over."""
        deadline = time.monotonic() + within_s
        while statement["status"] in ("queued", "running"):
            assert time.monotonic() < deadline, f"not over within {within_s} s: {statement['sql'][:200]}"
            answer = self.request("GET", f"/api/queries/{statement['id']}?wait_timeout_s=5")
            answer.raise_for_status()
            statement = answer.json()
        return statement

    def execute(self, sql, within_s=ANSWER_WITHIN_S, **fields):
        """Runs it to its end; the query object. StatementFailed when it is not `done`."""
        statement = self.wait(self.submit(sql, wait_s=5, **fields), within_s)
        if statement["status"] != "done":
            raise StatementFailed(statement)
        return statement

    def rows(self, statement, limit=1000):
        """All rows of a statement that is done, page by page."""
        cursor, out = "", []
        while cursor is not None:
            page = self.request("GET", f"/api/queries/{statement['id']}/rows?limit={limit}" + (f"&cursor={cursor}" if cursor else ""))
            page.raise_for_status()
            out += page.json()["rows"]
            cursor = page.json()["cursor"]
        return out

    def sql(self, sql, **kwargs):
        """Runs it and reads all its rows."""
        return self.rows(self.execute(sql, **kwargs))
