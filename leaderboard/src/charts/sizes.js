// Score against parameters: which models no other of their size is distinguishably better than.

import { baselinesOf, criticalOf, models, params } from "../data/board.js";
import { scoresIn, standingOf } from "../data/scores.js";
import { h, head, number, row, table } from "../page/dom.js";
import { modelLink } from "../page/marks.js";
import { placed } from "../pure/labels.js";
import { frontOf, unbeatenOf } from "../pure/ranks.js";
import { intervalText, metricName, regimeWords, scoreText } from "../pure/words.js";
import { shortened, sizeText } from "../pure/words.js";
import { BELOW, area, axisBelow, axisLeft, colourOf, comparedIn } from "./frame.js";
import { drawing, framed, label, linked, stroke } from "./frame.js";

const [BOTTOM, TOP, LEFT] = [374, 30, 46];
const LINE_STEP = 8; // units, less than the height of a name
const WHISKERS_MAX = 120; // more intervals hide each other

/** Draw the chart of one column. */
export function sizeChart(state, indexes, column) {
  const { regime, metric } = state;
  const scores = scoresIn(column, regime, metric);
  const sized = indexes.filter((index) => params[index] > 0);
  const standings = indexes.map((index) => standingOf(column, regime, metric, index));
  const standingByModel = new Map(indexes.map((index, k) => [index, standings[k]]));
  const hasIntervals = Boolean(standings[0]);
  const steps = frontOf(sized, params, scores);
  const front = hasIntervals
    ? unbeatenOf(sized, params, (index) => standingByModel.get(index), criticalOf(regime))
    : steps;
  const plot = { state, column, scores, sized, standingByModel, steps, front: new Set(front) };
  plot.baselines = baselinesOf(regime, metric, column);
  plot.hasWhiskers = hasIntervals && sized.length <= WHISKERS_MAX;
  const lines = plot.baselines.length ? " Dotted lines are baselines without training, which have no rank." : "";
  const coloured = hasIntervals
    ? " Large dots are the front: of the models drawn that are no larger, none scores significantly " +
      "higher; the dashed line is the highest score of any so large."
    : " Large dots and the dashed line are the front: no model drawn that is no larger scores as high.";
  const bars = plot.hasWhiskers ? " Bars are 95 % intervals." : "";
  return framed({
    name: "size",
    title: "Score against size",
    caption:
      `${column.label} ${metricName(metric)}, ${regimeWords(regime)}, against parameters ` +
      `(logarithmic).${coloured}${bars}${lines}`,
    hasParts: true,
    draw: (box, title) => drawSizes(box, title, plot),
    figures: () => sizeTable(plot, indexes),
  });
}

function drawSizes(box, title, plot) {
  const { state, column, scores, sized, standingByModel, steps } = plot;
  const drawn = drawing(box, title, BOTTOM + BELOW, { parts: true });
  const ends = sized.flatMap((index) => {
    const standing = plot.hasWhiskers ? standingByModel.get(index) : null;
    return standing ? [standing.low, standing.high] : [scores[index]];
  });
  ends.push(...plot.baselines.map(({ score }) => score));
  const sizes = d3.extent(sized, (index) => params[index]);
  const x = d3.scaleLog(sizes, [LEFT + 16, area.width - 30]).nice();
  const y = d3.scaleLinear(d3.extent(ends), [BOTTOM, TOP]).nice();
  axisBelow(drawn, x, { top: TOP, bottom: BOTTOM, text: "parameters", format: sizeText });
  axisLeft(drawn, y, { left: LEFT, right: area.width, text: `${metricName(state.metric)}, ${column.label}` });
  for (const { name, score } of plot.baselines) {
    stroke(drawn, "baseline", [LEFT, y(score)], [area.width, y(score)]);
    label(drawn, `${name} ${scoreText(score)}`, area.width - 4, y(score) - 4, { anchor: "end" });
  }
  const position = (index) => [x(params[index]), y(scores[index])];
  const step = d3.line().curve(d3.curveStepAfter);
  drawn.append("path").attr("class", "front").attr("d", step(steps.map(position)));
  if (plot.hasWhiskers) {
    const whiskers = drawn.append("g").attr("class", "whiskers");
    for (const index of sized) {
      const [at, { low, high }] = [x(params[index]), standingByModel.get(index)];
      stroke(whiskers, null, [at, y(low)], [at, y(high)]);
    }
  }
  drawDots(drawn, plot, position);
  drawNames(drawn, plot, position);
}

/** Draw the front and the compared models last, so that nothing lies over them. */
function drawDots(drawn, plot, position) {
  const { state, sized, front } = plot;
  const compared = comparedIn(state);
  const isOver = (index) => front.has(index) || compared.includes(index);
  const parts = [...sized]
    .sort((a, b) => isOver(a) - isOver(b))
    .map((index) => {
      const colour = colourOf(compared, index) || (front.has(index) ? "on-front" : "");
      const dot = drawn.append("circle").attr("class", `part dot ${colour}`);
      const [x, y] = position(index);
      return [dot.attr("cx", x).attr("cy", y).attr("r", front.has(index) ? 6 : 4.5).node(), index];
    });
  parts.sort(([, a], [, b]) => params[a] - params[b]);
  linked("size", parts, (index) => dotText(plot, index));
}

/** Return points of the upright parts of the front, which names are to leave free. */
function pointsOn(corners) {
  return corners
    .slice(1)
    .flatMap(([x, high], order) => d3.range(high, corners[order][1], LINE_STEP).map((y) => [x, y]));
}

function dotText({ scores, standingByModel }, index) {
  const standing = standingByModel.get(index);
  const interval = standing ? ` (${intervalText(standing)})` : "";
  return `${models[index].name}: ${scoreText(scores[index])}${interval}, ${sizeText(params[index])}`;
}

function drawNames(drawn, { state, sized, steps }, position) {
  const compared = comparedIn(state).filter((index) => sized.includes(index));
  const named = [...new Set([...compared, ...[...steps].reverse()])];
  const names = named.map((index) => ({
    text: shortened(models[index].name),
    at: position(index),
    isNeeded: compared.includes(index),
  }));
  const room = { left: LEFT + 4, right: area.width, top: 14 };
  const covered = [...sized.map(position), ...pointsOn(steps.map(position))];
  for (const [x, y, text] of placed(names, covered, room)) {
    label(drawn, text, x, y, { kind: "name" });
  }
}

function sizeTable({ column, scores, standingByModel, front }, indexes) {
  const order = [...indexes].sort((a, b) => params[a] - params[b]);
  const rows = order.map((index) => {
    const standing = standingByModel.get(index);
    return row(
      modelLink(index),
      number(sizeText(params[index])),
      number(scoreText(scores[index])),
      number(standing ? intervalText(standing) : ""),
      h("td", {}, front.has(index) ? "yes" : ""),
    );
  });
  const heads = ["Model", "Size", column.label, "95 % interval", "On the front"].map((text) => head(text));
  return table({ id: "sizes" }, "Score, size and the front", heads, rows);
}
