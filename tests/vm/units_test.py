#!/usr/bin/python3
"""The units of `remuda agent` under a real systemd: socket activation, upgrade, stop, restart of the machine.

units_test.py FOLDER [-k TEST]     of tests/vm/image; `./dev vm` makes it first

The machine is a virtual one of this test's own. It has eight cards that the stand-in for the driver plays, and their
device files, without a driver behind them: ENXIO for who may open them, EPERM for who may not. The tests follow each other
on one machine, in the order of their names.
"""
import json
import sys
import unittest

from guest import Guest
from server import eventually, furnish

POLICY = "/etc/remuda/policy.toml"


class UnitsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.guest = Guest(sys.argv[1])
        cls.addClassCleanup(cls.guest.stop)
        furnish(cls.guest)

    def find(self, job):
        """What is known of a job."""
        return json.loads(self.guest.must(f"remuda why --json {job}"))["jobs"][0]

    def leases(self):
        """Who holds what: pairs of a job and a device."""
        return [(lease["job"], lease["device"]) for lease in json.loads(self.guest.must("remuda ps --json"))["leases"]]

    def state_of(self, unit):
        return self.guest.run(f"systemctl is-active {unit}").stdout.strip()

    def is_in_state(self, job, state):
        return self.find(job)["state"] == state

    def submit(self, user, words, command):
        """A job in the background, and its number."""
        return int(self.guest.must(f"remuda run -d {words} -- {command}", user))

    def processes(self, pattern):
        return self.guest.run(f"pgrep -f '{pattern}'").stdout.split()

    def test_1_units_are_sound(self):
        said = self.guest.run("systemd-analyze verify --man=no remuda-agent.service remuda-agent.socket")
        self.assertEqual((said.returncode, said.stderr), (0, ""))
        print(self.guest.must("systemd-analyze security --no-pager remuda-agent.service | tail -n 1"), file=sys.stderr)

    def test_2_the_socket_starts_the_agent(self):
        self.guest.must("systemd-tmpfiles --create remuda.conf")
        refused = self.guest.run("remuda run -- true", "ada")
        self.assertEqual(refused.returncode, 5, refused)
        self.assertIn("systemctl start remuda-agent", refused.stderr)
        self.guest.must("systemctl enable --now remuda-agent.socket")
        self.assertEqual(self.state_of("remuda-agent.service"), "inactive")
        self.guest.must("remuda ps", "ada")
        self.assertEqual(self.state_of("remuda-agent.service"), "active")
        self.guest.must("systemctl enable remuda-agent.service")

    def test_3_a_job_of_a_user_is_in_a_cgroup_that_is_not_the_services(self):
        ran = self.guest.must("remuda run -q -n 2 -- sh -c 'cat /proc/self/cgroup; echo $CUDA_VISIBLE_DEVICES'", "ada").split()
        self.assertRegex(ran[0], r"^0::/remuda/remuda-[0-9a-z]+-[0-9]+$")
        self.assertEqual(len(ran[1].split(",")), 2)
        opened = self.guest.must("remuda run -q --device gpu:1 -- python3 /test/opens.py 0 1 2", "ada")
        self.assertEqual(opened.split(), ["denied", "opened", "denied"])
        self.assertRegex(self.guest.must("remuda doctor", "ada"), "PASS +confinement +the agent confines each job")

    def test_4_an_upgrade_ends_no_job_and_loses_no_lease(self):
        front = self.guest.start("remuda run -q -n 2 -- sh -c 'sleep 61; exit 7'", "ada")
        job = self.submit("bob", "-n 3", "sh -c 'until [ -e /tmp/go-on ]; do sleep 0.5; done; exit 9'")
        waiting = self.submit("bob", "-n 8", "true")
        eventually(lambda: len(self.leases()) == 5)
        before, pids = self.leases(), self.processes("^sleep 61")
        self.assertEqual(len(pids), 1)
        agent = self.guest.must("systemctl show -P MainPID remuda-agent")
        self.guest.must("cp /usr/local/bin/remuda /usr/local/bin/remuda.new && mv /usr/local/bin/remuda.new /usr/local/bin/remuda")
        self.guest.must("systemctl daemon-reload && systemctl restart remuda-agent && systemctl daemon-reexec")
        self.assertNotEqual(self.guest.must("systemctl show -P MainPID remuda-agent"), agent)
        self.assertEqual(self.leases(), before)
        self.assertEqual(self.processes("^sleep 61"), pids)
        self.guest.must("systemctl kill --signal=KILL remuda-agent.service")
        eventually(lambda: self.guest.run("remuda ps").returncode == 0)
        self.assertEqual(self.leases(), before)
        self.assertEqual(self.guest.result(front).returncode, 7)
        self.guest.must("touch /tmp/go-on")
        self.assertEqual(self.guest.run(f"remuda wait {job}", "bob").returncode, 9)
        self.assertEqual(self.guest.run(f"remuda wait {waiting}", "bob").returncode, 0)

    def test_5_jobs_go_on_while_it_is_stopped(self):
        job = self.submit("ada", "-n 1", "sh -c 'until [ -e /tmp/stopped ]; do sleep 0.5; done; exit 3'")
        eventually(lambda: self.is_in_state(job, "running"))
        self.guest.must("systemctl stop remuda-agent.service remuda-agent.socket")
        refused = self.guest.run("remuda queue", "bob")
        self.assertEqual(refused.returncode, 5, refused)
        self.guest.must("touch /tmp/stopped && sleep 3")
        self.guest.must("systemctl start remuda-agent.socket remuda-agent.service")
        self.assertEqual(self.guest.run(f"remuda wait {job}", "ada").returncode, 3)

    def test_6_everyone_is_kept_from_cards_also_while_it_is_stopped(self):
        self.guest.write(POLICY, '[devices]\nenforce = "everyone"\n')
        eventually(lambda: self.opens("ada") == "denied")
        self.assertEqual(self.opens("root"), "opened")
        self.guest.must("systemctl stop remuda-agent.service remuda-agent.socket")
        self.assertEqual(self.opens("ada"), "denied")
        self.guest.must("systemctl start remuda-agent.socket remuda-agent.service")

    def opens(self, user, card=1):
        return self.guest.must(f"python3 /test/opens.py {card}", user).strip()

    def test_7_a_restart_of_the_machine_ends_what_ran_and_keeps_the_queue(self):
        self.guest.start("remuda run -q -n 8 -- sleep 1000", "ada")
        ran = eventually(self.leases)[0][0]
        again = self.submit("bob", "-n 8", "sh -c 'echo $CUDA_VISIBLE_DEVICES; id -un; cat /proc/self/cgroup; sleep 1000'")
        behind = self.submit("ada", "-n 8", "true")
        self.guest.must(f"remuda pause {behind}", "ada")
        self.guest.reboot()
        self.assertEqual(self.state_of("remuda-agent.service"), "active")
        ended = self.find(ran)
        self.assertEqual((ended["state"], ended["why"]), ("ended", "the machine was started anew"))
        eventually(lambda: self.is_in_state(again, "running"))
        log = eventually(lambda: self.guest.run(f"remuda logs {again}", "bob").stdout).split()
        self.assertEqual(([len(word.split(",")) for word in log[:1]], log[1]), ([8], "bob"))
        self.assertIn("/remuda/", log[2])
        self.assertEqual(self.find(behind)["state"], "waiting")
        self.assertEqual(self.opens("ada"), "denied", "that is in force again")
        self.guest.must(f"remuda resume {behind}", "ada")
        self.guest.must(f"remuda cancel {again}", "bob")
        self.assertEqual(self.guest.run(f"remuda wait {behind}", "ada").returncode, 0)

    def test_8_a_restart_of_the_machine_ends_a_job_in_the_background_that_ran(self):
        ran = self.submit("ada", "-n 8", "sleep 1000")
        eventually(lambda: self.processes("^sleep 1000"))
        self.guest.reboot()
        self.assertEqual(self.find(ran)["state"], "ended")

    def test_9_without_it_again_users_have_pools_of_their_own(self):
        """The steps of docs/administrators.md, "To do without an agent again"."""
        self.guest.write(POLICY, '[devices]\nenforce = "off"\n')
        eventually(lambda: self.opens("ada") == "opened")
        self.guest.must("systemctl disable --now remuda-agent.socket remuda-agent.service")
        self.guest.must("rm -r /run/remuda /usr/local/lib/tmpfiles.d/remuda.conf /var/lib/remuda")
        for user in ("ada", "bob"):
            self.assertEqual(self.guest.must("remuda run -q --device gpu:1 -- python3 /test/opens.py 1", user).strip(), "opened")
        self.assertRegex(self.guest.must("remuda doctor", "ada"), "PASS +pool +each user has a pool, this one /home/ada/")
        self.guest.reboot()
        self.assertEqual(self.guest.must("remuda queue --json", "ada")[:1], "{", "nothing brings it back")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[2:], verbosity=2)
