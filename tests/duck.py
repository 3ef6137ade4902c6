"""DuckDB in process, with the pinned extensions: what roost is compared with."""

import pathlib

import duckdb

EXTENSIONS = pathlib.Path(__file__).resolve().parent.parent / ".deps" / "duckdb" / "extensions"


def connect(*extensions):
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    for name in extensions:
        connection.execute(f"LOAD '{EXTENSIONS / name}.duckdb_extension'")
    return connection


def attach_lake(directory, read_only=True, postgres=None, options=None):
    """A DuckDB with the lake of the pool in `directory` attached and in use; `postgres`: the DSN of its catalog there;
    `options`: more of ATTACH's."""
    wanted = ["READ_ONLY"] if read_only else []
    wanted += [f"{name} {value}" for name, value in (options or {}).items()]
    if postgres:
        connection = connect("postgres_scanner", "ducklake")
        connection.execute(f"ATTACH 'ducklake:postgres:{postgres}' AS lake" + (f" ({', '.join(wanted)})" if wanted else ""))
        connection.execute("USE lake")
        return connection
    connection = connect("sqlite_scanner", "ducklake")
    catalog = sorted(pathlib.Path(directory).glob("**/*.sqlite"))
    catalog = [path for path in catalog if "catalog" in path.name or "lake" in path.name]
    assert len(catalog) == 1, f"expected one lake catalog, found {catalog}"
    wanted += ["META_JOURNAL_MODE 'WAL'", "META_BUSY_TIMEOUT 5000"]
    connection.execute(f"ATTACH 'ducklake:sqlite:{catalog[0]}' AS lake ({', '.join(wanted)})")
    connection.execute("USE lake")
    return connection


def referenced_files(directory, postgres=None):
    """Paths of all data and delete files that the lake of the pool in `directory` consists of now."""
    connection = attach_lake(directory, postgres=postgres)
    tables = connection.execute("SELECT table_schema, table_name FROM information_schema.tables WHERE table_catalog = 'lake' "
                                "AND table_type = 'BASE TABLE'").fetchall()
    files = []
    for schema, table in tables:
        rows = connection.execute("SELECT data_file, delete_file FROM ducklake_list_files('lake', ?, schema => ?)",
                                  [table, schema]).fetchall()
        files += [pathlib.Path(path) for row in rows for path in row if path]
    return files
