"""What the pages are made from, and how they write texts, numbers and names of files."""

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
from geneb_ci.board.columns import Entry
from geneb_ci.common.benchmark import Benchmark
from geneb_ci.common.config import Layout
from geneb_ci.models.entry import ModelEntry
from geneb_ci.models.registry import ModelRegistry

# What neither HTML nor XML may contain, halves of surrogate pairs among them.
_UNWRITABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_REPLACEMENT = "\ufffd"
MINUS, DASH = "\u2212", "\u2013"
BYTES_A_PARAMETER = 2
"""Half precision, in which most models are run on an accelerator."""


def writable(value: object) -> object:
    """Return a value for a template: a text without characters that no page may contain."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return _UNWRITABLE.sub(_REPLACEMENT, value)
    return value


def score_text(score: float | None) -> str:
    """Return a score with three decimals; what rounds to zero has no sign."""
    if score is None:
        return ""
    text = f"{score:.3f}"
    return "0.000" if text == "-0.000" else text.replace("-", MINUS)


def range_text(low: int, high: int) -> str:
    """Return a range of ranks."""
    return str(low) if low == high else f"{low}{DASH}{high}"


def size_text(params: int) -> str:
    """Return a number of parameters in three digits."""
    return reasons.size_text(params) if params else "none"


def memory_text(params: int) -> str:
    """Return what the weights take in half precision."""
    return bytes_text(params * BYTES_A_PARAMETER)


def bytes_text(count: int) -> str:
    """Return a number of bytes in two digits."""
    unit, name = (10**9, "GB") if count >= 10**9 else (10**6, "MB")
    return f"{float(f'{count / unit:.2g}'):g} {name}"


def slugs(names: Iterable[str]) -> dict[str, str]:
    """Return a name to the file name that stands for it, each another."""
    found: dict[str, str] = {}
    for name in names:
        plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
        slug = re.sub(r"[^a-z0-9]+", "-", plain).strip("-") or "category"
        taken = set(found.values())
        number = 2
        unique = slug
        while unique in taken:
            unique, number = f"{slug}-{number}", number + 1
        found[name] = unique
    return found


_TEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{letter: f"\\{letter}" for letter in "{}&%$#_"},
}


def tex(text: str) -> str:
    """Return a text for a field of BibTeX, on one line."""
    plain = str(writable(re.sub(r"\s+", " ", text).strip()))
    return "".join(_TEX.get(letter, letter) for letter in plain)


class Built(NamedTuple):
    """The commit that pages were built from; all empty for a folder that is no commit."""

    commit: str | None = None
    when: str | None = None
    """Time of the commit, UTC: the same commit gives the same bytes."""
    events: tuple[Mapping[str, Any], ...] = ()
    """The ledger, oldest first."""


class Standing(NamedTuple):
    """Where a model stands by one score."""

    score: float
    low: float | None = None
    high: float | None = None
    rank_low: int | None = None
    rank_high: int | None = None


WHOLE = (0.0, 1.0)
"""Ends of the scale of scores that are coloured alike on every page."""


def score_cell(standing: Standing | None, ends: tuple[float, float] = WHOLE) -> str:
    """Return the cell of a score with its interval, coloured on a scale between two ends."""
    if standing is None:
        return '<td class="none">not ranked</td>'
    score, low, high, *_ = standing
    return _interval_cell(score, () if low is None else (low, high), ends)


def _interval_cell(score: float, limits: Sequence[Any], ends: tuple[float, float]) -> str:
    """Return the cell of a score and the limits of its interval; of the score alone without any.

    Numbers are written as `score_text` writes them: in a cell, nothing else has a minus.
    """
    interval = "<small>{:.3f} to {:.3f}</small>".format(*limits) if limits else ""
    text = f'<td class="heat {heat(score, ends)}">{score:.3f}{interval}</td>'
    return text.replace("-0.000", "0.000").replace("-", MINUS) if "-" in text else text


def heat(score: float, ends: tuple[float, float]) -> str:
    """Return the class of the colour of a score, on a scale from the lowest to the highest."""
    low, high = ends
    step = int((score - low) / (high - low) * HEAT_STEPS) if high > low else 0
    return _HEAT[step] if 0 <= step < HEAT_STEPS else _HEAT[0 if step < 0 else -1]


HEAT_STEPS = 16
_HEAT = tuple(f"h{step}" for step in range(HEAT_STEPS))
MACRO, MICRO = "macro", "micro"


@dataclass(frozen=True)
class Site:
    """The inputs of every page, and what they look up in them."""

    entries: tuple[Entry, ...]
    """In the order of the lower-case model id."""
    values: Mapping[str, Mapping[str, Any]]
    """The files of the board as values, by name."""
    benchmark: Benchmark
    layout: Layout
    built: Built

    def address(self, page: str) -> str:
        """Return the public address of a page; "" if no setting names that of the board."""
        return f"{self.layout.site}/{page}" if self.layout.site else ""

    @functools.cached_property
    def registry(self) -> ModelRegistry:
        """The model registry of the layout."""
        return ModelRegistry(self.layout)

    def known(self, model: str) -> ModelEntry | None:
        """Return the registry's entry of a model."""
        found = self.registry.entry(model)
        return None if found is None else found.entry

    @functools.cached_property
    def category_files(self) -> dict[str, str]:
        """Category to the name of its page."""
        return slugs(self.benchmark.category_order)

    @functools.cached_property
    def by_id(self) -> dict[str, Entry]:
        """Model id to its entry."""
        return {e.submission.model_id: e for e in self.entries}

    @functools.cached_property
    def name_cells(self) -> dict[tuple[str, str], Markup]:
        """Model and root of a page to the cell that names the model, as they are made."""
        return {}

    @functools.cached_property
    def task_heads(self) -> dict[tuple[str, str], str]:
        """Task and root of a page to the head of the task's row, as they are made."""
        return {}

    @functools.cached_property
    def names(self) -> dict[str, str]:
        """Model id to the name that is shown."""
        return {e.submission.model_id: e.submission.meta.display for e in self.entries}

    @functools.cached_property
    def events(self) -> dict[str, list[Mapping[str, Any]]]:
        """Model id to its events, newest first."""
        found: dict[str, list[Mapping[str, Any]]] = {}
        for event in reversed(self.built.events):
            found.setdefault(event["model"], []).append(event)
        return found

    @functools.cached_property
    def _rows(self) -> dict[str, dict[str, Mapping[str, Any]]]:
        data = self.values["leaderboard.json"]["data"]
        return {regime: {row["model"]: row for row in data[regime]} for regime in data}

    @functools.cached_property
    def _task_rows(self) -> dict[str, dict[str, Mapping[str, Any]]]:
        data = self.values["leaderboard_tasks.json"]["data"]
        return {regime: {row["model"]: row for row in data[regime]} for regime in data}

    @functools.cached_property
    def _ranks(self) -> Mapping[str, Any]:
        found = self.values.get("diagnostics.json")
        return {} if found is None else found["ranks"]

    def ranked(self, regime: str) -> int:
        """Return how many models have every score of a regime."""
        return len(self._rows[regime])

    def mean(self, model: str, regime: str, column: str, metric: str) -> float | None:
        """Return the score of a model in `macro`, `micro` or a category; None if not ranked."""
        row = self._rows[regime].get(model)
        if row is None:
            return None
        if column in {MACRO, MICRO}:
            return float(row[f"{column}_{metric}"])
        return float(row[f"cat_{metric}"][column])

    def standing(self, model: str, regime: str, column: str) -> Standing | None:
        """Return score, interval and rank range by the primary metric; None if not ranked."""
        score = self.mean(model, regime, column, self.benchmark.primary_metric)
        if score is None:
            return None
        ranks = self._ranks.get(regime)
        if ranks is None:
            return Standing(score)
        column_of = ranks[column] if column in {MACRO, MICRO} else ranks["categories"][column]
        one = column_of.get(model)
        if one is None:
            return Standing(score)
        return Standing(score, one["low"], one["high"], one["rank_low"], one["rank_high"])

    def ranks(self, model: str, regime: str, columns: Sequence[str]) -> list[int]:
        """Return both ends of the rank range in each column; [] where they are not known."""
        ranks, found = self._ranks.get(regime), []
        if ranks is not None and model in ranks[MACRO]:
            for column in columns:
                stood = (ranks if column in {MACRO, MICRO} else ranks["categories"])[column]
                place = stood.places[model]
                found += [stood.rank_low[place], stood.rank_high[place]]
        return found

    def task_cells(self, model: str, tasks: Iterable[str]) -> list[Markup]:
        """Return the cells of each task in every regime: score, interval by the primary metric."""
        names = list(tasks)
        columns = [self._task_column(model, names, regime) for regime in self.benchmark.regimes]
        cells = map("".join, zip(*columns, strict=True))
        return [Markup(one) for one in cells]  # noqa: S704 (numbers alone)

    def _task_column(self, model: str, tasks: Sequence[str], regime: str) -> list[str]:
        row = self._task_rows[regime].get(model)
        if row is None:
            return [score_cell(None)] * len(tasks)
        scores, ranks = row[f"task_{self.benchmark.primary_metric}"], self._ranks.get(regime)
        if ranks is None or model not in ranks[MACRO]:
            return [_interval_cell(scores[task], (), WHOLE) for task in tasks]
        limits = ranks["tasks"]
        return [_interval_cell(scores[task], limits[task][model], WHOLE) for task in tasks]

    @functools.cached_property
    def records(self) -> dict[str, list[Path]]:
        """Model id to the audit records in its folder."""
        from geneb_ci.audit.record import record_files  # 50 ms, and only this needs it

        found: dict[str, list[Path]] = {}
        for path in record_files(self.layout.audits) if self.layout.audits else ():
            found.setdefault(path.parent.name, []).append(path)
        return found

    def best_in(self, task: str, most: int) -> list[str]:
        """Return at most so many models by their score of a task in the first regime."""
        return self.best_first(self._first_scores[task], most)

    @functools.cached_property
    def _first_scores(self) -> dict[str, Sequence[float | None]]:
        """Task to its score of each model in the first regime; None where cells are missing."""
        rows, tasks = self._task_rows[self.benchmark.regimes[0]], self.benchmark.task_ids
        metric, none = f"task_{self.benchmark.primary_metric}", dict.fromkeys(tasks)
        scores = [rows[m][metric].plain() if m in rows else none for m in self.names]
        return {task: [one[task] for one in scores] for task in tasks}

    def best_first(self, scores: Iterable[float | None], most: int) -> list[str]:
        """Return at most so many models, the best first, those without a score last.

        `scores` are in the order of the models. Of equal ones, the first by id comes first.
        """
        worst = [math.inf if score is None else -score for score in scores]
        models = list(self.names)
        return [models[k] for k in heapq.nsmallest(most, range(len(worst)), worst.__getitem__)]


def site_of(
    entries: Iterable[Entry],
    values: Mapping[str, Mapping[str, Any]],
    benchmark: Benchmark,
    layout: Layout,
    built: Built,
) -> Site:
    """Return the inputs of the pages of a board."""
    ordered = sorted(entries, key=lambda e: (e.submission.model_id.lower(), e.submission.model_id))
    return Site(tuple(ordered), values, benchmark, layout, built)
