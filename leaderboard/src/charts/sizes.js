// Score against parameters, with the Pareto front.

import { baselinesOf, byId, models, params } from "../data/board.js";
import { scoresIn, standingOf } from "../data/scores.js";
import { h, head, number, row, table } from "../page/dom.js";
import { modelLink } from "../page/marks.js";
import { placed } from "../pure/labels.js";
import { frontOf } from "../pure/ranks.js";
import { intervalText, metricName, regimeWords, scoreText } from "../pure/words.js";
import { shortened, sizeText } from "../pure/words.js";
import { change } from "../state/store.js";
import { WIDTH, axis, drawing, framed, label, linked } from "./frame.js";

const [HEIGHT, LEFT, BOTTOM] = [420, 56, 46];
const LINE_STEP = 8; // units, less than the height of a name
const WHISKERS_MAX = 120; // more intervals hide each other

/** Draw the chart of one column. */
export function sizeChart(state, places, column) {
  const scores = scoresIn(column, state.regime, state.metric);
  const sized = places.filter((index) => params[index] > 0);
  const plot = { state, column, scores, sized, front: frontOf(sized, params, scores) };
  plot.baselines = baselinesOf(state.regime, state.metric, column);
  plot.hasWhiskers = sized.length <= WHISKERS_MAX && Boolean(standing(plot, sized[0]));
  const bars = plot.hasWhiskers ? " Bars are 95 % intervals." : "";
  const lines = plot.baselines.length ? " Dotted lines are baselines without training, which have no rank." : "";
  return framed({
    name: "size",
    title: "Score against size",
    caption:
      `${column.label} ${metricName(state.metric)}, ${regimeWords(state.regime)}, against parameters ` +
      `(logarithmic). The dashed line is the Pareto front: no smaller model of those drawn scores as high.${bars}${lines}`,
    invitation: "Point at a dot for its figures, or go from dot to dot with the arrow keys; click it, or press Enter, for the model's page.",
    draw: (box, title) => drawSizes(box, title, plot),
    figures: () => sizeTable(plot, places),
  });
}

function standing({ state, column }, index) {
  return index === undefined ? null : standingOf(column, state.regime, state.metric, index);
}

function drawSizes(box, title, plot) {
  const { state, column, scores, sized, front } = plot;
  const drawn = drawing(box, title, HEIGHT, { parts: true });
  const ends = sized.flatMap((index) => {
    const found = plot.hasWhiskers ? standing(plot, index) : null;
    return found ? [found.low, found.high] : [scores[index]];
  });
  ends.push(...plot.baselines.map(({ score }) => score));
  const sizes = d3.extent(sized, (index) => params[index]);
  const x = d3.scaleLog(sizes, [LEFT + 16, WIDTH - 30]).nice();
  const y = d3.scaleLinear(d3.extent(ends), [HEIGHT - BOTTOM, 30]).nice();
  axis(drawn, `translate(0,${HEIGHT - BOTTOM})`, d3.axisBottom(x).ticks(WIDTH / 140, (v) => sizeText(v)));
  axis(drawn, `translate(${LEFT},0)`, d3.axisLeft(y).ticks(8));
  label(drawn, "parameters", WIDTH - 30, HEIGHT - 8, { anchor: "end" });
  label(drawn, `${metricName(state.metric)}, ${column.label}`, 8, 12);
  drawBaselines(drawn, plot, y);
  const position = (index) => [x(params[index]), y(scores[index])];
  const step = d3.line().curve(d3.curveStepAfter);
  drawn.append("path").attr("class", "front").attr("d", step(front.map(position)));
  if (plot.hasWhiskers) drawWhiskers(drawn, plot, x, y);
  drawDots(drawn, plot, position);
  drawNames(drawn, plot, position);
}

function drawBaselines(drawn, { baselines }, y) {
  for (const { name, score } of baselines) {
    const path = `M${LEFT},${y(score)}H${WIDTH}`;
    drawn.append("path").attr("class", "baseline").attr("d", path);
    label(drawn, `${name} ${scoreText(score)}`, WIDTH - 4, y(score) - 4, { anchor: "end" });
  }
}

function drawWhiskers(drawn, plot, x, y) {
  drawn
    .append("g")
    .attr("class", "whiskers")
    .selectAll("line")
    .data(plot.sized)
    .join("line")
    .attr("x1", (index) => x(params[index]))
    .attr("x2", (index) => x(params[index]))
    .attr("y1", (index) => y(standing(plot, index).low))
    .attr("y2", (index) => y(standing(plot, index).high));
}

/** Draw the front and the compared models last, so that nothing lies over them. */
function drawDots(drawn, { state, column, scores, sized, front }, position) {
  const compared = comparedIn(state);
  const isOver = (index) => front.includes(index) || compared.includes(index);
  const kind = (index) => {
    if (compared.includes(index)) return `dot s${compared.indexOf(index)}`;
    return front.includes(index) ? "dot on-front" : "dot";
  };
  drawn
    .selectAll(".dot")
    .data([...sized].sort((a, b) => isOver(a) - isOver(b)))
    .join("circle")
    .attr("class", kind)
    .attr("cx", (index) => position(index)[0])
    .attr("cy", (index) => position(index)[1])
    .attr("r", (index) => (isOver(index) ? 6 : 4.5));
  const dots = drawn.selectAll(".dot").nodes();
  const parts = dots.map((dot) => [dot, d3.select(dot).datum()]);
  linked("size", parts.sort(([, a], [, b]) => params[a] - params[b]), {
    text: (index) => dotText(state, column, scores, index),
    open: (index) => change({ view: "model", model: models[index].id }),
  });
}

/** Return points of the upright parts of the front, which names are to leave free. */
function pointsOn(corners) {
  return corners
    .slice(1)
    .flatMap(([x, high], order) => d3.range(high, corners[order][1], LINE_STEP).map((y) => [x, y]));
}

const comparedIn = (state) => state.models.map((id) => byId.get(id));

function dotText({ regime, metric }, column, scores, index) {
  const found = standingOf(column, regime, metric, index);
  const interval = found ? ` (${intervalText(found)})` : "";
  const score = `${scoreText(scores[index])}${interval}`;
  return `${models[index].name}: ${score}, ${sizeText(params[index])}`;
}

function drawNames(drawn, { state, sized, front }, position) {
  const compared = comparedIn(state).filter((index) => sized.includes(index));
  const wanted = [...new Set([...compared, ...[...front].reverse()])];
  const names = wanted.map((index) => ({
    text: shortened(models[index].name),
    at: position(index),
    isNeeded: compared.includes(index),
  }));
  const room = { left: LEFT + 4, right: WIDTH, top: 14 };
  const covered = [...sized.map(position), ...pointsOn(front.map(position))];
  for (const [x, y, text] of placed(names, covered, room)) {
    label(drawn, text, x, y, { kind: "name" });
  }
}

function sizeTable({ column, scores, front }, places) {
  const order = [...places].sort((a, b) => params[a] - params[b]);
  const rows = order.map((index) =>
    row(
      modelLink(index),
      number(sizeText(params[index])),
      number(scoreText(scores[index])),
      h("td", {}, front.includes(index) ? "yes" : ""),
    ),
  );
  const heads = ["Model", "Size", column.label, "On the front"].map((text) => head(text));
  return table({ id: "sizes" }, "Score, size and Pareto front", heads, rows);
}
