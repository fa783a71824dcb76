"""A lone file is held against other rows, and what needs them is skipped and counted otherwise."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from geneb_ci.check import folder_context
from geneb_ci.check.folder_context import SHIPPED_ROWS_FILE, ComparisonRows, shipped_rows
from geneb_ci.check.registry import RULES
from geneb_ci.check.runner import Checker, FileResult, Report
from geneb_ci.common.benchmark import shipped_benchmark
from geneb_ci.common.config import PRACTICE_BENCHMARK, find_layout
from geneb_ci.common.finding import Need
from geneb_ci.render.formats import rules_run_count, skipped_rules
from geneb_ci.statistics.reference import score_table_of
from geneb_ci.submission.peers import read_row
from geneb_ci.submission.reading import files_in
from tests.paths import ROOT, SUBMISSIONS
from tools.shipped_rows import row_of, shipped_rows_text

PEER_RULES = tuple(rule for rule in RULES if Need.OTHER_ROWS in rule.needs)
SHIPPED = ComparisonRows(shipped=True)
STORED = json.loads((ROOT / "schemas" / SHIPPED_ROWS_FILE).read_bytes())["rows"]


def unchanged() -> list[str]:
    """Name the shipped rows whose submission is still the one that they were made of."""
    return [
        model
        for model, row in STORED.items()
        if (path := SUBMISSIONS / f"{model}.json").is_file()
        and hashlib.sha256(path.read_bytes()).hexdigest() == row["file_sha256"]
    ]


def test_a_known_file_is_compared_as_if_it_were_parsed():
    benchmark = shipped_benchmark()
    known = folder_context.shipped_rows_of(benchmark)
    assert len(known) == len(STORED)
    for model in unchanged():
        path = SUBMISSIONS / f"{model}.json"
        parsed = read_row(path, {}, keep_scores=True)
        stored = known[STORED[model]["file_sha256"]].as_read(path, keep_scores=True)
        assert stored._replace(row=None) == parsed._replace(row=None)
        assert stored.row is not None
        assert parsed.row is not None
        vectors = [score_table_of([row], benchmark).vectors for row in (stored.row, parsed.row)]
        assert repr(vectors[0]) == repr(vectors[1])  # NaN differs from itself
    assert folder_context.shipped_rows_of(shipped_benchmark(PRACTICE_BENCHMARK)) == {}


def check(path: Path, against: ComparisonRows | None, rules=RULES) -> FileResult:
    (result,) = Checker(rules, comparison_rows=against).run([path])
    assert isinstance(result, FileResult)
    return result


def finding_rows(result: FileResult) -> list[tuple[str, str, str, float]]:
    return [(f.rule, f.pointer, f.message, f.score) for f in result.findings]


def report(*results: FileResult) -> Report:
    report_of_results = Report(rules=len(RULES))
    for result in results:
        report_of_results.add(result)
    return report_of_results


def test_the_shipped_rows_are_the_numbers_of_their_submissions():
    for model in unchanged():
        raw = (SUBMISSIONS / f"{model}.json").read_bytes()
        assert STORED[model] == row_of(raw, shipped_benchmark())._asdict()
    assert len(STORED) == 41
    assert (
        ROOT / "schemas" / SHIPPED_ROWS_FILE
    ).stat().st_size < folder_context.SHIPPED_ROWS_BYTES_MAX


@pytest.mark.parametrize("step", [8, pytest.param(1, marks=pytest.mark.nightly)])
def test_each_shipped_row_alone_has_the_findings_that_it_has_in_the_repository(
    tmp_path, monkeypatch, step
):
    models = unchanged()
    root = tmp_path / "repository"
    for folder in ("submissions", "schemas"):
        (root / folder).mkdir(parents=True)
    shutil.copy(ROOT / "schemas/benchmark.json", root / "schemas")
    for model in models:
        shutil.copy(SUBMISSIONS / f"{model}.json", root / "submissions")
    rows_of_models = tuple(row for row in shipped_rows() if row.model_id in models)
    monkeypatch.setattr(folder_context, "shipped_rows", lambda: rows_of_models)
    inside = {
        Path(result.document.name).stem: finding_rows(result)
        for result in Checker(PEER_RULES).run(sorted(files_in(root / "submissions")))
        if isinstance(result, FileResult)
    }
    assert len(inside) == len(models)
    (tmp_path / "alone").mkdir()
    spoken_of = [model for model in models if inside[model]]
    for model in {*models[::step], *spoken_of[:2]}:
        path = Path(shutil.copy(SUBMISSIONS / f"{model}.json", tmp_path / "alone/any-name.json"))
        assert finding_rows(check(path, SHIPPED, PEER_RULES)) == inside[model], model


def copied(tmp_path: Path, **changes: str) -> Path:
    document = json.loads((SUBMISSIONS / "splicebert-1024nt.json").read_bytes())
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(document | changes), encoding="utf-8")
    return path


def test_a_copy_of_a_shipped_row_under_another_name_is_found(tmp_path):
    path = copied(tmp_path, model_id="mine")
    rules = {f.rule for f in check(path, SHIPPED).findings}
    assert "identical-results" in rules
    assert "identical-results" not in {f.rule for f in check(path, None).findings}


def test_an_id_that_collides_with_a_shipped_row_is_found(tmp_path):
    path = copied(tmp_path, model_id="SpliceBERT_1024nt")
    assert "model-id-collision" in {f.rule for f in check(path, SHIPPED).findings}


def test_a_folder_takes_the_place_of_the_shipped_rows(tmp_path):
    (tmp_path / "rows").mkdir()
    shutil.copy(SUBMISSIONS / "space.json", tmp_path / "rows")
    path = copied(tmp_path, model_id="mine")
    result = check(path, ComparisonRows(folder=tmp_path / "rows"))
    assert "identical-results" not in {f.rule for f in result.findings}
    assert Need.MANY_ROWS in {need for _, need in result.skipped}


def test_a_file_of_a_repository_outside_its_submissions_is_held_against_them(tmp_path):
    root = tmp_path / "repository"
    (root / "submissions").mkdir(parents=True)
    (root / "schemas").mkdir()
    shutil.copy(ROOT / "schemas/benchmark.json", root / "schemas")
    shutil.copy(SUBMISSIONS / "splicebert-1024nt.json", root / "submissions")
    path = copied(root, model_id="mine")
    assert find_layout(root).root == root
    assert "identical-results" in {f.rule for f in check(path, SHIPPED).findings}


@pytest.mark.parametrize(
    ("against", "run", "messages"),
    [
        (
            None,
            len(RULES) - 19,
            ["11 rules need the other rows: run inside the repository or pass --against DIR"],
        ),
        (SHIPPED, len(RULES) - 8, []),
    ],
)
def test_a_lone_file_says_which_rules_were_not_run_and_why(tmp_path, against, run, messages):
    report_text = report(check(copied(tmp_path), against))
    assert rules_run_count(report_text) == run
    assert [skipped_rule.message for skipped_rule in skipped_rules(report_text)] == [
        *messages,
        (
            "1 rule needs the folder of submissions: put the file in a repository of submissions: "
            "in submissions/ beside schemas/benchmark.json, or in the folder of the setting "
            "[tool.geneb-ci] submissions"
        ),
        (
            "7 rules need the model card: put the file in a repository of submissions, and its "
            "card in submissions/cards/"
        ),
    ]


def test_practice_needs_nothing_that_could_be_provided(tmp_path):
    practice = shipped_benchmark(PRACTICE_BENCHMARK)
    report_text = report(check(copied(tmp_path), None))
    report_text.benchmarks = {practice.name: practice.sha256}
    assert [skipped_rule.message for skipped_rule in skipped_rules(report_text)] == [
        "11 rules need the other rows: GENEB-mini has no rows to compare with",
        (
            "1 rule needs the folder of submissions: GENEB-mini is for practice, and its files are "
            "not in a repository"
        ),
        (
            "7 rules need the model card: GENEB-mini is for practice, and its files are not in a "
            "repository"
        ),
    ]


def test_a_rule_that_ran_on_one_file_was_run(tmp_path):
    inside = check(SUBMISSIONS / "splicebert-1024nt.json", None)
    report_text = report(inside, check(copied(tmp_path), None))
    assert inside.skipped == ()
    assert rules_run_count(report_text) == len(RULES)
    assert {skipped_rule.files for skipped_rule in skipped_rules(report_text)} == {1}
    assert skipped_rules(report_text)[0].message == (
        "11 rules need the other rows in 1 of 2 files: run inside the repository or pass "
        "--against DIR"
    )


def test_a_shipped_row_whose_submission_changed_stays_as_it_is(tmp_path):
    text = (ROOT / "schemas" / SHIPPED_ROWS_FILE).read_text(encoding="utf-8")
    for model in STORED:
        if model in unchanged():
            shutil.copy(SUBMISSIONS / f"{model}.json", tmp_path)
    copied(tmp_path).rename(tmp_path / "splicebert-1024nt.json")  # other bytes
    shutil.copy(SUBMISSIONS / "space.json", tmp_path / "a-42nd.json")
    assert shipped_rows_text(text, tmp_path, shipped_benchmark()) == text
