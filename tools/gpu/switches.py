"""The stage that measures switches of the engine both ways: what is a guess about speed until a card has shown it.

To add one, add a line to SWITCHES.
"""

import dataclasses
import pathlib
import statistics

import training
from stage import Stage

TURNS = 2
OFF_ON = ("off", "on")


@dataclasses.dataclass(frozen=True)
class Switch:
    """A key of the job file with the values to compare, the one that is the default first."""

    key: str
    values: tuple[str, str] = OFF_ON
    on: str = "alone"  # where: alone, pair or twice, as the stages of that name
    model: str = "fashion"


# engine.equal_parts and engine.bucket_by_latency are not here: they need two GPUs, as the maker's library takes each once.
SWITCHES = [
    Switch("engine.fused_attention", ("on", "off"), model="gpt"),
    Switch("engine.fewer_waits"),
    Switch("engine.separate_streams", on="pair"),
    Switch("train.tf32", ("convolutions", "off")),
    Switch("train.autotune"),
    Switch("train.deterministic"),
    Switch("train.device_collectives", ("auto", "off"), on="twice"),
    Switch("train.bucket_mib", ("25", "4"), on="pair"),
]


def ranks(stage: Stage, on: str) -> list[str]:
    first, second = stage.devices
    return {"alone": [first], "pair": [first, second], "twice": [first, first]}[on]


def one(stage: Stage, job: pathlib.Path, switch: Switch, value: str) -> dict:
    """One training with the key set so."""
    setting = f"{switch.key}={value}"
    briefly = training.BRIEFLY if switch.on == "pair" else ()
    run = training.Run(setting, ranks(stage, switch.on), settings=(*briefly, setting))
    return training.train(stage, job, run)


def summary(key: str, entry: dict) -> list[str]:
    """A row of a table: the switch, where it was tried, samples/s each way, and how many times as fast the second is."""
    medians = [statistics.median(speeds) for value in entry["values"] if (speeds := entry["speeds"].get(value))]
    cells = [f"{value}: {speed:.0f}" for value, speed in zip(entry["values"], medians)]
    ratio = f"{medians[1] / medians[0]:.2f}" if len(medians) == 2 else entry.get("failed") or entry.get("refused") or "not measured"
    return [key, f"{entry['model']}, {entry['on']}", *(cells + ["", ""])[:2], ratio]


def measure(stage: Stage) -> None:
    keys = training.job_keys(stage)
    jobs = {model: training.prepare(stage, model) for model in {switch.model for switch in SWITCHES if switch.key in keys}}
    found: dict[str, dict] = stage.found.get("switches", {})
    for turn in range(TURNS):  # all of them once, before any of them again
        for switch in SWITCHES:
            if list(switch.values) != found.get(switch.key, {}).get("values"):  # of another version
                found.pop(switch.key, None)
            entry = found.setdefault(switch.key, {"on": switch.on, "model": switch.model, "values": list(switch.values), "speeds": {}})
            entry["unknown"] = switch.key not in keys
            if entry["unknown"]:
                continue
            for value in switch.values:
                speeds = entry["speeds"].setdefault(value, [])
                if len(speeds) > turn or entry.keys() & {"failed", "refused"} or stage.left_s() <= 0:
                    continue
                report = one(stage, jobs[switch.model], switch, value)
                if stage.left_s() <= 0 and "failed" in report:
                    break  # for lack of time: it is tried again
                if "samples_per_s" in report:
                    speeds.append(report["samples_per_s"])
                else:
                    entry["refused" if "refused" in report else "failed"] = f"{value}: {training.words(report)}"
                stage.keep("switches", found)
    for switch in SWITCHES:
        entry = found[switch.key]
        if "failed" in entry:
            stage.wrong(f"{switch.key}={entry['failed']}")
        elif entry["speeds"]:
            print("  " + ", ".join(summary(switch.key, entry)), flush=True)
    stage.keep("switches", found)
