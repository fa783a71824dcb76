"""From submissions to the files of the board: every one is checked first, or nothing is built."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from geneb_ci.benchmark import Benchmark
from geneb_ci.build.files import encode
from geneb_ci.build.rows import Entry, leaderboards, ranked_regimes
from geneb_ci.check.registry import RULES
from geneb_ci.check.runner import Checker, FileResult, Report
from geneb_ci.config import Layout, benchmark_of, policy_file
from geneb_ci.errors import NothingChecked
from geneb_ci.finding import Finding, Severity
from geneb_ci.label.policy import level_of

Results = Iterable[FileResult | NothingChecked]
Watch = Callable[[Results, int], Results]


@dataclass(frozen=True)
class Board:
    """The files of a board by name, and what to say of them."""

    files: dict[str, bytes]
    models: int
    unranked: tuple[str, ...]
    """Model and regime of each row that declared gaps keep off the board."""


def assemble(
    layout: Layout, files: list[Path], watch: Watch = lambda results, _: results
) -> tuple[Report, Board | None]:
    """Check every submission with every rule, then build; no board unless all of them pass.

    `watch` passes results on and may show progress; it is told how many there will be.
    Raises BadConfiguration and InvalidBoard.
    """
    checker = Checker(RULES)
    report = Report(rules=len(RULES))
    entries: list[Entry] = []
    official = policy_file(layout, "official.json", "files")
    for result in watch(checker.run(files), len(files)):
        if not isinstance(result, FileResult):
            report.unreadable.append(result)
            continue
        report.add(result)
        if result.submission is not None:
            entries.append(Entry(result.submission, level_of(result.document.sha256, official)))
    report.benchmarks = checker.benchmarks
    report.findings.sort(key=Finding.sort_key)
    if not _sound(report):
        return report, None
    return report, _board(entries, benchmark_of(layout))


def _sound(report: Report) -> bool:
    failed = any(finding.severity is Severity.ERROR for finding in report.findings)
    return bool(report.files) and not report.unreadable and not failed


def _board(entries: list[Entry], benchmark: Benchmark) -> Board:
    categories, tasks = leaderboards(entries, benchmark)
    return Board(
        files={
            "leaderboard.json": encode("leaderboard.json", categories),
            "leaderboard_tasks.json": encode("leaderboard_tasks.json", tasks),
        },
        models=len(entries),
        unranked=tuple(_unranked(entries, benchmark)),
    )


def _unranked(entries: list[Entry], benchmark: Benchmark) -> Iterator[str]:
    for entry in entries:
        for regime in benchmark.regimes:
            if regime not in ranked_regimes(entry.submission, benchmark):
                yield f"{entry.submission.model_id} ({regime})"
