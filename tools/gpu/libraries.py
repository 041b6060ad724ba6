"""Shared libraries for a machine that lacks them: those that a program is linked with, and those that it loads in turn."""

import os
import pathlib
import re
import shutil

import packages
from packages import output

ELF = b"\x7fELF"
SCRIPT_WORDS = {"INPUT", "GROUP", "AS_NEEDED", "OUTPUT_FORMAT", "SEARCH_DIR", "VERSION"}


def find(name: str) -> pathlib.Path | None:
    """The file that the linker takes for a library's name."""
    path = pathlib.Path(os.path.normpath(output("c++", f"-print-file-name={name}").strip()))
    return path if path.is_absolute() and path.exists() else None


def is_elf(path: pathlib.Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == ELF


def of_script(text: str) -> list[str]:
    """What a linker script names, as file names: "libncursesw.so" is INPUT(libncursesw.so.6 -ltinfo)."""
    text = re.sub(r"(?s)/\*.*?\*/|OUTPUT_FORMAT\s*\([^)]*\)", " ", text)
    words = [word for word in re.findall(r"[^\s(),;]+", text) if word not in SCRIPT_WORDS]
    return [f"lib{word[2:]}.so" if word.startswith("-l") else word for word in words]


def soname(path: pathlib.Path) -> str:
    return re.search(r"SONAME\s+(\S+)", output("objdump", "-p", path))[1]


def loaded_by(program: pathlib.Path) -> list[pathlib.Path]:
    """The libraries that the loader takes for a program or library, under the names that it asks for."""
    return [pathlib.Path(path) for path in re.findall(r"=> (/\S+)", output("ldd", program))]


class Collection:
    """A folder of libraries, without those of `there`, the packages that the other machine has."""

    def __init__(self, folder: pathlib.Path, there: set[str]):
        self.folder, self.there = folder, there
        folder.mkdir(parents=True, exist_ok=True)

    def add_loaded(self, program: pathlib.Path) -> None:
        """Adds what a program loads; a library itself is not added."""
        paths = loaded_by(program)
        owner = packages.owners([path.resolve() for path in paths])
        for path in paths:
            if owner.get(str(path.resolve())) not in self.there and not (self.folder / path.name).exists():
                shutil.copyfile(path, self.folder / path.name)

    def add_linked(self, name: str) -> bool:
        """Adds what is linked by `name`, and all that it loads; False where there is no such library, or all machines have it."""
        path = find(name)
        if not path or packages.owners([path.resolve()]).get(str(path.resolve())) in self.there:
            return False
        if not is_elf(path):
            script = path.read_text()
            parts = of_script(script)
            for part in parts:
                self.add_linked(part if part.startswith("lib") else pathlib.Path(part).name)
            (self.folder / name).write_text("INPUT(" + " ".join(pathlib.Path(part).name for part in parts) + ")\n")
            return True
        asked = soname(path)
        if not (self.folder / asked).exists():
            shutil.copyfile(path, self.folder / asked)
        self.add_loaded(path)
        if name != asked:
            (self.folder / name).unlink(missing_ok=True)
            (self.folder / name).symlink_to(asked)
        return True


def needed_c_library(files: list[pathlib.Path]) -> str:
    """The oldest version of glibc that programs and libraries run with."""
    found = {version for file in files for version in re.findall(r"GLIBC_(\d+(?:\.\d+)+)", output("objdump", "-T", file))}
    return max(found, key=version_number, default="2.0")


def version_number(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))
