#!/usr/bin/python3
"""Installs remuda to a separate folder, and uses it from there as users and their programs do.

install_test.py BUILD ROOT CXX
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD, ROOT, CXX = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
MACHINE = ROOT / "testdata/machines/nv-dgx1-v100-8gpu-4nic.json"


def run(*words, **options):
    return subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True, **options).stdout


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.prefix = pathlib.Path(cls.scratch.name) / "prefix"
        for component in ("program", "agent", "development"):
            run("cmake", "--install", BUILD, "--prefix", cls.prefix, "--component", component)

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def test_the_program_runs(self):
        remuda = self.prefix / "bin/remuda"
        self.assertIn("remuda ", run(remuda, "--version"))
        self.assertIn("gpu:7", run(remuda, "list", "--machine", MACHINE))

    def test_each_subcommand_has_a_page(self):
        pages = {page.name for page in self.prefix.glob("share/man/man1/*")}
        self.assertLessEqual({"remuda.1", "remuda-run.1", "remuda-train.1", "remuda-rerun.1"}, pages)

    def test_the_agent_has_its_units(self):
        units = self.prefix / "lib/systemd/system"
        self.assertIn(f"ExecStart={self.prefix / 'bin/remuda'} agent\n", (units / "remuda-agent.service").read_text())
        self.assertIn("ListenStream=/run/remuda/agent.sock\n", (units / "remuda-agent.socket").read_text())
        self.assertIn(f"ExecStart={self.prefix / 'bin/remuda'} web ", (units / "remuda-web.service").read_text())
        for sessions in ("session-.scope.d", "user@.service.d"):
            self.assertIn("Before=remuda-agent.service\n", (units / sessions / "remuda.conf").read_text())

    def test_prometheus_and_grafana_have_their_files(self):
        files = {file.name for file in (self.prefix / "share/remuda").rglob("*") if file.is_file()}
        self.assertEqual(files, {"remuda.rules.yml", "remuda.json"})

    @unittest.skipUnless(shutil.which("systemd-analyze"), "this needs systemd-analyze(1)")
    def test_systemd_takes_the_agents_units(self):
        units = sorted(unit for unit in (self.prefix / "lib/systemd/system").iterdir() if unit.is_file())
        checked = subprocess.run(["systemd-analyze", "verify", "--man=no", *units], capture_output=True, text=True)
        self.assertEqual((checked.returncode, checked.stderr), (0, ""))
        self.assertIn("/run/remuda/installed", (self.prefix / "lib/tmpfiles.d/remuda.conf").read_text())

    def test_bash_completes(self):
        script = self.prefix / "share/bash-completion/completions/remuda"
        asked = f"source {script}; COMP_WORDS=(remuda can); COMP_CWORD=1; _remuda; echo ${{COMPREPLY[@]}}"
        self.assertEqual(run("bash", "--norc", "-c", asked), "cancel\n")
        for other in ("zsh/site-functions/_remuda", "fish/vendor_completions.d/remuda.fish"):
            self.assertTrue((self.prefix / "share" / other).is_file(), other)

    def test_bash_completes_jobs(self):
        script = self.prefix / "share/bash-completion/completions/remuda"
        asked = f"source {script}; COMP_WORDS=(remuda why ''); COMP_CWORD=2; _remuda; echo ${{COMPREPLY[@]}}"
        state = pathlib.Path(self.scratch.name) / "state"
        path = f"{self.prefix / 'bin'}:{os.environ['PATH']}"
        environment = dict(os.environ, PATH=path, XDG_STATE_HOME=str(state))
        jobs = run("remuda", "completion", "--jobs", env=environment).split()
        self.assertEqual(run("bash", "--norc", "-c", asked, env=environment).split(), jobs)

    def test_a_program_finds_the_library(self):
        example = pathlib.Path(self.scratch.name) / "example"
        run("cmake", "-S", ROOT / "examples/find_package", "-B", example, "-G", "Ninja",
            f"-DCMAKE_PREFIX_PATH={self.prefix}", f"-DCMAKE_CXX_COMPILER={CXX}")
        run("cmake", "--build", example)
        self.assertIn("gpu:0", run(example / "best_pair", MACHINE))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
