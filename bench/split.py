#!/usr/bin/python3
"""Whether a slow device makes a run slower: split.py [--json] [--steps N] [--runs N] [--case NAME ...] [--build FOLDER].

Two CPU devices, the second of which pretends to be several times slower; an mlp with AdamW, most of whose step is the
exchange and the update of its state, and a ResNet with SGD, most of whose step is computing. Each is run as remuda decides
by itself, and, in turns with that, with

alone    the first device alone, the best subset besides both
fixed    nine splits that never change: none, a half or all of what its speed gives the second device, of the samples and of
         the state

Lines have the median samples/s of the runs, their search for the best split included. subset and fixed are the ratios to the
first device alone and to the best fixed split, of the same turn; the median of the turns. Required: 0.97 and 0.95.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = Path("/usr/share/datasets/fashion-mnist")
SET = f'{{format = "idx", train = {{images = "{DATA}/train-images-idx3-ubyte.gz", labels = "{DATA}/train-labels-idx1-ubyte.gz"}}}}'
MODELS = {
    "mlp": (f'model = {{name = "mlp", hidden = [2048, 2048]}}\ndata = {SET}\n', 'global_batch = 64, optimizer = "adamw", learning_rate = 0.001'),
    "resnet": (f'model = {{name = "resnet", width = 16, depth = 1}}\ndata = {SET}\n', "global_batch = 256, learning_rate = 0.1, momentum = 0.9"),
}
CASES = {"mlp/1": ("mlp", 1), "mlp/3": ("mlp", 3), "mlp/8": ("mlp", 8), "mlp/16": ("mlp", 16), "resnet/3": ("resnet", 3),
         "resnet/8": ("resnet", 8)}
LEAST_SUBSET, LEAST_FIXED = 0.97, 0.95


def train(options, folder, case, devices, balance=""):
    """Samples/s of a run."""
    model, slowdown = CASES[case]
    head, settings = MODELS[model]
    job, out = folder / "job.toml", folder / "report.json"
    job.write_text(head + f"train = {{{settings}, epochs = 1000, max_steps = {options.steps}, seed = 1}}\n{balance}\n" +
                   "".join(f'[[device]]\nuse = "cpu:{device}"\nslowdown = {slowdown if device else 1}\n' for device in devices))
    # The first device has the same cores alone: without the second one it would have them all.
    subprocess.run([options.build / "remuda", "train", job, "--cpu-devices", "2", "--quiet", "--json", out], check=True, timeout=1800,
                   stdout=subprocess.DEVNULL)
    return json.loads(out.read_text())


def fixed_splits(slowdown):
    """Parts of samples and of state for the second device, none, a half or all of what its speed gives it."""
    fair = 1 / (1 + slowdown)
    nothing = 1e-6  # a job has no 0 there, and this is none of the samples, nor of the state
    for samples in (nothing, 0.5 * fair, fair):
        for state in (nothing, 0.5 * fair, fair):
            yield (f'balance = {{policy = "fixed", shares = [{1 - samples:.6f}, {samples:.6f}], '
                   f"state_shares = [{1 - state:.6f}, {state:.6f}]}}")


def measure(options, folder, case):
    """The ratios of each turn, and the rates."""
    ways = {"remuda": ([0, 1], ""), "first alone": ([0], "")}
    if options.fixed:
        ways |= {f"fixed {number}": ([0, 1], balance) for number, balance in enumerate(fixed_splits(CASES[case][1]))}
    rates, left_out = {way: [] for way in ways}, 0
    for turn in range(options.runs):
        for way in sorted(ways, reverse=turn % 2 == 1):
            report = train(options, folder, case, *ways[way])
            rates[way].append(report["samples_per_s"])
            left_out += way == "remuda" and len(report["balance"].get("left_out", []))
    return rates, left_out


def ratio(rates, kind):
    """Of the best of that kind, by its median, in the same turn."""
    others = {way: values for way, values in rates.items() if way.startswith(kind)}
    best = max(others, key=lambda way: statistics.median(others[way]))
    return best, statistics.median(mine / other for mine, other in zip(rates["remuda"], others[best]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    parser.add_argument("--steps", type=int, default=600, help="of each run")
    parser.add_argument("--runs", type=int, default=5, help="of each way, in turns")
    parser.add_argument("--case", action="append", choices=CASES, help="only this one; may be repeated")
    parser.add_argument("--build", type=Path, default=ROOT / "build/bin", help="where the programs are")
    parser.add_argument("--no-fixed", dest="fixed", action="store_false", help="without the fixed splits, which take most of the time")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for case in options.case or CASES:
            rates, left_out = measure(options, Path(folder), case)
            _, subset = ratio(rates, "first alone")
            best, fixed = ratio(rates, "fixed") if options.fixed else ("", float("nan"))
            medians = {way: statistics.median(values) for way, values in rates.items()}
            if options.json:
                for name, value, limit in (("subset", subset, LEAST_SUBSET), ("fixed", fixed, LEAST_FIXED)):
                    if value == value:
                        print(json.dumps({"name": name, "parameters": {"case": case}, "value": value, "unit": "ratio", "limit": limit}))
                continue
            print(f"{case:9} {medians['remuda']:7.0f} samples/s   alone {medians['first alone']:7.0f}   subset {subset:.3f}" +
                  (f"   {best} {medians[best]:7.0f}   fixed {fixed:.3f}" if options.fixed else "") +
                  f"   second left out in {left_out} of {options.runs}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
