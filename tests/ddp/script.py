#!/usr/bin/env python3
"""Data-parallel training as PyTorch's own tutorials write it for torchrun, with nothing that knows of remuda.

Each rank learns from data of its own; the ranks end with the same parameters, or the script fails.
"""
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

STEPS = 5


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    assert rank == int(os.environ["RANK"]) and world == int(os.environ["WORLD_SIZE"])

    torch.manual_seed(rank)
    model = DistributedDataParallel(torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(STEPS):
        inputs = torch.randn(16, 8)
        loss = torch.nn.functional.mse_loss(model(inputs), inputs.sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    own = torch.nn.utils.parameters_to_vector(model.parameters()).detach()
    everybodys = [torch.empty_like(own) for _ in range(world)]
    dist.all_gather(everybodys, own)
    assert all(torch.equal(own, other) for other in everybodys), "the ranks have drifted apart"
    print(f"rank {rank} of {world} on {os.environ.get('CUDA_VISIBLE_DEVICES')}: {STEPS} steps", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
