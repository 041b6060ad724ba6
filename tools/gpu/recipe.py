"""The build as a list of compiler calls, for a machine with a compiler but without CMake.

record() takes the calls that CMake would make here, with the places of things left open; build() fills them in there and
makes the calls. What is generated here, the sources that are compiled as one above all, goes along.
"""

import concurrent.futures
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
from collections.abc import Callable

import stage

TOOLS = pathlib.Path(__file__).resolve().parent.parent
ROOT = TOOLS.parent
CALLS = "calls.txt"
LIBRARY = re.compile(r"/usr/lib/[\w-]+/(lib[\w+.-]+\.so[\w.]*)")
DEPENDENCY_FILE = re.compile(r" -MD -MT \S+ -MF \S+")


class Failed(Exception):
    """A sentence for the user."""


def generalised(text: str, source: str, build: str) -> str:
    """`text` with the places of things left open: @NAME@ for each."""
    text = text.replace(build, "@GENERATED@").replace(source, "@SOURCE@")
    text = text.replace("-isystem /usr/include/torch/csrc/api/include", "@TORCH_FLAGS@")
    text = re.sub(r" -D_GLIBCXX_USE_CXX11_ABI=\d", "", text)  # of the libtorch here; @TORCH_FLAGS@ has that of the one there
    return LIBRARY.sub(lambda m: ("@TORCH@/" if m[1].startswith(("libtorch", "libc10")) else "@LIB@/") + m[1], text)


def call(line: str, source: str, build: str) -> str | None:
    """One line of ninja's as a call to make there, or nothing where it makes none."""
    line = line.removeprefix(": && ").removesuffix(" && :")
    line = re.sub(r"^\S*cmake -E rm -f \S+ && ", "", line)
    if "cmake" in line.split()[0]:
        return None
    # New compilers know new warnings, and nobody is there to follow them.
    line = DEPENDENCY_FILE.sub("", line).replace(" -Werror", "").replace("/usr/bin/", "")
    line = generalised(line, source, build)
    if " -c " in line:
        return line.replace(" -c ", " -isystem @INCLUDE@ -c ")
    return line + " @LINK_FLAGS@" if " -o " in line else line


def record(build: pathlib.Path, programs: list[str], folder: pathlib.Path) -> list[str]:
    """Writes the calls that make `programs` in the configured `build` to `folder`; gives the libraries they link."""
    lines = subprocess.run(["ninja", "-C", build, "-t", "commands", *programs], check=True, capture_output=True, text=True)
    calls = [c for line in lines.stdout.splitlines() if (c := call(line, str(ROOT), str(build)))]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / CALLS).write_text("\n".join(calls) + "\n")
    generated = {pathlib.Path(found) for line in calls for found in re.findall(r" -c @GENERATED@/(\S+)", line)}
    for name in list(generated):  # those compiled as one name others
        generated |= {pathlib.Path(found) for found in re.findall(rf'"{build}/([^"]+)"', (build / name).read_text())}
    for name in generated:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(generalised((build / name).read_text(), str(ROOT), str(build)))
    link = "\n".join(line for line in calls if "@LINK_FLAGS@" in line)
    named = {f"lib{name}.so" for name in re.findall(r" -l(?!dl\b|pthread\b)(\w+)", link)}
    return sorted(named | set(re.findall(r"@LIB@/(\S+)", link)))


def find_torch() -> dict[str, str]:
    """Where the PyTorch of this machine's python3 is, or else Debian's libtorch-dev, as words of a call."""
    found = subprocess.run([sys.executable, TOOLS / "python_torch.py"], capture_output=True, text=True, check=False)
    if found.returncode == 0:
        folder = pathlib.Path(found.stdout.strip())
        includes = [folder / "include", folder / "include/torch/csrc/api/include"]
        libraries, config = folder / "lib", folder / "share/cmake/Torch/TorchConfig.cmake"
    else:
        libraries = next(iter(pathlib.Path("/usr/lib").glob("*/libtorch.so")), None)
        if not libraries:
            raise Failed(f"there is no libtorch to build against: {found.stderr.strip()}, and Debian's libtorch-dev is not installed")
        libraries = libraries.parent
        includes = [pathlib.Path("/usr/include/torch/csrc/api/include")]
        config = libraries / "cmake/Torch/TorchConfig.cmake"
    flags = re.search(r'set\(TORCH_CXX_FLAGS "([^"]*)"', config.read_text())
    words = [f"-isystem {include}" for include in includes] + ([flags[1]] if flags else [])
    return {"TORCH": str(libraries), "TORCH_FLAGS": " ".join(words)}


def fill(text: str, places: dict) -> str:
    return re.sub(r"@([A-Z_]+)@", lambda m: str(places.get(m[1], m[0])), text)


def sources_key(calls: list[str], recipe: pathlib.Path) -> str:
    """Stands for all that a build is made of: its calls, what the recipe brings, and every source of this checkout."""
    key = hashlib.sha256("\n".join(calls).encode())
    for folder in [recipe, *sorted(path for path in ROOT.iterdir() if path.name != "build" and path.is_dir())]:
        for file in sorted(folder.rglob("*")):
            if file.suffix in {".cc", ".cxx", ".h"}:
                key.update(file.read_bytes())
    return key.hexdigest()


def is_text(file: pathlib.Path, text: str) -> bool:
    return file.exists() and file.read_text() == text


def make(line: str, folder: pathlib.Path, left_s: Callable[[], float]) -> None:
    """Makes one call, unless its output is there; the output appears whole or not at all."""
    output = re.search(r"(?: -o |^ar qc )(\S+)", line)[1]
    if (folder / output).exists():
        return
    (folder / output).parent.mkdir(parents=True, exist_ok=True)
    unfinished = output + ".unfinished"
    (folder / unfinished).unlink(missing_ok=True)
    if left_s() <= 0:
        raise Failed(f"no time was left for {output}; what was built is kept")
    command = re.sub(rf"(?<=\s){re.escape(output)}(?!\S)", unfinished, line)
    status, printed = stage.run(["sh", "-c", command], left_s(), cwd=folder)
    if status == stage.TIME_IS_OVER:
        raise Failed(f"{output} was not built in time; what was built before is kept")
    if status != 0:
        raise Failed(f"this call failed:\n{line}\n{printed}")
    (folder / unfinished).replace(folder / output)


def make_all(calls: list[str], folder: pathlib.Path, left_s: Callable[[], float]) -> None:
    """Makes the calls side by side; none is begun after one has failed."""
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        tasks = [pool.submit(make, line, folder, left_s) for line in calls]
        try:
            for task in concurrent.futures.as_completed(tasks):
                task.result()
        except BaseException:  # Ctrl-C, too
            pool.shutdown(cancel_futures=True)
            raise


def missing_libraries(folder: pathlib.Path) -> list[pathlib.Path]:
    """The libraries of a pack that this machine lacks. Its own are newer and may be in use by PyTorch: they come first."""
    system = [path for place in ("/lib", "/usr/lib") for path in (*pathlib.Path(place).glob("*-linux-gnu"), pathlib.Path(place + "64"))]
    files = [file for file in folder.iterdir() if not file.is_symlink()]
    return [file for file in files if not any((path / file.name).exists() for path in system)]


def build(pack: pathlib.Path, out: pathlib.Path, left_s: Callable[[], float]) -> None:
    """Builds the programs of the pack's recipe from the sources of this checkout: into out/bin, with out/lib beside it.

    Nothing is done where they are there, made of the same; what an unfinished build has made is kept in out/build.
    """
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")
    if not compiler:
        raise Failed("there is no C++ compiler: neither c++ nor g++ is on the PATH")
    recipe, libraries, folder = pack / "recipe", pack / "lib", out / "build"
    places = {"SOURCE": ROOT, "GENERATED": folder / "generated", "LIB": libraries, "INCLUDE": pack / "include", **find_torch()}
    run_path = f"'-Wl,-rpath,$ORIGIN/../lib' -Wl,-rpath,{places['TORCH']} -Wl,-rpath-link,{libraries}"
    places["LINK_FLAGS"] = f"-L{libraries} {run_path}"
    calls = [re.sub(r"^c\+\+ ", f"{compiler} ", line) for line in fill((recipe / CALLS).read_text(), places).splitlines()]
    key = sources_key(calls, recipe)
    if is_text(out / "bin/key", key):
        return
    if not is_text(folder / "key", key):
        shutil.rmtree(folder, ignore_errors=True)
    for file in recipe.rglob("*.c*"):
        to = folder / "generated" / file.relative_to(recipe)
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(fill(file.read_text(), places))
    (folder / "key").write_text(key)
    compiles = [line for line in calls if " -c " in line]
    links = [line for line in calls if "$ORIGIN" in line]
    make_all(sorted(compiles, key=lambda line: "torch" not in line), folder, left_s)  # libtorch's headers take long: they go first
    make_all([line for line in calls if line not in compiles and line not in links], folder, left_s)
    make_all(links, folder, left_s)
    (out / "lib").mkdir(exist_ok=True)
    for file in missing_libraries(libraries):
        shutil.copyfile(file, out / "lib" / file.name)
    shutil.rmtree(out / "bin", ignore_errors=True)
    shutil.copytree(folder / "bin", out / "bin")
    shutil.copyfile(folder / "key", out / "bin/key")
    shutil.rmtree(folder)
