"""The base branch, as its checkout holds it: what the row of a pull request is held against."""

import functools
from collections.abc import Callable

from geneb_ci.audit.policy import audit_policy
from geneb_ci.build.analysed import unknown_sizes
from geneb_ci.build.rows import ranked_regimes
from geneb_ci.build.standing import Estimates
from geneb_ci.check.runner import Checker
from geneb_ci.config import Layout, benchmark_of
from geneb_ci.errors import NothingChecked
from geneb_ci.label.evidence import gather
from geneb_ci.label.policy import Level
from geneb_ci.read.paths import files_in
from geneb_ci.read.submission import Submission, SubmissionV11

Ties = Callable[[str, str], list[str] | None]
"""Regime and model to the models it cannot be told from."""
# Intervals, tie groups and the macro mean of the board are those of this metric.
METRIC = "MCC"


class Base:
    """Rows, benchmark, policy and evidence of the base branch."""

    def __init__(self, layout: Layout) -> None:
        self.benchmark = benchmark_of(layout)
        self.policy = audit_policy(layout)
        self.rows = _rows(layout)
        self.modules = {
            row.model_id: row.run.extractor.path.rsplit("/", 1)[-1]
            for row in self.rows
            if isinstance(row, SubmissionV11)
        }
        """Model id to the file name of the extractor that the row names."""
        self._layout = layout
        self._estimates = Estimates()

    def level(self, own: Submission, sha256: str) -> Level:
        """Give the level that a row would have: bytes that were disputed before still are."""
        return gather(self._layout, own.model_id).decide(sha256).level

    def ties(self, own: Submission) -> Ties | None:
        """Give what `own` ties with, were it on the board; None where that cannot be known.

        It takes the extra `build`, a test size of every task, and the board's own metric.
        """
        if self.benchmark.primary_metric != METRIC or unknown_sizes(self.benchmark):
            return None
        try:
            from geneb_ci.build.uncertainty import surely_differ  # noqa: PLC0415 (of the extra)
        except ModuleNotFoundError:
            return None
        board = {row.model_id: row for row in self.rows} | {own.model_id: own}
        estimate = functools.partial(self._estimates.of, benchmark=self.benchmark)

        def tied(regime: str, model: str) -> list[str]:
            ranked = {m: r for m, r in board.items() if regime in ranked_regimes(r, self.benchmark)}
            this = estimate(ranked[model], regime)
            return sorted(
                other
                for other, row in ranked.items()
                if other != model and not surely_differ(this, estimate(row, regime), len(ranked))
            )

        return tied


def _rows(layout: Layout) -> list[Submission]:
    """Read the rows; one that cannot be read has no place."""
    checker = Checker(())
    rows = []
    for path in sorted(files_in(layout.submissions)) if layout.submissions else ():
        try:
            submission = checker.context(path).submission
        except NothingChecked:
            continue
        if submission is not None:
            rows.append(submission)
    return rows
