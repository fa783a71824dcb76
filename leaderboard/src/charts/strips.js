// How far a few models lie apart in each task.

import { bench, criticalOf, hasIntervals, models, taskColumns } from "../data/board.js";
import { scoresIn, standingOf } from "../data/scores.js";
import { h, head, number, row, table } from "../page/dom.js";
import { modelLink } from "../page/marks.js";
import { compared } from "../pure/decide.js";
import { counted, intervalText, metricName, regimeWords, scoreText, shortened } from "../pure/words.js";
import { BELOW, axisBelow, drawing, framed } from "./frame.js";
import { area, label, legend, legendHeight, stroke, symbol } from "./frame.js";

const [STEP, APART] = [17, 8]; // units a task, and more for each model beyond the second
const TALLEST = 860; // units of the tasks of a part

/** Draw what the models after the first score beyond it in each task, the most first. */
export function stripChart(state, indexes, tasks) {
  const { regime, metric } = state;
  const rows = tasks
    .map((task) => stripOf(taskColumns[task], regime, metric, indexes))
    .sort((a, b) => b.mean - a.mean);
  const [first] = indexes;
  const bars = hasIntervals(metric)
    ? " Bars are 95 % intervals of the difference, corrected for all pairs of models in one task; a sign " +
      "is filled where its interval leaves out 0."
    : "";
  return framed({
    name: "strips",
    title: "Task by task",
    caption:
      `A sign is the ${metricName(metric)} of a model less that of ${models[first].name} in a task: on the ` +
      `right it scores higher. ${counted(tasks.length, "task")}, ${regimeWords(regime)}.${bars}`,
    draw: (box, title) => drawStrips(box, title, { metric, indexes, rows }),
    figures: () => stripTable(metric, indexes, rows),
  });
}

/** Return the scores of a task, and the differences of each model from the first. */
function stripOf(column, regime, metric, indexes) {
  const scores = scoresIn(column, regime, metric);
  const modelScores = indexes.map(
    (index) => standingOf(column, regime, metric, index) ?? { score: scores[index] },
  );
  const [first, ...otherScores] = modelScores;
  const apart = otherScores.map((scores) =>
    first.error === undefined
      ? { difference: scores.score - first.score }
      : compared(scores, first, criticalOf(regime)),
  );
  const mean = apart.reduce((sum, { difference }) => sum + difference, 0) / apart.length;
  return { column, scores: modelScores.map(({ score }) => score), apart, mean };
}

/** Draw the tasks in parts, each with its own axis: it stays in sight, and a sheet holds a part. */
function drawStrips(box, title, { metric, indexes, rows }) {
  const step = STEP + (indexes.length - 2) * APART;
  const ends = rows.flatMap(({ apart }) =>
    apart.flatMap(({ difference, low, high }) => (low === undefined ? [difference] : [low, high])),
  );
  const left = area.isNarrow ? 160 : 226;
  const x = d3.scaleLinear(d3.extent([...ends, 0]), [left, area.width - 16]).nice();
  const most = Math.floor(TALLEST / step);
  for (let first = 0; first < rows.length; first += most) {
    const part = rows.slice(first, first + most);
    const positions = part.length < rows.length ? `, ${first + 1} to ${first + part.length}` : "";
    drawPart(box, `${title}${positions}`, { metric, indexes, rows: part, x, step });
  }
}

function drawPart(box, title, { metric, indexes, rows, x, step }) {
  const [left] = x.range();
  const lettersMax = area.isNarrow ? 22 : 32;
  const top = 34 + legendHeight(indexes);
  const bottom = top + rows.length * step;
  const drawn = drawing(box, title, bottom + BELOW);
  axisBelow(drawn, x, { top, bottom, text: `difference of ${metricName(metric)}`, isTall: true });
  stroke(drawn, "rule", [x(0), top], [x(0), bottom]);
  rows.forEach(({ column, apart }, position) => {
    const middle = top + (position + 0.5) * step;
    const name = shortened(column.label, lettersMax);
    label(drawn, name, left - 10, middle + 4, { anchor: "end", kind: "name" });
    apart.forEach(({ difference, low, high, isSignificant = true }, k) => {
      const y = middle + (k - (apart.length - 1) / 2) * APART;
      if (low !== undefined) stroke(drawn, `bar s${k + 1}`, [x(low), y], [x(high), y]);
      symbol(drawn, x(difference), y, k + 1, isSignificant ? "mark" : "mark hollow");
    });
  });
  legend(drawn, indexes, 0, (_, order) => (order ? "" : ": 0"));
}

function stripTable(metric, indexes, rows) {
  const [first, ...otherModels] = indexes;
  const tableRows = rows.map(({ column, scores, apart }) =>
    row(
      h("a", { href: `tasks/${encodeURIComponent(bench.tasks[column.task].id)}.html` }, column.label),
      h("td", {}, bench.categories[column.category]),
      ...scores.map((score) => number(scoreText(score))),
      ...apart.map((comparison) =>
        number(
          scoreText(comparison.difference),
          comparison.low === undefined ? null : h("small", {}, intervalText(comparison)),
        ),
      ),
    ),
  );
  const heads = [
    head("Task"),
    head("Category"),
    ...indexes.map((index) => head(`${metricName(metric)}, `, modelLink(index))),
    ...otherModels.map((index) => head(`${models[index].name} less ${models[first].name}`)),
  ];
  return table({ id: "strips" }, "Differences by task", heads, tableRows);
}
