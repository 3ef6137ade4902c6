"""The segment cache of a node over an S3 store: what was read or written is not fetched again, in another instance or after
a restart; a disk that fails costs warmth and nothing else."""

import contextlib
import pathlib
import threading

import pytest

import duck
from fault_proxy import Fault, FaultProxy, Hold, Refuse
from pool import Pool, StatementFailed, run_roost
from stores import S3

ROWS = 400_000


class Count(Fault):
    """Passes everything on and counts the bytes of answers."""

    def __init__(self):
        self.bytes = 0
        self.lock = threading.Lock()

    def response(self, proxy, client, data):
        with self.lock:
            self.bytes += len(data)
        return data


class Lake:
    def fetched(self, call):
        """What the store sent meanwhile."""
        count = self.store.fault = Count()
        call()
        self.store.fault = None
        return count.bytes

    def total(self, table):
        row = self.pool.sql(f"SELECT count(*) AS n, sum(i)::BIGINT AS s, max(s) AS m FROM {table}")[0]
        assert (int(row["n"]), int(row["s"])) == (self.rows, self.rows * (self.rows - 1) // 2), row

    def cache_dir(self):
        return next(pathlib.Path(self.pool.dir).rglob("cache/identity")).parent

    def restart(self):
        self.pool.stop()
        self.pool.start()


@pytest.fixture
def lake(tmp_path):
    with contextlib.ExitStack() as stack:
        lake = Lake()
        lake.rows = ROWS
        lake.s3 = stack.enter_context(S3(tmp_path / "s3"))
        lake.store = stack.enter_context(FaultProxy(("127.0.0.1", lake.s3.port)))
        flags = lake.s3.flags(port=lake.store.port) + ["--cache-max-bytes", "256MiB"]
        lake.pool = stack.enter_context(Pool(tmp_path / "pool", nodes=1, node_memory="1GiB", flags=flags, env=lake.s3.env()))
        lake.pool.sql(f"CREATE TABLE t AS SELECT range AS i, md5(range::VARCHAR) AS s FROM range({ROWS})")
        yield lake


def forget(lake):
    """As if another node had written the table."""
    lake.pool.stop()
    for file in lake.cache_dir().iterdir():
        file.unlink()
    lake.pool.start()


def test_what_was_written_or_read_is_not_fetched_again(lake):
    size = sum(file.stat().st_size for file in lake.s3.dir.rglob("*.parquet"))
    assert size > 8_000_000
    assert lake.fetched(lambda: lake.total("t")) < size / 20, "written through this node"
    lake.restart()
    assert lake.fetched(lambda: lake.total("t")) < size / 20, "and after a restart"
    forget(lake)
    cold = lake.fetched(lambda: lake.total("t"))
    assert 0.9 * size < cold < 1.1 * size + 2_000_000
    assert lake.fetched(lambda: lake.total("t")) < size / 20
    lake.restart()
    assert lake.fetched(lambda: lake.total("t")) < size / 20, "read by the process before"


def test_reads_of_what_is_warm_need_no_store(lake):
    lake.restart()  # the engine keeps what it has read, too
    lake.store.fault = Refuse()
    lake.total("t")
    lake.store.fault = None


def test_a_cache_directory_that_goes_away_costs_warmth_only(lake):
    lake.total("t")
    for file in lake.cache_dir().iterdir():
        file.unlink()
    lake.restart()
    lake.total("t")
    lake.pool.sql(f"INSERT INTO t SELECT range, 'more' FROM range({ROWS}, {ROWS} + 1000)")
    lake.rows = ROWS + 1000
    lake.total("t")


def test_damaged_blocks_are_fetched_again(lake):
    lake.total("t")
    lake.pool.stop()
    for file in lake.cache_dir().glob("blocks.*"):
        data = bytearray(file.read_bytes())
        data[::10_000] = bytes(byte ^ 0x55 for byte in data[::10_000])
        file.write_bytes(data)
    lake.pool.start()
    assert lake.fetched(lambda: lake.total("t")) > 1_000_000
    lake.total("t")


def test_writes_deletes_and_compactions_are_seen(lake):
    lake.total("t")
    lake.pool.sql("DELETE FROM t WHERE i >= 399000")
    lake.rows = 399_000
    lake.total("t")
    lake.pool.sql("INSERT INTO t SELECT range, md5(range::VARCHAR) FROM range(399000, 420000)")
    lake.rows = 420_000
    lake.total("t")
    lake.restart()
    lake.total("t")


def test_sixteen_cold_readers_fetch_each_byte_once(lake):
    size = sum(pathlib.Path(file).stat().st_size for file in lake.s3.dir.rglob("*.parquet"))
    forget(lake)
    failures = []

    def read():
        try:
            lake.total("t")
        except BaseException as error:  # noqa: BLE001  told below
            failures.append(error)

    def all_at_once():
        threads = [threading.Thread(target=read) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    fetched = lake.fetched(all_at_once)
    assert not failures, failures[0]
    assert 0.98 * size < fetched < 1.02 * size


class Theirs:
    """A file of others that a table reads in place; put() writes it anew, in as many bytes."""

    ROWS = 1_500_000
    QUERY = "SELECT count(*) AS n, sum(i)::BIGINT AS total, min(v) AS first, max(v) AS last, max(s) AS s FROM theirs"

    def __init__(self, stack, folder):
        self.s3 = stack.enter_context(S3(folder / "s3"))
        (self.s3.root / "theirs").mkdir()
        self.store = stack.enter_context(FaultProxy(("127.0.0.1", self.s3.port)))
        flags = self.s3.flags(port=self.store.port) + ["--cache-max-bytes", "256MiB", "--external", "s3://theirs/zone"]
        self.pool = stack.enter_context(Pool(folder / "pool", nodes=1, node_memory="1GiB", flags=flags, env=self.s3.env()))
        self.client = duck.connect("httpfs")
        for name, value in (("endpoint", f"127.0.0.1:{self.s3.port}"), ("region", "us-east-1"), ("use_ssl", "false"),
                            ("url_style", "path"), ("access_key_id", self.s3.access_key), ("secret_access_key", self.s3.secret_key)):
            self.client.execute(f"SET s3_{name} = '{value}'")
        self.put(0)
        self.size = next(self.s3.root.glob("theirs/zone/f.parquet")).stat().st_size
        done = run_roost("import", "--in-place", "--dir", self.pool.dir, "--into", "theirs", "s3://theirs/zone/f.parquet")
        assert done.returncode == 0, done.stderr

    def put(self, version):
        self.client.execute(f"COPY (SELECT range AS i, {version} AS v, md5({version} || 'x' || range) AS s FROM range({self.ROWS})) "
                            "TO 's3://theirs/zone/f.parquet' (FORMAT parquet, COMPRESSION uncompressed, ROW_GROUP_SIZE 40000)")

    def read(self):
        row = self.pool.sql(self.QUERY)[0]
        rows = self.ROWS
        assert (int(row["n"]), int(row["total"]), int(row["first"]), int(row["last"])) == (rows, rows * (rows - 1) // 2, 0, 0), row

    fetched = Lake.fetched

    def restart(self):
        self.pool.stop()
        self.pool.start()


@pytest.fixture
def theirs(tmp_path):
    with contextlib.ExitStack() as stack:
        yield Theirs(stack, tmp_path)


def test_files_of_others_are_fetched_once_and_never_mixed(theirs):
    theirs.fetched(theirs.read)
    assert theirs.fetched(theirs.read) < theirs.size / 20
    theirs.restart()
    assert theirs.fetched(theirs.read) < theirs.size / 20, "after a restart, too"
    theirs.put(1)
    assert next(theirs.s3.root.glob("theirs/zone/f.parquet")).stat().st_size == theirs.size
    with pytest.raises(StatementFailed) as failed:
        theirs.read()
    assert "was changed after it was registered" in str(failed.value.statement)
    theirs.put(0)
    theirs.read()


@pytest.mark.parametrize("warmth, request_held", [("cold", 1), ("cold", 2), ("cold", 3), ("half warm", 1), ("half warm", 2)])
def test_an_object_that_is_overwritten_in_the_middle_of_a_scan(theirs, warmth, request_held):
    """What was read of it before is of the version that is registered, what is read afterwards of none."""
    if warmth == "half warm":  # a tenth, and what is read ahead of it
        theirs.pool.sql(f"SELECT max(s) FROM theirs WHERE i < {theirs.ROWS // 10}")
    theirs.restart()  # the engine keeps what it has read, too
    hold = theirs.store.fault = Hold(b"GET /theirs", request_held)
    ends = []

    def scan():
        try:
            theirs.read()
            ends.append("the old version")
        except StatementFailed as failed:
            ends.append(str(failed.statement))
    scanning = threading.Thread(target=scan)
    scanning.start()
    assert hold.held.wait(60), "the scan asks the store"
    theirs.put(1)
    hold.release()
    scanning.join(120)
    theirs.store.fault = None
    assert len(ends) == 1
    assert ends[0] == "the old version" or "was changed after it was registered" in ends[0] or "overwritten while it was read" in ends[0], ends
    with pytest.raises(StatementFailed):
        theirs.read()
    theirs.put(0)
    theirs.read()
    theirs.read()
