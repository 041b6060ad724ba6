#!/usr/bin/env python3
"""Tests of the GPU lane: its stages and its page."""

import contextlib
import importlib
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

import lane
import measured
import page
import readings
import switches
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
        self.assertIn("there is no stage 'fact'; there are build, facts, alone, pair, twice, see, links, gpt, switches, page", printed)

    def test_all_stages_together_end_in_time(self):
        limits = {name: limit_s for name, (_, limit_s) in lane.STAGES.items()}
        self.assertLessEqual(sum(limits.values()), 540)
        self.assertLessEqual(sum(limits.values()) - limits["build"], 480)

    def test_the_page_is_there_after_each_stage(self):
        self.run_lane("facts")
        self.assertIn("type | it is right | does not hold", (self.folder / "out/gpu.md").read_text())

    def train(self, *stages: str, devices: str = "cpu:0,cpu:1") -> tuple[int, str]:
        """Trains with the stand-in program; the plain loops are left out."""
        data = self.folder / "out/data"
        data.mkdir(parents=True, exist_ok=True)
        (data / "text-test.bin").touch()
        for name in ("train", "t10k"):
            (data / f"{name}-images-idx3-ubyte.gz").touch()
        with mock.patch.object(training, "loop", lambda *_: {"samples_per_s": 50.0}):
            return self.run_lane("--devices", devices, *stages)

    def test_two_ranks_on_one_device_that_are_refused_are_a_failure(self):
        self.program("remuda", 'case $2 in --help-keys) exit ;; esac; grep -q slowdown $2 && { echo used twice; exit 2; }; echo {} >"$5"')
        status, _ = self.train("gpt")
        self.assertEqual(status, 1)
        self.assertEqual(self.saved()["gpt"]["wrong"], ["cpu:0 and a slower cpu:0: refused: used twice"])

    def test_two_ranks_on_one_device_learn_what_one_does(self):
        differs = "cpu:0 and a slower cpu:0: its first epoch ended with a loss of 2.6000, that of one rank with 2.5000"
        for loss, wrong in ((2.51, []), (2.6, [differs])):
            self.program("remuda", 'case $2 in --help-keys) exit ;; esac; loss=2.5; grep -q slowdown $2 && loss=%s; '
                         'echo "{\\"loss_per_epoch\\": [$loss]}" >"$5"' % loss)
            (self.folder / "out/results.json").unlink(missing_ok=True)
            self.train("gpt")
            self.assertEqual(self.saved()["gpt"]["wrong"], wrong)

    def test_a_run_that_fails_or_is_refused_is_a_failure(self):
        self.program("remuda", "case $2 in --help-keys) exit ;; esac; grep -q cpu:1 $2 && { echo no device; exit 2; }; exit 1")
        status, printed = self.train("gpt")
        self.assertEqual(status, 1)
        self.assertEqual(self.saved()["gpt"]["wrong"][:2], ["cpu:0: failed: exit status 1", "cpu:0 and cpu:1: refused: no device"])

    def test_a_training_that_did_not_end_well_is_a_failure_whatever_it_reports(self):
        for report, status, why in (('"not_finite": "the loss is nan"', 1, "the loss is nan"), ('"not_finite": "nan"', 0, "nan"),
                                    ('"unwritten": [{"output": "trace", "why": "it is full"}]', 1, "trace: it is full"),
                                    ('"loss": 1', 1, "exit status 1")):
            self.program("remuda", "case $2 in --help-keys) echo train.tf32; exit ;; esac; "
                         'echo \'{"samples_per_s": 45, %s}\' >"$5"; exit %s' % (report, status))
            self.assertEqual(self.train("pair", "--again")[0], 1)
            self.assertEqual(self.saved()["pair"]["wrong"], [f"cpu:0 and cpu:1: failed: {why}"])
            self.assertNotIn("samples_per_s", self.saved()["pair"]["runs"]["cpu:0 and cpu:1"])
            self.assertIn(f"failed: {why} |", (self.folder / "out/gpu.md").read_text())
            found = self.switches(switches.Switch("train.tf32"))
            self.assertEqual(found["switches"]["train.tf32"].get("failed"), f"off: failed: {why}")

    def test_a_report_that_was_not_written_to_its_end_is_a_failure(self):
        self.program("remuda", 'case $2 in --help-keys) exit ;; esac; echo \'{"samples_per_s": 4\' >"$5"; echo killed; exit 137')
        self.assertEqual(self.train("pair")[0], 1)
        self.assertEqual(self.saved()["pair"]["wrong"], ["cpu:0 and cpu:1: failed: killed"])

    def test_a_plain_loop_that_learned_nothing_is_a_failure(self):
        (self.folder / "loop.py").write_text('print(\'{"samples_per_s": 50, "loss": NaN}\')\n')
        stage = mock.Mock(out=self.folder, run=lambda *command, **_: measured.run(list(command), 60))
        with mock.patch.object(training, "LOOP", self.folder / "loop.py"):
            found = training.loop(stage, self.folder / "job.toml", training.Run("plain loop, fp16", ["gpu:0"], "fp16", plain=True))
        self.assertEqual(found, {"failed": "its loss is nan"})

    def test_runs_that_were_done_are_not_repeated(self):
        self.program("remuda", 'case $2 in --help-keys) ;; *) echo \'{"samples_per_s": 45, "loss_per_epoch": [2]}\' >"$5" ;; esac')
        self.assertEqual(self.train("gpt")[0], 0)
        self.assertEqual(self.saved()["gpt"]["runs"]["cpu:0"], {"samples_per_s": 45, "loss_per_epoch": [2]})
        saved = self.saved()
        saved["gpt"]["done"] = False
        del saved["gpt"]["runs"]["cpu:0"]
        (self.folder / "out/results.json").write_text(json.dumps(saved))
        (self.folder / "calls").unlink()
        self.train("gpt")
        self.assertEqual((self.folder / "calls").read_text().count("--quiet"), 1)

    def test_what_failed_is_still_wrong_on_the_next_call(self):
        self.program("remuda", "case $2 in --help-keys) echo train.precision; exit ;; esac; case $* in *=fp32*) echo lost; exit 1 ;; esac; "
                     '[ -e fast ] || sleep 9; echo {} >"$5"')
        self.assertEqual(self.train("--limit", "1.5", "pair")[0], 1)
        (self.folder / "fast").touch()
        lost = "cpu:0 and cpu:1, fp32: failed: lost"
        for _ in range(2):  # what was left, and then nothing
            status, printed = self.train("pair")
            self.assertEqual((status, self.saved()["pair"]["wrong"]), (1, [lost]))
            self.assertIn(lost, printed)
            self.assertIn(f"* pair: {lost}", (self.folder / "out/gpu.md").read_text())
        self.assertIn("pair: done before", printed)
        self.assertEqual((self.folder / "calls").read_text().count("train.precision=fp32"), 1)

    def test_a_run_that_was_not_done_in_time_does_not_keep_others_from_their_turn(self):
        self.program("remuda", 'case $* in *--help-keys) echo train.precision; exit ;; *=fp32*) sleep 9 ;; esac; echo {} >"$5"')
        for _ in range(2):
            self.train("--limit", "1.5", "pair")
        self.assertEqual(list(self.saved()["pair"]["runs"]), ["cpu:0 and cpu:1, auto"])

    def test_two_ranks_are_compared_with_one_of_an_earlier_stage(self):
        self.program("remuda", 'case $2 in --help-keys) exit ;; esac; loss=2.5; grep -q slowdown $2 && loss=2.6; '
                     'echo "{\\"loss_per_epoch\\": [$loss]}" >"$5"')
        self.train("twice")
        self.assertEqual(self.saved()["twice"]["wrong"], ["cpu:0 and a slower cpu:0: its loss cannot be compared with that of one rank"])
        self.train("alone", "twice", "--again")
        self.assertIn("loss of 2.6000, that of one rank with 2.5000", self.saved()["twice"]["wrong"][0])

    def switches(self, *table: switches.Switch) -> dict:
        with mock.patch.object(switches, "SWITCHES", table):
            self.train("switches", "--again")
        return self.saved()["switches"]

    SPEEDS = ('case $* in *--help-keys) echo train.tf32 train.other; exit ;; *tf32=on*) speed=150 ;; *other=b*) echo no such value; exit %s ;; '
              '*) speed=100 ;; esac; echo "{\\"samples_per_s\\": $speed}" >"$5"')

    def test_switches_are_measured_both_ways_in_turns(self):
        self.program("remuda", self.SPEEDS % 2)
        found = self.switches(switches.Switch("train.tf32"), switches.Switch("train.other", ("a", "b"), on="twice"),
                              switches.Switch("engine.of_tomorrow"))
        self.assertEqual(found["switches"]["train.tf32"]["speeds"], {"off": [100, 100], "on": [150, 150]})
        self.assertEqual(found["wrong"], [])
        calls = [word for line in (self.folder / "calls").read_text().splitlines() for word in line.split() if "train." in word]
        self.assertEqual(calls[:5], ["train.tf32=off", "train.tf32=on", "train.other=a", "train.other=b", "train.tf32=off"])
        text = page.both_ways(found)
        self.assertIn("| train.tf32 | fashion, alone | off: 100 | on: 150 | 1.50 |", text)
        self.assertIn("| train.other | fashion, twice | a: 100 |  | b: refused: no such value |", text)
        self.assertNotIn("tomorrow", text)

    def test_a_switch_with_which_training_fails_is_wrong(self):
        self.program("remuda", self.SPEEDS % 1)
        found = self.switches(switches.Switch("train.other", ("a", "b")))
        self.assertEqual(found["wrong"], ["train.other=b: failed: no such value"])

    def test_a_switch_that_failed_is_still_wrong_on_the_next_call(self):
        self.program("remuda", self.SPEEDS % 1)
        with mock.patch.object(switches, "SWITCHES", [switches.Switch("train.other", ("a", "b"))]):
            self.train("switches")
            saved = self.saved()
            saved["switches"]["done"] = False
            (self.folder / "out/results.json").write_text(json.dumps(saved))
            self.assertEqual(self.train("switches")[0], 1)
        self.assertEqual(self.saved()["switches"]["wrong"], ["train.other=b: failed: no such value"])

    def test_what_was_done_on_other_devices_does_not_count(self):
        self.program("remuda", 'case $2 in --help-keys) ;; *) echo \'{"loss_per_epoch": [2]}\' >"$5" ;; esac')
        self.train("gpt", devices="cpu:0,cpu:1")
        self.assertEqual(self.train("gpt", devices="cpu:0,cpu:1")[1], "gpt: done before\n")
        self.assertIn("cpu:2 and cpu:3", self.train("gpt", devices="cpu:2,cpu:3")[1])
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
        found = training.runs("gpu:0", "cpu:0", True)
        self.assertEqual([run.precision for run in found["alone"] if not run.plain], ["fp32", "bf16", "fp16", "auto"])
        self.assertEqual({run.precision for run in found["pair"]}, {"fp32", "auto"})
        found = training.runs("gpu:0", "cpu:0", False)
        self.assertEqual([run.precision for name in found for run in found[name] if not run.plain], [None] * 6)

    def test_the_first_run_and_the_plain_loop_beside_it_come_first(self):
        names = [run.name for run in training.runs("gpu:0", "cpu:0", True)["alone"]]
        self.assertEqual(names[:4], ["gpu:0, fp32", "plain loop, fp32", "gpu:0, bf16", "plain loop, bf16"])

    def test_the_second_rank_on_one_device_is_slowed(self):
        [twice] = training.runs("gpu:0", "cpu:0", True)["twice"]
        shared = '\n[[device]]\nuse = "gpu:0"\nshared = true\n'
        self.assertEqual(twice.tables(), shared + shared + "slowdown = 2.0\n")
        for pair in training.runs("gpu:0", "cpu:0", True)["pair"]:
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
