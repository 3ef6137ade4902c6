"""What `cmake --install` puts in a prefix runs from there and takes nothing from the build tree."""

import pathlib
import re
import subprocess

import pytest

from pool import ROOST, ROOT


def test_an_installed_roost_uses_the_libraries_and_extensions_beside_it(make_pool, tmp_path):
    build = pathlib.Path(ROOST).parent
    if not (build / "cmake_install.cmake").exists():
        pytest.skip(f"{ROOST} is not in a build folder")
    prefix = tmp_path / "prefix"
    subprocess.run(["cmake", "--install", build, "--prefix", prefix], check=True, capture_output=True, timeout=120)
    pool = make_pool(nodes=1, start=False)
    pool.arguments[0] = str(prefix / "bin" / "roost")
    pool.start()
    pool.sql("CREATE TABLE t AS SELECT 42 AS answer")
    assert pool.sql("SELECT answer FROM t") == [{"answer": 42}]

    mapped = set()  # libraries and extensions are files that a process has mapped
    for process in pool.known:
        mapped |= set(re.findall(r"\s(/\S+)$", pathlib.Path(f"/proc/{process.pid}/maps").read_text(), re.MULTILINE))
    used = {path for path in mapped if path.startswith(str(prefix))}
    for name in "roost", "libduckdb.so", "extensions/ducklake.duckdb_extension", "extensions/sqlite_scanner.duckdb_extension":
        assert str(prefix / "bin" / name) in used
    assert not [path for path in mapped if path.startswith(str(ROOT))]
