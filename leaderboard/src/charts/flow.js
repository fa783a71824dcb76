// How ranks change from regime to regime.

import { bench, models } from "../data/board.js";
import { scoresIn } from "../data/scores.js";
import { head, number, row, table } from "../page/dom.js";
import { modelLink } from "../page/marks.js";
import { plainRanks } from "../pure/ranks.js";
import { metricName, shortened } from "../pure/words.js";
import { change } from "../state/store.js";
import { IS_NARROW, WIDTH, drawing, framed, label, linked } from "./frame.js";

const LINES_MAX = 45; // more lines cannot be distinguished
const [TOP, STEP] = [34, 17];
const NAMES = IS_NARROW ? 200 : 220; // units beside the outer ranks, for names
const RANKS = 30; // units, where there are ranks alone
const NAME_MAX = IS_NARROW ? 24 : 26; // letters, what fits into NAMES

/** Draw the chart of one column; the models of `coloured` stand out. */
export function flowChart(state, places, column, coloured) {
  const flow = flowRows(state, places, column);
  const left =
    places.length > flow.length
      ? ` The first ${flow.length} of ${places.length.toLocaleString("en")} are drawn.`
      : "";
  return framed({
    name: "flow",
    title: "Rank flow between regimes",
    caption:
      `Ranks by ${column.label} among the models drawn, ${metricName(state.metric)}, by score alone: ` +
      `neighbours often do not differ significantly.${left} Coloured: ${coloured.text}.`,
    invitation: "Point at a line for its ranks, or go from line to line with the arrow keys; click it, or press Enter, for the model's page.",
    draw: (box, title) => drawFlow(box, title, flow, coloured.places, namedAt(state.regime)),
    figures: () => flowTable(flow),
  });
}

/** Return the best models that all regimes rank, with their ranks among each other in each. */
function flowRows({ regime, metric }, places, column) {
  const scores = bench.regimes.map((name) => scoresIn(column, name, metric));
  const now = scores[bench.regimes.indexOf(regime)];
  const drawn = places
    .filter((index) => scores.every((own) => own[index] !== undefined))
    .sort((a, b) => now[b] - now[a])
    .slice(0, LINES_MAX);
  const ranks = scores.map((own) => plainRanks(drawn.map((index) => own[index])));
  return drawn.map((index, order) => ({ index, ranks: ranks.map((own) => own[order]) }));
}

function flowTable(flow) {
  const rows = flow.map(({ index, ranks }) =>
    row(modelLink(index), ...ranks.map((rank) => number(String(rank)))),
  );
  const heads = [head("Model"), ...bench.regimes.map((regime) => head(regime))];
  return table({ id: "flows" }, "Ranks by regime", heads, rows);
}

/** Return at which of the outer regimes names stand: on a phone at the one that is looked at. */
function namedAt(regime) {
  const ends = [0, bench.regimes.length - 1];
  if (!IS_NARROW) return ends;
  return [bench.regimes.indexOf(regime) === ends[1] ? ends[1] : ends[0]];
}

function drawFlow(box, title, flow, coloured, named) {
  const depth = Math.max(1, ...flow.flatMap(({ ranks }) => ranks));
  const height = TOP + depth * STEP + 12;
  const drawn = drawing(box, title, height, { parts: true });
  const side = (end) => (named.includes(end) ? NAMES : RANKS);
  const x = d3.scalePoint(bench.regimes, [side(0), WIDTH - side(bench.regimes.length - 1)]);
  const y = (rank) => TOP + (rank - 0.5) * STEP;
  for (const regime of bench.regimes) {
    label(drawn, regime, x(regime), 16, { anchor: "middle" });
    drawn
      .append("line")
      .attr("class", "rule")
      .attr("x1", x(regime))
      .attr("x2", x(regime))
      .attr("y1", TOP - 8)
      .attr("y2", height - 6);
  }
  const scale = { x: (order) => x(bench.regimes[order]), y, named };
  const isOver = ({ index }) => coloured.includes(index);
  const order = [...flow].sort((a, b) => isOver(a) - isOver(b));
  const lines = order.map((one) => drawLine(drawn, one, scale, coloured.indexOf(one.index)));
  const first = (line) => flow.findIndex(({ index }) => index === line[1]);
  linked("flow", lines.sort((a, b) => first(a) - first(b)), {
    text: (index) => lineText(flow.find((one) => one.index === index)),
    open: (index) => change({ view: "model", model: models[index].id }),
  });
}

function lineText({ index, ranks }) {
  const told = bench.regimes.map((regime, order) => `${regime} ${ranks[order]}`);
  return `${models[index].name}: ${told.join(", ")}`;
}

/** Draw the line of a model, and return its element with the index of the model. */
function drawLine(drawn, { index, ranks }, { x, y, named }, place) {
  const { name } = models[index];
  const group = drawn.append("g").attr("class", place >= 0 ? `flow s${place}` : "flow");
  const path = d3.line((_, order) => x(order), y).curve(d3.curveBumpX)(ranks);
  group.append("path").attr("class", "reach").attr("d", path);
  group.append("path").attr("class", "line").attr("d", path);
  ranks.forEach((rank, order) =>
    group.append("circle").attr("r", 3.5).attr("cx", x(order)).attr("cy", y(rank)),
  );
  const end = ranks.length - 1;
  const text = shortened(name, NAME_MAX);
  const left = named.includes(0) ? `${text}  ${ranks[0]}` : ranks[0];
  const right = named.includes(end) ? `${ranks[end]}  ${text}` : ranks[end];
  label(group, left, x(0) - 10, y(ranks[0]) + 4, { anchor: "end", kind: "name" });
  label(group, right, x(end) + 10, y(ranks[end]) + 4, { kind: "name" });
  return [group.node(), index];
}
