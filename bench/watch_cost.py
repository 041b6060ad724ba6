#!/usr/bin/env python3
"""What `remuda watch` costs beside a stand-in for a driver with 8 cards and many processes, at one reading a second.

bench/watch_cost.py [REMUDA NVML MACHINE] [--processes 2000] [--seconds 60]

NVML is the library that plays a machine (test_nvml_current). The processes are real ones, which sleep, an equal part of them on
each card. Printed: processor time of remuda and of its process that asks the driver, as a part of one core, and their memory.
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TICKS = os.sysconf("SC_CLK_TCK")
WARM_UP_S = 5


def family(pid):
    members = [pid]
    for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        members += family(int(child))
    return members


def cpu_s(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return sum(int(field) for field in fields[11:15]) / TICKS  # with children that have ended


def memory(pid):
    """Proportional, so that what both processes share counts once."""
    for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0


def play(path, recorded, pids):
    machine = json.loads(pathlib.Path(recorded).read_text())
    gpus = [device for device in machine["devices"] if device["kind"] == "gpu"]
    for number, gpu in enumerate(gpus):
        own = pids[number::len(gpus)]
        gpu["status"] = {"busy": 0.5, "memory_busy": 0.25, "memory_used_bytes": 8 << 30, "power_watts": 250.0, "energy_joules": 1e6,
                         "temperature_c": 60.0, "sm_clock_mhz": 1410, "throttle": ["idle"],
                         "processes": [{"pid": pid, "type": "compute", "memory_bytes": 1 << 24, "busy": 0.001} for pid in own]}
    path.write_text(json.dumps(machine))
    return len(gpus)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("remuda", nargs="?", default=ROOT / "build/bin/remuda")
    parser.add_argument("library", nargs="?", default=ROOT / "build/release/tests/nvml/current/libnvidia-ml.so.1")
    parser.add_argument("machine", nargs="?", default=ROOT / "testdata/machines/nv-dgx1-v100-8gpu-4nic.json")
    parser.add_argument("--processes", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=60)
    flags = parser.parse_args()
    sleepers = [subprocess.Popen(["sleep", "100000"]) for _ in range(flags.processes)]
    watch = None
    try:
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            cards = play(folder / "machine.json", flags.machine, [one.pid for one in sleepers])
            shutil.copy(flags.library, folder / "libnvidia-ml.so.1")
            watch = subprocess.Popen(
                [flags.remuda, "watch", "--folder", str(folder), "--text-file", str(folder / "remuda.prom")], stderr=subprocess.DEVNULL,
                env={**os.environ, "LD_LIBRARY_PATH": scratch, "REMUDA_TEST_NVML": str(folder / "machine.json"), "HOME": scratch,
                     "XDG_STATE_HOME": scratch + "/state"})
            time.sleep(WARM_UP_S)
            before, began = sum(cpu_s(pid) for pid in family(watch.pid)), time.monotonic()
            time.sleep(flags.seconds)
            members = family(watch.pid)
            used, elapsed = sum(cpu_s(pid) for pid in members) - before, time.monotonic() - began
            print(f"{cards} cards, {flags.processes} processes, {len(members)} processes of remuda, {elapsed:.0f} s: "
                  f"{used:.2f} s of processor, {100 * used / elapsed:.2f} % of a core, {sum(memory(pid) for pid in members) / 2**20:.1f} MB")
            watch.terminate()
            watch.wait()
    finally:
        for one in sleepers + ([watch] if watch else []):
            one.kill()
        for one in sleepers:
            one.wait()


if __name__ == "__main__":
    main()
