#!/usr/bin/env python3
"""Many `remuda run` at once, with kill -9 at random: never two owners of a device, nothing left behind.

    run_stress.py REMUDA MACHINE.json [--seconds 120] [--at-once 200] [--kill 0.5] [--seed 1]

Jobs ask for 1 to 8 devices of a recorded machine, and each process of a job holds a lock of the kernel (flock) on a file
for each device that it was granted, which is the independent observer: a job that finds one taken has found a second
owner. Fronts, keepers and jobs are killed at random. At the end every job that was not killed has run, and there is no
lease, no waiting job, no process and no lock. Prints one JSON line; exit status 1 when anything of that is not so.

It also says how long devices lay idle, in seconds (count, median, 99 of 100, most): "freed" from the end of a job's last
process to the end of its leases, "freed_after_kill" the same from the kill of its keeper or front, and "taken" from the
end of the last process to the start of the next job on one of its devices, where that was waiting already. With many at
once these say more about the processors than about remuda: for that, --at-once 3 --kill 0.
"""
import argparse
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

JOB = r"""
import fcntl, os, sys, time
folder, seconds = sys.argv[1], float(sys.argv[2])
held = []
for device in os.environ["REMUDA_DEVICES"].split(","):
    held.append(open(os.path.join(folder, "lock-" + device.replace("/", "_")), "a"))
    try:
        fcntl.flock(held[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        open(os.path.join(folder, "twice"), "a").write(device + " job " + os.environ["REMUDA_JOB"] + "\n")
if os.fork() == 0:  # outlives its parent: the lease must last as long
    os.setsid()
    time.sleep(seconds)
    with open(os.path.join(folder, "end-" + os.environ["REMUDA_JOB"]), "w") as end:
        print(time.time(), os.environ["REMUDA_DEVICES"], file=end)
    os._exit(0)
time.sleep(seconds / 2)
open(os.path.join(folder, "ran-" + sys.argv[3]), "w").close()
"""


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(child) for child in file.read().split()]
    except OSError:
        return []


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def carriers(state):
    """Living processes with the pool's folder in their environment."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                if b"XDG_STATE_HOME=" + state.encode() + b"\0" not in file.read():
                    continue
            with open(f"/proc/{name}/stat") as file:
                if file.read().rsplit(") ", 1)[1][0] != "Z":
                    found.append(int(name))
        except OSError:
            pass
    return found


def distribution(seconds):
    if not seconds:
        return {"count": 0}
    seconds = sorted(seconds)
    at = {"p50": 0.5, "p99": 0.99, "max": 1}
    return {"count": len(seconds), **{name: round(seconds[int(part * (len(seconds) - 1))], 4)
                                      for name, part in at.items()}}


class Stress:
    def __init__(self, arguments, folder):
        self.arguments, self.folder = arguments, folder
        self.random = random.Random(arguments.seed)
        self.environment = {**os.environ, "XDG_STATE_HOME": os.path.join(folder, "state")}
        self.running, self.started, self.killed, self.wrong = {}, 0, set(), []
        self.kill_times = {}
        self.kills = {"front": 0, "keeper": 0, "job": 0}

    def start(self):
        self.started += 1
        number = str(self.started)
        count = self.random.choice([1, 1, 1, 2, 2, 3, 4, 8])
        line = [self.arguments.remuda, "run", "-q", "--machine", self.arguments.machine, "-n", str(count), "--",
                "/usr/bin/python3", "-S", "-E", "-c", JOB, self.folder, str(self.random.uniform(0.02, 0.3)), number]
        self.running[number] = subprocess.Popen(line, env=self.environment, stdin=subprocess.DEVNULL,
                                                stderr=subprocess.PIPE)

    def kill_somebody(self):
        number = self.random.choice(list(self.running))
        front = self.running[number].pid
        keepers = children(front)
        jobs = [job for keeper in keepers for job in children(keeper)]
        whom = self.random.choice(["front", "keeper", "job", "all"])
        victims = {"front": [front], "keeper": keepers, "job": jobs, "all": [front] + keepers}[whom]
        if not victims:
            return
        self.killed.add(number)
        if whom != "job":
            self.kill_times.setdefault(number, time.time())
        for pid in victims:
            kill(pid)
        for kind in ["front", "keeper"] if whom == "all" else [whom]:
            self.kills[kind] += 1

    def collect(self):
        for number, process in list(self.running.items()):
            if process.poll() is None:
                continue
            del self.running[number]
            said = process.stderr.read().decode()
            process.stderr.close()
            ran = os.path.exists(os.path.join(self.folder, "ran-" + number))
            if number not in self.killed and (process.returncode != 0 or not ran):
                self.wrong.append(f"job {number} ended with {process.returncode}, ran: {ran}: {said.strip()}")

    def run(self):
        end = time.monotonic() + self.arguments.seconds
        while time.monotonic() < end:
            for _ in range(min(5, self.arguments.at_once - len(self.running))):
                self.start()
            if self.running and self.random.random() < self.arguments.kill:
                self.kill_somebody()
            self.collect()
            time.sleep(0.02)
        patience = time.monotonic() + self.arguments.seconds + 300
        while self.running and time.monotonic() < patience:
            self.collect()
            time.sleep(0.02)
        if self.running:
            self.wrong.append(f"{len(self.running)} runs did not end")
            for process in self.running.values():
                process.kill()

    def pool(self):
        line = [self.arguments.remuda, "ps", "--json", "--machine", self.arguments.machine]
        return json.loads(subprocess.run(line, env=self.environment, capture_output=True, check=True).stdout)

    def idle(self):
        """How long devices lay idle, by the pool's own record of its jobs."""
        pools = os.path.join(self.environment["XDG_STATE_HOME"], "remuda", "pools")
        database = sqlite3.connect(os.path.join(pools, os.listdir(pools)[0], "pool.db"))
        jobs = {number: json.loads(record) for number, record in database.execute("SELECT id, record FROM job")}
        ends, starts = {}, {}
        for number, job in jobs.items():
            path = os.path.join(self.folder, f"end-{number}")
            if os.path.exists(path):
                with open(path) as file:
                    end, devices = file.read().split(maxsplit=1)
                ends[number] = float(end), devices.strip().split(",")
                for device in ends[number][1]:
                    starts.setdefault(device, []).append((job["started_s"], job["submitted_s"]))
        freed, after_kill, taken = [], [], []
        for number, job in jobs.items():
            kill_time = self.kill_times.get(job["command"][-1])
            if kill_time and job.get("started_s", 0) > 0 and job["started_s"] < kill_time < job["ended_s"]:
                after_kill.append(job["ended_s"] - kill_time)
            if number not in ends or kill_time:
                continue
            end, devices = ends[number]
            freed.append(job["ended_s"] - end)
            following = [min((start for start in starts[device] if start[0] > end), default=None)
                         for device in devices]
            taken += [start - end for start, submitted in filter(None, following) if submitted < end]
        return {"freed": distribution(freed), "freed_after_kill": distribution(after_kill),
                "taken": distribution(taken)}

    def look_for_remains(self):
        end = time.monotonic() + 10
        while (self.pool()["leases"] or self.pool()["waiting"] or carriers(self.environment["XDG_STATE_HOME"])) \
                and time.monotonic() < end:
            time.sleep(0.1)
        pool, left = self.pool(), carriers(self.environment["XDG_STATE_HOME"])
        for what, found in {"leases": pool["leases"], "waiting jobs": pool["waiting"], "processes": left}.items():
            if found:
                self.wrong.append(f"{len(found)} {what} are left: {str(found)[:500]}")
        twice = os.path.join(self.folder, "twice")
        if os.path.exists(twice):
            with open(twice) as file:
                self.wrong.append(f"two owners: {file.read()[:500]}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("remuda")
    parser.add_argument("machine")
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--at-once", type=int, default=200)
    parser.add_argument("--kill", type=float, default=0.5, help="how likely somebody is killed, every 20 ms")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        stress = Stress(arguments, folder)
        stress.run()
        stress.look_for_remains()
        ran = sum(1 for name in os.listdir(folder) if name.startswith("ran-"))
        print(json.dumps({"started": stress.started, "ran": ran, "killed": len(stress.killed), "kills": stress.kills,
                          "idle_s": stress.idle(),
                          "wrong": stress.wrong}))
    sys.exit(1 if stress.wrong else 0)


if __name__ == "__main__":
    main()
