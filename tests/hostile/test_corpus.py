"""Each hostile input says what its table has, at the right place, and hides no other."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from geneb_ci.check.registry import RULES
from geneb_ci.check.runner import Checker, FileResult, files_of
from geneb_ci.finding import Finding, Severity
from geneb_ci.read.peers import results_digest
from tests.hostile import make
from tests.hostile.case import Case

HERE = Path(__file__).resolve().parent
EXPECTED = json.loads((HERE / "expected.json").read_text(encoding="utf-8"))
TEXTS = sorted(name for name, case in make.BY_FILE.items() if not isinstance(case.content, bytes))


def findings(path: Path) -> tuple[Finding, ...]:
    return Checker(RULES).check(path).findings


def held(case: Case, found: tuple[Finding, ...], newline: str) -> None:
    """Hold all that was found against what the case says."""
    places = case.places(newline)
    said = [(*says, *place) for says, place in zip(case.says, places, strict=True)]
    rest = [f for f in found if f.rule not in case.also]
    assert sorted((f.rule, f.pointer, f.message, f.line, f.column) for f in rest) == sorted(said)
    assert sorted({f.rule for f in found} - {f.rule for f in rest}) == sorted(case.also)


def test_the_committed_files_are_those_that_the_script_makes(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["make", "--check"])
    assert make.main() == 0


def test_the_corpus_has_every_input_and_is_small():
    numbers = {row["input"] for row in EXPECTED.values()}
    made_by_tests = {17, 18, 28, 31, 36}
    assert numbers | made_by_tests == {*range(1, 37), 63}
    sizes = [path.stat().st_size for path in HERE.rglob("*") if path.is_file()]
    assert max(sizes) < 300_000
    assert sum(sizes) < 1_500_000


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_each_input_says_what_the_table_has(name):
    row = EXPECTED[name]
    found = findings(HERE / name)
    rest = [f for f in found if f.rule not in row["also"]]
    assert sorted((f.rule, f.pointer, f.message, f.line, f.column) for f in rest) == sorted(
        (f["rule"], f["pointer"], f["message"], f["line"], f["column"]) for f in row["findings"]
    )
    assert sorted({f.rule for f in found} - {f.rule for f in rest}) == sorted(row["also"])
    errors = {f.rule for f in found if f.severity is Severity.ERROR}
    assert bool(errors) == name.startswith("reject/")


@pytest.mark.parametrize("newline", ["\n", "\r\n", ""], ids=["lf", "crlf", "minified"])
@pytest.mark.parametrize("name", TEXTS)
def test_layout_of_the_text_changes_the_place_and_nothing_else(tmp_path, name, newline):
    case = make.BY_FILE[name]
    (tmp_path / "hostile").mkdir()
    shutil.copy(HERE / "pyproject.toml", tmp_path / "hostile")
    shutil.copy(HERE.parent / "benchmark-small.json", tmp_path)
    path = tmp_path / "hostile" / Path(name).name
    path.write_bytes(case.data(newline))
    held(case, findings(path), newline)


def run(folder: Path) -> dict[str, tuple[Finding, ...]]:
    found = {}
    for result in Checker(RULES).run(files_of([folder])):
        assert isinstance(result, FileResult)
        found[Path(result.document.name).name] = result.findings
    return found


@pytest.mark.parametrize("folder", ["reject", "accept"])
def test_one_bad_file_hides_no_other(folder):
    together = run(HERE / folder)
    assert set(together) == {path.name for path in (HERE / folder).iterdir()}
    twins = {"seventeen-digits.json", "shortest-form.json"}
    for name, found in together.items():
        more = set(found) - set(findings(HERE / folder / name))
        assert {f.rule for f in more} == ({"identical-results"} if name in twins else set())


def test_two_forms_of_one_number_have_one_digest():
    long, short = (
        Checker(RULES).check(HERE / f"accept/{name}.json").document.value
        for name in ("seventeen-digits", "shortest-form")
    )
    assert results_digest(long["results"]) == results_digest(short["results"])


def test_a_digest_is_the_same_on_every_platform():
    value = Checker(RULES).check(HERE / "accept/minimal.json").document.value
    assert results_digest(value["results"]) == (
        "49863566957437a6dea57da8d1e05b94b564736c31fa78b4b6a44ce9583d668b"
    )


def test_minus_zero_is_read_as_zero():
    value = Checker(RULES).check(HERE / "accept/minus-zero-score.json").document.value
    assert repr(value["results"]["full"]["promoter_tata"]["MCC"]) == "0.0"


def test_ids_that_differ_in_case_and_separators_collide():
    assert {
        name: [f.message for f in found if f.rule == "model-id-collision"]
        for name, found in run(HERE / "collision").items()
    } == {
        "DNABERT_2.json": ['model_id "DNABERT_2" collides with "dnabert-2.json"'],
        "dnabert-2.json": ['model_id "dnabert-2" collides with "DNABERT_2.json"'],
    }


def test_files_that_differ_in_case_collide(tmp_path):
    source = (HERE / "collision/dnabert-2.json").read_text(encoding="utf-8")
    for name in ("dnabert-2", "DNABERT-2", "other"):
        (tmp_path / f"{name}.json").write_text(source.replace("dnabert-2", name), encoding="utf-8")
    assert len(list(tmp_path.iterdir())) == 3, "this file system knows no letter case"
    assert {
        (name, f.message)
        for name, found in run(tmp_path).items()
        for f in found
        if f.rule == "model-id-collision"
    } == {
        ("DNABERT-2.json", 'model_id "DNABERT-2" collides with "dnabert-2.json"'),
        ("dnabert-2.json", 'model_id "dnabert-2" collides with "DNABERT-2.json"'),
    }


def test_an_accuracy_off_its_grid_in_the_thirteenth_digit_is_an_error(tmp_path):
    path = shutil.copy(HERE / "alone/off-grid-accuracy.json", tmp_path)
    errors = [f for f in findings(Path(path)) if f.severity is Severity.ERROR]
    assert [f.rule for f in errors] == ["accuracy-off-grid"]
