#!/usr/bin/env python3
"""Makes a pack, builds from it where only g++, Python and libtorch are to be seen, and trains with what was built.

bare_test.py BUILD: BUILD is the folder of a build, of which the pack is made. What a machine with a GPU lacks is hidden in a
mount namespace, for which this must be root; exits 77 where it cannot be done. Headers and libraries that are not in the pack
fail the build or the runs, so it shows what a change of the sources would break there.

bare_test.py --without PART BUILD: the same without a part of the pack, as in include/tl or lib/libfmt.so.9, which must fail.
"""

import argparse
import json
import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import time

import libraries
import pack
import packages
import recipe

SKIPPED = 77
PROGRAMS = ["remuda", "remuda-train"]  # between them they link all that is packed
STAGES = ["build", "pair", "see"]
USR = pathlib.Path("/usr")
WHEEL = "lib/wheel"  # of /usr: as PyTorch's own package has them, beside what libtorch loads


def skip(reason: str) -> None:
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def multiarch() -> str:
    return libraries.output("c++", "-print-multiarch").strip()


class Hidden:
    """An upper layer for /usr that hides what such a machine lacks: all but what g++ and Python need, and libtorch."""

    def __init__(self, upper: pathlib.Path, host: pathlib.Path):
        self.upper, self.host = upper, host
        known = packages.installed()
        always = [name for name, package in known.items() if package["essential"]]
        self.torch_library = libraries.find("libtorch.so")
        self.torch_package = packages.owners([self.torch_library])[str(self.torch_library)]
        self.seen = self.paths(packages.needed_by("g++", "python3", *always, known=known))
        self.torch_seen = self.paths({self.torch_package})

    @staticmethod
    def paths(names: set[str]) -> set[str]:
        return {"/usr" + path if path.split("/")[1] in ("lib", "bin") else path for path in packages.files(names)}

    def hide(self, path: pathlib.Path) -> None:
        white = self.upper / path.relative_to(USR)
        white.parent.mkdir(parents=True, exist_ok=True)
        os.mknod(white, stat.S_IFCHR, os.makedev(0, 0))  # for overlayfs: there is no such file

    def hide_all_but(self, folder: pathlib.Path, seen: set[str]) -> None:
        for path in folder.iterdir():
            if str(path) not in seen and str(path.resolve()) not in seen:
                self.hide(path)

    def link(self, name: str, to: pathlib.Path) -> None:
        link = self.upper / WHEEL / name
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(self.host / to.resolve().relative_to("/"))

    def make(self) -> None:
        place = multiarch()
        headers = self.seen | self.torch_seen
        self.hide_all_but(USR / "include", headers)
        self.hide_all_but(USR / "include" / place, headers)
        self.hide_all_but(USR / "lib" / place, self.seen)
        self.hide_all_but(USR / "bin", self.seen)
        self.hide(USR / "local")
        torch = [self.torch_library.parent / name for name in ("libtorch.so", "libtorch_cpu.so", "libc10.so")]
        for path in torch:
            self.link(path.name, path)
            self.link(libraries.soname(path), path)
            for loaded in libraries.loaded_by(path):
                if not {str(loaded), f"/usr{loaded}", str(loaded.resolve())} & self.seen:
                    self.link(loaded.name, loaded)
        self.link("cmake", self.torch_library.parent / "cmake")


def run_inside(scratch: pathlib.Path) -> int:
    """In a mount namespace of its own: builds from the pack and runs the stages, with the rest hidden."""
    layers, host = scratch / "layers", scratch / "host"
    for folder in (layers, host):
        folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", layers], check=True)
    subprocess.run(["mount", "--bind", "/", host], check=True)
    upper, work = layers / "upper", layers / "work"
    for folder in (upper, work):
        folder.mkdir()
    Hidden(upper, host).make()
    subprocess.run(["mount", "-t", "overlay", "overlay", "-o", f"lowerdir=/usr,upperdir={upper},workdir={work}", "/usr"], check=True)
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(scratch), "LANG": "C.UTF-8"}
    for name in ("cmake", "ninja", "git", "ccache"):
        if subprocess.run(["sh", "-c", f"command -v {name}"], env=environment, stdout=subprocess.DEVNULL, check=False).returncode == 0:
            print(f"{name} is still to be seen")
            return 1
    script = '. "$1/pack/env" && shift && exec ./dev gpu --unoptimised --devices cpu:0,cpu:1 --limit 600 --out "$@"'
    return subprocess.run(["bash", "-c", script, "_", str(scratch), str(scratch / "out"), *STAGES], env=environment, cwd=recipe.ROOT,
                          check=False).returncode


def can_be_done() -> None:
    if os.geteuid() != 0:
        skip("this must be root, to hide what a machine with a GPU lacks")
    with tempfile.TemporaryDirectory() as folder:
        script = ('mount -t tmpfs tmpfs "$1" && mkdir "$1/u" "$1/w" && mount -t overlay overlay -o "lowerdir=/usr,upperdir=$1/u,workdir=$1/w" /usr')
        command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "_", folder]
        if (done := subprocess.run(command, capture_output=True, text=True, check=False)).returncode != 0:
            skip(f"no mount namespace with an overlay can be made here: {done.stderr.strip()}")
    if not libraries.find("libtorch.so"):
        skip("Debian's libtorch-dev is not installed")


def check(scratch: pathlib.Path) -> None:
    """What the stages have found, where they say that all is well."""
    stages = json.loads((scratch / "out/results.json").read_text())
    assert all(stages[name]["done"] for name in ("build", "pair")), stages
    assert all(run["samples_per_s"] > 0 for run in stages["pair"]["runs"].values()), stages["pair"]
    assert stages["see"]["inventory"]["devices"], stages["see"]
    assert "## Fashion-MNIST" in (scratch / "out/gpu.md").read_text()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--inside", type=pathlib.Path)
    parser.add_argument("--without", action="append", default=[])
    parser.add_argument("build", type=pathlib.Path)
    options = parser.parse_args()
    if options.inside:
        return run_inside(options.inside)
    can_be_done()
    with tempfile.TemporaryDirectory() as folder:
        scratch, start = pathlib.Path(folder), time.monotonic()
        (scratch / "pack").mkdir()
        pack.fill(scratch / "pack", options.build.resolve(), PROGRAMS)
        print(f"packed in {time.monotonic() - start:.0f} s", flush=True)
        for part in options.without:
            found = list((scratch / "pack").glob(part))
            assert found, f"there is no {part} in the pack"
            for path in found:
                subprocess.run(["rm", "-r", path], check=True)
        command = ["unshare", "--mount", "--propagation", "private", "python3", "-B", __file__, "--inside", scratch, options.build]
        status = subprocess.run(command, check=False).returncode
        if status == 0:
            check(scratch)
        print(f"status {status} after {time.monotonic() - start:.0f} s")
        return status


if __name__ == "__main__":
    sys.exit(main())
