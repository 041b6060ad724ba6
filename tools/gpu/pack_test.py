#!/usr/bin/env python3
"""Tests of what goes into a pack, of the recipe in it, and of the build that is made from it."""

import gzip
import json
import os
import pathlib
import shlex
import struct
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

import build
import libraries
import measured
import pack
import packages
import recipe

sys.path.append(str(recipe.TOOLS))
import python_torch


class Scratch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)


class Reading(Scratch):
    """A recipe out of ninja's commands."""

    def read(self, *lines: str) -> recipe.Recipe:
        reader = recipe.Reader(self.folder / "build", "/usr/bin/c++", self.folder)
        for line in lines:
            reader.take(line, ["engine", "look"])
        return reader.recipe

    def compile(self, source: str, out: str, more: str = "-isystem /usr/include/torch/csrc/api/include ") -> str:
        return (f"/usr/bin/cmake -E env A=b /usr/bin/ccache /usr/bin/c++ -I{self.folder} {more}-Werror -D_GLIBCXX_USE_CXX11_ABI=1 -O2 "
                f"-MD -MT {out} -MF {out}.d -o {out} -c {source}")

    def test_files_that_are_compiled_as_one_are_named_one_by_one(self):
        unity = self.folder / "build/t.dir/Unity/unity_0.cxx"
        unity.parent.mkdir(parents=True)
        unity.write_text(f'/* made by a program */\n#include "{self.folder}/t/a.cc"\n\n#include "{self.folder}/t/b.cc"\n')
        found = self.read(self.compile(str(unity), "t.dir/Unity/unity_0.cxx.o"), self.compile(f"{self.folder}/t/c.cc", "t.dir/c.cc.o"))
        self.assertEqual(found.units, {"t.dir": [{"flags": ["-I@SOURCE@", "-O2"], "sources": ["t/a.cc", "t/b.cc", "t/c.cc"]}]})
        self.assertEqual(found.torch_flags, ["-isystem", "/usr/include/torch/csrc/api/include", "-D_GLIBCXX_USE_CXX11_ABI=1"])

    def test_flags_of_its_own_make_a_group_of_its_own(self):
        found = self.read(self.compile(f"{self.folder}/t/a.cc", "t.dir/a.o"),
                          self.compile(f"{self.folder}/t/b.cc", "t.dir/b.o", "-DNDEBUG -isystem /usr/include/torch/csrc/api/include "))
        self.assertEqual([group["sources"] for group in found.units["t.dir"]], [["t/a.cc"], ["t/b.cc"]])

    def test_what_does_not_name_libtorch_is_not_compiled_there(self):
        self.assertEqual(self.read(self.compile(f"{self.folder}/t/a.cc", "t.dir/a.o", "")).units, {})

    def test_a_generated_source_that_names_libtorch_is_refused(self):
        made = self.folder / "build/made.cc"
        made.parent.mkdir()
        made.write_text("int f();\n")
        with self.assertRaisesRegex(recipe.Failed, "made.cc is made by the build"):
            self.read(self.compile(str(made), "t.dir/made.o"))

    def test_a_link_names_each_file_by_where_it_comes_from(self):
        archive = ": && /usr/bin/cmake -E rm -f t/libt.a && /usr/bin/ar qc t/libt.a  t.dir/a.o && /usr/bin/ranlib t/libt.a && :"
        link = (": && /usr/bin/c++ -O2 e.dir/main.o -o /b/bin/engine  t/libt.a /usr/lib/x86_64-linux-gnu/libtorch.so n/libn.a "
                "/usr/lib/x86_64-linux-gnu/libz.so -lxxhash && :")
        found = self.read(self.compile(f"{self.folder}/t/a.cc", "t.dir/a.o"), self.compile(f"{self.folder}/e/main.cc", "e.dir/main.o"),
                          archive, link)
        self.assertEqual(found.archives, {"t/libt.a": ["t.dir"]})
        self.assertEqual(found.links, {"engine": ["-O2", "@OBJECTS@/e.dir", "@BUILT@/t/libt.a", "@TORCH@/libtorch.so",
                                                  "@PACKED@/n/libn.a", "@LIB@/libz.so", "-lxxhash"]})
        self.assertEqual((found.packed, found.libraries), (["n/libn.a"], ["libz.so", "libxxhash.so"]))

    def test_a_program_without_libtorch_is_finished_here(self):
        found = self.read(": && /usr/bin/c++ l.dir/main.o -o bin/look n/libn.a -lxxhash && :")
        self.assertEqual(found.finished, {"look": ["l.dir/main.o", "n/libn.a", "-lxxhash"]})
        self.assertEqual((found.links, found.libraries), ({}, []))


class Packages(unittest.TestCase):
    KNOWN = {"g++": {"needs": ["gcc", "libc-dev"], "provides": [], "essential": False},
             "gcc": {"needs": ["g++", "not-installed"], "provides": [], "essential": False},
             "libc6-dev": {"needs": [], "provides": ["libc-dev"], "essential": False},
             "other": {"needs": ["gcc"], "provides": [], "essential": False}}

    def test_what_a_package_needs_in_turn(self):
        self.assertEqual(packages.needed_by("g++", known=self.KNOWN), {"g++", "gcc", "libc6-dev"})

    def test_names_in_a_relation(self):
        self.assertEqual(packages.names("libc6 (>= 2.35), python3:any | python3.11, "), ["libc6", "python3", "python3.11"])

    def test_the_owner_is_found_by_either_name_of_a_merged_folder(self):
        shell = packages.owners(["/usr/bin/dash", "/bin/dash", "/nobody/has/this"])
        self.assertEqual(shell, {"/usr/bin/dash": "dash", "/bin/dash": "dash"})


class Libraries(Scratch):
    """Libraries of the test's own: libouter.so, which loads libinner.so."""

    def setUp(self):
        super().setUp()
        self.system = self.folder / "system"
        self.system.mkdir()
        self.library("inner", "int inner() { return 20; }")
        self.library("outer", "int inner(); int outer() { return inner() + 1; }", "-linner")
        (self.folder / "main.cc").write_text("int outer(); int main() { return outer(); }\n")
        self.into = libraries.Collection(self.folder / "lib", pack.EVERYWHERE)
        environment = mock.patch.dict(os.environ, {"LIBRARY_PATH": str(self.system), "LD_LIBRARY_PATH": str(self.system)})
        environment.start()
        self.addCleanup(environment.stop)

    def library(self, name: str, text: str, *more: str) -> None:
        file = self.system / f"lib{name}.so"
        subprocess.run(["c++", "-shared", "-fPIC", "-x", "c++", "-", "-o", f"{file}.1", f"-Wl,-soname,{file.name}.1", f"-L{self.system}", *more],
                       input=text, text=True, check=True)
        file.symlink_to(f"{file.name}.1")

    def answer(self, name: str) -> int:
        """What the test's program answers, linked with what was collected and nothing else."""
        into, program = self.folder / "lib", self.folder / "program"
        with mock.patch.dict(os.environ, {"LIBRARY_PATH": "", "LD_LIBRARY_PATH": str(into)}):
            subprocess.run(["c++", self.folder / "main.cc", "-o", program, f"-L{into}", f"-l{name}", f"-Wl,-rpath-link,{into}"], check=True)
            return subprocess.run([program], check=False).returncode

    def test_a_library_comes_with_those_that_it_loads(self):
        self.assertTrue(self.into.add_linked("libouter.so"))
        self.assertEqual(sorted(file.name for file in (self.folder / "lib").iterdir()), ["libinner.so.1", "libouter.so", "libouter.so.1"])
        self.assertEqual(self.answer("outer"), 21)

    def test_a_linker_script_is_followed(self):
        (self.system / "libboth.so").write_text(
            f"/* a script; GROUP() */\nOUTPUT_FORMAT(elf64-x86-64)\nGROUP ( {self.system}/libouter.so.1 AS_NEEDED ( -linner ) )\n")
        self.assertTrue(self.into.add_linked("libboth.so"))
        self.assertEqual(self.answer("both"), 21)

    def test_what_every_machine_has_is_left_out(self):
        self.assertFalse(self.into.add_linked("libc.so"))
        self.assertFalse(self.into.add_linked("libdl.so"))  # is none any more
        self.assertEqual(list((self.folder / "lib").iterdir()), [])

    def test_the_c_library_that_is_needed(self):
        needed = libraries.needed_c_library([self.system / "libouter.so.1"])
        self.assertGreaterEqual(libraries.version_number(needed), (2, 0))
        self.assertGreater(libraries.version_number("2.36"), libraries.version_number("2.4"))
        build.check_c_library([self.system / "libouter.so.1"])
        with mock.patch.object(os, "confstr", lambda _: "glibc 1.9"), self.assertRaisesRegex(recipe.Failed, r"is glibc 1\.9; what was packed needs 2"):
            build.check_c_library([self.system / "libouter.so.1"])


class Compilers(Scratch):
    def compiler(self, name: str, *more: str) -> pathlib.Path:
        file = self.folder / name
        file.write_text(f"#!/bin/sh\nexec {shutil.which('c++')} {' '.join(more)} \"$@\"\n")
        file.chmod(0o755)
        return file

    def test_one_that_puts_the_library_into_its_programs_is_passed_over(self):
        with mock.patch.dict(os.environ, {"CXX": str(self.compiler("own", "-static-libstdc++"))}):
            self.assertEqual(build.find_compiler(), shutil.which("c++"))
        good = self.compiler("good")
        with mock.patch.dict(os.environ, {"CXX": str(good)}):
            self.assertEqual(build.find_compiler(), str(good))

    def test_where_there_is_no_other_one_it_is_refused(self):
        own = self.compiler("own", "-static-libstdc++")
        with (mock.patch.dict(os.environ, {"CXX": str(own)}), mock.patch.object(shutil, "which", lambda name: name if name == str(own) else None),
              self.assertRaisesRegex(recipe.Failed, f"{own} do not load libstdc.*set CXX")):
            build.find_compiler()
        with mock.patch.object(shutil, "which", lambda _: None), self.assertRaisesRegex(recipe.Failed, "no C\\+\\+ compiler"):
            build.find_compiler()


class Building(Scratch):
    """Builds from a pack of two folders of sources, a packed library and a finished program."""

    def setUp(self):
        super().setUp()
        self.source = self.folder / "checkout"
        self.pack = self.folder / "pack"
        for folder in (self.source / "t", self.pack / "lib", self.pack / "bin", self.pack / "built"):
            folder.mkdir(parents=True)
        (self.source / "t/half.cc").write_text("int other();\nint half() { return 20 + other(); }\n")
        (self.pack / "bin/look").write_text("#!/bin/sh\necho seen\n")
        (self.pack / "bin/look").chmod(0o755)
        (self.folder / "other.cc").write_text("int other() { return 1; }\n")
        subprocess.run(["c++", "-c", self.folder / "other.cc", "-o", self.folder / "other.o"], check=True)
        subprocess.run(["ar", "qcs", self.pack / "built/libother.a", self.folder / "other.o"], check=True)
        what = recipe.Recipe(units={"t.dir": [{"flags": ["-I@SOURCE@"], "sources": ["t/half.cc"]}],
                                    "e.dir": [{"flags": [], "sources": ["main.cc"]}]},
                             archives={"t/libt.a": ["t.dir"]},
                             links={"answer": ["@OBJECTS@/e.dir", "@BUILT@/t/libt.a", "@PACKED@/libother.a"]})
        what.save(self.pack / recipe.FILE)
        self.main("int half();\nint main() { return ANSWER * half(); }\n")
        for name, value in (("ROOT", self.source), ("BATCH", 2)):
            patch = mock.patch.object(build, name, value)
            patch.start()
            self.addCleanup(patch.stop)

    def main(self, text: str) -> None:
        (self.source / "main.cc").write_text(text)

    def build(self, left_s: float = 60, answer: int = 2) -> dict | None:
        with mock.patch.object(build, "find_torch", lambda _: {"TORCH": "/nowhere", "TORCH_FLAGS": f"-DANSWER={answer}"}):
            return build.build(self.pack, self.folder, lambda: left_s)

    def answer(self) -> int:
        return subprocess.run([self.folder / "bin/answer"], check=False).returncode

    def test_programs_lie_beside_those_that_were_finished(self):
        measures = self.build()
        self.assertEqual(self.answer(), 42)
        self.assertEqual(subprocess.run([self.folder / "bin/look"], capture_output=True, text=True, check=True).stdout, "seen\n")
        self.assertEqual(measures["units"], 2)
        self.assertGreaterEqual(measures["cpu_s"], measures["chain_s"])
        self.assertGreater(measures["chain_s"], 0)

    def test_what_was_built_is_kept_until_something_changes(self):
        self.build()
        self.assertIsNone(self.build(left_s=0))  # needs no time
        with self.assertRaisesRegex(recipe.Failed, "no time was left for"):
            self.build(left_s=0, answer=3)
        self.assertEqual(self.answer(), 42)
        self.build(answer=3)
        self.assertEqual(self.answer(), 63)

    def test_a_build_goes_on_where_it_ended(self):
        self.main('#include "late.h"\nint half();\nint main() { return LATE * half(); }\n')
        with self.assertRaisesRegex(recipe.Failed, "(?s)this call failed.*late.h"):
            self.build()
        kept = self.folder / "build/t.dir/t-half.o"
        (self.folder / "other.cc").write_text("int half() { return 10; }\n")
        subprocess.run(["c++", "-c", self.folder / "other.cc", "-o", kept], check=True)  # to be told from one that is made anew
        late = self.folder / "late"
        late.mkdir()
        (late / "late.h").write_text("#define LATE 3\n")
        with mock.patch.dict(os.environ, {"CPLUS_INCLUDE_PATH": str(late)}):
            self.build()
        self.assertEqual(self.answer(), 30)

    def test_what_is_built_in_the_checkout_is_no_source_of_it(self):
        words, out = ["c++"], self.source / "results"
        before = build.sources_key(words, self.pack, out)
        (out / "build").mkdir(parents=True)
        (out / "build/unit.cc").touch()
        self.assertEqual(build.sources_key(words, self.pack, out), before)
        (self.source / "t/new.h").write_text("int f();\n")
        self.assertNotEqual(build.sources_key(words, self.pack, out), before)

    def test_a_python_that_does_not_say_where_libtorch_is(self):
        (self.folder / "python3").write_text("#!/bin/sh\nexec sleep 60\n")
        (self.folder / "python3").chmod(0o755)
        with mock.patch.object(sys, "executable", str(self.folder / "python3")):
            with self.assertRaisesRegex(recipe.Failed, "did not import torch within"):
                build.find_torch(0.2)

    def test_a_pack_that_is_not_there_is_said(self):
        with self.assertRaisesRegex(recipe.Failed, "there is no pack in .*nowhere"):
            self.pack = self.folder / "nowhere"
            self.build()

    def test_batches_are_of_one_size_and_the_largest_go_first(self):
        for name, size in (("a", 10), ("b", 10), ("c", 500), ("d", 10)):
            (self.source / f"t/{name}.cc").write_text("/" * size)
        sources = ["t/a.cc", "t/b.cc", "t/c.cc", "t/d.cc"]
        what = recipe.Recipe(units={"t.dir": [{"flags": [], "sources": sources}], "e.dir": [{"flags": [], "sources": ["main.cc"]}]})
        self.assertEqual([unit.sources for unit in build.units(what, 3)], [["t/a.cc", "t/c.cc"], ["main.cc"], ["t/b.cc", "t/d.cc"]])

    def test_a_library_that_the_machine_has_is_not_brought(self):
        (self.pack / "lib/libc.so.6").write_bytes(libraries.ELF)
        (self.pack / "lib/libnobody-has-this.so.1").write_bytes(libraries.ELF)
        (self.pack / "lib/libnobody-has-this.so").symlink_to("libnobody-has-this.so.1")  # is for the linker, as is a script
        (self.pack / "lib/libscript.so").write_text("INPUT(libnobody-has-this.so.1)\n")
        self.assertEqual(build.missing_libraries(self.pack / "lib"), [self.pack / "lib/libnobody-has-this.so.1"])


class Torch(Scratch):
    def why_not(self, version: str, flags: str) -> str | None:
        for name in ("include/torch/csrc/api/include/torch/torch.h", "lib/libtorch.so", "share/cmake/Torch/TorchConfig.cmake"):
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(f'  set(TORCH_CXX_FLAGS "{flags}")\n')
        return python_torch.buildable(version, self.folder)

    def test_what_can_be_built_against(self):
        self.assertIsNone(self.why_not("2.11.0+cu130", "-D_GLIBCXX_USE_CXX11_ABI=1"))
        self.assertIsNone(self.why_not("2.14.1", ""))

    def test_the_old_string_abi_cannot(self):
        self.assertIn("strings as before C++11", self.why_not("2.5.1+cu121", "-D_GLIBCXX_USE_CXX11_ABI=0"))


class Measured(Scratch):
    def test_what_a_command_prints_and_how_it_ends(self):
        self.assertEqual(measured.run(["sh", "-c", "echo out; echo error >&2; exit 3"], 60), (3, "out\nerror\n"))
        self.assertEqual(measured.run(["/nowhere/program"], 60), (127, "there is no /nowhere/program here\n"))
        self.assertEqual(measured.run(["sh", "-c", "kill -SEGV $$"], 60)[0], -11)

    def test_cpu_time_is_that_of_the_command_and_what_it_started(self):
        _, _, cpu_s = measured.run_measured(["bash", "-c", "bash -c 'for ((i = 0; i < 100000; i++)); do :; done'; sleep 0.1"], 60)
        self.assertGreater(cpu_s, 0.02)

    def test_a_program_that_may_not_be_run(self):
        (self.folder / "program").write_text("#!/bin/sh\n")
        status, printed = measured.run([self.folder / "program"], 60)
        self.assertEqual((status, printed), (127, f"{self.folder}/program cannot be run: Permission denied\n"))

    def test_what_cannot_be_ended_is_not_waited_for(self):
        with mock.patch.object(os, "killpg"), mock.patch.object(measured, "DIES_WITHIN_S", 0.1):
            start = time.monotonic()
            self.assertEqual(measured.run(["sleep", "5"], 1)[0], measured.TIME_IS_OVER)
            self.assertLess(time.monotonic() - start, 4)

    def test_all_that_was_started_ends_with_the_time(self):
        status, printed = measured.run(["sh", "-c", "echo begun; sleep 60 & wait"], 1)
        self.assertEqual(status, measured.TIME_IS_OVER)
        self.assertEqual(printed, "begun\n\nended: the stage's time was over\n")


class Pack(Scratch):
    def test_the_first_images_of_a_file(self):
        whole, part = self.folder / "whole.gz", self.folder / "part.gz"
        header = bytes([0, 0, 8, 3]) + struct.pack(">III", 5, 2, 3)
        whole.write_bytes(gzip.compress(header + bytes(range(30))))
        pack.first_images(whole, part, 2)
        self.assertEqual(gzip.decompress(part.read_bytes()), bytes([0, 0, 8, 3]) + struct.pack(">III", 2, 2, 3) + bytes(range(12)))

    def test_a_byte_of_the_text_is_a_token(self):
        self.assertEqual(pack.tokens(b"ab\xff"), b"a\0b\0\xff\0")

    def test_the_list_has_each_file_with_its_hash(self):
        (self.folder / "data").mkdir()
        (self.folder / "data/a").write_text("hello")
        (self.folder / "data/link").symlink_to("a")
        self.assertEqual(pack.contents(self.folder), [{
            "path": "data/a", "bytes": 5, "sha256": "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"}])

    def test_only_an_earlier_pack_is_replaced(self):
        (self.folder / "thesis").touch()
        with self.assertRaisesRegex(recipe.Failed, "is no pack"):
            pack.clear(self.folder)
        self.assertTrue((self.folder / "thesis").exists())
        earlier = self.folder / "pack"
        earlier.mkdir()
        (earlier / recipe.FILE).write_text(json.dumps({}))
        pack.clear(earlier)
        self.assertFalse(earlier.exists())

    def make(self, folder: pathlib.Path, fail: bool = False) -> None:
        """Makes a pack of nothing, and may fail after its recipe was read."""
        def build_here(*_) -> None:
            if fail:
                raise recipe.Failed("the build failed")

        with (mock.patch.object(pack, "compiler_of"), mock.patch.object(recipe, "read", lambda *_: recipe.Recipe()),
              mock.patch.object(pack, "build_here", build_here), mock.patch.object(pack, "packages_of_headers", lambda *_: []),
              mock.patch.object(pack, "pack_data")):
            pack.make(folder, self.folder)

    def test_a_pack_that_was_cut_off_is_made_anew(self):
        folder = self.folder / "pack"
        with self.assertRaisesRegex(recipe.Failed, "the build failed"):
            self.make(folder, fail=True)
        (folder / "built").mkdir()
        self.make(folder)
        self.assertFalse((folder / "built").exists())
        self.assertTrue((folder / "list.json").exists())

    def test_a_link_to_a_pack_is_followed(self):
        link, folder = self.folder / "link", self.folder / "pack"
        link.symlink_to(folder)
        for _ in range(2):
            self.make(link)
            self.assertTrue((folder / "list.json").exists())
        self.assertTrue(link.is_symlink())

    def test_env_names_the_folder_it_stands_in(self):
        (self.folder / "env").write_text(pack.ENV)
        done = subprocess.run(["bash", "-c", f". {shlex.quote(str(self.folder / 'env'))}; printenv GPU_PACK"],
                              capture_output=True, text=True, check=True, env={"PATH": os.environ["PATH"]})
        self.assertEqual(done.stdout.split(), [str(self.folder)])


if __name__ == "__main__":
    unittest.main()
