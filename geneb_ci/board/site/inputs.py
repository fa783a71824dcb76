"""The inputs of the pages, and functions that format their texts, numbers and file names."""

import functools
import heapq
import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from geneb_ci.board import reasons
from geneb_ci.board.advice import BYTES_PER_PARAMETER
from geneb_ci.board.columns import Row, in_board_order
from geneb_ci.board.page import INDEX
from geneb_ci.common.config import Layout
from geneb_ci.common.shipped import shipped
from geneb_ci.models.entry import ModelEntry
from geneb_ci.models.registry import ModelRegistry
from geneb_ci.models.tasks import BenchmarkPublication, TaskNotes, task_notes
from geneb_ci.statistics.metrics import ModelRanking
from reference_harness.formats.benchmark import Benchmark

# Characters that neither HTML nor XML may contain, among them lone surrogates.
_UNWRITABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_REPLACEMENT = "\ufffd"
"""Character in place of one that no page may contain."""
MINUS, DASH = "\u2212", "\u2013"

_TEX_ESCAPES = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{letter: f"\\{letter}" for letter in "{}&%$#_"},
}
"""By character that is special in TeX: how to write it."""
TaskColumns = tuple[Sequence[float], ...]
"""Scores of one regime by the primary metric, then their lower and upper limits if known."""
MACRO, MICRO = "macro", "micro"
TASK_NUMBERS = 4
"""Number of values for each model and task in `diagnostics.document.RegimeRanks`."""


def writable(value: object) -> object:
    """Return a value for a template; characters that no page may contain are replaced."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return _UNWRITABLE.sub(_REPLACEMENT, value)
    return value


def score_text(score: float | None, decimals: int = 3) -> str:
    """Return a score as text, "" for None; a rounded zero has no sign."""
    return "" if score is None else f"{score:z.{decimals}f}".replace("-", MINUS)


def range_text(low: int, high: int) -> str:
    """Return a range of ranks as text, such as "3" or "3 to 5" with a dash."""
    return str(low) if low == high else f"{low}{DASH}{high}"


def size_text(params: int) -> str:
    """Return a number of parameters as text with three digits."""
    return reasons.size_text(params) if params else "none"


def memory_text(params: int) -> str:
    """Return the memory that weights need in half precision, as text."""
    return bytes_text(params * BYTES_PER_PARAMETER)


def bytes_text(count: int) -> str:
    """Return a number of bytes as text with two digits and a unit."""
    unit, unit_name = (10**9, "GB") if count >= 10**9 else (10**6, "MB")
    return f"{float(f'{count / unit:.2g}'):g} {unit_name}"


def file_names_of(categories: Iterable[str]) -> dict[str, str]:
    """Return, for each category, the file name of its page; no two are equal."""
    slug_by_category: dict[str, str] = {}
    for category in categories:
        letters = unicodedata.normalize("NFKD", category).encode("ascii", "ignore").decode()
        slug = re.sub(r"[^a-z0-9]+", "-", letters.lower()).strip("-") or "category"
        used_slugs = set(slug_by_category.values())
        number = 2
        unique_slug = slug
        while unique_slug in used_slugs:
            unique_slug, number = f"{slug}-{number}", number + 1
        slug_by_category[category] = unique_slug
    return slug_by_category


def bibtex_text(text: str) -> str:
    """Return a text on one line, escaped for a field of BibTeX."""
    plain_text = str(writable(re.sub(r"\s+", " ", text).strip()))
    return "".join(_TEX_ESCAPES.get(letter, letter) for letter in plain_text)


class SourceCommit(NamedTuple):
    """The commit that pages are built from; all fields are empty without a commit."""

    commit: str | None = None
    when: str | None = None
    """Time of the commit in UTC, shown instead of the time of the build, so that builds repeat."""
    events: tuple[Mapping[str, Any], ...] = ()
    """The events of the ledger, oldest first."""


class RankedScore(NamedTuple):
    """A score of a model with its interval and rank range; these are None if unknown."""

    score: float
    low: float | None = None
    high: float | None = None
    rank_low: int | None = None
    rank_high: int | None = None


@dataclass(frozen=True)
class Site:
    """A board and its settings: what every page is made from, with cached look-ups."""

    rows: tuple[Row, ...]
    """Ordered by lower-case model id."""
    parsed_files: Mapping[str, Mapping[str, Any]]
    """The parsed values of the board's files, by name."""
    benchmark: Benchmark
    layout: Layout
    """Where the repository that the board is made from has its folders and files."""
    built: SourceCommit

    def address(self, page: str) -> str:
        """Return the public address of a page; "" if no setting has the address of the board."""
        return f"{self.layout.site}/{page}" if self.layout.site else ""

    @property
    def name(self) -> str:
        """The name of the board."""
        return f"{self.benchmark.name} leaderboard"

    @property
    def permanent(self) -> str:
        """Permanent path of this commit's board, relative to the root; "" without a commit."""
        return f"v/{self.built.commit}/index.html" if self.built.commit else ""

    @functools.cached_property
    def notes(self) -> TaskNotes:
        """The policy's facts about the benchmark and its tasks."""
        return task_notes(self.layout)

    @functools.cached_property
    def publication(self) -> BenchmarkPublication:
        """Who published the benchmark."""
        return self.notes.publication(self.benchmark.name)

    @property
    def picture(self) -> dict[str, bytes]:
        """The preview picture of links to the board, by its path; empty if there is none."""
        policy = self.layout.policy
        folder = shipped("page", INDEX).parent if policy is None else policy.parent
        path = folder / self.publication.image if self.publication.image else None
        return {path.name: path.read_bytes()} if path is not None and path.is_file() else {}

    @functools.cached_property
    def registry(self) -> ModelRegistry:
        """The model registry of the layout."""
        return ModelRegistry(self.layout)

    def model_entry(self, model: str) -> ModelEntry | None:
        """Return the entry of a model in the registry; None if the registry has none."""
        registered = self.registry.entry(model)
        return None if registered is None else registered.entry

    @functools.cached_property
    def category_files(self) -> dict[str, str]:
        """By category: the file name of its page, without its suffix."""
        return file_names_of(self.benchmark.category_order)

    @functools.cached_property
    def columns(self) -> dict[str, tuple[str, str]]:
        """By key of a mean: the name of the mean and the path of its page, "" if it has no page."""
        files = self.category_files.items()
        page_by_category = {name: (name, f"categories/{file}.html") for name, file in files}
        return {MACRO: ("Macro", ""), MICRO: ("Micro", ""), **page_by_category}

    @functools.cached_property
    def page_task_indices(self) -> list[int]:
        """Index in board order of each task, category by category, as pages list the tasks."""
        position_by_task = {task: index for index, task in enumerate(self.benchmark.task_ids)}
        return [
            position_by_task[task] for tasks in self.benchmark.categories.values() for task in tasks
        ]

    @functools.cached_property
    def by_id(self) -> dict[str, Row]:
        """Rows by model id."""
        return {row.submission.model_id: row for row in self.rows}

    @functools.cached_property
    def frames(self) -> dict[tuple[str, str], list[str]]:
        """Rendered templates with gaps for texts that differ, by template and root of the page."""
        return {}

    @functools.cached_property
    def names(self) -> dict[str, str]:
        """Display names by model id."""
        return {row.submission.model_id: row.submission.meta.display for row in self.rows}

    @functools.cached_property
    def events(self) -> dict[str, list[Mapping[str, Any]]]:
        """Events by model id, newest first."""
        events_by_model: dict[str, list[Mapping[str, Any]]] = {}
        for event in reversed(self.built.events):
            events_by_model.setdefault(event["model"], []).append(event)
        return events_by_model

    @functools.cached_property
    def _category_rows(self) -> dict[str, dict[str, Mapping[str, Any]]]:
        """Rows of leaderboard.json, by regime and model."""
        return _rows_by_regime(self.parsed_files["leaderboard.json"])

    @functools.cached_property
    def _task_rows(self) -> dict[str, dict[str, Mapping[str, Any]]]:
        """Rows of leaderboard_tasks.json, by regime and model."""
        return _rows_by_regime(self.parsed_files["leaderboard_tasks.json"])

    @functools.cached_property
    def _ranks(self) -> Mapping[str, Any]:
        """Ranks of diagnostics.json by regime; {} without diagnostics."""
        diagnostics = self.parsed_files.get("diagnostics.json")
        return {} if diagnostics is None else diagnostics["ranks"]

    def ranked_count(self, regime: str) -> int:
        """Return the number of models that are ranked in a regime."""
        return len(self._category_rows[regime])

    def mean(self, model: str, regime: str, column: str, metric: str) -> float | None:
        """Return the score of a model in `macro`, `micro` or a category; None if not ranked."""
        row = self._category_rows[regime].get(model)
        if row is None:
            return None
        if column in {MACRO, MICRO}:
            return float(row[f"{column}_{metric}"])
        return float(row[f"cat_{metric}"][column])

    def standing(self, model: str, regime: str, column: str) -> RankedScore | None:
        """Return score, interval and rank range by the primary metric; None if not ranked."""
        score = self.mean(model, regime, column, self.benchmark.primary_metric)
        if score is None:
            return None
        standings = self._standings_by_mean[regime].get(column)
        if standings is None:
            return RankedScore(score)
        index = standings.positions[model]
        return RankedScore(
            score,
            standings.low[index],
            standings.high[index],
            standings.rank_low[index],
            standings.rank_high[index],
        )

    def standings(self, model: str, regime: str) -> list[RankedScore | None]:
        """Return the ranked scores of a model, one for each of `columns`; None where not ranked."""
        return [self.standing(model, regime, column) for column in self.columns]

    @functools.cached_property
    def _standings_by_mean(self) -> dict[str, dict[str, ModelRanking]]:
        """Ranking by regime and mean; without diagnostics, {} for each regime."""
        standings_by_mean: dict[str, dict[str, ModelRanking]] = {}
        for regime in self.benchmark.regimes:
            ranks = self._ranks.get(regime, {})
            standings_by_mean[regime] = {name: ranks[name] for name in (MACRO, MICRO) if ranks}
            standings_by_mean[regime] |= ranks.get("categories", {})
        return standings_by_mean

    def task_columns(self, model: str, regime: str) -> TaskColumns | None:
        """Return the scores of a model in all tasks in board order; None if not ranked."""
        row = self._task_rows[regime].get(model)
        if row is None:
            return None
        scores = row[self._task_key].numbers
        position_by_model, numbers_by_task = self._task_numbers[regime]
        if not position_by_model:
            return (scores,)
        index = TASK_NUMBERS * position_by_model[model]
        lower_limits = [numbers[index] for numbers in numbers_by_task]
        return scores, lower_limits, [numbers[index + 1] for numbers in numbers_by_task]

    def scores_in_task(
        self, task: str, models: Iterable[str], regime: str
    ) -> tuple[list[str], TaskColumns]:
        """Return those of `models` that are ranked in a regime, and their scores in a task."""
        rows = self._task_rows[regime]
        position_by_model, numbers_by_task = self._task_numbers[regime]
        number, score_key = self.benchmark.task_ids.index(task), self._task_key
        ranked_models = [model for model in models if model in rows]
        scores = [rows[model][score_key].numbers[number] for model in ranked_models]
        if not position_by_model:
            return ranked_models, (scores,)
        numbers = numbers_by_task[number]
        starts = [TASK_NUMBERS * position_by_model[model] for model in ranked_models]
        return ranked_models, (
            scores,
            [numbers[index] for index in starts],
            [numbers[index + 1] for index in starts],
        )

    @functools.cached_property
    def _task_key(self) -> str:
        """Key of the scores of tasks in a row, by the primary metric."""
        return f"task_{self.benchmark.primary_metric}"

    @functools.cached_property
    def _task_numbers(self) -> dict[str, tuple[Mapping[str, int], list[Sequence[float]]]]:
        """By regime: the models' indices, and per task four numbers for each model.

        The first two are both ends of its score's interval: `diagnostics.document.Ranks.tasks`.
        """
        numbers_by_regime: dict[str, tuple[Mapping[str, int], list[Sequence[float]]]] = {}
        for regime in self.benchmark.regimes:
            packed = self._ranks[regime]["tasks"] if regime in self._ranks else {}
            columns = [packed[task] for task in self.benchmark.task_ids] if packed else []
            numbers_by_regime[regime] = (
                columns[0].positions if columns else {},
                [column.numbers for column in columns],
            )
        return numbers_by_regime

    @functools.cached_property
    def records(self) -> dict[str, list[Path]]:
        """Paths of audit records, by the model id after which their folder is named."""
        from geneb_ci.audit.record.statement import record_files  # 50 ms, and only this needs it

        paths_by_model: dict[str, list[Path]] = {}
        for path in record_files(self.layout.audits) if self.layout.audits else ():
            paths_by_model.setdefault(path.parent.name, []).append(path)
        return paths_by_model

    def best_in(self, task: str, maximum: int) -> list[str]:
        """Return the ids of at most `maximum` models, best first by a task in the first regime."""
        return self.best_first(self._first_scores[task], maximum)

    @functools.cached_property
    def _first_scores(self) -> dict[str, Sequence[float | None]]:
        """By task: the score of each model in the first regime, None if the model is not ranked."""
        rows, tasks = self._task_rows[self.benchmark.regimes[0]], self.benchmark.task_ids
        missing_row = [None] * len(tasks)
        scores = [rows[m][self._task_key].numbers if m in rows else missing_row for m in self.names]
        columns = zip(*scores, strict=True) if scores else [()] * len(tasks)
        return dict(zip(tasks, columns, strict=True))

    def best_first(self, scores: Iterable[float | None], maximum: int) -> list[str]:
        """Return the ids of at most `maximum` models by descending score, unknown scores last.

        `scores` are in the order of the models; models with equal scores are ordered by id.
        """
        negative_scores = [math.inf if score is None else -score for score in scores]
        models = list(self.names)
        return [
            models[k]
            for k in heapq.nsmallest(
                maximum, range(len(negative_scores)), negative_scores.__getitem__
            )
        ]


def _rows_by_regime(parsed_file: Mapping[str, Any]) -> dict[str, dict[str, Mapping[str, Any]]]:
    """Return the rows of a parsed leaderboard.json or leaderboard_tasks.json, by regime, model."""
    return {
        regime: {row["model"]: row for row in rows} for regime, rows in parsed_file["data"].items()
    }


def site_of(
    rows: Iterable[Row],
    parsed_files: Mapping[str, Mapping[str, Any]],
    benchmark: Benchmark,
    layout: Layout,
    built: SourceCommit,
) -> Site:
    """Return what the pages of a board are made from; `parsed_files` are its JSON files by name."""
    return Site(tuple(in_board_order(rows)), parsed_files, benchmark, layout, built)
