#!/usr/bin/env python3
"""Tests of the GPU lane's stages that train."""

import importlib
import json
import os
import subprocess
import sys
import unittest
from unittest import mock

import measured
import pack
import page
import readings
import switches
import training
from gpu_test import OverPrograms, Scratch


class Trainings(OverPrograms):
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
            self.program("remuda", "case $2 in --help-keys) exit ;; esac; "
                         'echo \'{"samples_per_s": 45, %s}\' >"$5"; exit %s' % (report, status))
            self.assertEqual(self.train("pair", "--again")[0], 1)
            self.assertEqual(self.saved()["pair"]["wrong"], [f"cpu:0 and cpu:1: failed: {why}"])
            self.assertNotIn("samples_per_s", self.saved()["pair"]["runs"]["cpu:0 and cpu:1"])
            self.assertIn(f"failed: {why} |", (self.folder / "out/gpu.md").read_text())

    def test_a_report_that_was_not_written_to_its_end_is_a_failure(self):
        self.program("remuda", 'case $2 in --help-keys) exit ;; esac; echo \'{"samples_per_s": 4\' >"$5"; echo killed; exit 137')
        self.assertEqual(self.train("pair")[0], 1)
        self.assertEqual(self.saved()["pair"]["wrong"], ["cpu:0 and cpu:1: failed: killed"])

    def test_a_gpu_is_there_that_remuda_sees_though_the_vendors_program_is_missing(self):
        stage = mock.Mock(run=lambda *_: (0, '{"devices": [{"kind": "gpu"}]}'), devices=["gpu:0", "cpu:0"], out=self.folder, pack=self.folder)
        with mock.patch.object(readings, "query", lambda _: None):
            self.assertTrue(training.prepare(stage, "fashion").exists())

    def test_data_that_was_cut_off_is_made_anew(self):
        (self.folder / "data").mkdir()
        with (mock.patch.object(pack, "first_images"), mock.patch.object(pack, "TEXTS", self.folder / "data")):
            training.text_data(mock.Mock(out=self.folder))
        self.assertTrue((self.folder / "data/text-test.bin").exists())

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

    def test_what_was_done_on_other_devices_does_not_count(self):
        self.program("remuda", 'case $2 in --help-keys) ;; *) echo \'{"loss_per_epoch": [2]}\' >"$5" ;; esac')
        self.train("gpt", devices="cpu:0,cpu:1")
        self.assertEqual(self.train("gpt", devices="cpu:0,cpu:1")[1], "gpt: done before\n")
        self.assertIn("cpu:2 and cpu:3", self.train("gpt", devices="cpu:2,cpu:3")[1])
        self.assertNotIn("cpu:0", self.saved()["gpt"]["runs"])


class Switches(OverPrograms):
    def switches(self, *table: switches.Switch, again: bool = True) -> dict:
        with mock.patch.object(switches, "SWITCHES", table):
            self.train("switches", *["--again"] * again)
        return self.saved()["switches"]

    def test_a_program_that_is_missing_is_a_failure(self):
        (self.folder / "bin/remuda").unlink()
        for stage in ("see", "links", "switches", "pair"):
            status, printed = self.train(stage)
            self.assertEqual(status, 1, stage)
            self.assertIn(f"there is no {self.folder}/bin/remuda", printed)
            self.assertFalse(self.saved()[stage].get("done"))

    def test_only_a_program_that_names_its_keys_can_lack_one(self):
        self.program("remuda", "exit 1")
        self.assertEqual(self.train("switches")[0], 1)
        self.program("remuda", self.SPEEDS % 2)
        self.assertEqual(self.switches(switches.Switch("train.tf32"), again=False)["switches"]["train.tf32"]["speeds"]["on"], [150, 150])

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

    def test_the_vendors_program_is_asked_once_for_all_switches(self):
        self.program("remuda", self.SPEEDS % 2)
        with mock.patch.object(training, "prepare", mock.Mock(side_effect=training.prepare)) as prepare:
            self.switches(switches.Switch("train.tf32"), switches.Switch("train.other"), switches.Switch("none", model="gpt"))
        self.assertEqual(prepare.call_count, 1)

    def test_a_switch_with_which_training_fails_is_wrong(self):
        self.program("remuda", self.SPEEDS % 1)
        found = self.switches(switches.Switch("train.other", ("a", "b")))
        self.assertEqual(found["wrong"], ["train.other=b: failed: no such value"])

    def test_a_training_that_did_not_end_well_is_no_speed(self):
        self.program("remuda", "case $2 in --help-keys) echo train.tf32; exit ;; esac; "
                     'echo \'{"samples_per_s": 45, "not_finite": "the loss is nan"}\' >"$5"; exit 1')
        found = self.switches(switches.Switch("train.tf32"))
        self.assertEqual(found["switches"]["train.tf32"]["failed"], "off: failed: the loss is nan")
        self.assertEqual(found["switches"]["train.tf32"]["speeds"], {"off": [], "on": []})

    def test_a_switch_that_failed_is_still_wrong_on_the_next_call(self):
        self.program("remuda", self.SPEEDS % 1)
        with mock.patch.object(switches, "SWITCHES", [switches.Switch("train.other", ("a", "b"))]):
            self.train("switches")
            saved = self.saved()
            saved["switches"]["done"] = False
            (self.folder / "out/results.json").write_text(json.dumps(saved))
            self.assertEqual(self.train("switches")[0], 1)
        self.assertEqual(self.saved()["switches"]["wrong"], ["train.other=b: failed: no such value"])


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


if __name__ == "__main__":
    unittest.main()
