"""Marks of rows: warnings of their checks and published defects, each in every place it belongs."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

import geneb_ci
from geneb_ci.audit.trust.evidence import gather_evidence
from geneb_ci.board.marks import FILE, DefectFile, marks_of, read_defects, row_decider
from geneb_ci.board.rows import leaderboards
from geneb_ci.common.benchmark import shipped_benchmark
from geneb_ci.common.config import find_layout
from geneb_ci.common.errors import BadConfiguration
from geneb_ci.common.finding import Severity
from tests.board.board import POLICY, entries
from tests.page.boards import advice
from tests.paths import ROOT, SUBMISSIONS

DEFECTS = {
    "BioFM-265M": "absolute-row-of-left-padding",
    "DNABERT-S": "weights-not-loaded",
    "METAGENE-1": "padding-in-mean",
    "MutBERT": "no-truncation",
    "OmniNA-220m": "no-truncation",
    "enformer-official-rough": "undefined-name",
    "evo-1-131k-base": "first-record-of-batch",
    "genomics-fm": "no-run-on-cpu",
    "hyenadna-large-1m-seqlen-hf": "no-attention-mask",
    "hyenadna-medium-160k-seqlen-hf": "no-attention-mask",
}


def test_levels_without_records_are_those_of_all_evidence():
    layout = find_layout(ROOT)
    assert layout.audits is None
    decided, evidence = row_decider(layout), gather_evidence(layout)
    for one in entries():
        assert decided(one.sha256, "", "") == evidence.decide(one.sha256, "")
    assert decided("0" * 64, "", "") == evidence.decide("0" * 64, "")
    assert decided("0" * 64, "", "1" * 64).evidence == "stale"


def test_each_published_defect_stands_on_its_rows():
    rows = leaderboards(entries(), shipped_benchmark())[0]["data"]["full"]
    found = {
        row["model"]: [one["id"] for one in row["defects"]] for row in rows if "defects" in row
    }
    assert found == {model: [defect] for model, defect in DEFECTS.items()}


def test_each_warning_of_check_stands_on_its_row():
    report = geneb_ci.check(SUBMISSIONS, cache=False)
    told: dict[str, Counter[str]] = {}
    for one in report.findings:
        if one.severity is Severity.WARNING:
            told.setdefault(Path(one.file).stem, Counter())[one.rule] += 1
    rows = leaderboards(entries(), shipped_benchmark())[0]["data"]["full"]
    assert {row["model"]: row["warnings"] for row in rows if "warnings" in row} == told
    assert sum(sum(rules.values()) for rules in told.values()) == 7


def test_each_defect_is_explained_where_it_says():
    parsed = DefectFile.model_validate_json((POLICY / FILE).read_bytes())
    assert len({one.id for one in parsed.defects}) == len(parsed.defects)
    known = {path.stem for path in SUBMISSIONS.glob("*.json")}
    for one in parsed.defects:
        assert set(one.models) <= known
        page, _, anchor = one.explained.partition("#")
        heads = re.findall(r"^#+ (.+)$", (ROOT / page).read_text("utf-8"), re.MULTILINE)
        anchors = {re.sub(r"[^a-z0-9 -]", "", head.lower()).replace(" ", "-") for head in heads}
        assert anchor in anchors
        assert anchor == one.id


def test_a_defect_belongs_to_the_authors_file_alone():
    defects = read_defects(find_layout(POLICY))
    assert marks_of("MutBERT", (), defects, is_official=False).defects == ()
    assert [one.id for one in marks_of("MutBERT", (), defects, is_official=True).defects] == [
        "no-truncation"
    ]


@pytest.mark.parametrize("regime", shipped_benchmark().regimes)
def test_advice_that_names_a_marked_row_says_so(regime):
    for category in (None, *shipped_benchmark().category_order):
        found = advice(regime, category=category)
        (own,) = found.regimes
        for choice in own.choices:
            defect = DEFECTS.get(choice.model)
            assert choice.defects == ([defect] if defect else [])
        named = {own.highest.model, *([found.smallest.model] if found.smallest else [])}
        for choice in own.choices:
            said = [f"Published defect [{defect}] of" for defect in choice.defects]
            said += [f"warns about `{choice.model}`: [" for _ in choice.warnings[:1]]
            for words in said:
                told = any(words in one and f"`{choice.model}`" in one for one in found.why)
                assert told == (choice.model in named)


def write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def test_a_policy_without_the_file_names_no_defect_and_a_broken_one_is_refused(tmp_path):
    write(tmp_path / "submissions/a.json", b"{}")
    write(tmp_path / "leaderboard/policy/official.json", b'{"files": {}}')
    write(tmp_path / "schemas/benchmark.json", b"{}")
    layout = find_layout(tmp_path)
    assert read_defects(layout) == ()
    for text in ("[]", "{", json.dumps({"schema_version": "1.0", "defects": [{"id": "A"}]})):
        write(tmp_path / "leaderboard/policy/defects.json", text.encode())
        with pytest.raises(BadConfiguration) as refusal:
            read_defects(layout)
        assert "defects.json" in refusal.value.message
