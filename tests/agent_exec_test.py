#!/usr/bin/python3
"""`remuda exec` under `remuda agent`: who may enter which job, and what becomes of who did.

agent_exec_test.py REMUDA MACHINE     exit status 77 where this process cannot become other users
"""
import os
import signal
import subprocess
import sys
import tempfile
import unittest

from agent_client import Agent, eventually

REMUDA, MACHINE = sys.argv[1], sys.argv[2]
ADA, BOB = 61001, 61002


class AgentExecTest(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.agent = Agent(REMUDA, MACHINE, self.scratch.name).start()
        self.job = self.agent.start_as(ADA, "run", "-n", "2", "--", "/bin/sh", "-c", "sleep 1000")
        self.assertTrue(eventually(self.leases))
        if not self.agent.page()["jobs"][0].get("cgroup"):
            refused = self.agent.run_as(ADA, "exec", "1", "--", "true")
            self.assertEqual((refused.returncode, refused.stdout), (1, ""), refused.stderr)
            self.assertIn("job 1 is not held by a cgroup", refused.stderr)
            self.tearDown()
            self.skipTest("may not make cgroups here")

    def tearDown(self):
        self.job.kill()
        self.job.communicate()
        self.agent.end()
        self.scratch.cleanup()

    def leases(self):
        return self.agent.page().get("leases", [])

    def test_its_user_enters_a_job_and_nobody_else(self):
        seen = self.agent.run_as(ADA, "exec", "1", "--", "printenv", "REMUDA_DEVICES")
        self.assertEqual(sorted(seen.stdout.strip().split(",")), sorted(lease["device"] for lease in self.leases()), seen.stderr)
        self.assertEqual(self.agent.run_as(ADA, "exec", "1", "--", "/bin/sh", "-c", "exit 7").returncode, 7)
        for uid in (BOB, 0):
            refused = self.agent.run_as(uid, "exec", "1", "--", "true")
            hint = f", whose commands alone join it, and not root's: sudo -u '#{ADA}' remuda exec 1 -- COMMAND"
            self.assertEqual((refused.returncode, refused.stderr), (2, f"remuda: job 1 belongs to {ADA}{hint if uid == 0 else ''}\n"))

    def test_what_has_entered_a_job_can_start_no_other_and_ends_with_it(self):
        inside = self.agent.start_as(ADA, "exec", "1", "--", "/bin/sh", "-c", f'"{self.agent.remuda}" run --machine "{self.agent.machine}" -- true; trap "" TERM; echo in; sleep 1000')
        self.assertEqual(inside.stdout.readline(), "in\n")
        self.assertEqual(len(self.leases()), 2)
        os.kill(self.job.pid, signal.SIGTERM)
        _, said = inside.communicate(timeout=60)
        self.assertEqual(inside.returncode, -signal.SIGKILL, said)
        self.assertIn("start jobs from outside of it", said)
        self.assertTrue(eventually(lambda: not self.leases()))

    def test_a_process_of_its_own_is_adopted_and_no_other(self):
        stranger = subprocess.Popen(["sleep", "1000"], user=ADA, group=ADA, extra_groups=[])
        others = subprocess.Popen(["sleep", "1000"], user=BOB, group=BOB, extra_groups=[])
        self.addCleanup(lambda: [one.kill() or one.wait() for one in (stranger, others)])
        refused = self.agent.run_as(ADA, "adopt", str(others.pid))
        self.assertEqual(refused.returncode, 2, refused)
        self.assertIn(f"process {others.pid} belongs to {BOB}, who alone may lease devices for it", refused.stderr)
        adopted = self.agent.run_as(ADA, "adopt", str(stranger.pid))
        self.assertEqual(adopted.returncode, 0, adopted)
        self.assertIn(f"until process {stranger.pid} has ended", adopted.stdout)
        self.assertIn("What it starts is held with it", adopted.stdout)
        cgroup = next(job["cgroup"] for job in self.agent.page()["jobs"] if job.get("name") == "adopt")
        with open(os.path.join(cgroup, "cgroup.procs")) as procs:
            self.assertIn(f"{stranger.pid}\n", procs.readlines())
        self.assertEqual(len(self.leases()), 3)
        stranger.kill()
        stranger.wait()
        self.assertTrue(eventually(lambda: len(self.leases()) == 2))


if __name__ == "__main__":
    if os.geteuid() != 0:
        print("this needs root, to act as several users")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
