#!/usr/bin/env python3
"""Drives `remuda top` in a terminal, as people do: keys go in, and what a terminal shows is read.

top_test.py REMUDA MACHINE: a recorded machine. Ends with 77 where there is no python3-pyte.
"""

import contextlib
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

try:
    import pyte
except ImportError:
    print("skipped: python3-pyte is not installed")
    sys.exit(77)

REMUDA, RECORDED = "", ""
PATIENCE_S = 30
ENTER, ESCAPE, DOWN = "\r", "\x1b", "\x1bOB"
# Of a terminal that nobody has asked for, and nothing of the terminal in which the tests run.
LEFT_OUT = ("NO_COLOR", "LC_ALL", "LC_CTYPE", "COLUMNS", "LINES")


class Screen:
    """A program in a terminal of its own."""

    def __init__(self, command: list[str], environment: dict[str, str], columns: int = 80, rows: int = 24):
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.controller, terminal = pty.openpty()
        self.set_size(columns, rows)
        self.before = termios.tcgetattr(terminal)
        self.terminal = terminal
        self.process = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=subprocess.PIPE, env=environment,
                                        start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))

    def set_size(self, columns: int, rows: int):
        fcntl.ioctl(self.controller, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, columns: int, rows: int):
        self.screen.resize(rows, columns)
        self.set_size(columns, rows)

    def press(self, keys: str):
        os.write(self.controller, keys.encode())

    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self.screen.display)

    def read(self, seconds: float = 0.05):
        if select.select([self.controller], [], [], seconds)[0]:
            with contextlib.suppress(OSError):
                data = os.read(self.controller, 1 << 16)
                self.raw += data
                self.stream.feed(data)

    def wait(self, pattern: str) -> str:
        """Until the screen shows it."""
        return self.wait_until(lambda: re.search(pattern, self.text()), pattern)

    def wait_until(self, condition, what: str) -> str:
        end = time.monotonic() + PATIENCE_S
        while not condition():
            if time.monotonic() > end:
                raise AssertionError(f"waited {PATIENCE_S} s in vain: {what}\n{self.text()}")
            self.read()
        return self.text()

    def finish(self) -> int:
        end = time.monotonic() + PATIENCE_S
        while self.process.poll() is None and time.monotonic() < end:
            self.read()
        self.read()
        return self.process.wait(1)

    def is_as_before(self) -> bool:
        return termios.tcgetattr(self.terminal) == self.before and b"\x1b[?1049l" in self.raw[-200:]

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stderr.close()
        os.close(self.controller)
        os.close(self.terminal)


class TopTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        machine = json.loads(pathlib.Path(RECORDED).read_text())
        for device in machine["devices"]:
            device["status"] = {"busy": 0.25, "memory_used_bytes": 1 << 30, "power_watts": 120.5, "temperature_c": 45.0}
        self.machine = self.folder / "machine.json"
        self.machine.write_text(json.dumps(machine))
        self.environment = {name: value for name, value in os.environ.items() if name not in LEFT_OUT}
        self.environment |= {"HOME": scratch.name, "XDG_STATE_HOME": scratch.name + "/state", "TERM": "xterm-256color",
                             "LANG": "C.UTF-8", "TZ": "UTC"}

    def top(self, *arguments: str, columns: int = 80, rows: int = 24, **environment: str) -> Screen:
        screen = Screen([REMUDA, "top", *arguments], self.environment | environment, columns, rows)
        self.addCleanup(screen.close)
        return screen

    def run_remuda(self, *command: str, status: int = 0, **environment: str) -> subprocess.CompletedProcess:
        done = subprocess.run([REMUDA, *command], env=self.environment | environment, text=True, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=PATIENCE_S, check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def start_job(self, name: str) -> subprocess.Popen:
        job = subprocess.Popen([REMUDA, "run", "--machine", str(self.machine), "-n", "1", "--name", name, "--", "sleep", "600"],
                               env=self.environment, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        self.addCleanup(job.wait, PATIENCE_S)
        self.addCleanup(job.kill)
        return job

    def test_shows_the_demo_and_ends_with_q(self):
        top = self.top("--demo", "--speed", "0")
        text = top.wait("gpu:7")
        self.assertIn("8 GPUs of 5 kinds on 1 host", text)
        self.assertIn("━", text)
        top.press("q")
        self.assertEqual(top.finish(), 0)
        self.assertTrue(top.is_as_before())

    def test_follows_the_size_of_the_terminal(self):
        top = self.top("--demo", "--speed", "0")
        top.wait("ALERTS")
        for columns, rows in ((140, 50), (40, 12), (80, 24), (10, 3), (1, 1), (80, 24)):
            top.resize(columns, rows)
            if rows > 10:
                top.wait_until(lambda: "q end" in top.screen.display[-1] and "gpu:0" in top.text(), f"{columns}x{rows}")
        top.resize(140, 50)
        top.wait("NOT KNOWN")

    def test_keys_sort_filter_choose_and_explain(self):
        top = self.top("--demo", "--speed", "0")
        top.wait("gpu:7")
        top.press("s")
        top.wait("by busy")
        top.press("r")
        top.wait("by busy, reversed")
        top.press("/ana" + ENTER)
        top.wait("only 'ana'")
        top.wait_until(lambda: "gpu:4" not in top.text(), "others are hidden")
        top.press(DOWN + ENTER)
        top.wait("power limit")
        top.press(ESCAPE)
        top.wait("ft-7b")
        top.press("?")
        top.wait("cancel the job that is chosen")
        top.press("x" + ESCAPE)
        top.wait("gpu:4")
        top.press("t")
        top.wait("LAST 6h")

    def test_cancels_a_job_after_asking(self):
        self.start_job("victim")
        self.start_job("bystander")
        top = self.top("--machine", str(self.machine))
        top.wait("victim")
        top.wait("bystander")
        top.press("/victim" + ENTER)
        top.wait_until(lambda: "bystander" not in top.text(), "one is shown")
        top.press("G" + "c")
        question = top.wait(r"Cancel .*y: yes")
        self.assertIn("victim", question)
        top.press("n")
        top.wait("Nothing was cancelled")
        top.press("cy")
        top.wait("Cancelled .*victim")
        top.press(ESCAPE)
        top.wait("bystander")
        top.wait_until(lambda: top.text().count("victim") == 0, "its lease has ended")
        top.press("q")
        self.assertEqual(top.finish(), 0)

    def test_a_refusal_is_said(self):
        job = self.start_job("gone")
        top = self.top("--machine", str(self.machine))
        top.wait("gone")
        top.press("G" + "c")
        top.wait("y: yes")
        self.run_remuda("cancel", "--machine", str(self.machine), "--name", "gone")
        job.wait(PATIENCE_S)
        top.press("y")
        top.wait("has ended")

    def test_nothing_is_cancelled_in_a_recording(self):
        top = self.top("--demo", "--speed", "0")
        top.wait("gpu:7")
        top.press("G" + "c")
        top.wait("This is a recording: nothing can be cancelled")

    def test_without_colours_where_nobody_wants_them(self):
        colours = re.compile(rb"\x1b\[[0-9;]*3[1-7]m")
        with_them = self.top("--demo", "--speed", "0")
        with_them.wait("gpu:7")
        self.assertRegex(with_them.raw, colours)
        without = self.top("--demo", "--speed", "0", NO_COLOR="1")
        without.wait("gpu:7")
        self.assertNotRegex(without.raw, colours)

    def test_plain_ascii_where_the_locale_has_no_more(self):
        top = self.top("--demo", "--speed", "0", LANG="C")
        top.wait("gpu:7")
        self.assertEqual([byte for byte in top.raw if byte >= 0x80], [])
        self.assertIn("==", top.text())

    def test_says_what_another_process_counted(self):
        watch = subprocess.Popen([REMUDA, "watch", "--machine", str(self.machine)], env=self.environment, stderr=subprocess.DEVNULL)
        self.addCleanup(watch.wait, PATIENCE_S)
        self.addCleanup(watch.kill)
        self.start_job("counted")
        end = time.monotonic() + PATIENCE_S
        while not list(self.folder.glob("state/**/history.db")):  # else top may be the one that keeps it
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)
        while not re.search(r"counted .* 25% ", self.run_remuda("top", "--once", "--machine", str(self.machine)).stdout):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.5)

    def test_replays_recordings_of_several_hosts(self):
        other = json.loads(self.machine.read_text()) | {"host": "other"}
        (self.folder / "other.json").write_text(json.dumps(other))
        top = self.top("--replay", str(self.machine), "--replay", str(self.folder / "other.json"), columns=120)
        top.wait("on 2 hosts")
        top.wait("other gpu:1")

    def test_signals_end_it_and_leave_the_terminal_as_it_was(self):
        for sent in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(sent.name):
                top = self.top("--demo", "--speed", "0")
                top.wait("gpu:7")
                top.process.send_signal(sent)
                self.assertEqual(top.finish(), 0)
                self.assertTrue(top.is_as_before())

    def test_a_fault_leaves_the_terminal_as_it_was(self):
        top = self.top("--demo", "--speed", "0")
        top.wait("gpu:7")
        top.process.send_signal(signal.SIGSEGV)
        self.assertEqual(top.finish(), -signal.SIGSEGV)
        self.assertTrue(top.is_as_before())

    def test_goes_with_its_terminal(self):
        top = self.top("--demo")
        top.wait("gpu:7")
        os.close(top.controller)
        self.assertEqual(top.process.wait(PATIENCE_S), 0)
        top.controller = os.open(os.devnull, os.O_RDONLY)

    def test_a_machine_that_does_not_answer_holds_up_no_key(self):
        pipe = self.folder / "machine.pipe"
        os.mkfifo(pipe)  # whoever opens it waits for a writer
        top = self.top("--machine", str(pipe))
        top.wait("Reading the machine")
        top.press("?")
        top.wait("cancel the job that is chosen")
        top.press("q")
        top.wait_until(top.is_as_before, "the terminal is given back at once")
        with contextlib.suppress(OSError):
            os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))

    def test_names_cannot_write_on_the_terminal(self):
        hostile = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202eevil\u0301\u0301\u0301漢"
        recording = json.loads(self.machine.read_text())
        recording["time_s"] = 1000
        recording["jobs"] = {"leases": [{"job": 5, "device": recording["devices"][-1]["id"], "user": hostile, "name": hostile, "since_s": 1}],
                             "waiting": [{"id": 6, "user": hostile, "why": hostile, "submitted_s": 1}]}
        recording["alerts"] = [{"rule": hostile, "device": hostile, "text": hostile, "command": hostile}]
        path = self.folder / "hostile.json"
        path.write_text(json.dumps(recording))
        top = self.top("--replay", str(path), columns=100, rows=40)
        top.wait("QUEUE")
        self.assertNotIn(b"owned\x07", top.raw)
        self.assertNotIn("\u202e".encode(), top.raw)
        self.assertNotIn(b"\x9b31m", top.raw.replace("\x9b".encode(), b""))
        self.assertEqual(top.screen.title, "")
        self.assertIn("gpu:0", top.text())
        once = self.run_remuda("top", "--once", "--replay", str(path)).stdout
        self.assertEqual([letter for letter in once if ord(letter) < 0x20 and letter != "\n"], [])

    def test_once_is_for_pipes(self):
        text = self.run_remuda("top", "--once", "--demo", "--speed", "0").stdout
        self.assertTrue(text.startswith("remuda top  corral  a recording, at "))
        self.assertIn("gpu:7", text)
        self.assertNotIn("\x1b", text)
        self.assertLessEqual(max(map(len, text.splitlines())), 80)
        wide = self.run_remuda("top", "--once", "--columns", "120", "--demo", "--speed", "0", LANG="C").stdout
        self.assertTrue(wide.isascii())
        self.assertGreater(max(map(len, wide.splitlines())), 80)
        filtered = self.run_remuda("top", "--once", "--demo", "--filter", "ben").stdout
        self.assertNotRegex(filtered, "(?m)^ *gpu:0 ")

    def test_says_what_it_needs(self):
        self.assertIn("remuda top --once", self.run_remuda("top", "--demo", status=2).stderr)
        top = self.top("--demo", TERM="dumb")
        self.assertEqual(top.finish(), 2)
        self.assertIn("cannot move its cursor", top.process.stderr.read().decode())
        top = self.top("--demo", TERM="no-such-terminal")
        self.assertEqual(top.finish(), 2)
        self.assertIn("not known", top.process.stderr.read().decode())
        self.assertIn("nowhere.json", self.run_remuda("top", "--once", "--replay", "nowhere.json", status=2).stderr)


if __name__ == "__main__":
    REMUDA, RECORDED = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1], verbosity=2)
