#!/usr/bin/env python3
"""What an agent costs: the time of a submission, from request to answer, and its memory, while no job waits and while many do.

    agent.py [REMUDA [MACHINE.json]] [--waiting 10000] [--rounds 300]

The requests are sent by a program that has its connection already, as a keeper has when it asks for something; all devices
are held, so that each submission is queued. Needs root where the agent is to hold jobs in cgroups. Prints one JSON line for
each number of waiting jobs, times in milliseconds.
"""
import argparse
import json
import os
import pathlib
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
from agent_client import Agent, Connection, eventually  # noqa: E402

USERS = 4


def resident_mb(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return int(next(line for line in file if line.startswith("VmRSS")).split()[1]) / 1024


def quantiles(seconds):
    seconds = sorted(seconds)
    return {name: round(1000 * seconds[int(part * (len(seconds) - 1))], 2)
            for name, part in (("p50_ms", 0.5), ("p99_ms", 0.99), ("max_ms", 1))}


def fill(agent, uid, jobs):
    """A child of this user, which keeps so many waiting jobs until it is killed."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
        connection = Connection(agent.socket)
        for _ in range(jobs):
            connection.submit(count=4)
        os.write(writer, b"x")
        time.sleep(1e6)
    os.read(reader, 1)
    return child


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
    print(json.dumps({"waiting": waiting, "submit": quantiles(seconds), "find_ms": round(1000 * find_s, 2),
                      "agent_mb": round(resident_mb(agent.process.pid), 1)}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("remuda", nargs="?", default=str(ROOT / "build/bin/remuda"))
    parser.add_argument("machine", nargs="?", default=str(ROOT / "testdata/machines/nv-dgx1-v100-8gpu-4nic.json"))
    parser.add_argument("--waiting", type=int, default=10000)
    parser.add_argument("--rounds", type=int, default=300)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        agent = Agent(arguments.remuda, arguments.machine, folder).start()
        children = []
        try:
            holder = agent.start_as(os.getuid(), "run", "-q", "-n", "8", "--", "sleep", "100000")
            eventually(lambda: agent.page().get("leases"))
            measure(agent, 0, arguments.rounds)
            for user in range(USERS):
                children.append(fill(agent, 61200 + user, arguments.waiting // USERS))
            measure(agent, arguments.waiting, arguments.rounds)
        finally:
            for child in children:
                os.kill(child, 9)
                os.waitpid(child, 0)
            holder.terminate()
            holder.communicate()
            agent.stop()


if __name__ == "__main__":
    main()
