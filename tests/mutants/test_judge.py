"""A mutant that a test notices is killed, as is one that hangs; one that none notices survives."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT
from tools.mutants import choose, judge, text
from tools.mutants.choose import Surveyed
from tools.mutants.judge import NO_END, Memory, Verdict, false_alarms, judged
from tools.mutants.sites import Mutant, mutants
from tools.mutants.worker import Server

MODULE = """def count(most):
    found = 0
    while found < most:
        found += 1
    return found


def unused(value):
    return value + 1
"""
TEST = """from toy import count


def test_nothing():
    assert count(0) == 0


def test_count():
    assert count(3) == 3
"""
NAME = "test_toy.py"


class Toy(Server):
    """A server in a folder with one module and one test file."""

    def __init__(self, root: Path) -> None:
        self.root = root
        command = [sys.executable, "-m", "tools.mutants.server"]
        super().__init__(command, root, os.environ | {"PYTHONPATH": f"{ROOT}:{root}"})


@pytest.fixture
def toy(tmp_path, monkeypatch):
    (tmp_path / "toy.py").write_text(MODULE)
    (tmp_path / NAME).write_text(TEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    for module in (judge, choose):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    server = Toy(tmp_path)
    yield server
    server.close()


def known() -> dict[str, Surveyed]:
    """Return what a survey would say: both tests run `count`, one of them its loop."""
    both = {("toy.py", 2), ("toy.py", 4), ("toy.py", 5)}
    hits = {f"{NAME}::test_nothing": both - {("toy.py", 4)}, f"{NAME}::test_count": both}
    return {NAME: Surveyed(dict.fromkeys(hits, 0.01), hits, both)}


def the(new: str, line: int) -> Mutant:
    return next(m for m in mutants("toy.py", MODULE.encode()) if (m.new, m.line) == (new, line))


def test_verdicts(toy, monkeypatch):
    monkeypatch.setattr(judge, "STARTING", -2.3)  # a hang is told after 6 seconds of work, not 50
    cases = {
        the("1", 2): Verdict(the("1", 2), f"{NAME}::test_nothing", 2),
        the("<=", 3): Verdict(the("<=", 3), f"{NAME}::test_count", 2),
        the("pass", 4): Verdict(the("pass", 4), NO_END, 1),
        the("-", 9): Verdict(the("-", 9), "", 0),
    }
    assert {mutant: judged(toy, mutant, known()) for mutant in cases} == cases
    assert (toy.root / "toy.py").read_text() == MODULE


def test_a_test_that_fails_without_a_mutant_is_told(toy):
    (toy.root / "test_other.py").write_text("def test_other():\n    assert not 'sound'\n")
    sound, failing = f"{NAME}::test_count", "test_other.py::test_other"
    assert false_alarms(toy, [sound, failing, NO_END]) == [failing]


@pytest.mark.usefixtures("toy")
def test_a_run_that_was_stopped_goes_on_and_a_changed_test_is_asked_again(tmp_path):
    (tmp_path / "tests").mkdir()
    path = tmp_path / "work" / "verdicts.jsonl"
    killed = Verdict(the("1", 2), f"{NAME}::test_nothing", 2)
    survived = Verdict(the("-", 9), "", 0)
    for verdict in (killed, survived):
        Memory(path).add(verdict)
    assert [Memory(path).get(one.mutant) for one in (killed, survived)] == [killed, survived]
    assert Memory(path).get(the("<=", 3)) is None
    (tmp_path / "tests" / "test_new.py").write_text("")
    assert [Memory(path).get(one.mutant) for one in (killed, survived)] == [killed, None]
    (tmp_path / NAME).write_text(TEST + "\n")
    assert Memory(path).get(killed.mutant) is None
    (tmp_path / "toy.py").write_text(MODULE + "\n")
    assert Memory(path).get(killed.mutant) is None


@pytest.mark.usefixtures("toy")
def test_the_report_names_each_survivor_with_its_diff_and_reason():
    one, other = Verdict(the("-", 9), "", 0), Verdict(the("1", 2), "a test", 2)
    why = {("toy.py", "unused", "return value + 1", "return value - 1"): "Nothing calls it."}
    found = text.markdown([text.Set(1, [one, other])], 9, "c0ffee", why)
    assert "| 1 | 1 | 2 | 1 | 1 | 50.0% |" in found
    assert (
        "**toy.py**, `unused`\n\n```diff\n- return value + 1\n+ return value - 1\n```\n\n"
        "Nothing calls it.\n" in found
    )
    assert text.NO_REASON in text.markdown([text.Set(1, [one])], 9, "c0ffee", {})


def test_every_reason_that_is_kept_belongs_to_a_mutant_that_there_is():
    """Where the code was changed, a reason goes, or is looked at again."""
    from tools.mutants.draw import every
    from tools.mutants.targets import FILES

    there = {text.key_of(mutant) for mutant in every(FILES)}
    kept = text.reasons()
    assert [key for key in kept if key not in there] == []
    assert all(len(reason) > 20 for reason in kept.values())


def test_the_command_explains_itself():
    command = [sys.executable, "-m", "tools.mutants", "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "--seed" in done.stdout
    json.dumps(done.stdout)
