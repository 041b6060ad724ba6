"""The oracle: what a job should learn, by PyTorch alone, on one device, with the whole batch at a time.

Gradients come from torch.autograd, updates from torch.optim, the rest from PyTorch's own functions of that name. The
formulas are in docs/train.md, "The formulas".
"""

import contextlib
import copy

import torch
from torch.nn import functional
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.optim.swa_utils import AveragedModel

BF16 = torch.bfloat16


def optimizer_of(model, train):
    """Of two groups: what decays, and what does not."""
    everything = list(model.parameters())
    spared = [p for p in everything if train.get("decay", "all") == "matrices" and p.dim() < 2]
    decayed = [p for p in everything if not any(p is other for other in spared)]
    groups = [{"params": decayed, "weight_decay": train.get("weight_decay", 0.0)}, {"params": spared, "weight_decay": 0.0}]
    groups = [group for group in groups if group["params"]]
    if train.get("optimizer", "sgd") == "adamw":
        return torch.optim.AdamW(groups, lr=train["learning_rate"], betas=(0.9, 0.999), eps=1e-8)
    return torch.optim.SGD(groups, lr=train["learning_rate"], momentum=train.get("momentum", 0.9))


def loss_of(kind, scores, targets, padding, reduction):
    if kind == "mse":
        return functional.mse_loss(scores, functional.one_hot(targets, scores.size(-1)).to(scores.dtype), reduction=reduction)
    rows, labels = scores.flatten(0, -2), targets.flatten()
    of = functional.nll_loss if kind == "nll" else functional.cross_entropy
    return of(rows, labels, ignore_index=-100 if padding is None else padding, reduction=reduction)


class Rounded(contextlib.AbstractContextManager):
    """While it lives, the model computes with parameters that are rounded to bfloat16."""

    def __init__(self, model):
        self.kept = [(p, p.detach().clone()) for p in model.parameters()]
        with torch.no_grad():
            for p, value in self.kept:
                p.copy_(value.to(BF16))

    def __exit__(self, *_):
        with torch.no_grad():
            for p, value in self.kept:
                p.copy_(value)


class Oracle:
    def __init__(self, model, train, steps, *, loss="cross_entropy", padding=None, cut=None, bf16=False, rounds=False,
                 rounds_gradients=False):
        """`cut`: lists of places in a batch of so many samples, which go through the model one after another; where it is
        not given, all at once. `rounds`: computes with parameters of bfloat16 from the second step on."""
        self.model, self.train, self.loss, self.padding, self.cut = model, train, loss, padding, cut
        self.bf16, self.rounds, self.rounds_gradients = bf16, rounds, rounds_gradients
        self.optimizer = optimizer_of(model, train)
        self.schedule = CosineAnnealingLR(self.optimizer, steps) if train.get("schedule") == "cosine" else None
        self.average = None
        if keep := train.get("average", 0):
            self.average = AveragedModel(model, avg_fn=lambda old, new, _: keep * old + (1 - keep) * new)
        self.updates = self.skipped = 0

    def forward(self, inputs):
        with torch.autocast("cpu", dtype=BF16, enabled=self.bf16):
            scores = self.model(inputs)
        return scores.float() if self.bf16 else scores

    def gradient(self, inputs, targets):
        """Of the mean loss over the batch, which it returns."""
        self.optimizer.zero_grad(set_to_none=True)
        if not self.cut:
            loss = loss_of(self.loss, self.forward(inputs), targets, self.padding, "mean")
            loss.backward()
            return loss.item()
        total, sums = 0.0, [torch.zeros_like(p) for p in self.model.parameters()]
        for places in self.cut(len(inputs)):
            loss = loss_of(self.loss, self.forward(inputs[places]), targets[places], self.padding, "sum")
            loss.backward()
            for p, into in zip(self.model.parameters(), sums):
                into += p.grad.to(BF16).to(into.dtype) if self.rounds_gradients else p.grad
            self.optimizer.zero_grad(set_to_none=True)
            total += loss.item()
        counted = len(inputs) if self.padding is None else int((targets != self.padding).sum())
        for p, value in zip(self.model.parameters(), sums):
            p.grad = value / counted
        return total / counted

    def step(self, inputs, targets):
        with Rounded(self.model) if self.rounds and self.updates > 0 else contextlib.nullcontext():
            loss = self.gradient(inputs, targets)
        if self.train.get("clip_norm", 0):
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.train["clip_norm"])
        if torch.tensor(loss).isfinite():
            self.optimizer.step()
            self.updates += 1
            if self.average:
                self.average.update_parameters(self.model)
        else:
            self.skipped += 1
        if self.schedule:
            self.schedule.step()

    def learn(self, batches):
        """The state of the model after all of them: of the average of the weights, where there is one."""
        for inputs, targets in batches:
            self.step(inputs, targets)
        state = copy.deepcopy(self.model.state_dict())
        for name, value in self.average.module.named_parameters() if self.average else []:
            state[name] = value.detach()
        return state
