#!/usr/bin/python3
"""Installs remuda's library for training to a separate folder, builds the examples against it, and runs them.

install_train_test.py BUILD ROOT CXX PROGRAMS MAKE_SCRIPT_MODEL
"""

import json
import os
import pathlib
import random
import re
import secrets
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

from ports import free_port

BUILD, ROOT, CXX, PROGRAMS, MAKE_SCRIPT_MODEL = (pathlib.Path(word) for word in sys.argv[1:6])
STRICT = "-Wall -Wextra -Wpedantic -Werror"
TIMEOUT_S = 120


def run(*words, **options):
    return subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True, **options).stdout


def loss_in(text):
    return float(re.search(r"loss (?:per token )?([0-9.]+)", text).group(1))


def write_safetensors(path, tensors):
    """`tensors`: name -> (shape, values)."""
    header, data = {}, b""
    for name, (shape, values) in tensors.items():
        packed = struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(packed)]}
        data += packed
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def tensors_of(path):
    bytes_ = path.read_bytes()
    size = struct.unpack("<Q", bytes_[:8])[0]
    header = json.loads(bytes_[8 : 8 + size])
    header.pop("__metadata__", None)
    return {name: bytes_[8 + size + entry["data_offsets"][0] : 8 + size + entry["data_offsets"][1]] for name, entry in header.items()}


class TwoHosts:
    """Two network namespaces with a cable between them."""

    def __init__(self):
        self.names = [f"remuda-cpp-{os.getpid()}-{host}" for host in (0, 1)]

    def __enter__(self):
        try:
            self.plug_in()
        except (OSError, subprocess.CalledProcessError) as error:
            self.__exit__()
            raise unittest.SkipTest(f"needs root, iproute2 and network namespaces: {error}") from error
        return self

    def plug_in(self):
        for name in self.names:
            run("ip", "netns", "add", name)
        run("ip", "-n", self.names[0], "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", self.names[1])
        for host, name in enumerate(self.names):
            run("ip", "-n", name, "address", "add", f"{self.address(host)}/24", "dev", "cable")
            run("ip", "-n", name, "link", "set", "cable", "up")

    def __exit__(self, *_):
        for name in self.names:
            if shutil.which("ip"):
                subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)

    def address(self, host):
        return f"10.98.0.{host + 1}"


class InstalledForTraining(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.scratch.name)
        cls.prefix = cls.folder / "prefix"
        for component in ("development", "development-train"):
            run("cmake", "--install", BUILD, "--prefix", cls.prefix, "--component", component)
        # What was compiled against the same header before is taken from the cache, wherever this is installed.
        ccache = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
        cls.environment = dict(os.environ, CCACHE_BASEDIR=str(cls.folder), CCACHE_NOHASHDIR="1", XDG_STATE_HOME=str(cls.folder / "state"))
        cls.examples = cls.folder / "examples"
        cls.built = subprocess.run(
            ["cmake", "-S", ROOT / "examples/data_parallel", "-B", cls.examples, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={cls.prefix}",
             f"-DCMAKE_CXX_COMPILER={CXX}", f"-DCMAKE_CXX_FLAGS={STRICT}", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", *ccache],
            capture_output=True, text=True, check=False)
        if cls.built.returncode == 0:
            cls.built = subprocess.run(["cmake", "--build", cls.examples], capture_output=True, text=True, check=False, env=cls.environment)
        if cls.built.returncode != 0:
            raise AssertionError(cls.built.stdout + cls.built.stderr)

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def each(self, *command):
        """What ranks of a job on two CPU devices write."""
        return run(PROGRAMS / "remuda", "run", "-q", "-n", "2", "--cpu", "--any-model", "--cpu-devices", "2", "--each", "--", *command,
                   env=self.environment, timeout=TIMEOUT_S)

    def test_users_get_no_flags_and_one_folder_of_headers(self):
        for entry in json.loads((self.examples / "compile_commands.json").read_text()):
            command = entry["command"].replace(STRICT, "")
            self.assertNotRegex(command, r"-W(all|error|extra|no-)")
            self.assertNotIn("include/remuda", command)
            self.assertIn(f"-isystem {self.prefix}/include", command)
            self.assertIn("-std=gnu++17", command)

    def loss_alone(self):
        text = run(self.examples / "train", env=self.environment, timeout=TIMEOUT_S)
        self.assertIn("1 ranks", text)
        self.assertLess(loss_in(text), 0.1)
        return loss_in(text)

    def test_ranks_of_a_job_learn_the_same_and_write_weights(self):
        weights = self.folder / "trained.safetensors"
        text = self.each(self.examples / "train", weights)
        self.assertIn("2 ranks over shared memory", text)
        self.assertAlmostEqual(loss_in(text), self.loss_alone(), delta=1e-3)
        self.assertEqual(len(tensors_of(weights)), 4)

    def test_tokens_count_the_same_on_every_rank(self):
        alone, together = run(self.examples / "token_loss", env=self.environment), self.each(self.examples / "token_loss")
        self.assertAlmostEqual(loss_in(alone), loss_in(together), delta=2e-3)
        self.assertEqual(alone.split("of ")[1], together.split("of ")[1])

    def test_own_samples_are_the_same_for_any_number_of_ranks(self):
        alone, together = run(self.examples / "own_data", env=self.environment), self.each(self.examples / "own_data")
        self.assertLess(loss_in(alone), 0.5)
        self.assertAlmostEqual(loss_in(alone), loss_in(together), delta=2e-3)

    def test_bf16_learns_as_float32_does(self):
        refused = subprocess.run([self.examples / "bf16", "bf16"], env=self.environment, capture_output=True, text=True, timeout=TIMEOUT_S)
        if "no device of the group computes in bf16" in refused.stderr:
            self.skipTest(refused.stderr.strip())
        in_bf16, in_fp32 = (self.each(self.examples / "bf16", precision) for precision in ("bf16", "fp32"))
        self.assertTrue(in_bf16.startswith("bf16: "), in_bf16)
        self.assertTrue(in_fp32.startswith("float32: "), in_fp32)
        self.assertNotEqual(in_bf16.split(": ")[1], in_fp32.split(": ")[1])
        self.assertAlmostEqual(loss_in(in_bf16), loss_in(in_fp32), delta=0.05)

    def test_script_model_is_tuned_from_weights(self):
        model, start, tuned = (self.folder / name for name in ("model.pt", "start.safetensors", "tuned.safetensors"))
        run(MAKE_SCRIPT_MODEL, model)
        draw = random.Random(7)
        write_safetensors(start, {"weight": ([5, 144], [draw.gauss(0, 0.05) for _ in range(720)]), "bias": ([5], [0.25] * 5)})
        text = self.each(self.examples / "fine_tune", model, start, tuned)
        before = float(re.search(r"was ([0-9.]+)", text).group(1))
        self.assertLess(loss_in(text), before)
        self.assertEqual(tensors_of(tuned)["bias"], tensors_of(start)["bias"])
        self.assertNotEqual(tensors_of(tuned)["weight"], tensors_of(start)["weight"])

    def test_wrong_weights_are_one_sentence_and_status_2(self):
        model, wrong = self.folder / "other.pt", self.folder / "wrong.safetensors"
        run(MAKE_SCRIPT_MODEL, model)
        write_safetensors(wrong, {"weight": ([5, 12], [0] * 60), "bias": ([5], [0] * 5)})
        ended = subprocess.run([self.examples / "fine_tune", model, wrong, self.folder / "no"], capture_output=True, text=True, check=False)
        self.assertEqual(ended.returncode, 2)
        self.assertRegex(ended.stderr, r"^fine_tune: .*wrong.safetensors does not fit the model: weight has shape \[5, 12\].*\n$")

    def test_place_that_is_wrong_is_said(self):
        environment = dict(self.environment, WORLD_SIZE="2", RANK="0", MASTER_PORT="1")
        ended = subprocess.run([self.examples / "train"], capture_output=True, text=True, check=False, env=environment)
        self.assertEqual(ended.returncode, 2)
        self.assertIn("the job has no secret; set REMUDA_SECRET", ended.stderr)

    def test_two_hosts(self):
        with TwoHosts() as hosts:
            shared = dict(self.environment, WORLD_SIZE="2", MASTER_ADDR=hosts.address(0), MASTER_PORT="29500", REMUDA_SECRET=secrets.token_hex(16))
            ranks = [
                subprocess.Popen(["ip", "netns", "exec", hosts.names[rank], self.examples / "train"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 text=True, env=dict(shared, RANK=str(rank), REMUDA_BIND=hosts.address(rank), REMUDA_TRANSPORT="tcp"))
                for rank in (0, 1)
            ]
            (out, err), (_, err_of_1) = (rank.communicate(timeout=TIMEOUT_S) for rank in ranks)
        self.assertEqual([rank.returncode for rank in ranks], [0, 0], err + err_of_1)
        self.assertIn("2 ranks over tcp", out)
        self.assertAlmostEqual(loss_in(out), self.loss_alone(), delta=1e-3)

    def test_torchruns_variables_are_enough_beside_a_secret(self):
        shared = dict(self.environment, WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()), REMUDA_SECRET="of this test",
                      TORCHELASTIC_USE_AGENT_STORE="True")
        ranks = [subprocess.Popen([self.examples / "token_loss"], stdout=subprocess.PIPE, text=True, env=dict(shared, RANK=str(rank))) for rank in (0, 1)]
        texts = [rank.communicate(timeout=TIMEOUT_S)[0] for rank in ranks]
        self.assertEqual([rank.returncode for rank in ranks], [0, 0])
        self.assertIn("loss per token", texts[0])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
