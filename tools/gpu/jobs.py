"""The stage that runs jobs: which devices they see, and what remuda says of a GPU while one works on it."""

import pathlib
import sys
import time

import readings
from stage import NoGpu, Stage, json_in

WORK_S = 20  # of the job that is looked at, which is cancelled as soon as that is done
STARTS_WITHIN_S = 15
BUSY = 0.5
COUNT = "import torch; print('devices:', torch.cuda.device_count())"
WORK = """\
import sys, time, torch
end = time.monotonic() + float(sys.argv[1])
x = torch.randn(4096, 4096, device="cuda")
while time.monotonic() < end:
    x = torch.nn.functional.normalize(x @ x)
    torch.cuda.synchronize()
"""


def gpus_of(stage: Stage) -> list[dict]:
    status, text = stage.run(stage.program("remuda"), "list", "--json")
    return [device for device in json_in(text)["devices"] if device["kind"] == "gpu"] if status == 0 else []


def look(stage: Stage) -> None:
    """What a job sees of the GPUs, and what it cannot have."""
    remuda = stage.program("remuda")
    status, printed = stage.run(remuda, "run", "--quiet", "--", sys.executable, "-c", COUNT)
    if status != 0 or "devices: 1\n" not in printed:
        stage.wrong(f"a job of one GPU ended with {status} and said: {printed.strip()[-500:]}")
    status, printed = stage.run(remuda, "run", "--gpus", str(len(gpus_of(stage)) + 1), "--", "true")
    if status != 3:
        stage.wrong(f"a job of one GPU more than there are ended with {status}, not 3: {printed.strip()[-500:]}")


def at_work(stage: Stage) -> dict | None:
    """The first GPU as soon as it is busy; nothing where it never is."""
    end = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < end and stage.left_s() > 0:
        found = next(iter(gpus_of(stage)), {})
        busy = readings.value(found, ("status", "busy"))
        if busy is not None and busy > BUSY:
            return found
        time.sleep(0.5)
    return None


def work(stage: Stage) -> None:
    """What list, ps and usage say of a GPU on which a job works, beside what the vendor's program says."""
    remuda, program = stage.program("remuda"), pathlib.Path(stage.out / "work.py")
    program.write_text(WORK)
    status, number = stage.run(remuda, "run", "--quiet", "--detach", "--name", "work", "--", sys.executable, program, str(WORK_S))
    if status != 0:
        stage.wrong(f"remuda run --detach ended with {status}: {number.strip()[-500:]}")
        return
    number = number.strip()
    found = at_work(stage)
    shown = {f"remuda {name}, at work": stage.output(remuda, name) for name in ("ps", "list")}
    if not found:
        stage.wrong(f"no GPU was busy while job {number} worked: {stage.output(remuda, 'logs', number).strip()[-500:]}")
    else:
        smi, inventory = readings.vendors_readings(), json_in(stage.output(remuda, "list", "--json"))
        for difference in readings.differences(smi or "", inventory):
            stage.wrong(f"at work: {difference}")
        if not any(process.get("memory_bytes") for process in found["status"].get("processes", [])):
            stage.wrong("no process is said to use memory of the GPU at work")
    stage.run(remuda, "cancel", number)
    stage.run(remuda, "wait", number)
    stage.keep("shown", shown | {"remuda usage, after it": stage.output(remuda, "usage")})


def measure(stage: Stage) -> None:
    if not gpus_of(stage):
        raise NoGpu("no job was given one")
    look(stage)
    work(stage)
