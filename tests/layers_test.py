"""Folders are layers: an include may only point down (docs/design.md, Source layout).

Reads every #include of the tree, follows those that stay inside it, and reports
  - an include of a layer above, or of a sibling on the same level;
  - an include that is not written from the repository's root, or names no file;
  - DuckDB's headers reached from outside engine/, lake/ and sql/;
  - Boost.Beast reached from more than one file of net/ and one of front/http/ (it costs seconds a file);
  - Arrow reached from outside engine/ and front/flight/, Arrow Flight from outside front/flight/.

Runs under pytest, or by itself: python3 tests/layers_test.py prints the violations and exits 1 if there are any.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Top to bottom. Folders of one row are siblings and do not see each other.
LAYERS = [
    ["app"],
    ["front/http", "front/pg", "front/flight"],
    ["service"],
    ["routing"],
    ["cluster"],
    ["engine"],
    ["cache"],
    ["lake"],
    ["meta"],
    ["net"],
    ["sql"],
    ["sim"],  # drives what is below it; only app/ uses it
    ["placement", "admission"],
    ["config"],
    ["obs"],
    ["base"],
]
LEVEL = {folder: len(LAYERS) - i for i, row in enumerate(LAYERS) for folder in row}
# Programs beside the product: they may use any layer, and no layer uses them.
OUTSIDE = ["cmake", "bench", "tests"]
GENERATED = {"deps/duckdb_extensions.h", "deps/version.h"}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
LIBRARIES = {  # which library an include that leaves the tree belongs to, the first match counts
    "duckdb": re.compile(r"^(duckdb\.(hpp|h)$|duckdb/|yyjson\.hpp$|re2/|utf8proc|fmt/|concurrentqueue|fast_float/)"),
    "beast": re.compile(r"^boost/beast"),
    "flight": re.compile(r"^arrow/flight/"),
    "arrow": re.compile(r"^(arrow|parquet)/"),
}
ALLOWED = {
    "duckdb": {"engine", "lake", "sql"},
    "beast": {"net", "front/http"},
    "flight": {"front/flight"},
    "arrow": {"engine", "front/flight"},
}


def folder_of(path):
    """The layer of a path like front/pg/x.cc, or None."""
    parts = path.split("/")
    for depth in (2, 1):
        if len(parts) > depth and "/".join(parts[:depth]) in LEVEL:
            return "/".join(parts[:depth])
    return None


def library_of(include):
    return next((name for name, pattern in LIBRARIES.items() if pattern.match(include)), None)


def sources(root):
    """Path from the root -> its includes, as (quoted, name) pairs."""
    found = {}
    for top in {folder.split("/")[0] for folder in LEVEL} | set(OUTSIDE):
        for path in sorted((root / top).rglob("*")):
            if path.suffix in (".h", ".cc"):
                text = path.read_text(encoding="utf-8")
                found[str(path.relative_to(root))] = [(q == '"', name) for q, name in INCLUDE.findall(text)]
    return found


def libraries_reached(files, start):
    """Library -> the shortest chain of includes that leads from start to it."""
    reached, seen, chains = {}, {start}, [[start]]
    for chain in chains:  # grows as it is walked: breadth first
        for _, name in files[chain[-1]]:
            if name in files and name not in seen:
                seen.add(name)
                chains.append([*chain, name])
            elif library_of(name):
                reached.setdefault(library_of(name), [*chain, name])
    return reached


def direction_violations(root, files):
    for path, includes in files.items():
        folder = folder_of(path)
        for quoted, name in includes:
            if name in files:
                target = folder_of(name)
                if folder is None or target == folder:
                    continue
                if target is None:
                    yield f"{path}: includes {name}, which is outside the layers"
                elif LEVEL[target] >= LEVEL[folder]:
                    yield f"{path}: includes {name}, but {folder} is not above {target}"
            elif quoted and name not in GENERATED and library_of(name) is None and not (root / name).is_file():
                yield f'{path}: "{name}" is no file; includes are written from the repository\'s root'


def library_violations(files):
    beast_files = {}
    for path in files:
        folder = folder_of(path)
        if folder is None:
            continue
        for library, chain in libraries_reached(files, path).items():
            if folder not in ALLOWED[library]:
                yield f"{path}: reaches {library} ({' -> '.join(chain)}); only {', '.join(sorted(ALLOWED[library]))} may"
            elif library == "beast" and path != "net/beast_impl.cc":
                beast_files.setdefault(folder, []).append(path)
    for folder, paths in beast_files.items():
        if len([p for p in paths if p.endswith(".cc")]) > 1 or any(p.endswith(".h") for p in paths):
            yield f"{folder}: Beast is for one .cc file and no header, here: {', '.join(paths)}"


def violations(root):
    files = sources(root)
    return [*direction_violations(root, files), *library_violations(files)]


# ---- the tree itself


def test_includes_point_down():
    assert sources(ROOT), "no source found: the check would prove nothing"
    assert violations(ROOT) == []


# ---- the check: each kind of violation is found, and what is allowed is not reported


def tree(tmp_path, **files):
    for name, text in files.items():
        path = tmp_path / name.replace("__", "/").replace("_cc", ".cc").replace("_h", ".h")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return violations(tmp_path)


def test_an_allowed_tree_has_no_violations(tmp_path):
    assert (
        tree(
            tmp_path,
            base__status_h="#include <string>\n",
            sql__parse_cc='#include "duckdb.hpp"\n#include "sql/parse.h"\n#include "base/status.h"\n',
            sql__parse_h='#include "base/status.h"\n',
            front__pg__front_cc='#include "front/pg/front.h"\n#include "sql/parse.h"\n',
            front__pg__front_h='#include "deps/version.h"\n',
            net__http_cc="#include <boost/beast/http.hpp>\n",
            front__flight__a_cc="#include <arrow/flight/api.h>\n",
        )
        == []
    )


def test_an_upward_include_is_found(tmp_path):
    found = tree(tmp_path, base__a_h='#include "net/b.h"\n', net__b_h="")
    assert found == ["base/a.h: includes net/b.h, but base is not above net"]


def test_an_include_of_a_sibling_is_found(tmp_path):
    assert len(tree(tmp_path / "1", placement__a_h='#include "admission/b.h"\n', admission__b_h="")) == 1
    assert len(tree(tmp_path / "2", front__pg__a_h='#include "front/http/b.h"\n', front__http__b_h="")) == 1


def test_an_include_not_from_the_root_is_found(tmp_path):
    assert len(tree(tmp_path, base__a_cc='#include "b.h"\n', base__b_h="")) == 1


def test_duckdb_outside_its_folders_is_found(tmp_path):
    assert len(tree(tmp_path, service__a_cc='#include "duckdb/main/connection.hpp"\n')) == 1


def test_duckdb_through_a_header_is_found(tmp_path):
    found = tree(
        tmp_path,
        engine__a_h='#include "engine/b.h"\n',
        engine__b_h='#include "duckdb.hpp"\n',
        cluster__c_cc='#include "engine/a.h"\n',
    )
    assert len(found) == 1 and "cluster/c.cc -> engine/a.h -> engine/b.h -> duckdb.hpp" in found[0]


def test_a_cycle_of_headers_hides_nothing(tmp_path):
    found = tree(
        tmp_path,
        service__a_h='#include "service/b.h"\n#include <arrow/api.h>\n',
        service__b_h='#include "service/c.h"\n',
        service__c_h='#include "service/a.h"\n',
    )
    assert sorted(line.split(":")[0] for line in found) == ["service/a.h", "service/b.h", "service/c.h"]


def test_beast_in_a_second_file_or_a_header_is_found(tmp_path):
    assert len(tree(tmp_path / "1", net__a_cc="#include <boost/beast.hpp>\n", net__b_cc="#include <boost/beast.hpp>\n")) == 1
    assert len(tree(tmp_path / "2", net__a_h="#include <boost/beast.hpp>\n")) == 1
    assert len(tree(tmp_path / "3", front__pg__a_cc="#include <boost/beast.hpp>\n")) == 1


def test_arrow_flight_outside_its_front_is_found(tmp_path):
    assert len(tree(tmp_path, engine__a_cc="#include <arrow/flight/api.h>\n")) == 1


if __name__ == "__main__":
    bad = violations(ROOT)
    print("\n".join(bad) if bad else f"layers: {len(sources(ROOT))} files, no violation")
    sys.exit(1 if bad else 0)
