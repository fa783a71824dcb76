// Every score of one model, with interval and rank, in all regimes.

import { bench, meanColumns, taskColumns } from "../data/board.js";
import { scoresIn, standingOf } from "../data/scores.js";
import { h, head, number, row, table } from "../page/dom.js";
import { rankOf } from "../pure/ranks.js";
import { heatCell, rankCell } from "./table-cells.js";

const WHOLE = [0, 1]; // the range of the colours: one model has no others to be held against

export function modelCategories(state, index) {
  const rows = meanColumns.map((column) => row(column.label, ...regimeCells(state, column, index)));
  const caption = "Scores, intervals and ranks by category and regime";
  return table({}, caption, [head("Category"), ...regimeHeads()], rows);
}

export function modelTasks(state, index) {
  const rows = taskColumns.map((column) => {
    const task = bench.tasks[column.task];
    return row(
      h("span", { title: task.id }, task.label),
      h("td", {}, bench.categories[task.category]),
      number(task.n ? task.n.toLocaleString("en") : ""),
      ...regimeCells(state, column, index),
    );
  });
  const heads = [head("Task"), head("Category"), head("Test sequences"), ...regimeHeads()];
  return table({}, "Scores, intervals and ranks by task and regime", heads, rows);
}

function regimeHeads() {
  return bench.regimes.flatMap((regime) => [
    head(regime),
    h("th", { scope: "col", class: "rank" }, "Rank", h("small", {}, regime)),
  ]);
}

function regimeCells({ metric }, column, index) {
  return bench.regimes.flatMap((regime) => {
    const scores = scoresIn(column, regime, metric);
    if (scores[index] === undefined) return [h("td", { class: "none" }, "missing cells"), h("td", {}, "")];
    const standing = standingOf(column, regime, metric, index);
    const rank = standing?.rank ? undefined : rankOf(scores, index);
    return [heatCell(scores[index], WHOLE, standing), rankCell(standing, rank)];
  });
}
