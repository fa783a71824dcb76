"""The board of a working tree against that of a commit, which is read and never checked out."""

import os
import tempfile
from pathlib import Path
from typing import NamedTuple

from geneb_ci.benchmark import Benchmark
from geneb_ci.build.diff import BoardDiff, Side, board_diff
from geneb_ci.build.entries import Read, Refused, read_entries
from geneb_ci.build.margin import interval_of
from geneb_ci.build.rows import leaderboards
from geneb_ci.check.registry import RULES
from geneb_ci.config import Layout, benchmark_of, find_layout
from geneb_ci.errors import GenebError, NothingChecked, UsageProblem
from geneb_ci.publish.git import Repository
from geneb_ci.publish.inputs import INPUTS
from geneb_ci.publish.tree import lay_out


class Comparison(NamedTuple):
    """What differs, between what, and what was left out of it."""

    base: str
    """As it was named."""
    commit: str
    """40 hex digits."""
    diff: BoardDiff
    refused: tuple[Refused, ...]
    """Submissions of the working tree with errors: the new board is built without them."""
    refused_before: tuple[Refused, ...]
    """Submissions of the commit that could not be read."""


def compare(layout: Layout, base: str) -> Comparison:
    """Compare the board of a working tree with that of a commit of its repository.

    Each side is held against its own benchmark and policy. What was merged counts as it stands:
    the commit's submissions are read, not judged by today's rules.
    Raises UsageProblem when the commit is unknown or holds no submissions.
    """
    repository, commit = repository_of(layout, base)
    with tempfile.TemporaryDirectory(prefix="geneb-ci-") as name:
        folder = Path(os.path.realpath(name))
        named = named_places(layout, layout.submissions, layout.benchmark, layout.policy)
        lay_out(repository, commit, folder, (*INPUTS, *named))
        try:
            before, old_benchmark = read_entries(folder, ()), benchmark_of(find_layout(folder))
        except NothingChecked as error:
            raise UsageProblem(
                f"{base!r} ({commit[:12]}) holds no submissions", "name a commit that does"
            ) from error
        except GenebError as error:  # the folder is gone by the time somebody reads its name
            told = error.message.replace(f"{folder}/", f"{commit[:12]}:")
            raise UsageProblem(
                told, "name a commit whose benchmark and policy are sound"
            ) from error
    after = read_entries(layout.root, RULES)
    diff = board_diff(_side(before, old_benchmark), _side(after, benchmark_of(layout)))
    return Comparison(base, commit, diff, after.refused, before.refused)


def repository_of(layout: Layout, name: str) -> tuple[Repository, str]:
    """Give the repository that a working tree belongs to, and the commit of that name.

    Raises UsageProblem when there is no such repository or commit.
    """
    repository = Repository(layout.root)
    try:
        top = repository.run("rev-parse", "--show-toplevel").decode().rstrip("\n")
        commit = repository.resolve(name)
    except GenebError as error:
        raise UsageProblem(error.message, error.fix) from error
    if os.path.realpath(top) != os.path.realpath(layout.root):
        raise UsageProblem(
            f"{layout.root} is not the top folder of its git repository",
            f"run it where the submissions are at the top, not below {top}",
        )
    return repository, commit


def named_places(layout: Layout, *places: Path | None) -> list[str]:
    """Give places of a layout as paths of its repository, those that lie inside it."""
    inside = (p for p in places if p is not None and p.is_relative_to(layout.root))
    return sorted({str(place.relative_to(layout.root)) for place in inside} - {"."})


def _side(read: Read, benchmark: Benchmark) -> Side:
    categories, tasks = leaderboards(read.entries, benchmark)
    return Side(categories, tasks, interval_of(tasks, benchmark))
