#!/usr/bin/python3
"""enforce = "everyone" of `remuda agent`: who can open the device file of a card, by the kernel.

agent_guard_test.py REMUDA NVML MACHINE     exit status 77 where this process cannot act as several users, or the kernel
                                            takes no programs for cgroups

NVML is the library that plays a machine. The topmost cgroup is one of the test's own: nothing outside of it is guarded.
Of gpu:0, /dev/full is a device file, so that there is one that a process can have open; those of the driver have none
behind them, and give ENXIO to who may open them.
"""
import errno
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import unittest

from agent_client import Agent, as_user, eventually

ADA, BOB = 61001, 61002
MAJOR = 195  # of the driver
MAY, MAY_NOT, OPENED = errno.ENXIO, errno.EPERM, 0


def cgroup_tree():
    """Where the tree of version 2 is mounted, and the folder of this process's cgroup in it."""
    with open("/proc/self/mountinfo") as file:
        mounts = [line.split() for line in file if " - cgroup2 " in line]
    with open("/proc/self/cgroup") as file:
        own = [line.strip()[3:] for line in file if line.startswith("0::")]
    return (mounts[-1][4], mounts[-1][4] + own[0]) if mounts and own else (None, None)


def run_in_own_tree():
    """This test again, with a cgroup of its own as the topmost one."""
    _, own = cgroup_tree()
    if os.geteuid() != 0 or not own or shutil.which("unshare") is None:
        print("this needs root, a tree of cgroups of version 2 and unshare(1)")
        return 77
    folder = os.path.join(own, f"remuda-guard-test-{os.getpid()}")
    try:
        os.mkdir(folder)
    except OSError as error:
        print("may not make cgroups here:", error)
        return 77
    inside = 'echo $$ >"$0/cgroup.procs" && exec unshare --mount --cgroup --propagation private "$@"'
    try:
        return subprocess.run(["/bin/sh", "-c", inside, folder, sys.executable, "-B", *sys.argv],
                              env={**os.environ, "REMUDA_TEST_TREE": "own"}, check=False).returncode
    finally:
        eventually(lambda: remove_tree(folder))


def remove_tree(folder):
    try:
        for path, _, _ in os.walk(folder, topdown=False):
            os.rmdir(path)
        return True
    except OSError:
        return not os.path.exists(folder)


class LiveAgent(Agent):
    """On this machine, with GPUs that the library plays. Users' own look at them is denied, as by a real driver."""

    GPUS = 3

    def __init__(self, remuda, library, machine, folder):
        super().__init__(remuda, machine, folder)
        with open(machine) as file:
            record = json.load(file)
        gpus = [device for device in record["devices"] if device["kind"] == "gpu"][:self.GPUS]
        for number, gpu in enumerate(gpus):
            gpu.update(minor=number, memory_bytes=16 << 30, pci=f"00f{number}:00:00.0", uuid=f"GPU-{number:08x}-0000-0000-0000-000000000000")
            gpu["status"] = {**gpu.get("status", {}), "processes": []}
        with open(self.machine, "w") as file:
            json.dump({**record, "devices": gpus, "links": []}, file)
        shutil.copy(library, os.path.join(folder, "libnvidia-ml.so.1"))
        self.machine_words = []
        self.own_environment = {"LD_LIBRARY_PATH": folder, "REMUDA_TEST_NVML": self.machine, "REMUDA_CLAIMS": folder}
        denied = ",".join(f"denied={number}" for number in range(self.GPUS))
        self.users_environment = {**self.own_environment, "REMUDA_TEST_NVML_FAULTS": denied}
        slots = os.path.join(folder, "slots")
        card = os.path.join(slots, gpus[0]["pci"], "drm", "card0")
        os.makedirs(card)
        with open(os.path.join(card, "dev"), "w") as file:
            file.write("1:7\n")
        subprocess.run(["mount", "--bind", slots, "/sys/bus/pci/devices"], check=True)
        for number in range(self.GPUS):
            os.mknod(self.node(number), stat.S_IFCHR | 0o666, os.makedev(MAJOR, number))
            os.chmod(self.node(number), 0o666)

    def node(self, number):
        return os.path.join(self.folder, f"nvidia{number}")

    def set_policy(self, enforce, exempt=()):
        text = f'[devices]\nenforce = "{enforce}"\nexempt = {json.dumps(list(exempt))}\n'
        with open(self.policy + ".new", "w") as file:
            file.write(text)
        os.rename(self.policy + ".new", self.policy)


def opens(uid, path):
    def work():
        try:
            os.close(os.open(path, os.O_RDONLY))
            return OPENED
        except OSError as error:
            return error.errno
    return as_user(uid, work)


class AgentGuardTest(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.agent = LiveAgent(*sys.argv[1:4], self.scratch.name)
        self.addCleanup(subprocess.run, ["umount", "/sys/bus/pci/devices"], check=False)
        self.addCleanup(self.open_all)

    def open_all(self):
        """As nothing else takes the guard away."""
        if self.agent.process:
            self.agent.stop()
        self.start("off").stop()
        self.assertEqual(opens(BOB, self.agent.node(0)), MAY)

    def start(self, enforce, exempt=()):
        self.agent.set_policy(enforce, exempt)
        self.agent.start()
        if "takes no device filter" in self.agent.said() or "verifier refuses" in self.agent.said():
            self.skipTest(self.agent.said())
        return self.agent

    def hold(self, uid, device):
        """A job on this device that tells in a file, on each line of its input, what it may open."""
        script = ('while read number; do cat "$OUT/nvidia$number" >/dev/null 2>"$HOME/said"; '
                  'LC_ALL=C grep -q permitted "$HOME/said" && echo closed || echo open; done')
        front = self.agent.start_as(uid, "run", "-q", "--device", device, "--", "/bin/sh", "-c", script, stdin=subprocess.PIPE)
        self.addCleanup(self.end, front)
        return front

    @staticmethod
    def end(process):
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream:
                stream.close()

    @staticmethod
    def may_open(front, number):
        front.stdin.write(f"{number}\n")
        front.stdin.flush()
        return front.stdout.readline().strip()

    # -- everyone

    def test_a_card_is_for_who_holds_it(self):
        self.start("everyone")
        self.assertEqual(opens(BOB, self.agent.node(1)), MAY_NOT)
        job = self.hold(ADA, "gpu:1")
        self.assertEqual([self.may_open(job, number) for number in (0, 1, 2)], ["closed", "open", "closed"])
        self.assertEqual(opens(ADA, self.agent.node(1)), MAY_NOT, "a shell of the same user, outside of the job")
        self.assertEqual(opens(BOB, self.agent.node(1)), MAY_NOT)
        self.assertEqual(opens(0, self.agent.node(1)), MAY)
        self.assertIn(f"(python3) of user {BOB} was kept from gpu:1 (device file {MAJOR}:1)", self.eventually_said("kept from gpu:1"))
        job.stdin.close()
        self.assertEqual(job.wait(60), 0)

    def eventually_said(self, text):
        eventually(lambda: text in self.agent.said())
        return self.agent.said()

    def test_jobs_keep_their_cards_when_the_agent_is_killed(self):
        self.start("everyone")
        job = self.hold(ADA, "gpu:1")
        self.assertEqual(self.may_open(job, 1), "open")
        for _ in range(5):
            self.agent.kill()
            self.assertEqual([self.may_open(job, number) for number in (1, 2)], ["open", "closed"])
            self.assertEqual(opens(BOB, self.agent.node(1)), MAY_NOT)
            self.assertEqual(opens(0, self.agent.node(1)), MAY)
            self.agent.start()
            self.assertEqual([self.may_open(job, number) for number in (1, 2)], ["open", "closed"])
            self.assertEqual(opens(BOB, self.agent.node(1)), MAY_NOT)
        job.stdin.close()
        self.assertEqual(job.wait(60), 0)
        other = self.hold(BOB, "gpu:1")
        self.assertEqual(self.may_open(other, 1), "open")
        other.stdin.close()
        other.wait(60)

    def test_a_policy_that_changes_is_brought_in_force(self):
        self.start("jobs")
        self.assertEqual(opens(BOB, self.agent.node(1)), MAY)
        for enforce, outcome in (("everyone", MAY_NOT), ("off", MAY)):
            self.agent.set_policy(enforce)
            time.sleep(2)  # a policy that was read is believed for so long
            self.agent.run_as(ADA, "run", "-q", "--", "true")
            self.assertEqual(opens(BOB, self.agent.node(1)), outcome)

    def test_processes_of_exempt_units_open_all(self):
        tree, _ = cgroup_tree()
        unit = os.path.join(tree, "system.slice", "watches.service")
        self.start("everyone", ["watches.service"])

        def from_unit():
            os.makedirs(unit, exist_ok=True)
            eventually(lambda: False, 0.2)  # it takes a unit some milliseconds to start
            with open(os.path.join(unit, "cgroup.procs"), "w") as procs:
                procs.write("0")
            print(opens(BOB, self.agent.node(1)), flush=True)
        self.assertEqual(self.in_child(from_unit), str(MAY))
        self.assertEqual(opens(BOB, self.agent.node(1)), MAY_NOT)

    @staticmethod
    def in_child(work):
        """What it prints."""
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.dup2(writer, 1)
            sys.stdout = os.fdopen(1, "w")
            try:
                work()
            finally:
                os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as file:
            text = file.read()
        os.waitpid(child, 0)
        return text.strip()

    def test_a_card_that_somebody_has_open_is_granted_to_nobody(self):
        with open("/dev/full", "rb") as full:
            opener = subprocess.Popen(["sleep", "1000"], stdin=full, user=BOB, group=BOB, extra_groups=[])
        self.addCleanup(self.end, opener)
        self.start("everyone")
        refused = self.agent.run_as(ADA, "run", "--no-wait", "--device", "gpu:0", "--", "true")
        self.assertEqual(refused.returncode, 4, refused.stderr)
        self.assertIn(f"{BOB} (process {opener.pid}", refused.stderr)
        opener.kill()
        opener.wait()
        ran = self.agent.run_as(ADA, "run", "-q", "--device", "gpu:0", "--", "head", "-c", "1", "/dev/full")
        self.assertEqual((ran.returncode, ran.stdout), (0, "\0"), ran.stderr)

    def test_users_see_the_machine_as_the_agent_does(self):
        def seen():
            devices = json.loads(self.agent.run_as(BOB, "list", "--json").stdout)["devices"]
            return [gpu["uuid"] for gpu in devices if gpu["kind"] == "gpu" and isinstance(gpu["uuid"], str)]
        self.start("jobs")
        self.assertEqual(seen(), [], "the driver denies it")
        self.agent.stop()
        self.start("everyone")
        gpus = seen()
        self.assertEqual(len(gpus), self.agent.GPUS)
        ran = self.agent.run_as(BOB, "run", "-q", "--mem", "1GiB", "--device", "gpu:2", "--", "/bin/sh", "-c", "echo $CUDA_VISIBLE_DEVICES")
        self.assertEqual(ran.stdout.strip(), gpus[2], ran.stderr)

    # -- audit

    def test_an_audit_refuses_nobody_and_tells_whom_it_would(self):
        self.start("audit")
        self.assertEqual(opens(BOB, self.agent.node(2)), MAY)
        said = self.eventually_said("would be kept from gpu:2")
        self.assertIn(f"of user {BOB} would be kept from gpu:2 (device file {MAJOR}:2)", said)


if __name__ == "__main__":
    if os.environ.get("REMUDA_TEST_TREE") != "own":
        sys.exit(run_in_own_tree())
    mount_point = cgroup_tree()[0]
    subprocess.run(["umount", "--lazy", mount_point], check=True)
    subprocess.run(["mount", "-t", "cgroup2", "none", mount_point], check=True)
    unittest.main(argv=[sys.argv[0]] + sys.argv[4:])
