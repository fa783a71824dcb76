"""What `pip install geneb-ci` installs, without extras: each command works or names the extra."""

import json
import os
import shutil
import subprocess
import sys
import tomllib

import pytest
from rich.cells import cell_len

from geneb_ci.cli.main import COMMANDS
from geneb_ci.common.benchmark import shipped_benchmark
from tests.each import each
from tests.paths import ROOT, SUBMISSIONS, outside_rows

EXTRAS = (
    *("cryptography", "fsspec", "github", "huggingface_hub", "numpy", "pandas"),
    *("py_arkworks_bls12381", "ray", "requests", "ruff", "safetensors", "scipy", "sigstore"),
    *("sklearn", "threadpoolctl", "torch", "transformers", "urllib3", "uv", "yaml"),
)
"""Modules of the packages that only extras bring."""
BLOCKER = f"""
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name in {EXTRAS!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
"""
DRIVER = """
import importlib, json, os, pkgutil, sys, tempfile
import geneb_ci
from geneb_ci.cli.main import main
for module in pkgutil.walk_packages(geneb_ci.__path__, "geneb_ci.", onerror=str):
    try:  # what the core alone can load is loaded once, and each command is a fork
        module.name.endswith("__main__") or importlib.import_module(module.name)
    except ModuleNotFoundError:
        pass
found = []
for words in json.loads(sys.argv[1]):
    with tempfile.TemporaryFile() as said:
        if not (child := os.fork()):
            os.dup2(said.fileno(), 1)
            os.dup2(said.fileno(), 2)
            code = main(words)
            sys.stdout.flush()
            os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        said.seek(0)
        found.append([code, said.read().decode()])
print(json.dumps(found))
"""
NEEDS = {
    "next": "",
    "next --as maintainer": "records",
    "check submissions/GROVER.json": "",
    "rules": "",
    "explain missing-task": "",
    "explain GROVER": "",
    "matrices submissions/GROVER.json": "",
    "trust": "",
    "build --output out --no-diagnostics": "",
    "build --output board": "build",
    "build --parquet --output board": "build",
    "serve": "build",
    "recommend": "build",
    "compare submissions/GROVER.json submissions/GROVER.json": "records",
    "figures": "",
    "publish --space a/b": "build",
    "rollback 1234567 --space a/b": "hub",
    "ledger": "",
    "diff --base HEAD": "build",
    "replay --rules HEAD": "",
    "run --output record.json": "harness",
    "pack logs": "",
    "export --format csv --output csv": "build",
    "export --format croissant --output croissant": "build",
    "export --format every-eval-ever --output eee": "",
    "export --format eval-results --output results": "hub",
    "export --format parquet --output parquet": "build",
    "audit submissions/GROVER.json": "audit",
    "audit verify": "audit",
    "audit keygen --output key.pem": "audit",
    "receipt verify submissions/GROVER.json": "",
    "receipt push submissions/GROVER.json --folder .": "",
    "new a/b": "hub",
    "models": "",
    "models show GROVER": "",
    "models verify GROVER": "",
    "data push tasks --repo a/b": "harness",
    "data verify data": "harness",
    "upgrade submissions/GROVER.json --output new.json": "",
    "probe receipts": "harness",
    "reconcile": "github",
    "report verdict": "github",
    "triage --repo a/b": "github",
    "init board --repo a/b": "github",
    "extractor list": "harness",
    "extractor check kmer": "harness",
    "doctor": "",
    "doctor --github a/b": "github",
}
"""A command line to the extra that it needs."""


@pytest.fixture(scope="module")
def outputs(tmp_path_factory) -> dict[str, tuple[int, str]]:
    """Run every command line in a repository of one row, with what the core brings alone."""
    root = tmp_path_factory.mktemp("plain")
    for name in ("site", "repository/submissions", "repository/logs", "repository/leaderboard"):
        (root / name).mkdir(parents=True)
    (root / "site/sitecustomize.py").write_text(BLOCKER, encoding="utf-8")
    path = root / "repository"
    (path / "submissions/GROVER.json").write_bytes((SUBMISSIONS / "GROVER.json").read_bytes())
    for name in ("schemas", "leaderboard/policy"):
        shutil.copytree(outside_rows(name), path / name)
    (path / "tasks").mkdir()
    for task in shipped_benchmark().task_ids:
        (path / f"tasks/{task}.csv").touch()
    subprocess.run(["git", "init", "--quiet", "."], cwd=path, check=True)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "add", "."], cwd=path, check=True)
    subprocess.run([*git, "commit", "--quiet", "-m", "x"], cwd=path, check=True)
    env = {"PATH": os.environ["PATH"], "HOME": str(root), "COLUMNS": "80"} | {
        "PYTHONPATH": f"{root / 'site'}{os.pathsep}{ROOT}"
    }
    command = [sys.executable, "-c", DRIVER, json.dumps([need.split() for need in NEEDS])]
    done = subprocess.run(command, cwd=path, env=env, capture_output=True, text=True, check=True)
    return {
        need: (code, text)
        for need, (code, text) in zip(NEEDS, json.loads(done.stdout), strict=True)
    }


def test_every_command_is_tried():
    assert {need.split()[0] for need in NEEDS} == COMMANDS.keys()


@pytest.mark.parametrize("line", NEEDS)
def test_a_command_works_or_names_the_extra(line, outputs):
    code, text = outputs[line]
    assert "Traceback" not in text
    assert "internal error" not in text
    named = f"geneb-ci[{NEEDS[line]}]"
    if NEEDS[line]:
        assert named in " ".join(text.split()), text
        assert code != 0
    else:
        assert "geneb-ci[" not in text


def test_next_in_a_clone_without_remote_names_the_maintainers_command(outputs):
    code, text = outputs["next"]
    assert code == 0
    assert text.endswith("next: geneb-ci next --as maintainer\n")
    assert "geneb-ci new" not in text


@each("line", NEEDS)
def test_what_it_prints_fits_eighty_columns(line, outputs):
    """A pipe that is told of 80 columns, as a dumb terminal is; JSON and words stay whole."""
    _, text = outputs[line]
    wide = [line for line in text.splitlines() if cell_len(line) > 80 and " " in line.strip()]
    assert (wide, "\x1b" in text) == ([], False)


def test_every_extra_is_one_that_exists():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {need for need in NEEDS.values() if need} <= {*project["optional-dependencies"]}
