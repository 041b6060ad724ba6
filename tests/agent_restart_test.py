#!/usr/bin/python3
"""Every command that lasts, over each way in which the agent of a machine comes to be started anew.

agent_restart_test.py REMUDA MACHINE [OTHER]     exit status 77 where this process cannot act as several users

OTHER is the program of another version, which takes the place of REMUDA, and gives it back, while commands of each are
under way. Without it the same program is installed anew.
"""
import fcntl
import os
import pty
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import unittest

from agent_client import PATIENCE_S, Agent, eventually

REMUDA, MACHINE = sys.argv[1:3]
OTHER = sys.argv[3] if len(sys.argv) > 3 else REMUDA
ADA = 61041
STATUS = 7
PART = ("--share", "10%")


def put(program, agent):
    """As an installation does: what runs keeps the file that it was started from."""
    shutil.copy(program, agent.remuda + ".new")
    os.rename(agent.remuda + ".new", agent.remuda)


class Screen:
    """What `remuda top` has written to a terminal."""

    def __init__(self, agent):
        controller, terminal = pty.openpty()
        fcntl.ioctl(controller, termios.TIOCSWINSZ, struct.pack("HHHH", 100, 160, 0, 0))
        self.controller, self.text = controller, b""
        self.process = subprocess.Popen([agent.remuda, "top", *agent.machine_words], stdin=terminal, stdout=terminal,
                                        stderr=terminal, start_new_session=True, user=ADA, group=ADA, extra_groups=[],
                                        env={**agent.environment(ADA), "TERM": "xterm", "LC_ALL": "C.UTF-8"})
        os.close(terminal)
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self):
        try:
            while more := os.read(self.controller, 1 << 16):
                self.text += more
        except OSError:
            return  # it has ended

    def end(self):
        self.process.kill()
        self.process.wait()
        self.thread.join()
        os.close(self.controller)


class RestartTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.agent = Agent(REMUDA, MACHINE, self.scratch.name).start()
        self.addCleanup(self.agent.end)
        self.home = self.agent.environment(ADA)["HOME"]
        self.go = os.path.join(self.home, "go")
        self.until_go = f"until [ -e {self.go} ]; do sleep 0.05; done"
        self.work = ("/bin/sh", "-c", f"{self.until_go}; echo done; exit {STATUS}")
        self.under_way = {}  # by name: the process, and the status with which it is to end

    def start(self, name, *words, status=STATUS):
        process = self.agent.start_as(ADA, *words)
        self.addCleanup(lambda: [process.kill(), process.communicate()])
        self.under_way[name] = (process, status)
        return process

    def start_job(self, name, *words, job=(), **options):
        self.start(name, *words, "--name", name, *PART, "--", *(job or self.work), **options)

    def await_job(self, name, condition=lambda job: job.get("begun")):
        """The number of a job that is open, once that is so."""
        def found():
            for job in self.agent.page()["jobs"]:
                if job.get("name") == name and "array_index" not in job and condition(job):
                    return str(job["id"])
            return None
        return eventually(found) or self.fail(f"{name} has not begun")

    def start_commands(self):
        tasks = os.path.join(self.home, "tasks")
        with open(tasks, "w", encoding="utf-8") as file:
            file.write(f"{self.until_go}; exit {STATUS}\n" + "true\n" * 3)
        self.start_job("run", "run")
        self.start_job("array", "run", "--array", "1-3%1", "--at-end", f"echo $REMUDA_ENDED_HOW >{self.home}/told")
        self.start("tasks", "run", "--name", "tasks", "--tasks", tasks)
        self.start_job("each", "run", "--each", "-n", "2")
        self.start_job("hold", "hold")
        self.start_job("jupyter", "run", "-q", "--with-parent")
        self.start_job("back-off", "run", "--restart", "9", "--restart-on", "1",
                       job=("/bin/sh", "-c", f"[ -e {self.go} ] && exit {STATUS}; exit 1"))
        self.start_job("background", "run", "-d", status=0)
        self.start_job("entered", "run", job=("/bin/sh", "-c", f"{self.until_go}; sleep 2; exit {STATUS}"))
        self.start("waits", "run", "--name", "waits", "-n", "8", "--", "true", status=0)
        array = self.await_job("array", lambda job: True)
        run, background, entered = map(self.await_job, ("run", "background", "entered"))
        self.start("wait", "wait", run)
        self.start("wait for an array", "wait", array)
        self.start_job("after an array", "run", "--after-any", array)
        self.start("logs", "logs", "-f", background, status=0)
        self.start("exec", "exec", entered, "--", *self.work)
        self.start_for_others()
        self.addCleanup(lambda: open(self.go, "w", encoding="utf-8").close())

    def start_for_others(self):
        """Those that hold devices for a process which is not theirs."""
        for name, *words in (("adopt", "adopt"), ("hold --export", "hold", "--export", "--for")):
            process = subprocess.Popen(self.work, user=ADA, group=ADA, extra_groups=[], stdout=subprocess.DEVNULL)
            self.addCleanup(lambda one=process: [one.kill(), one.wait()])
            began = self.agent.run_as(ADA, *words, str(process.pid), "--name", name, *PART)
            self.assertEqual(began.returncode, 0, began.stderr)
            self.under_way[name] = (process, STATUS)

    def watch(self):
        """Starts those that show what is there; what says whether they show a job of that name."""
        web, snapshot = self.agent.start_web(ADA)
        self.addCleanup(web.communicate, timeout=PATIENCE_S)
        self.addCleanup(web.send_signal, signal.SIGTERM)
        screen = Screen(self.agent)
        self.addCleanup(screen.end)

        def shown(name):
            leases = snapshot().get("jobs", {}).get("leases", [])
            return {"web": any(lease.get("name") == name for lease in leases), "top": name.encode() in screen.text}
        return shown

    def check_ends(self):
        """Each has ended as it should, and so has its job."""
        wrong, end_s = {}, time.monotonic() + PATIENCE_S
        for name, (process, status) in self.under_way.items():
            try:
                out, err = process.communicate(timeout=max(0.1, end_s - time.monotonic()))
            except subprocess.TimeoutExpired:
                wrong[name] = "it hangs"
                continue
            if process.returncode != status:
                wrong[name] = f"ended with {process.returncode}, not {status}: {err}"
            elif name == "logs" and "done" not in out:
                wrong[name] = f"has not printed the last line: {out}"
        self.assertEqual(wrong, {})
        self.assertTrue(eventually(lambda: os.path.exists(os.path.join(self.home, "told"))), "--at-end of the array")

    def check(self, restart, last_s=0):
        """`restart` ends the agent; jobs end `last_s` before there is another, or after that."""
        self.start_commands()
        shown = self.watch()
        self.assertTrue(eventually(lambda: shown("background") == {"web": True, "top": True}), shown("background"))
        restart()
        if last_s > 0:
            open(self.go, "w", encoding="utf-8").close()
            time.sleep(last_s)
        self.agent.start()
        later = self.agent.start_as(ADA, "run", "--name", "later", *PART, "--", "/bin/sh", "-c", "echo; read end", stdin=subprocess.PIPE)
        self.addCleanup(lambda: [later.kill(), later.communicate()])
        self.assertEqual(later.stdout.readline(), "\n")
        self.assertTrue(eventually(lambda: shown("later") == {"web": True, "top": True}), shown("later"))
        open(self.go, "w", encoding="utf-8").close()
        later.communicate()
        self.check_ends()

    def test_an_agent_that_is_stopped_and_started(self):
        self.check(self.agent.stop)

    def test_an_agent_that_is_killed_and_away_for_longer_than_commands_ask_for_it(self):
        self.check(self.agent.kill, last_s=7)

    def test_programs_of_before_and_an_agent_of_after(self):
        def upgrade():
            put(OTHER, self.agent)
            self.agent.stop()
        self.check(upgrade)

    @unittest.skipIf(OTHER == REMUDA, "there is no program of another version")
    def test_programs_of_after_and_an_agent_of_before(self):
        put(OTHER, self.agent)
        self.agent.stop()
        self.agent.start()

        def go_back():
            put(REMUDA, self.agent)
            self.agent.stop()
        self.check(go_back)


if __name__ == "__main__":
    if os.geteuid() != 0:
        print("skipped: only root can act as several users")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
