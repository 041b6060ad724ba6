"""Compiles a pack's recipe on a machine with a compiler and libtorch, but without CMake.

The largest units go first, on all cores; what an unfinished build has made is kept, and it goes on from there.
"""

import concurrent.futures
import dataclasses
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import libraries
import recipe
from measured import TIME_IS_OVER, run_measured
from recipe import ROOT, TOOLS, Failed, Recipe

# Files that are compiled as one. Each unit reads libtorch's headers, which takes 20 s, and a file takes one or two; so that
# there are no more units than cores on a machine with a GPU, of which 16 are the fewest to expect.
BATCH = 10


@dataclasses.dataclass
class Unit:
    """Sources that are compiled as one, to one object."""

    target: str
    flags: list[str]
    sources: list[str]
    name: str

    def object(self, folder: pathlib.Path) -> pathlib.Path:
        return folder / self.target / f"{self.name}.o"

    def bytes(self) -> int:
        return sum((ROOT / source).stat().st_size for source in self.sources)


def units(what: Recipe, batch: int) -> list[Unit]:
    """All that is compiled, what takes longest first."""
    found = []
    for target, groups in what.units.items():
        for group in groups:
            count = -(-len(group["sources"]) // batch)
            parts = [sorted(group["sources"])[i::count] for i in range(count)]  # of one size, or one more
            found += [Unit(target, group["flags"], part, part[0].removesuffix(".cc").replace("/", "-")) for part in parts]
    return sorted(found, key=Unit.bytes, reverse=True)


def find_torch(limit_s: float) -> dict[str, str]:
    """Where the PyTorch of this machine's python3 is, or else Debian's libtorch-dev, as words of a call."""
    try:
        found = subprocess.run([sys.executable, TOOLS / "python_torch.py"], capture_output=True, text=True, timeout=limit_s, check=False)
    except subprocess.TimeoutExpired as error:
        raise Failed(f"{sys.executable} did not import torch within {limit_s:.0f} s") from error
    if found.returncode == 0:
        folder = pathlib.Path(found.stdout.strip())
        includes = [folder / "include", folder / "include/torch/csrc/api/include"]
        place, config = folder / "lib", folder / "share/cmake/Torch/TorchConfig.cmake"
    else:
        library = next(iter(pathlib.Path("/usr/lib").glob("*/libtorch.so")), None)
        if not library:
            raise Failed(f"there is no libtorch to build against: {found.stderr.strip()}, and Debian's libtorch-dev is not installed")
        place = library.parent
        includes = [pathlib.Path("/usr/include/torch/csrc/api/include")]
        config = place / "cmake/Torch/TorchConfig.cmake"
    flags = re.search(r'set\(TORCH_CXX_FLAGS "([^"]*)"', config.read_text())
    words = [f"-isystem {include}" for include in includes] + ([flags[1]] if flags else [])
    return {"TORCH": str(place), "TORCH_FLAGS": " ".join(words)}


def check_c_library(files: list[pathlib.Path]) -> None:
    """Refuses where programs or libraries need a newer glibc than that of this machine."""
    needed = libraries.needed_c_library([file for file in files if libraries.is_elf(file)])
    here = os.confstr("CS_GNU_LIBC_VERSION").split()[-1]
    if libraries.version_number(here) < libraries.version_number(needed):
        raise Failed(f"the C library here is glibc {here}; what was packed needs {needed} or a newer one")


def sources_key(words: list, pack: pathlib.Path, out: pathlib.Path) -> str:
    """Stands for all that objects are made of: how the compiler is called, the packed headers, and every source of this checkout.

    What is built into `out` is no source.
    """
    key = hashlib.sha256(repr(words).encode())
    for folder in [pack / "include", *sorted(path for path in ROOT.iterdir() if path.name != "build" and path.is_dir())]:
        for file in sorted(folder.rglob("*")):
            if file.suffix in {".cc", ".h", ".hpp"} and not file.is_relative_to(out):
                key.update(file.read_bytes())
    return key.hexdigest()


def contents_key(pack: pathlib.Path) -> str:
    """Stands for what of the pack is linked and copied: the list has the hash of each file."""
    listing = pack / "list.json"
    return "\n" + hashlib.sha256(listing.read_bytes()).hexdigest() if listing.exists() else ""


def is_text(file: pathlib.Path, text: str) -> bool:
    return file.exists() and file.read_text() == text


def find_compiler() -> str:
    """The first compiler here whose programs load the C++ library that libtorch loads, too. With a copy of their own inside, as a
    compiler makes them that was installed without the shared one, they would crash in the first message that libtorch prints.
    """
    names = [os.environ.get("CXX"), "c++", "g++"]
    found = [path for name in names if name and (path := shutil.which(name))]
    if not found:
        raise Failed("there is no C++ compiler: neither c++ nor g++ is on the PATH")
    for compiler in found:
        if loads_library(compiler):
            return compiler
    raise Failed(f"programs of {' and '.join(dict.fromkeys(found))} do not load libstdc++.so, which libtorch needs them to share; "
                 "set CXX to a compiler whose programs do")


def loads_library(compiler: str) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "program"
        done = subprocess.run([compiler, "-x", "c++", "-", "-o", program], input="#include <iostream>\nint main() { std::cout << 1; }\n",
                              text=True, capture_output=True, check=False)
        return done.returncode == 0 and b"libstdc++.so" in program.read_bytes()


class Build:
    """One build: where things are, and what it has measured."""

    def __init__(self, pack: pathlib.Path, out: pathlib.Path, left_s: Callable[[], float], torch: dict[str, str], optimise: bool):
        self.pack, self.out, self.left_s, self.optimise = pack, out, left_s, optimise
        self.folder = out / "build"
        self.compiler = find_compiler()
        if (asked := os.environ.get("CXX")) and shutil.which(asked) != self.compiler:
            print(f"  compiled by {self.compiler}: programs of {asked} could not load the C++ library that libtorch loads", flush=True)
        self.places = {"SOURCE": str(ROOT), "LIB": str(pack / "lib"), "PACKED": str(pack / "built"), "BUILT": str(self.folder),
                       "OBJECTS": str(self.folder), "TORCH": torch["TORCH"]}
        self.torch_flags = torch["TORCH_FLAGS"].split()
        self.what = recipe.load(pack / recipe.FILE)
        cores = len(os.sched_getaffinity(0))
        # Unoptimised, reading headers is nearly all: as few units as keep the cores busy.
        largest = max((len(group["sources"]) for groups in self.what.units.values() for group in groups), default=1)
        self.units = units(self.what, BATCH if optimise else -(-largest // cores))
        self.cpu_s: dict[str, float] = {}

    def key(self) -> str:
        return sources_key([self.compiler, self.torch_flags, self.places, self.optimise, self.what], self.pack, self.out)

    def call(self, words: list, output: pathlib.Path) -> None:
        """Makes one call, unless its output is there; the output appears whole or not at all."""
        if output.exists():
            return
        output.parent.mkdir(parents=True, exist_ok=True)
        unfinished = output.with_name(output.name + ".unfinished")
        unfinished.unlink(missing_ok=True)
        name = str(output.relative_to(self.folder))
        if self.left_s() <= 0:
            raise Failed(f"no time was left for {name}; what was built is kept")
        words = [str(unfinished) if word == output else str(word) for word in words]
        status, printed, self.cpu_s[name] = run_measured(words, self.left_s(), self.folder)
        if status == TIME_IS_OVER:
            raise Failed(f"{name} was not built in time; what was built before is kept")
        if status != 0:
            raise Failed(f"this call failed:\n{' '.join(words)}\n{printed}")
        unfinished.replace(output)

    def compile(self, unit: Unit) -> None:
        text = "".join(f'#include "{ROOT / source}"\n' for source in unit.sources)
        file = self.folder / unit.target / f"{unit.name}.cc"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        # The packed headers come first: PyTorch may bring others of the same libraries, and it is these that are linked.
        flags = recipe.places(unit.flags, self.places) + ["-isystem", self.pack / "include"] + self.torch_flags
        output = unit.object(self.folder)
        self.call([self.compiler, *flags, *([] if self.optimise else ["-O0"]), "-c", file, "-o", output], output)

    def objects(self, target: str) -> list[pathlib.Path]:
        return sorted(unit.object(self.folder) for unit in self.units if unit.target == target)

    def archive(self, file: str) -> None:
        objects = [each for target in self.what.archives[file] for each in self.objects(target)]
        self.call(["ar", "qcs", self.folder / file, *objects], self.folder / file)

    def link(self, name: str) -> None:
        words: list = []
        for word in self.what.links[name]:
            words += self.objects(word.split("/", 1)[1]) if word.startswith("@OBJECTS@/") else recipe.places([word], self.places)
        # An RPATH, as it also holds for what libraries load in turn; a RUNPATH does not.
        paths = [f"-L{self.places['LIB']}", "-Wl,--disable-new-dtags", "-Wl,-rpath,$ORIGIN/../lib",
                 f"-Wl,-rpath,{self.places['TORCH']}", f"-Wl,-rpath-link,{self.places['LIB']}"]
        output = self.folder / "bin" / name
        self.call([self.compiler, "-o", output, *words, *paths], output)

    def all(self, tasks: list[Callable[[], None]]) -> None:
        """Does tasks side by side; none is begun after one has failed."""
        with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            futures = [pool.submit(task) for task in tasks]
            try:
                for future in concurrent.futures.as_completed(futures):
                    future.result()
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise

    def make(self) -> None:
        self.all([lambda unit=unit: self.compile(unit) for unit in self.units])
        for file in self.what.archives:
            self.archive(file)
        self.all([lambda name=name: self.link(name) for name in self.what.links])

    def install(self) -> None:
        """The programs into out/bin, with what they load beside them in out/lib."""
        for part in ("bin", "lib"):
            shutil.rmtree(self.out / part, ignore_errors=True)
        (self.out / "lib").mkdir()
        for file in missing_libraries(self.pack / "lib"):
            shutil.copyfile(file, self.out / "lib" / file.name)
        shutil.copytree(self.pack / "bin", self.out / "bin")
        for name in self.what.links:
            shutil.copy(self.folder / "bin" / name, self.out / "bin" / name)

    def measures(self, wall_s: float) -> dict:
        """What was compiled just now: the longest chain is the longest unit, the archives and the longest link, one after the other."""
        def longest(suffix: str) -> float:
            return max((cpu for name, cpu in self.cpu_s.items() if name.endswith(suffix)), default=0.0)
        archives = sum(cpu for name, cpu in self.cpu_s.items() if name.endswith(".a"))
        links = max((cpu for name, cpu in self.cpu_s.items() if name.startswith("bin/")), default=0.0)
        return {"units": sum(name.endswith(".o") for name in self.cpu_s), "cpu_s": round(sum(self.cpu_s.values()), 2),
                "chain_s": round(longest(".o") + archives + links, 2), "wall_s": round(wall_s, 2),
                "longest": max(self.cpu_s, key=self.cpu_s.get, default=None)}


def missing_libraries(folder: pathlib.Path) -> list[pathlib.Path]:
    """The libraries of a pack that this machine lacks. Its own are newer and may be in use by PyTorch: they come first."""
    system = [path for place in ("/lib", "/usr/lib") for path in (*pathlib.Path(place).glob("*-linux-gnu"), pathlib.Path(place + "64"))]
    files = [file for file in folder.iterdir() if not file.is_symlink() and libraries.is_elf(file)]
    return [file for file in files if not any((path / file.name).exists() for path in system)]


def build(pack: pathlib.Path, out: pathlib.Path, left_s: Callable[[], float], optimise: bool = True) -> dict | None:
    """Builds the programs of the pack from the sources of this checkout: into out/bin, with out/lib beside it.

    Nothing is done where they are there, made of the same; else gives what it measured.
    """
    if not (pack / recipe.FILE).exists():
        raise Failed(f"there is no pack in {pack}")
    this = Build(pack, out, left_s, find_torch(max(left_s(), 1)), optimise)
    check_c_library([*(pack / "bin").iterdir(), *missing_libraries(pack / "lib")])
    key, start = this.key(), time.monotonic()
    whole = key + contents_key(pack)
    if is_text(out / "bin/key", whole):
        return None
    if not is_text(this.folder / "key", key):
        shutil.rmtree(this.folder, ignore_errors=True)
        this.folder.mkdir(parents=True)
        (this.folder / "key").write_text(key)
    shutil.rmtree(this.folder / "bin", ignore_errors=True)  # another pack may have other libraries
    this.make()
    this.install()
    (out / "bin/key").write_text(whole)
    shutil.rmtree(this.folder)
    return this.measures(time.monotonic() - start)
