"""The data of the base branch for verdicts: rows, benchmark, policy and evidence."""

import functools
from collections.abc import Callable
from pathlib import Path

from geneb_ci.audit.sampling.design import audit_policy
from geneb_ci.audit.trust.evidence import gather_evidence
from geneb_ci.board.parts import unknown_sizes
from geneb_ci.check.runner import Checker
from geneb_ci.common.config import Layout, benchmark_of
from geneb_ci.common.errors import NothingChecked
from geneb_ci.common.types import TrustLevel
from geneb_ci.github.verdict.model import DecidedStanding
from geneb_ci.receipt.seen import read_shared_errors
from geneb_ci.submission.document import Document
from geneb_ci.submission.reading import files_in
from reference_harness.formats.submission import Submission, SubmissionV11

DecisionFunction = Callable[[str], DecidedStanding]
"""A function that returns the significant results of a row in a regime."""


class BaseBranch:
    """The data of the base branch with which pull requests are compared."""

    def __init__(self, layout: Layout) -> None:
        self.benchmark = benchmark_of(layout)
        self.policy = audit_policy(layout)
        self.layout = layout
        self._checker = Checker(())

    @functools.cached_property
    def rows(self) -> list[Submission]:
        """The readable rows, read on first use."""
        rows = (self._row(path) for path in self._files())
        return [row for row in rows if row is not None]

    @functools.cached_property
    def extractor_by_model(self) -> dict[str, str]:
        """File name of the extractor that each row names, by model id."""
        rows = (self._row(path) for path in self._files() if _may_name_extractor(path))
        return {
            row.model_id: row.run.extractor.path.rsplit("/", 1)[-1]
            for row in rows
            if isinstance(row, SubmissionV11)
        }

    def has_row(self, model: str) -> bool:
        """Whether a row with this id is published."""
        return any(path.stem == model and self._row(path) for path in self._files())

    def _files(self) -> list[Path]:
        """Return the paths of the rows of the base branch, sorted."""
        return sorted(files_in(self.layout.submissions)) if self.layout.submissions else []

    def _row(self, path: Path) -> Submission | None:
        """Return the row in a file; None if the file is not a valid submission."""
        try:
            return self._checker.context(path).submission
        except NothingChecked:
            return None

    def trust_level(self, model_id: str, file: Document) -> TrustLevel:
        """Return the trust level that a row gets from audits of exactly this file."""
        evidence = gather_evidence(self.layout, model_id)
        return evidence.decide(file.sha256, file.origin, file.scorer).level

    def decision_function(self, submission: Submission) -> DecisionFunction | None:
        """Return the function that decides what is significant on a board with `submission`.

        None without the extra `build`, or if the benchmark lacks n_test of a task.
        """
        if unknown_sizes(self.benchmark):
            return None
        try:
            from geneb_ci.board.uncertainty import model_ranking, regime_scores  # of the extra
        except ModuleNotFoundError:
            return None
        submissions = {row.model_id: row for row in self.rows} | {submission.model_id: submission}
        known_errors = read_shared_errors(self.layout)

        def decide_regime(regime: str) -> DecidedStanding:
            board = regime_scores(submissions.values(), regime, self.benchmark, known_errors)
            macro = model_ranking(board, "macro")[submission.model_id]
            categories = [model_ranking(board, name) for name in self.benchmark.category_order]
            return DecidedStanding(
                rank_low=macro["rank_low"],
                rank_high=macro["rank_high"],
                better_than=len(board.models) - macro["rank_high"],
                worse_than=macro["rank_low"] - 1,
                best_in=sum(
                    category[submission.model_id]["could_be_best"] for category in categories
                ),
                categories=len(categories),
            )

        return decide_regime


def _may_name_extractor(path: Path) -> bool:
    """Whether the file of a row may name an extractor; other files need not be parsed."""
    try:
        raw = path.read_bytes()
    except OSError:  # not a readable row
        return False
    return b"extractor" in raw or b"\\u" in raw  # any letter may be written as an escape
