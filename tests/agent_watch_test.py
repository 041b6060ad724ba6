#!/usr/bin/python3
"""`remuda watch` beside an agent that is killed, and comes back.

agent_watch_test.py REMUDA MACHINE     exit status 77 where this process cannot become other users
"""
import os
import pathlib
import signal
import sys
import tempfile
import time
import unittest

from agent_client import PATIENCE_S, Agent, eventually

REMUDA, MACHINE = sys.argv[1], sys.argv[2]
ADA = 61001


class AgentWatchTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        # A recorded machine has no agent unless REMUDA_AGENT names one, as it does here.
        self.agent = Agent(REMUDA, MACHINE, scratch.name).start()
        self.addCleanup(self.agent.end)
        self.home = pathlib.Path(self.agent.environment(ADA)["HOME"])

    def metrics(self):
        file = self.home / "remuda.prom"
        return file.read_text() if file.exists() else ""

    def test_metrics_of_devices_go_on_and_it_says_that_the_agent_is_silent_and_that_it_is_back(self):
        watch = self.agent.start_as(ADA, "watch", "--text-file", str(self.home / "remuda.prom"),
                                    "--on-alert", 'echo "$REMUDA_ALERT_STATE: $REMUDA_ALERT_TEXT" >>heard')
        self.addCleanup(watch.communicate, timeout=PATIENCE_S)
        self.addCleanup(watch.send_signal, signal.SIGTERM)
        job = self.agent.start_as(ADA, "run", "--name", "work", "--", "sleep", "1000")
        self.addCleanup(job.communicate, timeout=PATIENCE_S)
        self.assertTrue(eventually(lambda: "remuda_lease_share{" in self.metrics()))
        self.assertIn("remuda_agent_answers 1", self.metrics())
        self.agent.kill()
        self.assertTrue(eventually(lambda: "remuda_agent_answers 0" in self.metrics()))
        self.assertIn("remuda_gpu_info{", self.metrics())
        self.assertNotIn("remuda_lease", self.metrics())
        said = self.home / "heard"
        self.assertTrue(eventually(said.exists), "it is said after 15 seconds")
        before = (self.home / "remuda.prom").stat().st_mtime
        time.sleep(2.5)
        self.assertGreater((self.home / "remuda.prom").stat().st_mtime, before + 1, "each second all the same")
        self.agent.start()
        self.assertTrue(eventually(lambda: "remuda_lease_share{" in self.metrics()))
        self.assertTrue(eventually(lambda: said.read_text().count("\n") == 2))
        text = "the agent of this machine does not answer: no job starts, and nobody knows who holds what"
        self.assertEqual(said.read_text(), f"begun: {text}\nended: {text}\n")
        self.assertEqual(self.agent.run_as(ADA, "cancel", "1").returncode, 0)


if __name__ == "__main__":
    if os.geteuid() != 0:
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
