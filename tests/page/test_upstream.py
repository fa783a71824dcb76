"""A reader of our JSON that knows only what upstream's own page knows.

Upstream's index.html is not ours to copy. The reader below is written from scratch; it takes the
same files by the same relative addresses and uses the same fields in the same way: `data` by regime
(or the whole), `model`, `disp`, `params`, `macro_`, `micro_` and `cat_` of a metric; the level of a
model from its first row in any regime, `submitted` or else `official`, of which it has words for
three; then `tasks` with `id`, `label` and `cat`, and `task_` of a metric. It calls `toFixed` on
every score, sorts by it, and sorts models into three bins by `params`.
"""

import json
import shutil
from decimal import ROUND_HALF_UP, Decimal

import pytest

from tests.page.boards import values
from tests.page.tab import opened, serving

READER = """\
<!doctype html><meta charset="utf-8"><title>reader</title><link rel="icon" href="data:,">
<pre id="out"></pre>
<script src="reader.js" defer></script>
"""
SCRIPT = """\
"use strict";
const read = async (name) => {
  const answer = await fetch(`./${name}`);
  if (!answer.ok) throw new Error(`HTTP ${answer.status}`);
  return answer.json();
};
const level = (row) => row.submitted || (row.official ? "official" : "self-reported");
const shown = (score) => (score == null || Number.isNaN(score) ? "none" : score.toFixed(3));
const bin = (params) => (params < 1e8 ? "s" : params < 1e9 ? "m" : "l");
const line = (row, metric, kind, keys) => ({
  name: row.disp || row.model,
  params: row.params ?? 0,
  bin: bin(row.params ?? 0),
  texts: ["macro", "micro"].map((mean) => shown(row[`${mean}_${metric}`])).concat(
    keys.map((key) => shown((row[`${kind}_${metric}`] || {})[key]))),
});
(async () => {
  const board = await read("leaderboard.json");
  const byTask = await read("leaderboard_tasks.json");
  const rows = board.data || board;
  const levels = {};
  const all = Object.values(rows).flat();
  const categories = [...new Set(all.flatMap((row) => Object.keys(row.cat_MCC)))];
  for (const row of all) levels[row.model] ??= level(row);
  const tables = {};
  for (const regime of ["full", "10shot", "1shot"]) {
    for (const metric of ["MCC", "Acc", "F1"]) {
      tables[`${regime} ${metric}`] = rows[regime].map((r) => line(r, metric, "cat", categories));
      tables[`${regime} ${metric} tasks`] = byTask.data[regime].map((r) =>
        line(r, metric, "task", byTask.tasks.map((task) => task.id)));
    }
  }
  const tasks = byTask.tasks.map(({ id, label, cat }) => [id, label, cat]);
  document.getElementById("out").textContent =
    JSON.stringify({ levels, categories, tasks, tables });
})();
"""


@pytest.fixture(scope="module")
def read(browser, board, tmp_path_factory):
    folder = tmp_path_factory.mktemp("reader")
    for name in ("leaderboard.json", "leaderboard_tasks.json"):
        shutil.copy(board / name, folder)
    (folder / "index.html").write_text(READER, encoding="utf-8")
    (folder / "reader.js").write_text(SCRIPT, encoding="utf-8")
    # Our own policy lets nothing fetch; upstream's page has none.
    with serving(folder) as home, opened(browser, home, bypass_csp=True) as tab:
        tab.page.goto(home)
        tab.page.wait_for_selector("#out:not(:empty)")
        return json.loads(tab.page.inner_text("#out"))


def fixed(score: float) -> str:
    """Write a score as JavaScript's toFixed(3), which rounds an exact half away from zero."""
    return str(Decimal(score).quantize(Decimal("0.001"), ROUND_HALF_UP))


def test_upstreams_page_finds_all_that_it_reads(read):
    board, tasks = values()["leaderboard.json"], values()["leaderboard_tasks.json"]
    assert len(read["tables"]) == 18
    assert read["levels"] == {row["model"]: row["submitted"] for row in board["data"]["full"]}
    assert read["categories"] == list(board["data"]["full"][0]["cat_MCC"])
    assert read["tasks"] == [[task["id"], task["label"], task["cat"]] for task in tasks["tasks"]]
    for key, lines in read["tables"].items():
        regime, metric, *kind = key.split()
        rows = (tasks if kind else board)["data"][regime]
        cells = f"task_{metric}" if kind else f"cat_{metric}"
        assert lines == [
            {
                "name": row["disp"],
                "params": row["params"],
                "bin": "s" if row["params"] < 1e8 else "m" if row["params"] < 1e9 else "l",
                "texts": [
                    fixed(row[f"macro_{metric}"]),
                    fixed(row[f"micro_{metric}"]),
                    *map(fixed, row[cells].values()),
                ],
            }
            for row in rows
        ]


def test_levels_that_upstream_has_no_word_for_are_the_least_to_it(read):
    # Its page knows official, verified and self-reported, and shows anything else as the last.
    known = {"official", "verified", "self-reported"}
    assert set(read["levels"].values()) <= known
    rows = values()["leaderboard.json"]["data"]["full"]
    assert all(row["official"] == (row["submitted"] == "official") for row in rows)
