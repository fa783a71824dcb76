// The scores of up to four models by category, with intervals.

import { hasIntervals, meanColumns, models } from "../data/board.js";
import { scoresIn, standingOf } from "../data/scores.js";
import { metricName, regimeWords, shortened } from "../pure/words.js";
import { IS_NARROW, WIDTH, axis, drawing, framed, label } from "./frame.js";

const SYMBOLS = ["symbolCircle", "symbolSquare", "symbolTriangle", "symbolDiamond"];
const [LEFT, STEP, LEGEND_STEP] = [IS_NARROW ? 124 : 150, 34, 18];
const LABEL_MAX = IS_NARROW ? 16 : 20; // letters, what fits into LEFT
const LEGEND_COLUMNS = IS_NARROW ? 1 : 2;
const APART = 7; // pixels between the models of one category
const NAME_MAX = 44;

/** Draw the chart of some models. */
export function profileChart(state, places, { shown = "", figures = null } = {}) {
  const bars = hasIntervals(state.metric) ? " Bars are 95 % intervals." : "";
  const what = `${metricName(state.metric)} by category, ${regimeWords(state.regime)}.`;
  return framed({
    name: "profile",
    title: "Category profile",
    caption: `${what}${bars}${shown}`,
    draw: (box, title) => drawProfile(box, title, state, places),
    figures,
  });
}

function drawProfile(box, title, { regime, metric }, places) {
  const top = 34 + LEGEND_STEP * Math.ceil(places.length / LEGEND_COLUMNS);
  const height = top + meanColumns.length * STEP + 30;
  const drawn = drawing(box, title, height);
  const rows = meanColumns.map((column) => {
    const scores = scoresIn(column, regime, metric);
    return places.map((index) => ({
      score: scores[index],
      standing: standingOf(column, regime, metric, index),
    }));
  });
  const values = rows
    .flat()
    .flatMap(({ score, standing }) => (standing ? [standing.low, standing.high, score] : [score]));
  const x = d3.scaleLinear(d3.extent([...values, 0]), [LEFT, WIDTH - 24]).nice();
  const ticks = d3.axisBottom(x).ticks(WIDTH / 100).tickSize(-(height - 26 - top));
  axis(drawn, `translate(0,${height - 26})`, ticks);
  meanColumns.forEach((column, place) => {
    const y = top + (place + 0.5) * STEP;
    label(drawn, shortened(column.label, LABEL_MAX), LEFT - 10, y + 4, { anchor: "end" });
    rows[place].forEach((mark, order) =>
      drawMark(drawn, x, y + (order - (places.length - 1) / 2) * APART, mark, order),
    );
  });
  places.forEach((index, order) => {
    const [a, b] = [
      LEFT + (order % LEGEND_COLUMNS) * 350,
      16 + LEGEND_STEP * Math.floor(order / LEGEND_COLUMNS),
    ];
    drawSymbol(drawn, a, b - 4, order, 60);
    label(drawn, shortened(models[index].name, NAME_MAX), a + 12, b, { kind: "name" });
  });
}

function drawMark(drawn, x, y, { score, standing }, order) {
  if (standing) {
    drawn
      .append("line")
      .attr("class", `bar s${order}`)
      .attr("x1", x(standing.low))
      .attr("x2", x(standing.high))
      .attr("y1", y)
      .attr("y2", y);
  }
  drawSymbol(drawn, x(score), y, order, 50);
}

function drawSymbol(drawn, x, y, order, area) {
  drawn
    .append("path")
    .attr("class", `mark s${order}`)
    .attr("transform", `translate(${x},${y})`)
    .attr("d", d3.symbol(d3[SYMBOLS[order]], area)());
}
