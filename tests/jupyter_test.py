#!/usr/bin/python3
"""`remuda jupyter`: real kernels of Jupyter on the devices of a recorded machine.

jupyter_test.py REMUDA MACHINE     exit status 77 where Python has no jupyter_client or ipykernel
"""
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

try:
    from jupyter_client import KernelManager
    from jupyter_client.kernelspec import KernelSpecManager
except ImportError:
    sys.exit(77)
if not importlib.util.find_spec("ipykernel"):
    sys.exit(77)

REMUDA, MACHINE = sys.argv[1], sys.argv[2]
PATIENCE_S = 60
START = "import sys; from jupyter_client import KernelManager; k = KernelManager(kernel_name='remuda'); k.start_kernel(); print('up', flush=True); input()"


def eventually(holds):
    end = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


class JupyterTest(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        names = {"HOME": "", "XDG_STATE_HOME": "state", "XDG_DATA_HOME": "data", "JUPYTER_RUNTIME_DIR": "run", "JUPYTER_CONFIG_DIR": "config",
                 "IPYTHONDIR": "ipython"}
        os.environ.update({name: os.path.join(self.scratch.name, folder) for name, folder in names.items()})
        os.environ.pop("JUPYTER_DATA_DIR", None)

    def remuda(self, *words):
        return subprocess.run([REMUDA, *words, "--machine", MACHINE], capture_output=True, text=True, timeout=PATIENCE_S, check=False)

    def leases(self):
        return json.loads(self.remuda("ps", "--json").stdout)["leases"]

    def make(self, *words):
        made = self.remuda("jupyter", "--python", sys.executable, *words)
        self.assertEqual(made.returncode, 0, made.stderr)
        return made.stdout

    def start(self, name="remuda"):
        manager = KernelManager(kernel_name=name)
        manager.start_kernel()
        self.addCleanup(lambda: manager.shutdown_kernel(now=True))
        client = manager.blocking_client()
        client.start_channels()
        self.addCleanup(client.stop_channels)
        client.wait_for_ready(timeout=PATIENCE_S)
        return manager, client

    def ask(self, client, code):
        """What the code prints, and how the cell ended."""
        printed = []
        reply = client.execute_interactive(code, timeout=PATIENCE_S, output_hook=lambda message: printed.append(message["content"].get("text", "")))
        return "".join(printed).strip(), reply["content"]["status"]

    def test_a_kernel_sees_its_devices_and_gives_them_back_when_it_is_shut_down(self):
        self.assertIn('"Two GPUs"', self.make("-n", "2", "--title", "Two GPUs"))
        self.assertEqual(KernelSpecManager().get_kernel_spec("remuda").display_name, "Two GPUs")
        manager, client = self.start()
        self.assertEqual(len(self.leases()), 2)
        devices, status = self.ask(client, "import os; print(os.environ['REMUDA_DEVICES'])")
        self.assertEqual((sorted(devices.split(",")), status), (sorted(lease["device"] for lease in self.leases()), "ok"))
        manager.shutdown_kernel()
        self.assertTrue(eventually(lambda: not self.leases()))

    def test_an_interrupt_ends_the_cell_and_not_the_job(self):
        self.make()
        manager, client = self.start()
        client.execute("import time; time.sleep(1000)")
        self.assertTrue(eventually(lambda: client.get_iopub_msg(timeout=PATIENCE_S)["msg_type"] == "execute_input"))
        manager.interrupt_kernel()
        self.assertTrue(eventually(lambda: client.get_iopub_msg(timeout=PATIENCE_S)["msg_type"] == "error"))
        # For a moment Jupyter drops cells that may have been sent before the interrupt.
        self.assertTrue(eventually(lambda: self.ask(client, "print(6 * 7)") == ("42", "ok")))
        self.assertEqual(len(self.leases()), 1)

    def test_it_gives_back_when_its_kernel_is_killed(self):
        self.make()
        _, client = self.start()
        pid = int(self.ask(client, "import os; print(os.getpid())")[0])
        os.kill(pid, signal.SIGKILL)
        self.assertTrue(eventually(lambda: not self.leases()))

    def test_it_gives_back_when_jupyter_is_killed(self):
        self.make()
        server = subprocess.Popen([sys.executable, "-c", START], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(lambda: [server.stdin.close(), server.stdout.close()])
        self.assertEqual(server.stdout.readline(), b"up\n")
        self.assertTrue(eventually(lambda: len(self.leases()) == 1))
        server.kill()
        server.wait()
        self.assertTrue(eventually(lambda: not self.leases()))

    def test_what_cannot_be_a_kernel_is_refused(self):
        folder = os.path.join(os.environ["XDG_DATA_HOME"], "jupyter", "kernels", "mine")
        os.makedirs(folder)
        with open(os.path.join(folder, "kernel.json"), "w") as file:
            file.write("{}")
        for words, sentence in ((["--name", "../x"], "is no name of a kernel"), (["--name", "mine"], "is a kernel of another program"),
                                (["--python", "/bin/false"], "/bin/false cannot run a kernel"), (["-n", "0"], "--gpus"),
                                (["--time-limit", "soon"], "'soon' is no time")):
            refused = self.remuda("jupyter", *(words if "--python" in words else ["--python", sys.executable, *words]))
            self.assertEqual(refused.returncode, 2, words)
            self.assertIn(sentence, refused.stderr)
        self.assertEqual(os.listdir(os.path.dirname(folder)), ["mine"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
