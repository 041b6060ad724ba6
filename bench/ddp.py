#!/usr/bin/python3
"""Trains the same model on the same two CPU devices, one slowed threefold, with remuda and with PyTorch's own
DistributedDataParallel (gloo), and compares their speeds: ddp.py [--json] [--steps N].

Both sides: the ResNet of examples/fashion-mnist.toml, global batch 1024, SGD with momentum, one process pinned to one
core per device, one thread each, the same allocator settings, and a slowdown that sleeps before a gradient leaves and
after the optimizer. DistributedDataParallel gives every rank half of the batch; remuda gives each what it can do.
The limit is the sum of what the two devices do alone, as remuda measures it.
"""

import argparse
import gzip
import json
import math
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = Path("/usr/share/datasets/fashion-mnist")
BATCH, SLOWDOWN, UNTIMED_STEPS = 1024, 3.0, 5
ALLOCATOR = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 30), "MALLOC_TOP_PAD_": str(64 << 20)}
THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


class Pace:
    """Sleeps until what was computed so far has taken `slowdown` times as long (train/pace.h)."""

    def __init__(self, slowdown):
        self.slowdown, self.running = slowdown, False

    def start(self):
        self.began, self.slept, self.running = time.perf_counter(), 0.0, True

    def stretch(self):
        now = time.perf_counter()
        owed = (self.slowdown - 1) * (now - self.began - self.slept) - self.slept
        if self.running and owed > 0:
            time.sleep(owed)
            self.slept += time.perf_counter() - now

    def stop(self):
        self.stretch()
        self.running = False


def make_resnet(torch, width=16):
    nn = torch.nn

    def norm(channels):
        return nn.GroupNorm(math.gcd(channels, 8), channels)

    class Block(nn.Module):
        def __init__(self, into, out, stride):
            super().__init__()
            self.conv1, self.norm1 = nn.Conv2d(into, out, 3, stride, 1, bias=False), norm(out)
            self.conv2, self.norm2 = nn.Conv2d(out, out, 3, 1, 1, bias=False), norm(out)
            plain = stride == 1 and into == out
            self.shortcut = nn.Identity() if plain else nn.Conv2d(into, out, 1, stride, bias=False)

        def forward(self, x):
            y = torch.relu(self.norm1(self.conv1(x)))
            return torch.relu(self.norm2(self.conv2(y)) + self.shortcut(x))

    return nn.Sequential(
        nn.Conv2d(1, width, 3, 2, 1, bias=False), norm(width), nn.ReLU(),
        Block(width, width, 1), Block(width, 2 * width, 2), Block(2 * width, 4 * width, 2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4 * width, 10))


def load(torch):
    with gzip.open(DATA / "train-images-idx3-ubyte.gz") as file:
        images = torch.frombuffer(bytearray(file.read()[16:]), dtype=torch.uint8).view(-1, 1, 28, 28)
    with gzip.open(DATA / "train-labels-idx1-ubyte.gz") as file:
        labels = torch.frombuffer(bytearray(file.read()[8:]), dtype=torch.uint8)
    return images, labels


def ddp_rank(rank, port, steps, out):
    """One rank of the DistributedDataParallel run; rank 0 writes its samples/s to `out`."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[rank % len(cores)]})
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    pace = Pace(SLOWDOWN if rank == 1 else 1.0)

    def reduce(_, bucket):
        pace.stretch()
        work = dist.all_reduce(bucket.buffer().div_(2), async_op=True)
        return work.get_future().then(lambda future: future.value()[0])

    model = torch.nn.parallel.DistributedDataParallel(make_resnet(torch))
    model.register_comm_hook(None, reduce)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    images, labels = load(torch)
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(1))
    half, start = BATCH // 2, 0.0
    for step in range(steps):
        if step == UNTIMED_STEPS:
            start = time.perf_counter()
        first = (step * BATCH) % (len(order) - BATCH) + rank * half
        mine = order[first:first + half]
        pace.start()
        loss = torch.nn.functional.cross_entropy(model(images[mine].float() / 127.5 - 1), labels[mine].long())
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        pace.stop()
        pace.start()
        optimizer.step()
        pace.stop()
    if rank == 0:
        seconds = time.perf_counter() - start
        Path(out).write_text(str((steps - UNTIMED_STEPS) * BATCH / seconds))
    dist.barrier()


def run_ddp(steps):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.NamedTemporaryFile() as out:
        ranks = [subprocess.Popen([sys.executable, __file__, "--rank", str(rank), "--port", str(port),
                                   "--steps", str(steps), "--out", out.name], env=os.environ | ALLOCATOR | THREADS)
                 for rank in range(2)]
        if any([rank.wait(timeout=600) for rank in ranks]):
            sys.exit("ddp.py: a rank of DistributedDataParallel failed")
        return float(out.read())


def run_remuda(steps, policy):
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        subprocess.run([ROOT / "build/bin/remuda", "train", ROOT / "examples/fashion-mnist.toml", "--quiet",
                        "--set", "train.epochs=100", "--set", f"train.max_steps={steps}",
                        "--set", f"train.global_batch={BATCH}", "--set", "train.optimizer=sgd",
                        "--set", "train.learning_rate=0.1", "--set", "train.schedule=constant",
                        "--set", f"balance.policy={policy}", "--json", report],
                       check=True, timeout=600, stdout=subprocess.DEVNULL)
        return json.loads(report.read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", action="store_true", help="one JSON object per figure")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--out", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank is not None:
        return ddp_rank(options.rank, options.port, options.steps, options.out)

    peer = run_ddp(options.steps)
    for policy in ("auto", "even"):
        report = run_remuda(options.steps, policy)
        value, limit = report["samples_per_s"], report["ideal_samples_per_s"]
        if options.json:
            parameters = {"model": "resnet", "global_batch": BATCH, "devices": 2, "slowdown": SLOWDOWN,
                          "balance": policy, "steps": options.steps, "peer": "DistributedDataParallel (gloo)"}
            print(json.dumps({"name": "ddp_samples_per_s", "parameters": parameters, "value": value,
                              "unit": "samples/s", "peer": peer, "ratio": value / peer, "limit": limit}))
        else:
            print(f"remuda, balance {policy:<4}  {value:7.0f} samples/s   DistributedDataParallel {peer:7.0f}   "
                  f"ratio {value / peer:.2f}   limit {limit:7.0f}   of limit {value / limit:.2f}")


if __name__ == "__main__":
    main()
