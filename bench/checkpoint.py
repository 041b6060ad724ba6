#!/usr/bin/python3
"""What a checkpoint costs, and how fast it is written and read: checkpoint.py [--json] [--width N] [--folder FOLDER].

An mlp with AdamW on Fashion-MNIST: 1.1 GiB of state. It keeps some checkpoints while it trains, and one at its end; a second
run goes on from that. On two CPU devices, which are all of a machine of two cores, and with --devices 1 on one thread beside
cores that are idle. Three figures:

held_up   of the time in which checkpoints were written beside the training, the part that this lost by it: by waiting for
          the copies, and in steps that took longer than the median of those before and after. Its limit is what the least that a
          background copy needs would take of the same time: that each byte is copied once, by as many processes at a time
save      bytes/s of the last checkpoint, from the first copy until it is whole on the disk
load      bytes/s of finding it, comparing its sums and loading it, with nothing of it in the page cache

The limit of the last two is the rate at which one file of as many bytes is written (and synchronized) and read on the same
disk in the same minute, by one thread through the page cache; what it gives past that, with some requests at a time, stands
beside it.
"""

import argparse
import json
import mmap
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
from ports import free_port  # noqa: E402

DATA = Path("/usr/share/datasets/fashion-mnist")
BLOCK = 8 << 20
REQUEST, AT_ONCE = 8 << 20, 8  # as checkpoint/checked_file.cc
EVERY = 30
UNTIMED = 3
JOB = """
model = {{name = "mlp", hidden = [{width}, {width}]}}
data = {{format = "idx", train = {{images = "{data}/train-images-idx3-ubyte.gz", labels = "{data}/train-labels-idx1-ubyte.gz"}}}}
train = {{global_batch = 64, optimizer = "adamw", learning_rate = 0.001, epochs = 1000, max_steps = {steps}}}
checkpoint = {{folder = "{folder}/state", every_steps = {every}}}
balance = {{policy = "even"}}
device = [{devices}]
"""


def train(folder, options, steps, *more):
    """The report of a run; its checkpoints are in the folder."""
    job, out = folder / "job.toml", folder / "report.json"
    devices = ", ".join(f'{{use = "cpu:{i}"}}' for i in range(options.devices))
    job.write_text(JOB.format(width=options.width, data=DATA, steps=steps, folder=folder, every=EVERY, devices=devices))
    # As torchrun would start it, a rank has the threads it is told to have, and all cores.
    alone = {"OMP_NUM_THREADS": "1", "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1",
             "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    environment = {**os.environ, **alone} if options.devices == 1 else None
    subprocess.run([ROOT / "build/bin/remuda", "train", job, "--quiet", "--json", out, *more], check=True, timeout=1800,
                   stdout=subprocess.DEVNULL, env=environment)
    return json.loads(out.read_text())


def lost(steps, background_s):
    """Of each checkpoint, in seconds: what the steps beside it took longer than the median of the others around it."""
    alone = [seconds for step, seconds, beside in steps if not beside]
    result = []
    for begun in range(EVERY, steps[-1][0], EVERY):
        around = [seconds for step, seconds, beside in steps if not beside and abs(step - begun) <= EVERY]
        usual = statistics.median(around or alone)
        result.append(sum(seconds - usual for step, seconds, beside in steps if beside == begun))
    return result, statistics.median(alone)


def held_up(report):
    """Of each checkpoint in the background: the part of its time that the training lost; and the figures beside it."""
    history, checkpoints = report["history"], report["checkpoints"]
    phases = ("data_s", "compute_s", "update_s", "communication_s", "wait_s")
    times = [sum(parts) for parts in zip(*(history[phase] for phase in phases))]
    count = checkpoints["written"] - 1
    each_s, held_s = checkpoints["background_s"] / count, checkpoints["held_s"] / count
    steps, since_s, begun = [], each_s, 0
    for step, seconds in zip(history["last_step"], times):
        if step > UNTIMED:
            steps.append((step, seconds, begun if since_s < each_s else 0))
        since_s += seconds
        if step % EVERY == 0:
            since_s, begun = 0, step
    slower, step_s = lost(steps, each_s)
    parts = sorted((seconds + held_s) / each_s for seconds in slower[:count])
    return {"part": statistics.median(parts), "from": parts[0], "to": parts[-1], "waiting": held_s / each_s,
            "each_s": each_s, "step_s": step_s, "checkpoints": count}


def copy_for(barrier, count, rates):
    source, target = bytearray(b"1") * BLOCK * 16, bytearray(BLOCK * 16)
    target[:] = source
    barrier.wait()
    start = time.monotonic()
    for _ in range(max(1, count // len(source))):
        target[:] = source
    rates.put(len(source) * max(1, count // len(source)) / (time.monotonic() - start))


def copy_rate(processes, count):
    """Bytes/s that so many processes copy together."""
    barrier, rates = multiprocessing.Barrier(processes), multiprocessing.Queue()
    copies = [multiprocessing.Process(target=copy_for, args=(barrier, count // processes, rates)) for _ in range(processes)]
    for one in copies:
        one.start()
    together = sum(rates.get(timeout=60) for _ in copies)
    for one in copies:
        one.join()
    return together


def forget(path):
    """Nothing of the file is in the page cache any more."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read_past_cache(path, count):
    """Bytes/s of reading a file with some requests at a time; 0 where the file system cannot."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_DIRECT)
    except OSError:
        return 0
    rooms = [mmap.mmap(-1, REQUEST) for _ in range(AT_ONCE)]

    def read_each(number):
        for at in range(number * REQUEST, count, AT_ONCE * REQUEST):
            os.preadv(file, [rooms[number]], at)

    start = time.monotonic()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(read_each, range(AT_ONCE)))
    os.close(file)
    return count / (time.monotonic() - start)


def disk_rates(folder, count):
    """Bytes/s of writing and of reading one file, and of reading it past the page cache."""
    path, block = folder / "limit", os.urandom(BLOCK)
    count = count // BLOCK * BLOCK
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
    forget(path)
    past_cache = read_past_cache(path, count)
    path.unlink()
    return count / written_s, count / read_s, past_cache


def measure(folder, options):
    """Name, value, unit, limit and what else is known of each figure."""
    steps = EVERY * options.checkpoints + EVERY // 2
    kept = train(folder, options, steps)
    held = held_up(kept)
    count = kept["checkpoints"]["bytes"]
    yield ("held_up", held["part"], "of the time of writing", count / copy_rate(options.devices, count) / held["each_s"],
           {"bytes": count, **held})
    saved = [count / kept["checkpoints"]["write_s"]]
    loaded, writes, reads, past = [], [], [], []
    for turn in range(options.turns):
        rates = disk_rates(folder, count)
        writes.append(rates[0])
        reads.append(rates[1])
        past.append(rates[2])
        for path in (folder / "state").rglob("*"):
            if path.is_file():
                forget(path)
        resumed = train(folder, options, steps + 1 + turn, "--resume")["checkpoints"]
        loaded.append(count / resumed["load_s"])
        saved.append(resumed["bytes"] / resumed["write_s"])
    yield ("save", statistics.median(saved), "bytes/s", statistics.median(writes),
           {"from": min(saved), "to": max(saved), "limits": [min(writes), max(writes)]})
    yield ("load", statistics.median(loaded), "bytes/s", statistics.median(reads),
           {"from": min(loaded), "to": max(loaded), "limits": [min(reads), max(reads)], "past_cache": statistics.median(past)})


def text_of(name, value, limit, more):
    if name == "held_up":
        return (f"{name:8} {value:6.1%} of the time of writing ({more['from']:.1%} to {more['to']:.1%} in {more['checkpoints']}; "
                f"{more['waiting']:.1%} by waiting)   limit {limit:.1%}   {more['bytes'] / 2**30:.2f} GiB in {more['each_s']:.1f} s, "
                f"steps of {more['step_s']:.2f} s")
    past = f"   past the cache {more['past_cache'] / 1e6:.0f} MB/s" if "past_cache" in more else ""
    return (f"{name:8} {value / 1e6:6.0f} MB/s ({more['from'] / 1e6:.0f} to {more['to'] / 1e6:.0f})   limit {limit / 1e6:.0f} MB/s "
            f"({more['limits'][0] / 1e6:.0f} to {more['limits'][1] / 1e6:.0f})   of limit {value / limit:.2f}{past}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", action="store_true", help="one JSON object per figure, a line each")
    parser.add_argument("--width", type=int, default=9500, help="of both hidden layers: 12 bytes of state per parameter")
    parser.add_argument("--folder", type=Path, help="on the disk to measure; a temporary folder unless given")
    parser.add_argument("--devices", type=int, default=2, choices=(1, 2), help="CPU devices, a rank each")
    parser.add_argument("--checkpoints", type=int, default=4, help="beside the training")
    parser.add_argument("--turns", type=int, default=3, help="so often it is loaded, and saved once more")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for name, value, unit, limit, more in measure(Path(folder), options):
            if options.json:
                print(json.dumps({"name": f"checkpoint_{name}", "parameters": {"devices": options.devices, **more},
                                  "value": value, "unit": unit, "limit": limit}), flush=True)
            else:
                print(text_of(name, value, limit, more), flush=True)


if __name__ == "__main__":
    main()
