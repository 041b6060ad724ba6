#!/usr/bin/env python3
"""Shows what remuda sees on a machine with GPUs, and compares it with the output of the vendor's own program.

gpu.py REMUDA: prints a Markdown report for docs/gpu.md; exits 1 when a reading differs, 2 when there is no GPU.
"""

import csv
import datetime
import io
import json
import shutil
import subprocess
import sys

# The vendor's column, remuda's reading, its factor, and how far apart two readings of a running machine may be.
COLUMNS = [
    ("uuid", ("uuid",), 1, 0),
    ("name", ("model",), 1, 0),
    ("memory.total", ("memory_bytes",), 1 / 2**20, 1),
    ("memory.used", ("status", "memory_used_bytes"), 1 / 2**20, 512),
    ("temperature.gpu", ("status", "temperature_c"), 1, 5),
    ("power.draw", ("status", "power_watts"), 1, 50),
    ("power.limit", ("power_limit_watts",), 1, 0.01),
    ("pcie.link.gen.max", ("pcie_generation_max",), 1, 0),
    ("pcie.link.width.max", ("pcie_width_max",), 1, 0),
    ("clocks.max.sm", ("sm_clock_max_mhz",), 1, 0),
    ("compute_cap", ("compute_capability",), 1, 0),
]


def value(device: dict, path: tuple[str, ...]):
    """The reading at `path`, or nothing when it is missing."""
    for key in path:
        device = device.get(key, {})
    if isinstance(device, dict):
        return device.get("value")
    return device


def differences(smi: str, inventory: dict) -> list[str]:
    """One line for each reading in which the two differ; a reading that only one of them has counts, too."""
    devices = {device.get("uuid"): device for device in inventory["devices"] if device["kind"] == "gpu"}
    found = []
    for row in csv.reader(io.StringIO(smi), skipinitialspace=True):
        uuid = row[0]
        if uuid not in devices:
            found.append(f"{uuid} is missing from remuda's list")
            continue
        for (name, path, factor, tolerance), theirs in zip(COLUMNS, row):
            ours = value(devices[uuid], path)
            known = not theirs.startswith("[")  # [N/A], [Not Supported], [Unknown Error]
            if known != (ours is not None) or (known and not agree(ours, theirs, factor, tolerance)):
                found.append(f"{uuid} {name}: remuda says {ours}, the vendor's program {theirs}")
    return found


def agree(ours, theirs: str, factor: float, tolerance: float) -> bool:
    if isinstance(ours, str):
        return ours == theirs
    return abs(ours * factor - float(theirs)) <= tolerance


def output(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    return done.stdout + done.stderr


def section(title: str, text: str) -> str:
    return f"## {title}\n\n```\n{text.rstrip()}\n```\n"


def main() -> int:
    remuda = sys.argv[1]
    if not shutil.which("nvidia-smi"):
        print("gpu.py: there is no nvidia-smi here to compare with", file=sys.stderr)
        return 2
    inventory = json.loads(subprocess.run([remuda, "list", "--json"], check=True, capture_output=True).stdout)
    query = "--query-gpu=" + ",".join(name for name, *_ in COLUMNS)
    found = differences(output("nvidia-smi", query, "--format=csv,noheader,nounits"), inventory)
    driver = ", ".join(str(value(entry, ("version",))) for entry in inventory.get("drivers", []))
    print(f"# What was seen on a real GPU\n\n{datetime.date.today()}, driver {driver}. `./dev gpu` makes this page.\n")
    print(section("remuda list", output(remuda, "list")))
    print(section("remuda topo", output(remuda, "topo")))
    print(section("the vendor's matrix", output("nvidia-smi", "topo", "-m")))
    print(section("remuda doctor", output(remuda, "doctor")))
    print(section("remuda bench links", output(remuda, "bench", "links")))
    print(section("compared with the vendor's program", "\n".join(found) or "every reading agrees"))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
