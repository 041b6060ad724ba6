"""Two hosts of one CPU device each, for measuring programs: two network namespaces, joined by a virtual cable. They need root, ip and
tc."""

import json
import os
import secrets
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PHASES = ("data_s", "compute_s", "update_s", "communication_s", "wait_s")


class Hosts:
    """Two namespaces with a cable between them; `gbit` is its rate, or 0."""

    def __init__(self, gbit):
        self.names = [f"remuda-bench-{os.getpid()}-{host}" for host in (0, 1)]
        self.gbit = gbit

    def __enter__(self):
        for name in self.names:
            run("ip", "netns", "add", name)
        run("ip", "-n", self.names[0], "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", self.names[1])
        for host, name in enumerate(self.names):
            run("ip", "-n", name, "address", "add", f"{self.address(host)}/24", "dev", "cable")
            run("ip", "-n", name, "link", "set", "cable", "up")
            if self.gbit:
                run("tc", "-n", name, "qdisc", "add", "dev", "cable", "root", "tbf", "rate", f"{self.gbit}gbit", "burst",
                    str(int(self.gbit * 250_000)), "latency", "50ms")
        return self

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)

    def address(self, host):
        return f"10.98.0.{host + 1}"

    def sent(self):
        return int(run("ip", "netns", "exec", self.names[0], "cat", "/sys/class/net/cable/statistics/tx_bytes"))

    def train(self, job, *settings):
        """The report of host 0, and the bytes that it sent."""
        out = job.with_suffix(".json")
        more = [word for setting in settings for word in ("--set", setting)]
        shared = dict(os.environ, WORLD_SIZE="2", MASTER_ADDR=self.address(0), MASTER_PORT="29500",
                      REMUDA_SECRET=secrets.token_hex(16))
        before = self.sent()
        ranks = [subprocess.Popen(["ip", "netns", "exec", self.names[rank], ROOT / "build/bin/remuda", "train", job, "--quiet",
                                   "--transport", "tcp", *(["--json", out] if rank == 0 else []), *more],
                                  env=dict(shared, RANK=str(rank), LOCAL_RANK="0", REMUDA_BIND=self.address(rank),
                                           OMP_NUM_THREADS="1"),
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for rank in (0, 1)]
        said = [rank.communicate(timeout=900)[0] for rank in ranks]
        if any(rank.returncode for rank in ranks):
            sys.exit(f"{sys.argv[0]}: a run failed:\n" + "\n".join(said))
        return json.loads(out.read_text()), self.sent() - before


def run(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def median_step(report, after):
    """Of each phase of the steps after so many: the median of its seconds; and "step_s", that of all of them together."""
    history = report["history"]
    counted = [i for i, step in enumerate(history["last_step"]) if step >= after]
    phases = {phase: statistics.median(history[phase][i] for i in counted) for phase in PHASES}
    return phases | {"step_s": statistics.median(sum(history[phase][i] for phase in PHASES) for i in counted)}
