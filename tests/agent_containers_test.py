#!/usr/bin/python3
"""Containers that users start in leases under `remuda agent`, by Debian's podman: whether they stay in them.

agent_containers_test.py REMUDA MACHINE     exit status 77 where users can start no containers

/etc/passwd and the tree of cgroups are ones that only this test sees: the tree is of version 2, as on a system of today,
also where the machine has both.
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

from agent_client import Agent, eventually, is_alive

REMUDA, MACHINE = sys.argv[1], sys.argv[2]
ADA = 61021
CONF = """[containers]
cgroupns = "host"
netns = "none"
default_ulimits = ["nofile=1024:1024", "nproc=1000:1000"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
"""
TREE = "/sys/fs/cgroup"


def may_skip(why):
    print("users can start no containers here: " + why)
    sys.exit(77)


def in_own_mounts():
    """This test again, with mounts of its own."""
    missing = [name for name in ("podman", "crun", "busybox", "unshare") if not shutil.which(name)]
    if missing or os.geteuid() != 0:
        may_skip(", ".join(missing) + " is missing" if missing else "this is not root, who acts as a user")
    is_unified = os.path.exists(TREE + "/cgroup.controllers")
    mount = "true" if is_unified else f"umount --recursive --lazy {TREE} && mount -t cgroup2 none {TREE}"
    own = ["unshare", "--mount", "--propagation", "private", "/bin/sh", "-c"]
    tried = subprocess.run([*own, mount], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        may_skip("a tree of cgroups of version 2 cannot be mounted: " + tried.stderr.strip())
    os.environ["REMUDA_TEST_TREE"] = "own"
    os.execvp(own[0], [*own, mount + ' && exec "$0" "$@"', sys.executable, "-B", *sys.argv])


class ContainersTest(unittest.TestCase):
    def setUp(self):
        # What podman leaves behind may write there for a moment still.
        self.scratch = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.addCleanup(self.scratch.cleanup)
        self.agent = Agent(REMUDA, MACHINE, self.scratch.name)
        self.home = self.agent.environment(ADA)["HOME"]
        passwd = os.path.join(self.scratch.name, "passwd")
        with open("/etc/passwd") as old, open(passwd, "w") as new:
            new.write(old.read() + f"remuda-ada:x:{ADA}:{ADA}::{self.home}:/bin/sh\n")
        os.chmod(passwd, 0o644)
        subprocess.run(["mount", "--bind", passwd, "/etc/passwd"], check=True)
        self.addCleanup(subprocess.run, ["umount", "/etc/passwd"], check=True)
        self.make_root(os.path.join(self.home, "root"))
        conf = os.path.join(self.scratch.name, "containers.conf")
        with open(conf, "w") as file:
            file.write(CONF)
        os.chmod(conf, 0o644)
        self.agent.users_environment = {"CONTAINERS_CONF": conf, "STORAGE_DRIVER": "vfs", "XDG_RUNTIME_DIR": self.home + "/run"}
        tried = self.outside("podman", "run", "--rm", "--rootfs", self.home + "/root", "true")
        if tried.returncode != 0:
            self.skipTest("podman starts no container here: " + tried.stderr)
        self.agent.start()
        self.addCleanup(self.agent.end)

    def make_root(self, root):
        for folder in ("bin", "dev", "etc", "proc", "sys", "tmp"):
            os.makedirs(os.path.join(root, folder))
        shutil.copy(shutil.which("busybox"), os.path.join(root, "bin/busybox"))
        for name in ("sh", "cat", "sleep", "setsid", "true"):
            os.symlink("busybox", os.path.join(root, "bin", name))
        os.mkdir(self.home + "/run", 0o700)
        subprocess.run(["chown", "-R", f"{ADA}:{ADA}", root, self.home + "/run"], check=True)

    def outside(self, *words):
        """What the user starts in no lease."""
        return subprocess.run(words, env=self.agent.environment(ADA), user=ADA, group=ADA, extra_groups=[], cwd=self.home,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)

    def in_lease(self, *words):
        return self.agent.run_as(ADA, "run", "-q", "--", *words)

    def hold(self, *flags):
        """A job with a container in the background, in which a process has left its parent and its session; its front."""
        daemon = "setsid sh -c 'sleep 1001 & sleep 1002' & sleep 1003"
        start = f"podman run -d --name held {' '.join(flags)} --rootfs {self.home}/root sh -c \"{daemon}\" && exec sleep 1000"
        front = self.agent.start_as(ADA, "run", "--grace", "0", "--", "/bin/sh", "-c", start)  # the first of a container ignores SIGTERM
        self.addCleanup(lambda: [front.kill(), front.communicate()])
        self.assertTrue(eventually(lambda: front.poll() is not None or len(self.sleepers()) == 4), self.sleepers())
        self.assertIsNone(front.poll(), front.poll() is not None and front.communicate())
        return front

    def cgroup(self):
        return self.agent.page()["jobs"][0]["cgroup"]

    def members(self):
        """The command lines of the job's processes, by their numbers."""
        lines = {}
        for path, _, _ in os.walk(self.cgroup()):
            with open(os.path.join(path, "cgroup.procs")) as procs:
                for pid in map(int, procs):
                    with open(f"/proc/{pid}/cmdline") as line:
                        lines[pid] = line.read().replace("\0", " ").strip()
        return lines

    def sleepers(self):
        try:
            return {pid: line for pid, line in self.members().items() if line.startswith("sleep 100")}
        except (OSError, IndexError, KeyError):
            return {}  # it has not begun, or a process has just ended

    def is_inside(self, said, job=1):
        """By what a process says of its cgroup."""
        return re.search(rf"^0::/.*remuda-[0-9a-f]+-{job}(/|$)", said, re.MULTILINE) is not None

    def test_a_container_in_a_lease_is_in_its_cgroup_whatever_podman_is_told(self):
        for number, flag in enumerate(("--cgroups=enabled", "--cgroups=disabled", "--cgroups=no-conmon"), 1):
            ran = self.in_lease("podman", "run", "--rm", flag, "--rootfs", self.home + "/root", "cat", "/proc/self/cgroup")
            self.assertEqual(ran.returncode, 0, ran)
            self.assertTrue(self.is_inside(ran.stdout, number), (flag, ran))

    def test_what_podman_keeps_for_the_users_next_containers_keeps_no_job(self):
        """As systemd puts it into a unit of its own, which this machine may have none to do."""
        unit = os.path.join(TREE, "podman-pause-1.scope")
        os.mkdir(unit)
        self.addCleanup(os.rmdir, unit)
        front = self.agent.start_as(ADA, "run", "-q", "--", "/bin/sh", "-c",
                                    f"sleep 1005 >/dev/null 2>&1 & while ! test -e {self.home}/moved; do sleep 0.1; done")
        self.addCleanup(lambda: [front.kill(), front.communicate()])
        find = lambda: [pid for pid, line in self.sleepers().items() if line == "sleep 1005"]
        pid = eventually(find)[0]
        with open(os.path.join(unit, "cgroup.procs"), "w") as procs:
            procs.write(str(pid))
        open(os.path.join(self.home, "moved"), "w").close()
        _, err = front.communicate(timeout=60)
        self.assertEqual((front.returncode, is_alive(pid)), (0, True), err)
        os.kill(pid, signal.SIGKILL)
        self.assertTrue(eventually(lambda: not is_alive(pid)))

    def test_nothing_of_a_container_outlives_its_lease(self):
        front = self.hold()
        members = self.members()
        self.assertTrue([line for line in members.values() if "conmon" in line], members)
        front.terminate()
        front.communicate(timeout=60)
        self.assertTrue(eventually(lambda: not self.agent.page().get("leases")))
        left = lambda: [line for pid, line in members.items() if is_alive(pid)]
        self.assertTrue(eventually(lambda: not left()), left())
        again = self.in_lease("podman", "run", "--rm", "--rootfs", self.home + "/root", "true")
        self.assertEqual(again.returncode, 0, again)

    def test_a_command_in_a_container_is_where_podman_exec_was_called_and_ends_with_the_lease(self):
        front = self.hold()
        inside = self.agent.run_as(ADA, "exec", "1", "--", "podman", "exec", "held", "cat", "/proc/self/cgroup")
        self.assertTrue(self.is_inside(inside.stdout), inside)
        outside = self.outside("podman", "exec", "held", "cat", "/proc/self/cgroup")
        self.assertEqual((outside.returncode, self.is_inside(outside.stdout)), (0, False), outside)
        stays = subprocess.Popen(["podman", "exec", "held", "sleep", "1004"], env=self.agent.environment(ADA), user=ADA, group=ADA,
                                 extra_groups=[], cwd=self.home, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(lambda: [stays.kill(), stays.wait()])
        self.assertTrue(eventually(lambda: "sleep 1004" in self.outside("podman", "top", "held", "args").stdout))
        front.terminate()
        front.communicate(timeout=60)
        self.assertTrue(eventually(lambda: not self.agent.page().get("leases")))
        self.assertIsNotNone(stays.wait(60), "the container's first process has ended, and with it all in there")


if __name__ == "__main__":
    if os.environ.get("REMUDA_TEST_TREE") != "own":
        in_own_mounts()
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:])
