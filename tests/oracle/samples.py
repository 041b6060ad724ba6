"""The samples that both sides train on: files for remuda, tensors for the oracle, and the order in which they come."""

import random
import struct

import torch
from idx_file import idx

from oracle.models import CHANNELS, CLASSES, CONTEXT, PADDING, SIDE, VOCABULARY

MASK = (1 << 64) - 1


def mix(word):
    """splitmix64."""
    word = (word + 0x9E3779B97F4A7C15) & MASK
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & MASK
    return word ^ (word >> 31)


def order(size, seed, epoch):
    """Of an epoch, counted from 1: docs/train.md, "The order of samples"."""
    half = next(bits for bits in range(1, 64) if 1 << 2 * bits >= size)
    keys = [mix(mix(seed) ^ epoch)]
    for _ in range(6):
        keys.append(mix(keys[-1]))

    def once(place):
        left, right = place >> half, place & (1 << half) - 1
        for key in keys[1:]:
            left, right = right, left ^ mix(right ^ key) & (1 << half) - 1
        return left << half | right

    def walk(place):
        place = once(place)
        while place >= size:
            place = once(place)
        return place

    return [walk(place) for place in range(size)]


def images(folder, count, white=False):
    """Bars with noise over them. `white`: the last image is white."""
    chance = random.Random(count)
    labels = [chance.randrange(CLASSES) for _ in range(count)]
    labels[0] = CLASSES - 1
    area = SIDE * SIDE
    values = [
        chance.randrange(90) + (150 if place % SIDE == label else 0) for label in labels for place in range(CHANNELS * area)
    ]
    if white:
        values[-CHANNELS * area :] = [255] * CHANNELS * area
    (folder / "images").write_bytes(idx([count, CHANNELS, SIDE, SIDE], bytes(values)))
    (folder / "labels").write_bytes(idx([count], bytes(labels)))
    inputs = torch.tensor(values, dtype=torch.float64).view(count, CHANNELS, SIDE, SIDE) / 127.5 - 1
    return inputs.float(), torch.tensor(labels)


def token_windows(folder, count):
    """Some windows are half padding, and some less."""
    chance = random.Random(count)
    stream = []
    for _ in range(count):
        padded = chance.choice([0, 0, 2, CONTEXT - 1])
        stream += [1 + (3 * i + chance.randrange(2)) % (VOCABULARY - 1) for i in range(CONTEXT - padded)] + [PADDING] * padded
    stream.append(1)
    (folder / "tokens").write_bytes(struct.pack(f"<{len(stream)}H", *stream))
    values = torch.tensor(stream)
    return values[:-1].view(count, CONTEXT), values[1:].view(count, CONTEXT)


def batches(inputs, targets, train):
    """Of a whole run, one after another; the last of an epoch may be smaller."""
    for epoch in range(1, train.get("epochs", 1) + 1):
        places = torch.tensor(order(len(inputs), train.get("seed", 1), epoch))
        for chosen in places.split(train["global_batch"]):
            yield inputs[chosen], targets[chosen]
