#!/usr/bin/env python3
"""Collects what `./dev gpu` needs on a machine that has a GPU, PyTorch and a compiler, but no packages.

pack.py FOLDER, by `./dev gpu --pack FOLDER`: recipe/ with the compiler calls of the build, include/ and lib/ with what they
need of packages, data/ with a part of Fashion-MNIST and a text as tokens, env with the paths, and list.json, which has each
file with its size, hash and package. The sources are the checkout itself.
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

import recipe

PROGRAMS = ["remuda", "remuda-train", "gpu_facts"]
HEADERS = ["nlohmann-json3-dev", "libcli11-dev", "libexpected-dev"]  # packages without a library to link
SYSTEM = re.compile(r"/(ld-linux[-.\w]*|libc|libm|libdl|libpthread|librt|libstdc\+\+|libgcc_s)\.so")
MOST_BYTES = 25 * 10**6
MOST_TOGETHER_BYTES = 64 * 10**6
FASHION = pathlib.Path("/usr/share/datasets/fashion-mnist")
TEXTS = pathlib.Path("/usr/share/common-licenses")
ENV = """\
# To be read by bash: . FOLDER/env
GPU_PACK=$(cd "$(dirname "${BASH_SOURCE:?read this with bash}")" && pwd)
export GPU_PACK
export CPLUS_INCLUDE_PATH="$GPU_PACK/include${CPLUS_INCLUDE_PATH:+:$CPLUS_INCLUDE_PATH}"
export LIBRARY_PATH="$GPU_PACK/lib${LIBRARY_PATH:+:$LIBRARY_PATH}"
"""


def output(*command) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def library_path(name: str) -> pathlib.Path:
    return next(pathlib.Path("/usr/lib").glob(f"*/{name}"))


def development_package(name: str) -> str:
    """The Debian package with the headers of a library, which is linked by `name`, perhaps with its version."""
    return output("dpkg", "-S", library_path(name.split(".so")[0] + ".so")).split(":")[0]


def pack_headers(package: str, to: pathlib.Path) -> None:
    """Copies a package's headers. Those that Debian keeps apart by architecture go beside the others."""
    for line in output("dpkg", "-L", package).splitlines():
        found = re.match(r"/usr/include/(?:[\w]+-linux-gnu/)?(.+)", line)
        if found and pathlib.Path(line).is_file():
            (to / found[1]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(line, to / found[1])


def pack_library(name: str, to: pathlib.Path) -> None:
    """Copies a library that is linked by `name`, and those that it needs in turn, under the names the loader asks for."""
    linked = library_path(name)
    soname = re.search(r"SONAME\s+(\S+)", output("objdump", "-p", linked))[1]
    needed = re.findall(r"=> (/\S+)", output("ldd", linked))
    for path in [linked.parent / soname, *map(pathlib.Path, needed)]:
        if not SYSTEM.search(str(path)) and not (to / path.name).exists():
            shutil.copyfile(path, to / path.name)
    if name != soname:
        (to / name).unlink(missing_ok=True)
        (to / name).symlink_to(soname)


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
    to.mkdir()
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
    names = output("git", "-C", recipe.ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    return sum((recipe.ROOT / name).stat().st_size for name in names if name and (recipe.ROOT / name).is_file())


def clear(folder: pathlib.Path) -> None:
    """Takes an earlier pack away; what is none is left alone."""
    if not folder.is_dir() or (any(folder.iterdir()) and not (folder / "recipe" / recipe.CALLS).exists()):
        raise recipe.Failed(f"{folder} is there and is no pack; name a folder that is new, empty or an earlier pack")
    shutil.rmtree(folder)


def make(folder: pathlib.Path, build: pathlib.Path) -> dict:
    """Fills `folder`; gives what stands in its list."""
    if folder.exists():
        clear(folder)
    (folder / "lib").mkdir(parents=True)
    libraries = recipe.record(build, PROGRAMS, folder / "recipe")
    packages = sorted({development_package(name) for name in libraries} | set(HEADERS))
    for package in packages:
        pack_headers(package, folder / "include")
    for name in libraries:
        pack_library(name, folder / "lib")
    pack_data(folder / "data")
    (folder / "env").write_text(ENV)
    files = contents(folder)
    versions = {package: output("dpkg-query", "-W", "-f", "${Version}", package) for package in packages}
    listing = {"made": datetime.datetime.now().isoformat(timespec="seconds"), "commit": output("git", "rev-parse", "HEAD").strip(),
               "bytes": sum(file["bytes"] for file in files), "tree_bytes": tree_bytes(), "packages": versions, "files": files}
    (folder / "list.json").write_text(json.dumps(listing, indent=1) + "\n")
    return listing


def main() -> int:
    folder, build = map(pathlib.Path, sys.argv[1:])
    try:
        listing = make(folder, build.resolve())
    except recipe.Failed as error:
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
