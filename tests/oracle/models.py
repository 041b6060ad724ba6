"""The models that both sides train.

Those of TorchScript are given to remuda as files, so their definition is the oracle's own; they compute in float64. The
built-in ones are written down once more, with PyTorch's own modules, by what docs/train.md says of them; the names of
their parameters are those that remuda reads.
"""

import math

import torch
from torch import nn

CLASSES, CHANNELS, SIDE = 5, 1, 12
PIXELS = CHANNELS * SIDE * SIDE
VOCABULARY, CONTEXT, PADDING = 11, 7, 0


class Pixels(nn.Module):
    """The bytes of an image, in 128ths: float64 without the rounding that -1..1 in float32 has."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return torch.round((images.double() + 1) * 127.5) / 128 - 1


class NotFinite(nn.Module):
    """Gives scores that are not finite to a batch with a white image in it."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return images / (1 - (images.flatten(1).amin(1) > 0.99).any().to(images.dtype))


class Seldom(nn.Module):
    """With a parameter that only a batch with a white image in it uses, and one that none does."""

    def __init__(self):
        super().__init__()
        self.used = nn.Parameter(torch.ones(SIDE))
        self.unused = nn.Parameter(torch.ones(3))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        white = (images.flatten(1).amin(1) > 0.99).to(images.dtype).view(-1, 1, 1, 1)
        if bool(white.any()):
            images = images + self.used * white
        return images


def dense(*more):
    """A Sequential, which remuda can recompute and shard block by block."""
    layers = [Pixels(), *more, nn.Flatten()]
    layers += [nn.Linear(PIXELS, 12), nn.Tanh(), nn.Linear(12, 7), nn.Tanh(), nn.Linear(7, CLASSES)]
    return nn.Sequential(*layers).double()


def log_dense():
    return nn.Sequential(*dense(), nn.LogSoftmax(1))


def skipping():
    return dense(NotFinite())


def seldom():
    return dense(Seldom())


def normalised():
    """With batch norm of its own, which remuda leaves as it is."""
    layers = [Pixels(), nn.Conv2d(CHANNELS, 6, 3, bias=False), nn.BatchNorm2d(6), nn.ReLU(), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(6 * (SIDE - 2) ** 2, CLASSES)).double()


class Tokens(nn.Module):
    """Scores of the next token from the mean of those up to it."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 6)
        self.up = nn.Linear(6, 9)
        self.down = nn.Linear(9, VOCABULARY)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        counts = torch.arange(1, tokens.size(1) + 1, device=tokens.device).unsqueeze(1)
        return self.down(torch.tanh(self.up(self.embedding(tokens).cumsum(1) / counts)))


def tokens():
    return Tokens().double()


class Mlp(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        widths = [PIXELS, *hidden, CLASSES]
        self.layers = nn.ModuleList(nn.Linear(*pair) for pair in zip(widths, widths[1:]))

    def forward(self, images):
        x = images.flatten(1)
        for layer in self.layers[:-1]:
            x = layer(x).relu()
        return self.layers[-1](x)


class Attention(nn.Module):
    """softmax(q k^T / sqrt(d)) v of each head, over the positions up to one's own."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.add_module("in", nn.Linear(width, 3 * width))
        self.out = nn.Linear(width, width)

    def forward(self, x):
        queries, keys, values = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in getattr(self, "in")(x).chunk(3, -1)
        )
        scores = queries @ keys.transpose(-2, -1) / math.sqrt(keys.size(-1))
        later = torch.ones(x.size(1), x.size(1), dtype=torch.bool).triu(1)
        mixed = scores.masked_fill(later, -math.inf).softmax(-1) @ values
        return self.out(mixed.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    """Its scores are products with the embeddings of the tokens."""

    def __init__(self, width, depth, heads):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, width)
        self.positions = nn.Embedding(CONTEXT, width)
        self.depth = depth
        for i in range(depth):
            self.add_module(f"layer{i}", Layer(width, heads))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.size(1)))
        for i in range(self.depth):
            x = getattr(self, f"layer{i}")(x)
        return self.norm(x) @ self.tokens.weight.T


def convolution(inputs, outputs, size, stride):
    return nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False)


def norm(kind, channels):
    return nn.BatchNorm2d(channels) if kind == "batch" else nn.GroupNorm(math.gcd(channels, 8), channels)


class Residual(nn.Module):
    def __init__(self, kind, inputs, outputs, stride):
        super().__init__()
        self.conv1, self.norm1 = convolution(inputs, outputs, 3, stride), norm(kind, outputs)
        self.conv2, self.norm2 = convolution(outputs, outputs, 3, 1), norm(kind, outputs)
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = convolution(inputs, outputs, 1, stride)

    def forward(self, x):
        y = self.norm2(self.conv2(self.norm1(self.conv1(x)).relu()))
        return (y + self.shortcut(x)).relu()


class ResNet(nn.Module):
    """Three stages of residual blocks, each stage with twice the channels and half the height and width."""

    def __init__(self, width, kind):
        super().__init__()
        self.stem, self.norm = convolution(CHANNELS, width, 3, 2), norm(kind, width)
        self.block0 = Residual(kind, width, width, 1)
        self.block1 = Residual(kind, width, 2 * width, 2)
        self.block2 = Residual(kind, 2 * width, 4 * width, 2)
        self.head = nn.Linear(4 * width, CLASSES)

    def forward(self, images):
        x = self.norm(self.stem(images)).relu()
        return self.head(self.block2(self.block1(self.block0(x))).mean((2, 3)))
