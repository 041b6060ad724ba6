"""What Debian's package manager knows: which package a file is of, what a package needs, and which files it has."""

import re
import subprocess
from collections.abc import Iterable


def output(*command) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def owners(paths: Iterable) -> dict[str, str]:
    """The package of each path; one that is of no package is left out. /lib may be named for /usr/lib, and the other way round."""
    paths = [str(path) for path in paths]
    asked = sorted({name for path in paths for name in (path, *other_name(path))})
    done = subprocess.run(["dpkg", "-S", *asked], capture_output=True, text=True, check=False) if asked else None
    found = dict(reversed(line.rsplit(": ", 1)) for line in (done.stdout.splitlines() if done else []) if not line.startswith("diversion"))
    named = {path: next((found[name] for name in (path, *other_name(path)) if name in found), None) for path in paths}
    return {path: packages.split(", ")[0].split(":")[0] for path, packages in named.items() if packages}


def other_name(path: str) -> list[str]:
    if path.startswith("/usr/"):
        return [path[4:]]
    return ["/usr" + path] if re.match(r"/(lib|lib64|bin|sbin)/", path) else []


def installed() -> dict[str, dict]:
    """What each installed package needs and stands for, and whether every Debian has it."""
    fields = "${db:Status-Status}\t${Package}\t${Depends}, ${Pre-Depends}\t${Provides}\t${Essential}\n"
    found = {}
    for line in output("dpkg-query", "-W", "-f", fields).splitlines():
        status, name, needs, provides, essential = line.split("\t")
        if status == "installed":
            found[name] = {"needs": names(needs), "provides": names(provides), "essential": essential == "yes"}
    return found


def names(relation: str) -> list[str]:
    """The packages of "a (>= 1), b:any | c"; all of a choice."""
    return [name for part in re.split(r"[,|]", relation) if (name := re.sub(r"\(.*|:\w+", "", part).strip())]


def needed_by(*roots: str, known: dict[str, dict] | None = None) -> set[str]:
    """The installed packages among `roots` and all that they need in turn."""
    known = installed() if known is None else known
    provided: dict[str, list[str]] = {}
    for name, package in known.items():
        for other in package["provides"]:
            provided.setdefault(other, []).append(name)
    found, open_ends = set(), list(roots)
    while open_ends:
        name = open_ends.pop()
        for package in [name] if name in known else provided.get(name, []):
            if package not in found:
                found.add(package)
                open_ends += known[package]["needs"]
    return found


def files(packages: Iterable[str]) -> list[str]:
    """All paths of packages, folders among them."""
    return sorted({line for line in output("dpkg", "-L", *sorted(packages)).splitlines() if line.startswith("/")})
