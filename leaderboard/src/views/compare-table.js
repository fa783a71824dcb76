// The scores of a few models by category, and which of them are near the best.

import { hasIntervals, meanColumns } from "../data/board.js";
import { scoresIn, standingOf } from "../data/scores.js";
import { h, head, hint, row, table } from "../page/dom.js";
import { modelLink } from "../page/marks.js";
import { heat } from "../pure/ranks.js";
import { scoreText, shortInterval } from "../pure/words.js";

export function compareNote({ metric }) {
  return hint(
    hasIntervals(metric)
      ? "Bold is the best of these; “near” marks a score whose interval overlaps that of the best."
      : "Bold is the best of these.",
  );
}

/** Make the table of some models. */
export function compareTable(state, places) {
  const heads = [head("Category"), ...places.map((index) => head(modelLink(index)))];
  const rows = meanColumns.map((column) =>
    row(column.label, ...comparedCells(state, column, places)),
  );
  return table({ class: "comparison" }, "Scores of the compared models by category", heads, rows);
}

function comparedCells({ regime, metric }, column, places) {
  const scores = scoresIn(column, regime, metric);
  const best = places.reduce((a, b) => (scores[b] > scores[a] ? b : a));
  const limit = standingOf(column, regime, metric, best)?.low;
  return places.map((index) => {
    const standing = standingOf(column, regime, metric, index);
    const isNear = index !== best && standing !== null && standing.high >= limit;
    return h(
      "td",
      { class: `heat ${heat(scores[index], [0, 1])}` },
      h(index === best ? "strong" : "span", {}, scoreText(scores[index])),
      isNear ? " near" : null,
      standing ? h("small", {}, shortInterval(standing)) : null,
    );
  });
}
