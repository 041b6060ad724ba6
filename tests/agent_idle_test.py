#!/usr/bin/python3
"""What `remuda agent` does with jobs that hold devices and do nothing with them, on a machine that a library plays.

agent_idle_test.py REMUDA NVML MACHINE     exit status 77 where this process cannot become other users
"""
import json
import os
import pathlib
import shutil
import sys
import tempfile
import time
import unittest

from agent_client import Agent, eventually

ADA = 61001
# Shorter than any administrator has it: a window of ten seconds, read each second.
POLICY = '[idle]\nwarn_after = "10s"\nsignal_after = "13s"\nrelease_after = "16s"\nexempt_users = ["nobody"]\n'


class PlayedAgent(Agent):
    """On this machine, with two GPUs, which are as busy as `use` says at each reading."""

    def __init__(self, remuda, library, machine, folder):
        super().__init__(remuda, machine, folder)
        self.record = json.loads(pathlib.Path(machine).read_text())
        self.gpus = [device for device in self.record["devices"] if device["kind"] == "gpu"][:2]
        for number, gpu in enumerate(self.gpus):
            gpu.update(minor=number, pci=f"00f{number}:00:00.0", uuid=f"GPU-{number:08x}-0000-0000-0000-000000000000")
        self.record.update(devices=self.gpus, links=[])
        self.use(0)
        shutil.copy(library, os.path.join(folder, "libnvidia-ml.so.1"))
        self.machine_words = []
        self.own_environment = {"LD_LIBRARY_PATH": folder, "REMUDA_TEST_NVML": self.machine, "REMUDA_CLAIMS": folder}
        self.users_environment = dict(self.own_environment)
        pathlib.Path(self.policy).write_text(POLICY)

    def use(self, share):
        for gpu in self.gpus:
            gpu["status"] = {"busy": share, "processes": [], "memory_used_bytes": 1 << 28}
        new = pathlib.Path(self.machine + ".new")
        new.write_text(json.dumps(self.record))
        new.chmod(0o644)
        new.rename(self.machine)


class IdleTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.agent = PlayedAgent(*sys.argv[1:4], scratch.name).start()
        self.addCleanup(self.agent.end)
        self.addCleanup(self.end_all)
        self.home = pathlib.Path(self.agent.environment(ADA)["HOME"])

    def end_all(self):
        self.agent.run_as(ADA, "cancel", "--user", str(ADA))
        eventually(lambda: not self.agent.page().get("leases", []))

    def start_job(self, *flags, script="sleep 1000"):
        """In the background; its number."""
        done = self.agent.run_as(ADA, "run", "-d", "--log", str(self.home / "log"), *flags, "--", "/bin/sh", "-c", script)
        self.assertEqual(done.returncode, 0, done)
        return done.stdout.strip()

    def job(self, number):
        return json.loads(self.agent.run_as(ADA, "show", "--json", number).stdout)["jobs"][0]

    def log(self):
        return (self.home / "log").read_text() if (self.home / "log").exists() else ""

    def test_one_that_sleeps_is_warned_signalled_and_ended(self):
        script = 'trap "echo checkpoint" USR1; trap "echo ends; exit 9" TERM; while :; do sleep 0.1; done'
        number = self.start_job(script=script)
        self.assertNotIn("no policy", self.agent.run_as(ADA, "policy", "show").stdout, "only the agent's environment names it")
        self.assertTrue(eventually(lambda: "warned" in self.agent.run_as(ADA, "ps").stdout), self.agent.said())
        self.assertIn("no process of the job uses a GPU; unless work begins it is told to write a checkpoint in 3 s and ends in 6 s",
                      self.agent.run_as(ADA, "why", number).stdout)
        self.assertTrue(eventually(lambda: self.job(number)["state"] == "ended"))
        ended = self.job(number)
        self.assertEqual(ended["exit"], 9, ended)
        self.assertIn("was told to end: gpu:0 busy for 0 % of 10 s: no process of the job uses a GPU", ended["why"])
        said = self.log()
        steps = ["remuda: gpu:0 busy", "remuda: USR1 to write a checkpoint: sent to 1 process", "\ncheckpoint\n", "\nends\n"]
        self.assertEqual(sorted(steps, key=said.find), steps, said)
        self.assertNotIn(-1, [said.find(step) for step in steps], said)

    def test_without_a_handler_there_is_no_signal(self):
        number = self.start_job()
        self.assertTrue(eventually(lambda: "not sent, as no process of the job has a handler for it" in self.log()))
        self.assertEqual(self.job(number)["state"], "running", "USR1 would have ended it")

    def test_one_that_is_preemptible_is_queued_again(self):
        number = self.start_job("--preemptible", script="echo began; sleep 1000")
        self.assertTrue(eventually(lambda: self.job(number).get("restarts", 0) == 1))
        self.assertTrue(eventually(lambda: self.log().count("began") == 2))
        self.assertNotIn("idle", self.job(number))

    def test_one_that_works_and_sleeps_again_is_caught_and_one_that_works_is_not(self):
        self.agent.use(0.9)
        number = self.start_job()
        time.sleep(12)
        self.assertNotIn("idle", self.job(number))
        self.agent.use(0)
        self.assertTrue(eventually(lambda: self.job(number).get("idle", {}).get("step") == "warned"))
        self.agent.use(0.9)
        self.assertTrue(eventually(lambda: "idle" not in self.job(number)))
        self.assertEqual(self.job(number)["state"], "running")
        self.assertIn("its devices are in use again", self.log())


if __name__ == "__main__":
    if os.geteuid() != 0:
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
