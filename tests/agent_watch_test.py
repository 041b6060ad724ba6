#!/usr/bin/python3
"""`remuda watch` beside an agent that is killed, stopped or not yet there, and comes back.

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

    def start_watch(self):
        watch = self.agent.start_as(ADA, "watch", "--text-file", str(self.home / "remuda.prom"),
                                    "--on-alert", 'echo "$REMUDA_ALERT_STATE: $REMUDA_ALERT_TEXT" >>heard')
        self.addCleanup(watch.communicate, timeout=PATIENCE_S)
        self.addCleanup(watch.send_signal, signal.SIGTERM)

    def pause_s(self):
        """The longest time between two writes of the metrics within six seconds."""
        file, end = self.home / "remuda.prom", time.monotonic() + 6
        written, since, longest = file.stat().st_mtime_ns, time.monotonic(), 0
        while time.monotonic() < end:
            time.sleep(0.02)
            longest = max(longest, time.monotonic() - since)
            if file.stat().st_mtime_ns != written:
                written, since = file.stat().st_mtime_ns, time.monotonic()
        return longest

    def metrics(self):
        file = self.home / "remuda.prom"
        return file.read_text() if file.exists() else ""

    def test_metrics_of_devices_go_on_and_it_says_that_the_agent_is_silent_and_that_it_is_back(self):
        self.start_watch()
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
        for line, state in zip(said.read_text().splitlines(), ["begun", "ended"]):
            self.assertRegex(line, f"^{state}: nothing is known of leases and jobs: the agent of this machine does not")
        self.assertEqual(self.agent.run_as(ADA, "cancel", "1").returncode, 0)

    def test_an_agent_that_is_stopped_does_not_hold_up_the_readings_of_devices(self):
        self.start_watch()
        self.assertTrue(eventually(lambda: "remuda_agent_answers 1" in self.metrics()))
        self.agent.process.send_signal(signal.SIGSTOP)
        self.addCleanup(self.agent.process.send_signal, signal.SIGCONT)
        self.assertTrue(eventually(lambda: "remuda_agent_answers 0" in self.metrics(), 20), "not after half a minute")
        self.assertLess(self.pause_s(), 4, "a second each, and a second that the agent is waited for")
        self.assertIn("remuda_gpu_info{", self.metrics())
        said = self.home / "heard"
        self.assertTrue(eventually(said.exists))
        self.assertRegex(said.read_text(), "does not answer at .*: no word for 1 s")
        self.agent.process.send_signal(signal.SIGCONT)
        self.assertTrue(eventually(lambda: "remuda_agent_answers 1" in self.metrics(), 20))

    def start_web(self):
        """Returns what asks it for a snapshot."""
        web, snapshot = self.agent.start_web(ADA)
        self.addCleanup(web.communicate, timeout=PATIENCE_S)
        self.addCleanup(web.send_signal, signal.SIGTERM)
        return snapshot

    def test_the_page_goes_on_with_devices_and_with_leases_and_queue_as_they_were(self):
        snapshot = self.start_web()
        job = self.agent.start_as(ADA, "run", "--name", "work", "--", "sleep", "1000")
        self.addCleanup(job.communicate, timeout=PATIENCE_S)
        self.assertTrue(eventually(lambda: snapshot()["jobs"]["leases"]))
        self.assertNotIn("agent", snapshot())
        waits = self.agent.start_as(ADA, "run", "-n", "8", "--", "true")
        self.addCleanup(waits.communicate, timeout=PATIENCE_S)
        self.assertTrue(eventually(lambda: [one for one in snapshot()["jobs"]["waiting"] if "starts_unknown" in one]))
        self.agent.process.send_signal(signal.SIGSTOP)
        self.addCleanup(self.agent.process.send_signal, signal.SIGCONT)
        self.assertTrue(eventually(lambda: "agent" in snapshot()))
        stopped_s = time.time()
        for _ in range(3):
            seen = snapshot()
            self.assertIn("does not answer", seen["agent"]["error"])
            self.assertLess(seen["agent"]["known_s"], stopped_s, "the time when it was so")
            self.assertEqual(seen["jobs"]["leases"][0]["name"], "work")
            self.assertEqual([key for key in seen["jobs"]["waiting"][0] if key.startswith(("starts_", "would_"))], [],
                             "nobody knows what becomes of it now")
            self.assertGreater(seen["seen_s"], stopped_s - 1, "devices are those of now")
            self.assertGreaterEqual(len(seen["inventory"]["devices"]), 8)
            time.sleep(0.5)
        self.agent.process.send_signal(signal.SIGCONT)
        self.assertTrue(eventually(lambda: "agent" not in snapshot()))
        self.assertEqual(self.agent.run_as(ADA, "cancel", "2").returncode, 0)
        self.assertEqual(self.agent.run_as(ADA, "cancel", "1").returncode, 0)
        self.assertTrue(eventually(lambda: not snapshot()["jobs"]["leases"]))

    def test_a_page_that_is_started_while_the_agent_is_down_shows_devices_and_says_so(self):
        self.agent.kill()
        snapshot = self.start_web()
        self.assertTrue(eventually(lambda: "agent" in snapshot()))
        seen = snapshot()
        self.assertNotIn("known_s", seen["agent"])
        self.assertNotIn("jobs", seen)
        self.assertGreaterEqual(len(seen["inventory"]["devices"]), 8)
        self.agent.start()
        self.assertTrue(eventually(lambda: "agent" not in snapshot()))
        self.assertEqual(snapshot()["jobs"]["leases"], [])

    def test_a_watcher_that_is_started_while_the_agent_is_down_says_so(self):
        self.agent.kill()
        self.start_watch()
        self.assertTrue(eventually(lambda: "remuda_agent_answers 0" in self.metrics()))
        self.assertIn("remuda_gpu_info{", self.metrics())
        said = self.home / "heard"
        self.assertTrue(eventually(said.exists))
        self.agent.start()
        self.assertTrue(eventually(lambda: "remuda_agent_answers 1" in self.metrics()))
        self.assertTrue(eventually(lambda: said.read_text().count("\n") == 2))


if __name__ == "__main__":
    if os.geteuid() != 0:
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
