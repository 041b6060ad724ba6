#!/usr/bin/python3
"""What `remuda agent` does with devices between jobs, on a machine that a library plays.

agent_owners_test.py REMUDA NVML MACHINE     exit status 77 where this process cannot become other users
"""
import json
import os
import shutil
import signal
import sys
import tempfile
import unittest

from agent_client import Agent, eventually

ADA, BOB = 61001, 61002
GIB = 1 << 30

class PlayedAgent(Agent):
    """On this machine, with two GPUs, which are as the library's file says at each reading."""

    def __init__(self, remuda, library, machine, folder):
        super().__init__(remuda, machine, folder)
        with open(machine) as file:
            self.record = json.load(file)
        self.gpus = [device for device in self.record["devices"] if device["kind"] == "gpu"][:2]
        for number, gpu in enumerate(self.gpus):
            gpu.update(minor=number, memory_bytes=16 * GIB, compute_capability="7.0", pci=f"00f{number}:00:00.0",
                       uuid=f"GPU-{number:08x}-0000-0000-0000-000000000000")
            gpu["status"] = {**gpu.get("status", {}), "processes": [], "memory_used_bytes": GIB // 4}
        self.record.update(devices=self.gpus, links=[])
        self.play()
        shutil.copy(library, os.path.join(folder, "libnvidia-ml.so.1"))
        self.bin = os.path.join(folder, "bin")
        os.mkdir(self.bin)
        self.machine_words = []
        path = self.bin + ":" + os.environ["PATH"]
        self.own_environment = {"LD_LIBRARY_PATH": folder, "REMUDA_TEST_NVML": self.machine, "REMUDA_CLAIMS": folder,
                                "PATH": path}
        self.users_environment = dict(self.own_environment)

    def play(self):
        with open(self.machine + ".new", "w") as file:
            json.dump(self.record, file)
        os.chmod(self.machine + ".new", 0o644)
        os.rename(self.machine + ".new", self.machine)

    def holds_memory(self, number, amount):
        self.gpus[number]["status"]["memory_used_bytes"] = amount
        self.play()

    def install(self, name, text):
        path = os.path.join(self.bin, name)
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, 0o755)
        return path

    def set_policy(self, text):
        with open(self.policy + ".new", "w") as file:
            file.write(text)
        os.rename(self.policy + ".new", self.policy)

    def leases(self):
        return self.page().get("leases", [])

    def drains(self):
        return self.page().get("drains", [])


class OwnersTest(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.agent = PlayedAgent(*sys.argv[1:4], self.scratch.name)
        self.addCleanup(lambda: self.agent.process and self.agent.stop())

    def run_all(self, *flags, uid=ADA):
        return self.agent.run_as(uid, "run", "-q", "-n", "2", *flags, "--", "true")

    def start_job(self, uid, *flags, script="sleep 1000"):
        before = len(self.agent.leases())
        front = self.agent.start_as(uid, "run", *flags, "--", "/bin/sh", "-c", script)
        self.addCleanup(lambda: [front.kill(), front.communicate()])
        self.assertTrue(eventually(lambda: len(self.agent.leases()) > before or front.poll() is not None))
        self.assertIsNone(front.poll(), front.poll() is not None and front.communicate())
        return front

    def end_job(self, front):
        front.send_signal(signal.SIGTERM)
        front.communicate(timeout=60)


class HandoverTest(OwnersTest):
    def test_the_next_job_waits_until_the_memory_of_the_last_is_gone(self):
        self.agent.start()
        first = self.start_job(ADA, "-n", "2")
        self.agent.holds_memory(1, 3 * GIB)
        self.end_job(first)
        next_one = self.agent.start_as(BOB, "run", "-q", "-n", "2", "--", "true")
        said = lambda: self.agent.run_as(BOB, "why", "2").stdout
        self.assertTrue(eventually(lambda: "of its memory are in use, and no process has them" in said()), said())
        self.assertIn("after job 1 of", said())
        self.assertIsNone(next_one.poll())
        self.agent.holds_memory(1, GIB // 4)
        next_one.communicate(timeout=60)
        self.assertEqual(next_one.returncode, 0)
        self.assertEqual(self.agent.drains(), [])

    def test_the_next_agent_knows_what_an_idle_device_holds(self):
        self.agent.start()
        self.assertEqual(self.run_all().returncode, 0)
        self.agent.kill()
        self.agent.holds_memory(0, 5 * GIB)
        self.agent.start()
        waiting = self.agent.start_as(ADA, "run", "-q", "-n", "2", "--", "true")
        said = lambda: self.agent.run_as(ADA, "why", "2").stdout
        self.assertTrue(eventually(lambda: "at the agent's start" in said()), said())
        self.agent.holds_memory(0, GIB // 4)
        waiting.communicate(timeout=60)
        self.assertEqual(waiting.returncode, 0)

    def test_a_device_that_fails_the_probe_is_drained_with_its_words(self):
        bad = os.path.join(self.scratch.name, "bad")
        probe = self.agent.install("check-gpu", f'#!/bin/sh\ngrep -q "$REMUDA_DEVICES" {bad} || exit 0\necho its fan stands\nexit 1\n')
        open(bad, "w").close()
        self.agent.set_policy(f'[health]\nprobe = "{probe}"\ntimeout = "10s"\n')
        self.agent.start()
        self.assertEqual(self.run_all().returncode, 0)
        last = self.start_job(ADA, "-n", "2")
        with open(bad, "w") as file:
            file.write(self.agent.gpus[1]["uuid"] + "\n")
        self.end_job(last)
        self.assertTrue(eventually(self.agent.drains))
        reason = "after job 2 of 61001: its health probe exited with status 1: its fan stands"
        self.assertEqual(self.agent.drains()[0]["reason"], reason)
        self.assertIn("gpu:1 is drained: " + reason, self.agent.run_as(BOB, "list").stdout)
        self.assertIn(reason, self.agent.run_as(BOB, "ps").stdout)
        self.assertEqual(self.agent.run_as(BOB, "run", "-q", "--", "true").returncode, 0, "the other one is well")
        self.assertTrue(eventually(lambda: self.agent.run_as(BOB, "run", "--no-wait", "-n", "2", "--", "true").returncode == 4))
        open(bad, "w").close()
        self.assertEqual(self.agent.run_as(0, "undrain", "gpu:1").returncode, 0)
        self.assertEqual(self.run_all().returncode, 0)

    def test_a_probe_that_hangs_delays_nobody_else(self):
        probe = self.agent.install("check-gpu", "#!/bin/sh\nsleep 1000\n")
        self.agent.set_policy(f'[health]\nprobe = "{probe}"\ntimeout = "2s"\n')
        self.agent.start()
        self.assertTrue(eventually(lambda: len(self.agent.drains()) == 2))
        self.assertIn("its health probe did not end in time", self.agent.drains()[0]["reason"])


if __name__ == "__main__":
    if os.geteuid() != 0:
        print("this test needs root, to be several users")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
