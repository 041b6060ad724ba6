#!/usr/bin/python3
"""What roles gain, and whether their prediction is right: roles.py [--json] [--steps N] [--pairs N] [--slowdown R].

Two CPU devices, the second of which pretends to compute several times slower. Three runs, in turns:

preprocess  PNG files, which take about as long to decode as to train with: the second device decodes, or computes too
state       an mlp with AdamW, nearly all of whose step is state: the second device owns it, or a part of it

Each line has samples/s with the role, and the limit without it, of the same devices; the gain measured, and the gain that
the report of the run with the role predicted before its first step.
"""

import argparse
import json
import random
import statistics
import struct
import subprocess
import tempfile
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = Path("/usr/share/datasets/fashion-mnist")
CLASSES, IMAGES, SIDE = 4, 4096, 192
JOBS = {
    "preprocess": """
model = {{name = "resnet", width = 8, depth = 1}}
data = {{format = "images", train = "{folder}/images", size = 48, flip = "on"}}
train = {{global_batch = 64, learning_rate = 0.05, epochs = 1000, max_steps = {steps}}}
""",
    "state": """
model = {{name = "mlp", hidden = [2048, 2048]}}
data = {{format = "idx", train = {{images = "{data}/train-images-idx3-ubyte.gz", labels = "{data}/train-labels-idx1-ubyte.gz"}}}}
train = {{global_batch = 64, optimizer = "adamw", learning_rate = 0.001, epochs = 1000, max_steps = {steps}}}
""",
}
DEVICES = """
[[device]]
use = "cpu:0"
[[device]]
use = "cpu:1"
slowdown = {slowdown}
role = "{role}"
"""


def png(seed):
    """A picture of noise, of which nothing can be packed."""
    pixels = random.Random(seed).randbytes(SIDE * (3 * SIDE + 1))
    rows = b"".join(b"\0" + pixels[row * 3 * SIDE:][:3 * SIDE] for row in range(SIDE))
    parts = ((b"IHDR", struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)), (b"IDAT", zlib.compress(rows, 1)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts)


def write_images(folder):
    for number in range(IMAGES):
        path = folder / "images" / f"class{number % CLASSES}" / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png(number % 64))


def train(folder, kind, role, options):
    """The report of a run."""
    job, out = folder / "job.toml", folder / "report.json"
    job.write_text(JOBS[kind].format(folder=folder, data=DATA, steps=options.steps) +
                   DEVICES.format(slowdown=options.slowdown, role=role))
    subprocess.run([ROOT / "build/bin/remuda", "train", job, "--quiet", "--json", out], check=True, timeout=1800,
                   stdout=subprocess.DEVNULL)
    return json.loads(out.read_text())


def measure(folder, kind, options):
    rates, predicted = {kind: [], "compute": []}, []
    for pair in range(options.pairs):
        for role in sorted(rates, reverse=pair % 2 == 1):
            report = train(folder, kind, role, options)
            rates[role].append(report["samples_per_s"])
            if role == kind:
                predicted.append(report["roles"]["without_roles_s"] / report["roles"]["predicted_step_s"])
    return statistics.median(rates[kind]), statistics.median(rates["compute"]), statistics.median(predicted)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    parser.add_argument("--steps", type=int, default=80, help="of each run")
    parser.add_argument("--pairs", type=int, default=2, help="of runs, one each way")
    parser.add_argument("--slowdown", type=float, default=8, help="of the second device")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        write_images(Path(name))
        for kind in JOBS:
            value, limit, predicted = measure(Path(name), kind, options)
            if options.json:
                parameters = {"role": kind, "slowdown": options.slowdown, "steps": options.steps, "pairs": options.pairs,
                              "predicted_gain": predicted}
                print(json.dumps({"name": "role_samples_per_s", "parameters": parameters, "value": value,
                                  "unit": "samples/s", "limit": limit}))
            else:
                print(f"{kind:<10}  with {value:.0f} samples/s   limit (without) {limit:.0f}   gain {value / limit:.2f}   "
                      f"predicted {predicted:.2f}", flush=True)


if __name__ == "__main__":
    main()
