"""Each hostile input has the findings that its case lists, in their places, and hides no other."""

import functools
from pathlib import Path

import pytest

from geneb_ci.check.registry import RULES
from geneb_ci.check.runner import Checker, FileResult, files_of
from geneb_ci.common.finding import Finding, Severity
from geneb_ci.submission.peers import results_digest
from tests.each import each
from tests.hostile import corpus
from tests.hostile.text import MARK, Members, Place, Raw, unmarked, written

DIGESTS = Path(__file__).with_name("inputs.sha256")


@functools.cache
def findings(path: Path) -> tuple[Finding, ...]:
    return Checker(RULES).check(path).findings


def test_the_inputs_are_the_bytes_that_were_reviewed(update_golden):
    if update_golden:
        DIGESTS.write_text(corpus.digests(), encoding="utf-8", newline="\n")
    assert corpus.digests() == DIGESTS.read_text(encoding="utf-8"), (
        "inputs changed: if this is what you meant, run pytest tests/hostile --update-golden"
    )


def test_the_corpus_has_every_input_and_is_small():
    numbers = {case.number for case in corpus.BY_FILE.values()}
    made_by_tests = {17, 18, 28, 31, 36}
    assert numbers | made_by_tests == {*range(1, 37), 63}
    sizes = [len(data) for data in corpus.inputs().values()]
    assert max(sizes) < 300_000
    assert sum(sizes) < 1_500_000


def test_a_text_is_written_with_keys_twice_and_in_each_layout():
    value = Members([("a", [1, None]), ("a", {"b": Raw("NaN"), "c": []}), (Raw("'k'"), '"\\')])
    assert {name: written(value, newline=newline) for name, newline in corpus.LAYOUTS.items()} == {
        "lf": '{\n "a": [1, null],\n "a": {\n  "b": NaN,\n  "c": []\n },\n \'k\': "\\"\\\\"\n}',
        "crlf": '{\r\n "a": [1, null],\r\n "a": {\r\n  "b": NaN,\r\n  "c": []\r\n },\r\n'
        ' \'k\': "\\"\\\\"\r\n}',
        "minified": '{"a":[1,null],"a":{"b":NaN,"c":[]},\'k\':"\\"\\\\"}',
    }


def test_marks_are_removed_and_their_places_kept():
    text = f"{MARK}a\r\nb{MARK}{MARK}c\n{MARK}"
    assert unmarked(text) == ("a\r\nbc\n", [Place(1, 1), Place(2, 2), Place(2, 2), Place(3, 1)])


def agree(name: str, findings: tuple[Finding, ...], newline: str) -> None:
    """Compare all that was found with what the case lists."""
    case = corpus.BY_FILE[name]
    expected = [
        (*says, *text_position)
        for says, text_position in zip(case.says, case.places(newline), strict=True)
    ]
    rest = [f for f in findings if f.rule not in case.also]
    assert sorted((f.rule, f.pointer, f.message, f.line, f.column) for f in rest) == sorted(
        expected
    )
    assert sorted({f.rule for f in findings} - {f.rule for f in rest}) == sorted(case.also)
    errors = {f.rule for f in findings if f.severity is Severity.ERROR}
    assert bool(errors) == name.startswith("reject/")


@each("name", sorted(corpus.BY_FILE))
def test_each_input_has_the_findings_of_its_case(hostile_folder, name):
    agree(name, findings(hostile_folder / "lf" / name), "\n")


@each("layout", ["crlf", "minified"])
@each("name", corpus.TEXTS)
def test_layout_of_the_text_changes_the_place_and_nothing_else(hostile_folder, name, layout):
    agree(name, findings(hostile_folder / layout / name), corpus.LAYOUTS[layout])


def run(folder: Path) -> dict[str, tuple[Finding, ...]]:
    findings_by_name = {}
    for result in Checker(RULES).run(files_of([folder])):
        assert isinstance(result, FileResult)
        findings_by_name[Path(result.document.name).name] = result.findings
    return findings_by_name


ALIKE = [
    *("bare-bell.json", "bare-newline.json", "bare-tab.json"),
    *("forbidden-line-separator-escaped.json", "forbidden-line-separator.json"),
    *("forbidden-next-line.json", "id-cyrillic.json", "id-hyphen-that-is-none.json"),
    *("id-full-width.json", "id-leading-space.json", "id-trailing-newline.json"),
    "id-trailing-space.json",
]
"""Inputs whose ids or display names look like those of each other."""


@pytest.mark.parametrize("folder", ["reject", "accept"])
def test_one_bad_file_hides_no_other(hostile_folder, folder):
    together = run(hostile_folder / "lf" / folder)
    names = [Path(name).name for name in corpus.BY_FILE if name.startswith(f"{folder}/")]
    assert sorted(together) == sorted(names)
    twins = ["seventeen-digits.json", "shortest-form.json"]
    due = {name: {"confusable-name"} for name in ALIKE}
    due |= {name: {"confusable-name", "identical-results"} for name in twins}
    for name, member in together.items():
        more = set(member) - set(findings(hostile_folder / "lf" / folder / name))
        assert {f.rule for f in more} == due.get(name, set())


def test_two_forms_of_one_number_have_one_digest(hostile_folder):
    long, short = (
        Checker(RULES).check(hostile_folder / f"lf/accept/{name}.json").document.value
        for name in ("seventeen-digits", "shortest-form")
    )
    assert results_digest(long["results"]) == results_digest(short["results"])


def test_a_digest_is_the_same_on_every_platform(hostile_folder):
    value = Checker(RULES).check(hostile_folder / "lf/accept/minimal.json").document.value
    assert results_digest(value["results"]) == (
        "49863566957437a6dea57da8d1e05b94b564736c31fa78b4b6a44ce9583d668b"
    )


def test_minus_zero_is_read_as_zero(hostile_folder):
    value = Checker(RULES).check(hostile_folder / "lf/accept/minus-zero-score.json").document.value
    assert repr(value["results"]["full"]["promoter_tata"]["MCC"]) == "0.0"


def test_ids_that_differ_in_case_and_separators_collide(hostile_folder):
    assert {
        name: [f.message for f in member if f.rule == "model-id-collision"]
        for name, member in run(hostile_folder / "lf/collision").items()
    } == {
        "DNABERT_2.json": ['model_id "DNABERT_2" collides with "dnabert-2.json"'],
        "dnabert-2.json": ['model_id "dnabert-2" collides with "DNABERT_2.json"'],
    }


def test_files_that_differ_in_case_collide(tmp_path):
    source = corpus.collision("dnabert-2").decode()
    for name in ("dnabert-2", "DNABERT-2", "other"):
        (tmp_path / f"{name}.json").write_text(source.replace("dnabert-2", name), encoding="utf-8")
    assert len(list(tmp_path.iterdir())) == 3, "this file system knows no letter case"
    assert {
        (name, f.message)
        for name, member in run(tmp_path).items()
        for f in member
        if f.rule == "model-id-collision"
    } == {
        ("DNABERT-2.json", 'model_id "DNABERT-2" collides with "dnabert-2.json"'),
        ("dnabert-2.json", 'model_id "dnabert-2" collides with "DNABERT-2.json"'),
    }


def test_an_accuracy_off_its_grid_in_the_thirteenth_digit_is_an_error(tmp_path):
    path = tmp_path / "off-grid-accuracy.json"
    path.write_bytes(corpus.impossible_accuracy_paths())
    errors = [f for f in findings(path) if f.severity is Severity.ERROR]
    assert [f.rule for f in errors] == ["accuracy-off-grid"]
