#!/usr/bin/env python3
"""What an agent costs: the time of a submission, from request to answer, and the memory and the processes of all that waits,
while no job does and while many do.

    agent.py [REMUDA [MACHINE.json]] [--waiting 10000] [--commands 100] [--rounds 300]

Some of the waiting jobs are submitted by commands, `remuda run -d`, the others by programs that have their connection already
and then end, as the commands do; so are the requests that are timed. All devices are held, so that each submission is queued.
Needs root, to act as several users. Prints one JSON line for each number of waiting jobs: times in milliseconds; memory as its
proportional part of what processes share (PSS), in MB.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
from agent_client import Agent, Connection, eventually, has_own_mounts, name_users  # noqa: E402

USERS = {f"remuda-user-{number}": 61200 + number for number in range(4)}


def memory_mb(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="utf-8") as file:
        return int(next(line for line in file if line.startswith("Pss:")).split()[1]) / 1024


def processes_of_users():
    """Those of the users whose jobs wait; without what ends meanwhile."""
    pids = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.stat(f"/proc/{name}").st_uid in USERS.values():
                pids.append((int(name), memory_mb(name)))
        except (OSError, StopIteration):
            pass
    return pids


def quantiles(seconds):
    seconds = sorted(seconds)
    return {name: round(1000 * seconds[int(part * (len(seconds) - 1))], 2)
            for name, part in (("p50_ms", 0.5), ("p99_ms", 0.99), ("max_ms", 1))}


def fill(agent, uid, jobs, commands):
    """So many waiting jobs of this user, some of them by commands."""
    for _ in range(commands):
        done = agent.run_as(uid, "run", "-d", "-n", "4", "--", "true")
        assert done.returncode == 0, done.stderr
    child = os.fork()
    if child == 0:
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
        connection = Connection(agent.socket)
        for _ in range(jobs - commands):
            connection.submit(count=4, outlives_keeper=True)
        os._exit(0)
    os.waitpid(child, 0)


def waiting_jobs(agent):
    connection = Connection(agent.socket)
    jobs, page = [], {"has_more": True}
    while page.get("has_more"):
        page = connection.ask("read", job=jobs[-1]["id"] if jobs else 0)["result"]
        jobs += page["jobs"]
    connection.close()
    return [job for job in jobs if job["state"] == "waiting"]


def measure(agent, waiting, rounds):
    connection = Connection(agent.socket)
    seconds = []
    for _ in range(rounds):
        start = time.monotonic()
        job = connection.submit(count=4)["result"]["job"]
        seconds.append(time.monotonic() - start)
        connection.apply("cancel", jobs=[job])
    start = time.monotonic()
    connection.find(1)
    find_s = time.monotonic() - start
    connection.close()
    others = processes_of_users()
    print(json.dumps({"waiting": waiting, "submit": quantiles(seconds), "find_ms": round(1000 * find_s, 2),
                      "agent_mb": round(memory_mb(agent.process.pid), 1), "other_processes": len(others),
                      "others_mb": round(sum(mb for _, mb in others), 1)}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("remuda", nargs="?", default=str(ROOT / "build/bin/remuda"))
    parser.add_argument("machine", nargs="?", default=str(ROOT / "testdata/machines/nv-dgx1-v100-8gpu-4nic.json"))
    parser.add_argument("--waiting", type=int, default=10000)
    parser.add_argument("--commands", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=300)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        agent = Agent(arguments.remuda, arguments.machine, folder)
        name_users(agent, **USERS)
        agent.start()
        try:
            holder = agent.start_as(os.getuid(), "run", "-q", "-n", "8", "--", "sleep", "100000")
            eventually(lambda: agent.page().get("leases"))
            measure(agent, 0, arguments.rounds)
            for user in USERS.values():
                fill(agent, user, arguments.waiting // len(USERS), arguments.commands // len(USERS))
            end = time.monotonic() + 600
            while not all(job.get("unkept") for job in waiting_jobs(agent)):  # a reading of them all takes the agent's time, too
                assert time.monotonic() < end, "the agent has not noticed that their processes are gone"
                time.sleep(3)
            measure(agent, arguments.waiting, arguments.rounds)
        finally:
            subprocess.run(["umount", "/etc/passwd"], check=True)
            holder.terminate()
            holder.communicate()
            agent.stop()


if __name__ == "__main__":
    if os.geteuid() != 0 or not has_own_mounts():
        sys.exit("this needs root, and mounts of its own")
    main()
