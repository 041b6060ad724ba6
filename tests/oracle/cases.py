"""The jobs that are held against the oracle.

Shares are drawn at random, of the samples and of the optimizer's state, with the case's name as the seed. All ranks
compute on one CPU device, so the machine's number of cores does not matter.
"""

import dataclasses
import random

from oracle import models

# Largest |w - oracle| / |oracle - start| of a tensor.
#
# Both sides round each sum and product, in another order: by 1.1e-16 at a time in float64. What a tensor has moved is some
# hundredth of what it is, at least, and a dozen steps feed on each other. A formula that differs in its least part, an
# epsilon of 1e-8 or 1e-6 beside values near 1, is 1e-9 off.
FLOAT64 = 1e-13
# The same in float32, by 6e-8 at a time, against an oracle that computes in float64.
FLOAT32 = 3e-5
# A value that the last bit of float32 rounds to the other side in bfloat16 is 4e-3 off, one of many in a tensor.
BFLOAT16 = 1e-3


@dataclasses.dataclass
class Case:
    name: str
    model: object  # makes it
    ranks: int
    train: dict
    tolerance: float = FLOAT64
    key: dict = dataclasses.field(default_factory=dict)  # of [model], for a built-in one; else it goes as TorchScript
    data: str = "images"
    count: int = 45
    loss: str = "cross_entropy"
    memory: dict = dataclasses.field(default_factory=dict)
    pieces: int = 1  # one after another, each of all ranks' samples
    micro_batch: int = 0
    oracle: dict = dataclasses.field(default_factory=dict)
    spared: tuple = ()  # a tensor, and which rows of it are not compared
    drops_ranks: bool = False  # one of the ranks has no samples

    def __post_init__(self):
        self.train = {"global_batch": 16, "epochs": 4, "check_every": 3, "bucket_mib": 0.0002, **self.train}
        chance = random.Random(self.name)
        batch = self.train["global_batch"]
        units = batch // self.micro_batch if self.micro_batch else batch
        self.shares = []
        while len(set(self.shares)) < min(self.ranks, 2):
            cuts = sorted(chance.sample(range(1, units), self.ranks - 1))
            self.shares = [high - low for low, high in zip([0, *cuts], [*cuts, units])]
        self.state_shares = [chance.randint(1, 9) for _ in range(self.ranks)]
        if self.drops_ranks:
            self.shares = [*self.shares[:-2], self.shares[-2] + self.shares[-1], 1e-6]

    def matters_how_it_is_cut(self):
        """As rounding to 16 bits depends on it, and batch norm."""
        return bool(self.micro_batch or self.pieces > 1 or self.oracle)

    def cut(self, samples):
        """Places in the batch that go through the model together; see Oracle."""
        places = list(range(samples))
        if self.micro_batch:
            return [places[at : at + self.micro_batch] for at in range(0, samples, self.micro_batch)]
        assert samples == sum(self.shares), "whole batches only"
        parts, at = [], 0
        for count in self.shares:
            parts.append(places[at : at + count])
            at += count
        if self.pieces == 1:
            return parts
        return [
            [one for part in parts for one in part[i * len(part) // self.pieces : (i + 1) * len(part) // self.pieces]]
            for i in range(self.pieces)
        ]


SGD = {"optimizer": "sgd", "learning_rate": 0.2}
ADAMW = {"optimizer": "adamw", "learning_rate": 0.02}
ALL = {"weight_decay": 0.1, "decay": "matrices", "clip_norm": 0.3, "average": 0.8, "schedule": "cosine"}
PLAIN_MLP = {"model": lambda: models.Mlp([16, 8]), "key": {"name": "mlp", "hidden": [16, 8]}}
RESNET = {"train": {**SGD, "learning_rate": 0.05, "weight_decay": 0.01}, "tolerance": FLOAT32}

CASES = {
    "Updates": [
        Case("sgd without momentum, decay", models.dense, 1, {**SGD, "momentum": 0, "weight_decay": 0.05}, loss="mse"),
        Case("sgd, momentum and decay", models.log_dense, 2, {**SGD, "momentum": 0.8, "weight_decay": 0.05}, loss="nll"),
        Case("sgd, all", models.dense, 3, {**SGD, "momentum": 0.9, **ALL}),
        Case("adamw, decay", models.dense, 2, {**ADAMW, "weight_decay": 0.3}),
        Case("adamw, all", models.dense, 3, {**ADAMW, **ALL}, drops_ranks=True),
        Case("adamw, steps skipped", models.skipping, 2, {**ADAMW, **ALL}, data="white"),
        Case("adamw, no gradient in some steps", models.seldom, 3, {**ADAMW, **ALL, "decay": "all"}, data="white"),
        Case("tokens with padding", models.tokens, 3, {**ADAMW, **ALL}, data="tokens"),
    ],
    "Memory": [
        Case("accumulate", models.dense, 2, {**ADAMW, **ALL}, memory={"accumulate": 3}),
        Case("recompute, spilled", models.dense, 3, {**SGD, **ALL}, memory={"recompute": "blocks", "activations": "host"}),
        Case("sharded, state on the host", models.dense, 3, {**ADAMW, **ALL},
             memory={"parameters": "sharded", "optimizer": "host"}),
    ],
    "BuiltIn": [
        Case("mlp", ranks=2, train={**SGD, "clip_norm": 0.5}, tolerance=FLOAT32, **PLAIN_MLP),
        # The softmax does not change where a key's bias does: its gradient is what rounding leaves, and AdamW divides it
        # by its own size.
        Case("gpt with padding", lambda: models.Gpt(8, 2, 2), 3, {**ADAMW, "learning_rate": 0.01, **ALL},
             tolerance=FLOAT32, data="tokens", spared=("attention.in.bias", slice(8, 16)),
             key={"name": "gpt", "width": 8, "depth": 2, "heads": 2, "vocabulary": models.VOCABULARY}),
        Case("resnet, group norm", lambda: models.ResNet(8, "group"), 2, key={"name": "resnet", "width": 8}, **RESNET),
    ],
    "BatchNorm": [
        Case("synchronized", lambda: models.ResNet(4, "batch"), 3, key={"name": "resnet", "width": 4, "norm": "batch"},
             **RESNET),
        Case("synchronized, accumulate", lambda: models.ResNet(4, "batch"), 2, count=48, memory={"accumulate": 2}, pieces=2,
             key={"name": "resnet", "width": 4, "norm": "batch"}, **RESNET),
        Case("micro-batches", models.normalised, 1, {**SGD, "learning_rate": 0.05}, micro_batch=4),
        Case("micro-batches of two ranks", models.normalised, 2, {**SGD, "learning_rate": 0.05}, micro_batch=4),
    ],
    "ShortTypes": [
        Case("bf16", ranks=1, train=SGD, tolerance=BFLOAT16, oracle={"bf16": True}, count=48, **PLAIN_MLP),
        Case("bf16, parameters sent so", ranks=3, train=SGD, tolerance=BFLOAT16, oracle={"bf16": True, "rounds": True},
             count=48, **PLAIN_MLP),
        Case("gradients sent in bf16", ranks=3, train={**SGD, "gradients": "bf16"}, tolerance=BFLOAT16,
             oracle={"rounds_gradients": True}, count=48, **PLAIN_MLP),
    ],
}
