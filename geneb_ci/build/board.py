"""From submissions to the files of the board: every one is checked first, or nothing is built."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from geneb_ci.benchmark import Benchmark
from geneb_ci.build.analysed import analysed, unknown_sizes
from geneb_ci.build.files import encode
from geneb_ci.build.page_data import page_scripts
from geneb_ci.build.rows import Entry, entry_of, leaderboards, ranked_regimes
from geneb_ci.check.registry import RULES
from geneb_ci.check.runner import Checker, FileResult, Report
from geneb_ci.config import Layout, benchmark_of
from geneb_ci.errors import NothingChecked
from geneb_ci.finding import Finding, Severity
from geneb_ci.label.evidence import gather

Results = Iterable[FileResult | NothingChecked]
Watch = Callable[[Results, int], Results]


@dataclass(frozen=True)
class Board:
    """The files of a board by name, and what to say of them."""

    files: dict[str, bytes]
    scripts: dict[str, bytes]
    """The same for the page, which may be opened from a disk, where nothing can be fetched."""
    models: int
    unranked: tuple[str, ...]
    """Model and regime of each row that declared gaps keep off the board."""
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
    evidence = gather(layout)
    evidence.require_sound()
    for result in watch(checker.run(files), len(files)):
        if not isinstance(result, FileResult):
            report.unreadable.append(result)
            continue
        report.add(result)
        if result.submission is not None:
            decision = evidence.decide(result.document.sha256)
            entries.append(entry_of(result.submission, decision))
    report.benchmarks = checker.benchmarks
    report.findings.sort(key=Finding.sort_key)
    return report, entries if _sound(report) else None


def _sound(report: Report) -> bool:
    failed = any(finding.severity is Severity.ERROR for finding in report.findings)
    return bool(report.files) and not report.unreadable and not failed


def board_of(entries: list[Entry], layout: Layout, *, more: bool = True) -> Board:
    """Give the files of a board; `more` are the two of intervals, which need the extra `build`.

    A benchmark that does not know how large its tasks are has no intervals.

    Raises BadConfiguration, InvalidBoard, and UsageProblem where the extra is not installed.
    """
    benchmark = benchmark_of(layout)
    categories, tasks = leaderboards(entries, benchmark)
    values = {"leaderboard.json": categories, "leaderboard_tasks.json": tasks}
    unsized = unknown_sizes(benchmark) if more else []
    if more and not unsized:
        values |= analysed(entries, benchmark, layout)
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
