"""A compiled module that a full disk cut short is named: it is no interruption by the user."""

import importlib
import os
import py_compile
import signal
import sys

import click
import pytest

from geneb_ci.cli import main as toolkit
from reference_harness.cli import main as harness


@pytest.fixture
def cut_short(tmp_path, monkeypatch):
    """Return the compiled file of a module that is imported by a command, cut after its header."""
    source = tmp_path / "cut_short.py"
    source.write_text("VALUE = 1\n")
    compiled = py_compile.compile(str(source)) or ""
    os.truncate(compiled, 20)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "cut_short", raising=False)
    return compiled


def importing(name: str) -> click.Command:
    return click.Command("command", callback=lambda: importlib.import_module(name))


def reading_nothing() -> click.Command:
    def read() -> None:
        raise EOFError("no more input")

    return click.Command("command", callback=read)


def test_the_toolkit_names_the_file(cut_short, monkeypatch, capsys):
    monkeypatch.setattr(toolkit, "cli", importing("cut_short"))
    assert toolkit.main([]) == 1
    assert capsys.readouterr().err.strip() == (
        f"geneb-ci: internal error: {cut_short} is damaged: marshal data too short\n"
        "  fix: remove that file, which Python writes again, and run the command again"
    )


def test_another_end_of_input_is_a_bug_of_the_toolkit(monkeypatch, capsys):
    monkeypatch.setattr(toolkit, "cli", reading_nothing())
    assert toolkit.main([]) == 1
    assert "internal error: EOFError: no more input" in capsys.readouterr().err


def test_the_harness_names_the_file(cut_short, monkeypatch, capsys):
    monkeypatch.setattr(harness, "cli", importing("cut_short"))
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(sys, "argv", ["geneb-harness"])
    with pytest.raises(SystemExit) as ended:
        harness.main()
    assert ended.value.code == 1
    assert f"error: {cut_short} is damaged: remove it" in capsys.readouterr().err


def test_an_interruption_is_one(monkeypatch, capsys):
    def stop() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(toolkit, "cli", click.Command("command", callback=stop))
    assert toolkit.main([]) == 130
    assert "interrupted" in capsys.readouterr().err
