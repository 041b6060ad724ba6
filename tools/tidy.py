#!/usr/bin/env python3
"""Checks that every C++ file except tests compiles alone, and runs clang-tidy over all of them.

tidy.py BUILD_FOLDER [--all | --since COMMIT]: BUILD_FOLDER is a configured build (preset lint) of the checkout this script
stands in.

A file that passed is not read again until it, a file that it includes, or a tool has changed: what passed is kept under the
user's cache folder, by a hash of all of that. --all reads every file. --since is for a machine without such a cache: it reads
only files that are themselves unlike those of COMMIT, at which all passed, and all files where git does not know COMMIT.

Much of clang-tidy's time goes into headers, so it reads up to BATCH files that use the same libraries as one. That would
hide a file that leans on the headers of another, so each is first compiled alone, without making code. There the headers of
libraries are precompiled; whether a file includes each of those itself is all that this cannot see. Tests, which nobody
includes, are half of all files and are left out of it.

A batch that does not compile is read again in halves, down to single files: no complaint comes of how files were put together.
"""

import argparse
import concurrent.futures
import dataclasses
import functools
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BATCH = 36
KEPT_DAYS = 60
CLANG, CLANG_TIDY = "clang++-19", "clang-tidy-19"
# libtorch 1.13 is refused by clang with the library of g++ 12; and g++'s warnings are not clang's.
LIBRARY = f"/usr/lib/gcc/{os.uname().machine}-linux-gnu/11"
FLAGS = [f"--gcc-install-dir={LIBRARY}", "-Wno-unknown-warning-option"]
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
STANDARD = ["algorithm", "chrono", "filesystem", "functional", "map", "memory", "optional", "ranges", "string", "variant", "vector",
            "CLI/CLI.hpp", "fmt/format.h", "nlohmann/json.hpp", "tl/expected.hpp"]
PRECOMPILED = {"code": STANDARD, "test": [*STANDARD, "gmock/gmock.h", "gtest/gtest.h"],
               "torch": [*STANDARD, "gmock/gmock.h", "gtest/gtest.h", "torch/torch.h"]}


@dataclasses.dataclass(frozen=True)
class Source:
    """A file as the build compiles it."""

    path: pathlib.Path
    target: str
    flags: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix()


def read_sources(build: pathlib.Path) -> list[Source]:
    """All C++ files of the checkout that the build compiles, once each, and headers that stand without a .cc of their name."""
    sources = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["file"])
        if path.suffix != ".cc" or path.is_relative_to(ROOT / "build") or not path.is_relative_to(ROOT):
            continue
        words = shlex.split(entry["command"])
        output = words[words.index("-o") + 1]
        # Precompiled headers refuse files that differ in the last one, which says nothing to a linter.
        flags = [word for word in words if word.startswith(("-I", "-D", "-std", "-f")) and word != "-fno-math-errno"]
        for i, word in enumerate(words):
            if word == "-isystem":
                flags += words[i:i + 2]
        target = output.split("/CMakeFiles/")[0] + "/" + output.split("/CMakeFiles/")[1].split(".dir/")[0]
        sources.setdefault(path, Source(path, target, tuple(flags)))
    users = {header: source for source in sources.values() for header in all_includes(source.path)}
    anyone = next(iter(sources.values()))
    for header in tracked_headers():
        if not header.with_suffix(".cc").exists():
            like = users.get(header, anyone)
            sources[header] = Source(header, like.target, like.flags)
    return sorted(sources.values(), key=lambda source: (source.target, source.path))


def tracked_headers() -> list[pathlib.Path]:
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.h"], cwd=ROOT, check=True,
                            capture_output=True, text=True).stdout.split()
    return [ROOT / name for name in listed if (ROOT / name).exists()]


@functools.cache
def text_of(path: pathlib.Path) -> str:
    return path.read_text()


@functools.cache
def direct_includes(path: pathlib.Path) -> frozenset[pathlib.Path]:
    found = (ROOT / name for name in INCLUDE.findall(text_of(path)))
    return frozenset(file for file in found if file.exists())


def all_includes(path: pathlib.Path) -> set[pathlib.Path]:
    seen, todo = {path}, [path]
    while todo:
        new = direct_includes(todo.pop()) - seen
        seen |= new
        todo += new
    return seen


@functools.cache
def tools_digest() -> bytes:
    """What a result depends on besides files of the checkout: the tools, their rules, the libraries' headers."""
    versions = [CLANG, CLANG_TIDY, (ROOT / ".clang-tidy").read_text(), pathlib.Path(__file__).read_text()]
    for command in ([CLANG_TIDY, "--version"], ["dpkg-query", "-W", "*-dev"]):
        versions.append(subprocess.run(command, capture_output=True, text=True, check=False).stdout)
    return hashlib.sha256("\0".join(versions).encode()).digest()


def digest(source: Source) -> str:
    total = hashlib.sha256(tools_digest())
    total.update("\0".join(source.flags).replace(str(ROOT), "").encode())
    for path in sorted(all_includes(source.path)):
        total.update(f"\0{path.relative_to(ROOT)}\0{text_of(path)}".encode())
    return total.hexdigest()


class Passed:
    """The digests of what passed, a file each: so that several runs may write at once."""

    def __init__(self):
        cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        self.folder = pathlib.Path(cache) / "remuda" / "lint"
        self.folder.mkdir(parents=True, exist_ok=True)
        for file in self.folder.iterdir():
            if time.time() - file.stat().st_mtime > KEPT_DAYS * 86400:
                file.unlink(missing_ok=True)

    def has(self, key: str) -> bool:
        file = self.folder / key
        if not file.exists():
            return False
        os.utime(file)
        return True

    def add(self, keys: list[str]):
        for key in keys:
            (self.folder / key).touch()


def run(command: list[str]) -> str:
    """Its complaints; nothing when it succeeds."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return ""
    noise = re.compile(r"^\d+ warnings? (treated|generated)|^Suppressed |^Use -|^\d+ errors? generated|^Error while processing")
    return "\n".join(line for line in (done.stdout + done.stderr).splitlines() if not noise.match(line)) + "\n"


def kind_of(source: Source) -> str:
    """The set of precompiled headers that fits it."""
    includes = "".join(text_of(path) for path in all_includes(source.path))
    if re.search(r"#include <(torch|ATen|c10)/", includes):
        return "torch"
    return "test" if re.search(r"#include <g(test|mock)/", includes) else "code"


def precompile(kind: str, sources: list[Source], folder: pathlib.Path) -> tuple[pathlib.Path, str]:
    """The precompiled headers for these, made with the flags of one of them; they differ in macros of ours only."""
    header, made = folder / f"{kind}.h", folder / f"{kind}.pch"
    header.write_text("".join(f"#include <{name}>\n" for name in PRECOMPILED[kind]))
    flags = [flag for flag in sources[0].flags if not re.match(r"-D\w*(REMUDA|PROGRAM|TEST)", flag)]
    return made, run([CLANG, *flags, *FLAGS, "-w", "-fpch-instantiate-templates", "-x", "c++-header", str(header), "-o", str(made)])


def check_alone(source: Source, precompiled: pathlib.Path, folder: pathlib.Path) -> str:
    file = source.path
    if file.suffix == ".h":  # also twice
        file = folder / (source.name.replace("/", "__") + ".cc")
        file.write_text(f'#include "{source.name}"\n' * 2)
    return run([CLANG, *source.flags, *FLAGS, "-w", "-include-pch", str(precompiled), "-fsyntax-only", str(file)])


def flags_of(batch: list[Source]) -> list[str]:
    """All of theirs, once each: those of targets differ in what they define."""
    flags = list(dict.fromkeys(flag for source in batch for flag in groups_of(source.flags)))
    return [word for flag in flags for word in flag]


def groups_of(words: tuple[str, ...]) -> list[tuple[str, ...]]:
    """An option with its value is one flag."""
    return [(word, words[i + 1]) if word == "-isystem" else (word,) for i, word in enumerate(words)
            if i == 0 or words[i - 1] != "-isystem"]


def read_batch(batch: list[Source], folder: pathlib.Path) -> str:
    name = batch[0].name.replace("/", "__")
    file = folder / f"batch_{name}.cc"
    file.write_text("".join(f'#include "{source.path}"\n' for source in batch))
    return run([CLANG_TIDY, "-quiet", f"--config-file={ROOT / '.clang-tidy'}", str(file), "--", *flags_of(batch), *FLAGS, "-x", "c++"])


def check_batch(batch: list[Source], folder: pathlib.Path) -> list[tuple[Source, str]]:
    """Each file with what is wrong in the batch it was read in at last."""
    complaint = read_batch(batch, folder)
    if len(batch) > 1 and "[clang-diagnostic-" in complaint:
        middle = len(batch) // 2
        return [*check_batch(batch[:middle], folder), *check_batch(batch[middle:], folder)]
    return [(source, complaint) for source in batch]


def batches_of(sources: list[Source]) -> list[list[Source]]:
    """Of files that use the same libraries, in the order of their folders; those that take longest come first."""
    kinds: dict[str, list[Source]] = {kind: [] for kind in reversed(PRECOMPILED)}
    for source in sources:
        if source.path.suffix == ".cc":  # headers are read with them
            kinds[kind_of(source)].append(source)
    return [kind[i:i + BATCH] for kind in kinds.values() for i in range(0, len(kind), BATCH)]


class Progress:
    """One line, redrawn on a terminal; elsewhere it is printed once, at the end."""

    def __init__(self, what: str, total: int):
        self.what, self.total, self.done, self.start = what, total, 0, time.monotonic()

    def step(self):
        self.done += 1
        is_last = self.done == self.total
        if is_last or sys.stderr.isatty():
            start, end = "\r\033[K" if sys.stderr.isatty() else "", "\n" if is_last else ""
            seconds = time.monotonic() - self.start
            print(f"{start}  {self.what}: {self.done} of {self.total}, {seconds:.0f} s", end=end, file=sys.stderr, flush=True)


def check_each(what: str, check, items: list) -> list[str]:
    """The result of `check` for each item, in their order; as many at once as there are cores."""
    progress = Progress(what, len(items))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        tasks = [pool.submit(check, item) for item in items]
        for task in tasks:
            task.add_done_callback(lambda _: progress.step())
        return [task.result() for task in tasks]


def check_all_alone(sources: list[Source], folder: pathlib.Path) -> list[str]:
    kinds: dict[str, list[Source]] = {}
    for source in sources:
        kinds.setdefault(kind_of(source), []).append(source)
    made = dict(zip(kinds, check_each("precompiled", lambda kind: precompile(kind, kinds[kind], folder), list(kinds)), strict=True))
    for _, complaint in made.values():
        if complaint:
            return [complaint] * len(sources)
    return check_each("compiled alone", lambda source: check_alone(source, made[kind_of(source)][0], folder), sources)


def unlike(commit: str) -> set[pathlib.Path] | None:
    """The files that differ from those of the commit, untracked ones too; None where there is no such commit."""
    listed = []
    for command in (["git", "diff", "--name-only", "--no-renames", commit, "--"], ["git", "ls-files", "--others", "--exclude-standard"]):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return None
        listed += done.stdout.splitlines()
    return {ROOT / name for name in listed}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--all", action="store_true")
    which.add_argument("--since", metavar="COMMIT")
    options = parser.parse_args()
    folder = options.build.resolve() / "tidy"
    folder.mkdir(exist_ok=True)
    passed = Passed()
    sources = read_sources(options.build)
    total = len(sources)
    candidates = unlike(options.since) if options.since else None
    if candidates is not None:
        sources = [source for source in sources if source.path in candidates]
    keys = {source: digest(source) for source in sources}
    changed = [source for source in sources if options.all or not passed.has(keys[source])]
    print(f"  {len(changed)} of {total} files are new or changed", file=sys.stderr, flush=True)
    tests = [source for source in changed if source.path.name.endswith("_test.cc")]
    others = [source for source in changed if source not in tests]
    alone = check_all_alone(others, folder) if others else []
    sound = [source for source, complaint in zip(others, alone, strict=True) if not complaint] + tests
    passed.add([keys[source] for source in sound if source.path.suffix == ".h"])
    batches = batches_of(sound)
    verdicts = check_each("clang-tidy", lambda batch: check_batch(batch, folder), batches)
    results = [result for verdict in verdicts for result in verdict]
    passed.add([keys[source] for source, complaint in results if not complaint])
    complaints = list(dict.fromkeys(text for text in [*alone, *(complaint for _, complaint in results)] if text))
    print("".join(complaints), end="")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
