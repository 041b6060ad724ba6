#!/usr/bin/python3
"""What train.compression saves over a slow link: compression.py [--json] [--width N] [--gbit R].

Two hosts of one CPU device each: two network namespaces, joined by a virtual cable of 1 Gbit/s (needs root, ip and tc).
They train an mlp with AdamW, of 26 M parameters unless a width is given, as it is, with gradients in bf16, with each
train.compression, and with what "auto" chooses. The learning rate is next to nothing: a warm-up of three steps is too short to
learn after.

bytes  that a host sends in a step, counted by the system, encryption and headers included. The limit is what the values take:
       one bit per parameter and a scale of 4 bytes for every 2048; both sides of rank 4 of each matrix, and the biases
step   seconds, the median. The limit is the step over a cable without a limit, and the time of its bytes on one with it
auto   over each of both cables: the seconds of a step that the run with "auto" expected of each way, beside those that the runs
       with that way took, and whether what it chose was the fastest of these, or a tenth slower at most
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

from cable import Hosts, median_step

DATA = Path("/usr/share/datasets/fashion-mnist")
WARM, MADE, MORE = 3, 8, 16  # steps before compression, and of a short and a long run, whose difference is of such steps
AUTO_WARM = 13  # steps by which "auto" chooses
KINDS = ("none", "bf16", "1-bit", "powersgd")
SENDS = {"none": "none", "bf16": "gradients in bf16", "1-bit": "1-bit", "powersgd": "powersgd"}  # in the words of a report
TOLERANCE = 1.1
RANK = 4
JOB = """
model = {{name = "mlp", hidden = [{width}, {width}]}}
data = {{format = "idx", train = {{images = "{data}/train-images-idx3-ubyte.gz", labels = "{data}/train-labels-idx1-ubyte.gz"}}}}
train = {{global_batch = 64, optimizer = "adamw", learning_rate = 0.000001, epochs = 1000, max_steps = {steps}}}
balance = {{policy = "even"}}
device = [{{use = "cpu:0"}}, {{use = "cpu:1"}}]
"""


def train(hosts, folder, width, kind, steps):
    job = folder / "job.toml"
    job.write_text(JOB.format(width=width, data=DATA, steps=steps))
    after = AUTO_WARM if kind == "auto" else WARM
    settings = {"none": [], "bf16": ["train.gradients=bf16"]}.get(
        kind, [f"train.compression={kind}", f"train.compression_after={after}"])
    return hosts.train(job, *settings)


def measure(folder, width, gbit):
    """Of each kind: bytes and seconds of a step; and the report of "auto"."""
    found = {}
    with Hosts(gbit) as hosts:
        found["auto"] = train(hosts, folder, width, "auto", AUTO_WARM + MORE)[0]["compression"]
        for kind in KINDS:
            _, fewer = train(hosts, folder, width, kind, MADE)
            report, more = train(hosts, folder, width, kind, MORE)
            found[kind] = {"bytes": (more - fewer) / (MORE - MADE), "step_s": median_step(report, MADE)["step_s"]}
    return found


def expectations(found):
    """Of each kind: the seconds that "auto" expected, and those that it took; what it chose, and whether that was right."""
    auto = found["auto"]
    expected = {one["sends"]: one["step_s"] for one in auto["expected"]}
    both = {kind: (expected[SENDS[kind]], found[kind]["step_s"]) for kind in KINDS if SENDS[kind] in expected}
    chosen = next(kind for kind in KINDS if SENDS[kind] == auto["sends"])
    fastest = min(both, key=lambda kind: both[kind][1])
    return both, chosen, fastest


def print_expectations(name, found):
    both, chosen, fastest = expectations(found)
    print(f"\nauto, over {name}: chose {chosen} after {found['auto']['chosen_after']} steps, as {found['auto']['chosen']}")
    for kind, (expected_s, took_s) in both.items():
        print(f"  {kind:8} expected {expected_s:.3f} s   took {took_s:.3f} s   of expected {took_s / expected_s:.2f}")
    print(f"  its own steps took {found['auto']['since']['step_s']:.3f} s after it had chosen")
    is_right = both[chosen][1] <= TOLERANCE * both[fastest][1]
    print(f"  the fastest was {fastest}: {'as good' if is_right else 'NOT as good, by more than a tenth'}")


def least_bytes(kind, width):
    """Half of it goes to the owner of the half, and half of the sum comes back."""
    matrices = ((width, 784), (width, width), (10, width))
    biases = 2 * width + 10
    if kind == "powersgd":
        return 4 * (sum(RANK * (rows + columns) for rows, columns in matrices) + biases)
    values = sum(rows * columns for rows, columns in matrices) + biases
    return values * {"1-bit": 1 + 32 / 2048, "bf16": 24, "none": 32}[kind] / 8  # with bf16, parameters go in float32


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    parser.add_argument("--width", type=int, default=4700, help="of both hidden layers")
    parser.add_argument("--gbit", type=float, default=1, help="rate of the cable")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit(f"{sys.argv[0]}: network namespaces need root")
    parameters = 784 * options.width + options.width ** 2 + 10 * options.width + 2 * options.width + 10
    with tempfile.TemporaryDirectory() as folder:
        fast = measure(Path(folder), options.width, 0)
        slow = measure(Path(folder), options.width, options.gbit)
    for kind in KINDS:
        least = least_bytes(kind, options.width)
        limit_s = fast[kind]["step_s"] + slow[kind]["bytes"] / (options.gbit * 1e9 / 8)
        if options.json:
            about = {"compression": kind, "parameters": parameters, "gbit": options.gbit}
            print(json.dumps({"name": "sent_bytes", "parameters": about, "value": slow[kind]["bytes"], "unit": "bytes",
                              "limit": least}))
            print(json.dumps({"name": "step_s", "parameters": about, "value": slow[kind]["step_s"], "unit": "s", "limit": limit_s}))
        else:
            print(f"{kind:8} {slow[kind]['bytes'] / 1e6:7.2f} MB   limit {least / 1e6:7.2f}   of limit {least / slow[kind]['bytes']:.2f}"
                  f"   step {slow[kind]['step_s']:.3f} s   limit {limit_s:.3f}   of limit {limit_s / slow[kind]['step_s']:.2f}")
    for name, found in (("this cable", slow), ("one without a limit", fast)):
        if not options.json:
            print_expectations(name, found)
            continue
        both, chosen, fastest = expectations(found)
        for kind, (expected_s, took_s) in both.items():
            about = {"compression": kind, "parameters": parameters, "gbit": options.gbit if found is slow else 0, "chosen": chosen,
                     "fastest": fastest}
            print(json.dumps({"name": "expected_step_s", "parameters": about, "value": expected_s, "unit": "s", "limit": took_s}))
    if not options.json:
        none = slow["none"]
        for kind in KINDS[1:]:
            print(f"{kind}: {none['bytes'] / slow[kind]['bytes']:.1f} times fewer bytes,"
                  f" {none['step_s'] / slow[kind]['step_s']:.1f} times faster")

if __name__ == "__main__":
    main()
