#!/usr/bin/python3
"""Weights that remuda writes are read as others read them, and those of others are read by remuda.

weights_test.py REMUDA MAKE_SCRIPT_MODEL
"""

import json
import math
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import unittest

try:
    import torch
except ImportError:
    print("this Python has no PyTorch (the package python3-torch)")
    sys.exit(77)

REMUDA, MAKE_SCRIPT_MODEL = sys.argv[1:3]
TYPES = {"U8": torch.uint8, "F16": torch.float16, "BF16": torch.bfloat16, "F32": torch.float32, "F64": torch.float64, "I64": torch.int64}


# Reader and writer of the format as its description has it (github.com/huggingface/safetensors), apart from ours.
def read(path):
    data = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    if data[8:9] != b"{":
        raise ValueError(f"{path}: the header is no JSON object")
    header, tensors, used = json.loads(data[8 : 8 + length].decode()), {}, 0
    metadata = header.pop("__metadata__", {})
    for name, entry in sorted(header.items(), key=lambda one: one[1]["data_offsets"]):
        begin, end = entry["data_offsets"]
        size = math.prod(entry["shape"]) * torch.tensor([], dtype=TYPES[entry["dtype"]]).element_size()
        if begin != used or end - begin != size:
            raise ValueError(f"{path}: {name} leaves a hole, overlaps, or has another size than its shape")
        used = end
        raw = bytearray(data[8 + length + begin : 8 + length + end])
        tensors[name] = torch.frombuffer(raw, dtype=TYPES[entry["dtype"]]).reshape(entry["shape"])
    if len(data) != 8 + length + used or not all(isinstance(value, str) for value in metadata.values()):
        raise ValueError(f"{path}: bytes after the last tensor, or metadata that is no text")
    return tensors, metadata


def write(path, tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        raw = bytes(tensor.contiguous().view(torch.uint8).numpy())
        dtype = next(word for word, known in TYPES.items() if known == tensor.dtype)
        header[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + data)


def idx(path, *sizes, values):
    header = bytes([0, 0, 8, len(sizes)]) + b"".join(size.to_bytes(4, "big") for size in sizes)
    pathlib.Path(path).write_bytes(header + values)


class Weights(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        subprocess.run([MAKE_SCRIPT_MODEL, self.folder / "model.pt"], check=True)
        idx(self.folder / "images", 50, 12, 12, values=bytes(i * i % 251 for i in range(50 * 144)))
        idx(self.folder / "labels", 50, values=bytes(i % 5 for i in range(50)))
        (self.folder / "job.toml").write_text(
            "model = {path = 'model.pt', loss = 'nll'}\n"
            "data = {train = {images = 'images', labels = 'labels'}}\n"
            "train = {global_batch = 10}\n"
            "device = [{use = 'cpu:0'}]\n"
        )

    def train(self, *settings, devices=1):
        words = [REMUDA, "train", self.folder / "job.toml", "--quiet"]
        words += ["--devices", ",".join(f"cpu:{index}" for index in range(devices))]
        for setting in settings:
            words += ["--set", setting]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_what_is_written_is_what_torchscript_holds(self):
        self.train("output.weights=trained.pt")
        self.train("output.weights=trained.safetensors")
        model = torch.jit.load(str(self.folder / "trained.pt"))
        tensors, metadata = read(self.folder / "trained.safetensors")
        self.assertEqual(metadata["format"], "pt")
        self.assertEqual(metadata["steps"], "5")
        state = model.state_dict()
        self.assertEqual(sorted(tensors), sorted(state))
        for name, tensor in tensors.items():
            self.assertTrue(torch.equal(tensor, state[name]), name)
            self.assertGreater(tensor.abs().sum(), 0, "it was trained")

    def test_what_others_write_is_read(self):
        for dtype in (torch.float16, torch.bfloat16, torch.float64):
            given = {"bias": torch.arange(1, 6).to(dtype), "weight": torch.randn(5, 144).to(dtype)}
            write(self.folder / "given.safetensors", given)
            # A step so small that no float changes.
            self.train("model.weights=given.safetensors", "output.weights=out.safetensors", "train.learning_rate=1e-30")
            tensors, _ = read(self.folder / "out.safetensors")
            for name, tensor in given.items():
                self.assertTrue(torch.equal(tensors[name], tensor.float()), f"{name} from {dtype}")

    def test_the_pieces_of_a_checkpoint_are_the_model(self):
        self.train("checkpoint.folder=kept", "train.optimizer=adamw", "output.weights=out.safetensors", devices=2)
        pieces, kinds = {}, set()
        for file in sorted((self.folder / "kept").glob("*/rank-*.safetensors")):
            for name, values in read(file)[0].items():
                kind, tensor, first = re.fullmatch(r"([^/]+)/(.+)@(\d+)", name).groups()
                kinds.add(kind)
                if kind == "parameter":
                    pieces.setdefault(tensor, {})[int(first)] = values
        self.assertLessEqual({"parameter", "state0", "state1", "generator", "own"}, kinds)
        tensors, _ = read(self.folder / "out.safetensors")
        self.assertEqual(sorted(pieces), sorted(tensors))
        for name, tensor in tensors.items():
            whole = torch.cat([pieces[name][first] for first in sorted(pieces[name])])
            self.assertTrue(torch.equal(whole, tensor.flatten()), name)
        exported = self.folder / "exported.safetensors"
        subprocess.run([REMUDA, "checkpoint", "export", self.folder / "kept", exported], check=True, capture_output=True)
        for name, tensor in read(exported)[0].items():
            self.assertTrue(torch.equal(tensor, tensors[name]), name)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
