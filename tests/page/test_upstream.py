"""A reader of our JSON that knows only what upstream's own page knows.

Upstream's index.html is not ours to copy. The reader below is written from scratch; it takes the
same files by the same relative addresses and uses the same fields: `data` by regime, `model`,
`disp`, `params`, `submitted` (or `official`), `macro_`, `micro_` and `cat_` of a metric; then
`tasks` with `id`, `label` and `cat`, and `task_` of a metric.
"""

import json
import shutil

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
const line = (row, metric, kind, keys) => ({
  name: row.disp || row.model,
  params: row.params ?? 0,
  macro: row[`macro_${metric}`],
  micro: row[`micro_${metric}`],
  cells: keys.map((key) => row[`${kind}_${metric}`][key]),
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


@pytest.fixture
def read(browser, board, tmp_path):
    for name in ("leaderboard.json", "leaderboard_tasks.json"):
        shutil.copy(board / name, tmp_path)
    (tmp_path / "index.html").write_text(READER, encoding="utf-8")
    (tmp_path / "reader.js").write_text(SCRIPT, encoding="utf-8")
    # Our own policy lets nothing fetch; upstream's page has none.
    with serving(tmp_path) as home, opened(browser, home, bypass_csp=True) as tab:
        tab.page.goto(home)
        tab.page.wait_for_selector("#out:not(:empty)")
        return json.loads(tab.page.inner_text("#out"))


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
                "macro": row[f"macro_{metric}"],
                "micro": row[f"micro_{metric}"],
                "cells": list(row[cells].values()),
            }
            for row in rows
        ]
