"""Why a row is disputed: what its signed records say, in leaderboard.json and on its page."""

import dataclasses
import hashlib
import html
import json
from typing import Any

import pytest

from geneb_ci.audit.trust.evidence import gather_evidence
from geneb_ci.audit.trust.level import decide
from geneb_ci.board.columns import row_of
from geneb_ci.board.rows import LEADERBOARD, board_file_bytes, leaderboards
from geneb_ci.board.site.inputs import SourceCommit, site_of
from geneb_ci.board.site.render import site_files
from geneb_ci.common.config import find_layout
from reference_harness.formats.submission import SubmissionV11
from tests.audit.recorded import (
    FIRST,
    MODEL,
    outcome_of,
    plan_for,
    put,
    repository,
    submission_bytes,
)
from tests.audit.test_trust import DEMANDS
from tests.board.test_attestation import unattested
from tests.page.site import COMMIT, REPOSITORY
from tests.small import BENCHMARK

RAW = submission_bytes()
SUBMISSION = SubmissionV11.model_validate_json(RAW)
OUTCOME = outcome_of(plan_for(RAW, FIRST), RAW, shift=0.2)
METRIC = "MCC"


@pytest.fixture(scope="module")
def disputed(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str, str]:
    """A row whose audit differs: its facts on the board, its page, and the id of the record."""
    root = repository(tmp_path_factory.mktemp("disputed"), RAW)
    record = put(root, OUTCOME)
    layout = dataclasses.replace(find_layout(root), repository=REPOSITORY)
    decision = gather_evidence(layout).decide(hashlib.sha256(RAW).hexdigest())
    entries = [row_of(SUBMISSION, decision, {})]
    categories, tasks = leaderboards(entries, BENCHMARK)
    values = {LEADERBOARD: categories, "leaderboard_tasks.json": tasks}
    site = site_of(entries, values, BENCHMARK, layout, SourceCommit(COMMIT, "2026-11-20T08:30:00Z"))
    page = html.unescape(site_files(site)[f"models/{MODEL}.html"].decode())
    row = json.loads(board_file_bytes(LEADERBOARD, categories))["data"]["full"][0]
    return row, page, record.stem


def test_the_board_has_each_score_outside_its_tolerance(disputed) -> None:
    row, _, record = disputed
    first = OUTCOME.tasks[0]
    assert row["disputes"] == [
        {
            "record": record,
            "signer": "a maintainer",
            "date": OUTCOME.finished_at[:10],
            "why": row["disputes"][0]["why"],
            "scores": [
                {
                    "task": first.task,
                    "regime": regime,
                    "metric": METRIC,
                    "claimed": cell.claimed.MCC,
                    "rerun": cell.rescored.MCC,
                    "tolerance": cell.tolerance.MCC,
                }
                for regime, cell in sorted(first.regimes.items())
            ],
        }
    ]
    assert row["disputes"][0]["why"][0] == f"claims differ in 1 of 2 rerun tasks: {first.task}"
    assert unattested({LEADERBOARD: {"data": {"full": [{"disputes": row["disputes"]}]}}}) == []


def test_the_page_shows_the_scores_and_links_to_the_signed_record(disputed) -> None:
    _, page, record = disputed
    section = page.partition('<h2 id="disputed">')[2].partition("<h2 ")[0]
    first = OUTCOME.tasks[0]
    for regime, cell in first.regimes.items():
        numbers = (cell.claimed, cell.rescored, cell.tolerance)
        claimed, rerun, tolerance = (f"{number.MCC:.4f}" for number in numbers)
        row = next(line for line in section.splitlines() if f"<td>{regime}</td>" in line)
        assert all(f">{text}</td>" in row for text in (METRIC, claimed, rerun, tolerance))
        assert f"tasks/{first.task}.html" in row
    assert "Signed by <bdi>a maintainer</bdi>" in section
    assert f"{REPOSITORY}/blob/{COMMIT}/leaderboard/audits/{MODEL}/{record}.json" in section


def test_aborted_runs_are_named_and_a_row_without_dispute_says_nothing() -> None:
    digest = hashlib.sha256(RAW).hexdigest()
    aborted = row_of(SUBMISSION, decide(digest, (), {}, DEMANDS, ("0a", "0b")), {})
    assert aborted.disputes == ({"why": ["the last 2 runs were aborted: 0a, 0b"], "scores": []},)
    assert row_of(SUBMISSION, decide(digest, (), {}, DEMANDS), {}).disputes == ()


def test_a_row_without_a_rank_range_is_cited_with_its_score(disputed) -> None:
    cited = disputed[1].partition('<h2 id="cite">')[2]
    assert f"{SUBMISSION.meta.display}: macro MCC 0." in cited
    assert " by macro" not in cited
