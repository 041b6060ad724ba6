#!/usr/bin/env python3
"""What is done on a machine with a GPU, in stages that save as they go: `./dev gpu` calls it.

lane.py [--out FOLDER] [--bin FOLDER] [--devices A,B] [--limit SECONDS] [--again] [STAGE...]

A stage ends within its limit. What it has by then is in FOLDER/results.json, and it goes on from there when it is called
again; one that was done is skipped, unless --again. Without names all stages run:

  build     the programs, by the calls of the pack that GPU_PACK names; without a pack, --bin says where they are
  see       what remuda sees, held against what the vendor's program says
  facts     what the engine takes for granted of libtorch on a GPU
  fashion   Fashion-MNIST: on the GPU, on GPU and CPU, twice on the GPU; by precision; beside a plain Python loop
  gpt       the same with a small language model
  page      all of it as gpu.md; on a machine with a GPU also as docs/gpu.md

Exits 1 when something was found wrong, or a stage could not end.
"""

import argparse
import os
import pathlib
import sys
import time

import page
import readings
import recipe
import training
from stage import NoGpu, Results, Stage, json_in

STAGE_LIMIT_S = 540


def build(stage: Stage) -> None:
    if stage.pack:
        start = time.monotonic()
        recipe.build(stage.pack, stage.out, stage.left_s)
        print(f"  {time.monotonic() - start:.0f} s")


def see(stage: Stage) -> None:
    remuda = stage.program("remuda")
    for title, command in (
        ("remuda list", [remuda, "list"]),
        ("remuda topo", [remuda, "topo"]),
        ("the vendor's matrix", ["nvidia-smi", "topo", "-m"]),
        ("remuda doctor", [remuda, "doctor"]),
        ("remuda bench links", [remuda, "bench", "links"]),
        ("the vendor's program", ["nvidia-smi"]),
    ):
        stage.keep("shown", stage.found.get("shown", {}) | {title: stage.output(*command)})
    status, text = stage.run(remuda, "list", "--json")
    if status != 0:
        stage.wrong(f"remuda list --json: {text}")
        return
    stage.keep("inventory", json_in(text))
    smi = readings.vendors_readings()
    if smi is None:
        raise NoGpu("there is no nvidia-smi to compare with")
    for difference in readings.differences(smi, stage.found["inventory"]):
        stage.wrong(difference)


def facts(stage: Stage) -> None:
    status, text = stage.run(stage.program("gpu_facts"), "--json")
    try:
        found = json_in(text)
    except ValueError:
        stage.wrong(f"gpu_facts ended with {status}: {text[-2000:]}")
        return
    stage.keep("torch", found["torch"])
    stage.keep("facts", found["facts"])
    for fact in found["facts"]:
        line = f"{fact['fact']}: {fact['answer']}: {fact['seen']}"
        if fact["answer"] == "does not hold":
            stage.wrong(line)
        else:
            print(f"  {line}")
    if all(fact["answer"] == "cannot be asked" for fact in found["facts"]):
        raise NoGpu("no fact could be asked")


def make_page(stage: Stage) -> None:
    text = page.text(stage.results.stages)
    (stage.out / "gpu.md").write_text(text)
    if page.gpus(stage.results.stages):
        (recipe.ROOT / "docs/gpu.md").write_text(text)
        print("  docs/gpu.md is written")
    else:
        print(f"  no GPU here: {stage.out / 'gpu.md'} is written, docs/gpu.md is not")


STAGES = {"build": build, "see": see, "facts": facts, "fashion": training.fashion, "gpt": training.gpt, "page": make_page}


ALWAYS = {"build", "page"}  # quick where nothing has changed


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev gpu", usage="./dev gpu [--out FOLDER] [--devices A,B] [--again] [STAGE...]")
    parser.add_argument("--out", type=pathlib.Path, default=recipe.ROOT / "build/gpu", help="where results and programs are kept")
    parser.add_argument("--bin", type=pathlib.Path, help="where the programs are")
    parser.add_argument("--devices", default="gpu:0,cpu:0", help="the device to measure, and one to train with it")
    parser.add_argument("--limit", type=float, default=STAGE_LIMIT_S, help="seconds that a stage may take")
    parser.add_argument("--again", action="store_true", help="run stages that were done, too")
    parser.add_argument("stages", nargs="*", metavar="STAGE", help=f"of {', '.join(STAGES)}; all of them without a name")
    options = parser.parse_args(arguments)
    for name in options.stages:
        if name not in STAGES:
            parser.error(f"there is no stage '{name}'; there are {', '.join(STAGES)}")
    options.devices = options.devices.split(",")
    if len(options.devices) != 2:
        parser.error("--devices takes two devices, as in gpu:0,cpu:0")
    pack = os.environ.get("GPU_PACK")
    options.pack = pathlib.Path(pack) if pack else None
    options.out.mkdir(parents=True, exist_ok=True)
    options.out = options.out.resolve()
    options.bin = (options.bin or options.out / "bin").resolve()
    return options


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    results = Results(options.out / "results.json")
    wrong = 0
    for name in options.stages or STAGES:
        if options.again or results.stages.get(name, {}).get("devices") != options.devices:
            results.stages.pop(name, None)
        if results.stages.get(name, {}).get("done") and name not in ALWAYS:
            print(f"{name}: done before")
            continue
        print(f"{name}:", flush=True)
        stage = Stage(results, name, options)
        stage.found["wrong"] = []
        try:
            STAGES[name](stage)
            stage.found["done"] = stage.left_s() > 0
            if not stage.found["done"]:
                stage.wrong(f"not done within {options.limit:.0f} s; ./dev gpu {name} goes on")
        except NoGpu as reason:
            print(f"  no GPU here: {reason}", flush=True)
        except recipe.Failed as error:
            stage.wrong(str(error))
        results.save()
        wrong += len(stage.found["wrong"])
        if name == "build" and not stage.found.get("done"):
            break
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
