"""A virtual machine with Debian and a real systemd, for tests that reboot it, played by qemu.

It shares nothing with this machine: neither files, nor cgroups, nor the kernel. Commands reach it by qemu's guest agent.
Where this machine has no KVM that qemu can use, its processors are emulated: correct, and some ten times slower.
"""
import base64
import json
import os
import pathlib
import shlex
import socket
import subprocess
import tempfile
import time

BOOT_S, COMMAND_S = 600, 300  # emulated, on a machine that builds meanwhile
LOOK_S = 0.2
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def has_kvm():
    """Whether qemu starts a machine with it: some kernels have /dev/kvm, and processors that qemu cannot set up."""
    tried = subprocess.run(["qemu-system-x86_64", "-accel", "kvm", "-cpu", "host", "-nodefaults", "-display", "none",
                            "-monitor", "stdio"], input="quit\n", capture_output=True, text=True, check=False)
    return tried.returncode == 0


class Guest:
    """Boots `image`, which is not changed: what the machine writes is gone with it. Folder: of image, kernel and initrd."""

    def __init__(self, folder, memory_mib=2048, cores=2):
        self.scratch = tempfile.TemporaryDirectory()
        scratch, folder = pathlib.Path(self.scratch.name), pathlib.Path(folder)
        self.console = scratch / "console"
        accelerator = ["-accel", "kvm", "-cpu", "host"] if has_kvm() else ["-accel", "tcg,thread=multi", "-cpu", "max"]
        self.qemu = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL",  # else it would outlive a test that is killed
             "qemu-system-x86_64", *accelerator, "-smp", str(cores), "-m", str(memory_mib),
             "-nodefaults", "-no-user-config", "-display", "none", "-nic", "none",
             "-kernel", folder / "kernel", "-initrd", folder / "initrd", "-append", "root=/dev/vda rw console=ttyS0",
             "-drive", f"file={folder / 'image'},if=virtio,format=raw,snapshot=on",
             "-serial", f"file:{self.console}", "-device", "virtio-rng-pci", "-device", "virtio-serial",
             "-chardev", f"socket,path={scratch / 'agent'},server=on,wait=off,id=agent",
             "-device", "virtserialport,chardev=agent,name=org.qemu.guest_agent.0"],
            stdin=subprocess.DEVNULL)
        self.connection, self.unread = None, b""
        try:
            self.connection = self.connect(scratch / "agent")
            self.wait_until_up("")
        except BaseException:
            self.stop()
            raise

    @staticmethod
    def connect(path):
        end = time.monotonic() + COMMAND_S
        connection = socket.socket(socket.AF_UNIX)
        while True:
            try:
                connection.connect(str(path))
                return connection
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(LOOK_S)

    def receive(self, patience_s):
        self.connection.settimeout(patience_s)
        while b"\n" not in self.unread:
            got = self.connection.recv(1 << 16)
            if not got:
                raise RuntimeError("qemu has ended")
            self.unread += got
        line, self.unread = self.unread.split(b"\n", 1)
        return json.loads(line)

    def send(self, what, **arguments):
        self.connection.sendall(json.dumps({"execute": what, "arguments": arguments}).encode() + b"\n")

    def ask(self, what, **arguments):
        """What qemu's guest agent answers."""
        self.send(what, **arguments)
        answer = self.receive(COMMAND_S)
        if "error" in answer:
            raise RuntimeError(f"{what}: {answer['error']['desc']}")
        return answer["return"]

    def wait_until_up(self, former_boot):
        """Until the guest agent answers after a boot that is not the former one. What is sent while it is not there is lost."""
        end = time.monotonic() + BOOT_S
        for number in range(1, 1 << 30):
            try:
                self.send("guest-sync", id=number)
                while self.receive(5).get("return") != number:
                    pass
                if self.boot() != former_boot:
                    return
                time.sleep(1)
            except (TimeoutError, RuntimeError):  # it may be on its way down
                if time.monotonic() > end or self.qemu.poll() is not None:
                    raise RuntimeError(f"the guest did not start; its console says:\n{self.console.read_text()[-4000:]}") from None

    def start(self, command, user="root"):
        """A command of the shell, begun: its process id in the guest. Users have a login session for it."""
        words = ["/bin/sh", "-lc", command] if user == "root" else ["/usr/sbin/runuser", "--login", user, "-c", command]
        return self.ask("guest-exec", path=words[0], arg=words[1:], env=[f"PATH={PATH}", "HOME=/root"],
                        **{"capture-output": True})["pid"]

    def result(self, pid, patience_s=COMMAND_S):
        """How a command that was begun has ended: a CompletedProcess."""
        end = time.monotonic() + patience_s
        while True:
            status = self.ask("guest-exec-status", pid=pid)
            if status["exited"]:
                out, err = (base64.b64decode(status.get(name, "")).decode() for name in ("out-data", "err-data"))
                return subprocess.CompletedProcess(pid, status.get("exitcode", -status.get("signal", 0)), out, err)
            if time.monotonic() > end:
                raise TimeoutError(f"process {pid} of the guest still runs after {patience_s} s")
            time.sleep(LOOK_S)

    def run(self, command, user="root"):
        return self.result(self.start(command, user))

    def must(self, command, user="root"):
        """What it prints; anything but exit status 0 is an error."""
        done = self.run(command, user)
        if done.returncode != 0:
            raise RuntimeError(f"{command}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def write(self, path, text):
        self.must(f"mkdir -p {shlex.quote(os.path.dirname(path))} && printf %s {shlex.quote(text)} >{shlex.quote(path)}")

    def boot(self):
        return self.must("cat /proc/sys/kernel/random/boot_id").strip()

    def reboot(self):
        former = self.boot()
        self.start("systemctl reboot")
        self.wait_until_up(former)

    def stop(self):
        """At once, as by the power switch: nothing of it is kept."""
        self.qemu.kill()
        self.qemu.wait()
        if self.connection:
            self.connection.close()
        self.scratch.cleanup()
