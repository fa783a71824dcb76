"""From submissions to the files of the board: every one is checked first, or nothing is built."""

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from geneb_ci.board.columns import Entry
from geneb_ci.board.files import encode
from geneb_ci.board.page_data import page_scripts
from geneb_ci.board.rows import Watch, checked_entries, leaderboards, ranked_regimes
from geneb_ci.check.registry import RULES
from geneb_ci.check.runner import Checker, FileResult, Report
from geneb_ci.common.benchmark import Benchmark
from geneb_ci.common.config import Layout, benchmark_of
from geneb_ci.common.errors import UsageProblem
from geneb_ci.common.finding import Finding, Severity

if TYPE_CHECKING:
    from geneb_ci.board.recommend import Advice, ModelRequest

EXTRA = frozenset({"numpy", "pandas", "scipy"})


@contextlib.contextmanager
def extra_at_hand(remedy: str = "") -> Iterator[None]:
    """Stand around imports of what only the extra `build` brings.

    Raises UsageProblem, whose fix ends with the remedy, where it is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in EXTRA:
            raise
        raise UsageProblem(
            f"{error.name} is not installed, and intervals need it",
            f'pip install "geneb-ci[build]"{remedy}',
        ) from error


def unknown_sizes(benchmark: Benchmark) -> list[str]:
    """Name the tasks of which the test split has no known size: with one, no interval is known."""
    return [task.id for task in benchmark.tasks if task.n_test is None]


def analysed(entries: Iterable[Entry], benchmark: Benchmark) -> dict[str, Any]:
    """Return diagnostics.json and recommendations.json as values.

    Raises UsageProblem when the extra `build` is not installed.
    """
    with extra_at_hand("; only `build --no-diagnostics` does without"):
        from geneb_ci.board.diagnostics.whole import diagnostics  # noqa: PLC0415 (0.7 s)
        from geneb_ci.board.recommend import recommendations  # noqa: PLC0415
        from geneb_ci.board.uncertainty import intervals  # noqa: PLC0415
    rows = list(entries)
    found = intervals(rows, benchmark)
    return {
        "diagnostics.json": diagnostics(rows, benchmark, found),
        "recommendations.json": recommendations(rows, benchmark, found),
    }


def advised(need: "ModelRequest", entries: Iterable[Entry], benchmark: Benchmark) -> "Advice":
    """Return advice for one need.

    Raises UsageProblem when the benchmark lacks what is named, or the extra is not installed.
    """
    with extra_at_hand(", which brings scipy"):
        from geneb_ci.board.recommend import advise  # noqa: PLC0415
        from geneb_ci.board.uncertainty import intervals  # noqa: PLC0415
    rows = list(entries)
    return advise(need, rows, benchmark, intervals(rows, benchmark, regimes=[need.regime]))


@dataclass(frozen=True)
class Board:
    """The files of a board by name, and what to say of them."""

    files: dict[str, bytes]
    scripts: dict[str, bytes]
    """The same for the page, which may be opened from a disk, where nothing can be fetched."""
    models: int
    unranked: tuple[str, ...]
    """Model and regime of each row that missing cells keep off the board."""
    unsized: tuple[str, ...] = ()
    """Tasks without a size, for which the files that need intervals are left out."""


def rows_of(
    layout: Layout, files: list[Path], watch: Watch = lambda results, _: results
) -> tuple[Report, list[Entry] | None]:
    """Check every submission with every rule, and give them levels; none unless all of them pass.

    `watch` passes results on and may show progress; it is told how many there will be.
    Raises BadConfiguration, and BrokenRecordError where an audit record is broken.
    """
    checker = Checker(RULES)
    report = Report(rules=len(RULES))
    entries: list[Entry] = []
    for result, entry in checked_entries(layout, checker, files, watch):
        if isinstance(result, FileResult):
            report.add(result)
        else:
            report.unreadable.append(result)
        if entry is not None:
            entries.append(entry)
    report.benchmarks = checker.benchmarks
    report.findings.sort(key=Finding.sort_key)
    return report, entries if _sound(report) else None


def _sound(report: Report) -> bool:
    failed = any(finding.severity is Severity.ERROR for finding in report.findings)
    return bool(report.files) and not report.unreadable and not failed


def board_of(entries: list[Entry], layout: Layout, *, more: bool = True) -> Board:
    """Return the files of a board; `more` are the two of intervals, which need the extra `build`.

    A benchmark that does not know how large its tasks are has no intervals.

    Raises BadConfiguration, InvalidBoard, and UsageProblem where the extra is not installed.
    """
    benchmark = benchmark_of(layout)
    categories, tasks = leaderboards(entries, benchmark)
    values = {"leaderboard.json": categories, "leaderboard_tasks.json": tasks}
    unsized = unknown_sizes(benchmark) if more else []
    if more and not unsized:
        values |= analysed(entries, benchmark)
    return Board(
        files={name: encode(name, value) for name, value in values.items()},
        scripts=page_scripts(values, entries, benchmark),
        models=len(entries),
        unranked=tuple(_unranked(entries, benchmark)),
        unsized=tuple(unsized),
    )


def _unranked(entries: list[Entry], benchmark: Benchmark) -> Iterator[str]:
    for entry in entries:
        for regime in benchmark.regimes:
            if regime not in ranked_regimes(entry.submission, benchmark):
                yield f"{entry.submission.model_id} ({regime})"
