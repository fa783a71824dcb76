// The scores of up to four models by category, with intervals.

import { hasIntervals, meanColumns } from "../data/board.js";
import { scoresIn, standingOf } from "../data/scores.js";
import { metricName, regimeWords, shortened } from "../pure/words.js";
import { BELOW, area, axisBelow, drawing, framed } from "./frame.js";
import { label, legend, legendHeight, stroke, symbol } from "./frame.js";

const STEP = 34;
const APART = 7; // units between the models of one category

/** Draw the chart of some models. */
export function profileChart(state, indexes) {
  const bars = hasIntervals(state.metric) ? " Bars are 95 % intervals of each score." : "";
  const what = `${metricName(state.metric)} by category, ${regimeWords(state.regime)}.`;
  return framed({
    name: "profile",
    title: "Category profile",
    caption: `${what}${bars}`,
    draw: (box, title) => drawProfile(box, title, state, indexes),
  });
}

function drawProfile(box, title, { regime, metric }, indexes) {
  const [left, lettersMax] = area.isNarrow ? [124, 16] : [150, 20];
  const top = 14 + legendHeight(indexes);
  const bottom = top + meanColumns.length * STEP;
  const drawn = drawing(box, title, bottom + BELOW);
  const rows = meanColumns.map((column) => {
    const scores = scoresIn(column, regime, metric);
    return indexes.map((index) => ({
      score: scores[index],
      standing: standingOf(column, regime, metric, index),
    }));
  });
  const values = rows
    .flat()
    .flatMap(({ score, standing }) => (standing ? [standing.low, standing.high, score] : [score]));
  const x = d3.scaleLinear(d3.extent([...values, 0]), [left, area.width - 24]).nice();
  axisBelow(drawn, x, { top, bottom, text: metricName(metric) });
  meanColumns.forEach((column, position) => {
    const y = top + (position + 0.5) * STEP;
    label(drawn, shortened(column.label, lettersMax), left - 10, y + 4, { anchor: "end" });
    rows[position].forEach(({ score, standing }, order) => {
      const at = y + (order - (indexes.length - 1) / 2) * APART;
      if (standing) stroke(drawn, `bar s${order}`, [x(standing.low), at], [x(standing.high), at]);
      symbol(drawn, x(score), at, order);
    });
  });
  legend(drawn, indexes, left);
}
