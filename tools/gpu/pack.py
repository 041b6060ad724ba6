#!/usr/bin/env python3
"""Collects what `./dev gpu` needs on a machine that has a GPU, PyTorch and a compiler, but no packages.

pack.py FOLDER BUILD, by `./dev gpu --pack FOLDER`, with the folder of a configured build. Into FOLDER:

  bin/         the programs that need no libtorch, finished
  built/       libraries of the build for those that do
  recipe.json  what is compiled there, and how
  include/     headers of packages that those files include, as the compiler says
  lib/         libraries of packages that any of it is linked with or loads
  data/        a part of Fashion-MNIST and a text as tokens
  env          to be read by bash there
  list.json    each file with its size and hash, and the packages

The sources are the checkout itself.
"""

import datetime
import gzip
import hashlib
import json
import pathlib
import re
import shutil
import struct
import subprocess
import sys

import libraries
import packages
import recipe
from packages import output
from recipe import ROOT, Failed, Recipe

PROGRAMS = ["remuda", "remuda-train", "gpu_facts"]
EVERYWHERE = {"libc6", "libc6-dev", "libgcc-s1", "libstdc++6"}  # what g++ brings on any Linux
MOST_BYTES = 40 * 10**6
MOST_TOGETHER_BYTES = 64 * 10**6
FASHION = pathlib.Path("/usr/share/datasets/fashion-mnist")
TEXTS = pathlib.Path("/usr/share/common-licenses")
ENV = """\
# To be read by bash: . FOLDER/env
GPU_PACK=$(cd "$(dirname "${BASH_SOURCE:?read this with bash}")" && pwd)
export GPU_PACK
"""


def compiler_of(build: pathlib.Path) -> str:
    return re.search(r"^CMAKE_CXX_COMPILER:\w+=(.*)$", (build / "CMakeCache.txt").read_text(), re.MULTILINE)[1]


def included(what: Recipe, compiler: str) -> list[str]:
    """Every header outside of the checkout that the sources include, in turn too, as the compiler says."""
    found: set[str] = set()
    for group in (group for groups in what.units.values() for group in groups):
        flags = recipe.places(group["flags"], {"SOURCE": str(ROOT)}) + what.torch_flags
        text = "".join(f'#include "{ROOT / source}"\n' for source in group["sources"])
        done = subprocess.run([compiler, *flags, "-M", "-x", "c++", "-"], input=text, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Failed(f"the compiler cannot read {group['sources'][0]} and those compiled with it:\n{done.stderr}")
        found.update(done.stdout.replace("\\\n", " ").split())
    return sorted(name for name in found if name.startswith("/") and not pathlib.Path(name).is_relative_to(ROOT))


def packages_of_headers(headers: list[str], torch_flags: list[str]) -> list[str]:
    """The packages that bring `headers`, but not what g++ and libtorch bring."""
    torch = [folder for folder in torch_flags if recipe.TORCH in folder]
    headers = [name for name in headers if not any(name.startswith(folder.removesuffix(recipe.TORCH)) for folder in torch
                                                   if "site-packages" in folder or "dist-packages" in folder)]
    owner = packages.owners(headers)
    if unknown := [name for name in headers if name not in owner]:
        raise Failed(f"{unknown[0]} is of no Debian package; it cannot be told what else belongs to it")
    torch_package = set(packages.owners(f"{folder}/torch/torch.h" for folder in torch).values())
    return sorted(set(owner.values()) - packages.needed_by("g++") - torch_package)


def pack_headers(package: str, to: pathlib.Path) -> None:
    """Copies a package's headers. Those that Debian keeps apart by architecture go beside the others."""
    for line in packages.files([package]):
        found = re.match(r"/usr/include/(?:[\w]+-linux-gnu/)?(.+)", line)
        if found and pathlib.Path(line).is_file():
            (to / found[1]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(line, to / found[1])


def finish(name: str, words: list[str], compiler: str, build: pathlib.Path, to: pathlib.Path) -> None:
    """Links a program so that it finds its libraries in ../lib."""
    to.mkdir(exist_ok=True)
    paths = ["-s", "-Wl,--disable-new-dtags", "-Wl,-rpath,$ORIGIN/../lib"]
    done = subprocess.run([compiler, "-o", str((to / name).resolve()), *words, *paths], cwd=build, capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        raise Failed(f"{name} cannot be linked:\n{done.stderr}")


def build_here(build: pathlib.Path, names: list[str]) -> None:
    done = subprocess.run(["ninja", "-C", build, *names], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"the build failed:\n{done.stdout[-4000:]}")


def first_images(source: pathlib.Path, to: pathlib.Path, count: int) -> None:
    """Writes the first `count` entries of an IDX file."""
    whole = gzip.decompress(source.read_bytes())
    dimensions = struct.unpack_from(f">{whole[3]}I", whole, 4)
    entry = 1
    for size in dimensions[1:]:
        entry *= size
    start = 4 + 4 * whole[3]
    header = whole[:4] + struct.pack(f">{whole[3]}I", count, *dimensions[1:])
    to.write_bytes(gzip.compress(header + whole[start:start + count * entry], mtime=0))


def pack_data(to: pathlib.Path) -> None:
    to.mkdir(exist_ok=True)
    for part, count in (("train", 10000), ("t10k", 2000)):
        for kind in ("images-idx3", "labels-idx1"):
            name = f"{part}-{kind}-ubyte.gz"
            first_images(FASHION / name, to / name, count)
    text = b"".join(path.read_bytes() for path in sorted(TEXTS.iterdir()) if not path.is_symlink())
    cut = len(text) * 9 // 10
    (to / "text-train.bin").write_bytes(tokens(text[:cut]))
    (to / "text-test.bin").write_bytes(tokens(text[cut:]))


def tokens(text: bytes) -> bytes:
    """Each byte as a token: two bytes, the lower first."""
    return b"".join(bytes([byte, 0]) for byte in text)


def contents(folder: pathlib.Path) -> list[dict]:
    """Each file of the pack."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink()]
    return [{"path": str(path.relative_to(folder)), "bytes": path.stat().st_size,
             "sha256": hashlib.sha256(path.read_bytes()).hexdigest()} for path in files]


def tree_bytes() -> int:
    names = output("git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    return sum((ROOT / name).stat().st_size for name in names if name and (ROOT / name).is_file())


def clear(folder: pathlib.Path) -> None:
    """Takes an earlier pack away; what is none is left alone."""
    if not folder.is_dir() or (any(folder.iterdir()) and not (folder / recipe.FILE).exists()):
        raise Failed(f"{folder} is there and is no pack; name a folder that is new, empty or an earlier pack")
    shutil.rmtree(folder)


def fill(folder: pathlib.Path, build: pathlib.Path, programs: list[str]) -> list[str]:
    """Writes all but the list; gives the packages whose headers are in it."""
    compiler, what = compiler_of(build), recipe.read(build, programs)
    what.save(folder / recipe.FILE)  # first: it marks a pack, also one that is not whole
    build_here(build, [*what.finished, *what.packed])
    for file in what.packed:
        (folder / "built" / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(build / file, folder / "built" / file)
    headers = packages_of_headers(included(what, compiler), what.torch_flags)
    for package in headers:
        pack_headers(package, folder / "include")
    brought = libraries.Collection(folder / "lib", EVERYWHERE)
    for name in what.libraries:
        brought.add_linked(name)
    for name, words in what.finished.items():
        finish(name, words, compiler, build, folder / "bin")
        brought.add_loaded(folder / "bin" / name)
    pack_data(folder / "data")
    (folder / "env").write_text(ENV)
    return headers


def make(folder: pathlib.Path, build: pathlib.Path) -> dict:
    """Fills `folder`; gives what stands in its list."""
    folder = folder.resolve()
    if folder.exists():
        clear(folder)
    folder.mkdir(parents=True)
    headers = fill(folder, build, PROGRAMS)
    files = contents(folder)
    versions = {package: output("dpkg-query", "-W", "-f", "${Version}", package) for package in headers}
    listing = {"made": datetime.datetime.now().isoformat(timespec="seconds"), "commit": output("git", "-C", ROOT, "rev-parse", "HEAD").strip(),
               "bytes": sum(file["bytes"] for file in files), "tree_bytes": tree_bytes(), "headers": versions, "files": files}
    (folder / "list.json").write_text(json.dumps(listing, indent=1) + "\n")
    return listing


def main() -> int:
    folder, build = map(pathlib.Path, sys.argv[1:])
    try:
        listing = make(folder, build.resolve())
    except Failed as error:
        print(f"pack.py: {error}", file=sys.stderr)
        return 2
    parts: dict[str, int] = {}
    for file in listing["files"]:
        part = file["path"].split("/")[0]
        parts[part] = parts.get(part, 0) + file["bytes"]
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file() and not file.is_symlink())
    together = size + listing["tree_bytes"]
    words = ", ".join(f"{part} {count / 1e6:.1f}" for part, count in parts.items())
    print(f"{folder}: {size / 1e6:.1f} MB ({words}), with the checkout's {listing['tree_bytes'] / 1e6:.1f} MB {together / 1e6:.1f} MB")
    if size > MOST_BYTES or together > MOST_TOGETHER_BYTES:
        print(f"pack.py: at most {MOST_BYTES / 1e6:.0f} MB may be packed, {MOST_TOGETHER_BYTES / 1e6:.0f} MB together", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
