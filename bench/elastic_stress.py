#!/usr/bin/env python3
"""Runs that lose ranks at random moments learn what a run that loses none has learned.

    elastic_stress.py [--remuda REMUDA] [--runs 50] [--seed 1] [--json]

Each run trains one small model on three devices, and meets one accident at a random moment after its first checkpoint:

kill    a rank is killed; the others go on, from a neighbour's copy or from the checkpoint
two     a second rank is killed at a random moment after that
hang    a rank is stopped (SIGSTOP), and never goes on
resume  the launcher and all ranks are killed, and the run goes on with --resume

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
LIMIT_S, BOUND, IMAGES, SIDE, CLASSES = 120, 1e-6, 250, 12, 5
SETTINGS = {"kill": ["elastic.ranks_lost=2"], "two": ["elastic.ranks_lost=2"], "resume": [],
            "hang": ["elastic.ranks_lost=1", "elastic.timeout_s=2"]}
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

    def __init__(self, remuda, folder, *arguments):
        self.folder, self.log = folder, folder / "progress"
        with open(self.log, "ab") as log:
            self.program = subprocess.Popen([remuda, "train", "job.toml", "--json", "report.json", *arguments], cwd=folder, stdin=subprocess.DEVNULL,
                                            stdout=subprocess.DEVNULL, stderr=log)
        self.ranks = []

    def wait_for_checkpoint(self):
        end = time.monotonic() + LIMIT_S
        while "checkpoint in" not in self.log.read_text(errors="replace"):
            if time.monotonic() > end or self.program.poll() is not None:
                raise RuntimeError("the run wrote no checkpoint")
            time.sleep(0.005)
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


def try_one(remuda, way, chance, whole, length_s):
    """What was done, what is wrong (or None), and the report."""
    with tempfile.TemporaryDirectory(prefix="remuda-elastic-") as name:
        folder = Path(name)
        write_job(folder)
        settings = [*SETTINGS[way], *(["elastic.buddy=true"] if way != "resume" and chance.random() < 0.5 else [])]
        arguments = [word for setting in settings for word in ("--set", setting)]
        run = Run(remuda, folder, *arguments)
        run.wait_for_checkpoint()
        done = f"{' '.join(settings)}: {meet_accident(way, run, chance, length_s)}"
        if way == "resume":
            run = Run(remuda, folder, "--resume")
        wrong = run.finish()
        if wrong:
            return done, f"{wrong}: {run.log.read_text(errors='replace')[-600:]}", {}
        report = json.loads((folder / "report.json").read_text())
        apart = difference(values(folder), whole["values"])
        if report["steps"] != whole["steps"]:
            wrong = f"{report['steps']} steps, not {whole['steps']}"
        elif not apart <= BOUND:
            wrong = f"weights {apart:.1e} apart"
        return done, wrong, {"apart": apart, "lost": len(report.get("lost_ranks", []))}


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
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    whole, length_s = whole_run(options.remuda)
    counts, wrongs, apart = collections.Counter(), [], []
    for number in range(options.runs):
        way = ("kill", "two", "hang", "resume", "kill")[number % 5]
        done, wrong, seen = try_one(options.remuda, way, chance, whole, length_s)
        counts[way] += 1
        counts["lost"] += seen.get("lost", 0)
        apart.append(seen.get("apart", math.inf))
        print(f"{number + 1}/{options.runs} {way}: {done}: {wrong or 'the same'}", file=sys.stderr, flush=True)
        if wrong:
            wrongs.append(f"{way}: {done}: {wrong}")
    result = {"runs": options.runs, **{way: counts[way] for way in SETTINGS}, "ranks_lost_and_noticed": counts["lost"],
              "largest_difference": max(apart, default=0), "bound": BOUND, "wrong": wrongs}
    if options.json:
        print(json.dumps(result))
    else:
        print(f"{options.runs} runs ({', '.join(f'{counts[way]} {way}' for way in SETTINGS)}), {counts['lost']} ranks lost and noticed; weights at most "
              f"{max(apart, default=0):.1e} of their norm apart (bound {BOUND:.0e}); wrong: {len(wrongs)}")
    return 1 if wrongs else 0


if __name__ == "__main__":
    sys.exit(main())
