#!/usr/bin/python3
"""Jobs of `remuda run -d` under `remuda agent`: they wait without a process, and get one when their turn has come.

agent_revival_test.py REMUDA MACHINE     exit status 77 where this process cannot act as several users

The users have names and homes in a /etc/passwd that only this test sees.
"""
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from agent_client import Agent, Connection, as_user, eventually, has_own_mounts, is_alive, name_users

REMUDA, MACHINE = sys.argv[1], sys.argv[2]
ADA, BOB = 61011, 61012  # of no other test: all processes of ada's are killed


class AgentRevivalTest(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.agent = Agent(REMUDA, MACHINE, self.scratch.name)
        name_users(self.agent, **{"remuda-ada": ADA, "remuda-bob": BOB})
        self.addCleanup(subprocess.run, ["umount", "/etc/passwd"], check=True)
        self.agent.start()
        self.addCleanup(self.agent.end)
        self.all = self.agent.start_as(BOB, "run", "-n", "8", "--", "sleep", "1000")
        self.addCleanup(self.all.communicate)
        self.addCleanup(self.all.kill)
        self.assertTrue(eventually(lambda: self.agent.page().get("leases")))

    def submit(self, script, *flags, **environment):
        """A job that waits in the background, as a record, and its number."""
        job = self.submit_kept(script, *flags, **environment)
        self.assertTrue(eventually(lambda: self.find(job).get("unkept") and not self.keepers()), self.find(job))
        return job

    def submit_kept(self, script, *flags, **environment):
        """The same, which keeps its process where a variable of the environment cannot be kept without it."""
        self.agent.users_environment = environment
        ran = self.agent.run_as(ADA, "run", "-d", *flags, "--", "/bin/sh", "-c", script)
        self.agent.users_environment = {}
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return int(ran.stdout)

    def find(self, job):
        connection = Connection(self.agent.socket)
        found = connection.find(job)
        connection.close()
        return found

    def keepers(self):
        """All processes of ada's, as each of them is of `remuda run -d`."""
        listed = subprocess.run(["pgrep", "-u", str(ADA)], capture_output=True, text=True).stdout.split()
        return [int(pid) for pid in listed if is_alive(int(pid))]

    def lose_keepers(self, number=signal.SIGKILL):
        """Those that there are; the agent may start others at once."""
        lost = self.keepers()
        for pid in lost:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass  # it has ended with the one before
        self.assertTrue(eventually(lambda: not any(is_alive(pid) for pid in lost)))

    def waits_as_record(self, job):
        found = self.find(job)
        return found["state"] == "waiting" and found.get("unkept") and not found.get("keeper_failed") and not self.keepers()

    def free(self):
        self.all.kill()
        self.all.wait()

    def wait(self, job):
        self.assertTrue(eventually(lambda: self.find(job)["state"] == "ended"), self.find(job))
        return self.find(job)

    def test_they_run_after_a_restart_of_the_machine_as_they_would_have(self):
        out = os.path.join(self.agent.environment(ADA)["HOME"], "out")
        job = self.submit(f'umask >{out}; pwd >>{out}; echo "$WORD" >>{out}; id -un >>{out}; '
                          f'echo "$CUDA_VISIBLE_DEVICES" | grep -c . >>{out}; echo logged', WORD="two words\nö")
        self.agent.kill()
        self.agent.start()
        self.assertTrue(self.waits_as_record(job), self.find(job))
        self.free()
        ended = self.wait(job)
        self.assertEqual((ended.get("exit_status", 0), ended["uid"]), (0, ADA), ended)
        with open(out) as file:
            said = file.read().splitlines()
        home = self.agent.environment(ADA)["HOME"]
        self.assertEqual(said[:2] + said[-2:], ["0022", home, "remuda-ada", "1"])
        self.assertEqual(said[2:4], ["two words", "ö"])
        self.assertEqual(os.stat(out).st_uid, ADA)
        self.assertEqual(self.agent.run_as(ADA, "logs", str(job)).stdout, "logged\n")
        lines = [os.path.join(path, name) for path, _, names in os.walk(home) for name in names]
        self.assertFalse([name for name in lines if "environment" in name], "it is kept no longer than its job")

    def test_they_have_the_groups_and_limits_of_their_user_and_nothing_of_the_agents(self):
        home = self.agent.environment(ADA)["HOME"]
        job = self.submit(f'grep -E "^(Uid|Gid|Groups|CapEff)" /proc/self/status >{home}/out; '
                          f'cat /proc/self/oom_score_adj >>{home}/out')
        self.free()
        self.wait(job)
        with open(os.path.join(home, "out")) as file:
            self.assertEqual([line.split() for line in file],
                             [["Uid:"] + [str(ADA)] * 4, ["Gid:"] + [str(ADA)] * 4, ["Groups:", str(ADA)],
                              ["CapEff:", "0" * 16], ["0"]])

    def test_many_wait_without_a_process_and_run_in_their_order(self):
        out = os.path.join(self.agent.environment(ADA)["HOME"], "out")
        jobs = [self.submit(f"echo {number} >>{out}", "-n", "8") for number in range(4)]
        self.assertEqual(self.keepers(), [])
        self.free()
        for job in jobs:
            self.assertEqual(self.wait(job).get("exit_status", 0), 0)
        with open(out) as file:
            self.assertEqual(file.read().split(), ["0", "1", "2", "3"])

    def test_they_have_the_limits_that_they_were_submitted_with(self):
        out = os.path.join(self.agent.environment(ADA)["HOME"], "out")
        limited = os.path.join(self.scratch.name, "limited")
        with open(limited, "w") as file:
            file.write(f'#!/bin/sh\nulimit -S -n 77\nulimit -H -n 99\numask 027\nexec {self.agent.remuda} "$@"\n')
        os.chmod(limited, 0o755)
        remuda, self.agent.remuda = self.agent.remuda, limited
        job = self.submit(f"ulimit -S -n >{out}; ulimit -H -n >>{out}; umask >>{out}")
        self.agent.remuda = remuda
        self.free()
        self.wait(job)
        with open(out) as file:
            self.assertEqual(file.read().split(), ["77", "99", "0027"])

    def test_a_session_that_ends_takes_none_with_it_and_cancel_does(self):
        job = self.submit_kept("true", PART="\udce4")
        self.lose_keepers(signal.SIGTERM)
        self.assertTrue(eventually(lambda: self.waits_as_record(job)), self.find(job))
        self.assertEqual(self.agent.run_as(ADA, "cancel", str(job)).returncode, 0)
        self.assertEqual(self.wait(job)["why"], "was cancelled while it waited")
        self.assertTrue(eventually(lambda: not self.keepers()))

    def test_what_is_kept_of_the_environment_goes_when_one_is_cancelled(self):
        self.agent.users_environment = {"SECRET": "x"}
        job, other = self.submit("true"), self.submit("true")
        kept = [glob.glob(os.path.join(self.agent.environment(ADA)["HOME"], ".local/state/remuda/lines/*", f"{one}.environment.json"))
                for one in (job, other)]
        self.assertEqual([len(paths) for paths in kept], [1, 1])
        self.assertEqual(os.stat(kept[0][0]).st_mode & 0o777, 0o600)
        self.assertEqual(self.agent.run_as(ADA, "cancel", str(job)).returncode, 0)
        self.assertFalse(os.path.exists(kept[0][0]))
        self.assertTrue(os.path.exists(kept[1][0]), "that one still waits")

    def test_the_end_of_one_that_is_cancelled_while_it_has_no_process_is_told(self):
        out = os.path.join(self.agent.environment(ADA)["HOME"], "out")
        job = self.submit("true", "--at-end", f'echo "$REMUDA_ENDED_JOB $REMUDA_ENDED_HOW" >{out}.new; mv {out}.new {out}')
        self.assertEqual(self.agent.run_as(ADA, "cancel", str(job)).returncode, 0)
        self.assertEqual(self.wait(job)["why"], "was cancelled while it waited")
        self.assertTrue(eventually(lambda: os.path.exists(out)))
        with open(out) as file:
            self.assertEqual(file.read().split(), [str(job), "cancelled"])

    def test_the_end_of_one_is_told_where_a_job_before_it_has_failed(self):
        out = os.path.join(self.agent.environment(ADA)["HOME"], "out")
        first = self.submit("exit 3")
        job = self.submit("true", "--after", str(first), "--at-end",
                          f'echo "$REMUDA_ENDED_HOW $REMUDA_ENDED_WHY" >{out}.new; mv {out}.new {out}')
        self.free()
        why = f"job {first}, which had to end well before, did not"
        self.assertEqual(self.wait(job)["why"], why)
        self.assertTrue(eventually(lambda: os.path.exists(out)))
        with open(out) as file:
            self.assertEqual(file.read(), f"cancelled {why}\n")

    def test_a_keeper_that_is_killed_alone_is_started_again(self):
        job = self.submit_kept("exit 7", PART="\udce4")
        keeper = self.find(job)["keeper"]["pid"]
        os.kill(keeper, signal.SIGKILL)
        self.assertTrue(eventually(lambda: self.waits_as_record(job)), self.find(job))
        self.free()
        self.assertEqual(self.wait(job).get("exit_status"), 7)

    def test_an_upgrade_of_the_program_while_the_agent_runs_does_no_harm(self):
        job = self.submit("exit 7")
        newer = self.agent.remuda + ".new"
        shutil.copy(self.agent.remuda, newer)
        os.rename(newer, self.agent.remuda)  # as dpkg does it
        self.free()
        self.assertEqual(self.wait(job).get("exit_status"), 7)

    def test_one_that_was_granted_and_had_not_begun_waits_on(self):
        """As where the machine goes down: devices of other jobs come free while the keeper goes, too."""
        job = self.submit_kept("exit 7", PART="\udce4")
        for pid in self.keepers():
            os.kill(pid, signal.SIGSTOP)
        self.free()
        self.assertTrue(eventually(lambda: self.find(job)["state"] == "running"), self.find(job))
        self.lose_keepers()
        ended = self.wait(job)
        self.assertEqual((ended.get("exit_status"), ended.get("restarts", 0)), (7, 0), ended)

    def test_one_that_runs_is_never_run_again(self):
        """Neither where its keeper is killed alone, nor where everything of it is, as when the machine goes down."""
        for lose in (lambda job: os.kill(self.find(job)["keeper"]["pid"], signal.SIGKILL), lambda job: self.lose_keepers()):
            ran = os.path.join(self.agent.environment(ADA)["HOME"], "ran")
            job = self.submit_kept(f"echo >>{ran}; exec sleep 1000")
            if self.all.poll() is None:
                self.free()
            self.assertTrue(eventually(lambda: os.path.exists(ran)), self.find(job))
            self.assertTrue(eventually(lambda: self.find(job).get("begun")), self.find(job))
            lose(job)
            self.wait(job)
            self.assertEqual(os.path.getsize(ran), 1)
            self.assertTrue(eventually(lambda: not self.keepers()))
            time.sleep(1)  # in which a lost keeper would have been started again
            self.assertEqual((self.keepers(), os.path.getsize(ran)), ([], 1))
            os.unlink(ran)

    def test_nobody_else_takes_them_over(self):
        job = self.submit("true")
        home = self.agent.environment(ADA)["HOME"]
        shutil.rmtree(os.path.join(home, ".local"))  # so that it cannot be gone on with
        self.free()
        self.assertTrue(eventually(lambda: self.find(job).get("keeper_failed")))
        self.assertEqual(self.agent.page().get("leases", []), [], "nothing is held for it")

        def take():
            return Connection(self.agent.socket).apply("take_over", job=job)["error"]["message"]
        self.assertEqual(as_user(BOB, take), f"job {job} belongs to remuda-ada")
        refused = self.agent.run_as(BOB, "rerun", str(job))
        self.assertEqual(refused.returncode, 2)
        queue = json.loads(self.agent.run_as(ADA, "queue", "--json").stdout)
        self.assertIn("which is tried again", json.dumps(queue))
        self.agent.run_as(ADA, "cancel", str(job))

    def test_a_job_in_the_foreground_ends_with_its_process(self):
        front = self.agent.start_as(ADA, "run", "--", "true")
        self.assertTrue(eventually(lambda: len(self.agent.page()["jobs"]) == 2))
        self.lose_keepers()
        front.communicate()
        self.assertTrue(eventually(lambda: self.find(2)["state"] == "ended"))


if __name__ == "__main__":
    if os.geteuid() != 0 or not shutil.which("unshare") or not shutil.which("runuser"):
        print("this needs root, to act as several users, unshare(1) and runuser(1)")
        sys.exit(77)
    if not has_own_mounts():
        print("this needs mounts of its own, which there are not where / is no mount, as in a chroot")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:])
