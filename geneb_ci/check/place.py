"""What the files of a folder are checked against: benchmark, policy and other rows."""

import array
import binascii
import functools
import hashlib
import json
import math
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from geneb_ci.check.rule import Policy
from geneb_ci.common.benchmark import shipped_benchmark
from geneb_ci.common.config import PRACTICE_BENCHMARK, Finder, Layout, benchmark_of, official_files
from geneb_ci.common.errors import UsageProblem
from geneb_ci.common.finding import near
from geneb_ci.common.shipped import read_shipped
from geneb_ci.models.registry import ModelRegistry
from geneb_ci.statistics.reference import cell_names
from geneb_ci.submission.other_cards import OtherCards
from geneb_ci.submission.peers import Peers, RowWithoutFile, cell_name, peers_of, results_digest
from geneb_ci.submission.reading import files_in, is_folder, located
from reference_harness.formats.benchmark import Benchmark

FILE = "shipped-rows.json"
BYTES_MAX = 1_000_000  # 41 rows take 140 kB
_NOTE = (
    "Scores of the public rows that `geneb-ci check --against shipped` compares a lone file with: "
    "the primary metric of each cell, regime by regime, as doubles, little-endian, in base64, NaN "
    "where there is none. A neighbour with the same file is not parsed. Written by "
    "`make generate`; a row is never replaced when its submission changes."
)


class _Row(NamedTuple):
    file_sha256: str
    scores_sha256: str
    display: str
    scores: str
    """Little-endian doubles in base64, which are read 50 times as fast as decimals."""


@functools.cache
def shipped_rows() -> tuple[RowWithoutFile, ...]:
    """Return the public rows that ship with the package, sorted by name.

    Raises BrokenInstallation if the file cannot be read.
    """
    return tuple(_shipped().values())


@functools.cache
def _shipped() -> dict[str, RowWithoutFile]:
    """Return the same rows by the digest of their files."""
    return read_shipped(FILE, BYTES_MAX, _by_file)


def rows_known_to(benchmark: Benchmark) -> Mapping[str, RowWithoutFile]:
    """Return the shipped rows by the SHA-256 of their files, which then need not be read.

    The mapping is empty if the benchmark compares other scores than the shipped ones.
    """
    names = tuple(cell_names(benchmark))
    return {name: row for name, row in _shipped().items() if row.names == names}


def rows_in(value: Any) -> tuple[RowWithoutFile, ...]:
    """Return the rows that the value of `shipped-rows.json` lists."""
    return tuple(_by_file(value).values())


def _by_file(value: Any) -> dict[str, RowWithoutFile]:
    names = tuple(
        cell_name(regime, task, value["metric"])
        for regime in value["regimes"]
        for task in value["tasks"]
    )
    return {
        row["file_sha256"]: RowWithoutFile(
            model, row["scores_sha256"], names, _doubles(row["scores"]), row["display"]
        )
        for model, row in value["rows"].items()
    }


def _doubles(text: str) -> "array.array[float]":
    decoded = binascii.a2b_base64(text)
    return array.array("d", struct.unpack(f"<{len(decoded) // 8}d", decoded))


def shipped_rows_text(earlier_text: str, submissions: Path, benchmark: Benchmark) -> str:
    """Return the new text of `shipped-rows.json`, from its old text and the submissions.

    The set of models does not change. A row is kept as it was if its submission has changed or no
    longer exists.
    """
    old_rows = json.loads(earlier_text)["rows"]
    rows: dict[str, Any] = {}
    for model in sorted(old_rows, key=lambda name: f"{name}.json"):
        path = submissions / f"{model}.json"
        raw = path.read_bytes() if path.is_file() else b""
        unchanged = hashlib.sha256(raw).hexdigest() == old_rows[model]["file_sha256"]
        rows[model] = row_of(raw, benchmark)._asdict() if unchanged else old_rows[model]
    head = {
        "note": _NOTE,
        "metric": benchmark.primary_metric,
        "regimes": benchmark.regimes,
        "tasks": benchmark.task_ids,
    }
    lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    rows_text = ",\n".join(
        f"  {json.dumps(model)}: {json.dumps(row, separators=(',', ':'))}"
        for model, row in rows.items()
    )
    return "{\n" + ",\n".join([*lines, f' "rows": {{\n{rows_text}\n }}']) + "\n}\n"


def row_of(raw: bytes, benchmark: Benchmark) -> _Row:
    """Return the row of one submission, from the bytes of its file."""
    document = json.loads(raw)
    results: Mapping[str, Any] = document["results"]
    scores = [
        results.get(regime, {}).get(task, {}).get(benchmark.primary_metric)
        for regime in benchmark.regimes
        for task in benchmark.task_ids
    ]
    digest = results_digest(results) or ""
    doubles = [math.nan if score is None else score for score in scores]
    packed = binascii.b2a_base64(struct.pack(f"<{len(doubles)}d", *doubles), newline=False).decode()
    return _Row(hashlib.sha256(raw).hexdigest(), digest, document["meta"]["display"], packed)


@dataclass(frozen=True)
class FolderContext:
    """What all files of one folder are checked against."""

    layout: Layout
    benchmark: Benchmark
    policy: Policy
    registry: ModelRegistry
    peers: Peers
    cards: OtherCards


@dataclass(frozen=True)
class ComparisonRows:
    """Rows to compare files with that are not in the same repository's folder of submissions."""

    folder: Path | None = None
    shipped: bool = False
    """Whether to use the shipped rows when the file is not inside a repository."""
    only_shipped: bool = False
    """Whether to use the shipped rows everywhere."""

    def folder_for(self, layout: Layout) -> Path | None:
        """Return the folder that holds the rows; None if no folder does."""
        if self.folder is not None:
            return self.folder
        submissions = layout.submissions
        is_used = submissions is not None and submissions.is_dir() and not self.only_shipped
        return submissions if is_used else None

    def rows(self, layout: Layout, benchmark: Benchmark) -> tuple[Path | RowWithoutFile, ...]:
        """Return the rows. Raises NothingChecked if the folder cannot be listed."""
        folder = self.folder_for(layout)
        if folder is not None:
            return tuple(sorted(files_in(folder)))
        if self.shipped and benchmark.sha256 == shipped_benchmark().sha256:
            return shipped_rows()
        return ()


def against_of(value: str | None, find: Finder) -> ComparisonRows | None:
    """Return the rows that `--against` names. Raises UsageProblem if the folder does not exist."""
    if value is not None and value.casefold() == "none":
        return None
    if value is None or value.casefold() == "shipped":
        return ComparisonRows(shipped=True, only_shipped=value is not None)
    folder = Path(value)
    if not is_folder(folder):
        hint = near(value, ["shipped", "none"])
        fix = 'pass a folder, "shipped" or "none"'
        raise UsageProblem(f"--against {value}: no such folder{hint}", fix)
    layout = find(folder.resolve())
    is_root = layout.root == folder.resolve() and layout.submissions is not None
    return ComparisonRows(folder=layout.submissions if is_root else folder)


def compared_folder(
    folder: Path, find: Finder, comparison_rows: ComparisonRows | None
) -> Path | None:
    """Return the folder whose rows the files of a folder are compared with; None without one.

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
        peers = peers_of(given_files, map(_located, rows))
    peers = replace(peers, rows_by_digest=rows_known_to(benchmark))
    cards = OtherCards(layout.cards, layout.submissions)
    return FolderContext(layout, benchmark, policy, ModelRegistry(layout), peers, cards)


def _located(row: Path | RowWithoutFile) -> Path | RowWithoutFile:
    return located(row) if isinstance(row, Path) else row


@functools.cache
def practice_benchmark() -> Benchmark:
    """Return the synthetic practice benchmark that ships with the package."""
    return shipped_benchmark(PRACTICE_BENCHMARK)
