"""The gloo side of `./dev bench allreduce`: allreduce_gloo.py BYTES...

Two processes over loopback, torch.distributed's gloo backend. Prints {"bytes":B,"seconds":T} per size; timed as
repeat.h says.
"""

import json
import os
import statistics
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from ports import free_port  # noqa: E402

SECONDS_PER_FIGURE = 1.5


def timed(values):
    values.fill_(1.0)
    dist.barrier()
    start = time.perf_counter()
    dist.all_reduce(values)
    return time.perf_counter() - start


def median_s(values):
    start = time.perf_counter()
    for _ in range(5):
        timed(values)
    each = (time.perf_counter() - start) / 5
    times = torch.tensor([max(10, min(20000, int(SECONDS_PER_FIGURE / each)))])
    dist.broadcast(times, 0)
    median = torch.tensor([statistics.median(timed(values) for _ in range(times.item()))], dtype=torch.float64)
    dist.all_reduce(median, dist.ReduceOp.MAX)
    return median.item()


def run(rank, port, sizes):
    cores = sorted(os.sched_getaffinity(0))[:2]
    os.sched_setaffinity(0, {cores[rank % len(cores)]})
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    for size in sizes:
        seconds = median_s(torch.empty(size // 4))
        if rank == 0:
            print(json.dumps({"bytes": size, "seconds": seconds}), flush=True)
    dist.barrier()


if __name__ == "__main__":
    port, sizes = free_port(), [int(size) for size in sys.argv[1:]]
    child = os.fork()
    run(1 if child == 0 else 0, port, sizes)
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
