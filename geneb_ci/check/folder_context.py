"""Data against which the files of a folder are checked: benchmark, policy, other rows."""

import array
import binascii
import functools
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from geneb_ci.check.rule import Policy
from geneb_ci.common.benchmark import shipped_benchmark
from geneb_ci.common.config import PRACTICE_BENCHMARK, Finder, Layout, benchmark_of, official_files
from geneb_ci.common.errors import UsageProblem
from geneb_ci.common.finding import name_hint
from geneb_ci.common.shipped import read_shipped
from geneb_ci.models.registry import ModelRegistry
from geneb_ci.statistics.reference import primary_score_names
from geneb_ci.submission.other_cards import OtherCards
from geneb_ci.submission.peers import Peers, RowWithoutFile, peers_of, score_name
from geneb_ci.submission.reading import files_in, is_folder, located
from reference_harness.formats.benchmark import Benchmark

SHIPPED_ROWS_FILE = "shipped-rows.json"
"""Shipped file with the scores of the public rows."""
SHIPPED_ROWS_BYTES_MAX = 1_000_000  # 41 rows take 140 kB


@functools.cache
def shipped_rows() -> tuple[RowWithoutFile, ...]:
    """Return the public rows that ship with the package, sorted by name.

    Raises BrokenInstallation if the file cannot be read.
    """
    return tuple(_shipped_rows_by_file().values())


@functools.cache
def _shipped_rows_by_file() -> dict[str, RowWithoutFile]:
    """Return the shipped rows by the SHA-256 of their files."""
    return read_shipped(SHIPPED_ROWS_FILE, SHIPPED_ROWS_BYTES_MAX, rows_by_file)


def shipped_rows_of(benchmark: Benchmark) -> Mapping[str, RowWithoutFile]:
    """Return the shipped rows by the SHA-256 of their files, which then need not be parsed.

    The mapping is empty if the benchmark has other regimes, tasks or another primary metric.
    """
    known_names = tuple(primary_score_names(benchmark))
    return {
        name: row for name, row in _shipped_rows_by_file().items() if row.score_names == known_names
    }


def rows_by_file(document: Any) -> dict[str, RowWithoutFile]:
    """Return the rows in the parsed `SHIPPED_ROWS_FILE`, by the SHA-256 of their files."""
    cells = tuple(
        score_name(regime, task, document["metric"])
        for regime in document["regimes"]
        for task in document["tasks"]
    )
    return {
        row["file_sha256"]: RowWithoutFile(
            model, row["scores_sha256"], cells, _doubles(row["scores"]), row["display"]
        )
        for model, row in document["rows"].items()
    }


def _doubles(base64_text: str) -> "array.array[float]":
    """Return the numbers of a Base64 text of little-endian doubles."""
    decoded = binascii.a2b_base64(base64_text)
    return array.array("d", struct.unpack(f"<{len(decoded) // 8}d", decoded))


@dataclass(frozen=True)
class FolderContext:
    """The data against which all files of a folder are checked."""

    layout: Layout
    benchmark: Benchmark
    policy: Policy
    registry: ModelRegistry
    """The entry of each model in the model registry."""
    peers: Peers
    """The rows with which a file is compared, the other files of the folder included."""
    cards: OtherCards


@dataclass(frozen=True)
class ComparisonRows:
    """The rows with which files outside a folder of submissions are compared."""

    folder: Path | None = None
    """Folder of the rows; None for the folder of submissions of a file's own repository."""
    shipped: bool = False
    """Whether files outside a repository are compared with the shipped rows."""
    only_shipped: bool = False
    """Whether files in a repository, outside its folder of submissions, are compared with the
    shipped rows instead of those of the repository."""

    def folder_for(self, layout: Layout) -> Path | None:
        """Return the folder that holds the rows; None if no folder does."""
        if self.folder is not None:
            return self.folder
        submissions = layout.submissions
        is_used = submissions is not None and submissions.is_dir() and not self.only_shipped
        return submissions if is_used else None

    def rows(self, layout: Layout, benchmark: Benchmark) -> tuple[Path | RowWithoutFile, ...]:
        """Return the rows to compare with. Raises NothingChecked if the folder cannot be listed."""
        folder = self.folder_for(layout)
        if folder is not None:
            return tuple(sorted(files_in(folder)))
        if self.shipped and benchmark.sha256 == shipped_benchmark().sha256:
            return shipped_rows()
        return ()


def comparison_rows_of(against: str | None, find: Finder) -> ComparisonRows | None:
    """Return the rows that `--against` names; None for "none".

    Raises UsageProblem if the folder does not exist.
    """
    if against is not None and against.casefold() == "none":
        return None
    if against is None or against.casefold() == "shipped":
        return ComparisonRows(shipped=True, only_shipped=against is not None)
    folder = Path(against)
    if not is_folder(folder):
        hint = name_hint(against, ["shipped", "none"])
        fix = 'pass a folder, "shipped" or "none"'
        raise UsageProblem(f"--against {against}: no such folder{hint}", fix)
    layout = find(folder.resolve())
    is_root = layout.root == folder.resolve() and layout.submissions is not None
    return ComparisonRows(folder=layout.submissions if is_root else folder)


def compared_folder(
    folder: Path, find: Finder, comparison_rows: ComparisonRows | None
) -> Path | None:
    """Return the folder of the rows with which the files of a folder are compared, or None.

    Raises BadConfiguration if the settings cannot be used.
    """
    layout = find(folder)
    if layout.submissions == folder:
        return folder
    return None if comparison_rows is None else comparison_rows.folder_for(layout)


def folder_context(
    folder: Path, find: Finder, given_files: Iterable[Path], comparison_rows: ComparisonRows | None
) -> FolderContext:
    """Return what the files of a folder are checked against.

    `given_files` are the files being checked; they are also compared with each other. Raises
    BadConfiguration if the settings, the benchmark or the policy cannot be used.
    """
    layout = find(folder)
    benchmark = benchmark_of(layout)
    policy = Policy(official_files(layout))
    if layout.submissions == folder:
        files_elsewhere = (path for path in given_files if path.parent != folder)
        peers = peers_of([*files_in(folder), *files_elsewhere])
    else:
        rows = comparison_rows.rows(layout, benchmark) if comparison_rows is not None else ()
        population = [located(row) if isinstance(row, Path) else row for row in rows]
        peers = peers_of(given_files, population)
    peers = replace(peers, rows_by_digest=shipped_rows_of(benchmark))
    cards = OtherCards(layout.cards, layout.submissions)
    return FolderContext(layout, benchmark, policy, ModelRegistry(layout), peers, cards)


@functools.cache
def practice_benchmark() -> Benchmark:
    """Return the synthetic practice benchmark that ships with the package."""
    return shipped_benchmark(PRACTICE_BENCHMARK)
