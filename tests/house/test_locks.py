"""`make lock`: what it takes no notice of, what it refuses; and that every lock installs."""

import shutil
import sys
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from geneb_ci.models.entry import Environment, parse_entry
from tests.paths import ROOT
from tools import lock
from tools.lock import LINUX, LOCKS, PYTHONS, Lock

POLICY = ROOT / "leaderboard/policy"
TORCH = Lock("requirements/torch.txt", (), LINUX, options=("--no-deps",))
UV = """#!/bin/sh
for word; do
  test "$last" != --output-file || output=$word
  test "$word" != "{lacking}" || lacks=yes
  last=$word
done
refuse() {{ echo "$1" >&2; exit 1; }}
if test -z "$output"; then
  test -z "$lacks" || refuse "no wheel"
  exit 0
fi
if grep -q -e --hash "$output"; then refuse "was handed a hash"; fi
digits=$(printf %064d 0 | tr 0 {digit})
printf 'mdurl==0.1.2 \\\\\\n    --hash=sha256:%s\\n' "$digits" > "$output"
"""
"""A resolver that finds one release; it has no wheel where an argument of it is `lacking`."""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the tool work on a copy of the requirements."""
    shutil.copytree(ROOT / "requirements", tmp_path / "requirements")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    monkeypatch.setattr(lock, "ROOT", tmp_path)
    return tmp_path


def run(monkeypatch, checkout: Path, *words: str, lacking: str = "-", digit: str = "0") -> int:
    program = checkout / "uv"
    program.write_text(UV.format(lacking=lacking, digit=digit), "utf-8")
    program.chmod(0o755)
    monkeypatch.setattr(lock, "find_uv_bin", lambda: program)
    monkeypatch.setattr(sys, "argv", ["lock", *words])
    return lock.main()


def texts(checkout: Path) -> list[str]:
    return [(checkout / lock_file.name).read_text(encoding="utf-8") for lock_file in LOCKS]


def test_locks_are_written_once_and_then_left(checkout, monkeypatch, capsys):
    assert run(monkeypatch, checkout) == 0
    written = texts(checkout)
    assert {text.partition("\n")[2].split(" ")[0] for text in written} == {"mdurl==0.1.2"}
    assert run(monkeypatch, checkout) == 0
    assert texts(checkout) == written
    assert capsys.readouterr().out.splitlines()[-1] == "requirements/validators.txt: unchanged"
    assert run(monkeypatch, checkout, "--check") == 0
    assert run(monkeypatch, checkout, "--check", digit="1") == 1
    assert capsys.readouterr().err.splitlines() == [
        f"{lock_file.name} is out of date: run `make lock`" for lock_file in LOCKS
    ]
    assert texts(checkout) == written


def test_a_lock_that_does_not_install_everywhere_is_not_written(checkout, monkeypatch, capsys):
    before = texts(checkout)
    assert run(monkeypatch, checkout, lacking="aarch64-apple-darwin") == 1
    assert (
        "requirements/action.txt: Python 3.11 on aarch64-apple-darwin cannot install it:\nno"
        in (capsys.readouterr().err)
    )
    assert texts(checkout) == before


def test_no_setting_of_an_installer_is_passed_on(monkeypatch):
    """A bare resolver locks the files of a local folder alone, where a variable names one."""
    for name in ("UV_FIND_LINKS", "UV_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_INDEX_URL"):
        monkeypatch.setenv(name, "/wheels")
    monkeypatch.setenv("PIP_CERT", "/etc/authority.pem")
    passed_on = lock.environment()
    assert [name for name in passed_on if name.startswith(("UV_", "PIP_"))] == []
    assert passed_on["SSL_CERT_FILE"] == "/etc/authority.pem"


@pytest.mark.nightly
def test_an_altered_hash_is_seen(checkout):
    check = checkout / "requirements/check.txt"
    text = check.read_text(encoding="utf-8")
    digit = text[text.index("sha256:") + len("sha256:")]
    check.write_text(text.replace(f"sha256:{digit}", f"sha256:{int(digit == '0')}", 1), "utf-8")
    wrong = list(lock.changes(checkout))
    assert wrong == ["requirements/check.txt is out of date: run `make lock`"]


@pytest.mark.nightly
@pytest.mark.parametrize("lock_file", [*LOCKS, TORCH], ids=lambda lock_file: lock_file.name)
def test_each_lock_installs_on_every_python_and_system(lock_file):
    assert lock.missing_wheels(ROOT, [lock_file]) == []


@pytest.mark.nightly
def test_a_removed_package_is_seen(checkout):
    (action,) = (lock_file for lock_file in LOCKS if lock_file.name.endswith("action.txt"))
    text = action.read()
    start = text.index("\npycparser==") + 1
    end = text.index("\n", text.rindex("--hash", start, text.index("==", start + 20)))
    (checkout / action.name).write_text(text[:start] + text[end + 1 :], encoding="utf-8")
    (fault, *_) = lock.missing_wheels(checkout, [action])
    one_line = " ".join(fault.split())  # uv wraps its lines
    assert "no trusted hash was provided for: `pycparser`" in one_line


def environments() -> dict[str, Environment]:
    """Return the environment of each model that has one."""
    environment_by_model = {}
    for path in sorted(POLICY.glob("models/*.toml")):
        run = parse_entry(path.read_bytes(), path.name).entry.run
        if run is not None and run.environment is not None:
            environment_by_model[path.stem] = run.environment
    return environment_by_model


def test_every_lock_of_an_environment_is_that_of_a_model():
    names = {path.name for path in POLICY.glob("environments/*.txt")}
    assert {value.lock for value in environments().values()} == names


@pytest.mark.nightly
def test_an_environment_installs_on_the_pythons_that_its_entry_allows():
    """An audit installs wheels alone; a Python without one has to be refused by the entry."""
    locks = {
        Lock(
            f"leaderboard/policy/environments/{value.lock}",
            (),
            LINUX,
            PYTHONS if value.python is None else (value.python,),
            ("--require-hashes", "--no-deps"),
        )
        for value in environments().values()
    }
    assert lock.missing_wheels(ROOT, locks) == []


def test_all_that_a_cpu_build_of_torch_needs_is_locked():
    needed = [Requirement(requirement) for requirement in requires("torch") or []]
    names = {
        canonicalize_name(requirement.name)
        for requirement in needed
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""})
    }
    cuda = {name for name in names if name.startswith(("cuda-", "nvidia-", "triton"))}
    text = (ROOT / "requirements/dev.txt").read_text(encoding="utf-8")
    assert [name for name in sorted(names - cuda) if f"\n{name}==" not in text] == []
