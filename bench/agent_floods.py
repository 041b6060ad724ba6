#!/usr/bin/env python3
"""How long a user waits for an agent while another one does his worst.

    agent_floods.py [REMUDA [MACHINE.json]] [--seconds 5] [--only NAME]

One user connects, asks for his jobs, submits one and cancels it, again and again, while another floods the agent in one of
these ways: `idle` (10,000 connections that ask nothing), `watched` (as many as
the agent takes, each watching a job), `garbage`, `halves` (of the
largest request), `submits` (10,000 jobs, each with a condition and a time limit of its own), `no-wait` (all his connections
want to start at once), `names` (requests that name as many jobs as they may), `leaves` (the process that keeps 10,000 waiting
jobs is killed), `processes` (a job of 4,000 processes, looked at for the policy against idle devices each second, whose keeper is
killed after some seconds). Needs root, to act as two users (exit status 77 otherwise). Prints one JSON line for each flood, times in
milliseconds of all requests; `connect` includes the greeting. Exit status 1 where one took longer than 100 ms.
"""
import argparse
import json
import os
import pathlib
import random
import resource
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import traceback

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
from agent_client import Agent, Connection, eventually  # noqa: E402

HOSTILE, PLAIN, MANY, WANTED_MS = 61301, 61302, 10000, 100


def connect(agent):
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(agent.socket)
    connection.settimeout(10)
    return connection


def idle(agent, ready):
    held = [connect(agent) for _ in range(MANY)]
    ready()
    while True:
        held.append(connect(agent))
        held.pop(0).close()


def watched(agent, ready):
    job = Connection(agent.socket).submit(count=1, begin_s=4e9)["result"]["job"]
    held = []
    try:
        for _ in range(MANY):
            held.append(Connection(agent.socket))
            held[-1].ask("find", job=job)
    except (OSError, EOFError):
        pass  # no more are taken: that depends on how many descriptors the agent may have
    ready()
    while True:
        held[0].apply("reprioritize", jobs=[job], priority=-random.randint(1, 900))
        for connection in held[:20]:
            connection.ask("find", job=job)


def garbage(agent, ready):
    ready()
    while True:
        try:
            connection = connect(agent)
            connection.sendall(random.choice([os.urandom(2000), b"\xff" * 8, struct.pack(">I", 1000) + b"[" * 1000]))
        except OSError:
            pass


def halves(agent, ready):
    held = [connect(agent) for _ in range(200)]
    ready()
    while True:
        for place, connection in enumerate(held):
            try:
                connection.sendall(struct.pack(">I", 65000) + b" " * 64000)
                connection.close()
                held[place] = connect(agent)
            except OSError:
                held[place] = connect(agent)


def submit_all(agent, jobs, own):
    connection = Connection(agent.socket)
    answers = []
    for number in range(jobs):
        record = {"time_limit_s": 1000 + number} if own else {}
        request = {"count": 8, "link": "any", "share": 1, **({"where": f"index < {1000 + number}"} if own else {})}
        answers.append(connection.submit(request=request, **record)["result"]["job"])
    return connection, answers


def submits(agent, ready):
    ready()
    connection, _ = submit_all(agent, MANY, own=True)
    while True:
        connection.ask("read")


def no_wait(agent, ready):
    held = [connect(agent) for _ in range(250)]
    ready()
    number = 0
    while True:
        for connection in held:
            number += 1
            record = {"id": 0, "user": "", "state": "waiting", "request": {"count": 8, "link": "any", "share": 1}}
            payload = json.dumps({"id": f"n{number}", "ask": "apply",
                                  "operation": {"operation": "submit", "waits": False, "job": record}}).encode()
            connection.sendall(struct.pack(">I", len(payload)) + payload)
        for connection in held:
            connection.recv(1 << 16)
        time.sleep(2.1)


def names(agent, ready):
    connection, jobs = submit_all(agent, 3000, own=False)
    connection.apply("cancel_selected", name="", user=str(os.getuid()))
    ready()
    while True:
        for most in (10000, 1000):
            connection.apply("cancel", jobs=jobs[:most])


def leaves(agent, ready):
    child = os.fork()
    if child == 0:
        try:
            submit_all(agent, MANY, own=False)
            os.kill(os.getpid(), signal.SIGSTOP)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, os.WUNTRACED)
    if not os.WIFSTOPPED(status):
        raise OSError("not so many jobs are taken")
    ready()
    time.sleep(0.5)
    os.kill(child, signal.SIGKILL)
    time.sleep(1000)


def processes(agent, ready):
    up = os.path.join(agent.folder, f"home-{HOSTILE}", "up")
    script = f"i=0; while [ $i -lt 4000 ]; do sleep 1000 & i=$((i+1)); done; touch {up}; wait"
    keeper = subprocess.Popen([agent.remuda, "run", *agent.machine_words, "-q", "-n", "1", "--", "/bin/sh", "-c", script],
                              env=agent.environment(HOSTILE), stdin=subprocess.DEVNULL)
    eventually(lambda: os.path.exists(up))
    ready()
    time.sleep(3)
    os.kill(Connection(agent.socket).ask("read")["result"]["jobs"][-1]["keeper"]["pid"], signal.SIGKILL)
    keeper.wait()
    time.sleep(1000)


FLOODS = {"nothing": lambda agent, ready: (ready(), time.sleep(1000)), "idle": idle, "watched": watched, "garbage": garbage,
          "halves": halves, "submits": submits, "no-wait": no_wait, "names": names, "leaves": leaves,
          "processes": processes}


def as_child(uid, work):
    """Starts `work(ready)` in a child of this user; returns once it has called ready()."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (20000, 20000))
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            work(lambda: os.write(writer, b"x"))
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    os.close(writer)
    if not os.read(reader, 1):
        raise RuntimeError("a flood has failed")
    os.close(reader)
    return child


def timed(times, work):
    start = time.monotonic()
    result = work()
    times.append(1000 * (time.monotonic() - start))
    return result


def ask_on(agent, seconds):
    """What the plain user does."""
    times = {"connect": [], "own": [], "submit": [], "cancel": []}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        connection = timed(times["connect"], lambda: Connection(agent.socket))
        timed(times["own"], lambda: connection.ask("own"))
        job = timed(times["submit"], lambda: connection.submit(count=8))["result"]["job"]
        timed(times["cancel"], lambda: connection.apply("cancel", jobs=[job]))
        connection.close()
        time.sleep(0.01)
    return {name: {"p50": round(sorted(values)[len(values) // 2], 2), "max": round(max(values), 2), "times": len(values)}
            for name, values in times.items()}


def measure(agent, seconds):
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)

    def work(ready):
        ready()
        os.write(writer, json.dumps(ask_on(agent, seconds)).encode() + b"\n")
    child = as_child(PLAIN, work)
    os.close(writer)
    with os.fdopen(reader) as file:
        line = file.readline()
    os.waitpid(child, 0)
    return json.loads(line)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("remuda", nargs="?", default=str(ROOT / "build/bin/remuda"))
    parser.add_argument("machine", nargs="?", default=str(ROOT / "testdata/machines/nv-dgx1-v100-8gpu-4nic.json"))
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--only", choices=sorted(FLOODS), action="append")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        print("this needs root, to act as two users")
        return 77
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    longest = 0
    for name in arguments.only or FLOODS:
        with tempfile.TemporaryDirectory() as folder:
            agent = Agent(arguments.remuda, arguments.machine, folder)
            has_job = name == "processes"
            if has_job:
                agent.environment(HOSTILE)
                with open(agent.policy, "w", encoding="utf-8") as file:
                    file.write('[idle]\nwarn_after = "60s"\n')
            agent.start()
            holder = agent.start_as(0, "run", "-q", "-n", "7" if has_job else "8", "--", "sleep", "100000")
            flood = None
            try:
                eventually(lambda: agent.page().get("leases"))
                flood = as_child(HOSTILE, lambda ready: FLOODS[name](agent, ready))
                times = measure(agent, arguments.seconds)
                if os.waitpid(flood, os.WNOHANG) != (0, 0):
                    flood = None
                    raise RuntimeError(f"the flood {name} has ended before its end")
            finally:
                if flood:
                    os.kill(flood, signal.SIGKILL)
                    os.waitpid(flood, 0)
                holder.terminate()
                holder.communicate()
                agent.stop()
        most = max(one["max"] for one in times.values())
        longest = max(longest, most)
        print(json.dumps({"flood": name, "max_ms": most, **times}), flush=True)
    return 1 if longest > WANTED_MS else 0


if __name__ == "__main__":
    sys.exit(main())
