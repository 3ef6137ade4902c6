"""How long a gateway takes to know a lake of a million data files: start, the first list of its tables, memory.

    python bench/million_files.py [--files 1000000]

The catalog is made up: rows for files that are not there, as DuckLake would write them. Nothing reads the files.
"""

import argparse
import pathlib
import sqlite3
import sys
import tempfile
import time

import requests

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests"))

from pool import Pool  # noqa: E402

ROWS = 1000  # of a file


def copies(row, count, change):
    """Rows like `row` for the files 1 … count - 1."""
    for i in range(1, count):
        yield tuple((row | change(i)).values())


def only_row(db, sql):
    cursor = db.execute(sql)
    return dict(zip((column[0] for column in cursor.description), cursor.fetchone(), strict=True))


def fill(path, count):
    db = sqlite3.connect(path)
    file = only_row(db, "SELECT * FROM ducklake_data_file")
    first = file["data_file_id"]
    marks = ",".join("?" * len(file))
    db.executemany(f"INSERT INTO ducklake_data_file VALUES ({marks})", copies(file, count, lambda i: {
        "data_file_id": first + i, "path": f"ducklake-{i:08d}.parquet", "row_id_start": ROWS * i}))
    for column in [row[0] for row in db.execute("SELECT column_id FROM ducklake_file_column_stats")]:
        stats = only_row(db, f"SELECT * FROM ducklake_file_column_stats WHERE column_id = {column}")
        numbers = str(stats["min_value"]).isdigit()
        db.executemany(f"INSERT INTO ducklake_file_column_stats VALUES ({','.join('?' * len(stats))})", copies(
            stats, count, lambda i, numbers=numbers: {"data_file_id": first + i} | (
                {"min_value": str(ROWS * i), "max_value": str(ROWS * i + ROWS - 1)} if numbers else {})))
    db.execute("UPDATE ducklake_table_stats SET record_count = ?, next_row_id = ?", (ROWS * count, ROWS * count))
    db.execute("UPDATE ducklake_snapshot SET next_file_id = ? WHERE snapshot_id = (SELECT max(snapshot_id) FROM ducklake_snapshot)",
               (first + count + 1,))
    db.commit()
    db.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--files", type=int, default=1_000_000)
    count = parser.parse_args().files
    with tempfile.TemporaryDirectory() as directory:
        pool = Pool(pathlib.Path(directory) / "pool", nodes=1, node_memory="2GiB")
        pool.execute(f"CREATE TABLE big AS SELECT range AS id, 'x' || range AS s FROM range({ROWS})")
        pool.stop(60)
        fill(pool.dir / "catalog" / "lake.sqlite", count)
        began = time.monotonic()
        with pool.start():
            ready_s = time.monotonic() - began

            def listed():
                began = time.monotonic()
                answer = requests.get(pool.http + "/api/workspaces/main/catalogs/lake/schemas/main/tables",
                                      headers={"Authorization": f"Bearer {pool.token}"}, timeout=300)
                table = next(table for table in answer.json() if table["name"] == "big")
                assert table["file_count"] == count, table
                return time.monotonic() - began

            first_s, second_s = listed(), listed()
            resident = pool.gateway_process().memory_info().rss / 2**20
        print(f"{count} files: the pool answers after {ready_s:.2f} s, the first list of tables takes {first_s:.2f} s, the second "
              f"{1000 * second_s:.0f} ms; the gateway holds {resident:.0f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
