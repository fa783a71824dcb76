"""`rules` and `explain`: in the width of the terminal, and for names of several kinds."""

import pytest

from geneb_ci.check.registry import ALL
from geneb_ci.cli.main import main
from geneb_ci.common.types import EVIDENCE_MEANING, Evidence
from tests.paths import SUBMISSIONS


@pytest.fixture(params=[60, 80, 100])
def columns(request, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(request.param))
    return request.param


def test_rules_fit_the_terminal(columns, capsys):
    assert main(["rules", "--all"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= columns
    assert {rule.id for rule in ALL} <= {line.split()[0] for line in lines if line}


@pytest.mark.parametrize("name", ["near-copy", "plausibility"])
def test_an_explanation_fits_the_terminal(name, columns, capsys):
    assert main(["explain", name]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= columns


def test_numbers_of_matrices_fit_the_terminal(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["matrices", str(min(SUBMISSIONS.glob("*.json")))]) in {0, 11}
    lines = capsys.readouterr().out.splitlines()
    assert max(len(line) for line in lines if line.startswith(" ")) <= 80


def test_a_family_lists_its_rules(capsys):
    assert main(["explain", "card"]) == 0
    lines = capsys.readouterr().out.splitlines()
    rules = [rule.id for rule in ALL if rule.family == "card"]
    assert lines[0] == f"card  {len(rules)} rules"
    assert [
        line.split()[0] for line in lines[2 : lines.index("", 2)] if not line.startswith(" ")
    ] == rules


def test_a_file_is_not_a_name(capsys):
    path = min(SUBMISSIONS.glob("*.json"))
    assert main(["explain", str(path)]) == 2
    assert (
        f"fix: name the model of the file: geneb-ci explain {path.stem}\n"
        in capsys.readouterr().err
    )


def test_outside_a_repository_there_are_only_rules(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["explain", "GROVER"]) == 2
    assert capsys.readouterr().err.startswith(
        "geneb-ci: 'GROVER' is not a rule\n  fix: list the rules with `geneb-ci rules`; to explain "
        "a model, run this in a clone of the repository with its submission "
    )


def test_a_word_of_trust_is_explained(capsys):
    assert main(["explain", "Audited"]) == 0
    meaning = capsys.readouterr().out
    assert EVIDENCE_MEANING[Evidence.AUDITED] in " ".join(meaning.split())
    assert main(["explain", "verified"]) == 0
    assert capsys.readouterr().out.startswith("verified  the same as audited: ")
