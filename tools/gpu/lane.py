#!/usr/bin/env python3
"""What is done on a machine with a GPU, in stages that save as they go: `./dev gpu` calls it.

lane.py [--out FOLDER] [--bin FOLDER] [--devices A,B] [--limit SECONDS] [--again] [STAGE...]

A stage ends within its limit. What it has by then is in FOLDER/results.json, and it goes on from there when it is called
again; one that was done is skipped, unless --again. Without names all stages run, those that matter most first:

  build     the programs, from the pack that GPU_PACK names; without a pack, --bin says where they are
  facts     what the engine takes for granted of libtorch on a GPU
  alone     Fashion-MNIST on the GPU, by precision, each beside a plain Python loop of the same model
  pair      the same on GPU and CPU
  twice     the same as two ranks on the GPU, which must learn what one does
  see       what remuda sees (list, topo, doctor), held against what the vendor's program says
  jobs      which GPU a job sees, and what remuda says of one at work, held against the same
  links     how fast devices exchange data
  gpt       a small language model in all these ways
  switches  each switch of the engine both ways, in turns
  page      all of it as gpu.md; on a machine with a GPU also as docs/gpu.md. It is made anew after each stage.

Exits 1 when something was found wrong, also by a stage that was done before, or a stage could not end.
"""

import argparse
import os
import pathlib
import signal
import sys
import traceback

import build
import jobs
import measured
import page
import readings
import recipe
import switches
import training
from stage import NoGpu, Results, Stage, json_in


PAGE = recipe.ROOT / "docs/gpu.md"


def build_programs(stage: Stage) -> None:
    if not stage.pack:
        return
    if found := build.build(stage.pack, stage.out, stage.left_s, stage.optimise):
        stage.keep("measures", found)
        print(f"  {found['units']} units and the links in {found['wall_s']:.0f} s: {found['cpu_s']:.0f} s of CPU time, {found['chain_s']:.0f} s of it "
              f"one after the other, {found['longest']} the longest", flush=True)


def show(stage: Stage, *commands: tuple[str, list]) -> None:
    """Keeps what commands print, each under its title."""
    for title, command in commands:
        stage.keep("shown", stage.found.get("shown", {}) | {title: stage.output(*command)})


def see(stage: Stage) -> None:
    remuda = stage.program("remuda")
    show(stage, ("remuda list", [remuda, "list"]), ("remuda topo", [remuda, "topo"]), ("the vendor's matrix", ["nvidia-smi", "topo", "-m"]),
         ("remuda doctor", [remuda, "doctor"]), ("the vendor's program", ["nvidia-smi"]))
    smi = readings.vendors_readings()
    status, text = stage.run(remuda, "list", "--json")  # a moment later: power changes by the second
    if status != 0:
        stage.wrong(f"remuda list --json: {text}")
        return
    stage.keep("inventory", json_in(text))
    if smi is None:
        raise NoGpu("there is no nvidia-smi to compare with")
    for difference in readings.differences(smi, stage.found["inventory"]):
        stage.wrong(difference)


def links(stage: Stage) -> None:
    status, text = stage.run(stage.program("remuda"), "bench", "links")
    stage.keep("shown", {"remuda bench links": text})
    if status != 0:
        stage.wrong(f"remuda bench links ended with {status}: {text.strip()[-2000:]}")


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


def write_page(results: Results, out: pathlib.Path) -> bool:
    """Makes the page of what is known by now; says whether it is of a machine with a GPU, and so the checkout's."""
    text = page.text(results.stages)
    (out / "gpu.md").write_text(text)
    if page.gpus(results.stages):
        PAGE.write_text(text)
    return bool(page.gpus(results.stages))


def try_page(results: Results, out: pathlib.Path) -> int:
    """Makes the page after a stage, which it does not spoil; 1 where it could not be made."""
    try:
        write_page(results, out)
    except Exception as error:  # of whatever a stage has kept
        print(f"  the page cannot be made: {type(error).__name__}: {error}", flush=True)
        return 1
    return 0


def make_page(stage: Stage) -> None:
    if write_page(stage.results, stage.out):
        print("  docs/gpu.md is written")
    else:
        print(f"  no GPU here: {stage.out / 'gpu.md'} is written, docs/gpu.md is not")


# What is done, and how many seconds each may take: together they end within nine minutes, the build among them.
STAGES = {
    "build": (build_programs, 90),
    "facts": (facts, 20),
    "alone": (training.alone, 80),
    "pair": (training.pair, 40),
    "twice": (training.twice, 30),
    "see": (see, 10),
    "jobs": (jobs.measure, 40),
    "links": (links, 20),
    "gpt": (training.gpt, 80),
    "switches": (switches.measure, 120),
    "page": (make_page, 5),
}
ALWAYS = {"build", "page"}  # quick where nothing has changed


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev gpu", usage="./dev gpu [--out FOLDER] [--devices A,B] [--again] [STAGE...]")
    parser.add_argument("--out", type=pathlib.Path, default=recipe.ROOT / "build/gpu", help="where results and programs are kept")
    parser.add_argument("--bin", type=pathlib.Path, help="where the programs are")
    parser.add_argument("--devices", default="gpu:0,cpu:0", help="the device to measure, and one to train with it")
    parser.add_argument("--limit", type=float, help="seconds that each stage may take, in place of its own limit")
    parser.add_argument("--unoptimised", action="store_true", help="build quickly what runs slowly, only to see that it builds")
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
    if "TMPDIR" not in os.environ and not os.access("/tmp", os.W_OK):  # programs need a place for scratch files
        os.environ["TMPDIR"] = str(options.out)
    results = Results(options.out / "results.json")
    wrong = 0
    for name in options.stages or STAGES:
        if options.again or results.stages.get(name, {}).get("devices") != options.devices:
            results.stages.pop(name, None)
        if results.stages.get(name, {}).get("done") and name not in ALWAYS:
            print("\n  ".join([f"{name}: done before", *results.stages[name]["wrong"]]))
            wrong += len(results.stages[name]["wrong"])
            continue
        print(f"{name}:", flush=True)
        do, limit_s = STAGES[name]
        stage = Stage(results, name, options, options.limit or limit_s)
        stage.found["wrong"] = []
        try:
            do(stage)
            stage.found["done"] = stage.left_s() > 0
            if not stage.found["done"]:
                stage.wrong(f"not done within {stage.limit_s:.0f} s; ./dev gpu {name} goes on")
        except NoGpu as reason:
            print(f"  no GPU here: {reason}", flush=True)
        except recipe.Failed as error:
            stage.wrong(str(error))
        except Exception as error:  # the other stages have their turn all the same
            traceback.print_exc()
            stage.wrong(f"{type(error).__name__}: {error}")
        stage.found["took_s"] = round(stage.limit_s - stage.left_s(), 1)
        results.save()
        wrong += len(stage.found["wrong"]) + try_page(results, options.out)
        if name == "build" and not stage.found.get("done"):
            break
    return 1 if wrong else 0


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, measured.end_with_this_program)
    sys.exit(main(sys.argv[1:]))
