#!/usr/bin/python3
"""What users hear of their jobs under `remuda agent`, and who answers them.

agent_answers_test.py REMUDA MACHINE     exit status 77 where this process cannot become other users
"""
import os
import subprocess
import sys
import tempfile
import unittest

from agent_client import Agent, eventually

REMUDA, MACHINE = sys.argv[1], sys.argv[2]
ADA, BOB = 61001, 61002


class AnswersTest(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.agent = Agent(REMUDA, MACHINE, self.scratch.name).start()
        self.addCleanup(self.agent.end)

    def hold(self, uid, *flags):
        """A job of this user that runs."""
        before = len(self.agent.page().get("leases", []))
        front = self.agent.start_as(uid, "run", *flags, "--", "sleep", "1000")
        self.addCleanup(lambda: [front.kill(), front.communicate()])
        self.assertTrue(eventually(lambda: len(self.agent.page().get("leases", [])) > before))

    def test_a_job_that_starts_at_once_does_not_say_that_it_waits(self):
        said = [self.agent.run_as(ADA, "run", "--", "true").stderr for _ in range(20)]
        self.assertEqual([text for text in said if text], [])

    def test_an_agent_takes_no_socket_that_another_one_serves(self):
        words = [self.agent.remuda, "agent", "--machine", self.agent.machine, "--pool", self.agent.pool + "2", "--socket", self.agent.socket]
        second = subprocess.run(words, capture_output=True, text=True, timeout=60)
        self.assertEqual((second.returncode, second.stderr), (
            1, f"remuda: another agent serves {self.agent.socket}: end that one, or name another --socket\n"))
        self.assertTrue(self.agent.answers())
        self.agent.kill()
        self.agent.start()

    def test_metrics_name_ones_own_jobs(self):
        self.hold(ADA, "--name", "sweep")
        self.hold(BOB, "--name", "private")
        home = self.agent.environment(ADA)["HOME"]
        watch = self.agent.start_as(ADA, "watch", "--text-file", os.path.join(home, "metrics"))
        self.addCleanup(lambda: [watch.kill(), watch.communicate()])
        self.assertTrue(eventually(lambda: os.path.exists(os.path.join(home, "metrics"))))
        with open(os.path.join(home, "metrics")) as file:
            leases = [line for line in file if line.startswith("remuda_lease_share{")]
        self.assertEqual(len(leases), 2, leases)
        self.assertEqual([f'user="{ADA}"' in line for line in leases], ['name="sweep"' in line for line in leases])
        self.assertFalse([line for line in leases if "private" in line])


if __name__ == "__main__":
    if os.geteuid() != 0:
        print("this needs root, to act as several users")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:])
