#!/usr/bin/python3
"""Jobs of `remuda agent` while an agent of another version is in its place, which understands none of their processes.

agent_version_test.py REMUDA MACHINE     exit status 77 where this process cannot act as several users
"""
import json
import os
import socket
import struct
import sys
import tempfile
import threading
import unittest

from agent_client import Agent, Connection, eventually

REMUDA, MACHINE = sys.argv[1], sys.argv[2]
ADA = 61031
REFUSAL = "the agent of this machine speaks protocol 9"


class OtherVersion:
    """An agent that refuses everybody."""

    def __init__(self, path):
        if os.path.exists(path):
            os.remove(path)
        self.listener, self.refused = socket.socket(socket.AF_UNIX), 0
        self.listener.bind(path)
        os.chmod(path, 0o666)
        self.listener.listen(128)
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            with client:
                try:
                    asked = client.recv(1 << 16)
                    answer = {"id": json.loads(asked[4:])["id"], "error": {"kind": "unavailable", "message": REFUSAL}}
                    payload = json.dumps(answer).encode()
                    client.sendall(struct.pack(">I", len(payload)) + payload)
                except (OSError, ValueError):
                    continue  # it has gone
                self.refused += 1

    def stop(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.listener.close()


class VersionTest(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.agent = Agent(REMUDA, MACHINE, self.scratch.name).start()
        self.addCleanup(self.agent.end)
        home = self.agent.environment(ADA)["HOME"]
        self.runs, self.go_on = os.path.join(home, "runs"), os.path.join(home, "go-on")

    def start_job(self, status):
        script = f": >{self.runs}; until [ -e {self.go_on} ]; do sleep 0.05; done; exit {status}"
        front = self.agent.start_as(ADA, "run", "--", "/bin/sh", "-c", script)
        self.addCleanup(lambda: [front.kill(), front.communicate()])
        self.assertTrue(eventually(lambda: os.path.exists(self.runs)))
        return front

    def find(self, job):
        connection = Connection(self.agent.socket)
        found = connection.find(job)
        connection.close()
        return found

    def in_between(self, what):
        """Does something while an agent of another version is there."""
        self.agent.kill()
        other = OtherVersion(self.agent.socket)
        try:
            what(other)
        finally:
            other.stop()
        self.agent.start()

    def test_a_command_ends_with_one_sentence(self):
        def ask(_):
            ran = self.agent.run_as(ADA, "queue")
            self.assertEqual((ran.returncode, ran.stderr), (5, f"remuda: {REFUSAL}\n"))
        self.in_between(ask)

    def test_a_job_that_runs_goes_on_and_its_end_is_recorded_once_its_own_version_is_there(self):
        front = self.start_job(7)
        self.in_between(lambda other: self.assertTrue(eventually(lambda: other.refused > 2)))
        self.assertIsNone(front.poll())
        open(self.go_on, "w").close()
        front.communicate(timeout=60)
        self.assertEqual(front.returncode, 7)
        self.assertTrue(eventually(lambda: self.find(1)["state"] == "ended"))
        self.assertEqual(self.find(1)["exit_status"], 7)

    def test_a_job_that_ends_meanwhile_has_its_status_for_its_user_and_gives_its_devices_back(self):
        front = self.start_job(7)

        def end(_):
            open(self.go_on, "w").close()
            front.communicate(timeout=60)
        self.in_between(end)
        self.assertEqual(front.returncode, 7)
        self.assertTrue(eventually(lambda: self.find(1)["state"] == "ended"))
        self.assertFalse(self.agent.page().get("leases"))


if __name__ == "__main__":
    if os.geteuid() != 0:
        print("this is not root, who acts as a user")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:])
