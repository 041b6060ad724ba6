#!/usr/bin/env python3
"""Checks the project's rules in tools/layers.txt: who may include what, where names may be used, limits of size.

check_layers.py [ROOT]: prints one line per violation, file:line: sentence; exits 1 if there is any.
check_layers.py --sizes [ROOT]: lists files of product code that are shorter or longer than most should be. A reviewer
decides: a contract may be short, and one idea may take many lines.
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
        self.plain_namespaces = set(parser["namespaces"]["plain"].split())
        self.variables_list = parser["variables"]["list"]
        self.variables_pattern = re.compile(parser["variables"]["pattern"])
        self.vendors = parser["vendors"]["words"].split()
        self.vendors_allowed = tuple(parser["vendors"]["allowed"].split())
        self.file_lines = parser.getint("sizes", "file")
        self.function_lines = parser.getint("sizes", "function")
        self.usual_lines = range(parser.getint("sizes", "usual_least"), parser.getint("sizes", "usual_most") + 1)


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


def unlisted_backend(path: str, target: str, rules: Rules) -> str | None:
    """The folder of `target` where it stands beside backends, is none itself, and `path` is not in it."""
    folder = "/".join(target.split("/")[:2])
    beside = {backend.split("/")[0] for backend in rules.backends}
    is_folder = target.count("/") > 1 and folder.split("/")[0] in beside and not folder.endswith("/testing")
    return folder if is_folder and folder not in rules.backends and not path.startswith(folder + "/") else None


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
    if other := unlisted_backend(path, target, rules):
        return f"{other} stands beside backends, but has no line below [backends] in tools/layers.txt"
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


def namespaces(code: str) -> Iterator[tuple[int, str]]:
    """Position and name of each named namespace that begins at the start of a line."""
    for match in re.finditer(r"^namespace ([\w:]+) \{", code, re.MULTILINE):
        yield match.start(), match.group(1)


def check_namespaces(path: str, text: str, rules: Rules) -> Iterator[tuple[int, str]]:
    folder = path.split("/")[0]
    expected = "remuda" if folder in rules.plain_namespaces else f"remuda::{folder}"
    for position, name in namespaces(blank(text, strings_too=True)):
        if name != expected and not name.startswith(expected + "::"):
            yield line_of(text, position), f"namespace {name}; what stands in {folder} is in {expected}"


DEFINITION = re.compile(r"^(?:struct|class|enum(?: class)?) (\w+)[^;{()<]*\{|^using (\w+) =", re.MULTILINE)


def definitions(text: str) -> Iterator[tuple[int, str]]:
    """Line and qualified name of each type that a header defines outside of other types."""
    code = blank(text, strings_too=True)
    starts = [*namespaces(code), (len(code), "")]
    for (begin, name), (end, _) in zip(starts, starts[1:]):
        for match in DEFINITION.finditer(code, begin, end):
            yield line_of(code, match.start()), f"{name}::{match.group(1) or match.group(2)}"


def check_names(texts: dict[str, str]) -> Iterator[str]:
    """Two types of one name in one program are undefined behaviour that no linker reports."""
    first: dict[str, str] = {}
    for path, text in texts.items():
        if not path.endswith(".h"):
            continue
        for line, name in definitions(text):
            place = f"{path}:{line}"
            if name in first:
                yield f"{place}: {name} is defined at {first[name]}, too"
            first.setdefault(name, place)


ANONYMOUS = re.compile(r"^namespace \{$.*?^\}  // namespace$", re.MULTILINE | re.DOTALL)
LOCAL_TYPE = re.compile(r"^(?:struct|class|enum(?: class)?) (\w+)[^;{()<]*\{", re.MULTILINE)  # an alias may be declared again
CONSTANT = re.compile(r"^(?:thread_local |static |inline )*(?:constexpr|const|thread_local|static)\b[^;={(\n]*?\b(\w+)(?:\[[^\]]*\])* *[={;]", re.MULTILINE)
NEXT_CONSTANT = re.compile(r"^(?:constexpr|const)\b[^;{(\n]*, (\w+) *=", re.MULTILINE)  # the second name of a line
FUNCTION = re.compile(r"^(?!return\b|namespace\b|using\b)[\w:][^\n;={}()]*[ &*>](\w+)\(", re.MULTILINE)


def parameters(code: str, start: int) -> str:
    """The types of the parameters in the parentheses that open before `start`; an estimate."""
    depth, word, words = 1, "", []
    for letter in code[start:]:
        depth += {"(": 1, "<": 1, "{": 1, ")": -1, ">": -1, "}": -1}.get(letter, 0)
        if not depth or (depth == 1 and letter == ","):
            words.append(word)
            word = ""
        else:
            word += letter
        if not depth:
            break
    types = [re.sub(r"(?<=[\w>&*\]]) *\b\w+$", "", " ".join(word.split("=")[0].split())) if " " in word.strip() else word.strip()
             for word in words]
    return ", ".join(types)


def local_names(text: str) -> Iterator[tuple[int, str]]:
    """Line and name of each type, constant and function (with its parameters) in anonymous namespaces."""
    for region in ANONYMOUS.finditer(text):
        code, above = blank(region.group(), strings_too=True), line_of(text, region.start()) - 1
        for match in [*LOCAL_TYPE.finditer(code), *CONSTANT.finditer(code), *NEXT_CONSTANT.finditer(code)]:
            yield above + line_of(code, match.start()), match.group(1)
        for match in FUNCTION.finditer(code):
            yield above + line_of(code, match.start()), f"{match.group(1)}({parameters(code, match.end())})"


def check_local_names(texts: dict[str, str]) -> Iterator[str]:
    """Sources of a folder are compiled several at once, where equal names of two anonymous namespaces would clash."""
    first: dict[tuple, str] = {}
    for path, text in texts.items():
        if not path.endswith(".cc"):
            continue
        scope = ([name for _, name in namespaces(blank(text, strings_too=True))][:1], path.split("/")[0], is_test(path))
        for line, name in local_names(text):
            key = (*map(str, scope), name)
            if key in first and not first[key].startswith(path + ":"):
                yield f"{path}:{line}: {name} has the name of another in this folder, at {first[key]}"
            first.setdefault(key, f"{path}:{line}")


def check_variables(path: str, text: str, rules: Rules, listed: set[str]) -> Iterator[tuple[int, str]]:
    """A variable of the environment is written by its name in the list, so that the list is all of them."""
    if path == rules.variables_list or is_test(path):
        return
    for match in re.finditer(r'"([A-Z][A-Z0-9_]+)=?"', blank(text, strings_too=False)):
        name = match.group(1)
        if ("_" in name and name in listed) or rules.variables_pattern.fullmatch(name):
            yield line_of(text, match.start()), f"{name} is spelled here; {rules.variables_list} is the list of variables"


def is_test(path: str) -> bool:
    return path.endswith("_test.cc") or path.startswith("tests/") or "/testing/" in path


def unit_of(path: str) -> str:
    """A header and the source of its name are one unit."""
    return path.rsplit(".", 1)[0]


def check_cycles(texts: dict[str, str]) -> Iterator[str]:
    """Files that include each other in a circle are one idea in several files, or several in one."""
    includes: dict[str, set[str]] = {}
    for path, text in texts.items():
        own = includes.setdefault(unit_of(path), set())
        for _, target in INCLUDE.findall(blank(text, strings_too=False)):
            if target in texts and unit_of(target) != unit_of(path):
                own.add(unit_of(target))
    for circle in circles(includes):
        yield f"{circle[0]}: includes itself by way of {', '.join(circle[1:])}"


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The strongly connected parts of more than one node, each sorted; by Tarjan's algorithm."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for target in sorted(graph.get(node, ())):
            if target not in index:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], index[target])
        if low[node] == index[node]:
            part = stack[stack.index(node):]
            del stack[stack.index(node):]
            if len(part) > 1:
                found.append(sorted(part))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return sorted(found)


def vendor_pattern(words: list[str]) -> re.Pattern:
    """Finds a word as such and as part of a name: amd, AMD, amd_probe, AmdProbe; not amdahl."""
    forms = [f"(?<![a-zA-Z]){w}(?![a-z])|(?<![a-zA-Z]){w.upper()}(?![a-zA-Z])|{w.capitalize()}(?![a-z])" for w in words]
    return re.compile("|".join(forms))


def check_vendors(path: str, text: str, rules: Rules) -> Iterator[tuple[int, str]]:
    if is_test(path) or (rules.vendors_allowed and path.startswith(rules.vendors_allowed)):
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
            name = re.escape((root / path).relative_to(folder).with_suffix("").as_posix())
            if path.endswith(".cc") and not re.search(rf"(?<![\w/]){name}\b", lists.read_text()):
                yield 1, f"is not built: {lists.relative_to(root)} does not name it"
            return
    yield 1, "is not built: its folder has no CMakeLists.txt"


def files(root: pathlib.Path) -> Iterator[str]:
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in SKIPPED_FOLDERS and not name.startswith("."))
        for name in sorted(names):
            yield (pathlib.Path(folder) / name).relative_to(root).as_posix()


def check_file(path: str, text: str, root: pathlib.Path, rules: Rules, listed: set[str]) -> Iterator[tuple[int, str]]:
    yield from check_sizes(path, text, rules)
    if pathlib.PurePath(path).suffix not in SOURCES:
        return
    if path.split("/")[0] not in rules.layers:
        yield 1, "stands in a folder that tools/layers.txt does not list"
        return
    yield from check_includes(path, text, rules)
    yield from check_calls(path, text, rules)
    yield from check_vendors(path, text, rules)
    yield from check_namespaces(path, text, rules)
    yield from check_variables(path, text, rules, listed)
    yield from check_built(path, root)


def read(root: pathlib.Path) -> dict[str, str]:
    return {path: (root / path).read_text() for path in files(root) if pathlib.PurePath(path).suffix in SOURCES | {".py", ".sh"}}


def check(root: pathlib.Path) -> list[str]:
    """All violations under `root`, in the order of files and lines."""
    rules = Rules((root / "tools/layers.txt").read_text())
    texts = read(root)
    code = {path: text for path, text in texts.items() if pathlib.PurePath(path).suffix in SOURCES}
    listed = set(re.findall(r'"([A-Z][A-Z0-9_]+)"', texts.get(rules.variables_list, "")))
    found = [f"tools/layers.txt: {sentence}" for sentence in rules.wrong]
    for path, text in texts.items():
        found += [f"{path}:{line}: {sentence}" for line, sentence in sorted(check_file(path, text, root, rules, listed))]
    return [*found, *check_names(code), *check_local_names(code), *check_cycles(code)]


def unusual_sizes(root: pathlib.Path) -> list[str]:
    """Product files that are shorter or longer than most should be."""
    rules = Rules((root / "tools/layers.txt").read_text())
    counted = {path: text.count("\n") for path, text in read(root).items() if path.endswith(".cc") and not is_test(path)}
    return [f"{lines:4} {path}" for path, lines in sorted(counted.items(), key=lambda item: (item[1], item[0]))
            if lines not in rules.usual_lines]


def main() -> int:
    arguments = sys.argv[1:]
    sizes = arguments[:1] == ["--sizes"]
    root = pathlib.Path(arguments[sizes] if len(arguments) > sizes else pathlib.Path(__file__).parent.parent)
    if sizes:
        print("\n".join(unusual_sizes(root)))
        return 0
    found = check(root)
    print("\n".join(found) or "layers: every rule holds")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
