"""Compares the board of a working tree with that of a commit, which is not checked out."""

import os
import tempfile
from pathlib import Path
from typing import NamedTuple

from geneb_ci.board.board import extra_at_hand, unknown_sizes
from geneb_ci.board.diff import BoardDiff, Side, board_diff
from geneb_ci.board.ranks import Estimates
from geneb_ci.board.rows import Read, RejectedSubmission, leaderboards, read_entries
from geneb_ci.check.registry import RULES
from geneb_ci.common.benchmark import Benchmark
from geneb_ci.common.config import Layout, benchmark_of, find_layout
from geneb_ci.common.errors import GenebError, NothingChecked, UsageProblem
from geneb_ci.publish.git import INPUTS, lay_out, named_places, repository_of


class Comparison(NamedTuple):
    """The differences between two boards, and what was left out."""

    base: str
    """Name of the commit, as given."""
    commit: str
    """40 hex digits."""
    diff: BoardDiff
    refused: tuple[RejectedSubmission, ...]
    """Submissions of the working tree with errors; the new board lacks them."""
    refused_before: tuple[RejectedSubmission, ...]
    """Submissions of the commit that could not be read."""
    unsized: tuple[str, ...] = ()
    """Tasks without n_test; if there is any, significance is not computed."""


def compare(layout: Layout, base: str) -> Comparison:
    """Compare the board of a working tree with that of a commit of its repository.

    Each side uses its own benchmark and policy. The commit's submissions are not checked, because
    they were merged. Raises WrongRepository if the commit is unknown, UsageProblem if it has no
    submissions, or if the extra `build` is not installed.
    """
    repository, commit = repository_of(layout, base)
    with tempfile.TemporaryDirectory(prefix="geneb-ci-") as name:
        folder = Path(os.path.realpath(name))
        named = named_places(
            layout, layout.submissions, layout.benchmark, layout.policy, layout.audits
        )
        lay_out(repository, commit, folder, (*INPUTS, *named))
        try:
            before, old_benchmark = read_entries(folder, ()), benchmark_of(find_layout(folder))
        except NothingChecked as error:
            raise UsageProblem(
                f"{base!r} ({commit[:12]}) has no submissions", "pass a commit that has submissions"
            ) from error
        except GenebError as error:  # do not name the temporary folder
            told = error.message.replace(f"{folder}/", f"{commit[:12]}:")
            raise UsageProblem(
                told, "pass a commit whose benchmark and policy are valid"
            ) from error
    after = read_entries(layout.root, RULES)
    benchmark, known = benchmark_of(layout), Estimates()
    diff = board_diff(_side(before, old_benchmark, known), _side(after, benchmark, known))
    unsized = tuple(unknown_sizes(benchmark))
    return Comparison(base, commit, diff, after.refused, before.refused, unsized)


def _side(read: Read, benchmark: Benchmark, known: Estimates) -> Side:
    """Return a board; estimates of rows that are on both boards are computed once."""
    categories, tasks = leaderboards(read.entries, benchmark)
    with extra_at_hand():
        from geneb_ci.board.uncertainty import Estimate  # noqa: PLC0415 (0.5 s)
    rows = {entry.submission.model_id: entry.submission for entry in read.entries}
    scores = {
        (row["model"], regime): row["macro_MCC"]
        for regime, found in categories["data"].items()
        for row in found
    }
    sized = not unknown_sizes(benchmark)

    def estimate(model: str, regime: str) -> Estimate:
        if not sized:
            score = scores[model, regime]
            return Estimate(score, 0.0, score, score)
        return known.of(rows[model], regime, benchmark)

    return Side(categories, tasks, estimate)
