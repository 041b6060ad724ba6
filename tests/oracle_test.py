#!/usr/bin/python3
"""What remuda train learns is what PyTorch alone learns, on one device with the whole batch.

oracle_test.py REMUDA GROUP ...      the cases of these groups (tests/oracle/cases.py)
oracle_test.py REMUDA --table        all of them, with the errors that they have
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import warnings

try:
    import torch
except ImportError:
    print("this Python has no PyTorch (the package python3-torch)")
    sys.exit(77)

from oracle import models
from oracle.cases import CASES, Case
from oracle.samples import batches, images, token_windows
from oracle.training import Oracle
from safetensors_file import read, write

REMUDA = sys.argv[1]


def table(name: str, keys: dict) -> str:
    """Values are written in TOML as in JSON."""
    return f"[{name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())


def job_text(case: Case) -> str:
    model = {**case.key, "weights": "start.safetensors"} if case.key else {"path": "model.pt", "loss": case.loss}
    data = {"train.images": "images", "train.labels": "labels"}
    if case.data == "tokens":
        data = {"format": "tokens", "train": "tokens", "context": 7, "padding": models.PADDING}
    train = dict(case.train)
    if case.oracle.get("bf16"):
        train["precision"] = "bf16"
    if case.name.startswith("synchronized"):
        train["batch_norm"] = "synchronized"
    balance = {"policy": "fixed", "shares": case.shares, "state_shares": case.state_shares}
    if case.micro_batch:
        train["micro_batch"] = case.micro_batch
        balance["unit"] = "microbatches"
    parts = {"model": model, "data": data, "train": train, "memory": case.memory, "balance": balance,
             "output": {"weights": "out.safetensors"}}
    device = '[[device]]\nuse = "cpu:0"\nshared = true\n'
    return "".join(table(name, keys) for name, keys in parts.items()) + device * case.ranks


class Errors:
    """Of what remuda has learned: the largest of all tensors."""

    def __init__(self, case: Case, start: dict, expected: dict, learned: dict):
        self.of_movement = self.of_weights = 0.0
        self.worst = self.wrong = ""
        if sorted(learned) != sorted(expected):
            self.wrong = f"the file has the tensors {sorted(learned)}, not {sorted(expected)}"
            return
        for name in expected:
            before, right, mine = (one[name].double().clone() for one in (start, expected, learned))
            if case.spared and name.endswith(case.spared[0]):
                mine[case.spared[1]] = right[case.spared[1]]
            off, moved = float((mine - right).norm()), float((right - before).norm())
            of_movement = off / moved if moved else float(off > 0)
            if not of_movement <= self.of_movement:
                self.of_movement, self.worst = of_movement, name
            self.of_weights = max(self.of_weights, off / max(float(right.norm()), 1e-30))


class Refused(Exception):
    """This libtorch cannot do what the case asks for."""


def report_of(case: Case, folder: pathlib.Path) -> dict:
    """Of the run, which leaves its weights in the folder."""
    (folder / "job.toml").write_text(job_text(case))
    command = [REMUDA, "train", str(folder / "job.toml"), "--quiet", "--json", str(folder / "report.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode == 2 and "adds up in float32" in done.stderr:
        raise Refused(done.stderr.strip())
    if done.returncode != 0:
        raise AssertionError(f"status {done.returncode}: {done.stderr}")
    report = json.loads((folder / "report.json").read_text())
    its_torch = report["versions"]["torch"]
    if case.oracle.get("bf16") and its_torch.split(".")[:2] != torch.__version__.split(".")[:2]:
        raise Refused(f"remuda has libtorch {its_torch}, this is PyTorch {torch.__version__}: each rounds to bf16 in its own way")
    return report


def errors_of(case: Case) -> Errors:
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        torch.manual_seed(sum(case.name.encode()))
        model = case.model()
        if case.data == "tokens":
            inputs, targets = token_windows(folder, case.count)
        else:
            inputs, targets = images(folder, case.count, white=case.data == "white")
        if case.key:
            write(folder / "start.safetensors", model.state_dict())
        else:
            torch.jit.script(model).save(str(folder / "model.pt"))
        report = report_of(case, folder)
        learned, _ = read(folder / "out.safetensors")
    if case.key and not case.oracle:
        model = model.double()
        inputs = inputs.double() if inputs.is_floating_point() else inputs
    start = {name: value.clone() for name, value in model.state_dict().items()}
    steps = list(batches(inputs, targets, case.train))
    oracle = Oracle(model, case.train, len(steps), loss=case.loss, padding=models.PADDING if case.data == "tokens" else None,
                    cut=case.cut if case.matters_how_it_is_cut() else None, **case.oracle)
    errors = Errors(case, start, oracle.learn(steps), learned)
    if (report["steps"], report["skipped_steps"]) != (len(steps), oracle.skipped):
        errors.wrong = f"{report['steps']} steps, {report['skipped_steps']} of them skipped; {len(steps)}, {oracle.skipped}"
    if case.model is models.skipping and not 0 < oracle.skipped < len(steps):
        errors.wrong = "no step was skipped, or all"
    return errors


def group_of(name: str, cases: list) -> type:
    """A class of tests with one for each case."""

    def test_of(case):
        def test(self):
            try:
                errors = errors_of(case)
            except Refused as reason:
                self.skipTest(str(reason))
            self.assertEqual(errors.wrong, "")
            self.assertLessEqual(errors.of_movement, case.tolerance, f"{errors.worst} of {case.name}")

        return test

    return type(name, (unittest.TestCase,), {re.sub(r"\W+", "_", f"test {case.name}"): test_of(case) for case in cases})


def print_table():
    print("| case | ranks | shares | of what the weights moved, at most | of the weights, at most | tolerance |\n" + "|---" * 6 + "|")
    for group, cases in CASES.items():
        for case in cases:
            shares = ":".join(str(round(share)) for share in case.shares)
            try:
                errors = errors_of(case)
                found = f"{errors.of_movement:.1e} ({errors.worst}) | {errors.of_weights:.1e}"
                print(f"| {group}: {case.name} | {case.ranks} | {shares} | {found} | {case.tolerance:.0e} {errors.wrong}|", flush=True)
            except Refused as reason:
                print(f"| {group}: {case.name} | {case.ranks} | {shares} | {reason} | | |", flush=True)


if __name__ == "__main__":
    warnings.filterwarnings("ignore", category=UserWarning)
    torch.set_num_threads(1)
    if "--table" in sys.argv:
        print_table()
    else:
        globals().update({name: group_of(name, CASES[name]) for name in sys.argv[2:]})
        unittest.main(argv=sys.argv[:1], verbosity=2)
