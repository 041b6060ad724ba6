#!/usr/bin/python3
"""Trains the same model on the same two CPU devices with remuda and with PyTorch's own DistributedDataParallel (gloo), and
compares their speeds: ddp.py [--json] [--steps N] [--runs N] [--model NAME] [--pair NAME].

Both sides: a ResNet on Fashion-MNIST and a gpt on text, each on a pair of which one is slowed threefold and on a pair of
equals; SGD with momentum, one process pinned to one core per device, one thread each, the same allocator settings, and a
slowdown that sleeps before a gradient leaves and after the optimizer. DistributedDataParallel gives every rank half of the
batch; remuda gives each what it can do, so that on the unlike pair arithmetic allows it 2.0 times the speed: 1 + 1/3 of a
device in place of two thirds. The limit is the sum of what the two devices do alone, as remuda measures it.

Each is run several times, in turns, as the speed of shared cores changes from minute to minute. The ratio is the median of
those of the turns, with the smallest and the largest; the speeds are medians, too.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
from ports import free_port  # noqa: E402

DATA = Path("/usr/share/datasets/fashion-mnist")
TEXT = Path("/usr/share/common-licenses")
UNTIMED_STEPS = 5
PAIRS = {"unlike": 3.0, "equal": 1.0}
ALLOCATOR = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 30), "MALLOC_TOP_PAD_": str(64 << 20)}
THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
MODELS = {
    "resnet": f"""
        model = {{name = "resnet", width = 16, depth = 1}}
        data = {{format = "idx", train = {{images = "{DATA}/train-images-idx3-ubyte.gz",
            labels = "{DATA}/train-labels-idx1-ubyte.gz"}}}}
        train = {{global_batch = 1024, learning_rate = 0.1, momentum = 0.9, epochs = 1000, max_steps = STEPS}}
    """,
    "gpt": """
        model = {name = "gpt", width = 64, depth = 4, heads = 4, vocabulary = 256}
        data = {format = "tokens", context = 64, train = {tokens = "TOKENS"}}
        train = {global_batch = 64, learning_rate = 0.01, momentum = 0.9, epochs = 1000, max_steps = STEPS}
    """,
}


def write_job(folder, model, slowdown, policy, steps):
    """A job file for both sides. TOML has an inline table on one line."""
    tokens = folder / "tokens"
    text = b"".join(file.read_bytes() for file in sorted(TEXT.iterdir()) if file.is_file() and not file.is_symlink())
    tokens.write_bytes(b"".join(bytes((byte, 0)) for byte in text))
    lines = " ".join(MODELS[model].split()).replace("} data", "}\ndata").replace("} train =", "}\ntrain =")
    lines = lines.replace("STEPS", str(steps)).replace("TOKENS", str(tokens))
    devices = f'[[device]]\nuse = "cpu:0"\n[[device]]\nuse = "cpu:1"\nslowdown = {slowdown}\n'
    job = folder / "job.toml"
    job.write_text(f'{lines}\nbalance = {{policy = "{policy}"}}\n{devices}')
    return job


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


def ddp_rank(options):
    """One rank of the DistributedDataParallel run; rank 0 writes its samples/s."""
    rank, steps = options.rank, options.steps
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[rank % len(cores)]})
    import torch
    import torch.distributed as dist

    sys.path.insert(0, str(ROOT / "tools/gpu"))
    import loop  # the same models in Python

    torch.set_num_threads(1)
    torch.manual_seed(1)
    job = tomllib.loads(Path(options.job).read_text())
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{options.port}", rank=rank, world_size=2)
    pace = Pace(job["device"][rank].get("slowdown", 1.0))

    def reduce(_, bucket):
        pace.stretch()
        work = dist.all_reduce(bucket.buffer().div_(2), async_op=True)
        return work.get_future().then(lambda future: future.value()[0])

    plain, samples, targets, prepare = loop.images(job) if job["data"]["format"] == "idx" else loop.tokens(job)
    model = torch.nn.parallel.DistributedDataParallel(plain)
    model.register_comm_hook(None, reduce)
    optimizer = torch.optim.SGD(model.parameters(), lr=job["train"]["learning_rate"], momentum=0.9)
    order = torch.randperm(len(samples), generator=torch.Generator().manual_seed(1))
    batch, start = job["train"]["global_batch"], 0.0
    for step in range(steps):
        if step == UNTIMED_STEPS:
            start = time.perf_counter()
        first = (step * batch) % (len(order) - batch) + rank * batch // 2
        mine = order[first:first + batch // 2]
        pace.start()
        scores = model(prepare(samples[mine]))
        loss = torch.nn.functional.cross_entropy(scores.flatten(0, -2), targets[mine].flatten())
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        pace.stop()
        pace.start()
        optimizer.step()
        pace.stop()
    if rank == 0:
        seconds = time.perf_counter() - start
        Path(options.out).write_text(str((steps - UNTIMED_STEPS) * batch / seconds))
    dist.barrier()


def run_ddp(job, steps):
    port = free_port()
    with tempfile.NamedTemporaryFile() as out:
        ranks = [subprocess.Popen([sys.executable, __file__, "--rank", str(rank), "--port", str(port), "--job", job,
                                   "--steps", str(steps), "--out", out.name], env=os.environ | ALLOCATOR | THREADS)
                 for rank in range(2)]
        if any([rank.wait(timeout=600) for rank in ranks]):
            sys.exit("ddp.py: a rank of DistributedDataParallel failed")
        return float(out.read())


def run_remuda(job):
    report = job.with_name("report.json")
    subprocess.run([ROOT / "build/bin/remuda", "train", job, "--quiet", "--json", report], check=True, timeout=600,
                   stdout=subprocess.DEVNULL)
    return json.loads(report.read_text())


def compare(model, pair, options):
    slowdown = PAIRS[pair]
    speeds, peers, limits = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        for _ in range(options.runs):
            peers.append(run_ddp(write_job(folder, model, slowdown, "even", options.steps), options.steps))
            report = run_remuda(write_job(folder, model, slowdown, "auto", options.steps))
            speeds.append(report["samples_per_s"])
            limits.append(report["ideal_samples_per_s"])
    ratios = [ours / theirs for ours, theirs in zip(speeds, peers)]
    value, peer, limit, ratio = (statistics.median(some) for some in (speeds, peers, limits, ratios))
    allowed = (1 + 1 / slowdown) / (2 / slowdown)
    if options.json:
        parameters = {"model": model, "pair": pair, "devices": 2, "slowdown": slowdown, "steps": options.steps, "runs": options.runs,
                      "peer": "DistributedDataParallel (gloo)", "allowed_ratio": allowed, "ratios": ratios}
        print(json.dumps({"name": "ddp_samples_per_s", "parameters": parameters, "value": value, "unit": "samples/s",
                          "peer": peer, "ratio": ratio, "limit": limit}), flush=True)
    else:
        print(f"{model:<6} {pair:<6}  remuda {value:7.0f} samples/s   DistributedDataParallel {peer:7.0f}   ratio {ratio:.2f} "
              f"({min(ratios):.2f} to {max(ratios):.2f}) of {allowed:.2f}   limit {limit:7.0f}   of limit {value / limit:.2f}",
              flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", action="store_true", help="one JSON object per figure")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--runs", type=int, default=3, help="of each, in turns")
    parser.add_argument("--model", choices=MODELS, help="only this one")
    parser.add_argument("--pair", choices=PAIRS, help="only this one")
    for hidden in ("--rank", "--port"):
        parser.add_argument(hidden, type=int, help=argparse.SUPPRESS)
    for hidden in ("--job", "--out"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank is not None:
        return ddp_rank(options)
    for model in [options.model] if options.model else MODELS:
        for pair in [options.pair] if options.pair else PAIRS:
            compare(model, pair, options)


if __name__ == "__main__":
    main()
