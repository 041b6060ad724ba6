#!/usr/bin/env python3
"""A plain PyTorch loop over a job file's model and data, as one would write it by hand: what `remuda train` is held against.

loop.py JOB.toml DEVICE PRECISION: DEVICE is gpu or cpu, PRECISION fp32, bf16 or fp16. Prints one JSON object: samples_per_s over all
steps but the first 3, steps, and loss, the mean of the last epoch, as in remuda's report; torch; peak_memory_bytes where there is
a GPU.
"""

import gzip
import json
import math
import struct
import sys
import time

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10, whose pip has it
    from pip._vendor import tomli as tomllib

import torch
from torch import nn
from torch.nn import functional

WARM_UP_STEPS = 3
TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


def conv(inputs: int, outputs: int, size: int, stride: int) -> nn.Conv2d:
    layer = nn.Conv2d(inputs, outputs, size, stride=stride, padding=size // 2, bias=False)
    nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
    return layer


def norm(channels: int) -> nn.GroupNorm:
    return nn.GroupNorm(math.gcd(channels, 8), channels)


class Block(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int):
        super().__init__()
        self.conv1, self.norm1 = conv(inputs, outputs, 3, stride), norm(outputs)
        self.conv2, self.norm2 = conv(outputs, outputs, 3, 1), norm(outputs)
        self.shortcut = conv(inputs, outputs, 1, stride) if stride != 1 or inputs != outputs else nn.Identity()

    def forward(self, x):
        y = self.norm1(self.conv1(x)).relu_()
        return (self.norm2(self.conv2(y)) + self.shortcut(x)).relu_()


class ResNet(nn.Module):
    """train/model/resnet.cc, with group normalisation."""

    def __init__(self, width: int, depth: int, classes: int):
        super().__init__()
        self.stem, self.norm = conv(1, width, 3, 2), norm(width)
        blocks, channels = [], width
        for stage in range(3):
            for i in range(depth):
                blocks.append(Block(channels, width << stage, 2 if stage > 0 and i == 0 else 1))
                channels = width << stage
        self.blocks, self.head = nn.Sequential(*blocks), nn.Linear(channels, classes)

    def forward(self, x):
        return self.head(self.blocks(self.norm(self.stem(x)).relu_()).mean((2, 3)))


class Layer(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.inputs, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attention(self, x):
        n, t, width = x.shape
        q, k, v = self.inputs(x).view(n, t, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        return self.output(functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(n, t, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    """train/model/gpt.cc."""

    def __init__(self, vocabulary: int, context: int, width: int, depth: int, heads: int):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.layers, self.norm = nn.ModuleList(Layer(width, heads) for _ in range(depth)), nn.LayerNorm(width)
        nn.init.normal_(self.tokens.weight, 0, 0.02)
        nn.init.normal_(self.positions.weight, 0, 0.02)

    def forward(self, tokens):
        t = tokens.shape[1]
        x = self.tokens(tokens) + self.positions(torch.arange(t, device=tokens.device))
        for layer in self.layers:
            x = layer(x)
        return functional.linear(self.norm(x), self.tokens.weight)


def read_idx(path: str) -> torch.Tensor:
    with gzip.open(path) as file:
        whole = file.read()
    sizes = struct.unpack_from(f">{whole[3]}I", whole, 4)
    return torch.frombuffer(bytearray(whole[4 + 4 * whole[3]:]), dtype=torch.uint8).reshape(sizes)


def images(job: dict):
    """Model, samples, targets, and how samples become the model's input."""
    files = job["data"]["train"]
    pixels, labels = read_idx(files["images"]), read_idx(files["labels"]).long()
    model = ResNet(job["model"]["width"], job["model"]["depth"], int(labels.max()) + 1)
    return model, pixels.unsqueeze(1), labels, lambda batch: batch.float() / 127.5 - 1


def tokens(job: dict):
    context, shape = job["data"]["context"], job["model"]
    with open(job["data"]["train"]["tokens"], "rb") as file:
        stream = torch.frombuffer(bytearray(file.read()), dtype=torch.int16).long()
    windows = (len(stream) - 1) // context
    samples, targets = stream[:windows * context].view(windows, context), stream[1:windows * context + 1].view(windows, context)
    model = Gpt(shape["vocabulary"], context, shape["width"], shape["depth"], shape["heads"])
    return model, samples, targets, lambda batch: batch


def train(job: dict, device: str, precision: str) -> dict:
    terms = job["train"]
    torch.manual_seed(1)
    model, samples, targets, prepare = images(job) if job["data"]["format"] == "idx" else tokens(job)
    model, samples, targets = model.to(device), samples.to(device), targets.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), terms["learning_rate"], weight_decay=0)
    scaler = torch.amp.GradScaler(device) if precision == "fp16" else None
    sync = torch.cuda.synchronize if device == "cuda" else lambda: None
    most, steps, timed, start = terms.get("max_steps", 0) or math.inf, 0, 0, 0.0
    for _ in range(terms["epochs"]):
        if steps >= most:
            break
        total, count = torch.zeros((), device=device), 0
        for batch in torch.randperm(len(samples), device=device).split(terms["global_batch"]):
            if steps >= most:
                break
            if steps == WARM_UP_STEPS:
                sync()
                start = time.perf_counter()
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast(device, TYPES.get(precision), enabled=precision in TYPES):
                scores = model(prepare(samples[batch]))
                loss = functional.cross_entropy(scores.flatten(0, -2), targets[batch].flatten())
            if scaler:
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()
            else:
                loss.backward()
                optimizer.step()
            total += loss.detach() * len(batch)
            count += len(batch)
            steps += 1
            timed += len(batch) if steps > WARM_UP_STEPS else 0
    sync()
    seconds = time.perf_counter() - start
    found = {"steps": steps, "loss": total.item() / count, "torch": torch.__version__}
    if timed:
        found["samples_per_s"] = timed / seconds
    if device == "cuda":
        found["peak_memory_bytes"] = torch.cuda.max_memory_allocated()
    return found


def main() -> int:
    file, device, precision = sys.argv[1:]
    with open(file, "rb") as opened:
        job = tomllib.load(opened)
    print(json.dumps(train(job, "cuda" if device == "gpu" else device, precision)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
