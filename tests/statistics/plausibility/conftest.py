"""A board of its own for each forgery: the public rows, some replaced or added."""

import copy
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from geneb_ci.check.registry import select
from geneb_ci.check.runner import Checker, FileResult
from geneb_ci.common.benchmark import shipped_benchmark
from geneb_ci.common.finding import Finding
from geneb_ci.statistics.reference import ScoreTable, score_table_of
from geneb_ci.submission.peers import peers_of
from reference_harness.formats.benchmark import Benchmark
from tests.paths import ROOT, SUBMISSIONS

Document = dict[str, Any]
Judge = Callable[..., tuple[Finding, ...]]

RULES = select(["plausibility"], [])


@pytest.fixture(scope="session")
def benchmark() -> Benchmark:
    return shipped_benchmark()


@pytest.fixture(scope="session")
def table(benchmark: Benchmark) -> ScoreTable:
    return score_table_of(peers_of(SUBMISSIONS.glob("*.json")).rows, benchmark)


@pytest.fixture(scope="session")
def board(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a repository with the public rows, alone in its folder."""
    root = tmp_path_factory.mktemp("board")
    shutil.copytree(SUBMISSIONS, root / "submissions")
    shutil.copytree(ROOT / "schemas", root / "schemas")
    shutil.copytree(ROOT / "leaderboard/policy", root / "leaderboard/policy")
    return root


@pytest.fixture
def judge(board: Path) -> Judge:
    """Return what the family says of a document, in place of its own file or as a new one."""

    def judged(document: Document) -> tuple[Finding, ...]:
        path = board / "submissions" / f"{document['model_id']}.json"
        before = path.read_bytes() if path.exists() else None
        path.write_text(json.dumps(document))
        try:
            return check(path)
        finally:
            path.unlink() if before is None else path.write_bytes(before)

    return judged


def check(*paths: Path) -> tuple[Finding, ...]:
    """Return the findings of the family for some files."""
    results = list(Checker(RULES).run(list(paths)))
    assert all(isinstance(result, FileResult) for result in results)
    return tuple(f for r in results if isinstance(r, FileResult) for f in r.findings)


def public(name: str, model_id: str = "") -> Document:
    """Load a public row, under another id if one is given."""
    document: Document = json.loads((SUBMISSIONS / f"{name}.json").read_bytes())
    document = copy.deepcopy(document)
    document["model_id"] = model_id or document["model_id"]
    return document


def changed(document: Document, change: Callable[[str, str, float], float]) -> Document:
    """Return the document with every MCC replaced by `change(regime, task, MCC)`."""
    for regime, tasks in document["results"].items():
        for task, scores in tasks.items():
            scores["MCC"] = min(1.0, max(-1.0, change(regime, task, scores["MCC"])))
    return document


def rules_of(findings: tuple[Finding, ...]) -> set[str]:
    """Return the rules that spoke."""
    return {finding.rule for finding in findings}
