#!/usr/bin/env python3
"""Watches a machine as its users do, and holds what is written against Prometheus's own checker where that is installed.

watch_test.py REMUDA MACHINE: a recorded machine, to which readings are added
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import unittest
import urllib.error

from watched import PATIENCE_S, READINGS, REMUDA, Watched, wait_until


class WatchTest(Watched):
    def has(self, text: str) -> bool:
        return self.metrics.exists() and text in self.metrics.read_text()

    def test_shows_a_job_while_it_holds_a_device_and_afterwards(self):
        watch = self.watch()
        wait_until(self.metrics.exists, "metrics are written")
        job = self.start("run", "-n", "1", "--name", 'with "quotes"', "--", "sleep", "60")
        wait_until(lambda: self.has(r'name="with \"quotes\""'), "the job is in the metrics")
        wait_until(lambda: "1\n" in [file.read_text() for file in (self.folder / "jobs").iterdir()], "dcgm-exporter learns of it")
        time.sleep(2.5)  # its time counts from one reading to the next
        job.send_signal(signal.SIGTERM)
        job.wait(PATIENCE_S)
        wait_until(lambda: not self.has("remuda_lease_share{"), "the lease has ended")
        watch.send_signal(signal.SIGTERM)
        self.assertEqual(watch.wait(PATIENCE_S), 0)
        waste = json.loads(self.run_remuda("usage", "--waste", "--by", "job", "--json"))["waste"]
        self.assertEqual([row["job"] for row in waste], [1])
        self.assertGreater(waste[0]["held_s"], 1)
        self.assertAlmostEqual(waste[0]["busy_s"] / waste[0]["busy_known_s"], READINGS["busy"])
        self.assertIn("IDLE", self.run_remuda("usage", "--waste"))

    def test_the_page_keeps_it_too_and_gives_metrics_to_who_has_the_token(self):
        web, get = self.web(self.folder / "token")
        for path in ("/metrics", "/metrics/dcgm"):
            with self.assertRaisesRegex(urllib.error.HTTPError, "401"):
                get(path, Accept="text/plain")
        self.assertIn("DCGM_FI_DEV_GPU_TEMP{gpu=\"0\"", get("/metrics/dcgm"))
        if shutil.which("promtool"):
            checked = subprocess.run(["promtool", "check", "metrics"], input=get("/metrics"), text=True,
                                     capture_output=True, timeout=PATIENCE_S, check=False)
            self.assertEqual((checked.returncode, checked.stdout + checked.stderr), (0, ""))
        device = json.loads(get("/api/snapshot"))["inventory"]["devices"][0]["id"]
        now = time.time()
        query = f"/api/history?device={device}&measures=busy,tensor_active&from={now - 60}&to={now}&points=60"
        wait_until(lambda: READINGS["busy"] in json.loads(get(query))["measures"]["busy"], "the history grows")
        self.assertEqual(set(json.loads(get(query))["measures"]["tensor_active"]), {None}, "unknown is not 0")
        web.terminate()
        self.assertEqual(web.wait(PATIENCE_S), 0, "what is new is written first")

    def test_an_alert_is_said_and_runs_a_command(self):
        gpu = self.break_gpu()
        heard = self.folder / "heard"
        watch = self.watch("--on-alert", f'echo "$REMUDA_ALERT_STATE: $REMUDA_ALERT_TEXT" >{heard}; echo "$REMUDA_ALERT" >>{heard}')
        wait_until(lambda: heard.exists() and heard.read_text().count("\n") == 2, "the command runs")
        text, alert = heard.read_text().splitlines()
        self.assertEqual(text, f"begun: the driver has reported the fatal error 79 of gpu:{gpu['index']}")
        self.assertEqual((json.loads(alert)["rule"], json.loads(alert)["device"]), ("device error", gpu["id"]))
        self.assertIn("remuda drain", watch.stderr.readline() + watch.stderr.readline())

    def test_the_page_tells_of_alerts_too_where_it_keeps_the_history(self):
        gpu = self.break_gpu()
        heard = self.folder / "heard"
        self.web(self.folder / "token", "--on-alert", f'echo "$REMUDA_ALERT_STATE: $REMUDA_ALERT_TEXT" >{heard}')
        wait_until(lambda: heard.exists() and heard.read_text().count("\n") == 1, "the command runs")
        self.assertEqual(heard.read_text(), f"begun: the driver has reported the fatal error 79 of gpu:{gpu['index']}\n")
        refused = subprocess.run([*self.as_user(), REMUDA, "web", "--demo", "--syslog"], env=self.environment, text=True, capture_output=True,
                                 timeout=PATIENCE_S, check=False)
        self.assertEqual(refused.returncode, 2, refused)

    def break_gpu(self):
        machine = json.loads(self.machine.read_text())
        gpu = next(device for device in machine["devices"] if device["kind"] == "gpu")
        gpu["status"] = {**READINGS, "xid": 79}
        self.machine.write_text(json.dumps(machine))
        return gpu

    def alerts(self, *flags: str):
        return json.loads(self.run_remuda("alerts", "--json", *flags))

    def test_alerts_are_acknowledged_and_silenced(self):
        self.assertIn("Nobody has watched", self.run_remuda("alerts"))
        unknown = self.alerts()
        self.assertEqual((unknown["time_s"], unknown["alerts"], unknown["unknown"]),
                         (None, None, "Nobody has watched this machine"))
        self.break_gpu()
        heard = self.folder / "heard"
        watch = self.watch("--on-alert", f'echo "$REMUDA_ALERT_STATE" >>{heard}')
        wait_until(lambda: self.alerts()["alerts"], "the alert is there for others to read")
        (alert,) = self.alerts()["alerts"]
        self.assertEqual((alert["rule"], alert["label"]), ("device error", "gpu:0"))
        told = self.run_remuda("alerts")
        self.assertIn(alert["id"], told)
        self.assertIn(alert["command"], told)
        (known,) = self.alerts("--ack", alert["id"])["alerts"]
        self.assertTrue(known["acknowledged_by"])
        wait_until(lambda: heard.read_text() == "begun\n", "the command has run")
        watch.send_signal(signal.SIGTERM)
        watch.wait(PATIENCE_S)
        heard.unlink()
        silent = self.alerts("--silence", "device error:gpu:0", "--for", "1h")["silences"]
        self.assertEqual([(one["rule"], one["device"]) for one in silent], [("device error", "gpu:0")])
        self.assertRegex(self.run_remuda("alerts"), "Silenced until .*: device error of gpu:0 ")
        self.metrics.unlink()
        self.watch("--on-alert", f'echo "$REMUDA_ALERT_STATE" >>{heard}')
        wait_until(self.metrics.exists, "it watches again")
        time.sleep(2)
        self.assertFalse(heard.exists(), "it is acknowledged, and silenced")
        for flags, error in ((["--ack", "nothing"], "there is no alert 'nothing' now"),
                             (["--silence", "hot"], "there is no alert 'hot'; they are: held and idle, "),
                             (["--silence", "throttled:gpu:77"], "gpu:77"),
                             (["--silence", "throttled", "--for", "long"], "--for: 'long' is no time")):
            refused = subprocess.run([REMUDA, "alerts", "--machine", str(self.machine), *flags], env=self.environment, text=True,
                                     capture_output=True, timeout=PATIENCE_S, check=False)
            self.assertEqual(refused.returncode, 2, refused)
            self.assertIn(error, refused.stderr)

    @unittest.skipIf(os.geteuid(), "this needs root, to be somebody else")
    def test_root_looks_after_alerts_that_a_service_has_found(self):
        """The folder is the service's, and the way to it is root's alone, as for a service with DynamicUser."""
        way = self.folder / "private"
        folder = way / "watch"
        folder.mkdir(parents=True)
        os.chown(folder, 65534, 65534)
        self.break_gpu()
        watch = self.watch("--folder", str(folder), own=self.as_user())
        wait_until(lambda: self.alerts("--folder", str(folder))["alerts"], "the alert is there for others to read")
        os.chmod(way, 0o700)
        (alert,) = self.alerts("--folder", str(folder))["alerts"]
        (known,) = self.alerts("--folder", str(folder), "--ack", alert["id"])["alerts"]
        self.assertEqual(known["acknowledged_by"], "root")
        self.assertEqual({path.name for path in folder.iterdir() if path.stat().st_uid != 65534}, set())
        watch.send_signal(signal.SIGTERM)
        watch.wait(PATIENCE_S)
        os.chown(way, 65534, 65534)
        (folder / "attention.json").unlink()
        victim = self.folder / "victim"
        victim.write_text("{}")
        os.chmod(victim, 0o600)
        (folder / "attention.json").symlink_to(victim)
        refused = subprocess.run([REMUDA, "alerts", "--machine", str(self.machine), "--folder", str(folder), "--ack", alert["id"]],
                                 env=self.environment, text=True, capture_output=True, timeout=PATIENCE_S, check=False)
        self.assertNotEqual(refused.returncode, 0)
        self.assertEqual(victim.read_text(), "{}", "a link of theirs leads nowhere")

    @unittest.skipIf(os.geteuid() or os.path.exists("/dev/log"), "this needs a machine without a log, and root to make one")
    def test_alerts_go_to_the_systems_log(self):
        log = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(log.close)
        self.addCleanup(os.unlink, "/dev/log")
        log.bind("/dev/log")
        log.settimeout(PATIENCE_S)
        self.break_gpu()
        self.watch("--syslog")
        self.assertRegex(log.recv(4096).decode(), r"<28>.*remuda\[\d+\]: alert: the driver has reported the fatal error 79 of gpu:0")

    def disk(self, folder: pathlib.Path) -> pathlib.Path:
        """A small disk, which ends with the test."""
        folder.mkdir(parents=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k,mode=777", "none", str(folder)], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", str(folder)], check=True)
        return folder

    def fill(self, disk: pathlib.Path) -> pathlib.Path:
        filler = disk / "filler"
        with open(filler, "wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))
        return filler

    @unittest.skipIf(os.geteuid(), "this needs root, to make a disk that is full")
    def test_a_full_disk_takes_the_history_and_nothing_else(self):
        full = self.disk(self.folder / "full")
        watch = self.watch("--folder", str(full))
        wait_until(self.metrics.exists, "metrics are written")
        filler = self.fill(full)
        self.assertRegex(watch.stderr.readline() + watch.stderr.readline(), "history.db.*full")
        written = self.metrics.stat().st_mtime
        wait_until(lambda: self.metrics.stat().st_mtime > written, "metrics are written all the same")
        filler.unlink()
        self.assertIsNone(watch.poll())
        watch.send_signal(signal.SIGTERM)
        self.assertEqual(watch.wait(PATIENCE_S), 0)

    @unittest.skipIf(os.geteuid(), "this needs root, to make a disk that is full")
    def test_on_a_disk_that_is_full_at_first_the_history_begins_once_there_is_room(self):
        disk = self.disk(self.folder / "full")
        filler = self.fill(disk)
        watch = self.watch("--folder", str(disk / "history"))
        wait_until(self.metrics.exists, "metrics are written all the same")
        self.assertRegex(watch.stderr.readline(), r"there is no history yet: cannot write \S+/history.db: No space left on device")
        filler.unlink()
        wait_until((disk / "history" / "history.db").exists, "the history begins")
        watch.send_signal(signal.SIGTERM)
        self.assertEqual(watch.wait(PATIENCE_S), 0)
        with contextlib.closing(sqlite3.connect(disk / "history" / "history.db")) as history:
            self.assertGreater(history.execute("SELECT count(*) FROM chunk").fetchone()[0], 0)

    @unittest.skipIf(os.geteuid(), "this needs root, to make a disk that is full")
    def test_a_disk_that_is_full_at_the_start_keeps_the_history_that_is_there(self):
        disk = self.disk(self.folder / "full")
        first = self.watch("--folder", str(disk))
        wait_until(self.metrics.exists, "metrics are written")
        first.send_signal(signal.SIGTERM)
        self.assertEqual(first.wait(PATIENCE_S), 0)
        count = "SELECT count(*) FROM chunk"
        with contextlib.closing(sqlite3.connect(disk / "history.db")) as history:
            before = history.execute(count).fetchone()[0]
        filler = self.fill(disk)
        self.metrics.unlink()
        watch = self.watch("--folder", str(disk))
        wait_until(self.metrics.exists, "metrics are written all the same")
        filler.unlink()
        watch.send_signal(signal.SIGTERM)
        self.assertEqual(watch.wait(PATIENCE_S), 0)
        with contextlib.closing(sqlite3.connect(disk / "history.db")) as history:
            self.assertGreaterEqual(history.execute(count).fetchone()[0], before)
            self.assertEqual(history.execute("PRAGMA integrity_check").fetchone()[0], "ok")

    @unittest.skipIf(os.geteuid(), "this needs root, to make a disk that is full")
    def test_the_page_is_there_on_a_disk_that_is_full_at_first(self):
        self.fill(self.disk(self.folder / "state" / "remuda" / "watch-of"))
        os.chmod(self.folder / "state" / "remuda", 0o777)
        os.chmod(self.folder / "state", 0o777)
        _, get = self.web(self.folder / "token")
        devices = json.loads(get("/api/snapshot"))["inventory"]["devices"]
        self.assertIn("remuda_gpu_busy_ratio{", get("/metrics"))
        with self.assertRaises(urllib.error.HTTPError) as refused:
            get(f"/api/history?device={devices[0]['id']}&measures=busy&from={time.time() - 60}&to={time.time()}&points=60")
        self.addCleanup(refused.exception.close)
        self.assertIn("there is no history yet", refused.exception.read().decode())

    def test_a_second_one_says_that_the_first_has_the_history(self):
        self.watch()
        wait_until(self.metrics.exists, "metrics are written")
        second = self.watch()
        self.assertEqual(second.wait(PATIENCE_S), 1)
        self.assertIn("another process keeps the history in", second.stderr.read())

    def test_the_page_keeps_the_history_once_the_one_that_did_has_ended(self):
        user = self.as_user()
        watch = self.watch(own=user)
        wait_until(self.metrics.exists, "metrics are written")
        _, get = self.web(self.folder / "token")
        self.start("run", "-n", "1", "--", "sleep", "100", own=user)
        wait_until(lambda: "remuda_lease_share{" in get("/metrics"), "the page knows of the lease")
        self.assertNotIn("remuda_lease_held_seconds_total{", get("/metrics"), "the other one counts")
        watch.terminate()
        watch.wait(PATIENCE_S)
        wait_until(lambda: "remuda_lease_held_seconds_total{" in get("/metrics"), "the page counts")

    def test_goes_on_where_an_earlier_one_was_killed(self):
        for _ in range(2):
            watch = self.watch()
            self.metrics.unlink(missing_ok=True)
            wait_until(self.metrics.exists, "metrics are written")
            watch.kill()
            watch.wait(PATIENCE_S)
        self.assertEqual([path.name for path in self.folder.glob("*.prom*")], ["remuda.prom"], "nothing is left half-written")

    @unittest.skipUnless(shutil.which("promtool"), "promtool is not installed (Debian: prometheus)")
    def test_metrics_are_as_prometheus_wants_them(self):
        self.watch()
        wait_until(self.metrics.exists, "metrics are written")
        done = subprocess.run(["promtool", "check", "metrics"], input=self.metrics.read_text(), text=True, capture_output=True,
                              timeout=PATIENCE_S, check=False)
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))

    def test_dashboard_and_alerts_ask_for_metrics_that_there_are(self):
        root = pathlib.Path(__file__).parent.parent
        written = set(re.findall(r'"(remuda_[a-z_]+)"', (root / "monitor" / "metrics.cc").read_text()))
        for name in ("grafana/remuda.json", "prometheus/remuda.rules.yml"):
            asked = set(re.findall(r"\bremuda_(?:gpu|lease|jobs|reading|run|disk)[a-z_]*", (root / "packaging" / name).read_text()))
            self.assertEqual(asked - written, set(), name)
            self.assertGreater(len(asked), 5)

    @unittest.skipUnless(shutil.which("promtool"), "promtool is not installed (Debian: prometheus)")
    def test_alerts_are_raised_as_they_should(self):
        rules = pathlib.Path(__file__).parent.parent / "packaging" / "prometheus" / "remuda.rules.test.yml"
        subprocess.run(["promtool", "test", "rules", rules.name], cwd=rules.parent, check=True, timeout=60,
                       stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
