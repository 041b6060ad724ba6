#!/usr/bin/python3
"""How much of what ranks send each other a step waits for: overlap.py [--json] [--gbit R] [--bucket-mib M].

Two hosts of one CPU device each, joined by a virtual cable of 1 Gbit/s (needs root, ip and tc). They train the gpt of
examples/gpt.toml on the sources of remuda. Gradients leave while the backward pass runs, and parameters arrive while the next
forward pass does.

exposed  seconds of a step in which each rank, also the last one, waits for the exchange: the median. The limit is the time of one
         bucket on the cable, and what the step waits over a cable without a limit, where only latency is left
sending  seconds that the bytes of a step take on the cable, which the passes have to hide
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

from cable import ROOT, Hosts, median_step

STEPS, WARM = 60, 10
JOB = """
model = {{name = "gpt", width = 128, depth = 8, heads = 4, vocabulary = 256}}
data = {{format = "tokens", context = 64, train = "{tokens}"}}
train = {{global_batch = 16, optimizer = "adamw", learning_rate = 0.0007, seed = 1, max_steps = {steps}, bucket_mib = {bucket_mib}}}
balance = {{policy = "even"}}
device = [{{use = "cpu:0"}}, {{use = "cpu:1"}}]
"""


def write_tokens(path):
    text = b"".join(source.read_bytes() for source in sorted((ROOT / "train").glob("*.cc")))
    path.write_bytes(bytes(byte for token in text for byte in (token, 0)))


def measure(folder, gbit, bucket_mib):
    """The median step, and the bytes that a host sends in it."""
    tokens, job = folder / "train.tokens", folder / "job.toml"
    write_tokens(tokens)
    job.write_text(JOB.format(tokens=tokens, steps=STEPS, bucket_mib=bucket_mib))
    with Hosts(gbit) as hosts:
        report, sent = hosts.train(job)
    return median_step(report, WARM), sent / STEPS


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    parser.add_argument("--gbit", type=float, default=1, help="rate of the cable")
    parser.add_argument("--bucket-mib", type=float, default=4, help="train.bucket_mib")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit(f"{sys.argv[0]}: network namespaces need root")
    with tempfile.TemporaryDirectory() as folder:
        fast, _ = measure(Path(folder), 0, options.bucket_mib)
        slow, sent = measure(Path(folder), options.gbit, options.bucket_mib)
    rate = options.gbit * 1e9 / 8
    exposed_s, limit_s = slow["communication_s"], options.bucket_mib * (1 << 20) / rate + fast["communication_s"]
    if options.json:
        print(json.dumps({"name": "exposed_s", "parameters": {"gbit": options.gbit, "bucket_mib": options.bucket_mib},
                          "value": exposed_s, "unit": "s", "limit": limit_s}))
        return
    print(f"exposed {1e3 * exposed_s:.1f} ms   limit {1e3 * limit_s:.1f}   sending {1e3 * sent / rate:.1f} ms of {sent / 1e6:.2f} MB")
    for name, step in (("this cable", slow), ("one without a limit", fast)):
        phases = "   ".join(f"{phase[:-2]} {1e3 * step[phase]:.1f}" for phase in step)
        print(f"over {name}, ms: {phases}")


if __name__ == "__main__":
    main()
