#!/usr/bin/python3
"""Partitions of GPUs that `remuda agent` makes for jobs and takes away, on a machine that a library plays.

agent_partitions_test.py REMUDA NVML MACHINE     exit status 77 where this process cannot become other users
"""
import glob
import json
import os
import sys
import unittest

from agent_client import PATIENCE_S, eventually
from played_agent import ADA, BOB, GIB, OwnersTest


class PartitionTest(OwnersTest):
    """The second of two cards is cut into partitions, and the first one is held."""

    def setUp(self):
        super().setUp()
        self.agent.gpus[1].update(compute_capability="8.0", partitioned=True, offers=[
            {"profile": "1g.2gb", "memory_bytes": 2 * GIB, "multiprocessors": 14, "free": 7, "most": 7},
            {"profile": "3g.8gb", "memory_bytes": 8 * GIB, "multiprocessors": 42, "free": 2, "most": 2}])
        self.agent.play()
        self.agent.set_policy('[sharing]\nmig = ["gpu:1"]\n')

    def parts(self):
        with open(self.agent.machine) as file:
            return [device for device in json.load(file)["devices"] if device["kind"] == "partition"]

    def sizes(self):
        return [part["profile"] for part in self.parts()]

    def add_part(self, uuid, profile="1g.2gb", processes=()):
        """By the administrator."""
        with open(self.agent.machine) as file:
            self.agent.record = json.load(file)
        gpu = self.agent.record["devices"][1]
        self.agent.record["devices"].append(
            {"id": uuid, "uuid": uuid, "kind": "partition", "index": len(self.parts()), "parent": gpu["id"], "profile": profile,
             "memory_bytes": 2 * GIB, "multiprocessors": 14, "status": {"processes": list(processes), "memory_used_bytes": 0}})
        self.agent.play()

    def start_part(self, share, uid=ADA):
        return self.start_job(uid, "-q", "--share", share, "--where", "type == 'mig'")

    def test_a_partition_is_made_for_a_job_and_taken_away_for_another_size(self):
        self.agent.start()
        seen = os.path.join(self.scratch.name, "home-" + str(ADA), "seen")
        first = self.start_job(ADA, "-q", "--share", "10%", "--where", "type == 'mig'",
                               script=f"echo $CUDA_VISIBLE_DEVICES >{seen}.new; mv {seen}.new {seen}; sleep 1000")
        self.assertEqual(self.sizes(), ["1g.2gb"])
        part = self.parts()[0]["uuid"]
        self.assertTrue(eventually(lambda: os.path.exists(seen)))
        with open(seen) as file:
            self.assertEqual(file.read().strip(), part)
        self.assertEqual(self.agent.leases()[0]["device"], part)
        self.end_job(first)
        self.assertTrue(eventually(lambda: not self.agent.leases()))
        self.assertEqual(self.sizes(), ["1g.2gb"], "it stays for the next one")
        large = [self.start_part("50%") for _ in range(2)]
        self.assertEqual(self.sizes(), ["3g.8gb", "3g.8gb"])
        for front in large:
            self.end_job(front)

    def test_none_is_taken_away_that_it_has_not_made_or_that_is_used(self):
        self.add_part("MIG-admin")
        self.agent.start()
        first = self.start_part("10%")
        self.assertEqual(self.agent.leases()[0]["device"], "MIG-admin")
        second = self.start_part("10%", uid=BOB)
        self.assertEqual(self.sizes(), ["1g.2gb"] * 2)
        made = self.parts()[1]["uuid"]
        self.end_job(first)
        self.end_job(second)
        self.agent.kill()
        self.agent.start()
        large = self.start_part("50%")
        self.assertEqual(self.sizes(), ["1g.2gb", "1g.2gb", "3g.8gb"])
        front = self.agent.start_as(ADA, "run", "-q", "--share", "50%", "--where", "type == 'mig'", "--", "true")
        self.addCleanup(lambda: [front.kill(), front.communicate()])
        self.assertTrue(eventually(lambda: len(self.parts()) == 2), "what was made is found again after kill -9")
        self.assertIn("MIG-admin", [part["uuid"] for part in self.parts()])
        self.assertNotIn(made, [part["uuid"] for part in self.parts()])
        self.agent.set_policy("")
        self.end_job(large)
        self.assertTrue(eventually(lambda: [part.get("uuid") for part in self.parts()] == ["MIG-admin"]))

    def restart(self, faults=""):
        self.agent.own_environment["REMUDA_TEST_NVML_FAULTS"] = faults
        self.agent.start()

    def marks(self):
        folder = os.path.join(self.agent.pool, "partitions")
        return [name for name in os.listdir(folder) if not name.startswith(".")] if os.path.isdir(folder) else []

    def is_settled(self):
        return not glob.glob(os.path.join(glob.escape(self.agent.pool), "partitions", ".*", "change"))

    def wait_for_part(self):
        front = self.agent.start_as(ADA, "run", "-q", "--share", "10%", "--where", "type == 'mig'", "--", "true")
        self.addCleanup(lambda: [front.kill(), front.communicate()])
        return front

    def test_a_partition_that_was_made_when_its_maker_was_killed_is_the_agents(self):
        self.restart("die-at=2")
        front = self.wait_for_part()
        _, err = front.communicate(timeout=60)
        self.assertEqual(front.returncode, 0, err)
        self.assertTrue(eventually(lambda: self.is_settled() and len(self.marks()) == 1))
        self.assertEqual(self.sizes(), ["1g.2gb"])
        self.agent.set_policy("")
        self.assertTrue(eventually(lambda: not self.parts()), "it is taken away, as one that the agent has made")
        self.assertTrue(eventually(lambda: not self.marks()))

    def test_what_was_half_made_is_taken_away(self):
        self.restart("die-at=1")
        front = self.wait_for_part()
        self.assertTrue(eventually(lambda: "did settle a change" in self.agent.said()))
        self.assertEqual((self.parts(), self.marks()), ([], []))
        self.agent.kill()
        self.restart()
        _, err = front.communicate(timeout=60)
        self.assertEqual(front.returncode, 0, err)

    def test_what_a_maker_that_failed_could_not_take_away_again_goes_with_the_next_try(self):
        self.restart("stuck=1")
        self.wait_for_part()
        self.assertTrue(eventually(lambda: "making a compute instance" in self.agent.said()), self.agent.said())
        self.assertTrue(eventually(lambda: self.is_settled()), self.agent.said())
        self.assertEqual((self.parts(), self.marks()), ([], []))

    def test_what_an_administrator_makes_while_the_agent_fails_is_none_of_the_agents(self):
        self.restart("taken=1")
        self.wait_for_part().communicate(timeout=60)
        self.assertTrue(eventually(lambda: "cannot make" in self.agent.said()), self.agent.said())
        self.assertTrue(eventually(self.is_settled))
        self.assertEqual((self.sizes(), self.marks()), (["1g.2gb"], []))

    def test_what_was_half_taken_away_goes_and_so_does_its_mark(self):
        self.restart("die-at=3")
        front = self.wait_for_part()
        front.communicate(timeout=60)
        self.assertEqual((self.sizes(), len(self.marks())), (["1g.2gb"], 1))
        self.agent.set_policy("")
        # What fails once, as on a machine that is too slow, is tried again after a minute.
        self.assertTrue(eventually(lambda: not self.parts(), 2 * PATIENCE_S), self.agent.said())
        self.assertTrue(eventually(lambda: not self.marks() and self.is_settled()), self.agent.said())

    def test_agent_and_maker_killed_together_leave_what_the_next_agent_settles(self):
        self.restart("die-at=2")
        self.agent.install("setsid", "#!/bin/sh\nshift\n\"$@\"\nkill -9 " + str(self.agent.process.pid) + "\n")
        front = self.wait_for_part()
        self.agent.process.wait(60)
        self.assertEqual((self.sizes(), self.marks(), self.is_settled()), (["1g.2gb"], [], False))
        self.restart()
        self.assertTrue(eventually(lambda: len(self.marks()) == 1 and self.is_settled()))
        _, err = front.communicate(timeout=60)
        self.assertEqual(front.returncode, 0, err)

    def test_a_job_is_refused_where_the_policy_allows_none_and_the_rule_is_named(self):
        self.agent.set_policy("")
        self.agent.start()
        refused = self.agent.run_as(ADA, "run", "--share", "10%", "--where", "type == 'mig'", "--", "true")
        self.assertEqual(refused.returncode, 3, refused)
        self.assertIn("[sharing] mig", refused.stderr)


if __name__ == "__main__":
    if os.geteuid() != 0:
        print("this test needs root, to be several users")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
