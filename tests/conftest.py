"""Fixtures of the process tests. `./dev test` names the binary in ROOST_BINARY; without it the release build is taken."""

import os

import pytest

from pool import ROOST, Pool


def pytest_sessionstart(session):
    if not os.access(ROOST, os.X_OK):
        pytest.exit(f"{ROOST} is not there: run ./dev build", returncode=3)


@pytest.fixture
def make_pool(tmp_path):
    """Pools of this test alone: make_pool(nodes=3). What it started is gone afterwards."""
    pools = []

    def make(name="pool", **kwargs):
        pool = Pool(tmp_path / name, start=False, **{k: v for k, v in kwargs.items() if k != "start"})
        pools.append(pool)
        return pool.start() if kwargs.get("start", True) else pool

    make.pools = pools
    yield make
    for pool in pools:
        pool.kill()


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    """An empty pool of two nodes, shared by the tests of a module: a test makes tables of its own names and kills nothing."""
    with Pool(tmp_path_factory.mktemp("shared") / "pool") as pool:
        yield pool


@pytest.fixture(scope="session")
def tpch_pool(tmp_path_factory):
    """A pool with TPC-H at scale factor 0.1, shared by all tests that only read."""
    with Pool(tmp_path_factory.mktemp("tpch") / "pool", nodes=3, sample="tpch:0.1", node_memory="1GiB") as pool:
        yield pool


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """A failed test shows what its pools said and the ends of their logs."""
    report = yield
    if report.failed:
        for name, value in getattr(item, "funcargs", {}).items():
            if name == "make_pool":
                pools = value.pools
            else:
                pools = [value] if isinstance(value, Pool) else []
            for pool in pools:
                report.sections.append((f"{name} {pool.dir}", pool.said() + "\n" + pool.logs(lines=12)))
    return report
