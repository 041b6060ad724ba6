"""What all stages of the lane share: results that are saved as they come, a limit of time, and how programs are run."""

import argparse
import datetime
import json
import math
import os
import pathlib
import re
import time

from measured import run
from recipe import Failed


class NoGpu(Exception):
    """What a stage could not do for lack of a GPU; it is not done then, and nothing is wrong."""


class Results:
    """What the stages found, in a file that is whole at any time."""

    def __init__(self, file: pathlib.Path):
        self.file = file
        self.stages: dict[str, dict] = json.loads(file.read_text()) if file.exists() else {}

    def save(self) -> None:
        beside = self.file.with_suffix(".new")
        beside.write_text(json.dumps(self.stages, indent=1) + "\n")
        beside.replace(self.file)


class Stage:
    """One stage at work: where the programs are, how long it may take, and what it has found so far."""

    def __init__(self, results: Results, name: str, options: argparse.Namespace, limit_s: float):
        self.results = results
        self.found = results.stages.setdefault(name, {"wrong": []})
        self.found["when"] = datetime.datetime.now().isoformat(timespec="seconds")
        self.out, self.bin, self.devices = options.out, options.bin, options.devices
        self.found["devices"] = self.devices
        self.pack = options.pack
        self.optimise = not options.unoptimised
        self.limit_s = limit_s
        self.end = time.monotonic() + limit_s

    def left_s(self) -> float:
        return self.end - time.monotonic()

    def wrong(self, sentence: str) -> None:
        print(f"  {sentence}", flush=True)
        self.keep("wrong", [*self.found["wrong"], sentence])

    def keep(self, key: str, value) -> None:
        self.found[key] = value
        self.results.save()

    def run(self, *command, limit_s: float = math.inf) -> tuple[int, str]:
        """The exit status of a command and what it prints; it keeps no state outside of `out`."""
        environment = os.environ | {"XDG_STATE_HOME": str(self.out / "state"), "NO_COLOR": "1"}
        return run(list(command), min(self.left_s(), limit_s), env=environment)

    def output(self, *command) -> str:
        """What a command prints, and how it ended where that was not well."""
        status, printed = self.run(*command)
        return printed + (f"exit status {status}\n" if status else "")

    def program(self, name: str) -> pathlib.Path:
        """Where a program is; Failed where it is not."""
        if not (self.bin / name).exists():
            raise Failed(f"there is no {self.bin / name}")
        return self.bin / name


def json_in(text: str) -> dict:
    """The JSON object that a program has printed, perhaps with warnings before and after it; ValueError if there is none."""
    found = re.search(r"^\{", text, re.MULTILINE)
    if not found:
        raise ValueError("no JSON object")
    return json.JSONDecoder().raw_decode(text, found.start())[0]
