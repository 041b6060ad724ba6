#!/usr/bin/python3
"""`remuda agent` and users who do not trust each other: real processes of several users, one pool.

agent_test.py REMUDA MACHINE     exit status 77 where this process cannot become other users
"""
import json
import os
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

from agent_client import Agent, Connection, as_user, end_unless_held, eventually, is_alive

REMUDA, MACHINE = sys.argv[1], sys.argv[2]
ADA, BOB = 61001, 61002


class AgentTest(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.agent = Agent(REMUDA, MACHINE, self.scratch.name).start()
        self.addCleanup(self.agent.end)

    def leases(self):
        return self.agent.page().get("leases", [])

    def hold(self, uid, script="sleep 1000", *flags):
        """A job of this user that runs; its front."""
        before = len(self.leases())
        front = self.agent.start_as(uid, "run", *flags, "--", "/bin/sh", "-c", script)
        self.addCleanup(lambda: [front.kill(), front.communicate()])
        self.assertTrue(eventually(lambda: len(self.leases()) > before))
        return front

    # -- what users see and may do

    def test_runs_jobs_and_tells_how_they_ended(self):
        ran = self.agent.run_as(ADA, "run", "-q", "--", "/bin/sh", "-c", "id -u; echo $REMUDA_DEVICES; exit 7")
        self.assertEqual((ran.returncode, ran.stdout.split()[0]), (7, str(ADA)), ran.stderr)
        why = json.loads(self.agent.run_as(ADA, "why", "--json", "1").stdout)["jobs"][0]
        self.assertEqual((why["uid"], why["exit_status"], why["state"]), (ADA, 7, "ended"))
        self.assertEqual(self.leases(), [])

    def test_others_see_who_holds_what_and_no_more(self):
        front = self.hold(ADA, "sleep 1000; echo secret-word")
        seen = self.agent.run_as(BOB, "ps", "--json")
        self.assertEqual(json.loads(seen.stdout)["leases"][0]["user"], str(ADA))
        for words in (["ps", "--json"], ["queue", "--json"], ["why", "--json", "1"], ["ps"]):
            self.assertNotIn("secret-word", self.agent.run_as(BOB, *words).stdout)
        self.assertIn("secret-word", self.agent.run_as(ADA, "ps", "--json").stdout)
        self.assertIn("secret-word", self.agent.run_as(0, "ps", "--json").stdout, "root sees all")
        front.send_signal(signal.SIGTERM)

    def test_nobody_ends_reads_or_outranks_anothers_job(self):
        self.hold(ADA, "sleep 1000", "-n", "8")
        refused = self.agent.run_as(BOB, "cancel", "1")
        self.assertEqual((refused.returncode, refused.stderr), (2, f"remuda: job 1 belongs to {ADA}\n"))
        outranked = self.agent.run_as(BOB, "run", "--priority", "5", "--", "true")
        self.assertEqual(outranked.returncode, 2, outranked)
        self.assertIn(f"{BOB} may give priority 0 at the most, not 5", outranked.stderr)
        busy = self.agent.run_as(BOB, "run", "--no-wait", "--", "true")
        self.assertEqual(busy.returncode, 4, busy)
        self.assertEqual(self.agent.run_as(ADA, "cancel", "1").returncode, 0)
        self.assertTrue(eventually(lambda: not self.leases()))

    def test_waiting_jobs_are_changed_by_their_users_only(self):
        self.hold(ADA, "sleep 1000", "-n", "8")
        waiter = self.agent.start_as(BOB, "run", "-q", "--name", "later", "--", "true")
        self.assertTrue(eventually(lambda: len(self.agent.page()["jobs"]) == 2))
        for words in (["pause", "2"], ["reprioritize", "2", "-5"], ["cancel", "--user", str(BOB)]):
            self.assertEqual(self.agent.run_as(ADA, *words).returncode, 2, words)
        raised = self.agent.run_as(BOB, "reprioritize", "2", "5")
        self.assertIn(f"{BOB} may give priority 0 at the most, not 5", raised.stderr)
        self.assertEqual(self.agent.run_as(BOB, "pause", "2").returncode, 0)
        self.assertEqual(self.agent.run_as(ADA, "cancel", "1").returncode, 0)
        self.assertTrue(eventually(lambda: not self.leases()))
        time.sleep(0.5)
        self.assertIsNone(waiter.poll(), "it is paused")
        self.assertEqual(self.agent.run_as(BOB, "resume", "2").returncode, 0)
        waiter.communicate(timeout=60)
        self.assertEqual(waiter.returncode, 0)

    def test_a_policy_binds_users_from_then_on(self):
        with open(self.agent.policy, "w", encoding="utf-8") as policy:
            policy.write('[[limit]]\ndevices = 2\npriority = 7\n')
        time.sleep(2.1)
        refused = self.agent.run_as(ADA, "run", "-n", "3", "--", "true")
        self.assertEqual(refused.returncode, 2, refused)
        self.assertIn(f"{ADA} may have 2 devices at once, and 3 are wanted ({self.agent.policy}:2)", refused.stderr)
        self.assertEqual(self.agent.run_as(ADA, "run", "-q", "-n", "2", "--priority", "7", "--", "true").returncode, 0)
        self.assertEqual(self.agent.run_as(0, "run", "-q", "-n", "3", "--", "true").returncode, 0)

    def test_jobs_are_selected_by_name(self):
        self.hold(ADA, "sleep 1000", "-n", "8", "--name", "sweep")
        ended = self.agent.run_as(ADA, "cancel", "--name", "sweep")
        self.assertEqual((ended.returncode, ended.stdout), (0, "Cancelled job: 1\n"))
        self.assertTrue(eventually(lambda: not self.leases()))
        self.assertEqual(self.agent.run_as(BOB, "wait", "1").returncode, 143)

    def test_only_an_administrator_drains(self):
        refused = self.agent.run_as(ADA, "drain", "0", "--reason", "mine")
        self.assertEqual((refused.returncode, refused.stderr),
                         (2, "remuda: an agent serves this pool, so only root may drain devices, and grant them again\n"))
        drained = self.agent.run_as(0, "drain", "0", "--reason", "the fan is broken")
        self.assertEqual(drained.returncode, 0, drained)
        self.assertIn("is drained: the fan is broken (root", self.agent.run_as(ADA, "list").stdout)
        self.assertEqual(self.agent.run_as(ADA, "run", "--no-wait", "-n", "8", "--", "true").returncode, 4)
        self.agent.kill()
        self.agent.start()
        self.assertEqual(self.agent.run_as(0, "undrain", "0").returncode, 0)
        self.assertEqual(self.agent.run_as(ADA, "run", "-n", "8", "--", "true").returncode, 0)

    def test_jobs_begin_when_they_are_to_and_say_how_they_ended(self):
        told = os.path.join(self.agent.environment(ADA)["HOME"], "told")
        start = time.time()
        ran = self.agent.run_as(ADA, "run", "-q", "--begin", "2s", "--at-end", f"echo $REMUDA_ENDED_HOW > {told}", "--", "true")
        self.assertEqual(ran.returncode, 0, ran)
        self.assertGreaterEqual(time.time() - start, 1.9)
        with open(told, encoding="utf-8") as text:
            self.assertEqual(text.read(), "done\n")

    def test_logs_are_their_users_own(self):
        job = self.agent.run_as(ADA, "run", "-d", "--", "/bin/sh", "-c", "echo words of ada").stdout.strip()
        self.assertTrue(eventually(lambda: "words of ada" in self.agent.run_as(ADA, "logs", job).stdout))
        others = self.agent.run_as(BOB, "logs", job)
        self.assertNotEqual(others.returncode, 0)
        self.assertNotIn("words of ada", others.stdout + others.stderr)
        self.assertTrue(eventually(lambda: not self.leases()))
        again = self.agent.run_as(BOB, "rerun", job)
        self.assertIn("belongs to", again.stderr)

    def test_arrays_and_tasks_run_as_without_an_agent(self):
        array = self.agent.run_as(ADA, "run", "-q", "--array", "0-3", "--", "/bin/sh", "-c",
                                  "exit $((REMUDA_ARRAY_INDEX == 2))")
        self.assertEqual(array.returncode, 1, array)
        self.assertIn("3 of 4", json.dumps(json.loads(self.agent.run_as(ADA, "why", "--json", "1").stdout)))
        self.assertEqual(self.leases(), [])

    def test_a_shell_holds_devices_until_it_ends(self):
        with subprocess.Popen(["/bin/sh"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, user=ADA, group=ADA,
                              extra_groups=[], env=self.agent.environment(ADA), cwd="/") as shell:
            shell.stdin.write(f'eval "$({self.agent.remuda} hold --export --machine {self.agent.machine})"; '
                              'echo "$REMUDA_DEVICES"\n')
            shell.stdin.flush()
            self.assertTrue(shell.stdout.readline().strip())
            self.assertEqual(len(self.leases()), 1)
        self.assertTrue(eventually(lambda: not self.leases()))

    def test_what_a_request_says_of_its_user_is_ignored(self):
        def submit():
            connection = Connection(self.agent.socket)
            job = connection.submit(user="root", uid=0, keeper={"pid": 1}, cancelled=True)["result"]["job"]
            return connection.find(job)
        job = as_user(BOB, submit)
        self.assertEqual((job["uid"], job["user"], job.get("cancelled", False)), (BOB, str(BOB), False))
        self.assertNotEqual(job["keeper"]["pid"], 1)

    # -- retries and restarts

    def test_a_request_that_is_sent_again_submits_once(self):
        self.hold(ADA, "sleep 1000", "-n", "8")

        def twice(request):
            return [Connection(self.agent.socket).submit(id=request)["result"]["job"] for _ in range(2)]
        one, two = as_user(BOB, lambda: twice("same-1"))
        self.assertEqual(one, two)
        other, _ = as_user(ADA, lambda: twice("same-1"))
        self.assertNotEqual(other, one, "another user's request")
        self.agent.run_as(ADA, "cancel", "1")

    def test_a_restart_ends_no_job_and_loses_no_lease(self):
        out = os.path.join(self.agent.environment(ADA)["HOME"], "ended")
        front = self.hold(ADA, f"trap 'exit 3' TERM; while ! [ -e {out} ]; do sleep 0.05; done; exit 9", "-n", "5")
        waiter = self.agent.start_as(BOB, "run", "-q", "-n", "4", "--", "true")
        self.assertTrue(eventually(lambda: len(self.agent.page()["jobs"]) == 2))
        for _ in range(5):
            self.agent.kill()
            self.agent.start()
            self.assertEqual(len(self.leases()), 5)
            self.assertIsNone(front.poll())
        open(out, "w").close()
        front.communicate(timeout=60)
        self.assertEqual(front.returncode, 9)
        waiter.communicate(timeout=60)
        self.assertEqual(waiter.returncode, 0)

    def test_without_its_agent_no_command_makes_a_pool(self):
        self.agent.kill()
        for words in (["run", "--", "true"], ["ps"], ["queue"], ["cancel", "1"], ["run", "-d", "--", "true"]):
            said = self.agent.run_as(ADA, *words)
            self.assertEqual(said.returncode, 5, said)
            self.assertIn("systemctl start remuda-agent.socket", said.stderr)
        self.assertIn("Who holds a lease is not known: the agent", self.agent.run_as(ADA, "list").stdout)
        home = self.agent.environment(ADA)["HOME"]
        self.assertEqual([name for _, _, names in os.walk(home) for name in names if name == "pool.db"], [])
        self.agent.start()

    def test_a_second_agent_is_refused(self):
        second = subprocess.run([self.agent.remuda, "agent", "--machine", self.agent.machine, "--pool", self.agent.pool,
                                 "--socket", self.agent.socket + "2"], capture_output=True, text=True)
        self.assertEqual((second.returncode, second.stderr),
                         (1, f"remuda: another agent serves {self.agent.pool}\n"))

    def test_the_pool_is_its_agents_alone(self):
        self.assertEqual(os.stat(self.agent.pool).st_mode & 0o777, 0o700)
        self.assertEqual(os.stat(os.path.join(self.agent.pool, "pool.db")).st_mode & 0o777, 0o600)

    def test_a_strict_umask_keeps_nobody_out(self):
        self.agent.stop()
        shutil.rmtree(os.path.dirname(self.agent.socket))
        before = os.umask(0o077)
        try:
            self.agent.start()
        finally:
            os.umask(before)
        self.assertTrue(self.is_served())

    def test_who_takes_all_descriptors_ends_no_job_of_others(self):
        self.agent.stop()
        self.agent.start(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (400, 400)))
        self.hold(BOB, "sleep 1000", "-n", "8")

        def take():
            connection = Connection(self.agent.socket)
            return [connection.submit().get("result", {}).get("job", 0) for _ in range(500)][-1]
        self.assertGreater(as_user(ADA, take), 400)
        self.assertTrue(self.is_served())
        self.assertTrue(eventually(lambda: len(self.agent.page()["jobs"]) == 1), "they end with their keeper")
        self.assertEqual(len(self.leases()), 8)
        self.agent.run_as(BOB, "cancel", "1")

    # -- keepers that lie

    def keep_badly(self, before_word, **word):
        """A keeper that starts a process which leaves it in every way, and then does what it should not."""
        def work():
            connection = Connection(self.agent.socket)
            job = connection.submit(count=1)["result"]["job"]
            while connection.find(job)["state"] != "running":
                connection.receive()
            reader, writer = os.pipe()
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    os.environ.clear()
                    os.write(writer, str(os.getpid()).encode())
                    os.execve("/bin/sleep", ["sleep", "1000"], {})
                os._exit(0)
            os.wait()
            escaped = end_unless_held(connection, job, int(os.read(reader, 16)))
            before_word(connection, job)
            if word:
                connection.apply("end", job=job, **word)
                time.sleep(0.2)
            return job, escaped
        return as_user(ADA, work)

    def test_a_lease_ends_with_its_last_process_whatever_its_keeper_says(self):
        job, escaped = self.keep_badly(lambda *_: None, exit_status=0, why="all is well")
        self.assertTrue(eventually(lambda: not self.leases()))
        self.assertFalse(is_alive(escaped), "it outlived its lease")
        ended = Connection(self.agent.socket).find(job)
        self.assertEqual((ended["state"], ended.get("exit_status", 0), ended["why"]), ("ended", 0, "all is well"))

    def test_a_keeper_that_is_gone_leaves_nothing(self):
        job, escaped = self.keep_badly(lambda *_: None)
        self.assertTrue(eventually(lambda: not self.leases()))
        self.assertFalse(is_alive(escaped))
        self.assertEqual(Connection(self.agent.socket).find(job)["exit_status"], 125)

    def test_a_keeper_that_does_not_end_its_job_is_ended(self):
        def ignore(connection, job):
            connection.apply("cancel", jobs=[job])
            time.sleep(1000)
        child = os.fork()
        if child == 0:
            try:
                self.keep_badly(ignore)
            finally:
                os._exit(0)
        self.assertTrue(eventually(lambda: self.leases()))
        self.assertTrue(eventually(lambda: not self.leases()))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        self.assertIn("did not end in its grace time", Connection(self.agent.socket).find(1)["why"])

    def test_a_time_limit_holds_without_its_keeper(self):
        front = self.hold(ADA, "sleep 1000", "--time-limit", "1", "--grace", "0")
        keeper = int(subprocess.run(["pgrep", "-P", str(front.pid)], capture_output=True, text=True).stdout.split()[0])
        os.kill(keeper, signal.SIGSTOP)
        self.assertTrue(eventually(lambda: not self.leases()))
        self.assertIn("time limit", Connection(self.agent.socket).find(1)["why"])

    def test_a_process_of_a_job_keeps_no_other(self):
        def twice():
            connection = Connection(self.agent.socket)
            first = connection.submit(count=1)["result"]["job"]
            while connection.find(first)["state"] != "running":
                connection.receive()
            reader, writer = os.pipe()
            child = os.fork()
            if child == 0:
                answer = Connection(self.agent.socket).submit(count=1)
                os.write(writer, answer.get("error", {}).get("message", "taken").encode())
                os._exit(0)
            said = os.read(reader, 1000).decode()
            os.waitpid(child, 0)
            return [said, connection.submit(count=1).get("error", {}).get("message", "taken")]
        said = as_user(ADA, twice)
        if said != ["taken"] * 2:
            self.assertEqual(said, ["the process that asks is one of job 1, and stays in it: start jobs from outside of it"] * 2)
        else:
            self.assertFalse(Connection(self.agent.socket).find(1).get("cgroup"), "it left the cgroup of its job")

    def test_nobody_but_its_keeper_speaks_for_a_job(self):
        self.hold(ADA)

        def forge():
            connection = Connection(self.agent.socket)
            return [connection.apply(word.pop("operation"), **word)["error"]["message"] for word in
                    [{"operation": "end", "job": 1}, {"operation": "requeue", "job": 1},
                     {"operation": "give_way", "job": 1, "waits": True}, {"operation": "count_restart", "job": 1}]]
        for uid in (ADA, BOB):
            self.assertEqual(as_user(uid, forge), ["job 1 is kept by another process"] * 4)
        self.assertEqual(len(self.leases()), 1)
        self.agent.run_as(ADA, "cancel", "1")

    # -- hostile clients

    def is_served(self):
        """Another user; within the patience of a connection."""
        return as_user(BOB, lambda: "result" in Connection(self.agent.socket).ask("own"))

    def test_garbage_is_refused_and_others_are_served(self):
        def throw():
            said = []
            for payload in (b"{}", b"\xff" * 100, b"[" * 1000, b'{"id":"a","ask":"apply"}',
                            b'{"id":"a","ask":"read","job":1e999}'):
                connection = Connection(self.agent.socket, greets=False)
                connection.send(payload)
                said.append("error" in connection.receive())
                said.append(connection.socket.recv(1) == b"")
            for raw in (struct.pack(">I", 0), struct.pack(">I", 1 << 31), os.urandom(4096) + b"\xff"):
                connection = Connection(self.agent.socket, greets=False)
                connection.socket.sendall(b"\xff" + raw)
                said.append("error" in connection.receive())
            return said
        self.assertEqual(set(as_user(ADA, throw)), {True})
        self.assertTrue(self.is_served())

    def test_a_thousand_idle_connections_and_floods_delay_nobody(self):
        def crowd():
            held = []
            for number in range(1000):
                connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                connection.connect(self.agent.socket)
                if number % 2:
                    connection.sendall(struct.pack(">I", 1000) + b"half")
                held.append(connection)
            flood = [Connection(self.agent.socket) for _ in range(20)]
            frame = json.dumps({"id": "x", "ask": "read"}).encode()
            for connection in flood:
                connection.socket.setblocking(False)
            os.write(ready, b"x")
            end = time.monotonic() + 3
            while time.monotonic() < end:
                for connection in flood:
                    try:
                        connection.send(frame)
                    except OSError:
                        pass
            return len(held)
        reader, ready = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                as_user(ADA, crowd, keeps=[ready])
            finally:
                os._exit(0)
        os.read(reader, 1)
        for _ in range(10):
            self.assertTrue(self.is_served())
        os.waitpid(child, 0)


if __name__ == "__main__":
    if os.geteuid() != 0:
        print("this needs root, to act as several users")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:])
