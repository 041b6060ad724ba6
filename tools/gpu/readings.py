"""remuda's readings of GPUs, held against those of the vendor's own program."""

import csv
import io
import math
import shutil

import measured

ANSWERS_WITHIN_S = 20  # some need seconds for each GPU
hangs = False  # a driver in trouble may let no program that asks it end

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


def query(columns: str) -> str | None:
    """The vendor's answer, a line per GPU; nothing where its program is missing or fails, or knows no GPU."""
    global hangs
    if hangs or not shutil.which("nvidia-smi"):
        return None
    status, answer = measured.run(["nvidia-smi", f"--query-gpu={columns}", "--format=csv,noheader,nounits"], ANSWERS_WITHIN_S)
    hangs = status == measured.TIME_IS_OVER
    return answer if status == 0 and not answer.startswith("No devices") else None


def number(answer: str) -> float | None:
    """A number that the vendor's program gives; nothing for [N/A], [Insufficient Permissions] and the like."""
    try:
        found = float(answer)
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def vendors_readings() -> str | None:
    return query(",".join(name for name, *_ in COLUMNS))


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
        if len(row) != len(COLUMNS):
            continue  # a warning, perhaps
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
    count = number(theirs)
    return count is not None and abs(ours * factor - count) <= tolerance
