#!/usr/bin/python3
"""How much batch norm over the samples of all devices costs beside that of each device by itself: norms.py [--json]
[--steps N] [--pairs N].

A ResNet with batch norm on Fashion-MNIST, on two equal CPU devices, both ways in turns (`remuda train --compare`). The
limit is the speed with local batch norm: synchronized ones have two small rounds more for each of them in each step, for
which the devices wait for each other, and a pass more over what they normalise.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = Path("/usr/share/datasets/fashion-mnist")
MODEL = {"width": 16, "depth": 1}
BATCH = 1024
JOB = f"""
model = {{name = "resnet", norm = "batch", width = {MODEL["width"]}, depth = {MODEL["depth"]}}}
data = {{format = "idx", train = {{images = "{DATA}/train-images-idx3-ubyte.gz", labels = "{DATA}/train-labels-idx1-ubyte.gz"}}}}
train = {{global_batch = {BATCH}, learning_rate = 0.1, momentum = 0.9, epochs = 1000, max_steps = STEPS}}
balance = {{policy = "even"}}
[[device]]
use = "cpu:0"
[[device]]
use = "cpu:1"
"""


def compare(steps, pairs):
    """The comparison of local batch norm (a) and synchronized (b); docs/run-report.md says what is in it."""
    with tempfile.TemporaryDirectory() as folder:
        job, out = Path(folder) / "job.toml", Path(folder) / "comparison.json"
        job.write_text(JOB.replace("STEPS", str(steps)))
        subprocess.run([ROOT / "build/bin/remuda", "train", job, "--compare", "train.batch_norm=synchronized", "--repeats",
                        str(pairs), "--quiet", "--json", out], check=True, timeout=1800, stdout=subprocess.DEVNULL)
        return json.loads(out.read_text())["differences"]["samples_per_s"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("--steps", type=int, default=60, help="of each run")
    parser.add_argument("--pairs", type=int, default=3, help="of runs, one each way")
    options = parser.parse_args()
    found = compare(options.steps, options.pairs)
    if options.json:
        parameters = {"model": "resnet", **MODEL, "global_batch": BATCH, "devices": 2, "steps": options.steps,
                      "pairs": options.pairs, "low": found["low"], "high": found["high"]}
        print(json.dumps({"name": "synchronized_batch_norm_samples_per_s", "parameters": parameters, "value": found["b"],
                          "unit": "samples/s", "limit": found["a"]}))
    else:
        print(f"resnet  synchronized {found['b']:.0f} samples/s   limit (local) {found['a']:.0f}   of limit "
              f"{1 + found['difference']:.2f} ({1 + found['low']:.2f} to {1 + found['high']:.2f})")


if __name__ == "__main__":
    main()
