#!/usr/bin/python3
"""`remuda agent --spot` where the cloud takes the machine away: a small HTTP server plays the three clouds.

agent_spot_test.py REMUDA MACHINE     exit status 77 where this process cannot become other users
"""
import http.server
import json
import os
import sys
import tempfile
import threading
import unittest

from agent_client import Agent, eventually

REMUDA, MACHINE = sys.argv[1], sys.argv[2]
ADA = 61001


class Cloud(http.server.BaseHTTPRequestHandler):
    """As each of them answers, with a notice where the server has one."""
    def log_message(self, *_):
        pass

    def answer(self, status, body="", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def do_PUT(self):
        is_aws = self.server.cloud == "aws" and self.path == "/latest/api/token"
        has_time = self.headers.get("X-aws-ec2-metadata-token-ttl-seconds")
        self.answer(200, "a-token") if is_aws and has_time else self.answer(404)

    def do_GET(self):
        notice, cloud = self.server.notice, self.server.cloud
        if cloud == "aws" and self.path.endswith("/spot/instance-action"):
            if self.headers.get("X-aws-ec2-metadata-token") != "a-token":
                return self.answer(401)
            return self.answer(200, json.dumps({"action": "terminate", "time": "soon"})) if notice else self.answer(404)
        if cloud == "gcp" and self.path == "/computeMetadata/v1/instance/preempted":
            if self.headers.get("Metadata-Flavor") != "Google":
                return self.answer(403)
            return self.answer(200, "TRUE" if notice else "FALSE", Metadata_Flavor="Google")
        if cloud == "azure" and self.headers.get("Metadata") == "true":
            if self.path.startswith("/metadata/instance/compute/name?"):
                return self.answer(200, "box-3")
            if self.path.startswith("/metadata/scheduledevents?"):
                event = {"EventType": "Preempt", "Resources": ["box-3"], "NotBefore": "soon"}
                return self.answer(200, json.dumps({"DocumentIncarnation": 1, "Events": [event] if notice else []}))
        return self.answer(404)


class SpotTest(unittest.TestCase):
    def setUp(self):
        """What is set up is taken down in the opposite order, each where what came before has failed, too."""
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Cloud)
        self.server.notice = False
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()
        for step in (self.server.server_close, self.thread.join, self.server.shutdown):
            self.addCleanup(step)
        self.agent = Agent(REMUDA, MACHINE, self.scratch.name)
        self.addCleanup(self.agent.end)

    def start(self, cloud, word=None):
        self.server.cloud = cloud
        self.agent.start(words=["--spot", word or cloud, "--spot-every", "0.1s", "--spot-address", "127.0.0.1:%d" % self.server.server_port])

    def drains(self):
        return self.agent.page().get("drains", [])

    def test_jobs_are_asked_to_end_and_nothing_is_granted(self):
        self.start("aws")
        script = "trap 'echo saved; exit 7' TERM; echo up >$OUT/up; while :; do sleep 0.05; done"
        up = os.path.join(self.scratch.name, "up")
        os.chmod(self.scratch.name, 0o777)
        front = self.agent.start_as(ADA, "run", "-q", "--", "/bin/sh", "-c", script)
        self.addCleanup(lambda: [front.kill(), front.communicate()])
        self.assertTrue(eventually(lambda: os.path.exists(up)))
        self.assertEqual(self.drains(), [])
        self.server.notice = True
        out, err = front.communicate(timeout=60)
        self.assertEqual((front.returncode, out), (7, "saved\n"), err)
        self.assertIn("was told to end: AWS takes this machine away (terminate), not before soon", err)
        self.assertEqual({drain["by"] for drain in self.drains()}, {"spot notice"})
        self.assertEqual(len(self.drains()), 8)
        late = self.agent.run_as(ADA, "run", "--no-wait", "--", "true")
        self.assertEqual(late.returncode, 4, late)
        self.assertIn("is drained: AWS takes this machine away", late.stderr)

    def test_a_job_that_has_named_a_signal_for_checkpoints_gets_it_first(self):
        self.start("aws")
        os.chmod(self.scratch.name, 0o777)
        up = os.path.join(self.scratch.name, "up")
        script = "trap 'echo saved' USR1; trap 'echo ends; exit 7' TERM; echo up >$OUT/up; while :; do sleep 0.05; done"
        fronts = [self.agent.start_as(ADA, "run", "-q", "--checkpoint-signal", "USR1", "--grace", "2s", "--", *command)
                  for command in (("/bin/sh", "-c", script), ("sleep", "1000"))]
        for front in fronts:
            self.addCleanup(lambda front=front: [front.kill(), front.communicate()])
        self.assertTrue(eventually(lambda: os.path.exists(up) and len(self.agent.page().get("leases", [])) == 2))
        self.server.notice = True
        (writes, err), _ = (front.communicate(timeout=60) for front in fronts)
        self.assertEqual((fronts[0].returncode, writes), (7, "saved\nends\n"), err)
        self.assertEqual(fronts[1].returncode, 143, "it has no handler, and ends by its stop signal")
        self.assertIn("AWS takes this machine away (terminate), not before soon: its devices are drained, and jobs are asked to end",
                      self.agent.said())

    def test_a_preemptible_job_goes_on_when_the_notice_is_gone(self):
        self.start("gcp", "auto")
        os.chmod(self.scratch.name, 0o777)
        ran = os.path.join(self.scratch.name, "ran")
        script = "echo x >>$OUT/ran; test $(wc -l <$OUT/ran) -gt 1 || exec sleep 1000"
        self.agent.run_as(0, "drain", "gpu:0", "--reason", "its fan is broken")
        front = self.agent.start_as(ADA, "run", "--preemptible", "-n", "7", "--", "/bin/sh", "-c", script)
        self.addCleanup(lambda: [front.kill(), front.communicate()])
        self.assertTrue(eventually(lambda: os.path.exists(ran)))
        self.server.notice = True
        self.assertTrue(eventually(lambda: len(self.drains()) == 8))
        self.assertTrue(eventually(lambda: self.agent.page()["jobs"][0]["state"] == "waiting"))
        self.server.notice = False
        _, err = front.communicate(timeout=60)
        self.assertEqual(front.returncode, 0, err)
        self.assertIn("Google Cloud takes this machine away (preempted); queued again", err)
        self.assertEqual([drain["reason"] for drain in self.drains()], ["its fan is broken"])

    def test_drains_of_a_machine_that_came_back_end(self):
        self.start("azure")
        self.server.notice = True
        self.assertTrue(eventually(lambda: len(self.drains()) == 8))
        self.assertIn("Azure takes this machine away (Preempt)", self.drains()[0]["reason"])
        self.agent.kill()
        self.server.notice = False
        self.start("azure")
        self.assertTrue(eventually(lambda: not self.drains()))

    def test_drains_of_a_notice_end_where_nobody_asks_any_more(self):
        self.start("gcp")
        self.agent.run_as(0, "drain", "gpu:0", "--reason", "its fan is broken")
        self.server.notice = True
        self.assertTrue(eventually(lambda: len(self.drains()) == 8))
        self.agent.kill()
        self.agent.start()
        self.assertTrue(eventually(lambda: len(self.drains()) == 1))
        self.assertEqual(self.drains()[0]["reason"], "its fan is broken")

    def test_a_cloud_that_does_not_answer_changes_nothing(self):
        self.start("none", "auto")
        self.assertTrue(eventually(lambda: "no cloud's metadata address answers" in self.agent.said()))
        self.assertEqual(self.agent.run_as(ADA, "run", "-q", "--", "true").returncode, 0)

    def test_an_address_is_one(self):
        for words in (["--spot", "gcp", "--spot-address", "nowhere"], ["--spot", "other"]):
            with self.assertRaises(RuntimeError):
                self.agent.start(words=words)


if __name__ == "__main__":
    if os.geteuid() != 0:
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
