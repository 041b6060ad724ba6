#!/usr/bin/env python3
"""What two honest users notice of one who does his worst to an agent, in all ways at once.

    agent_hostile.py REMUDA MACHINE.json [--seconds 600] [--quiet-seconds 30] [--checks-only]

The hostile one has a limit of two devices, and at the same time: holds 10,000 connections and as many as he may that watch a
job; sends garbage and half requests; connects as 2,000 users of his own range of subordinate ids, where there is an
/etc/subuid; runs as many jobs on parts of a device as he gets, and reports of each what 256 devices do; submits and cancels
without end, to fill what the pool remembers; submits arrays with more indices than may wait; wants hundreds of jobs started
at once, or not at all; names as many jobs as fit into a request; leaves thousands of waiting jobs without their process;
claims all devices for a pool of his own. The honest ones submit a job and cancel it, again and again, and each runs jobs in
the background that write a log.

Prints one JSON line: how long the submits of the honest ones took in milliseconds, while the machine was quiet, while as
many processes computed, and then; and what was wrong: an answer that is an error, a job that did not run, a log that is not
there, a charge that is not theirs. Needs root, to act as these users (exit status 77 otherwise). Exit status 1 where
something is wrong, or, without --checks-only, the 99th percentile is more than three times that of a quiet machine and more
than that beside processes which only compute, as on a machine with few cores.
"""
import argparse
import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests"))
from agent_client import Agent, Connection, as_user, has_own_mounts, name_users  # noqa: E402
from agent_floods import as_child, connect, garbage, halves, idle, leaves, names, no_wait, watched  # noqa: E402

HOSTILE, HONEST = 61301, (61311, 61312)
SUBORDINATE_IDS, SUBORDINATE, SUBORDINATES = "/etc/subuid", 700000, 2000
JOB_S = 0.2
MOST_TIMES = 3


def parts(agent, ready):
    """Jobs on parts of a device, each with a report of more than there is."""
    connection = Connection(agent.socket)
    notice = {"step": 1, "steps": 2, "parts": [{"device": f"{number:0200}", "share": 1 / 3, "waiting": 1 / 3} for number in range(256)]}
    ready()
    while True:
        job = connection.submit(waits=False, share=0.01).get("result", {}).get("job")
        if job:
            connection.apply("record_processes", job=job, processes=[])
            connection.apply("record_run", job=job, notice=notice)
        else:
            time.sleep(0.1)
        connection.ask("read")


def history(agent, ready):
    connection = Connection(agent.socket)
    ready()
    while True:
        job = connection.submit(count=8, log="/tmp/" + 3000 * "x").get("result", {}).get("job")
        connection.apply("cancel", jobs=[job])


def arrays(agent, ready):
    connection = Connection(agent.socket)
    ready()
    while True:
        array = connection.apply("submit", waits=True, stands_for_array=True, job={
            "id": 0, "user": "", "state": "waiting", "request": {"count": 1, "link": "any", "share": 1}})["result"]["job"]
        indices = [connection.submit(count=8, array=array, index=index) for index in range(1500)]
        connection.apply("cancel", jobs=[array])
        if not any("error" in answer for answer in indices):
            raise RuntimeError("1,500 indices of an array wait at once")


def claims(agent, ready):
    """A pool of one's own, on the same devices."""
    home = agent.environment(HOSTILE)["HOME"]
    own = {**agent.environment(HOSTILE), "XDG_STATE_HOME": os.path.join(home, "own")}
    del own["REMUDA_AGENT"]
    ready()
    while True:
        subprocess.run([agent.remuda, "run", *agent.machine_words, "-q", "-n", "8", "--", "sleep", "10"], env=own,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


ATTACKS = (idle, watched, garbage, halves, parts, history, arrays, no_wait, names, leaves, claims)


def without_end(attack):
    """Begins it anew where the agent, a limit, or another attack of the same user has ended it."""
    def run(agent, ready):
        os.setpgid(0, 0)  # with what it starts
        ready()
        while True:
            try:
                attack(agent, lambda: None)
            except (OSError, EOFError, KeyError):
                time.sleep(0.05)
    return run


def connect_as_subordinates(agent):
    """As root, which may become all of them: who connects is known by the effective user."""
    held = []
    os.setpgid(0, 0)
    try:
        while True:
            for number in range(SUBORDINATES):
                os.seteuid(SUBORDINATE + number)
                try:
                    held.append(connect(agent))
                except OSError:
                    pass
                os.seteuid(0)
            while len(held) > SUBORDINATES:
                held.pop(0).close()
            time.sleep(1)
    finally:
        os._exit(1)


class Honest:
    """One user: what the submits took, and what of the jobs is not as it should be."""

    def __init__(self, agent, uid):
        self.agent, self.uid = agent, uid
        self.wrong, self.jobs, self.took_s = [], [], []

    def submit_for(self, seconds):
        """The milliseconds of each."""
        took, wrong = as_user(self.uid, lambda: self.submits(seconds))
        self.wrong += wrong
        return took

    def submits(self, seconds):
        took, wrong = [], []
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                connection = Connection(self.agent.socket)
                begin = time.monotonic()
                submitted = connection.submit(begin_s=4e9)
                took.append(1000 * (time.monotonic() - begin))
                job = submitted.get("result", {}).get("job", 0)
                answers = [submitted, connection.apply("cancel", jobs=[job]), connection.ask("own"), connection.ask("read")]
                wrong += [str(answer["error"]) for answer in answers if "error" in answer]
                connection.close()
            except (OSError, EOFError) as error:
                wrong.append(repr(error))
            time.sleep(0.01)
        return took, wrong[:5]

    def run_jobs(self, is_over):
        while not is_over():
            begin = time.monotonic()
            submitted = self.ask("run", "-d", "--", "/bin/sh", "-c", f"echo said by {self.uid}; sleep {JOB_S}")
            if submitted:
                self.ask("wait", submitted.strip())
                self.jobs.append(submitted.strip())
                self.took_s.append(time.monotonic() - begin)
            for words in (["ps"], ["queue"], ["usage"]):
                self.ask(*words)
            time.sleep(0.1)

    def ask(self, *words):
        done = self.agent.run_as(self.uid, *words)
        if done.returncode != 0:
            self.wrong.append(f"{' '.join(words)} of {self.uid} ended with {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def check(self):
        for job in self.jobs:
            if f"said by {self.uid}" not in self.ask("logs", job):
                self.wrong.append(f"the log of job {job} is lost")
        rows = json.loads(self.ask("usage", "--json"))["usage"]
        charged = sum(row["device_s"] for row in rows if row["user"] == f"honest-{self.uid}")
        least_s, most_s = JOB_S * len(self.jobs), sum(self.took_s)
        if not least_s - 0.1 <= charged <= most_s + 0.1:
            self.wrong.append(f"{self.uid} is charged for {charged:.1f} s, and had devices for {least_s:.1f} to {most_s:.1f} s")


def percentile(took, part):
    return sorted(took)[min(len(took) - 1, int(part * len(took)))]


def of_both(honest, seconds):
    """The submits of all at once."""
    took = [[] for _ in honest]
    threads = [threading.Thread(target=lambda place=place, one=one: took[place].extend(one.submit_for(seconds)))
               for place, one in enumerate(honest)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [one for list_ in took for one in list_]


def beside_busy(honest, seconds):
    """The submits while as many processes compute as attack later, and none of them knows of the agent."""
    busy = [subprocess.Popen(["/bin/sh", "-c", "while :; do :; done"]) for _ in range(len(ATTACKS) + 1)]
    try:
        return of_both(honest, seconds)
    finally:
        for process in busy:
            process.kill()
            process.wait()


def attack_for(agent, honest, seconds):
    """The submits of the honest ones, and how many attacks ended before they were to."""
    attackers = [as_child(HOSTILE, lambda ready, attack=attack: without_end(attack)(agent, ready)) for attack in ATTACKS]
    if os.path.exists(SUBORDINATE_IDS):
        attackers.append(os.fork())
        if attackers[-1] == 0:
            connect_as_subordinates(agent)
    over = threading.Event()
    workers = [threading.Thread(target=one.run_jobs, args=(over.is_set,)) for one in honest]
    ended = 0
    try:
        for worker in workers:
            worker.start()
        took = of_both(honest, seconds)
    finally:
        over.set()
        for child in attackers:
            if os.waitpid(child, os.WNOHANG) != (0, 0):
                ended += 1
                continue
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
    for worker in workers:
        worker.join()
    return took, ended


def play(arguments, agent):
    name_users(agent, hostile=HOSTILE, **{f"honest-{uid}": uid for uid in HONEST})
    if os.path.exists(SUBORDINATE_IDS):
        ranges = os.path.join(agent.folder, "subuid")
        with open(ranges, "w", encoding="utf-8") as file:
            file.write(f"hostile:{SUBORDINATE}:65536\n")
        subprocess.run(["mount", "--bind", ranges, SUBORDINATE_IDS], check=True)
    with open(agent.policy, "w", encoding="utf-8") as file:
        file.write('[[limit]]\nusers = ["hostile"]\ndevices = 2\nwaiting = 5000\n')
    agent.start()
    print(f"quiet for {arguments.quiet_seconds:g} s, then hostile for {arguments.seconds:g} s", file=sys.stderr, flush=True)
    honest = [Honest(agent, uid) for uid in HONEST]
    quiet = of_both(honest, arguments.quiet_seconds)
    busy = beside_busy(honest, arguments.quiet_seconds)
    hostile, ended = attack_for(agent, honest, arguments.seconds)
    print("the attack is over", file=sys.stderr, flush=True)
    wrong = []
    if ended > 0:
        wrong.append(f"{ended} attacks ended before they were to")
    if not agent.answers():
        wrong.append("the agent has ended")
    for one in honest:
        one.check()
        wrong += one.wrong
    if not all(one.jobs for one in honest):
        wrong.append("an honest user's jobs did not run")
    times = {"quiet": quiet, "busy": busy, "hostile": hostile}
    p99_ms = {name: percentile(took, 0.99) for name, took in times.items()}
    print(json.dumps({**{name: {"p50_ms": round(percentile(took, 0.5), 2), "p99_ms": round(p99_ms[name], 2), "max_ms": round(max(took), 2),
                                "submits": len(took)} for name, took in times.items()},
                      "times": round(p99_ms["hostile"] / p99_ms["quiet"], 2), "jobs": [len(one.jobs) for one in honest],
                      "longest_job_s": round(max(max(one.took_s, default=0) for one in honest), 2),
                      "wrong": wrong[:20]}), flush=True)
    return bool(wrong) or (not arguments.checks_only and p99_ms["hostile"] > max(MOST_TIMES * p99_ms["quiet"], p99_ms["busy"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("remuda")
    parser.add_argument("machine")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--quiet-seconds", type=float, default=30)
    parser.add_argument("--checks-only", action="store_true", help="however long it takes")
    arguments = parser.parse_args()
    if os.geteuid() != 0 or not has_own_mounts():
        print("this needs root and mounts of its own, to act as several users")
        return 77
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that no attacker is left
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    with tempfile.TemporaryDirectory() as folder:
        agent = Agent(arguments.remuda, arguments.machine, folder)
        try:
            return int(play(arguments, agent))
        finally:
            agent.stop()


if __name__ == "__main__":
    sys.exit(main())
