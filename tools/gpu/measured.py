"""Programs that are run for a limited time, and what they took."""

import contextlib
import os
import pathlib
import signal
import subprocess
import tempfile
import threading

TIME_IS_OVER = 124
DIES_WITHIN_S = 5  # what waits for a driver in trouble may not die at all, and is left alone
running: set[int] = set()  # leaders of the sessions that run now


def end_all() -> None:
    """Ends all that runs, with all that it has started."""
    for leader in list(running):
        with contextlib.suppress(ProcessLookupError):  # it ended by itself just now
            os.killpg(leader, signal.SIGKILL)


def end_with_this_program(number: int, _frame) -> None:
    """For signal.signal: what was started has a session of its own, which no signal of a terminal or of `timeout` reaches."""
    end_all()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def run(command: list, limit_s: float, **options) -> tuple[int, str]:
    """The exit status of a command and what it prints. When its time is over, all that it has started is ended: 124."""
    status, printed, _ = run_measured(command, limit_s, **options)
    return status, printed + ("\nended: the stage's time was over\n" if status == TIME_IS_OVER else "")


def run_measured(command: list, limit_s: float, cwd: pathlib.Path | None = None, env: dict | None = None) -> tuple[int, str, float]:
    """The same, with the seconds of CPU time that the command has used. An end by signal N has the status -N."""
    with tempfile.TemporaryFile() as file:
        try:
            process = subprocess.Popen(list(map(str, command)), stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                       start_new_session=True, cwd=cwd, env=env)
        except FileNotFoundError:
            return 127, f"there is no {command[0]} here\n", 0.0
        except OSError as error:
            return 127, f"{command[0]} cannot be run: {error.strerror}\n", 0.0
        running.add(process.pid)
        cpu_s = 0.0

        def wait() -> None:
            nonlocal cpu_s
            _, status, used = os.wait4(process.pid, 0)
            running.discard(process.pid)
            process.returncode, cpu_s = os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime

        waiting = threading.Thread(target=wait, daemon=True)
        waiting.start()
        waiting.join(max(limit_s, 1))
        if over := waiting.is_alive():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            waiting.join(DIES_WITHIN_S)
        file.seek(0)
        printed = file.read().decode(errors="replace")
    return TIME_IS_OVER if over else process.returncode, printed, cpu_s
