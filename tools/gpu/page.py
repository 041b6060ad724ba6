"""docs/gpu.md: what the stages found, as a page."""

import datetime

import readings
import switches

SHOWN_AFTER = 100  # lines of a program's output; more is cut


def gpus(stages: dict) -> list[dict]:
    devices = stages.get("see", {}).get("inventory", {}).get("devices", [])
    return [device for device in devices if device["kind"] == "gpu"]


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in line) + " |" for line in lines) + "\n"


def block(title: str, text: str) -> str:
    lines = text.rstrip().splitlines()
    cut = [f"... and {len(lines) - SHOWN_AFTER} lines more"] if len(lines) > SHOWN_AFTER else []
    return f"## {title}\n\n```\n" + "\n".join(lines[:SHOWN_AFTER] + cut) + "\n```\n"


def machine(stages: dict) -> str:
    inventory = stages.get("see", {}).get("inventory", {})
    cards = [f"{readings.value(device, ('model',))}" for device in gpus(stages)]
    drivers = [str(readings.value(entry, ("version",))) for entry in inventory.get("drivers", [])]
    rows = [["date", stages.get("see", {}).get("when", str(datetime.date.today()))[:10]],
            ["GPU", ", ".join(cards) or "none: this page shows what the stages do without one"],
            ["driver", ", ".join(drivers) or "none"],
            ["libtorch", stages.get("facts", {}).get("torch", "unknown")],
            ["built there", build_words(stages.get("build", {}).get("measures"))]]
    return table(["", ""], rows)


def build_words(measures: dict | None) -> str:
    if not measures:
        return "no"
    return f"{measures['cpu_s']:.0f} s of CPU time in {measures['wall_s']:.0f} s"


def facts(stages: dict) -> str:
    found = stages.get("facts", {}).get("facts", [])
    rows = [[fact["fact"], fact["claim"], fact["answer"], fact["seen"]] for fact in found]
    return "## What remuda takes for granted of libtorch\n\n" + table(["fact", "claim", "", "seen"], rows)


def number(value, form: str) -> str:
    return format(value, form) if isinstance(value, (int, float)) else ""


def mebibytes(count) -> str:
    return number(count and count / 2**20, ".0f")


def training_row(name: str, found: dict, plain: dict) -> list[str]:
    if sentence := found.get("refused") or found.get("failed"):
        return [name, ("refused: " if "refused" in found else "failed: ") + sentence.splitlines()[-1], "", "", "", ""]
    speed = found.get("samples_per_s")
    beside = plain.get("samples_per_s")
    shares = ", ".join(f"{device['id']} {device['share']:.0%}" for device in found.get("devices", []))
    loss = found["loss_per_epoch"][-1] if found.get("loss_per_epoch") else found.get("loss")
    result = number(loss, ".4f") + (f" ({found['test_accuracy']:.1%})" if "test_accuracy" in found else "")
    ratio = number(speed / beside, ".2f") if speed and beside and found is not plain else ""
    return [name, number(speed, ".0f"), ratio, mebibytes(found.get("memory_taken_bytes")), result, shares]


def loop_beside(name: str) -> str:
    """The plain loop to compare a run with: that of its precision, which `auto` does not report."""
    return "plain loop, " + (name.rsplit(", ", 1)[1] if ", " in name else "fp32")


def training(title: str, found: dict) -> str:
    runs = found.get("runs", {})
    rows = [training_row(name, run, runs.get(loop_beside(name), {})) for name, run in runs.items()]
    head = ["run", "samples/s", "of the plain loop", "memory taken, MiB", "training loss (test accuracy)", "shares"]
    return f"## {title}\n\n" + (table(head, rows) if rows else "Not trained: no GPU here.\n")


def of_stages(stages: dict, *names: str) -> dict:
    """The runs of several stages, as if they were of one."""
    return {"runs": {name: run for stage in names for name, run in stages.get(stage, {}).get("runs", {}).items()}}


def both_ways(found: dict) -> str:
    rows = [switches.summary(key, entry) for key, entry in found.get("switches", {}).items() if not entry.get("unknown")]
    head = ["switch", "model, ranks", "samples/s", "samples/s", "times as fast"]
    return "## Switches of the engine, both ways\n\n" + (table(head, rows) if rows else "Not measured.\n")


def text(stages: dict) -> str:
    """The page, from what the stages have saved."""
    wrong = [f"* {name}: {sentence}" for name, stage in stages.items() for sentence in stage.get("wrong", [])]
    parts = ["# What was seen on a real GPU\n\n`./dev gpu` makes this page. Memory is the most that the vendor's program showed beyond\n"
             "what was in use before; the plain loop is `tools/gpu/loop.py`: the same model and data, in PyTorch alone.\n",
             machine(stages),
             "## What was wrong\n\n" + ("\n".join(wrong) or "Nothing.") + "\n",
             facts(stages),
             training("Fashion-MNIST, resnet", of_stages(stages, "alone", "pair", "twice")),
             training("A text, gpt", stages.get("gpt", {})),
             both_ways(stages.get("switches", {}))]
    parts += [block(title, shown) for name in ("see", "jobs", "links") for title, shown in stages.get(name, {}).get("shown", {}).items()]
    return "\n".join(parts)
