#!/usr/bin/env python3
"""Eight users submit jobs to one agent, which is killed again and again: nobody takes from another, nothing is lost.

    agent_stress.py REMUDA MACHINE.json [--jobs 1000] [--users 8] [--kill-every 0.7] [--at-once 8] [--seed 1]
                    [--background]

Needs root, to become these users (exit status 77 otherwise). With --background each user submits all his jobs first, by `run -d`: they wait as
records without a process, and the agent starts one at the grant. The users have names and homes then, in an /etc/passwd that only this sees. Each process of a job holds a lock of the kernel (flock) on a
file for each device that it was granted, which is the independent observer: a job that finds one taken has found a second
owner. Meanwhile each user tries to end, read and outrank jobs of others, and one sends garbage, half requests and forged
words. At the end every job has run once, as its user, and there is no lease, no waiting job, no process of a job and no
cgroup of the pool. Prints one JSON line; exit status 1 when anything of that is not so.
"""
import argparse
import json
import os
import pathlib
import random
import struct
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests"))
from agent_client import Agent, Connection, as_user, eventually, has_own_mounts, name_users  # noqa: E402

FIRST_UID = 61100
JOB = r"""
import fcntl, os, sys, time
folder, number, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
held = []
for device in os.environ["REMUDA_DEVICES"].split(","):
    held.append(os.open(os.path.join(folder, "lock-" + device.replace("/", "_")), os.O_RDWR))
    try:
        fcntl.flock(held[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(os.open(os.path.join(folder, "twice-" + number), os.O_CREAT | os.O_WRONLY))
if os.fork() == 0:  # outlives its parent: the lease must last as long
    os.setsid()
    os.environ.clear()
    time.sleep(seconds)
    os._exit(0)
fd = os.open(os.path.join(folder, "ran-%s-%d" % (number, os.getuid())), os.O_CREAT | os.O_EXCL | os.O_WRONLY)
"""


class Stress:
    def __init__(self, arguments, agent):
        self.arguments, self.agent = arguments, agent
        self.random = random.Random(arguments.seed)
        self.users = [FIRST_UID + number for number in range(arguments.users)]
        self.wrong, self.kills, self.tries, self.over = [], 0, 0, False
        self.out = os.path.join(agent.folder, "out")
        os.mkdir(self.out)
        os.chmod(self.out, 0o1777)
        with open(agent.machine, encoding="utf-8") as file:
            for device in json.load(file)["devices"]:
                lock = os.path.join(self.out, "lock-" + device["id"].replace("/", "_"))
                os.close(os.open(lock, os.O_CREAT | os.O_RDWR))
                os.chmod(lock, 0o666)

    def run_jobs_of(self, uid, jobs, seed):
        chosen = random.Random(seed)

        def run(number, *flags):
            count = chosen.choice([1, 1, 1, 2, 2, 3, 4, 8])
            return self.ask(uid, f"job {number}", "run", *flags, "-n", str(count), "--", "/usr/bin/python3", "-S", "-E", "-c",
                            JOB, self.out, str(number), str(chosen.uniform(0.01, 0.1)))
        if self.arguments.background:
            submitted = [(number, run(number, "-d").strip()) for number in jobs]
            for number, job in submitted:
                self.ask(uid, f"job {number} ({job})", "wait", job)
        else:
            for number in jobs:
                run(number, "-q")
        for number in jobs:
            if not os.path.exists(os.path.join(self.out, f"ran-{number}-{uid}")):
                self.wrong.append(f"job {number} did not run as {uid}")

    def ask(self, uid, about, *words):
        """What the program prints for this user; anything but success is wrong. Who asks just when the agent was killed
        is told so (5), and may ask again where that changes nothing."""
        for _ in range(10):
            process = self.agent.start_as(uid, *words)
            printed, said = process.communicate(timeout=600)
            if process.returncode != 5 or words[0] != "wait":
                break
        if process.returncode != 0:
            self.wrong.append(f"{about} of {uid}: {words[0]} ended with {process.returncode}: {said.strip()}")
        return printed

    def kill_agent(self):
        while not self.over:
            time.sleep(self.arguments.kill_every)
            if self.over:
                return
            self.agent.kill()
            self.kills += 1
            self.agent.start()

    def meddle(self, uid):
        """What one user tries with the jobs of others; whatever succeeds is wrong."""
        connection = Connection(self.agent.socket)
        wrong = []
        for job in connection.ask("read")["result"]["jobs"]:
            if job["uid"] == uid:
                continue
            if any(job.get(field) for field in ("command", "folder", "log", "processes", "submission")):
                wrong.append(f"{uid} reads {job}")
            if not connection.apply("cancel", jobs=[job["id"]])["result"].get("refused"):
                wrong.append(f"{uid} ended job {job['id']}")
            for word in ({"operation": "end"}, {"operation": "requeue"}, {"operation": "give_way", "waits": True}):
                operation = word.pop("operation")
                if "error" not in connection.apply(operation, job=job["id"], **word):
                    wrong.append(f"{uid} spoke for job {job['id']}")
        if "error" not in connection.submit(priority=1, count=1):
            wrong.append(f"{uid} raised a priority")
        garbage = Connection(self.agent.socket, greets=False)
        garbage.socket.sendall(random.choice([os.urandom(100), b"\xff" * 8, struct.pack(">I", 5000) + b"half"]))
        return wrong

    def meddle_on(self):
        while not self.over:
            try:
                self.wrong += as_user(self.random.choice(self.users), self.meddle_as_one)
                self.tries += 1
            except RuntimeError:
                pass  # the agent was killed meanwhile
            time.sleep(0.05)

    def meddle_as_one(self):
        return self.meddle(os.getuid())

    def run(self):
        jobs = list(range(self.arguments.jobs))
        lanes = [(self.users[lane % len(self.users)], jobs[lane::self.arguments.at_once])
                 for lane in range(self.arguments.at_once)]
        threads = [threading.Thread(target=self.run_jobs_of, args=(*lane, self.arguments.seed + number))
                   for number, lane in enumerate(lanes)]
        others = [threading.Thread(target=self.kill_agent), threading.Thread(target=self.meddle_on)]
        for thread in threads + others:
            thread.start()
        for thread in threads:
            thread.join()
        self.over = True
        for thread in others:
            thread.join()
        self.check_end()

    def check_end(self):
        if not eventually(lambda: not self.agent.page()["jobs"]):
            self.wrong.append(f"jobs are left: {self.agent.page()['jobs']}")
        self.wrong += [f"two owners: {name}" for name in os.listdir(self.out) if name.startswith("twice-")]
        ran = sum(name.startswith("ran-") for name in os.listdir(self.out))
        if ran != self.arguments.jobs:
            self.wrong.append(f"{ran} of {self.arguments.jobs} jobs ran")
        if not eventually(lambda: not self.cgroups(), 10):
            self.wrong.append(f"cgroups are left: {self.cgroups()}")

    def cgroups(self):
        """Of this run's pool: those that are newer than it."""
        started = os.stat(self.out).st_ctime
        found = []
        for mount in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/devices"):
            if os.path.isdir(mount):
                found += [entry.path for entry in os.scandir(mount)
                          if entry.name.startswith("remuda-") and entry.stat().st_ctime > started]
        return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("remuda")
    parser.add_argument("machine")
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--users", type=int, default=8)
    parser.add_argument("--at-once", type=int, default=8)
    parser.add_argument("--kill-every", type=float, default=0.7, help="seconds between two kills of the agent")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--background", action="store_true", help="jobs wait as records without a process")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        print("this needs root, to act as several users")
        return 77
    if arguments.background and not has_own_mounts():
        print("this cannot give its users names here")
        return 77
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        agent = Agent(arguments.remuda, arguments.machine, folder)
        if arguments.background:
            name_users(agent, **{f"remuda-{uid}": uid for uid in range(FIRST_UID, FIRST_UID + arguments.users)})
        agent.start()
        stress = Stress(arguments, agent)
        try:
            stress.run()
        finally:
            agent.stop()
    print(json.dumps({"jobs": arguments.jobs, "users": arguments.users, "kills": stress.kills, "tries": stress.tries,
                      "seconds": round(time.monotonic() - start, 1), "wrong": stress.wrong[:20]}))
    return 1 if stress.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
