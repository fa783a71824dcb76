"""Does the page need an encoding of its own? `python -m tests.bench.bench_page_data`.

Opens the board of 1,025 models three ways: from the page's own data, from leaderboard.json for the
scores alone, and from leaderboard.json, diagnostics.json and recommendations.json. The published
files come as scripts, since a page opened from a disk cannot fetch: their text, word for word.
"""

import json
import os
import shutil
import statistics
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from tests.bench.bench_page import paint
from tests.page.boards import crowd, value_in, values
from tests.page.conftest import CHROMIUM
from tests.page.tab import serving

RUNS = 7
COPIES = 25
DATA = "board-data.js"
SCORES = """
{ const { leaderboard, base } = globalThis.geneb, { metrics, categories, regimes } = base.benchmark;
  const first = new Map();
  for (const row of Object.values(leaderboard.data).flat())
    if (!first.has(row.model)) first.set(row.model, row);
  base.models = [...first.values()];
  base.scores = regimes.map((regime) => {
    const own = new Map(leaderboard.data[regime].map((row) => [row.model, row]));
    const numbers = (row, m) =>
      [row[`macro_${m}`], row[`micro_${m}`], ...categories.map((c) => row[`cat_${m}`][c])];
    return Object.fromEntries(metrics.map((m) => [m, base.models.map(({ model }) =>
      own.has(model) ? numbers(own.get(model), m).map((score) => 1e6 * score) : null)]));
  }); }
"""
REST = """
{ const { diagnostics, recommendations, base } = globalThis.geneb;
  const place = new Map(base.models.map(({ model }, index) => [model, index]));
  const column = (found) => base.models.map(({ model }) => {
    const one = found[model];
    return one ? [1e4 * one.low, 1e4 * one.high, one.rank, one.rank_low, one.rank_high, one.group]
      : null; });
  base.standings = base.benchmark.regimes.map((regime) => {
    const { macro, micro, categories } = diagnostics.ranks[regime];
    return [macro, micro, ...base.benchmark.categories.map((c) => categories[c])].map(column); });
  base.advice = recommendations.advice.map((one) => ({ ...one.need, considered: one.considered,
    best: one.best && place.get(one.best.model), ties: one.ties.map((model) => place.get(model)),
    smallest: one.smallest && place.get(one.smallest.model), why: one.why })); }
"""


def many(column: dict[str, Any]) -> dict[str, Any]:
    return {f"{model}-{k}": one for model, one in column.items() for k in range(COPIES)}


def published() -> dict[str, Any]:
    """Return the published files of the crowd; its scores are those of the public rows."""
    rows = values()["leaderboard.json"]["data"]
    ranks = values()["diagnostics.json"]["ranks"]
    advice = json.loads(json.dumps(values()["recommendations.json"]["advice"]))
    for one in advice:
        for choice in filter(None, (one["best"], one["smallest"])):
            choice["model"] += "-0"
        one["ties"] = list(many(dict.fromkeys(one["ties"])))
    return {
        "leaderboard": {
            "data": {
                regime: [
                    row | {"model": f"{row['model']}-{k}"} for row in own for k in range(COPIES)
                ]
                for regime, own in rows.items()
            }
        },
        "diagnostics": values()["diagnostics.json"]
        | {
            "ranks": {
                regime: {
                    "macro": many(found["macro"]),
                    "micro": many(found["micro"]),
                    "categories": {c: many(one) for c, one in found["categories"].items()},
                    "tasks": {task: many(one) for task, one in found["tasks"].items()},
                    "draws_covered": [],
                }
                for regime, found in ranks.items()
            }
        },
        "recommendations": {"advice": advice},
    }


def script(name: str, value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return f'(globalThis.geneb??={{}})["{name}"]=JSON.parse({json.dumps(text)});\n'


def main() -> None:
    """Print the table."""
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        own = Path(temporary) / "own"
        own.mkdir()
        models = crowd(own, COPIES)
        base, files = value_in((own / DATA).read_bytes()), published()
        head = script("base", {k: v for k, v in base.items() if k not in {"models", "scores"}})
        board = head + script("leaderboard", files["leaderboard"]) + SCORES
        rest = [script(name, files[name]) for name in ("diagnostics", "recommendations")]
        ways = {
            "the page's own data": (own / DATA).read_text(),
            "`leaderboard.json`, the rest its own": board,
            "the published files": "".join([board, *rest, REST]),
        }
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        print("| data | size | first paint | overview drawn | table drawn |")
        print("|---|---:|---:|---:|---:|")
        for number, (way, text) in enumerate(ways.items()):
            folder = Path(temporary) / str(number)
            shutil.copytree(own, folder)
            (folder / DATA).write_text(text)
            with serving(folder) as home:
                overview, table = (
                    [paint(browser, home, place) for _ in range(RUNS)]
                    for place in ("#/overview", "#/table")
                )
            first = statistics.median(paints[0] for paints in overview)
            drawn = [statistics.median(paints[1] for paints in runs) for runs in (overview, table)]
            print(
                f"| {way} | {len(text) / 1e6:.1f} MB | {first:.0f} ms "
                f"| {drawn[0]:.0f} ms | {drawn[1]:.0f} ms |",
                flush=True,
            )
        version = browser.version
        browser.close()
    print(f"\nMedian of {RUNS} runs, {models} models, Chromium {version}.")


if __name__ == "__main__":
    main()
