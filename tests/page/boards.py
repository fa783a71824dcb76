"""Boards as the page gets them: the public rows, and a crowd of a thousand."""

import functools
import json
import random
from pathlib import Path
from typing import Any

from geneb_ci.board.files import encode, write_files
from geneb_ci.board.page import page_files, write_page
from geneb_ci.board.page_data import history_script, page_scripts, script, tasks_name
from geneb_ci.board.recommend import recommendations
from geneb_ci.board.rows import leaderboards
from geneb_ci.common.benchmark import shipped_benchmark
from tests.board.board import entries, found_diagnostics, found_intervals

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
    categories, tasks = leaderboards(entries(), shipped_benchmark())
    return {"leaderboard.json": categories, "leaderboard_tasks.json": tasks}


@functools.cache
def values() -> dict[str, dict[str, Any]]:
    benchmark = shipped_benchmark()
    return {
        **tables(),
        "diagnostics.json": found_diagnostics(),
        "recommendations.json": recommendations(entries(), benchmark, found_intervals()),
    }


def public(folder: Path) -> None:
    """Write the board of the 41 public rows, one of which has a history."""
    scripts = page_scripts(values(), entries(), shipped_benchmark())
    scripts["board-history.js"] = history_script({"events": [EVENT]})
    write_files(folder, {name: encode(name, value) for name, value in values().items()})
    write_page(folder, page_files() | scripts)


def value_in(content: bytes) -> Any:
    """Read back the value of a script."""
    text = content.decode().partition("=JSON.parse(")[2].removesuffix(");\n")
    return json.loads(json.loads(text))


def crowd(folder: Path, copies: int = 25) -> int:
    """Write a board of the public rows many times over, each copy a little worse or better.

    Gives the number of models. Its scores and ranks belong together; its intervals are the rows'.
    """
    scripts = page_scripts(values(), entries(), shipped_benchmark())
    base = value_in(scripts["board-data.js"])
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

    base["scores"] = [{m: moved(rows) for m, rows in found.items()} for found in base["scores"]]
    base["standings"] = [
        [
            _ranked([column[i % own] for i in places], [shift[i] // 100 for i in places])
            for column in regime
        ]
        for regime in base["standings"]
    ]
    for one in base["advice"]:
        one["ties"] = [i + own * k for i in one["ties"] for k in range(copies)]
    scripts["board-data.js"] = script("base", base)
    for regime in range(REGIMES):
        name = tasks_name(regime)
        part = value_in(scripts[name])
        part["scores"] = {metric: moved(rows) for metric, rows in part["scores"].items()}
        part["intervals"] = [part["intervals"][i % own] for i in places]
        scripts[name] = script(f"tasks{regime}", part)
    matrices = value_in(scripts["board-matrices.js"])
    matrices["regimes"] = {
        regime: [rows[i % own] for i in places] for regime, rows in matrices["regimes"].items()
    }
    scripts["board-matrices.js"] = script("matrices", matrices)
    write_page(folder, page_files() | scripts)
    return own * copies


def _ranked(column: list[list[int]], shift: list[int]) -> list[list[int]]:
    """Move standings and rank them anew, by the middle of their intervals."""
    moved = [
        [low + by, high + by, *rest] for (low, high, *rest), by in zip(column, shift, strict=True)
    ]
    order = sorted(range(len(moved)), key=lambda i: -(moved[i][0] + moved[i][1]))
    for rank, index in enumerate(order, start=1):
        row = moved[index]
        moved[index] = [
            *row[:2],
            rank,
            max(1, rank - 40),
            min(len(moved), rank + 40),
            1 + rank // 80,
        ]
    return moved
