"""The stages that train: a model on the GPU alone, with a CPU, and twice on the one GPU; by precision; beside a plain loop."""

import dataclasses
import json
import math
import pathlib
import sys
import threading

import readings
from recipe import Failed
from stage import NoGpu, Stage, json_in

LOOP = pathlib.Path(__file__).parent / "loop.py"
RUN_LIMIT_S = 180
SAMPLE_EVERY_S = 0.5
SAME_LOSS = 0.01
BRIEFLY = ("train.epochs=2",)  # a slow partner may not take all of a stage's time

# For a GPU, large enough to keep one busy; for CPUs, which only show that the stage works, small.
MODELS = {
    "fashion": {"gpu": "width = 64\ndepth = 2", "cpu": "width = 8\ndepth = 1"},
    "gpt": {"gpu": "width = 512\ndepth = 8\nheads = 8", "cpu": "width = 32\ndepth = 2\nheads = 4"},
}
TERMS = {
    "fashion": {"gpu": "epochs = 20\nglobal_batch = 1024", "cpu": "epochs = 1\nmax_steps = 20\nglobal_batch = 64"},
    "gpt": {"gpu": "epochs = 4\nglobal_batch = 32", "cpu": "epochs = 1\nmax_steps = 10\nglobal_batch = 16"},
}
JOB = """\
[model]
{model}
{shape}

[data]
{data}

[train]
{terms}
optimizer = "adamw"
learning_rate = {rate}
seed = 1
"""
IMAGES = """\
format = "idx"
[data.train]
images = "{folder}/train-images-idx3-ubyte.gz"
labels = "{folder}/train-labels-idx1-ubyte.gz"
[data.test]
images = "{folder}/t10k-images-idx3-ubyte.gz"
labels = "{folder}/t10k-labels-idx1-ubyte.gz"
"""
TOKENS = """\
format = "tokens"
context = {context}
[data.train]
tokens = "{folder}/text-train.bin"
[data.test]
tokens = "{folder}/text-test.bin"
"""


@dataclasses.dataclass
class Run:
    """One training run: remuda's over `devices`, or the plain loop's on the one device."""

    name: str
    devices: list[str]
    precision: str | None = None  # the file's key; nothing: the job does not say
    slowed: bool = False  # the last device pretends to be half as fast
    plain: bool = False
    settings: tuple[str, ...] = ()  # further keys of the job, as --set takes them

    def may_be_refused(self) -> bool:
        """Not every device has every precision."""
        return self.precision in ("bf16", "fp16")

    def tables(self) -> str:
        """The [[device]] tables of the job."""
        text = ""
        for i, device in enumerate(self.devices):
            text += f'\n[[device]]\nuse = "{device}"\n'
            text += "shared = true\n" if self.devices.count(device) > 1 else ""
            text += "slowdown = 2.0\n" if self.slowed and i == len(self.devices) - 1 else ""
        return text


class MemoryWatch:
    """The most memory that was in use on the first GPU while this was open, beyond what was before."""

    def __enter__(self):
        self.before = self.most = self.used()
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()

    @staticmethod
    def used() -> int | None:
        first, *_ = (readings.query("memory.used") or "").splitlines() or [""]
        count = readings.number(first)
        return None if count is None else int(count) * 2**20

    def watch(self) -> None:
        while self.before is not None and not self.ended.wait(SAMPLE_EVERY_S):
            self.most = max(self.most, self.used() or 0)

    def taken(self) -> int | None:
        return None if self.before is None else self.most - self.before


def size_of(devices: list[str]) -> str:
    return "gpu" if devices[0].startswith("gpu") else "cpu"


def job_text(model: str, devices: list[str], data: pathlib.Path) -> str:
    size = size_of(devices)
    files = IMAGES.format(folder=data) if model == "fashion" else TOKENS.format(folder=data, context=256 if size == "gpu" else 64)
    name = 'name = "resnet"' if model == "fashion" else 'name = "gpt"\nvocabulary = 256'
    rate = 0.001 if model == "fashion" else 0.0005
    return JOB.format(model=name, shape=MODELS[model][size], data=files, terms=TERMS[model][size], rate=rate)


def runs(first: str, second: str, has_precision: bool) -> dict[str, list[Run]]:
    """What each stage measures, the most telling first. Precisions are named where the job file has a key for them."""

    def run(name: str, devices: list[str], precision: str, slowed: bool = False, settings: tuple[str, ...] = ()) -> Run:
        return Run(f"{name}, {precision}" if has_precision else name, devices, precision if has_precision else None, slowed, settings=settings)

    alone = [run(first, [first], precision) for precision in (("fp32", "bf16", "fp16", "auto") if has_precision else ("fp32",))]
    plain = [Run(f"plain loop, {precision}", [first], precision, plain=True) for precision in ("fp32", "bf16", "fp16")]
    pair = [run(f"{first} and {second}", [first, second], precision, settings=BRIEFLY)
            for precision in (("fp32", "auto") if has_precision else ("fp32",))]
    twice = run(f"{first} and a slower {first}", [first, first], "fp32", slowed=True, settings=BRIEFLY)
    return {"alone": [alone[0], plain[0], *alone[1:2], plain[1], *alone[2:], plain[2]], "pair": pair, "twice": [twice],
            "gpt": [alone[0], plain[0], *alone[1:2], plain[1], pair[0], twice]}


def train(stage: Stage, job: pathlib.Path, run: Run) -> dict:
    """Runs `remuda train`; gives its report, or the sentence with which it refused or failed."""
    file, report = stage.out / "run.toml", stage.out / "report.json"
    report.unlink(missing_ok=True)
    file.write_text(job.read_text() + run.tables())
    command = [stage.program("remuda"), "train", file, "--quiet", "--json", report]
    if run.precision:
        command += ["--set", f"train.precision={run.precision}"]
    for setting in run.settings:
        command += ["--set", setting]
    status, printed = stage.run(*command, limit_s=RUN_LIMIT_S)
    found = read_report(report)
    why = why_useless(found or {})
    if status == 0 and found is not None and not why:
        return found
    sentence = why or printed.strip()[-2000:] or (f"exit status {status}" if status else "there is no report")
    return {"refused" if status == 2 and found is None else "failed": sentence}


def read_report(file: pathlib.Path) -> dict | None:
    """Nothing where it is not there, or not to its end."""
    try:
        return json.loads(file.read_text())
    except (FileNotFoundError, ValueError):
        return None


def why_useless(report: dict) -> str:
    """What a report says of a run that has learned nothing, or not written what it should: docs/run-report.md."""
    unwritten = [f"{one['output']}: {one['why']}" for one in report.get("unwritten", [])]
    return report.get("not_finite") or "; ".join(unwritten)


def loop(stage: Stage, job: pathlib.Path, run: Run) -> dict:
    command = [sys.executable, LOOP, job, size_of(run.devices), run.precision]
    status, printed = stage.run(*command, limit_s=RUN_LIMIT_S)
    if status != 0:
        return {"failed": printed.strip()[-2000:] or f"exit status {status}"}
    found = json_in(printed)
    return found if math.isfinite(found["loss"]) else {"failed": f"its loss is {found['loss']}"}


def job_keys(stage: Stage) -> str:
    """What the program says of the keys of a job file."""
    status, printed = stage.run(stage.program("remuda"), "train", "--help-keys")
    if status != 0:
        raise Failed(f"remuda train --help-keys ended with {status}: {printed.strip()[-2000:]}")
    return printed


def words(found: dict) -> str:
    if sentence := found.get("refused") or found.get("failed"):
        return ("refused: " if "refused" in found else "failed: ") + sentence.splitlines()[-1]
    speed = found.get("samples_per_s")
    memory = found.get("memory_taken_bytes")
    return (f"{speed:.0f} samples/s" if speed else "too few steps to time") + (f", {memory / 2**20:.0f} MiB" if memory else "")


def learned_otherwise(found: dict, alone: dict) -> str | None:
    """What is wrong where a split run did not learn what one rank does; a GPU's own sums may differ in their order."""
    mine, other = ((run.get("loss_per_epoch") or [None])[0] for run in (found, alone))
    if mine is None or other is None:
        return "its loss cannot be compared with that of one rank"
    if abs(mine - other) <= SAME_LOSS * abs(other):
        return None
    return f"its first epoch ended with a loss of {mine:.4f}, that of one rank with {other:.4f}"


def has_gpu(stage: Stage) -> bool:
    """Whether the vendor's program or remuda sees one: a container may be without the former."""
    if readings.query("name"):
        return True
    status, text = stage.run(stage.program("remuda"), "list", "--json")
    return status == 0 and any(device["kind"] == "gpu" for device in json_in(text)["devices"])


def prepare(stage: Stage, model: str) -> pathlib.Path:
    """The model's job file, without devices; NoGpu where one is asked for and there is none."""
    if size_of(stage.devices) == "gpu" and not has_gpu(stage):
        raise NoGpu(f"{model} was not trained; --devices cpu:0,cpu:1 tries the stage on CPUs")
    data = stage.pack / "data" if stage.pack else text_data(stage)
    job = stage.out / f"{model}.toml"
    job.write_text(job_text(model, stage.devices, data))
    return job


def what_is_wrong(run: Run, found: dict, alone: dict) -> str | None:
    if "failed" in found or ("refused" in found and not run.may_be_refused()):
        return words(found)
    return learned_otherwise(found, alone) if run.slowed else None


def measure(stage: Stage, model: str, name: str) -> None:
    """Makes the runs that are not kept yet, and judges all that are."""
    job = prepare(stage, model)
    planned = runs(*stage.devices, "train.precision" in job_keys(stage))
    late = stage.found.get("late", [])  # what did not end in a stage's whole time: others go first
    has_run = False
    for run in sorted(planned[name], key=lambda run: run.name in late):
        if run.name not in stage.found.get("runs", {}):
            if stage.left_s() <= 0:
                continue
            with MemoryWatch() as watch:
                found = (loop if run.plain else train)(stage, job, run)
            if watch.taken() is not None:
                found["memory_taken_bytes"] = watch.taken()
            if stage.left_s() <= 0 and "failed" in found:  # for lack of time: it is tried again
                if not has_run:
                    stage.keep("late", [*late, run.name])
                continue
            has_run = True
            stage.keep("runs", stage.found.get("runs", {}) | {run.name: found})
        found = stage.found["runs"][run.name]
        if sentence := what_is_wrong(run, found, one_rank(stage, model, planned["alone"][0].name)):
            stage.wrong(f"{run.name}: {sentence}")
        else:
            print(f"  {run.name}: {words(found)}", flush=True)


def one_rank(stage: Stage, model: str, name: str) -> dict:
    """The run of one rank that two on the same device are compared with."""
    where = stage.found if model == "gpt" else stage.results.stages.get("alone", {})
    return where.get("runs", {}).get(name, {})


def text_data(stage: Stage) -> pathlib.Path:
    """The data of a pack, made here, where packages are installed."""
    import pack

    folder = stage.out / "data"
    if not (folder / "text-test.bin").exists():
        pack.pack_data(folder)
    return folder


def alone(stage: Stage) -> None:
    measure(stage, "fashion", "alone")


def pair(stage: Stage) -> None:
    measure(stage, "fashion", "pair")


def twice(stage: Stage) -> None:
    measure(stage, "fashion", "twice")


def gpt(stage: Stage) -> None:
    measure(stage, "gpt", "gpt")
