"""The 41 public submissions: no error, and two rows with warnings: see docs/plausibility.md."""

from pathlib import Path

from geneb_ci.check.registry import RULES
from geneb_ci.check.runner import Checker, FileResult, files_of
from geneb_ci.finding import Severity
from tests.paths import SUBMISSIONS

CONTRIBUTED = "splicebert-1024nt"
PROMOTER = "iPro-WAEL_Promoter_"
WORM = "katarinagresova_Genomic_Benchmarks_demo_human_or_worm"


def test_all_that_is_said_of_the_public_submissions():
    results = list(Checker(RULES).run(files_of([SUBMISSIONS])))
    assert len(results) == 41
    found = [f for r in results if isinstance(r, FileResult) for f in r.findings]
    said = [
        (Path(f.file).stem, f.severity, f.rule, *f.pointer.split("/")[2:4], round(f.score, 1))
        for f in found
    ]
    assert said == [
        *(
            ("BioFM-265M", Severity.WARNING, "implausible-cell", regime, f"{PROMOTER}{cell}", score)
            for regime, cell, score in (
                ("full", "GM12878", 1.4),
                ("full", "HUVEC", 1.7),
                ("full", "Hela-S3", 1.7),
                ("full", "NHEK", 1.1),
                ("10shot", "HUVEC", 1.1),
                ("10shot", "Hela-S3", 1.4),
            )
        ),
        ("evo-1-131k-base", Severity.WARNING, "implausible-cell", "full", WORM, 1.2),
        (CONTRIBUTED, Severity.NOTE, "no-run-details", 0.0),
    ]


def test_forty_are_official_by_their_bytes_and_each_is_typed():
    results = [r for r in Checker(RULES).run(files_of([SUBMISSIONS])) if isinstance(r, FileResult)]
    assert [r.model_id for r in results if not r.official] == [CONTRIBUTED]
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
