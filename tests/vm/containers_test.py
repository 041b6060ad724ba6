#!/usr/bin/python3
"""Containers that users start in leases where systemd runs, by Debian's podman: whether they stay in them.

containers_test.py FOLDER [-k TEST]     of tests/vm/image, as units_test.py
"""
import json
import shlex
import sys
import unittest

from guest import Guest
from server import eventually, furnish

CARDS = "--device /dev/nvidia0 --device /dev/nvidia1"
SHOW = "cat /proc/self/cgroup; for n in 0 1; do cat /dev/nvidia$n; done 2>&1"
INSIDE = "podman run --cgroups=disabled --cgroupns=host"
OPENED, DENIED = "No such device or address", "Operation not permitted"  # there is no driver behind the files
CONTAINER_S = 300
POLICY = '[devices]\nenforce = "everyone"\n'
FOLDERS = "bin dev proc sys"
PROGRAMS = "sh cat sleep setsid true"


class ContainersTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.guest = Guest(sys.argv[1])
        cls.addClassCleanup(cls.guest.stop)
        furnish(cls.guest)
        cls.guest.write("/etc/remuda/policy.toml", POLICY)
        cls.guest.must(f"mkdir ~/container && cd ~/container && mkdir {FOLDERS} && cp /bin/busybox bin && "
                       f"for name in {PROGRAMS}; do ln -s busybox bin/$name; done", "ada")
        cls.guest.must("systemd-tmpfiles --create remuda.conf; systemctl enable --now remuda-agent.socket remuda-agent.service")
        eventually(lambda: cls.guest.must("python3 /test/opens.py 1", "ada").strip() == "denied")

    def leases(self):
        return json.loads(self.guest.must("remuda ps --json"))["leases"]

    def in_lease(self, command):
        """What a command says, as a job of ada's on gpu:0."""
        pid = self.guest.start(f"remuda run -q --device gpu:0 -- {command} 2>&1", "ada")
        said = self.guest.result(pid, CONTAINER_S).stdout
        eventually(lambda: not self.leases())
        return said

    def expect_inside(self, said):
        self.assertRegex(said, "0::/remuda/remuda-[0-9a-z]+-[0-9]+", said)
        opened, denied = said.splitlines()[-2:]
        self.assertIn(OPENED, opened, said)
        self.assertIn(DENIED, denied, said)

    def show(self, podman):
        return f"{podman} --rm {CARDS} --rootfs /home/ada/container sh -c {shlex.quote(SHOW)}"

    def test_1_the_first_container_of_a_user_is_inside_and_keeps_the_job_no_longer_than_it_runs(self):
        """podman leaves a process behind, for the next ones."""
        self.expect_inside(self.in_lease(self.show(INSIDE)))
        self.assertIn("podman-pause-", self.guest.must("cat /proc/[0-9]*/cgroup"))

    def test_2_containers_are_inside_by_cgroupfs(self):
        self.expect_inside(self.in_lease(self.show("podman --cgroup-manager=cgroupfs run --cgroupns=host")))

    def test_3_a_container_that_the_users_systemd_puts_elsewhere_opens_no_card(self):
        said = self.in_lease(self.show("podman run --cgroupns=host"))
        self.assertIn("libpod-", said)
        self.assertNotIn(OPENED, said)

    def test_4_what_is_executed_in_a_container_is_where_it_was_asked_for_and_all_ends_with_the_job(self):
        front = self.guest.start(f"remuda run -q --device gpu:0 -- {INSIDE} --rm --name held {CARDS} --rootfs $HOME/container "
                                 "sleep 1003", "ada")
        eventually(lambda: self.guest.run("podman exec held cat /proc/self/cgroup", "ada").returncode == 0, CONTAINER_S)
        execute = f"podman exec held sh -c {shlex.quote(SHOW)}"
        self.assertNotIn(OPENED, self.guest.run(execute + " 2>&1", "ada").stdout, "from a shell outside of the lease")
        job = self.leases()[0]["job"]
        self.expect_inside(self.guest.run(f"remuda exec {job} -- {execute} 2>&1", "ada").stdout)
        self.guest.must(f"remuda exec {job} -- podman exec --detach held setsid sh -c 'sleep 1004 & sleep 1005'", "ada")
        eventually(lambda: len(self.guest.run("pgrep -f '^sleep 100[345]'").stdout.split()) == 3)
        self.guest.must(f"remuda cancel {job}", "ada")
        self.guest.result(front)
        eventually(lambda: not self.leases())
        self.assertEqual(self.guest.run("pgrep -f '^sleep 100[345]'").stdout, "")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[2:], verbosity=2)
