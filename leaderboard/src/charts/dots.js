// How one task tells models apart: a dot for each, at its score.

import { baselinesOf, bench, models } from "../data/board.js";
import { scoresIn, standingOf } from "../data/scores.js";
import { head, number, row, table } from "../page/dom.js";
import { modelLink } from "../page/marks.js";
import { heaped } from "../pure/heaps.js";
import { intervalText, metricName, regimeWords, scoreText, shortened } from "../pure/words.js";
import { BELOW, area, axisBelow, colourOf, comparedIn, drawing } from "./frame.js";
import { framed, label, linked, stroke, symbol } from "./frame.js";

const [LEFT, HEAP, STEP, BASELINE_STEP] = [12, 240, 20, 14];
const [WIDEST, NARROWEST] = [10, 2.5]; // units that a dot is wide
const NAME_MAX = 30;

/** Draw the scores of models in one task; the compared ones have a line with their interval. */
export function dotChart(state, indexes, column) {
  const { regime, metric } = state;
  const task = bench.tasks[column.task];
  const scores = scoresIn(column, regime, metric);
  const order = [...indexes].sort((a, b) => scores[b] - scores[a]);
  const standing = (index) => standingOf(column, regime, metric, index);
  const chosen = comparedIn(state).filter((index) => indexes.includes(index));
  const baselines = baselinesOf(regime, metric, column);
  const plot = { metric, order, chosen, scores, standing, baselines };
  const bars = indexes.length && standing(indexes[0]) ? " with their 95 % intervals" : "";
  const marked = chosen.length
    ? ` The compared models stand out${bars}.`
    : " Compare models, and they stand out here.";
  const lines = baselines.length ? " Dotted lines are baselines without training." : "";
  return framed({
    name: "task",
    title: "One task over the models",
    caption:
      `A dot is a model at its ${metricName(metric)} in ${task.label} (${bench.categories[task.category]}), ` +
      `${regimeWords(regime)}; dots of nearly one score are heaped.${marked}${lines}`,
    hasParts: true,
    draw: (box, title) => drawDots(box, title, plot),
    figures: () => dotTable(plot),
  });
}

function drawDots(box, title, { metric, order, chosen, scores, standing, baselines }) {
  const standings = chosen.map(standing);
  const ends = [
    ...order.map((index) => scores[index]),
    ...standings.flatMap((range) => (range ? [range.low, range.high] : [])),
    ...baselines.map(({ score }) => score),
  ];
  const x = d3.scaleLinear(d3.extent(ends), [LEFT, area.width - LEFT]).nice();
  const at = order.map((index) => x(scores[index]));
  const { width, heights, highest } = heaped(at, WIDEST, NARROWEST, HEAP);
  const top = 8 + baselines.length * BASELINE_STEP;
  const middle = top + (highest + 1) * width + 8;
  const bottom = middle + chosen.length * STEP + 4;
  const drawn = drawing(box, title, bottom + BELOW, { parts: true });
  axisBelow(drawn, x, { top, bottom, text: metricName(metric) });
  baselines.forEach(({ name, score }, position) => {
    stroke(drawn, "baseline", [x(score), top - 4], [x(score), bottom]);
    writeBeside(drawn, `${name} ${scoreText(score)}`, [x(score), x(score)], 12 + position * BASELINE_STEP);
  });
  const parts = order.map((index, position) => {
    const dot = drawn.append("circle").attr("class", `part dot ${colourOf(chosen, index)}`);
    const y = middle - 4 - (heights[position] + 0.5) * width;
    return [dot.attr("cx", at[position]).attr("cy", y).attr("r", width / 2).node(), index];
  });
  chosen.forEach((index, order) => {
    const y = middle + (order + 0.5) * STEP;
    const middlePoint = x(scores[index]);
    const interval = standings[order];
    const [low, high] = interval ? [x(interval.low), x(interval.high)] : [middlePoint, middlePoint];
    stroke(drawn, `bar s${order}`, [low, y], [high, y]);
    symbol(drawn, middlePoint, y, order);
    const reach = [Math.min(low, middlePoint - 4), Math.max(high, middlePoint + 4)];
    writeBeside(drawn, shortened(models[index].name, NAME_MAX), reach, y + 4);
  });
  linked("task", parts, (index) => dotText(index, scores, standing));
}

/** Write a name on that side of a mark where there is more room. */
function writeBeside(drawn, text, [low, high], y) {
  const isLeft = low > area.width - high;
  label(drawn, text, isLeft ? low - 6 : high + 6, y, { anchor: isLeft ? "end" : "start", kind: "name" });
}

function dotText(index, scores, standing) {
  const range = standing(index);
  const interval = range ? ` (${intervalText(range)})` : "";
  return `${models[index].name}: ${scoreText(scores[index])}${interval}`;
}

function dotTable({ metric, order, scores, standing, baselines }) {
  const rows = order.map((index) => {
    const interval = standing(index);
    return row(modelLink(index), number(scoreText(scores[index])), number(interval ? intervalText(interval) : ""));
  });
  const baselineRows = baselines.map(({ name, score }) => row(`${name}, a baseline`, number(scoreText(score)), number()));
  const heads = ["Model", metricName(metric), "95 % interval"].map((text) => head(text));
  return table({ id: "dots" }, "Scores of one task", heads, [...rows, ...baselineRows]);
}
