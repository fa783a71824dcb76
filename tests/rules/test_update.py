"""The command that updates expectations says what changes, and changes only what it is told to."""

import pytest

from tests.rules import update
from tests.rules.expectations import Expectation, Table, read, write

ONE, OTHER = {"rule": "a-rule", "message": "one"}, {"rule": "a-rule", "message": "other"}
NOTE = {"rule": "note", "message": "old"}
OLD: Table = {
    "card": {
        "a-rule/fail": Expectation("00", [NOTE, ONE]),
        "a-rule/pass": Expectation("01", [NOTE]),
        "b-rule/fail": Expectation("02", [NOTE]),
    },
    "ranges": {"gone-rule/fail": Expectation("03", [ONE])},
}
NEW: Table = {
    "card": {
        "a-rule/fail": Expectation("00", [NOTE, OTHER]),
        "a-rule/pass": Expectation("09", [NOTE]),
        "b-rule/fail": Expectation("02", [NOTE]),
        "c-rule/fail": Expectation("04", []),
    },
}
A_RULE = """\
a-rule/fail
  -{"rule": "a-rule", "message": "one"}
  +{"rule": "a-rule", "message": "other"}
a-rule/pass
  input changed
"""
C_RULE = "c-rule/fail\n  new case\n"
GONE_RULE = 'gone-rule/fail\n  case removed\n  -{"rule": "a-rule", "message": "one"}\n'


@pytest.fixture
def folder(tmp_path):
    write(OLD, tmp_path)
    return tmp_path


def test_expectations_are_read_as_they_were_written(folder):
    assert read(folder) == OLD
    assert (folder / "card.json").read_text(encoding="utf-8") == (
        "{\n"
        ' "a-rule/fail": {"input": "00", "findings": [\n'
        '  {"rule": "note", "message": "old"},\n'
        '  {"rule": "a-rule", "message": "one"}\n'
        " ]},\n"
        ' "a-rule/pass": {"input": "01", "findings": [\n'
        '  {"rule": "note", "message": "old"}\n'
        " ]},\n"
        ' "b-rule/fail": {"input": "02", "findings": [\n'
        '  {"rule": "note", "message": "old"}\n'
        " ]}\n"
        "}\n"
    )


def test_without_a_name_every_difference_is_shown_and_nothing_is_written(folder, capsys):
    assert update.main([], NEW, folder) == 1
    assert capsys.readouterr().out == (
        f"{A_RULE}{C_RULE}{GONE_RULE}differ, and were not written: 4 expectations\n"
        "if this is what you meant: .venv/bin/python -m tests.rules.update a-rule c-rule "
        "gone-rule\n"
        "or, for every rule: .venv/bin/python -m tests.rules.update --all\n"
    )
    assert read(folder) == OLD


def test_only_the_named_rules_are_written(folder, capsys):
    assert update.main(["a-rule"], NEW, folder) == 1
    assert capsys.readouterr().out == (
        f"{A_RULE}written: 2 expectations\n"
        f"{C_RULE}{GONE_RULE}differ, and were not written: 2 expectations\n"
        "if this is what you meant: .venv/bin/python -m tests.rules.update c-rule gone-rule\n"
        "or, for every rule: .venv/bin/python -m tests.rules.update --all\n"
    )
    assert read(folder) == {
        "card": {case: NEW["card"][case] for case in OLD["card"]},
        "ranges": OLD["ranges"],
    }


@pytest.mark.parametrize("arguments", [["--all"], ["a-rule", "c-rule", "gone-rule"]])
def test_all_rules_are_written_when_asked(folder, capsys, arguments):
    assert update.main(arguments, NEW, folder) == 0
    shown = f"{A_RULE}{C_RULE}{GONE_RULE}written: 4 expectations\n"
    assert capsys.readouterr().out == shown
    assert read(folder) == NEW
    assert not (folder / "ranges.json").exists()
    assert update.main([], NEW, folder) == 0
    assert capsys.readouterr().out == "every expectation agrees with what is found\n"


def test_a_rule_that_agrees_is_written_without_a_difference(folder, capsys):
    assert update.main(["b-rule"], OLD, folder) == 0
    assert capsys.readouterr().out == "every expectation agrees with what is found\n"
    assert read(folder) == OLD


def test_cases_that_differ_the_same_way_are_shown_together(folder, capsys):
    note = {"rule": "note", "message": "new"}
    new: Table = {
        "card": {
            "a-rule/fail": Expectation("00", [note, ONE]),
            "a-rule/pass": Expectation("01", [note]),
            "b-rule/fail": Expectation("02", [note]),
        },
        "ranges": OLD["ranges"],
    }
    assert update.main(["--all"], new, folder) == 0
    assert capsys.readouterr().out == (
        "a-rule/fail, a-rule/pass, b-rule/fail\n"
        '  -{"rule": "note", "message": "old"}\n'
        '  +{"rule": "note", "message": "new"}\n'
        "written: 3 expectations\n"
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a-rulee", "a-rulee is not a rule; did you mean a-rule?"),
        ("zzz", "zzz is not a rule"),
        (
            "missing-task",
            (
                'missing-task has no fixtures: add "missing-task": (failing, passing) to FIXTURES'
                " in tests/rules/fixtures/coverage.py, then run .venv/bin/python -m "
                "tests.rules.update missing-task"
            ),
        ),
    ],
)
def test_a_rule_without_fixtures_is_refused(folder, capsys, name, message):
    with pytest.raises(SystemExit) as caught:
        update.main(["a-rule", name], NEW, folder)
    assert caught.value.code == 2
    assert capsys.readouterr().err.endswith(f"error: {message}\n")
    assert read(folder) == OLD
