"""Compares a working tree with another commit: their boards, or the findings of their rules.

The rules of the commit are code, which runs in a separate process, from a copy of the commit's
tree, with a clean environment. The process is not sandboxed, so the commit must be trusted.
"""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from geneb_ci.board.board import CheckedFolder, RejectedSubmission, read_checked_rows
from geneb_ci.board.diff import BoardDiff, BoardSide, board_diff
from geneb_ci.board.parts import unknown_sizes
from geneb_ci.board.rows import extra_required, leaderboards
from geneb_ci.check.registry import RULES
from geneb_ci.check.runner import Checker, FileResult, files_of
from geneb_ci.common.config import Layout, benchmark_of, find_layout
from geneb_ci.common.errors import GenebError, NothingChecked, UsageProblem
from geneb_ci.common.finding import Severity
from geneb_ci.publish.git import (
    BOARD_INPUTS,
    CODE_FOLDER,
    paths_inside,
    repository_of,
    write_commit_files,
)
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.files import read_json


class BoardComparison(NamedTuple):
    """The differences between two boards, and the submissions that were left out."""

    base: str
    """Name of the commit, as given."""
    commit: str
    """Id of the commit, 40 hex digits."""
    diff: BoardDiff
    """The differences of rows and ranks."""
    refused: tuple[RejectedSubmission, ...]
    """Submissions of the working tree with errors; the new board lacks them."""
    refused_before: tuple[RejectedSubmission, ...]
    """Submissions of the commit that could not be read."""
    unsized: tuple[str, ...] = ()
    """Ids of tasks without n_test; if there is any, significance is not computed."""


def compare_boards(layout: Layout, base: str) -> BoardComparison:
    """Compare the board of a working tree with that of a commit of its repository.

    Each side uses its own benchmark and policy. The commit's submissions are not checked, because
    they were merged. Raises WrongRepository if the commit is unknown, UsageProblem if it has no
    submissions, or if the extra `build` is not installed.
    """
    repository, commit = repository_of(layout, base)
    with tempfile.TemporaryDirectory(prefix="geneb-ci-") as temporary:
        folder = Path(os.path.realpath(temporary))
        input_paths = paths_inside(
            layout, layout.submissions, layout.benchmark, layout.policy, layout.audits
        )
        write_commit_files(repository, commit, folder, (*BOARD_INPUTS, *input_paths))
        try:
            before, old_benchmark = read_checked_rows(folder, ()), benchmark_of(find_layout(folder))
        except NothingChecked as error:
            raise UsageProblem(
                f"{base!r} ({commit[:12]}) has no submissions", "pass a commit that has submissions"
            ) from error
        except GenebError as error:  # do not name the temporary folder
            message = error.message.replace(f"{folder}/", f"{commit[:12]}:")
            raise UsageProblem(
                message, "pass a commit whose benchmark and policy are valid"
            ) from error
    return _comparison_with(base, commit, before, old_benchmark, layout)


def compare_boards_of_folders(
    base: str, commit: str, before: Layout, after: Layout
) -> BoardComparison:
    """Compare the boards of two folders; `base` and `commit` are name and id of the first one.

    Raises UsageProblem if the extra `build` is not installed.
    """
    return _comparison_with(
        base, commit, read_checked_rows(before.root, ()), benchmark_of(before), after
    )


def _comparison_with(
    base: str, commit: str, before: CheckedFolder, old_benchmark: Benchmark, layout: Layout
) -> BoardComparison:
    """Return the comparison of the board of a commit, `before`, with that of a layout."""
    after, benchmark = read_checked_rows(layout.root, RULES), benchmark_of(layout)
    diff = board_diff(_board_side(before, old_benchmark), _board_side(after, benchmark))
    unsized = tuple(unknown_sizes(benchmark))
    return BoardComparison(base, commit, diff, after.refused, before.refused, unsized)


def _board_side(checked_folder: CheckedFolder, benchmark: Benchmark) -> BoardSide:
    """Return the files of the board of a folder, and the uncertainty of its scores."""
    with extra_required():
        from geneb_ci.board.uncertainty import scores_by_regime  # of the extra `build`
    rows = checked_folder.rows
    categories, tasks = leaderboards(rows, benchmark)
    if unknown_sizes(benchmark):
        return BoardSide(categories, tasks, None)
    boards = scores_by_regime(rows, benchmark)
    columns = {regime: board.scores["macro"] for regime, board in boards.items()}
    return BoardSide(categories, tasks, columns)


RULE_PATHS = (CODE_FOLDER, "schemas", "leaderboard/policy", "pyproject.toml")
"""Paths that a replay takes from the commit; rows, cards and extractors are of the working tree."""
REPLAY_SECONDS_MAX = 900
"""Time limit of a replay: a thousand rows take 40 s, so a longer one hangs in a rule."""
REPORT_FORMAT_VERSION = "1.0"
"""Version of the JSON report of `check` that a replay reads."""
_EXIT_CODES_WITH_REPORT = {0, 3, 10, 11}
"""Exit codes of `check` with a report: clean, not checked, warnings, errors."""


class ReplayError(GenebError):
    """The checker of the other commit failed."""


class RuleEffect(NamedTuple):
    """The findings of a rule on a row that only one of the two checkers has."""

    row: str
    """Model id, from the file name."""
    rule: str
    """Id of the rule."""
    places: int
    """Number of findings."""
    message: str
    """Message of the first finding."""


class Replay(NamedTuple):
    """The findings that would appear or disappear with the rules of another commit."""

    name: str
    """Name of the commit, as given."""
    commit: str
    """Id of the commit, 40 hex digits."""
    rows: int
    """Number of files that were checked."""
    fails: tuple[RuleEffect, ...]
    """Errors that a row has under the other rules only."""
    warns: tuple[RuleEffect, ...]
    """Warnings that a row has under the other rules only."""
    heals: tuple[RuleEffect, ...]
    """Errors that a row has under the present rules only."""


FindingCounts = dict[tuple[str, str, str], tuple[int, str]]
"""Number of findings and first message, by severity, row and rule."""


def replay(layout: Layout, base: str) -> Replay:
    """Return what the rules, benchmark and policy of a commit change for the rows of `layout`.

    Raises WrongRepository if the commit is unknown, UsageProblem if it has no checker, ReplayError
    if its checker fails, and NothingChecked if there is no row.
    """
    repository, commit = repository_of(layout, base)
    if not repository.tree(commit, (f"{CODE_FOLDER}/__main__.py",)):
        raise UsageProblem(
            f"{base!r} ({commit[:12]}) has no {CODE_FOLDER}/__main__.py, so it has no rules",
            "pass a commit of the repository that geneb-ci is developed in",
        )
    files = files_of([layout.root])
    with tempfile.TemporaryDirectory(prefix="geneb-ci-") as temporary:
        folder = Path(os.path.realpath(temporary))
        write_commit_files(repository, commit, folder, RULE_PATHS)
        for relative in paths_inside(layout, layout.submissions, layout.cards, layout.extractors):
            _copy_regular_files(layout.root / relative, folder / relative)
        replayed_counts = _findings_of_commit(folder, base)
    present_counts = _present_findings(files)
    return Replay(
        base,
        commit,
        len(files),
        fails=_effects_only_in(replayed_counts, present_counts, Severity.ERROR),
        warns=_effects_only_in(replayed_counts, present_counts, Severity.WARNING),
        heals=_effects_only_in(present_counts, replayed_counts, Severity.ERROR),
    )


def _copy_regular_files(source: Path, target: Path) -> None:
    """Copy a folder without special files, because reading a FIFO would block."""

    def special_files(folder: str, names: list[str]) -> list[str]:
        modes = {name: (Path(folder) / name).lstat().st_mode for name in names}
        checks = (stat.S_ISREG, stat.S_ISDIR, stat.S_ISLNK)
        return [
            name for name, mode in modes.items() if not any(is_copied(mode) for is_copied in checks)
        ]

    shutil.copytree(source, target, symlinks=True, ignore=special_files, dirs_exist_ok=True)


def _findings_of_commit(folder: Path, base: str) -> FindingCounts:
    """Run the checker of a folder on the folder's rows, and return its findings.

    Raises ReplayError if the checker fails or does not end in `REPLAY_SECONDS_MAX` seconds.
    """
    # -P: import from PYTHONPATH, not from the current folder.
    command = [sys.executable, "-P", "-m", CODE_FOLDER, "check", "--format", "json"]
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "PYTHONPATH": str(folder),
        "PYTHONDONTWRITEBYTECODE": "1",
        "LC_ALL": "C.UTF-8",
    }
    try:
        process = subprocess.run(  # noqa: S603 (a commit that the caller named, as the help says)
            command,
            cwd=folder,
            env=environment,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            check=False,
            timeout=REPLAY_SECONDS_MAX,
        )
    except subprocess.TimeoutExpired as error:
        raise ReplayError(
            f"`geneb-ci check` of commit {base!r} did not finish in {REPLAY_SECONDS_MAX} seconds",
            "run `geneb-ci check` in a checkout of that commit to find the rule that hangs",
        ) from error
    report = (
        _parsed_report(process.stdout) if process.returncode in _EXIT_CODES_WITH_REPORT else None
    )
    if report is None:
        last_line = process.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise ReplayError(
            f"`geneb-ci check` of commit {base!r} wrote no report that this version reads, and "
            f"ended with exit code {process.returncode}: {last_line}",
            "run `geneb-ci check` in a checkout of that commit to see the whole error",
        )
    return _counted_findings(
        (finding["severity"], finding["file"], finding["rule"], finding["message"])
        for finding in report["findings"]
    )


def _parsed_report(raw: bytes) -> dict[str, Any] | None:
    """Return the JSON report of a checker; None if it has an unknown format."""
    try:
        report = read_json(raw)
    except ValueError:
        return None
    is_report = isinstance(report, dict) and report.get("format_version") == REPORT_FORMAT_VERSION
    return report if is_report and not report["unreadable"] and report["files"] else None


def _present_findings(files: list[Path]) -> FindingCounts:
    """Return the findings of the rules of this version. Raises NothingChecked."""
    findings: list[tuple[str, str, str, str]] = []
    for checked_row in Checker(RULES).run(files):
        if not isinstance(checked_row, FileResult):
            raise NothingChecked(checked_row.message, checked_row.fix)
        findings += [
            (finding.severity, finding.file, finding.rule, finding.message)
            for finding in checked_row.findings
        ]
    return _counted_findings(findings)


def _counted_findings(findings: Iterable[tuple[str, str, str, str]]) -> FindingCounts:
    """Return the counts of findings, which are given as (severity, file, rule, message)."""
    counts: FindingCounts = {}
    for severity, file, rule, message in findings:
        row = file.rsplit("/", 1)[-1].removesuffix(".json").removesuffix(".md")
        count, first = counts.get((severity, row, rule), (0, message))
        counts[severity, row, rule] = (count + 1, first)
    return counts


def _effects_only_in(
    counts: FindingCounts, other_counts: FindingCounts, severity: Severity
) -> tuple[RuleEffect, ...]:
    """Return the findings in `counts` by rules that find nothing on that row in `other_counts`."""
    return tuple(
        RuleEffect(row, rule, *counts[counted_severity, row, rule])
        for counted_severity, row, rule in sorted(counts)
        if counted_severity == severity and (counted_severity, row, rule) not in other_counts
    )
