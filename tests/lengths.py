"""Lengths of functions and files: python3 tests/lengths.py [FILE…] (default: every source of the tree).

Reports functions over 70 lines and files over 800, which is what the house aims at, and fails at functions over 120 and
files over 1,200: past that it is no longer a matter of taste. A function is what clang-format leaves between a first
line and a closing brace in the same column.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FUNCTION_AIM, FUNCTION_LIMIT = 70, 120
FILE_AIM, FILE_LIMIT = 800, 1200

NOT_A_FUNCTION = re.compile(r"^\s*(namespace|class|struct|enum|union|extern|TEST|using|#|//|constexpr \w+ \w+\[)")


def functions(lines):
    """(name line, first line number, length) of each function at column 0 or, inside a class, one indent."""
    for indent in ("", "    "):
        start = None
        for number, line in enumerate(lines, 1):
            if line == indent + "}" or line == indent + "};":
                if start is not None:
                    yield lines[start - 1].strip(), start, number - start + 1
                start = None
            elif line.startswith(indent) and line[len(indent) : len(indent) + 1] not in ("", " ", "}", ")"):
                if NOT_A_FUNCTION.match(line) or line.rstrip().endswith((";", ":")):
                    start = None
                elif "(" in line:
                    start = number


def main(names):
    if not names:
        names = subprocess.run(["git", "ls-files", "*.cc", "*.h"], cwd=ROOT, capture_output=True, text=True, check=True)
        names = names.stdout.split()
    too_long = 0
    for name in names:
        lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
        if lines and lines[0].startswith("// Written by "):
            continue  # a table that a script makes
        found = [(f"{name}: {len(lines)} lines", len(lines), FILE_AIM, FILE_LIMIT)]
        found += [(f"{name}:{at}: {n} lines: {text}", n, FUNCTION_AIM, FUNCTION_LIMIT) for text, at, n in functions(lines)]
        for text, length, aim, limit in found:
            if length > aim:
                print(("too long: " if length > limit else "long: ") + text)
            too_long += length > limit
    return 1 if too_long else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
