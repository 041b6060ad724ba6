"""For tests: an agent on a machine that a library plays, and jobs of users on it. Arguments: REMUDA NVML MACHINE."""
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
        self.addCleanup(self.agent.end)

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
