#!/usr/bin/python3
"""Weights that remuda writes are read as others read them, and those of others are read by remuda.

weights_test.py REMUDA MAKE_SCRIPT_MODEL
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

try:
    import torch
except ImportError:
    print("this Python has no PyTorch (the package python3-torch)")
    sys.exit(77)

from idx_file import idx
from safetensors_file import read, write

REMUDA, MAKE_SCRIPT_MODEL = sys.argv[1:3]


class Weights(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        subprocess.run([MAKE_SCRIPT_MODEL, self.folder / "model.pt"], check=True)
        (self.folder / "images").write_bytes(idx([50, 12, 12], bytes(i * i % 251 for i in range(50 * 144))))
        (self.folder / "labels").write_bytes(idx([50], bytes(i % 5 for i in range(50))))
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
