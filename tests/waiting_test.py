#!/usr/bin/env python3
"""What page, `remuda why` and `remuda queue` say of jobs that wait.

    waiting_test.py REMUDA RECORDED    a recorded machine with GPUs
"""

import json
import subprocess
import sys
import time
import unittest

from watched import PATIENCE_S, REMUDA, Watched, wait_until


class WaitingTest(Watched):
    def test_the_page_says_when_the_next_job_starts(self):
        user = self.as_user()
        count = sum(device["kind"] == "gpu" for device in json.loads(self.machine.read_text())["devices"])
        began = time.time()
        self.start("run", "-n", str(count), "--time-limit", "1h", "--", "sleep", "60", own=user)
        _, get = self.web(self.folder / "token")
        jobs = lambda: json.loads(get("/api/snapshot"))["jobs"]
        wait_until(lambda: len(jobs()["leases"]) == count, "all devices are held")
        self.start("run", "-n", "1", "--", "true", own=user)
        self.start("run", "-n", "1", "--", "true", own=user)
        wait_until(lambda: len(jobs()["waiting"]) == 2, "two jobs wait")
        first, second = jobs()["waiting"]
        self.assertAlmostEqual(first["starts_s"], began + 3600, delta=PATIENCE_S)
        self.assertEqual((first["starts_s"], first["starts_after"]), (second["starts_s"], second["starts_after"]))
        self.assertNotEqual(first["starts_on"], second["starts_on"])

    def test_page_and_why_say_what_a_job_would_have_to_give_up(self):
        user = self.as_user()
        _, get = self.web(self.folder / "token")
        jobs = lambda: json.loads(get("/api/snapshot"))["jobs"]
        self.start("run", "-n", "1", "--", "sleep", "60", own=user)
        wait_until(lambda: jobs()["leases"], "a device is held")
        self.start("run", "-n", "2", "--", "true", own=user)
        wait_until(lambda: jobs()["waiting"] and "starts_unknown" in jobs()["waiting"][0], "its future is worked out")
        (waiting,) = jobs()["waiting"]
        self.assertEqual([one["change"] for one in waiting["would_start"]], ["with -n 1"])
        asked = lambda *words: subprocess.run([*user, REMUDA, *words, "--machine", str(self.machine)], env=self.environment, text=True,
                                              capture_output=True, timeout=PATIENCE_S, check=True).stdout
        self.assertEqual(json.loads(asked("why", "--json", "2"))["jobs"][0]["would_start"], waiting["would_start"])
        self.assertRegex(asked("why", "2"), "(?m)^at once +with -n 1$")
        (user_of_all,) = jobs()["fairness"]["users"]
        self.assertEqual((user_of_all["part"], user_of_all["holds"], user_of_all["waiting"]), (1, 1, 1))
        self.assertEqual([one["user"] for one in json.loads(asked("queue", "--json"))["fairness"]["users"]], [user_of_all["user"]])

    def test_a_job_that_waits_for_a_device_that_has_gone_leaves_the_page_as_it_is(self):
        user, machine = self.as_user(), json.loads(self.machine.read_text())
        lost = [device for device in machine["devices"] if device["kind"] == "gpu"][-1]
        named = ("--device", f"gpu:{lost['index']}", "--", "sleep", "60")
        self.start("run", *named, own=user)
        _, get = self.web(self.folder / "token")
        snapshot = lambda: json.loads(get("/api/snapshot"))
        wait_until(lambda: snapshot()["jobs"]["leases"], "the device is held")
        self.start("run", *named, own=user)
        wait_until(lambda: snapshot()["jobs"]["waiting"], "a job waits for it")
        machine["devices"].remove(lost)
        machine["links"] = [link for link in machine["links"] if named[1] not in (link["a"], link["b"])]
        less = self.folder / "less.json"
        less.write_text(json.dumps(machine))
        less.rename(self.machine)
        wait_until(lambda: lost["id"] not in [device["id"] for device in snapshot()["inventory"]["devices"]], "it is gone")
        self.assertTrue(snapshot()["jobs"]["waiting"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
