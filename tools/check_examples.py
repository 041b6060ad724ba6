#!/usr/bin/env python3
"""Checks that the examples in headers are compiled: each is, word for word, in a test in its header's folder.

check_examples.py [ROOT]: prints one line per example that does not, file:line: sentence; exits 1 if there is any.

An example in a header is a block of comment after the line `// Example:` (or `/// Example:`), indented by two spaces more:

    // Example:
    //   const Layout layout(inventory);
    //   const Result<Answer> answer = place(layout, {.count = 2}, {});

It ends at the first line that is not so indented. Its lines stand, without their indentation, one after another in a
*_test.cc of the header's folder, which the build compiles and runs.
"""

import pathlib
import re
import sys
from collections.abc import Iterator

BEGIN = re.compile(r"^\s*(//+) Example:$")
SKIPPED_FOLDERS = {"build"}  # and hidden ones


def examples(header: str) -> Iterator[tuple[int, list[str]]]:
    """Line number and lines of each example."""
    lines = header.splitlines()
    for number, line in enumerate(lines, start=1):
        begin = BEGIN.match(line)
        if not begin:
            continue
        inside = re.compile(rf"^\s*{begin.group(1)}   *(\S.*)$")
        example = []
        for following in lines[number:]:
            match = inside.match(following)
            if not match or not following.lstrip().startswith(begin.group(1) + "   "):
                break
            example.append(match.group(1).rstrip())
        yield number, example


def is_compiled(example: list[str], tests: list[list[str]]) -> bool:
    count = len(example)
    return any(test[at : at + count] == example for test in tests for at in range(len(test) - count + 1))


def check(root: pathlib.Path) -> list[str]:
    wrong = []
    for header in sorted(root.rglob("*.h")):
        path = header.relative_to(root)
        if SKIPPED_FOLDERS & set(path.parts) or any(part.startswith(".") for part in path.parts):
            continue
        tests = None
        for number, example in examples(header.read_text()):
            if tests is None:
                tests = [[line.strip() for line in test.read_text().splitlines()] for test in header.parent.glob("*_test.cc")]
            if not example:
                wrong.append(f"{path}:{number}: the example is empty; indent it by two spaces more than this line")
            elif not is_compiled(example, tests):
                wrong.append(f"{path}:{number}: no *_test.cc in {path.parent} has the lines of this example, word for word")
    return wrong


def main() -> int:
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    wrong = check(root)
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
