#!/usr/bin/env python3
"""A real Prometheus that scrapes `remuda web` of two recorded machines with its token, and answers what Grafana dashboard 12239 asks.

prometheus_test.py REMUDA NVIDIA AMD [--seconds 12]     exit status 77 where there is no Prometheus (Debian: prometheus)

Each second for so long: no scrape fails, `promtool check metrics` has nothing to say of /metrics, the alert rules of
packaging/prometheus are evaluated without an error. Then each query of the dashboard (grafana/dcgm-exporter-dashboard.json of
dcgm-exporter) has a series for each GPU of both machines; tensor activity, which the AMD machine does not count, has none for that.
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

from ports import free_port

PATIENCE_S = 60
RULES = pathlib.Path(__file__).resolve().parent.parent / "packaging" / "prometheus" / "remuda.rules.yml"
# {} is the filter by instance and GPU; what the query says of the vendors that do not count tensor activity.
QUERIES = {
    "GPU Temperature": "DCGM_FI_DEV_GPU_TEMP{}",
    "GPU Avg. Temp": "avg(DCGM_FI_DEV_GPU_TEMP{})",
    "GPU Power Usage": "DCGM_FI_DEV_POWER_USAGE{}",
    "GPU Power Total": "sum(DCGM_FI_DEV_POWER_USAGE{})",
    "GPU SM Clocks": "DCGM_FI_DEV_SM_CLOCK{} * 1000000",
    "GPU Utilization": "DCGM_FI_DEV_GPU_UTIL{}",
    "GPU Framebuffer Mem Used": "DCGM_FI_DEV_FB_USED{}",
    "Tensor Core Utilization": "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{}",
}
READINGS = {"busy": 0.25, "memory_busy": 0.1, "memory_used_bytes": 1 << 30, "power_watts": 120.5, "energy_joules": 1000.0,
            "temperature_c": 45.0, "sm_clock_mhz": 1410, "throttle": ["idle"], "processes": []}


def get(address, token=None):
    request = urllib.request.Request(address, headers={"Authorization": f"Bearer {token}"} if token else {})
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
        return answer.read().decode()


def wait_for(condition, what):
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            if condition():
                return
        except OSError:
            pass
        assert time.monotonic() < end, f"waited {PATIENCE_S} s in vain: {what}"
        time.sleep(0.2)


class Page:
    """`remuda web` of a recorded machine, to which readings are added, as a user without rights."""

    def __init__(self, remuda, recorded, folder, readings):
        self.folder = folder / pathlib.Path(recorded).stem
        self.folder.mkdir()
        self.folder.chmod(0o777)
        machine = json.loads(pathlib.Path(recorded).read_text())
        for device in machine["devices"]:
            device["status"] = readings
        self.gpus = sum(device["kind"] == "gpu" for device in machine["devices"])
        (self.folder / "machine.json").write_text(json.dumps(machine))
        self.token_file = self.folder / "token"
        own = [] if os.geteuid() else ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        self.process = subprocess.Popen(
            [*own, remuda, "web", "--listen", "127.0.0.1:0", "--machine", str(self.folder / "machine.json"), "--token-file", str(self.token_file)],
            env={**os.environ, "HOME": str(self.folder), "XDG_STATE_HOME": str(self.folder / "state")}, text=True, stdout=subprocess.PIPE)
        self.address, self.token = self.process.stdout.readline().strip().split("/#token=")
        self.instance = self.address.removeprefix("http://")

    def check_metrics(self):
        checked = subprocess.run(["promtool", "check", "metrics"], input=get(self.address + "/metrics", self.token), text=True,
                                 capture_output=True, timeout=PATIENCE_S, check=False)
        assert (checked.returncode, checked.stdout + checked.stderr) == (0, ""), checked


class Prometheus:
    def __init__(self, pages, folder):
        jobs = [{"job_name": f"{page.instance} {path}", "metrics_path": path, "static_configs": [{"targets": [page.instance]}],
                 "authorization": {"credentials_file": str(page.token_file)}}
                for page in pages for path in ("/metrics", "/metrics/dcgm")]
        config = {"global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "rule_files": [str(RULES)], "scrape_configs": jobs}
        (folder / "prometheus.yml").write_text(json.dumps(config))  # JSON is YAML
        subprocess.run(["promtool", "check", "config", str(folder / "prometheus.yml")], check=True, stdout=subprocess.DEVNULL)
        self.address = f"http://127.0.0.1:{free_port()}"
        self.log = open(folder / "prometheus.log", "w")
        self.process = subprocess.Popen(
            ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
             f"--web.listen-address={self.address.removeprefix('http://')}"], stdout=self.log, stderr=self.log)
        self.scraped = len(jobs)

    def ask(self, path, **fields):
        answer = json.loads(get(f"{self.address}/api/v1/{path}?{urllib.parse.urlencode(fields)}"))
        assert answer["status"] == "success", answer
        return answer["data"]

    def series(self, query):
        return self.ask("query", query=query)["result"]

    def check_targets(self, seconds):
        targets = self.ask("targets")["activeTargets"]
        assert [target["lastError"] for target in targets] == [""] * self.scraped, targets
        fewest = self.series(f"min(min_over_time(up[{int(seconds) + 1}s]))")
        assert fewest and fewest[0]["value"][1] == "1", f"a scrape has failed: {fewest}"

    def check_rules(self):
        rules = [rule for group in self.ask("rules")["groups"] for rule in group["rules"]]
        assert rules and all(rule["health"] == "ok" for rule in rules), [rule for rule in rules if rule["health"] != "ok"]


def check_dashboard(prometheus, page, has_tensors):
    instances = prometheus.ask("label/instance/values", **{"match[]": "DCGM_FI_DEV_GPU_TEMP"})
    assert page.instance in instances, instances
    gpus = prometheus.ask("label/gpu/values", **{"match[]": f'DCGM_FI_DEV_GPU_TEMP{{instance="{page.instance}"}}'})
    assert len(gpus) == page.gpus, f"{gpus} are not {page.gpus} GPUs"
    chosen = f'{{instance=~"{page.instance}", gpu=~"{"|".join(gpus)}"}}'
    for panel, query in QUERIES.items():
        wanted = 1 if "(" in query else page.gpus
        if "TENSOR" in query and not has_tensors:
            wanted = 0
        series = prometheus.series(query.format(chosen))
        assert len(series) == wanted, f"{panel} of {page.instance}: {len(series)} series, and not {wanted}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("remuda")
    parser.add_argument("nvidia")
    parser.add_argument("amd")
    parser.add_argument("--seconds", type=float, default=12)
    flags = parser.parse_args()
    if not (shutil.which("prometheus") and shutil.which("promtool")):
        sys.exit(77)
    started = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        folder.chmod(0o755)
        try:
            pages = [Page(flags.remuda, flags.nvidia, folder, {**READINGS, "tensor_active": 0.125}),
                     Page(flags.remuda, flags.amd, folder, {**READINGS, "tensor_active": {"missing": "unsupported", "detail": "not counted"}})]
            started += [page.process for page in pages]
            prometheus = Prometheus(pages, folder)
            started.append(prometheus.process)
            wait_for(lambda: len(prometheus.series("up == 1")) == prometheus.scraped, "all are scraped")
            start = time.monotonic()
            while time.monotonic() - start < flags.seconds:
                for page in pages:
                    page.check_metrics()
                time.sleep(1)
            prometheus.check_targets(time.monotonic() - start)
            prometheus.check_rules()
            for page, has_tensors in zip(pages, (True, False)):
                check_dashboard(prometheus, page, has_tensors)
            scrapes = sum(float(one["value"][1]) for one in prometheus.series(f"count_over_time(up[{int(flags.seconds) + 1}s])"))
            print(f"{scrapes:.0f} scrapes in {flags.seconds:.0f} s, none failed; {len(QUERIES)} queries of dashboard 12239 answered for {len(pages)} machines")
        finally:
            for process in reversed(started):
                process.terminate()
            for process in started:
                process.wait(PATIENCE_S)


if __name__ == "__main__":
    main()
