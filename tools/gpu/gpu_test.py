#!/usr/bin/env python3
"""Tests of the GPU lane: its stages and its page."""

import contextlib
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

import jobs
import lane
import page
import readings
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


    def test_what_is_no_number_is_a_difference_and_not_the_end(self):
        for answer in ("N/A", "Unknown Error", ""):
            self.assertEqual(len(differences(ROW.replace("400.00", answer))), 1, answer)
        self.assertEqual(differences(ROW + "\n\n"), [])


class Scratch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)


INVENTORY = {"devices": [{"kind": "cpu", "id": "cpu:0"}], "drivers": []}
class Vendor(Scratch):
    """nvidia-smi, and what it may answer."""

    def answer(self, script: str) -> None:
        file = self.folder / "nvidia-smi"
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)
        path = mock.patch.dict(os.environ, {"PATH": f"{self.folder}:{os.environ['PATH']}"})
        path.start()
        self.addCleanup(path.stop)

    def test_memory_that_is_not_told_is_not_guessed(self):
        for answer in ("[N/A]", "[Insufficient Permissions]", "N/A", ""):
            self.answer(f"echo '{answer}'")
            with training.MemoryWatch() as watch:
                pass
            self.assertIsNone(watch.taken(), answer)

    def test_memory_of_the_first_gpu(self):
        self.answer("echo 100; echo 900")
        self.assertEqual(training.MemoryWatch.used(), 100 * 2**20)

    def test_no_device_is_no_answer(self):
        self.answer("echo No devices were found")
        self.assertIsNone(readings.query("name"))

    def test_one_that_does_not_answer_is_not_asked_again(self):
        self.answer(f"echo asked >>'{self.folder}/calls'; exec sleep 60")
        with mock.patch.object(readings, "ANSWERS_WITHIN_S", 0.2), mock.patch.object(readings, "hangs", False):
            self.assertIsNone(readings.query("name"))
            self.assertIsNone(readings.query("name"))
        self.assertEqual((self.folder / "calls").read_text(), "asked\n")


FACTS = [{"fact": "order", "claim": "it is kept", "answer": "holds", "seen": "it was"},
         {"fact": "type", "claim": "it is right", "answer": "does not hold", "seen": "another"}]


class OverPrograms(Scratch):
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
        with (mock.patch.dict(os.environ, environment, clear=True), mock.patch.object(readings, "query", lambda _: smi),
              mock.patch.object(lane, "PAGE", self.folder / "page.md")):
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
                try:
                    status = lane.main(["--out", str(self.folder / "out"), "--bin", str(self.folder / "bin"), *arguments])
                except SystemExit as end:
                    status = end.code
        return status, printed.getvalue()

    def saved(self) -> dict:
        return json.loads((self.folder / "out/results.json").read_text())

    def train(self, *stages: str, devices: str = "cpu:0,cpu:1") -> tuple[int, str]:
        """Trains with the stand-in program; the plain loops are left out."""
        data = self.folder / "out/data"
        data.mkdir(parents=True, exist_ok=True)
        (data / "text-test.bin").touch()
        for name in ("train", "t10k"):
            (data / f"{name}-images-idx3-ubyte.gz").touch()
        with mock.patch.object(training, "loop", lambda *_: {"samples_per_s": 50.0}):
            return self.run_lane("--devices", devices, *stages)


class Jobs(OverPrograms):
    """Over a remuda that says what a machine with one GPU would."""

    def setUp(self):
        super().setUp()
        self.say()
        for name, changed in (("STARTS_WITHIN_S", 0.2), ("SETTLES_WITHIN_S", 0), ("WORK_S", 0)):
            patch = mock.patch.object(jobs, name, changed)
            patch.start()
            self.addCleanup(patch.stop)

    def say(self, seen: str = "devices: 1", too_many: int = 3, busy: float = 0.9, memory_bytes: int = 5 << 20, detached: int = 0) -> None:
        at_work = device()
        at_work["status"] |= {"busy": busy, "processes": [{"pid": 7, "memory_bytes": memory_bytes}]}
        (self.folder / "inventory.json").write_text(json.dumps({"devices": [{"kind": "cpu"}, at_work]}))
        self.program("remuda", f"""case "$*" in
"list --json") cat inventory.json ;;
"run --quiet -- "*) echo "{seen}" ;;
"run --gpus 2 "*) exit {too_many} ;;
"run --quiet --detach "*) echo 4; exit {detached} ;;
*) echo "of $*" ;;
esac""")

    def test_a_gpu_at_work_is_looked_at(self):
        status, printed = self.run_lane("jobs", smi=ROW)
        self.assertEqual(status, 0, printed)
        self.assertEqual(self.saved()["jobs"]["shown"]["remuda ps, at work"], "of ps\n")
        self.assertIn("cancel 4\nwait 4\nusage\n", (self.folder / "calls").read_text())

    def test_what_is_not_as_it_should_be_is_said(self):
        for change, sentence in ({"seen": "devices: 2"}, "a job of one GPU ended with 0 and said: devices: 2"), ({"too_many": 0}, "ended with 0, not 3"), \
                ({"busy": 0.1}, "no GPU was busy while job 4 worked: of logs 4"), ({"memory_bytes": 0}, "no process is said to use memory"), \
                ({"detached": 5}, "remuda run --detach ended with 5: 4"):
            self.say(**change)
            status, printed = self.run_lane("jobs", "--again", smi=ROW)
            self.assertEqual(status, 1)
            self.assertIn(sentence, printed)
        self.say()
        self.assertIn("at work: GPU-1 power.draw: remuda says 75.0", self.run_lane("jobs", "--again", smi=ROW.replace("70.11", "700"))[1])

    def test_without_a_gpu_none_is_given(self):
        (self.folder / "inventory.json").write_text(json.dumps(INVENTORY))
        self.assertIn("no GPU here: no job was given one", self.run_lane("jobs")[1])


class Lane(OverPrograms):
    def test_what_was_done_is_skipped_unless_asked_again(self):
        (self.folder / "inventory.json").write_text(json.dumps({"devices": [device()]}))
        self.assertEqual(self.run_lane("see", smi=ROW)[0], 0)
        first = (self.folder / "calls").read_text()
        self.assertIn("| GPU | A GPU |", (self.folder / "page.md").read_text())
        self.assertIn("see: done before", self.run_lane("see", smi=ROW)[1])
        self.assertEqual((self.folder / "calls").read_text(), first)
        self.run_lane("see", "--again", smi=ROW)
        self.assertEqual((self.folder / "calls").read_text(), first * 2)

    def test_a_machine_without_a_gpu_is_no_failure(self):
        status, printed = self.run_lane("see", "page")
        self.assertEqual(status, 0)
        self.assertIn("no GPU here: there is no nvidia-smi to compare with", printed)
        self.assertIn("none: this page shows", (self.folder / "out/gpu.md").read_text())
        self.assertFalse((self.folder / "page.md").exists())
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

    def test_a_stage_that_breaks_does_not_take_others_with_it(self):
        self.program("remuda", "echo '{'")  # is no JSON
        self.assertEqual(self.run_lane("see", "facts")[0], 1)
        self.assertIn("JSONDecodeError", self.saved()["see"]["wrong"][0])
        self.assertFalse(self.saved()["see"].get("done"))
        self.assertEqual(self.saved()["facts"]["facts"], FACTS)

    def test_a_page_that_cannot_be_written_does_not_end_the_stages(self):
        (self.folder / "inventory.json").write_text(json.dumps({"devices": [device()]}))
        (self.folder / "page.md").mkdir()
        status, printed = self.run_lane("see", "facts", smi=ROW)
        self.assertEqual(status, 1)
        self.assertIn("the page cannot be made: IsADirectoryError", printed)
        self.assertEqual(self.saved()["facts"]["facts"], FACTS)

    def test_programs_have_a_place_for_scratch_files(self):
        self.program("remuda", "echo at ${TMPDIR:-/tmp}")
        for access, place in ((True, "/tmp"), (False, self.folder / "out")):
            with mock.patch.object(os, "access", lambda *_, found=access: found):
                self.run_lane("links", "--again")
            self.assertEqual(self.saved()["links"]["shown"]["remuda bench links"], f"at {place}\n")

    def test_links_that_cannot_be_measured_are_a_failure(self):
        self.program("remuda", "echo no device; exit 1")
        self.assertEqual(self.run_lane("links")[0], 1)
        self.assertEqual(self.saved()["links"]["wrong"], ["remuda bench links ended with 1: no device"])

    def test_a_stage_ends_within_its_limit_and_is_not_done(self):
        self.program("gpu_facts", "sleep 5; cat facts.json")
        status, printed = self.run_lane("facts", "--limit", "1")
        self.assertEqual(status, 1)
        self.assertIn("gpu_facts ended with 124", printed)
        self.assertIn("not done within 1 s; ./dev gpu facts goes on", printed)
        self.assertFalse(self.saved()["facts"]["done"])

    def test_all_that_was_started_ends_with_the_lane(self):
        self.program("gpu_facts", "sleep 60 & echo $! >pid; wait")
        command = [sys.executable, "-B", lane.__file__, "--out", self.folder / "out", "--bin", self.folder / "bin", "facts"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        while not (pid := self.folder / "pid").exists() or not pid.read_text():
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(30), -signal.SIGTERM)
        for _ in range(1000):
            if not pathlib.Path("/proc", pid.read_text().strip()).exists():
                return
            time.sleep(0.01)
        self.fail("what the stage had started still runs")

    def test_training_needs_a_gpu_where_one_is_asked_for(self):
        status, printed = self.run_lane("alone")
        self.assertEqual(status, 0)
        self.assertIn("no GPU here: fashion was not trained", printed)

    def test_a_stage_that_is_none(self):
        status, printed = self.run_lane("fact")
        self.assertEqual(status, 2)
        self.assertIn("there is no stage 'fact'; there are build, facts, alone, pair, twice, see, jobs, links, gpt, switches, page", printed)

    def test_all_stages_together_end_in_time(self):
        limits = {name: limit_s for name, (_, limit_s) in lane.STAGES.items()}
        self.assertLessEqual(sum(limits.values()), 540)
        self.assertLessEqual(sum(limits.values()) - limits["build"], 480)

    def test_the_page_is_there_after_each_stage(self):
        self.run_lane("facts")
        self.assertIn("type | it is right | does not hold", (self.folder / "out/gpu.md").read_text())


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
