"""The tool that types the tutorials in an empty environment, on pages that install nothing."""

import sys
import venv

import pytest

from tests.paths import ROOT
from tests.tutorial.blocks import SHELL, DiffersError, blocks
from tools import tutorials
from tools.rehearse.machine import CACHES, PASSED

PAGE = """\
```console
$ python -c "import os; print(sorted(os.environ), os.listdir())"
['COLUMNS', 'HOME', 'LANG', 'PATH'...] []
$ git config user.name
SHOWN
```
"""
INSTALL = """\
<!-- run by tools/tutorials.py -->
```console
$ git clone --quiet https://github.com/OWNER/geneb-ci
$ cd geneb-ci
```
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return tutorials.snapshot(tmp_path_factory.mktemp("source") / "source.git")


@pytest.fixture(autouse=True)
def quick(monkeypatch, source):
    """Take one snapshot, and no pip, for all of these tests; pass on nothing of this machine."""
    create = venv.create
    monkeypatch.setattr(venv, "create", lambda at, **_: create(at, symlinks=True))
    monkeypatch.setattr(tutorials, "snapshot", lambda _: source)
    for name in (*PASSED, *CACHES):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def followed(tmp_path, source):
    """Follow a page."""

    def follow(text):
        page, path = tmp_path / "page.md", tmp_path / "place"
        page.write_text(text, encoding="utf-8")
        path.mkdir()
        return tutorials.follow(str(page), path, source)

    return follow


def test_a_page_is_typed_in_an_empty_place(followed):
    output = followed(PAGE.replace("SHOWN", "Ada Example"))
    assert (output.commands, output.install) == (2, 0)
    assert output.processor >= 0  # a quick command takes less than a tick of the clock


def test_another_output_is_refused(followed):
    with pytest.raises(DiffersError, match=r"\$ git config user.name\nAda Example"):
        followed(PAGE.replace("SHOWN", "Eve"))


def test_a_failed_command_and_one_that_does_not_exist_are_refused(followed):
    with pytest.raises(DiffersError, match="exit code 127, expected 0\ngeneb-nothing: command not"):
        followed("```console\n$ geneb-nothing\n```\n")


def test_code_that_is_not_installed_is_refused_also_in_a_clone(followed):
    """The clone comes from the files as they lie here, whatever the address on the page."""
    with pytest.raises(DiffersError, match="not installed in the environment: ModuleNotFound"):
        followed(INSTALL)


def test_it_ends_with_1_at_a_page_that_differs(tmp_path, monkeypatch, capsys):
    page = tmp_path / "page.md"
    page.write_text("```console\n$ git --version\nnothing\n```\n", encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["tutorials", str(page)])
    monkeypatch.setitem(tutorials.COMMANDS_MAX, str(page), 1)
    assert tutorials.main() == 1
    assert f"{page}: not as the page shows\n$ git --version\n" in capsys.readouterr().out


@pytest.mark.parametrize(("commands", "seconds"), [(1, 180), (2, -1)])
def test_it_ends_with_1_past_a_limit(tmp_path, monkeypatch, capsys, commands, seconds):
    page = tmp_path / "page.md"
    page.write_text("```console\n$ git --version\n$ git --version\n```\n", encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["tutorials", str(page)])
    monkeypatch.setitem(tutorials.COMMANDS_MAX, str(page), commands)
    monkeypatch.setattr(tutorials, "SECONDS_MAX", seconds)
    assert tutorials.main() == 1
    output = capsys.readouterr().out
    assert f"{page}: 2 commands; install 0 s, the rest 0 s; 0 processor seconds\n" in output
    assert f"more than {commands} commands or {seconds} processor seconds" in output


@pytest.mark.parametrize("text", ["", "```console\n$ git --version\ngit...\n```\n"])
def test_it_ends_with_1_where_nothing_is_installed(tmp_path, monkeypatch, capsys, text):
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["tutorials", str(page)])
    monkeypatch.setitem(tutorials.COMMANDS_MAX, str(page), 1)
    assert tutorials.main() == 1
    assert f"{page}: no block installs the program" in capsys.readouterr().out


@pytest.mark.parametrize("name", tutorials.COMMANDS_MAX)
def test_a_page_begins_with_its_installation(name):
    first, *rest = [
        block
        for block in blocks((ROOT / name).read_text(encoding="utf-8"))
        if block.kind == SHELL and block.reason is None
    ]
    assert first.test == tutorials.MODULE
    assert "pip install" in first.text
    assert [block.line for block in rest if block.test is not None] == []
