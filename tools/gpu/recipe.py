"""What has to be compiled on the machine with the GPU, as CMake would do it here: all that names libtorch, and the links.

read() takes it from the ninja file of a build, with the places of things left open, so that build.py can do it there without
CMake. What does not name libtorch is built here; `packed` names those files of a link, and `finished` whole programs.
"""

import dataclasses
import json
import pathlib
import re
import shlex
import subprocess

TOOLS = pathlib.Path(__file__).resolve().parent.parent
ROOT = TOOLS.parent
FILE = "recipe.json"
TORCH = "torch/csrc/api/include"
TORCH_LIBRARY = re.compile(r"lib(torch|c10)\w*\.so")
LEFT_OUT = {"-MD", "-Werror"}  # new compilers know new warnings, and nobody is there to follow them
LEFT_OUT_WITH_VALUE = {"-MT", "-MF", "-o", "-c"}


class Failed(Exception):
    """A sentence for the user."""


@dataclasses.dataclass
class Recipe:
    # By target, as "train/CMakeFiles/remuda_train.dir": groups of sources that are compiled with the same flags. Several of a
    # group may be compiled as one.
    units: dict[str, list[dict]] = dataclasses.field(default_factory=dict)
    archives: dict[str, list[str]] = dataclasses.field(default_factory=dict)  # file: the targets whose objects it has
    links: dict[str, list[str]] = dataclasses.field(default_factory=dict)  # program: words of the call, after the compiler's name
    finished: dict[str, list[str]] = dataclasses.field(default_factory=dict)  # the same, of programs without libtorch
    packed: list[str] = dataclasses.field(default_factory=list)  # files of the build that `links` name
    libraries: list[str] = dataclasses.field(default_factory=list)  # what `links` are linked with, but libtorch
    torch_flags: list[str] = dataclasses.field(default_factory=list)  # those of the libtorch here, for @TORCH_FLAGS@

    def save(self, file: pathlib.Path) -> None:
        file.write_text(json.dumps({"units": self.units, "archives": self.archives, "links": self.links}, indent=1) + "\n")


def load(file: pathlib.Path) -> Recipe:
    return Recipe(**json.loads(file.read_text()))


def places(words: list[str], here: dict[str, str]) -> list[str]:
    """Words of a call with places filled in: @NAME@ for each."""
    return [re.sub(r"@([A-Z_]+)@", lambda m: here.get(m[1], m[0]), word) for word in words]


class Reader:
    """Takes ninja's commands one after the other, in the order in which they could be made."""

    def __init__(self, build: pathlib.Path, compiler: str, source: pathlib.Path = ROOT):
        self.build, self.compiler, self.source = build, compiler, source
        self.recipe = Recipe()

    def take(self, line: str, programs: list[str]) -> None:
        line = line.removeprefix(": && ").removesuffix(" && :")
        if archive := re.search(r"\S*ar qc (\S+)\s+(.*?) && ", line):
            self.take_archive(archive[1], archive[2].split())
            return
        words = shlex.split(line)
        if self.compiler not in words:
            return
        words = words[words.index(self.compiler) + 1:]
        if "-c" in words:
            self.take_compile(words)
        elif "-o" in words and (name := pathlib.Path(words[words.index("-o") + 1]).name) in programs:
            self.take_link(name, words)

    def take_compile(self, words: list[str]) -> None:
        if not any(TORCH in word for word in words):
            return
        source, out = (words[words.index(option) + 1] for option in ("-c", "-o"))
        flags, torch, names = [], [], iter(words)
        for word in names:
            if word in LEFT_OUT_WITH_VALUE:
                next(names)
            elif word == "-isystem":
                folder = next(names)
                (torch if "torch" in folder else flags).extend([word, folder])
            elif word.startswith("-D_GLIBCXX_USE_CXX11_ABI="):
                torch.append(word)
            elif word not in LEFT_OUT:
                flags.append(self.opened(word))
        self.recipe.torch_flags = torch
        groups = self.recipe.units.setdefault(target_of(out), [])
        group = next((group for group in groups if group["flags"] == flags), None)
        if not group:
            groups.append(group := {"flags": flags, "sources": []})
        group["sources"] += self.sources(pathlib.Path(source))

    def sources(self, file: pathlib.Path) -> list[str]:
        """A source, or those that are compiled as one in its place."""
        file = self.build / file
        if not file.is_relative_to(self.build):
            return [str(file.relative_to(self.source))]
        found = re.findall(r'#include "([^"]+)"', file.read_text())
        if not found or any(not pathlib.Path(name).is_relative_to(self.source) for name in found):
            raise Failed(f"{file} is made by the build and names libtorch; only sources of the checkout can be compiled elsewhere")
        return [str(pathlib.Path(name).relative_to(self.source)) for name in found]

    def take_archive(self, file: str, objects: list[str]) -> None:
        targets = list(dict.fromkeys(map(target_of, objects)))
        if any(target in self.recipe.units for target in targets):
            self.recipe.archives[file] = targets

    def take_link(self, name: str, words: list[str]) -> None:
        at = words.index("-o")
        words = words[:at] + words[at + 2:]
        if not any(TORCH_LIBRARY.search(word) for word in words):
            self.recipe.finished[name] = words
            return
        self.recipe.links[name] = [self.link_word(word) for word in words]

    def link_word(self, word: str) -> str:
        if word.startswith("-"):
            if word.startswith("-l"):
                self.recipe.libraries.append(f"lib{word[2:]}.so")
            return word
        path = pathlib.Path(word)
        if path.is_absolute() and ".so" in path.name:
            if TORCH_LIBRARY.match(path.name):
                return "@TORCH@/" + path.name
            self.recipe.libraries.append(path.name)
            return "@LIB@/" + path.name
        if word in self.recipe.archives:
            return "@BUILT@/" + word
        if target_of(word) in self.recipe.units:
            return f"@OBJECTS@/{target_of(word)}"
        self.recipe.packed.append(word)
        return "@PACKED@/" + word

    def opened(self, word: str) -> str:
        return word.replace(str(self.source), "@SOURCE@")


def target_of(name: str) -> str:
    """The target of an object file: its folder."""
    return name[:name.index(".dir/") + 4] if ".dir/" in name else name


def read(build: pathlib.Path, programs: list[str]) -> Recipe:
    """What `programs` of a configured build are made of."""
    cache = (build / "CMakeCache.txt").read_text()
    compiler = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.*)$", cache, re.MULTILINE)[1]
    lines = subprocess.run(["ninja", "-C", build, "-t", "commands", *programs], check=True, capture_output=True, text=True)
    reader = Reader(build, compiler)
    for line in lines.stdout.splitlines():
        reader.take(line, programs)
    found = reader.recipe
    found.packed, found.libraries = (list(dict.fromkeys(names)) for names in (found.packed, found.libraries))
    if missing := set(programs) - set(found.links) - set(found.finished):
        raise Failed(f"{build} has no call that links {', '.join(sorted(missing))}")
    return found
