"""The stage that runs jobs: which devices they see, and what remuda says of a GPU while one works on it."""

import pathlib
import sys
import time

import readings
from recipe import Failed
from stage import NoGpu, Stage, json_in

WORK_S = 20  # of the job that is looked at, which is cancelled as soon as that is done
STARTS_WITHIN_S = 15
SETTLES_WITHIN_S = 3
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


def inventory_of(stage: Stage) -> dict:
    status, text = stage.run(stage.program("remuda"), "list", "--json")
    if status != 0:
        raise Failed(f"remuda list --json ended with {status}: {text.strip()[-500:]}")
    return json_in(text)


def gpus_of(stage: Stage) -> list[dict]:
    return [device for device in inventory_of(stage)["devices"] if device["kind"] == "gpu"]


def look(stage: Stage) -> None:
    """What a job sees of the GPUs, and what it cannot have."""
    remuda = stage.program("remuda")
    status, printed = stage.run(remuda, "run", "--quiet", "--", sys.executable, "-c", COUNT)
    if status != 0 or "devices: 1\n" not in printed:
        stage.wrong(f"a job of one GPU ended with {status} and said: {printed.strip()[-500:]}")
    status, printed = stage.run(remuda, "run", "--gpus", str(len(gpus_of(stage)) + 1), "--", "true")
    if status != 3:
        stage.wrong(f"a job of one GPU more than there are ended with {status}, not 3: {printed.strip()[-500:]}")


def is_busy(device: dict) -> bool:
    return (readings.value(device, ("status", "busy")) or 0) > BUSY


def gets_busy(stage: Stage) -> bool:
    """Waits until a GPU is, and its power and heat have followed."""
    end = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < end and stage.left_s() > 0:
        if any(map(is_busy, gpus_of(stage))):
            time.sleep(SETTLES_WITHIN_S)
            return True
        time.sleep(0.5)
    return False


def judge(stage: Stage, number: str) -> None:
    if not gets_busy(stage):
        stage.wrong(f"no GPU was busy while job {number} worked: {stage.output(stage.program('remuda'), 'logs', number).strip()[-500:]}")
        return
    smi = readings.vendors_readings()
    if smi is None:
        stage.wrong("the vendor's program does not answer while a job works")
    inventory = inventory_of(stage)
    for difference in readings.differences(smi or "", inventory):
        stage.wrong(f"at work: {difference}")
    at_work = [device for device in inventory["devices"] if device["kind"] == "gpu" and is_busy(device)]
    if not any(process.get("memory_bytes") for device in at_work for process in device["status"].get("processes", [])):
        stage.wrong("no process is said to use memory of a GPU at work")


def work(stage: Stage) -> None:
    """What list, ps and usage say of a GPU on which a job works, beside what the vendor's program says."""
    remuda, program = stage.program("remuda"), pathlib.Path(stage.out / "work.py")
    program.write_text(WORK)
    status, number = stage.run(remuda, "run", "--quiet", "--detach", "--name", "work", "--", sys.executable, program, str(WORK_S))
    if status != 0:
        stage.wrong(f"remuda run --detach ended with {status}: {number.strip()[-500:]}")
        return
    number = number.strip()
    try:
        judge(stage, number)
        shown = {f"remuda {name}, at work": stage.output(remuda, name) for name in ("ps", "list")}
    finally:
        stage.run(remuda, "cancel", number)
        stage.run(remuda, "wait", number)
    stage.keep("shown", shown | {"remuda usage, after it": stage.output(remuda, "usage")})


def measure(stage: Stage) -> None:
    if not gpus_of(stage):
        raise NoGpu("no job was given one")
    look(stage)
    work(stage)
