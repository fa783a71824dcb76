"""The 41 public submissions: no error, one note, which is true, and what plausibility warns of."""

from pathlib import Path

from geneb_ci.check.registry import BY_ID, RULES
from geneb_ci.check.runner import Checker, FileResult, files_of
from geneb_ci.common.finding import Finding, Severity
from tests.paths import SUBMISSIONS

CONTRIBUTED = "splicebert-1024nt"


def test_all_that_is_said_of_the_public_submissions():
    results = list(Checker(RULES).run(files_of([SUBMISSIONS])))
    assert len(results) == 41
    findings = [f for r in results if isinstance(r, FileResult) for f in r.findings]
    # Three rows, cell by cell in tests/statistics/plausibility/test_public_rows.py.
    doubted = [f for f in findings if BY_ID[f.rule].family == "plausibility"]
    assert {(Path(f.file).stem, f.severity) for f in doubted} == {
        ("BioFM-265M", Severity.WARNING),
        ("LucaOne-default-step36M", Severity.NOTE),
        ("evo-1-131k-base", Severity.WARNING),
    }
    assert [f for f in findings if f not in doubted] == [
        Finding(
            rule="no-run-details",
            severity=Severity.NOTE,
            message="format 1.0 has no run details: this row can only be audited manually",
            file=str(SUBMISSIONS / f"{CONTRIBUTED}.json"),
            pointer="/schema_version",
            line=1,
            column=19,
            found='"1.0"',
            expected='"1.1"',
            fix=(
                "Write format 1.1 with `geneb-harness run --submission FILE`; "
                "format 1.0 stays valid."
            ),
        )
    ]


def test_forty_are_official_by_their_bytes_and_each_is_typed():
    results = [r for r in Checker(RULES).run(files_of([SUBMISSIONS])) if isinstance(r, FileResult)]
    assert [r.model_id for r in results if not r.is_official] == [CONTRIBUTED]
    assert all(r.submission is not None for r in results)
    assert sorted(r.model_id for r in results) == sorted(p.stem for p in SUBMISSIONS.glob("*.json"))


def test_one_changed_byte_makes_an_official_file_another(tmp_path):
    source = SUBMISSIONS / "space.json"
    path = tmp_path / "space.json"
    path.write_bytes(source.read_bytes() + b"\n")
    assert [f.rule for f in Checker(RULES).check(path).findings] == [
        "no-run-details",
        "changed-official-file",
    ]
