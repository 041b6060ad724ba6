#!/usr/bin/python3
"""What a checkpoint costs, and how fast it is written and read: checkpoint.py [--json] [--width N] [--folder FOLDER].

An mlp with AdamW on Fashion-MNIST, on two CPU devices: 1.1 GiB of state. It keeps two checkpoints while it trains, and one
at its end; a second run goes on from that. Three figures:

held_up   of the time in which checkpoints were written beside the training, the part that this lost by it: by waiting for
          the copies, and in steps that took longer than the median of all others
save      bytes/s of the last checkpoint, from the first copy until it is whole on the disk
load      bytes/s of finding it, comparing its sums and loading it, with nothing of it in the page cache

The limit of the last two is the rate at which one file of as many bytes is written (and synchronized) and read on the same
disk in the same minute; held_up has no limit but 0.
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = Path("/usr/share/datasets/fashion-mnist")
BLOCK = 8 << 20
EVERY, STEPS = 30, 75  # two checkpoints in the background, with time to be written, and the last one
UNTIMED = 3
JOB = """
model = {{name = "mlp", hidden = [{width}, {width}]}}
data = {{format = "idx", train = {{images = "{data}/train-images-idx3-ubyte.gz", labels = "{data}/train-labels-idx1-ubyte.gz"}}}}
train = {{global_batch = 64, optimizer = "adamw", learning_rate = 0.001, epochs = 1000, max_steps = {steps}}}
checkpoint = {{folder = "{folder}/state", every_steps = {every}}}
balance = {{policy = "even"}}
device = [{{use = "cpu:0"}}, {{use = "cpu:1"}}]
"""


def train(folder, width, steps, *more):
    """The report of a run; its checkpoints are in the folder."""
    job, out = folder / "job.toml", folder / "report.json"
    job.write_text(JOB.format(width=width, data=DATA, steps=steps, folder=folder, every=EVERY))
    subprocess.run([ROOT / "build/bin/remuda", "train", job, "--quiet", "--json", out, *more], check=True, timeout=1800,
                   stdout=subprocess.DEVNULL)
    return json.loads(out.read_text())


def held_up(report):
    """The part of the time of writing in the background that the training lost."""
    history, checkpoints = report["history"], report["checkpoints"]
    phases = ("data_s", "compute_s", "update_s", "communication_s", "wait_s")
    times = [sum(parts) for parts in zip(*(history[phase] for phase in phases))]
    each_s = checkpoints["background_s"] / (checkpoints["written"] - 1)
    beside, alone = [], []
    since_s = each_s
    for step, seconds in zip(history["last_step"], times):
        if step > UNTIMED:
            (beside if since_s < each_s else alone).append(seconds)
        since_s = 0 if step % EVERY == 0 else since_s + seconds
    lost_s = sum(beside) - len(beside) * statistics.median(alone) + checkpoints["held_s"]
    return lost_s / checkpoints["background_s"], statistics.median(alone)


def forget(path):
    """Nothing of the file is in the page cache any more."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def disk_rates(folder, count):
    """Bytes/s of writing and of reading one file."""
    path, block = folder / "limit", os.urandom(BLOCK)
    start = time.monotonic()
    with open(path, "wb", buffering=0) as file:
        for _ in range(count // BLOCK):
            file.write(block)
        os.fsync(file.fileno())
    written_s = time.monotonic() - start
    forget(path)
    start = time.monotonic()
    into = bytearray(BLOCK)
    with open(path, "rb", buffering=0) as file:
        while file.readinto(into):
            pass
    read_s = time.monotonic() - start
    path.unlink()
    return count / written_s, count / read_s


def measure(folder, width):
    """Name, value, unit and limit of each figure."""
    kept = train(folder, width, STEPS)
    part, step_s = held_up(kept)
    count = kept["checkpoints"]["bytes"]
    write_limit, read_limit = disk_rates(folder, count)
    for path in (folder / "state").rglob("*"):
        if path.is_file():
            forget(path)
    resumed = train(folder, width, STEPS + 1, "--resume")
    parameters = {"bytes": count, "step_s": round(step_s, 4)}
    return [
        ("held_up", parameters, part, "of the time of writing", 0),
        ("save", parameters, count / kept["checkpoints"]["write_s"], "bytes/s", write_limit),
        ("load", parameters, count / resumed["checkpoints"]["load_s"], "bytes/s", read_limit),
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", action="store_true", help="one JSON object per figure, a line each")
    parser.add_argument("--width", type=int, default=9500, help="of both hidden layers: 12 bytes of state per parameter")
    parser.add_argument("--folder", type=Path, help="on the disk to measure; a temporary folder unless given")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for name, parameters, value, unit, limit in measure(Path(folder), options.width):
            if options.json:
                print(json.dumps({"name": f"checkpoint_{name}", "parameters": parameters, "value": value, "unit": unit,
                                  "limit": limit}))
            elif limit:
                print(f"{name:8} {value / 1e6:7.0f} MB/s   limit {limit / 1e6:7.0f} MB/s   of limit {value / limit:.2f}")
            else:
                print(f"{name:8} {value:7.1%} {unit}   {parameters['bytes'] / 2**30:.2f} GiB, steps of {parameters['step_s']:.2f} s")


if __name__ == "__main__":
    main()
