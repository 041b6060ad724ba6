#!/usr/bin/env python3
"""Tests of the GPU lane: its pack, its build without CMake, its stages and its page."""

import contextlib
import gzip
import importlib
import io
import json
import os
import pathlib
import shlex
import struct
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import lane
import pack
import page
import readings
import recipe
import training

ROW = "GPU-1, A GPU, 81920, 1000, 40, 70.11, 400.00, 4, 16, 1410, 8.0"


def device(**changes) -> dict:
    reading = {"kind": "gpu", "uuid": "GPU-1", "model": "A GPU", "memory_bytes": 81920 * 2**20,
               "power_limit_watts": 400.0, "pcie_generation_max": 4, "pcie_width_max": 16, "sm_clock_max_mhz": 1410,
               "compute_capability": "8.0",
               "status": {"memory_used_bytes": 1200 * 2**20, "temperature_c": 42, "power_watts": 75.0}}
    return reading | changes


def differences(row: str = ROW, **changes) -> list[str]:
    return readings.differences(row, {"devices": [{"kind": "cpu"}, device(**changes)]})


class Differences(unittest.TestCase):
    def test_none_where_readings_are_near(self):
        self.assertEqual(differences(), [])

    def test_of_identity_and_capacity(self):
        self.assertEqual(len(differences(model="Another")), 1)
        self.assertEqual(len(differences(memory_bytes=40960 * 2**20)), 1)

    def test_a_reading_that_only_one_has(self):
        self.assertEqual(len(differences(power_limit_watts={"missing": "denied", "detail": "no"})), 1)
        self.assertEqual(len(differences(ROW.replace("400.00", "[N/A]"))), 1)
        missing = {"missing": "unsupported", "detail": "no"}
        self.assertEqual(differences(ROW.replace("400.00", "[N/A]"), power_limit_watts=missing), [])

    def test_a_reading_with_a_time_of_its_own(self):
        self.assertEqual(differences(power_limit_watts={"value": 400.0, "time_s": 1}), [])

    def test_a_gpu_that_is_not_listed(self):
        self.assertEqual(differences("GPU-2" + ROW[5:]), ["GPU-2 is missing from remuda's list"])


class Scratch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)


class Recipe(Scratch):
    def test_a_compile_leaves_its_places_open(self):
        line = ("/usr/bin/c++ -I/src -isystem /usr/include/torch/csrc/api/include -Werror -D_GLIBCXX_USE_CXX11_ABI=1 "
                "-MD -MT a.o -MF a.o.d -o a.o -c /src/build/u.cxx")
        self.assertEqual(recipe.call(line, "/src", "/src/build"),
                         "c++ -I@SOURCE@ @TORCH_FLAGS@ -o a.o -isystem @INCLUDE@ -c @GENERATED@/u.cxx")

    def test_a_link_names_each_library_by_where_it_comes_from(self):
        line = ": && /usr/bin/c++ a.o -o bin/a  /usr/lib/x86_64-linux-gnu/libtorch.so /usr/lib/x86_64-linux-gnu/libz.so -lxxhash && :"
        self.assertEqual(recipe.call(line, "/src", "/src/build"),
                         "c++ a.o -o bin/a  @TORCH@/libtorch.so @LIB@/libz.so -lxxhash @LINK_FLAGS@")

    def test_cmake_is_not_called(self):
        archive = ": && /usr/bin/cmake -E rm -f l.a && /usr/bin/ar qc l.a  a.o && /usr/bin/ranlib l.a && :"
        self.assertEqual(recipe.call(archive, "/src", "/b"), "ar qc l.a  a.o && ranlib l.a")
        self.assertIsNone(recipe.call("/usr/bin/cmake --regenerate-during-build -S/src -B/b", "/src", "/b"))

    def pack(self, source: str) -> pathlib.Path:
        """A pack whose recipe builds one program out of a generated file and a library."""
        folder = self.folder / "pack"
        (folder / "recipe/parts").mkdir(parents=True)
        (folder / "lib").mkdir()
        (folder / "recipe/parts/main.cc").write_text(source)
        (folder / "recipe/half.cc").write_text("int half() { return 21; }\n")
        (folder / "recipe/calls.txt").write_text(
            "c++ @TORCH_FLAGS@ -o out/main.o -isystem @INCLUDE@ -c @GENERATED@/parts/main.cc\n"
            "c++ -o out/half.o -isystem @INCLUDE@ -c @GENERATED@/half.cc\n"
            "ar qc out/libhalf.a out/half.o && ranlib out/libhalf.a\n"
            "c++ out/main.o -o bin/answer out/libhalf.a @LINK_FLAGS@\n")
        return folder

    def build(self, folder: pathlib.Path, left_s: float = 60, answer: int = 2) -> None:
        with mock.patch.object(recipe, "find_torch", lambda: {"TORCH": "/nowhere", "TORCH_FLAGS": f"-DANSWER={answer}"}):
            recipe.build(folder, self.folder, lambda: left_s)

    def answer(self) -> int:
        return subprocess.run([self.folder / "bin/answer"], check=False).returncode

    def test_calls_are_made_with_the_places_filled_in(self):
        self.build(self.pack("int half();\nint main() { return ANSWER * half(); }\n"))
        self.assertEqual(self.answer(), 42)

    def test_what_was_built_is_kept_until_something_changes(self):
        folder = self.pack("int half();\nint main() { return ANSWER * half(); }\n")
        self.build(folder)
        self.build(folder, left_s=0)  # needs no time
        with self.assertRaisesRegex(recipe.Failed, "no time was left for out/"):
            self.build(folder, left_s=0, answer=3)
        self.assertEqual(self.answer(), 42)
        self.build(folder, answer=3)
        self.assertEqual(self.answer(), 63)

    def test_a_build_goes_on_where_it_ended(self):
        late = self.folder / "late.h"
        folder = self.pack(f'#include "{late}"\nint half();\nint main() {{ return LATE * half(); }}\n')
        with self.assertRaisesRegex(recipe.Failed, "late.h"):
            self.build(folder)
        kept = self.folder / "build/out/half.o"
        other = self.folder / "other.cc"
        other.write_text("int half() { return 10; }\n")
        subprocess.run(["c++", "-c", other, "-o", kept], check=True)  # to be told from one that is made anew
        late.write_text("#define LATE 3\n")
        self.build(folder)
        self.assertEqual(self.answer(), 30)

    def test_a_library_that_the_machine_has_is_not_brought(self):
        (self.folder / "libc.so.6").touch()
        (self.folder / "libnobody-has-this.so.1").touch()
        (self.folder / "libnobody-has-this.so").symlink_to("libnobody-has-this.so.1")  # is for the linker
        self.assertEqual(recipe.missing_libraries(self.folder), [self.folder / "libnobody-has-this.so.1"])

    def test_a_call_that_fails_is_shown_with_what_it_said(self):
        with self.assertRaisesRegex(recipe.Failed, r"(?s)main\.cc.*no_such_function"):
            self.build(self.pack("int main() { return no_such_function(); }\n"))


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
        (earlier / "recipe").mkdir(parents=True)
        (earlier / "recipe/calls.txt").touch()
        pack.clear(earlier)
        self.assertFalse(earlier.exists())

    def test_env_names_the_folder_it_stands_in(self):
        (self.folder / "env").write_text(pack.ENV)
        done = subprocess.run(["bash", "-c", f". {shlex.quote(str(self.folder / 'env'))}; printenv GPU_PACK CPLUS_INCLUDE_PATH"],
                              capture_output=True, text=True, check=True, env={"PATH": os.environ["PATH"]})
        self.assertEqual(done.stdout.split(), [str(self.folder), f"{self.folder}/include"])


INVENTORY = {"devices": [{"kind": "cpu", "id": "cpu:0"}], "drivers": []}
FACTS = [{"fact": "order", "claim": "it is kept", "answer": "holds", "seen": "it was"},
         {"fact": "type", "claim": "it is right", "answer": "does not hold", "seen": "another"}]


class Lane(Scratch):
    """The lane over two programs that print what each test says."""

    def setUp(self):
        super().setUp()
        (self.folder / "bin").mkdir()
        self.program("remuda", 'case "$*" in "list --json") cat inventory.json ;; esac')
        self.program("gpu_facts", "echo a warning >&2; cat facts.json; echo another >&2; exit 1")
        (self.folder / "inventory.json").write_text(json.dumps(INVENTORY))
        (self.folder / "facts.json").write_text(json.dumps({"torch": "2.x", "facts": FACTS}))

    def program(self, name: str, script: str) -> None:
        file = self.folder / "bin" / name
        file.write_text(f'#!/bin/sh\ncd "{self.folder}"\necho "$*" >>calls\n{script}\n')
        file.chmod(0o755)

    def run_lane(self, *arguments: str, smi: str | None = None) -> tuple[int, str]:
        printed = io.StringIO()
        environment = {"PATH": "/usr/bin:/bin"}  # without a pack
        with mock.patch.dict(os.environ, environment, clear=True), mock.patch.object(readings, "query", lambda _: smi):
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
                try:
                    status = lane.main(["--out", str(self.folder / "out"), "--bin", str(self.folder / "bin"), *arguments])
                except SystemExit as end:
                    status = end.code
        return status, printed.getvalue()

    def saved(self) -> dict:
        return json.loads((self.folder / "out/results.json").read_text())

    def test_what_was_done_is_skipped_unless_asked_again(self):
        (self.folder / "inventory.json").write_text(json.dumps({"devices": [device()]}))
        self.assertEqual(self.run_lane("see", smi=ROW)[0], 0)
        first = (self.folder / "calls").read_text()
        self.assertIn("see: done before", self.run_lane("see", smi=ROW)[1])
        self.assertEqual((self.folder / "calls").read_text(), first)
        self.run_lane("see", "--again", smi=ROW)
        self.assertEqual((self.folder / "calls").read_text(), first * 2)

    def test_a_machine_without_a_gpu_is_no_failure(self):
        status, printed = self.run_lane("see", "page")
        self.assertEqual(status, 0)
        self.assertIn("no GPU here: there is no nvidia-smi to compare with", printed)
        self.assertIn("none: this page shows", (self.folder / "out/gpu.md").read_text())
        self.assertEqual(self.saved()["see"]["inventory"], INVENTORY)
        self.assertNotIn("done before", self.run_lane("see")[1])  # it may have one the next time

    def test_a_reading_that_differs_fails(self):
        (self.folder / "inventory.json").write_text(json.dumps({"devices": [device(model="Another")]}))
        status, printed = self.run_lane("see", smi=ROW)
        self.assertEqual(status, 1)
        self.assertIn("GPU-1 name: remuda says Another", printed)

    def test_a_fact_that_does_not_hold_fails_and_is_kept(self):
        status, printed = self.run_lane("facts")
        self.assertEqual(status, 1)
        self.assertIn("type: does not hold: another", printed)
        self.assertEqual(self.saved()["facts"]["facts"], FACTS)

    def test_facts_that_end_early_are_a_failure(self):
        self.program("gpu_facts", "echo lost; kill -SEGV $$")
        status, printed = self.run_lane("facts")
        self.assertEqual(status, 1)
        self.assertIn("gpu_facts ended with -11: lost", printed)

    def test_a_stage_ends_within_its_limit_and_is_not_done(self):
        self.program("gpu_facts", "sleep 5; cat facts.json")
        status, printed = self.run_lane("facts", "--limit", "1")
        self.assertEqual(status, 1)
        self.assertIn("gpu_facts ended with 124", printed)
        self.assertIn("not done within 1 s; ./dev gpu facts goes on", printed)
        self.assertFalse(self.saved()["facts"]["done"])

    def test_training_needs_a_gpu_where_one_is_asked_for(self):
        status, printed = self.run_lane("fashion")
        self.assertEqual(status, 0)
        self.assertIn("no GPU here: fashion was not trained", printed)

    def test_a_stage_that_is_none(self):
        status, printed = self.run_lane("fact")
        self.assertEqual(status, 2)
        self.assertIn("there is no stage 'fact'; there are build, see, facts, fashion, gpt, page", printed)

    def train(self, model: str = "gpt", devices: str = "cpu:0,cpu:1") -> tuple[int, str]:
        """Trains with the stand-in program; the plain loops are left out."""
        data = self.folder / "out/data"
        data.mkdir(parents=True, exist_ok=True)
        (data / "text-test.bin").touch()
        with mock.patch.object(training, "loop", lambda *_: {"samples_per_s": 50.0}):
            return self.run_lane("--devices", devices, model)

    def test_two_ranks_on_one_device_that_are_refused_are_a_failure(self):
        self.program("remuda", 'case $2 in --help-keys) exit ;; esac; grep -q slowdown $2 && { echo used twice; exit 2; }; echo {} >"$5"')
        status, _ = self.train()
        self.assertEqual(status, 1)
        self.assertEqual(self.saved()["gpt"]["wrong"], ["cpu:0 and a slower cpu:0: refused: used twice"])

    def test_two_ranks_on_one_device_learn_what_one_does(self):
        differs = "cpu:0 and a slower cpu:0: its first epoch ended with a loss of 2.6000, that of one rank with 2.5000"
        for loss, wrong in ((2.51, []), (2.6, [differs])):
            self.program("remuda", 'case $2 in --help-keys) exit ;; esac; loss=2.5; grep -q slowdown $2 && loss=%s; '
                         'echo "{\\"loss_per_epoch\\": [$loss]}" >"$5"' % loss)
            (self.folder / "out/results.json").unlink(missing_ok=True)
            self.train()
            self.assertEqual(self.saved()["gpt"]["wrong"], wrong)

    def test_a_run_that_fails_or_is_refused_is_a_failure(self):
        self.program("remuda", "case $2 in --help-keys) exit ;; esac; grep -q cpu:1 $2 && { echo no device; exit 2; }; exit 1")
        status, printed = self.train()
        self.assertEqual(status, 1)
        self.assertEqual(self.saved()["gpt"]["wrong"][:2], ["cpu:0: failed: exit status 1", "cpu:0 and cpu:1: refused: no device"])

    def test_runs_that_were_done_are_not_repeated(self):
        self.program("remuda", 'for last; do :; done; case $2 in --help-keys) ;; *) echo \'{"samples_per_s": 45}\' >"$5" ;; esac')
        self.assertEqual(self.train()[0], 0)
        self.assertEqual(self.saved()["gpt"]["runs"]["cpu:0"], {"samples_per_s": 45})
        saved = self.saved()
        saved["gpt"]["done"] = False
        del saved["gpt"]["runs"]["cpu:0"]
        (self.folder / "out/results.json").write_text(json.dumps(saved))
        (self.folder / "calls").unlink()
        self.train()
        self.assertEqual((self.folder / "calls").read_text().count("--quiet"), 1)

    def test_what_was_done_on_other_devices_does_not_count(self):
        self.program("remuda", 'case $2 in --help-keys) ;; *) echo {} >"$5" ;; esac')
        self.train(devices="cpu:0,cpu:1")
        self.assertEqual(self.train(devices="cpu:0,cpu:1")[1], "gpt: done before\n")
        self.assertIn("cpu:2 and cpu:3", self.train(devices="cpu:2,cpu:3")[1])
        self.assertNotIn("cpu:0", self.saved()["gpt"]["runs"])


class Loop(Scratch):
    def test_it_learns_and_says_how_fast(self):
        try:
            importlib.import_module("torch")
        except ImportError:
            self.skipTest("this Python has no PyTorch")
        (self.folder / "ab.bin").write_bytes(b"a\0b\0" * 800)
        job = self.folder / "job.toml"
        job.write_text(f"""model = {{vocabulary = 256, width = 16, depth = 1, heads = 2}}
data = {{format = "tokens", context = 16, train = {{tokens = "{self.folder}/ab.bin"}}}}
train = {{epochs = 10, max_steps = 30, global_batch = 10, learning_rate = 0.01}}""")
        done = subprocess.run([sys.executable, training.LOOP, job, "cpu", "fp32"], capture_output=True, text=True, check=True,
                              env=os.environ | {"OMP_NUM_THREADS": "1"})
        found = json.loads(done.stdout)
        self.assertEqual(found["steps"], 30)
        self.assertLess(found["loss"], 2)  # of 5.5 at the start
        self.assertGreater(found["samples_per_s"], 0)


class Runs(unittest.TestCase):
    def test_precisions_where_there_is_such_a_key(self):
        precisions = [run.precision for run in training.runs("gpu:0", "cpu:0", True) if run.devices == ["gpu:0"] and not run.plain]
        self.assertEqual(precisions, ["fp32", "bf16", "fp16", "auto"])
        self.assertEqual([run.precision for run in training.runs("gpu:0", "cpu:0", False) if not run.plain], [None, None, None])

    def test_the_second_rank_on_one_device_is_slowed(self):
        [twice] = [run for run in training.runs("gpu:0", "cpu:0", True) if run.slowed]
        shared = '\n[[device]]\nuse = "gpu:0"\nshared = true\n'
        self.assertEqual(twice.tables(), shared + shared + "slowdown = 2.0\n")
        [pair] = [run for run in training.runs("gpu:0", "cpu:0", True) if "cpu:0" in run.devices]
        self.assertNotIn("shared", pair.tables())


class Page(unittest.TestCase):
    def test_speed_is_held_against_the_loop_of_the_same_precision(self):
        runs = {"gpu:0, bf16": {"samples_per_s": 90.0, "loss_per_epoch": [2, 0.5], "test_accuracy": 0.875},
                "plain loop, bf16": {"samples_per_s": 100.0, "loss": 0.6}, "plain loop, fp32": {"samples_per_s": 10.0, "loss": 1}}
        text = page.training("T", {"runs": runs})
        self.assertIn("| gpu:0, bf16 | 90 | 0.90 |  | 0.5000 (87.5%) |  |", text)
        self.assertIn("| plain loop, bf16 | 100 |  |", text)

    def test_what_auto_stands_for_is_not_guessed(self):
        runs = {"gpu:0, auto": {"samples_per_s": 90.0}, "plain loop, fp32": {"samples_per_s": 45.0}}
        self.assertIn("| gpu:0, auto | 90 |  |", page.training("T", {"runs": runs}))
        self.assertIn("| gpu:0 | 90 | 2.00 |", page.training("T", {"runs": runs | {"gpu:0": {"samples_per_s": 90.0}}}))

    def test_what_was_refused_is_said_with_its_sentence(self):
        text = page.training("T", {"runs": {"gpu:0 twice": {"refused": "device gpu:0 is named twice"}}})
        self.assertIn("| gpu:0 twice | refused: device gpu:0 is named twice |", text)

    def test_the_machine_and_what_was_wrong(self):
        stages = {"see": {"when": "2026-01-02T03:04:05", "inventory": {"devices": [device()], "drivers": [{"version": "580.1"}]},
                          "wrong": ["GPU-1 name: remuda says A, the vendor's program B"]}}
        text = page.text(stages)
        for expected in ("| date | 2026-01-02 |", "| GPU | A GPU |", "| driver | 580.1 |", "* see: GPU-1 name: remuda says A"):
            self.assertIn(expected, text)


if __name__ == "__main__":
    unittest.main()
