#!/usr/bin/env python3
"""Runs that lose ranks at random moments learn what a run that loses none has learned.

    elastic_stress.py [--remuda REMUDA] [--runs 50] [--seed 1] [--hosts] [--ways WAY,...] [--json]

Each run trains one small model on three devices, and meets one accident at a random moment after its first checkpoint:

kill    a rank is killed; the others go on, from a neighbour's copy or from the checkpoint
two     a second rank is killed at a random moment after that
hang    a rank is stopped (SIGSTOP), and never goes on
resume  the launcher and all ranks are killed, and the run goes on with --resume
join    (with --ways only) another rank joins; or it is killed at a random moment after it was started; or it takes the place of one that is killed

With --hosts each rank is on a host of its own (network namespaces on one switch; needs root), started as by torchrun:

cut       the cable of a host is cut; that host ends, and says so, and the others go on
launcher  a launcher is killed, and its rank with it; the others go on
rank      a rank is killed; the others go on
both      a cable is cut, and a rank of another host killed up to five seconds later: the third goes on where it may, or ends and says so

The devices are slowed so that they sleep for most of a run, and the share of each is fixed, so all that may differ is the
rounding of sums. Exit status 1 when a run does not end in two minutes, fails, makes another number of steps, leaves a process,
or when its weights differ from those of the whole run by more than 1e-6 of their norm.
"""

import argparse
import array
import collections
import json
import math
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
from ports import free_port  # noqa: E402

LIMIT_S, BOUND, IMAGES, SIDE, CLASSES = 120, 1e-6, 250, 12, 5
SETTINGS = {"kill": ["elastic.ranks_lost=2"], "two": ["elastic.ranks_lost=2"], "resume": [],
            "hang": ["elastic.ranks_lost=1", "elastic.timeout_s=2"], "join": ["elastic.ranks_lost=2", "balance.policy=even"],
            **{way: ["elastic.ranks_lost=1", "elastic.timeout_s=3"] for way in ("cut", "launcher", "rank")},
            "both": ["elastic.ranks_lost=2", "elastic.timeout_s=3"]}
WAYS, WAYS_OF_HOSTS = ("kill", "two", "hang", "resume", "kill"), ("cut", "launcher", "cut", "both", "rank")
REFUSAL = "may not go on, because the others may"
JOB = """
model = {name = "mlp", hidden = [16]}
data = {train = {images = "images", labels = "labels"}}
train = {epochs = 16, global_batch = 48, optimizer = "adamw", learning_rate = 0.01}
balance = {policy = "fixed", shares = [2, 1, 1]}
device = [{use = "cpu:0", slowdown = 20}, {use = "cpu:1", shared = true, slowdown = 20}, {use = "cpu:1", shared = true, slowdown = 40}]
checkpoint = {folder = "kept", every_steps = 5}
output = {weights = "out.safetensors"}
"""


def write_job(folder):
    chance = random.Random(1)
    pixels = bytearray()
    for image in range(IMAGES):
        pixels += bytes(chance.randrange(40) + (200 if pixel % SIDE == 2 * (image % CLASSES) else 0) for pixel in range(SIDE * SIDE))
    (folder / "images").write_bytes(struct.pack(">4BIII", 0, 0, 8, 3, IMAGES, SIDE, SIDE) + pixels)
    (folder / "labels").write_bytes(struct.pack(">4BI", 0, 0, 8, 1, IMAGES) + bytes(image % CLASSES for image in range(IMAGES)))
    (folder / "job.toml").write_text(JOB)


def values(folder):
    """All values of the weights, in the order of their names."""
    data = (folder / "out.safetensors").read_bytes()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    tensors = json.loads(data[8:start])
    tensors.pop("__metadata__", None)
    found = array.array("f")
    for name in sorted(tensors):
        first, last = tensors[name]["data_offsets"]
        found.frombytes(data[start + first:start + last])
    return found


def difference(one, other):
    if len(one) != len(other):
        return math.inf
    return math.dist(one, other) / math.hypot(*other)


class Run:
    """One `remuda train`, started."""

    def __init__(self, remuda, folder, *arguments, log="progress"):
        self.folder, self.log = folder, folder / log
        with open(self.log, "ab") as file:
            self.program = subprocess.Popen([remuda, "train", "job.toml", "--json", "report.json", *arguments], cwd=folder, stdin=subprocess.DEVNULL,
                                            stdout=subprocess.DEVNULL, stderr=file, env={**os.environ, "XDG_STATE_HOME": str(folder / "state")})
        self.ranks = []

    def wait_for_checkpoint(self):
        end = time.monotonic() + LIMIT_S
        while "checkpoint in" not in self.log.read_text(errors="replace"):
            if time.monotonic() > end or self.program.poll() is not None:
                raise RuntimeError("the run wrote no checkpoint")
            time.sleep(0.005)
        self.find_ranks()

    def find_ranks(self):
        with open(f"/proc/{self.program.pid}/task/{self.program.pid}/children") as file:
            self.ranks = [int(pid) for pid in file.read().split()]

    def signal(self, rank, number=signal.SIGKILL):
        try:
            os.kill(self.ranks[rank], number)
        except ProcessLookupError:
            pass

    def finish(self):
        try:
            status = self.program.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            self.program.kill()
            return "did not end"
        left = [pid for pid in self.ranks if os.path.exists(f"/proc/{pid}")]
        return f"ended with status {status}" if status else f"left processes {left}" if left else None


class Hosts:
    """Three network namespaces on a switch, which is one, too."""

    def __init__(self):
        self.names = [f"remuda-stress-{os.getpid()}-{host}" for host in range(3)]
        self.switch = f"remuda-stress-{os.getpid()}-switch"

    def __enter__(self):
        self.ip("netns", "add", self.switch)
        self.ip("-n", self.switch, "link", "add", "bridge", "type", "bridge")
        self.ip("-n", self.switch, "link", "set", "bridge", "up")
        for host, name in enumerate(self.names):
            self.ip("netns", "add", name)
            self.ip("-n", name, "link", "add", "cable", "type", "veth", "peer", "name", f"port{host}", "netns", self.switch)
            self.ip("-n", self.switch, "link", "set", f"port{host}", "master", "bridge", "up")
            self.ip("-n", name, "address", "add", f"10.97.0.{host + 1}/24", "dev", "cable")
            self.ip("-n", name, "link", "set", "cable", "up")
            self.ip("-n", name, "link", "set", "lo", "up")
        return self

    def __exit__(self, *_):
        for name in (*self.names, self.switch):
            subprocess.run(["ip", "netns", "del", name], check=False)

    def ip(self, *words):
        subprocess.run(["ip", *words], check=True)

    def cut(self, host):
        self.ip("-n", self.names[host], "link", "set", "cable", "down")


class RunOfHosts:
    """One rank on each host."""

    def __init__(self, remuda, folder, hosts, *arguments):
        self.folder, self.hosts, self.logs, self.launchers = folder, hosts, [folder / f"progress-{host}" for host in range(3)], []
        for host in range(3):
            variables = {"RANK": str(host), "LOCAL_RANK": "0", "WORLD_SIZE": "3", "MASTER_ADDR": "10.97.0.1", "MASTER_PORT": "29500",
                         "TORCHELASTIC_RUN_ID": "stress", "XDG_STATE_HOME": str(folder / "state")}
            with open(self.logs[host], "ab") as log:
                self.launchers.append(subprocess.Popen(
                    ["ip", "netns", "exec", hosts.names[host], remuda, "train", "job.toml", "--transport", "tcp", "--json", f"report-{host}.json", *arguments],
                    cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log, env={**os.environ, **variables}))
        self.ranks = [None] * 3

    def wait_for_checkpoint(self):
        end = time.monotonic() + LIMIT_S
        while "checkpoint in" not in self.logs[0].read_text(errors="replace"):
            if time.monotonic() > end or self.launchers[0].poll() is not None:
                raise RuntimeError("the run wrote no checkpoint")
            time.sleep(0.005)
        for host, launcher in enumerate(self.launchers):
            with open(f"/proc/{launcher.pid}/task/{launcher.pid}/children") as file:
                self.ranks[host] = int(file.read().split()[0])

    def meet_accident(self, way, chance, length_s):
        delay_s = chance.random() * length_s
        time.sleep(delay_s)
        self.victim, self.second, _ = chance.sample(range(3), 3)
        if way in ("cut", "both"):
            self.hosts.cut(self.victim)
        else:
            self.kill(self.launchers[self.victim].pid if way == "launcher" else self.ranks[self.victim])
        done = f"{way} of host {self.victim} {delay_s:.2f} s after the first checkpoint"
        if way == "both":
            delay_s = chance.random() * 5
            time.sleep(delay_s)
            self.kill(self.ranks[self.second])
            done += f", rank {self.second} {delay_s:.2f} s later"
        return done

    def kill(self, pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def finish(self, way):
        """What is wrong, or None; and the report of the lowest rank that is left."""
        end, wrong = time.monotonic() + LIMIT_S, None
        for host, launcher in enumerate(self.launchers):
            try:
                status = launcher.wait(max(0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                launcher.kill()
                wrong = wrong or f"host {host} did not end"
                continue
            # An accident after the last step may have come too late for any harm.
            killed = host == (self.second if way == "both" else self.victim) and way != "cut"
            may_end = host == self.victim or way == "both"
            if status and not killed and not (may_end and REFUSAL in self.logs[host].read_text(errors="replace")):
                wrong = wrong or f"host {host} ended with status {status}"
        if left := [pid for pid in self.ranks if os.path.exists(f"/proc/{pid}")]:
            wrong = wrong or f"left processes {left}"
        reports = [self.folder / f"report-{host}.json" for host in range(3)]
        written = [path for host, path in enumerate(reports) if host != self.victim and path.exists()] or [path for path in reports if path.exists()]
        if not written:
            return wrong or (None if way == "both" else "no report"), None
        return wrong, json.loads(written[0].read_text())

    def log(self):
        return "".join(f"\n[host {host}] {path.read_text(errors='replace')[-600:]}" for host, path in enumerate(self.logs))


def meet_accident(way, run, chance, length_s):
    """Does it to the run; returns what it did."""
    delay_s = chance.random() * length_s
    time.sleep(delay_s)
    victims = chance.sample(range(3), 3)
    if way == "resume":
        run.program.kill()
        for rank in range(3):
            run.signal(rank)
        run.program.wait()
        return f"all killed {delay_s:.2f} s after the first checkpoint"
    run.signal(victims[0], signal.SIGSTOP if way == "hang" else signal.SIGKILL)
    done = f"rank {victims[0]} {'stopped' if way == 'hang' else 'killed'} {delay_s:.2f} s after the first checkpoint"
    if way == "two":
        delay_s = chance.random() * length_s
        time.sleep(delay_s)
        run.signal(victims[1])
        done += f", rank {victims[1]} {delay_s:.2f} s later"
    return done


def let_join(remuda, run, port, settings, chance, length_s):
    """Another rank joins, one way or another; returns what was done, and what became of it."""
    delay_s, fate = chance.random() * length_s, chance.choice(("joins", "is killed", "replaces"))
    time.sleep(delay_s)
    done = f"{delay_s:.2f} s after the first checkpoint a rank joins"
    if fate == "replaces":
        victim = chance.randrange(3)
        run.signal(victim)
        done += f" in place of rank {victim}, which is killed"
    # Where rank 0 was killed, there is no door until the others have agreed.
    newcomer = Run(remuda, run.folder, "--join", f"127.0.0.1:{port}", "--devices", "cpu:1", *settings, log="progress-newcomer")
    if fate == "is killed":
        delay_s = chance.random() * 3
        time.sleep(delay_s)
        newcomer.program.kill()
        done += f", and its launcher is killed {delay_s:.2f} s later"
    try:
        status = newcomer.program.wait(LIMIT_S)
    except subprocess.TimeoutExpired:
        newcomer.program.kill()
        return done, "the newcomer did not end"
    # It may have come too late, when the run was over.
    late = any(word in newcomer.log.read_text(errors="replace") for word in ("no run lets others join", "the run is over", "the run went away"))
    return done, f"the newcomer ended with status {status}: {newcomer.log.read_text(errors='replace')[-300:]}" if status and fate != "is killed" and not late else None


def try_one(remuda, way, chance, whole, length_s):
    """What was done, what is wrong (or None), and the report."""
    with tempfile.TemporaryDirectory(prefix="remuda-elastic-") as name:
        folder = Path(name)
        write_job(folder)
        settings = [*SETTINGS[way], *(["elastic.buddy=true"] if way != "resume" and chance.random() < 0.5 else [])]
        arguments, port, wrong = [word for setting in settings for word in ("--set", setting)], free_port(), None
        run = Run(remuda, folder, *arguments, *(("--set", f"elastic.join=:{port}") if way == "join" else ()))
        run.wait_for_checkpoint()
        if way == "join":
            done, wrong = let_join(remuda, run, port, arguments, chance, length_s)
        else:
            done = meet_accident(way, run, chance, length_s)
        done = f"{' '.join(settings)}: {done}"
        if way == "resume":
            run = Run(remuda, folder, "--resume")
        wrong = run.finish() or wrong
        if wrong:
            return done, f"{wrong}: {run.log.read_text(errors='replace')[-600:]}", {}
        return done, *compare(folder, json.loads((folder / "report.json").read_text()), whole)


def try_hosts(remuda, way, chance, whole, length_s):
    """The same as try_one, of a run over three hosts."""
    with tempfile.TemporaryDirectory(prefix="remuda-elastic-") as name, Hosts() as hosts:
        folder = Path(name)
        write_job(folder)
        settings = [*SETTINGS[way], *(["elastic.buddy=true"] if chance.random() < 0.5 else [])]
        run = RunOfHosts(remuda, folder, hosts, *(word for setting in settings for word in ("--set", setting)))
        run.wait_for_checkpoint()
        done = f"{' '.join(settings)}: {run.meet_accident(way, chance, length_s)}"
        wrong, report = run.finish(way)
        if wrong:
            return done, f"{wrong}: {run.log()}", {}
        return done, *(compare(folder, report, whole) if report else (None, {"apart": 0}))


def compare(folder, report, whole):
    apart = difference(values(folder), whole["values"])
    seen = {"apart": apart, "lost": len(report.get("lost_ranks", [])), "joined": sum("failed" not in join for join in report.get("joined_ranks", []))}
    if report["steps"] != whole["steps"]:
        return f"{report['steps']} steps, not {whole['steps']}", seen
    return None if apart <= BOUND else f"weights {apart:.1e} apart", seen


def whole_run(remuda):
    """What it has learned, and for how long an accident may be waited for."""
    with tempfile.TemporaryDirectory(prefix="remuda-elastic-") as name:
        folder = Path(name)
        write_job(folder)
        run = Run(remuda, folder)
        run.wait_for_checkpoint()
        start = time.monotonic()
        if wrong := run.finish():
            raise RuntimeError(f"the whole run {wrong}: {run.log.read_text(errors='replace')}")
        report = json.loads((folder / "report.json").read_text())
        return {"values": values(folder), "steps": report["steps"]}, 0.8 * (time.monotonic() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--remuda", default=ROOT / "build/bin/remuda", type=lambda path: Path(path).resolve())
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hosts", action="store_true")
    parser.add_argument("--ways", type=lambda text: text.split(","), help="these accidents in turns, in place of all")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    whole, length_s = whole_run(options.remuda)
    counts, wrongs, apart = collections.Counter(), [], []
    for number in range(options.runs):
        ways, attempt = (WAYS_OF_HOSTS, try_hosts) if options.hosts else (WAYS, try_one)
        ways = options.ways or ways
        way = ways[number % len(ways)]
        done, wrong, seen = attempt(options.remuda, way, chance, whole, length_s)
        counts[way] += 1
        counts["lost"] += seen.get("lost", 0)
        counts["joined"] += seen.get("joined", 0)
        apart.append(seen.get("apart", math.inf))
        print(f"{number + 1}/{options.runs} {way}: {done}: {wrong or 'the same'}", file=sys.stderr, flush=True)
        if wrong:
            wrongs.append(f"{way}: {done}: {wrong}")
    tried = {way: counts[way] for way in SETTINGS if counts[way]}
    result = {"runs": options.runs, **tried, "ranks_lost_and_noticed": counts["lost"], "ranks_joined": counts["joined"],
              "largest_difference": max(apart, default=0), "bound": BOUND, "wrong": wrongs}
    if options.json:
        print(json.dumps(result))
    else:
        print(f"{options.runs} runs ({', '.join(f'{count} {way}' for way, count in tried.items())}), {counts['lost']} ranks lost and noticed, {counts['joined']} joined; weights at most "
              f"{max(apart, default=0):.1e} of their norm apart (bound {BOUND:.0e}); wrong: {len(wrongs)}")
    return 1 if wrongs else 0


if __name__ == "__main__":
    sys.exit(main())
