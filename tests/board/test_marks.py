"""Marks of rows: warnings of their checks and published defects, each in every place it belongs."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

import geneb_ci
from geneb_ci.audit.trust.evidence import gather_evidence
from geneb_ci.board.marks import DEFECTS_FILE, DefectFile, marks_of, read_defects, row_decider
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
    for entry in entries():
        assert decided(entry.sha256, "", "") == evidence.decide(entry.sha256, "")
    assert decided("0" * 64, "", "") == evidence.decide("0" * 64, "")
    assert decided("0" * 64, "", "1" * 64).evidence == "stale"


def test_each_published_defect_stands_on_its_rows():
    rows = leaderboards(entries(), shipped_benchmark())[0]["data"]["full"]
    ids_by_model = {
        row["model"]: [defect["id"] for defect in row["defects"]]
        for row in rows
        if "defects" in row
    }
    assert ids_by_model == {model: [defect] for model, defect in DEFECTS.items()}


def test_each_warning_of_check_stands_on_its_row():
    report = geneb_ci.check(SUBMISSIONS, cache=False)
    counts_by_model: dict[str, Counter[str]] = {}
    for finding in report.findings:
        if finding.severity is Severity.WARNING:
            counts_by_model.setdefault(Path(finding.file).stem, Counter())[finding.rule] += 1
    rows = leaderboards(entries(), shipped_benchmark())[0]["data"]["full"]
    assert {row["model"]: row["warnings"] for row in rows if "warnings" in row} == counts_by_model
    assert sum(sum(rules.values()) for rules in counts_by_model.values()) == 7


def test_each_defect_is_explained_where_it_says():
    parsed = DefectFile.model_validate_json((POLICY / DEFECTS_FILE).read_bytes())
    assert len({defect.id for defect in parsed.defects}) == len(parsed.defects)
    known = {path.stem for path in SUBMISSIONS.glob("*.json")}
    for defect in parsed.defects:
        assert set(defect.models) <= known
        page, _, anchor = defect.explained.partition("#")
        heads = re.findall(r"^#+ (.+)$", (ROOT / page).read_text("utf-8"), re.MULTILINE)
        anchors = {re.sub(r"[^a-z0-9 -]", "", head.lower()).replace(" ", "-") for head in heads}
        assert anchor in anchors
        assert anchor == defect.id


def test_a_defect_belongs_to_the_authors_file_alone():
    defects = read_defects(find_layout(POLICY))
    assert marks_of("MutBERT", (), defects, is_official=False).defects == ()
    assert [defect.id for defect in marks_of("MutBERT", (), defects, is_official=True).defects] == [
        "no-truncation"
    ]


@pytest.mark.parametrize("regime", shipped_benchmark().regimes)
def test_advice_that_names_a_marked_row_says_so(regime):
    for category in (None, *shipped_benchmark().category_order):
        row_advice = advice(regime, category=category)
        (own,) = row_advice.regimes
        for choice in own.choices:
            defect = DEFECTS.get(choice.model)
            assert choice.defects == ([defect] if defect else [])
        named = {own.highest.model, *([row_advice.smallest.model] if row_advice.smallest else [])}
        for choice in own.choices:
            texts = [f"Published defect [{defect}] of" for defect in choice.defects]
            texts += [f"warns about `{choice.model}`: [" for _ in choice.warnings[:1]]
            for words in texts:
                is_explained = any(
                    words in reason and f"`{choice.model}`" in reason for reason in row_advice.why
                )
                assert is_explained == (choice.model in named)


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
