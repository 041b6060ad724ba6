"""For tests of what is watched: a machine from a file, whose devices have readings, and the programs that look at it."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

REMUDA, RECORDED = (sys.argv + ["", ""])[1:3]
PATIENCE_S = 30
READINGS = {"busy": 0.25, "memory_busy": 0.1, "memory_used_bytes": 1 << 30, "power_watts": 120.5, "energy_joules": 1000.0,
            "temperature_c": 45.0, "sm_clock_mhz": 1410, "throttle": ["idle"],
            "tensor_active": {"missing": "unsupported", "detail": "not on this card"}, "processes": []}


def wait_until(condition, what: str):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"waited {PATIENCE_S} s in vain: {what}")
        time.sleep(0.05)


class Watched(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        (self.folder / "jobs").mkdir()
        machine = json.loads(pathlib.Path(RECORDED).read_text())
        for device in machine["devices"]:
            device["status"] = READINGS
        self.machine = self.folder / "machine.json"
        self.machine.write_text(json.dumps(machine))
        self.metrics = self.folder / "remuda.prom"
        self.environment = {**os.environ, "HOME": scratch.name, "XDG_STATE_HOME": scratch.name + "/state"}

    def start(self, command: str, *arguments: str, own: tuple[str, ...] = ()) -> subprocess.Popen:
        process = subprocess.Popen([*own, REMUDA, command, "--machine", str(self.machine), *arguments], env=self.environment, text=True,
                                   stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
        self.addCleanup(process.wait, PATIENCE_S)
        self.addCleanup(process.kill)
        self.addCleanup(process.stderr.close)
        return process

    def watch(self, *more: str, own: tuple[str, ...] = ()) -> subprocess.Popen:
        return self.start("watch", "--text-file", str(self.metrics), "--job-files", str(self.folder / "jobs"), *more, own=own)

    def as_user(self) -> tuple[str, ...]:
        """Root serves no page; the folder is then everybody's."""
        os.chmod(self.folder, 0o777)
        return () if os.geteuid() else ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")

    def web(self, token: pathlib.Path, *more: str):
        """The page's process, and what asks it with the token or, so given, without."""
        web = subprocess.Popen([*self.as_user(), REMUDA, "web", "--listen", "127.0.0.1:0", "--machine", str(self.machine),
                                "--token-file", str(token), *more], env=self.environment, text=True, stdout=subprocess.PIPE)
        self.addCleanup(web.wait, PATIENCE_S)
        self.addCleanup(web.kill)
        self.addCleanup(web.stdout.close)
        address, secret = web.stdout.readline().strip().split("/#token=")
        self.assertEqual(token.read_text().strip(), secret)

        def get(path: str, **headers: str) -> str:
            headers = headers or {"Authorization": f"Bearer {secret}"}
            with urllib.request.urlopen(urllib.request.Request(address + path, headers=headers), timeout=PATIENCE_S) as answer:
                return answer.read().decode()

        return web, get

    def run_remuda(self, *command: str) -> str:
        done = subprocess.run([REMUDA, *command, "--machine", str(self.machine)], env=self.environment, text=True, capture_output=True,
                              timeout=PATIENCE_S, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout
