#!/usr/bin/python3
"""What becomes of jobs while there is no agent.

agent_outage_test.py REMUDA MACHINE     exit status 77 where this process cannot act as several users
"""
import os
import sys
import tempfile
import time
import unittest

from agent_client import Agent, Connection, eventually, rests

REMUDA, MACHINE = sys.argv[1], sys.argv[2]
ADA = 61021


class AgentOutageTest(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.agent = Agent(REMUDA, MACHINE, self.scratch.name).start()
        self.addCleanup(self.agent.end)

    def find(self, job):
        connection = Connection(self.agent.socket)
        found = connection.find(job)
        connection.close()
        return found

    def test_a_job_that_ends_meanwhile_says_so_in_its_log_and_is_charged_until_then(self):
        go = os.path.join(self.agent.environment(ADA)["HOME"], "go")
        ran = self.agent.run_as(ADA, "run", "-d", "--", "/bin/sh", "-c", f"while ! [ -e {go} ]; do sleep 0.05; done; exit 3")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        job = int(ran.stdout)
        self.assertTrue(eventually(lambda: self.find(job).get("begun")))
        log = self.find(job)["log"]
        self.agent.kill()
        open(go, "w").close()
        ended_s = time.time()

        def told():
            with open(log) as file:
                return file.read()
        self.assertTrue(eventually(lambda: "which cannot be reported to the pool yet" in told()), told())
        self.assertIn(f"remuda: job {job} has ended (", told())
        self.assertIn("3), which cannot be reported to the pool yet: the agent of this machine does not answer", told())
        time.sleep(max(0, ended_s + 6 - time.time()))
        back_s = time.time()
        self.agent.start()
        self.assertTrue(eventually(lambda: self.find(job)["state"] == "ended"))
        found = self.find(job)
        self.assertEqual(found["exit_status"], 3)
        self.assertLess(found["ended_s"], back_s)
        self.assertEqual(told().count("cannot be reported"), 1)

    def test_who_waits_for_a_job_does_so_over_a_restart(self):
        go = os.path.join(self.agent.environment(ADA)["HOME"], "go")
        job = self.agent.run_as(ADA, "run", "-d", "--", "/bin/sh", "-c",
                                f"while ! [ -e {go} ]; do sleep 0.05; done; exit 7").stdout.strip()
        waits = self.agent.start_as(ADA, "wait", job)
        for _ in range(3):
            self.assertTrue(eventually(lambda: rests(waits.pid)))
            self.agent.kill()
            time.sleep(0.3)
            self.agent.start()
            self.assertIsNone(waits.poll())
        open(go, "w").close()
        _, said = waits.communicate(timeout=60)
        self.assertEqual(waits.returncode, 7, said)


if __name__ == "__main__":
    if os.geteuid() != 0:
        print("skipped: only root can act as several users")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
