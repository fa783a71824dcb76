// The scores of a few models by category, and how each compares with the best of them.

import { criticalOf, hasIntervals, isDecided, meanColumns, models } from "../data/board.js";
import { scoresIn, standingOf } from "../data/scores.js";
import { matchingColumn } from "../data/tasks.js";
import { h, head, hint, row, table } from "../page/dom.js";
import { modelLink } from "../page/marks.js";
import { compared } from "../pure/decide.js";
import { heat } from "../pure/ranks.js";
import { comparedText, counted, matchText, scoreText, shortInterval } from "../pure/words.js";

export function compareNote({ metric }) {
  return hint(
    isDecided(metric, meanColumns[0])
      ? "Bold is the best of these. The others score significantly lower or not, after correction for all pairs of the board."
      : "Bold is the best of these.",
  );
}

/** Write how the best of some models compares with each other one on the matching tasks. */
export function compareSentences(state, indexes) {
  const { regime, metric, species, kind } = state;
  const column = matchingColumn(state);
  if (!hasIntervals(metric) || indexes.length < 2 || column.tasks?.length === 0) return null;
  const best = bestOf(scoresIn(column, regime, metric), indexes);
  const some = species && `${counted(column.tasks.length, "task")} (${matchText(state)})`;
  const where = some || kind || "the mean of all categories";
  const sentences = indexes
    .filter((index) => index !== best)
    .map((index) => {
      const comparison = comparedIn(column, regime, metric, best, index);
      return comparedText(models[best].name, models[index].name, where, comparison);
    });
  return h("ul", { class: "why compared-why", dir: "auto" }, ...sentences.map((text) => h("li", {}, text)));
}

const bestOf = (scores, indexes) => indexes.reduce((a, b) => (scores[b] > scores[a] ? b : a));

function comparedIn(column, regime, metric, first, second) {
  const [high, low] = [first, second].map((index) => standingOf(column, regime, metric, index));
  return compared(high, low, criticalOf(regime));
}

/** Make the table of some models. */
export function compareTable(state, indexes) {
  const heads = [head("Category"), ...indexes.map((index) => head(modelLink(index)))];
  const rows = meanColumns.map((column) =>
    row(column.label, ...comparedCells(state, column, indexes)),
  );
  return table({ class: "comparison" }, "Scores of the compared models by category", heads, rows);
}

function comparedCells({ regime, metric }, column, indexes) {
  const scores = scoresIn(column, regime, metric);
  const best = bestOf(scores, indexes);
  return indexes.map((index) => {
    const standing = standingOf(column, regime, metric, index);
    return h(
      "td",
      { class: `heat ${heat(scores[index], [0, 1])}` },
      h(index === best ? "strong" : "span", {}, scoreText(scores[index])),
      standing ? h("small", {}, shortInterval(standing)) : null,
      standing && index !== best ? verdict(column, regime, metric, best, index) : null,
    );
  });
}

function verdict(column, regime, metric, best, index) {
  const comparison = comparedIn(column, regime, metric, best, index);
  const title = comparedText(models[best].name, models[index].name, column.label, comparison);
  const text = comparison.isSignificant ? "significantly lower" : "not significant";
  return h("small", { class: "verdict", title }, text);
}
