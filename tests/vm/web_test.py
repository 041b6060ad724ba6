#!/usr/bin/python3
"""remuda-web.service under a real systemd: who it is, who gets to see the page, and what stops of it and of the agent do.

web_test.py FOLDER [-k TEST]     of tests/vm/image, as units_test.py

The tests follow each other on one machine, in the order of their names.
"""
import json
import sys
import unittest

from guest import Guest
from server import LIBRARY_READS, eventually, furnish, machine

STATE = "/var/lib/remuda-web"
TOKEN = STATE + "/token"
HISTORY = STATE + "/remuda/watch"
DROP_IN = "/etc/systemd/system/remuda-web.service.d/test.conf"
ASKS = f"""import sys, urllib.error, urllib.request
path, token = sys.argv[1], open("{TOKEN}").read().strip() if sys.argv[2:] else ""
request = urllib.request.Request("http://127.0.0.1:8790" + path, headers={{"Authorization": "Bearer " + token}})
try:
    answer = urllib.request.urlopen(request, timeout=60)
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
    sys.exit(1)
if path != "/api/events":
    print(answer.read().decode())
try:
    for line in answer:
        if line.startswith(b"event"):
            open("/test/viewed", "ab").write(line)
except OSError as error:
    print(error)
"""
TRIES = """import sys
for mode, paths in ("r", sys.argv[1]), ("a", sys.argv[2]):
    for path in paths.split():
        try:
            open(path, mode).close()
            print("opened", path)
        except OSError:
            pass
"""


class WebTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.guest = Guest(sys.argv[1])
        cls.addClassCleanup(cls.guest.stop)
        furnish(cls.guest)
        cls.guest.write("/test/asks.py", ASKS)
        cls.guest.write("/test/tries.py", TRIES)
        cls.guest.write(DROP_IN, f"[Service]\nEnvironment=REMUDA_TEST_NVML={LIBRARY_READS}\n")
        cls.guest.must("systemd-tmpfiles --create remuda.conf; systemctl daemon-reload")

    def ask(self, path):
        """What it answers who has the token."""
        return self.guest.run(f"python3 /test/asks.py {path} token")

    def snapshot(self):
        answer = self.ask("/api/snapshot")
        return json.loads(answer.stdout) if answer.returncode == 0 else {}

    def fresh(self, since_s):
        """What the page shows of a moment after that, on the guest's clock."""
        def read():
            shown = self.snapshot()
            return shown if shown.get("time_s", 0) > since_s else None
        return eventually(read)

    @staticmethod
    def holders(shown):
        """Whose jobs hold devices; that which is at fault is held by a drain."""
        return [lease["user"] for lease in shown["jobs"]["leases"] if "job" in lease]

    def now_s(self):
        return float(self.guest.must("date +%s"))

    def pid(self):
        return self.guest.must("systemctl show -P MainPID remuda-web").strip()

    def token(self):
        return self.guest.must(f"cat {TOKEN}").strip()

    def test_1_the_unit_is_sound(self):
        said = self.guest.run("systemd-analyze verify --man=no remuda-web.service")
        self.assertEqual((said.returncode, said.stderr), (0, ""))

    def test_2_it_starts_before_the_agent_is_there_and_says_so(self):
        self.guest.must("systemctl enable --now remuda-web")
        eventually(lambda: self.ask("/api/snapshot").returncode == 0)
        shown = self.snapshot()
        self.assertIn("systemctl start remuda-agent.socket", shown["agent"]["error"])
        self.assertEqual((len(shown["inventory"]["devices"]) >= 8, "jobs" in shown), (True, False), "devices alone are known")
        self.assertIn("remuda_agent_answers 0", self.ask("/metrics").stdout)

    def test_3_who_has_no_token_sees_nothing_and_only_root_has_it(self):
        for path in ("/metrics", "/metrics/dcgm", "/api/snapshot", "/api/events"):
            self.assertEqual(self.guest.run(f"python3 /test/asks.py {path}").stdout.split()[0], "401", path)
        self.assertGreaterEqual(len(self.token()), 32)
        self.assertNotEqual(self.guest.run(f"cat {TOKEN}", "ada").returncode, 0)
        self.assertNotIn(self.token(), self.guest.must("journalctl --no-pager"))

    def test_4_its_user_can_do_nothing_else(self):
        status = self.guest.must(f"cat /proc/{self.pid()}/status")
        fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        uid = fields["Uid"].split()[0]
        self.assertGreaterEqual(int(uid), 61184, "one of systemd's own")
        self.assertEqual((fields["NoNewPrivs"], fields["Seccomp"]), ("1", "2"))
        self.assertEqual({int(fields[name], 16) for name in ("CapEff", "CapPrm", "CapBnd", "CapAmb", "CapInh")}, {0})
        self.guest.must("touch /home/ada/of-ada; chmod 644 /home/ada/of-ada; chmod 755 /home/ada; touch /tmp/of-all; chmod 666 /tmp/of-all")
        within = f"nsenter --mount --target {self.pid()} setpriv --reuid {uid} --regid {uid} --clear-groups python3 /test/tries.py"
        kept_from = "'/home/ada/of-ada /tmp/of-all /var/lib/remuda/pool.db /etc/shadow' '/usr/of-web /etc/of-web /var/of-web'"
        self.assertEqual(self.guest.must(f"{within} {kept_from}"), "")
        self.assertEqual(self.guest.must(f"{within} /etc/passwd {STATE}/tried").count("opened"), 2, "else that shows nothing")
        print(self.guest.must("systemd-analyze security --no-pager remuda-web.service | tail -n 1"), file=sys.stderr)

    def test_5_it_shows_what_the_agent_has_once_that_is_there(self):
        self.guest.must("systemctl enable --now remuda-agent.socket remuda-agent.service")
        job = int(self.guest.must("remuda run -d --device gpu:1 -- sleep 1000", "ada"))
        leases = eventually(lambda: self.snapshot().get("jobs", {}).get("leases"))
        self.assertEqual([(lease["job"], lease["user"], lease["label"]) for lease in leases], [(job, "ada", "gpu:1")])
        eventually(lambda: f'remuda_lease_held_seconds_total{{job_id="{job}"' in self.ask("/metrics").stdout)
        self.assertIn("DCGM_FI_DEV_FB_USED", self.ask("/metrics/dcgm").stdout)
        eventually(lambda: "use" in self.snapshot()["jobs"]["leases"][0])
        used = lambda: json.loads(self.guest.must(f"remuda usage --waste --by job --json --folder {HISTORY}"))["waste"]
        self.assertEqual([one["job"] for one in eventually(used)], [job], "it is written every ten seconds")

    def test_6_an_alert_is_on_the_page_and_root_can_say_that_it_is_looked_after(self):
        faulty = machine()
        faulty["devices"][2]["status"]["xid"] = 79
        self.guest.write(LIBRARY_READS, json.dumps(faulty))
        alert = eventually(lambda: self.snapshot()["alerts"])[0]
        self.assertEqual((alert["rule"], alert["label"]), ("device error", "gpu:2"))
        eventually(lambda: alert["id"] in self.guest.must(f"remuda alerts --folder {HISTORY}"))
        self.guest.must(f"remuda alerts --folder {HISTORY} --ack {alert['id']}")
        eventually(lambda: self.snapshot()["alerts"][0].get("acknowledged_by") == "root")

    def test_7_it_goes_on_when_the_agent_is_started_anew(self):
        page = self.pid()
        self.guest.must("systemctl restart remuda-agent")
        self.assertEqual(self.holders(self.fresh(self.now_s())), ["ada"])
        self.guest.must("systemctl stop remuda-agent.service remuda-agent.socket")
        eventually(lambda: "systemctl start" in self.snapshot().get("agent", {}).get("error", ""))
        self.assertEqual(self.holders(self.fresh(self.now_s())), ["ada"], "as it was")
        self.guest.must("systemctl start remuda-agent.socket remuda-agent.service")
        self.assertEqual(self.holders(self.fresh(self.now_s())), ["ada"])
        self.assertEqual(self.pid(), page)

    def test_8_it_stops_at_once_while_somebody_looks_and_has_the_same_token_after(self):
        token = self.token()
        viewer = self.guest.start("python3 /test/asks.py /api/events token")
        eventually(lambda: self.guest.run("cat /test/viewed").stdout)
        before_s = self.now_s()
        self.guest.must("systemctl restart remuda-web")
        self.assertLess(self.now_s() - before_s, 60, "systemd kills after 90")
        self.assertEqual(self.guest.result(viewer).returncode, 0)
        self.assertEqual(self.guest.must("systemctl show -P Result remuda-web").strip(), "success")
        shown = self.fresh(self.now_s())
        self.assertEqual(self.token(), token)
        self.assertEqual(self.holders(shown), ["ada"])
        self.guest.must("systemctl stop remuda-web")
        self.assertEqual(self.guest.must("systemctl is-failed remuda-web || true").strip(), "inactive")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[2:], verbosity=2)
