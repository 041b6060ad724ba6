#!/usr/bin/python3
"""What `remuda agent` does with devices between jobs, and with daemons that share them, on a machine that a library plays.

agent_owners_test.py REMUDA NVML MACHINE     exit status 77 where this process cannot become other users
"""
import os
import shutil
import socket
import stat
import subprocess
import sys
import time
import unittest

from agent_client import eventually
from played_agent import ADA, BOB, GIB, OwnersTest
from ports import free_port

# nvidia-cuda-mps-control, as far as remuda uses it: a daemon that answers while its folder is there.
STAND_IN = """#!/bin/sh
pipe=$CUDA_MPS_PIPE_DIRECTORY
case "$1" in
-d)
  setsid "$0" serve </dev/null >/dev/null 2>&1 &
  while ! test -e "$pipe/pid"; do sleep 0.01; done ;;
serve)
  echo $$ >"$pipe/pid.new" && mv "$pipe/pid.new" "$pipe/pid"
  while :; do sleep 0.05; done ;;
*)
  read -r line
  test -e "$pipe/pid" && kill -0 "$(cat "$pipe/pid")" ;;
esac
"""


class HandoverTest(OwnersTest):
    def test_the_next_job_waits_until_the_memory_of_the_last_is_gone(self):
        self.agent.start()
        first = self.start_job(ADA, "-n", "2")
        self.agent.holds_memory(1, 3 * GIB)
        self.end_job(first)
        next_one = self.agent.start_as(BOB, "run", "-q", "-n", "2", "--", "true")
        said = lambda: self.agent.run_as(BOB, "why", "2").stdout
        self.assertTrue(eventually(lambda: "of its memory are in use, and no process has them" in said()), said())
        self.assertIn("after job 1 of", said())
        self.assertIsNone(next_one.poll())
        self.agent.holds_memory(1, GIB // 4)
        next_one.communicate(timeout=60)
        self.assertEqual(next_one.returncode, 0)
        self.assertEqual(self.agent.drains(), [])

    def test_the_next_agent_knows_what_an_idle_device_holds(self):
        self.agent.start()
        self.assertEqual(self.run_all().returncode, 0)
        self.agent.kill()
        self.agent.holds_memory(0, 5 * GIB)
        self.agent.start()
        waiting = self.agent.start_as(ADA, "run", "-q", "-n", "2", "--", "true")
        said = lambda: self.agent.run_as(ADA, "why", "2").stdout
        self.assertTrue(eventually(lambda: "at the agent's start" in said()), said())
        self.agent.holds_memory(0, GIB // 4)
        waiting.communicate(timeout=60)
        self.assertEqual(waiting.returncode, 0)

    def test_a_device_that_fails_the_probe_is_drained_with_its_words(self):
        bad = os.path.join(self.scratch.name, "bad")
        probe = self.agent.install("check-gpu", f'#!/bin/sh\ngrep -q "$REMUDA_DEVICES" {bad} || exit 0\necho its fan stands\nexit 1\n')
        open(bad, "w").close()
        self.agent.set_policy(f'[health]\nprobe = "{probe}"\ntimeout = "10s"\n')
        self.agent.start()
        self.assertEqual(self.run_all().returncode, 0)
        last = self.start_job(ADA, "-n", "2")
        with open(bad, "w") as file:
            file.write(self.agent.gpus[1]["uuid"] + "\n")
        self.end_job(last)
        self.assertTrue(eventually(self.agent.drains))
        reason = "after job 2 of 61001: its health probe exited with status 1: its fan stands"
        self.assertEqual(self.agent.drains()[0]["reason"], reason)
        self.assertIn("gpu:1 is drained: " + reason, self.agent.run_as(BOB, "list").stdout)
        self.assertIn(reason, self.agent.run_as(BOB, "ps").stdout)
        self.assertEqual(self.agent.run_as(BOB, "run", "-q", "--", "true").returncode, 0, "the other one is well")
        self.assertTrue(eventually(lambda: self.agent.run_as(BOB, "run", "--no-wait", "-n", "2", "--", "true").returncode == 4))
        open(bad, "w").close()
        self.assertEqual(self.agent.run_as(0, "undrain", "gpu:1").returncode, 0)
        self.assertEqual(self.run_all().returncode, 0)

    def test_a_probe_that_hangs_delays_nobody_else(self):
        probe = self.agent.install("check-gpu", "#!/bin/sh\nsleep 1000\n")
        self.agent.set_policy(f'[health]\nprobe = "{probe}"\ntimeout = "2s"\n')
        self.agent.start()
        self.assertTrue(eventually(lambda: len(self.agent.drains()) == 2))
        self.assertIn("its health probe did not end in time", self.agent.drains()[0]["reason"])


class DaemonTest(OwnersTest):
    def setUp(self):
        if not os.listdir("/sys/fs/cgroup"):
            self.skipTest("an agent keeps a daemon in a cgroup, and there is none")
        super().setUp()
        self.agent.install("nvidia-cuda-mps-control", STAND_IN)
        self.agent.set_policy("[sharing]\nmps = true\n")
        self.out = os.path.join(self.scratch.name, "out")
        os.mkdir(self.out, 0o777)
        os.chmod(self.out, 0o777)

    def share(self, uid, name):
        """A job with a part of the first device, and the folder in which it reaches the daemon."""
        path = os.path.join(self.out, name)
        front = self.start_job(uid, "--share", "30%", "--device", "gpu:0", script=f"echo $CUDA_MPS_PIPE_DIRECTORY >{path}.new; mv {path}.new {path}; sleep 1000")
        self.assertTrue(eventually(lambda: os.path.exists(path)))
        with open(path) as file:
            return front, file.read().strip()

    def daemon_of(self, pipe):
        with open(os.path.join(pipe, "pid")) as file:
            return int(file.read())

    def is_alive(self, pid):
        return os.path.exists(f"/proc/{pid}")

    def test_a_daemon_is_its_users_and_ends_with_the_last_lease(self):
        self.agent.start()
        first, pipe = self.share(ADA, "first")
        self.assertTrue(pipe.startswith(os.path.join(os.path.dirname(self.agent.socket), "mps") + "/"), pipe)
        info = os.stat(os.path.dirname(pipe))
        self.assertEqual((info.st_uid, stat.S_IMODE(info.st_mode)), (ADA, 0o700))
        daemon = self.daemon_of(pipe)
        self.assertEqual(os.stat(f"/proc/{daemon}").st_uid, ADA)
        second, same = self.share(ADA, "second")
        self.assertEqual(same, pipe)
        self.end_job(first)
        self.assertTrue(eventually(lambda: len(self.agent.leases()) == 1))
        self.assertTrue(self.is_alive(daemon), "the second one uses it")
        self.end_job(second)
        self.assertTrue(eventually(lambda: not self.is_alive(daemon)))
        self.assertTrue(eventually(lambda: not os.path.exists(os.path.dirname(pipe))))

    def test_another_user_goes_without(self):
        self.agent.start()
        _, pipe = self.share(ADA, "first")
        _, none = self.share(BOB, "second")
        self.assertNotEqual(pipe, "")
        self.assertEqual(none, "")

    def test_a_killed_agent_leaves_it_to_the_next_one(self):
        self.agent.start()
        first, pipe = self.share(ADA, "first")
        daemon = self.daemon_of(pipe)
        self.agent.kill()
        self.assertTrue(self.is_alive(daemon), "its job goes on")
        self.agent.start()
        time.sleep(0.3)
        self.assertTrue(self.is_alive(daemon))
        self.agent.kill()
        first.kill()
        first.communicate()
        self.agent.start()
        self.assertTrue(eventually(lambda: not self.agent.leases()))
        self.assertTrue(eventually(lambda: not self.is_alive(daemon)), "no job needs it")

    def test_there_is_none_unless_the_policy_allows_it(self):
        self.agent.set_policy("")
        self.agent.start()
        _, none = self.share(ADA, "first")
        self.assertEqual(none, "")


class SlurmTest(OwnersTest):
    """The real one, with a controller and a node of its own, and stand-in device files."""

    def setUp(self):
        super().setUp()
        missing = [name for name in ("slurmctld", "slurmd", "scontrol", "squeue", "sbatch", "scancel") if not shutil.which(name)]
        plugins = "/usr/lib/x86_64-linux-gnu/slurm-wlm"
        if missing or not os.path.exists(os.path.join(plugins, "auth_none.so")):
            self.skipTest("this needs Debian's slurm-wlm: " + (", ".join(missing) or "auth/none") + " is missing")
        self.node = socket.gethostname().split(".")[0]
        self.slurm = os.path.join(self.scratch.name, "slurm")
        for part in ("", "state", "spool"):
            os.mkdir(os.path.join(self.slurm, part))
        os.mknod(os.path.join(self.slurm, "nvidia0"), stat.S_IFCHR | 0o666, os.makedev(195, 0))
        ports = [free_port(), free_port()]
        with open(os.path.join(self.slurm, "slurm.conf"), "w") as file:
            file.write(f"""ClusterName=test
SlurmctldHost={self.node}(127.0.0.1)
SlurmUser=root
AuthType=auth/none
CredType=cred/none
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmctldPidFile={self.slurm}/ctld.pid
SlurmdPidFile={self.slurm}/slurmd.pid
StateSaveLocation={self.slurm}/state
SlurmdSpoolDir={self.slurm}/spool
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
GresTypes=gpu
ReturnToService=2
MpiDefault=none
SchedulerParameters=sched_interval=1,batch_sched_delay=0
NodeName={self.node} NodeAddr=127.0.0.1 CPUs=1 Gres=gpu:1 State=UNKNOWN
PartitionName=main Nodes={self.node} Default=YES State=UP
""")
        with open(os.path.join(self.slurm, "gres.conf"), "w") as file:
            file.write(f"Name=gpu File={self.slurm}/nvidia0\n")
        self.environment = {**os.environ, "SLURM_CONF": os.path.join(self.slurm, "slurm.conf")}
        self.agent.own_environment["SLURM_CONF"] = self.environment["SLURM_CONF"]
        for daemon in ("slurmctld", "slurmd"):
            log = open(os.path.join(self.slurm, daemon + ".log"), "wb")
            self.addCleanup(log.close)
            process = subprocess.Popen([daemon, "-D"], env=self.environment, stdout=log, stderr=log)
            self.addCleanup(lambda one=process: [one.terminate(), one.wait(60)])
        self.assertTrue(eventually(lambda: "idle" in self.ask("sinfo", "-h", "-o", "%T")), "Slurm does not start")

    def ask(self, *words):
        return subprocess.run(words, env=self.environment, capture_output=True, text=True, check=False, cwd="/").stdout

    def test_its_device_is_held_by_its_job_and_granted_to_nobody(self):
        self.agent.start()
        self.assertIn("gpu:0 is Slurm's, to be had with srun or sbatch", self.agent.run_as(ADA, "list").stdout)
        job = self.ask("sbatch", "--parsable", "--gres=gpu:1", "--output=/dev/null", "--wrap", "sleep 1000").strip()
        self.addCleanup(self.ask, "scancel", job)
        held = f"gpu:0 is held by slurm job {job} (root), and is Slurm's, to be had with srun or sbatch"
        waiting = self.start_job(ADA, "--device", "gpu:1")
        behind = self.agent.start_as(ADA, "run", "-q", "--device", "gpu:1", "--", "true")  # so that the machine is read
        self.addCleanup(lambda: [behind.kill(), behind.communicate()])
        self.assertTrue(eventually(lambda: held in self.agent.run_as(ADA, "list").stdout))
        self.assertIn(f"slurm job {job} (root)", self.agent.run_as(BOB, "ps").stdout)
        refused = self.agent.run_as(BOB, "run", "--device", "gpu:0", "--", "true")
        self.assertEqual(refused.returncode, 3, refused)
        self.assertIn("to be had with srun or sbatch", refused.stderr)
        self.end_job(waiting)
        behind.communicate(timeout=60)
        self.assertEqual(behind.returncode, 0, "the other one is the pool's")


if __name__ == "__main__":
    if os.geteuid() != 0:
        print("this test needs root, to be several users")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
