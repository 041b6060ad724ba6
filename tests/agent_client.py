"""For tests: an agent under test, users that it serves, and its protocol spoken by hand.

The protocol: a frame is four bytes with the length, the most significant first, and so many bytes of JSON (wire/frame.h).
"""
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
import urllib.request
import uuid

PATIENCE_S = 60


def eventually(condition, patience_s=PATIENCE_S):
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    return condition()


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(") ", 1)[1][0] not in "ZX"
    except OSError:
        return False


def rests(pid, for_s=1):
    """Whether it has a connection and does nothing for so long: it has been answered what it has asked, and waits."""
    def turns():
        with open(f"/proc/{pid}/status") as file:
            return [line for line in file if "ctxt_switches" in line]
    if not any("socket:" in os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")):
        return False
    before = turns()
    time.sleep(for_s)
    return turns() == before


def cgroups_named(names):
    """Those whose names begin so, up to the number of their job."""
    return [path for path, _, _ in os.walk("/sys/fs/cgroup") if os.path.basename(path).rsplit("-", 1)[0] in names]


def processes_of(cgroup):
    try:
        with open(os.path.join(cgroup, "cgroup.procs")) as file:
            return file.read().split()
    except OSError:
        return []  # it is gone


def end_unless_held(connection, job, pid):
    """Only a cgroup ends what has left its keeper in every way, so where there is none, this does."""
    if not connection.find(job).get("cgroup"):
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: not is_alive(pid))
    return pid


class Connection:
    """One client of the agent. In the process that makes it, as that is who the agent knows."""

    def __init__(self, path, greets=True):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(path)  # waits where many others do, which it would not with a time limit
        self.socket.settimeout(PATIENCE_S)
        self.changed = []
        if greets:
            self.ask("hello", protocol=1)

    def send(self, payload):
        self.socket.sendall(struct.pack(">I", len(payload)) + payload)

    def read_bytes(self, count):
        got = b""
        while len(got) < count:
            part = self.socket.recv(count - len(got))
            if not part:
                raise EOFError
            got += part
        return got

    def receive(self):
        return json.loads(self.read_bytes(struct.unpack(">I", self.read_bytes(4))[0]))

    def answer_to(self, request):
        while True:
            answer = self.receive()
            if answer.get("id") == request or "error" in answer:
                return answer
            self.changed.append(answer.get("changed"))

    def ask(self, what, **fields):
        request = fields.pop("id", uuid.uuid4().hex)
        self.send(json.dumps({"id": request, "ask": what, **fields}).encode())
        return self.answer_to(request)

    def apply(self, operation, **fields):
        request = {"id": fields.pop("id", uuid.uuid4().hex)}
        return self.ask("apply", operation={"operation": operation, **fields}, **request)

    def submit(self, waits=True, id=None, **job):
        count = job.pop("count", 1)
        share = job.pop("share", 1.0)
        record = {"id": 0, "user": "root", "uid": 0, "state": "waiting", "command": ["true"],
                  "request": {"count": count, "link": "any", "share": share}, **job}
        return self.apply("submit", id=id or uuid.uuid4().hex, waits=waits, job=record)

    def find(self, job):
        jobs = self.ask("find", job=job)["result"]["jobs"]
        return jobs[0] if jobs else None

    def close(self):
        self.socket.close()


class Agent:
    """`remuda agent` on a recorded machine, with a copy of the program that every user may run."""

    def __init__(self, remuda, machine, folder):
        os.chmod(folder, 0o755)
        self.folder, self.process = folder, None
        self.remuda, self.machine = os.path.join(folder, "remuda"), os.path.join(folder, "machine.json")
        shutil.copy(remuda, self.remuda)
        shutil.copy(machine, self.machine)
        os.chmod(self.machine, 0o644)
        self.socket, self.pool = os.path.join(folder, "run", "agent.sock"), os.path.join(folder, "pool")
        self.policy = os.path.join(folder, "policy.toml")
        open(self.policy, "w").close()
        self.log = open(os.path.join(folder, "agent.log"), "ab")
        self.machine_words = ["--machine", self.machine]  # [] is the live machine
        self.own_environment, self.users_environment = {}, {}  # beside what each has anyway

    def start(self, words=(), **options):
        self.process = subprocess.Popen(
            [self.remuda, "agent", *self.machine_words, "--pool", self.pool, "--socket", self.socket, *words],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
            start_new_session=True,  # a process group with one that is stopped may be hung up
            env={**os.environ, "REMUDA_POLICY": self.policy, **self.own_environment}, **options)
        if not eventually(self.answers):
            raise RuntimeError("the agent does not answer: " + self.said())
        return self

    def said(self):
        with open(os.path.join(self.folder, "agent.log")) as file:
            return file.read()

    def answers(self):
        if self.process.poll() is not None:
            raise RuntimeError("the agent has ended: " + self.said())
        try:
            Connection(self.socket).close()
            return True
        except OSError:
            return False

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(PATIENCE_S)

    def end(self):
        """At the end of a test: stops once the devices are free, as no next agent comes that would look after jobs."""
        if self.process is None or self.process.poll() is not None:
            return
        try:
            connection = Connection(self.socket)
            if not eventually(lambda: not connection.ask("read")["result"].get("leases")):
                raise AssertionError("leases are left")
            jobs = connection.ask("ended", at_most=256)["result"]["jobs"]
            connection.close()
            names = {os.path.basename(job["cgroup"]).rsplit("-", 1)[0] for job in jobs if job.get("cgroup")}
            eventually(lambda: not any(map(processes_of, cgroups_named(names))))  # keepers end after their jobs
            self.stop()
        finally:
            self.kill()  # where it, or a job, has not ended
        left = cgroups_named(names)
        if left:
            raise AssertionError(f"cgroups of jobs are left: {left}")

    def environment(self, uid):
        """Of a user, with a home of their own."""
        home = os.path.join(self.folder, f"home-{uid}")
        if not os.path.isdir(home):
            os.mkdir(home, 0o700)
            os.chown(home, uid, uid)
        return {"PATH": os.environ["PATH"], "HOME": home, "REMUDA_AGENT": self.socket,
                "REMUDA_CLAIMS": self.folder, "OUT": self.folder, **self.users_environment}

    def start_as(self, uid, *words, **options):
        """The program, as that user."""
        line = [self.remuda, words[0], *self.machine_words, *words[1:]]
        environment = self.environment(uid)
        options.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.Popen(line, env=environment, user=uid, group=uid, extra_groups=[],
                                cwd=environment["HOME"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                **options)

    def start_web(self, uid):
        """The page of that user: its process, and what asks it for a snapshot."""
        web = self.start_as(uid, "web", "--listen", "127.0.0.1:0")
        address = re.search(r"(http://\S+)/#token=(\S+)", next(line for line in web.stdout if "#token=" in line))
        request = urllib.request.Request(address[1] + "/api/snapshot", headers={"Authorization": "Bearer " + address[2]})

        def snapshot():
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                return json.load(answer)

        return web, snapshot

    def run_as(self, uid, *words):
        process = self.start_as(uid, *words)
        out, err = process.communicate(timeout=PATIENCE_S)
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def page(self):
        connection = Connection(self.socket)
        page = connection.ask("read")["result"]
        connection.close()
        return page


def name_users(agent, **uids):
    """Gives users names and homes, in a /etc/passwd that only this process and its children see (unshare --mount)."""
    users = "".join(f"{name}:x:{uid}:{uid}::{agent.environment(uid)['HOME']}:/usr/sbin/nologin\n" for name, uid in uids.items())
    passwd = os.path.join(agent.folder, "passwd")
    with open("/etc/passwd") as old, open(passwd, "w") as new:
        new.write(old.read() + users)
    os.chmod(passwd, 0o644)
    subprocess.run(["mount", "--bind", passwd, "/etc/passwd"], check=True)


def has_own_mounts():
    """Whether this process has; else it is started again with mounts of its own, where there can be some."""
    if os.environ.get("REMUDA_TEST_TREE") == "own":
        return True
    os.environ["REMUDA_TEST_TREE"] = "own"
    own = ["unshare", "--mount", "--propagation", "private"]
    if subprocess.run([*own, "true"], capture_output=True, check=False).returncode != 0:
        return False
    os.execvp("unshare", [*own, sys.executable, "-B", *sys.argv])


def as_user(uid, work, keeps=()):
    """Runs `work` in a child of that user, and returns what it printed as JSON.

    The child has none of the files that are open here, but those with the numbers in `keeps`: one that another thread is about to give
    to a program would stay open for as long as it runs.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        kept = sorted({2, writer, *keeps})
        for low, high in zip(kept, [*kept[1:], os.sysconf("SC_OPEN_MAX")]):
            os.closerange(low + 1, high)
        status = 1
        try:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            os.write(writer, json.dumps(work()).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader) as file:
        text = file.read()
    _, status = os.waitpid(child, 0)
    if status != 0:
        raise RuntimeError(f"a user's process ended with {status}: {text}")
    return json.loads(text)
