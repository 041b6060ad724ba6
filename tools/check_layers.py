#!/usr/bin/env python3
"""Proves the rules of the house in tools/layers.txt: who may include what, where words may stand, how long is too long.

check_layers.py [ROOT]: prints one line per violation, file:line: sentence; exits 1 if there is any.
"""

import configparser
import os
import pathlib
import re
import sys
from collections.abc import Iterator

SOURCES = {".cc", ".h"}
SKIPPED_FOLDERS = {"build", "__pycache__"}
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.MULTILINE)


class Rules:
    """tools/layers.txt, read."""

    def __init__(self, text: str):
        parser = configparser.ConfigParser(allow_no_value=True, delimiters=("=",))
        parser.optionxform = str  # names are case-sensitive
        parser.read_string(text)
        self.layers: dict[str, set[str]] = {}
        self.wrong: list[str] = []
        for folder, allowed in parser["layers"].items():
            below = set(self.layers)
            names = below if allowed == "*" else set(allowed.split())
            self.wrong += [f"{folder} may not include {name}: it is not above it in the list" for name in names - below]
            self.layers[folder] = names & below
        self.backends = dict(parser["backends"])
        self.libraries = {name: set(folders.split()) for name, folders in parser["libraries"].items()}
        self.calls = {name: set(files.split()) for name, files in parser["calls"].items()}
        self.vendors = parser["vendors"]["words"].split()
        self.vendors_allowed = tuple(parser["vendors"]["allowed"].split())
        self.file_lines = parser.getint("sizes", "file")
        self.function_lines = parser.getint("sizes", "function")


def blank(text: str, strings_too: bool) -> str:
    """The text without comments (and strings), every newline kept."""

    def replace(match: re.Match) -> str:
        token = match.group()
        if not token.startswith("/") and not strings_too:
            return token
        return " " + "\n" * token.count("\n")

    return TOKEN.sub(replace, text)


def line_of(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def backend_of(path: str, rules: Rules) -> str | None:
    return next((folder for folder in rules.backends if path.startswith(folder + "/")), None)


def why_not_include(path: str, quote: str, target: str, rules: Rules) -> str | None:
    """Why `path` may not include `target`, or nothing when it may."""
    folder, target_folder = path.split("/")[0], target.split("/")[0]
    if quote == "<":
        allowed = rules.libraries.get(target_folder)
        if allowed is None or folder in allowed or "/" not in target:
            return None
        return f"<{target}> may be included only in {', '.join(sorted(allowed))}"
    if target_folder not in rules.layers:
        return f'"{target}" must be written from the root, as in "base/result.h"'
    if target_folder != folder and target_folder not in rules.layers[folder]:
        return f"{folder} may not include {target_folder} (tools/layers.txt)"
    backend = backend_of(target, rules)
    if backend and backend != backend_of(path, rules) and target != rules.backends[backend]:
        return f'of {backend}, only "{rules.backends[backend]}" may be included elsewhere'
    return None


def check_includes(path: str, text: str, rules: Rules) -> Iterator[tuple[int, str]]:
    code = blank(text, strings_too=False)
    for match in INCLUDE.finditer(code):
        if reason := why_not_include(path, *match.groups(), rules):
            yield line_of(code, match.start()), reason


def check_calls(path: str, text: str, rules: Rules) -> Iterator[tuple[int, str]]:
    code = blank(text, strings_too=True)
    for name, files in rules.calls.items():
        if path in files:
            continue
        for match in re.finditer(rf"\b{name}\b", code):
            yield line_of(code, match.start()), f"{name} may be called only in {', '.join(sorted(files))}"


def vendor_pattern(words: list[str]) -> re.Pattern:
    """Finds a word as such and as part of a name: amd, AMD, amd_probe, AmdProbe; not amdahl."""
    forms = [f"(?<![a-zA-Z]){w}(?![a-z])|(?<![a-zA-Z]){w.upper()}(?![a-zA-Z])|{w.capitalize()}(?![a-z])" for w in words]
    return re.compile("|".join(forms))


def check_vendors(path: str, text: str, rules: Rules) -> Iterator[tuple[int, str]]:
    is_test = path.endswith("_test.cc") or path.startswith("tests/")
    if is_test or (rules.vendors_allowed and path.startswith(rules.vendors_allowed)):
        return
    code = blank(text, strings_too=False)
    for match in vendor_pattern(rules.vendors).finditer(code):
        yield line_of(code, match.start()), f"{match.group()} names a maker of devices; that belongs in its backend"


def functions(code: str) -> Iterator[tuple[int, int]]:
    """First and last line of each function body in code without comments and strings; by its braces, an estimate."""
    code = re.sub(r"^[ \t]*#(?:.*\\\n)*.*", lambda m: "\n" * m.group().count("\n"), code, flags=re.MULTILINE)
    depth_inside = 0  # braces open since the function began
    start, head = 0, 0
    for match in re.finditer(r"[{};]", code):
        position, mark = match.start(), match.group()
        if depth_inside:
            depth_inside += {"{": 1, "}": -1, ";": 0}[mark]
            if not depth_inside:
                yield start, line_of(code, position)
        elif mark == "{" and is_function(code[head:position]):
            depth_inside, start = 1, line_of(code, head + len(code[head:position]) - len(code[head:position].lstrip()))
        head = position + 1


def is_function(head: str) -> bool:
    """Whether a brace that follows `head` at namespace or class level opens a function's body."""
    while (bare := re.sub(r"<[^<>]*>|\([^()]*\)", "", head)) != head:
        head = bare
    is_scope = re.match(r"\s*(template\b\s*)?(inline\s+|typedef\s+)?(namespace|class|struct|union|enum|extern\s*$)\b", head)
    return not is_scope and not head.rstrip().endswith("=") and bool(head.strip())


def check_sizes(path: str, text: str, rules: Rules) -> Iterator[tuple[int, str]]:
    lines = text.count("\n")
    if lines > rules.file_lines:
        yield lines, f"{lines} lines; a file has at most {rules.file_lines}"
    if pathlib.PurePath(path).suffix not in SOURCES:
        return
    for first, last in functions(blank(text, strings_too=True)):
        if last - first + 1 > rules.function_lines:
            yield first, f"a function of {last - first + 1} lines; at most {rules.function_lines}"


def check_built(path: str, root: pathlib.Path) -> Iterator[tuple[int, str]]:
    """A source must be named in the CMakeLists.txt of its folder, or of one above it: else nothing proves it compiles."""
    for folder in (root / path).parents:
        if folder == root:
            break
        lists = folder / "CMakeLists.txt"
        if lists.exists():
            stem = re.escape(pathlib.PurePath(path).stem)
            if path.endswith(".cc") and not re.search(rf"\b{stem}\b", lists.read_text()):
                yield 1, f"is not built: {lists.relative_to(root)} does not name it"
            return
    yield 1, "is not built: its folder has no CMakeLists.txt"


def files(root: pathlib.Path) -> Iterator[str]:
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in SKIPPED_FOLDERS and not name.startswith("."))
        for name in sorted(names):
            yield (pathlib.Path(folder) / name).relative_to(root).as_posix()


def check_file(path: str, root: pathlib.Path, rules: Rules) -> Iterator[tuple[int, str]]:
    suffix = pathlib.PurePath(path).suffix
    if suffix not in SOURCES | {".py", ".sh"}:
        return
    text = (root / path).read_text()
    yield from check_sizes(path, text, rules)
    if suffix not in SOURCES:
        return
    if path.split("/")[0] not in rules.layers:
        yield 1, "stands in a folder that tools/layers.txt does not list"
        return
    yield from check_includes(path, text, rules)
    yield from check_calls(path, text, rules)
    yield from check_vendors(path, text, rules)
    yield from check_built(path, root)


def check(root: pathlib.Path) -> list[str]:
    """All violations under `root`, in the order of files and lines."""
    rules = Rules((root / "tools/layers.txt").read_text())
    found = [f"tools/layers.txt: {sentence}" for sentence in rules.wrong]
    for path in files(root):
        found += [f"{path}:{line}: {sentence}" for line, sentence in sorted(check_file(path, root, rules))]
    return found


def main() -> int:
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    found = check(root)
    print("\n".join(found) or "layers: every rule holds")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
