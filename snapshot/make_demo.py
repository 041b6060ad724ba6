#!/usr/bin/env python3
"""Makes demo.json, what `remuda web --demo` and `remuda top --demo` play: an hour of a machine with eight unlike GPUs and its users.

Nothing of it was measured: models, memory and power limits are those of such cards, and the rest is made up. The format is
that of `remuda record`, with what a pool says beside it (replay_source.h). The same bytes each time.
"""

import json
import math
import pathlib
import random

END = 1_795_612_800  # some noon
SAMPLES, STEP = 240, 15
BEGIN = END - (SAMPLES - 1) * STEP
GIB = 1 << 30
CARDS = [  # model, vendor, GiB, watts, NUMA node, PCI, root
    ("NVIDIA RTX A6000", "NVIDIA", 48, 300, 0, "0000:01:00.0", "pci0000:00"),
    ("NVIDIA RTX A6000", "NVIDIA", 48, 300, 0, "0000:02:00.0", "pci0000:00"),
    ("NVIDIA GeForce RTX 3090", "NVIDIA", 24, 350, 0, "0000:21:00.0", "pci0000:20"),
    ("NVIDIA GeForce RTX 3090", "NVIDIA", 24, 350, 0, "0000:22:00.0", "pci0000:20"),
    ("NVIDIA GeForce RTX 4090", "NVIDIA", 24, 450, 1, "0000:41:00.0", "pci0000:40"),
    ("Tesla V100-PCIE-16GB", "NVIDIA", 16, 250, 1, "0000:42:00.0", "pci0000:40"),
    ("AMD Instinct MI100", "AMD", 32, 290, 1, "0000:61:00.0", "pci0000:60"),
    ("AMD Instinct MI100", "AMD", 32, 290, 1, "0000:62:00.0", "pci0000:60"),
]
TFLOPS = [118, 117, 61, 60, 155, 84, 102, 101]
random_ = random.Random(14)


def gpu_id(i):
    return f"GPU-demo-{i}000-0000-0000-000000000000"


def minute(m):
    """Seconds since 1970 of a minute of the recording; before it where negative."""
    return BEGIN + 60 * m


def unsupported(what):
    return {"missing": "unsupported", "detail": what}


def lease(job, user, name, devices, since, ended=None, until=None, command=()):
    for i in devices:
        one = {"job": job, "device": gpu_id(i), "share": 1, "since_s": since, "label": f"gpu:{i}", "user": user, "name": name}
        if command:
            one["command"] = list(command)
        if ended:
            one["ended_s"] = ended
        if until:
            one["until_s"] = until
        yield one


EVE = 33  # the minute in which she begins to use gpu:7 without a lease
EVALS = [(m, m + length) for m, length in ((-20, 27), (9, 7), (18, 9), (29, 4), (35, 12), (49, 30))]
LEASES = [
    *lease(41, "ana", "ft-7b", (0, 1), minute(-290), until=minute(190), command=["python", "train.py"]),
    *lease(44, "ben", "diffusion", (2, 3), minute(-75), until=minute(165), command=["python", "sample.py"]),
    *lease(52, "dora", "notebook", (5,), minute(-160), command=["jupyter", "lab"]),
    *(one | {"failed": True, "why": "killed by signal 9 (Killed)"} for one in lease(47, "ana", "prepare", (6,), minute(-40), minute(21))),
    *(entry for n, (begin, end) in enumerate(EVALS)
      for entry in lease(60 + n, "cho", f"eval-{n}", (4,), minute(begin), minute(end) if end < 60 else None, minute(begin + 40))),
]


def load(i, m):
    """busy, part of memory in use, part of the power limit; at minute `m`."""
    noise = random_.uniform(-0.03, 0.03)
    if i in (0, 1):
        is_saving = m % 10 < 0.6
        return (0.12 + noise if is_saving else 0.95 + noise), 0.88, (0.35 if is_saving else 0.93)
    if i in (2, 3):
        return (0.86 + 4 * noise, 0.71, 0.97) if m < 24 else (0.0, 0.71, 0.11)
    if i == 4:
        runs = any(begin + 0.7 < m < end for begin, end in EVALS)
        return (0.72 + 0.2 * math.sin(2.1 * m) + noise, 0.55, 0.74) if runs else (0.0, 0.01, 0.06)
    if i == 5:
        works = 6 < m < 7.5 or 31 < m < 32
        return (0.6 + noise if works else 0.0), 0.63, (0.5 if works else 0.15)
    if i == 6:
        return (0.55 + 5 * noise, 0.42, 0.6) if m < 21 else (0.0, 0.0, 0.12)
    return (0.34 + 3 * noise, 0.22, 0.4) if m > EVE else (0.0, 0.0, 0.12)


def status(i, m):
    busy, memory, power = load(i, m)
    heat = [38, 41, 47, 49, 35, 33, 36, 36][i]
    one = {"memory_used_bytes": round(memory * CARDS[i][2] * 64) * GIB // 64, "busy": round(min(max(busy, 0), 1), 2),
           "power_watts": round(power * CARDS[i][3] * random_.uniform(0.97, 1.03)),
           "temperature_c": round(heat + 36 * power + random_.uniform(-1, 1))}
    if i in (2, 3):
        one["throttle"] = ["thermal"] if 12 < m < 24 and i == 3 else []
    if i != 5:
        one["sm_clock_mhz"] = 5 * round([390, 390, 350, 350, 504, 0, 300, 300][i] * (0.2 + 0.8 * min(power * 1.3, 1)) / 1)
    if i == 0 or i == 1:
        one["tensor_active"] = round(0.61 * one["busy"], 2)
    return one


def device(i):
    model, vendor, gib, watts, node, pci, root = CARDS[i]
    now = status(i, 59)
    if vendor == "AMD":
        now["tensor_active"] = unsupported("this driver does not count it")
    elif i > 1:
        now["tensor_active"] = unsupported("this GPU counts it only for a profiler")
    if i == 5:
        now["sm_clock_mhz"] = {"missing": "denied", "detail": "the driver gives its clock to administrators only"}
    if i == 7:
        now["processes"] = [{"pid": 4711, "type": "compute", "user": "eve", "command": "./a.out", "memory_bytes": 7 * GIB}]
    return {"id": gpu_id(i), "kind": "gpu", "index": i, "vendor": vendor, "model": model, "uuid": gpu_id(i), "pci": pci,
            "pcie_root": root, "numa_node": node, "memory_bytes": gib * GIB, "power_limit_watts": watts,
            "pcie_generation_max": 4, "pcie_width_max": 16, "status": now}


def link(a, b):
    node_a, node_b, root_a, root_b = CARDS[a][4], CARDS[b][4], CARDS[a][6], CARDS[b][6]
    one = {"a": gpu_id(a), "b": gpu_id(b), "path": "PHB" if root_a == root_b else "NODE" if node_a == node_b else "SYS"}
    if (a, b) in ((0, 1), (2, 3)):
        one.update(fabric="nvlink", fabric_links=4)
    elif (a, b) == (6, 7):
        one.update(fabric="xgmi", fabric_links=1)
    else:
        one.update(fabric="none")
    return one


def measured():
    for a, b, gbps in ((0, 1, 52.3), (2, 3, 50.8), (0, 2, 21.9), (1, 2, 22.1), (4, 5, 12.6), (6, 7, 38.4), (0, 4, 17.2)):
        yield {"a": gpu_id(a), "b": gpu_id(b), "time_s": END - 86400 * 3, "gbps": gbps}


def waiting(job, user, name, submitted, count, why, **request):
    return {"id": job, "user": user, "name": name, "submitted_s": submitted, "state": "waiting", "command": ["python", "x.py"],
            "request": {"count": count, **request}, "why": why}


def alert(rule, i, since, raised, value, limit, text, command):
    """In the words of monitor/alerts.cc; raised once its cause has lasted for as long as the rule wants."""
    return {"rule": rule, "device": gpu_id(i), "label": f"gpu:{i}", "since_s": since, "raised_s": raised, "value": value,
            "limit": limit, "text": text, "command": command}


def runs():
    """What ana's training says of itself: a new notice each five minutes."""
    for m in range(0, 60, 5):
        waiting = (0.03 + 0.02 * math.sin(m), 0.04 + 0.02 * math.cos(m))
        yield {"job": 41, "user": "ana", "name": "ft-7b", "since_s": minute(m), "ended_s": minute(m + 5),
               "run": {"at_s": minute(m), "step": 27000 + 97 * m, "steps": 40000, "step_s": 0.618,
                       "checkpoint_step": 26950 + 97 * m, "checkpoint_age_s": 31, "checkpoint_every_s": 600,
                       "parts": [{"device": gpu_id(i), "share": share, "waiting": round(waiting[i], 3)}
                                 for i, share in enumerate((0.53, 0.47) if m < 30 else (0.504, 0.496))]}}


def main():
    gpus = range(len(CARDS))
    samples = [{"time_s": BEGIN + STEP * n, "devices": [{}, {}, *(status(i, n * STEP / 60) for i in gpus)]}
               for n in range(SAMPLES)]
    cpus = [{"id": f"cpu:{n}", "kind": "cpu", "index": n, "vendor": "AMD", "model": "AMD EPYC 7543", "numa_node": n,
             "cores": list(range(32 * n, 32 * n + 32)), "memory_bytes": 256 * GIB, "status": {}} for n in range(2)]
    demo = {
        "version": 1, "host": "corral", "time_s": END, "source": "live",
        "probes": [{"name": "demo", "devices": 10}],
        "numa": [{"node": n, "cores": list(range(32 * n, 32 * n + 32)), "memory_bytes": 256 * GIB} for n in range(2)],
        "devices": cpus + [device(i) for i in gpus],
        "links": [link(a, b) for a in gpus for b in gpus if a < b],
        "measured_devices": [{"id": gpu_id(i), "time_s": END - 86400 * 3,
                              "gemm": [{"precision": "bfloat16" if i != 5 else "float16", "tflops": TFLOPS[i]}]} for i in gpus],
        "measured_links": list(measured()),
        "samples": samples,
        "notes": ["a made-up machine, for looking at the page"],
        "jobs": {
            "leases": LEASES + [{"device": gpu_id(7), "share": 1, "label": "gpu:7", "holder": "eve", "since_s": minute(EVE)}],
            "waiting": [
                waiting(70, "fay", "pretrain", minute(-30), 4,
                        "4 are wanted, and 1 of the 7 GPUs that suit is free: gpu:0 is held by ana (job 41), gpu:1 is held by ana "
                        "(job 41), gpu:2 is held by ben (job 44), and 3 more", any_model=True, memory_bytes=24 * GIB) | {"time_limit_s": 21600},
                waiting(71, "cho", "eval-all", minute(38), 2,
                        "2 are wanted, and none of the 2 GPUs that suit is free: gpu:2 is held by ben (job 44), gpu:3 is held by "
                        "ben (job 44)", model="*3090") | {"time_limit_s": 1200},
                waiting(72, "gus", "<b>sweep</b>", minute(50), 1,
                        "1 is wanted, and the only GPU that suits is not free: gpu:5 is held by dora (job 52)", model="*V100*"),
            ],
        },
        "drains": [],
        "runs": list(runs()),
        "alerts": [
            alert("throttled", 3, minute(12), minute(13), "thermal", "60 s",
                  "heat, power or hardware holds down the clocks of gpu:3", "remuda list") | {"ended_s": minute(24)},
            alert("held and idle", 5, minute(-7), minute(-7), "busy 2 % of 30 min", "5 %",
                  "dora (job 52) holds gpu:5, and next to nothing runs there", "remuda show 52"),
            *(alert("held and idle", i, minute(53), minute(53), "busy 3 % of 30 min", "5 %",
                    f"ben (job 44) holds gpu:{i}, and next to nothing runs there", "remuda show 44") for i in (2, 3)),
            alert("used without a lease", 7, minute(EVE), minute(EVE + 5), "processes without a lease", "none",
                  "processes that hold no lease use gpu:7", "remuda ps"),
        ],
    }
    path = pathlib.Path(__file__).parent / "demo.json"
    head = {key: value for key, value in demo.items() if key != "samples"}
    text = json.dumps(head, indent=1)[:-2] + ',\n "samples": [\n'
    text += ",\n".join(json.dumps(sample, separators=(",", ":")) for sample in samples) + "\n]}\n"
    path.write_text(text)


if __name__ == "__main__":
    main()
