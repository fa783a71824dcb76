"""Boards as the page gets them: the public rows, and a crowd of a thousand."""

import functools
import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from geneb_ci.board.advice import DEFAULT_MARGIN, Advice, AdviceFacts, model_request
from geneb_ci.board.columns import Row
from geneb_ci.board.decisions import ScoreColumn, critical_value, rank_ranges, rounded_model_count
from geneb_ci.board.page import page_files, with_data, write_page
from geneb_ci.board.page_data import page_scripts
from geneb_ci.board.recommend import advice_facts_of, advise
from geneb_ci.board.rows import board_file_bytes, leaderboards
from geneb_ci.board.tables import (
    CODEBOOK_FILE,
    PAGE_TABLES,
    VALUES_CSV,
    VALUES_PARQUET,
    codebook,
    csv_text,
    parquet_text,
    values_table,
)
from geneb_ci.board.texts import ascii_text, script_of, script_part
from geneb_ci.common.benchmark import shipped_benchmark
from geneb_ci.common.config import find_layout
from geneb_ci.common.files import write_files
from geneb_ci.models.tasks import task_notes
from tests.board.board import entries, found_diagnostics, found_intervals
from tests.paths import ROOT

REGIMES = 3
EVENT = {
    "when": "2026-11-20T08:30:00Z",
    "commit": "0123456789" * 4,
    "model": "space",
    "kind": "relabel",
    "level": "verified",
    "former_level": "self-reported",
    "who": "A. Maintainer",
    "why": "an audit <b>agrees</b>",
    "evidence": {"path": "leaderboard/audits/space/1.json", "sha256": "0" * 64},
}


@functools.cache
def tables() -> dict[str, dict[str, Any]]:
    """Return the two files of scores: what tests may ask for when they are collected."""
    benchmark, notes = shipped_benchmark(), task_notes(find_layout(ROOT / "schemas"))
    categories, tasks = leaderboards(entries(), benchmark, notes)
    return {"leaderboard.json": categories, "leaderboard_tasks.json": tasks}


@functools.cache
def values() -> dict[str, dict[str, Any]]:
    return {
        **tables(),
        "diagnostics.json": found_diagnostics(),
    }


@functools.cache
def table_files() -> dict[str, bytes]:
    """Return the table of every score of the public rows in both formats, and the codebook."""
    table = values_table(entries(), shipped_benchmark(), has_errors=True)
    return {
        VALUES_CSV: b"".join(csv_text(table)),
        VALUES_PARQUET: b"".join(parquet_text(table)),
        CODEBOOK_FILE: codebook((table, *PAGE_TABLES)),
    }


@functools.cache
def known() -> AdviceFacts:
    """Return what advice on the public rows is made from."""
    boards = {regime: member.board for regime, member in found_intervals().items()}
    return advice_facts_of(
        entries(), boards, shipped_benchmark(), task_notes(find_layout(ROOT / "schemas"))
    )


@functools.cache
def advice(
    regime: str = "full",
    species: str | None = None,
    category: str | None = None,
    memory: float | None = None,
    evidence: str | None = None,
    margin: float = DEFAULT_MARGIN,
) -> Advice:
    """Return the advice that a visitor of the public rows gets."""
    need = model_request(category, species, regime, None, memory, evidence, margin)
    return advise(need, known(), margin)


def public_scripts(
    events: Iterable[dict[str, Any]] | None = None, rows: list[Row] | None = None
) -> dict[str, bytes]:
    """Return the data of the page of the public rows, or of `rows` with the same scores."""
    event_list = None if events is None else list(events)
    return dict(
        page_scripts(values(), rows or entries(), shipped_benchmark(), event_list, advice())
    )


def public(folder: Path) -> None:
    """Write the board of the 41 public rows, one of which has a history."""
    scripts = public_scripts([EVENT])
    write_files(folder, {name: board_file_bytes(name, value) for name, value in values().items()})
    write_files(folder, table_files())
    write_page(folder, with_data(page_files(), scripts) | scripts)


def value_in(content: bytes) -> Any:
    """Read back the value of a script."""
    text = content.decode().partition("=JSON.parse(")[2].removesuffix(");\n")
    return json.loads(json.loads(text))


def script(key: str, value: Any) -> bytes:
    """Return a script that leaves a value under a key."""
    return b"".join(script_of(key, [ascii_text(value)]))


def name_of(part: str, board: Path | Iterable[str]) -> str:
    """Return the file of a part of the page's data, in a folder or among names of one board."""
    names = [path.name for path in board.iterdir()] if isinstance(board, Path) else board
    [name] = [name for name in names if script_part(name) == part]
    return name


def changed_part(scripts: dict[str, bytes], part: str, value: Any) -> None:
    """Give a part of the page's data another value, under the name that it has."""
    name = name_of(part, scripts)
    key = "base" if part == "data" else name.removeprefix("board-").removesuffix(".js")
    scripts[name] = script(key, value)


def crowd(folder: Path, copies: int = 25) -> int:
    """Write a board of the public rows many times over, each copy a little worse or better.

    Gives the number of models. Its scores and ranks belong together; its standard errors and advice
    are the rows'.
    """
    scripts = public_scripts()
    base = value_in(scripts[name_of("data", scripts)])
    own = len(base["models"])
    moves = random.Random(20261121)
    shift = [moves.randrange(-30_000, 30_000) for _ in range(own * copies)]
    places = range(own * copies)
    base["models"] = [
        base["models"][i % own]
        | {
            "model": f"{base['models'][i % own]['model']}-{i // own}",
            "disp": f"{base['models'][i % own]['disp']} no. {i // own}",
            "params": base["models"][i % own]["params"] + 1000 * (i // own),
        }
        for i in places
    ]

    def moved(rows: list[list[int]]) -> list[list[int]]:
        return [[score + shift[i] for score in rows[i % own]] for i in places]

    base["facts"]["covered"] = [[] for _ in range(REGIMES)]
    base["ranked"] = [[result[i % own] for i in places] for result in base["ranked"]]
    by_place = [shift[i] / 1e6 for i in places]
    for regime in range(REGIMES):
        name = f"scores-{regime}"
        part = value_in(scripts[name_of(name, scripts)])
        part["scores"] = {m: moved(rows) for m, rows in part["scores"].items()}
        part["standings"] = [
            _ranked([column[i % own] for i in places], by_place) for column in part["standings"]
        ]
        if regime == 0:
            base["overall"] = [row[:3] for row in part["standings"][1]]
        changed_part(scripts, name, part)
    base["decisions"]["critical"] = [critical_value(rounded_model_count(own * copies))] * REGIMES
    changed_part(scripts, "data", base)
    for regime in range(REGIMES):
        name = f"tasks-{regime}"
        part = value_in(scripts[name_of(name, scripts)])
        exact = [[score + by_place[i] for score in part["scores"]["MCC"][i % own]] for i in places]
        part["scores"] = {metric: moved(rows) for metric, rows in part["scores"].items()}
        part["scores"]["MCC"] = exact
        part["errors"] = [part["errors"][i % own] for i in places]
        changed_part(scripts, name, part)
    matrices = value_in(scripts[name_of("matrices", scripts)])
    matrices["regimes"] = {
        regime: [rows[i % own] for i in places] for regime, rows in matrices["regimes"].items()
    }
    changed_part(scripts, "matrices", matrices)
    write_page(folder, with_data(page_files(), scripts) | scripts)
    return own * copies


def _ranked(column: list[list[float]], shift: list[float]) -> list[list[float | None]]:
    """Move standings and rank them again, as the board does."""
    moved = [score + by for (score, *_), by in zip(column, shift, strict=True)]
    errors = np.array([error for _, error, *_ in column])
    scores = ScoreColumn(np.array(moved), errors * errors, np.full(len(moved), np.inf))
    rank_table = rank_ranges(scores, critical_value(rounded_model_count(len(moved))))
    return [
        [score, float(error), None, *(int(part[k]) for part in rank_table)]
        for k, (score, error) in enumerate(zip(moved, errors, strict=True))
    ]
