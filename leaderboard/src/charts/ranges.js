// The range of ranks of each model, in every regime: what the board says of the order.

import { bench, hasIntervals, models } from "../data/board.js";
import { rankedCount, ranksIn, scoresIn } from "../data/scores.js";
import { head, number, row, table } from "../page/dom.js";
import { modelLink } from "../page/marks.js";
import { paged } from "../pure/rows.js";
import { byExamples, metricName, rangeText, regimeWords, shortened } from "../pure/words.js";
import { BELOW, axisBelow, colourOf, comparedIn } from "./frame.js";
import { area, drawing, framed, label, linked, stroke } from "./frame.js";

const ROWS = 50; // more would be drawn in more than a tenth of a second
const [TOP, STEP, GAP] = [42, 18, 22];

/** Return the models that a page of the chart has, by rank, as `paged` does. */
export function rangePage({ regime, metric, page }, indexes, column) {
  const scores = scoresIn(column, regime, metric);
  const order = [...indexes].sort((a, b) => scores[b] - scores[a]);
  return paged(order, ROWS, page);
}

/** Draw the chart of one column for the models of a page. */
export function rangeChart(state, { pageItems }, column) {
  const { regime, metric } = state;
  const regimes = byExamples(bench.regimes);
  const ranks = regimes.map((name) => ranksIn(column, name, metric, pageItems));
  const plot = {
    pageItems,
    chosen: comparedIn(state),
    panels: regimes
      .map((name, k) => ({ name, ranks: ranks[k], count: rankedCount(name) }))
      .filter(({ name }) => !area.isNarrow || name === regime),
  };
  const range = hasIntervals(metric)
    ? "A line spans the ranks that a model may have, a dot is its rank by score; where a line begins " +
      "at rank 1, no model scores significantly higher. Ranges hold jointly with 95 % confidence, " +
      "for other test sequences of these tasks. "
    : "A dot is a rank by score alone: neighbours often do not differ. ";
  return framed({
    name: "ranges",
    title: "Ranges of ranks",
    caption:
      `${range}Ranks by ${metricName(metric)}, ${column.label}, are among all ranked models of the board, ` +
      `whatever the filters leave; the order is that of ${regime}.`,
    hasParts: true,
    draw: (box, title) => drawRanges(box, title, plot),
    figures: () => rangeTable(pageItems, regimes, ranks),
  });
}

function drawRanges(box, title, { pageItems, chosen, panels }) {
  const [start, lettersMax] = area.isNarrow ? [172, 25] : [226, 32];
  const bottom = TOP + pageItems.length * STEP + 4;
  const drawn = drawing(box, title, bottom + BELOW, { parts: true });
  const width = (area.width - start - GAP * panels.length) / panels.length;
  for (const [k, panel] of panels.entries()) {
    const left = start + k * (width + GAP);
    panel.x = d3.scaleLinear([1, Math.max(panel.count, 2)], [left, left + width]);
    label(drawn, panel.name, left, 14, { kind: "name" });
    axisBelow(drawn, panel.x, { top: TOP - 2, bottom, text: "rank", isTall: true });
  }
  const parts = pageItems.map((index, position) => {
    const group = drawn.append("g").attr("class", `part ${colourOf(chosen, index)}`);
    const y = TOP + (position + 0.5) * STEP;
    group
      .append("rect")
      .attr("class", "reach")
      .attr("x", 0)
      .attr("y", y - STEP / 2)
      .attr("width", area.width)
      .attr("height", STEP);
    const name = shortened(models[index].name, lettersMax);
    label(group, name, start - 12, y + 4, { anchor: "end", kind: "name" });
    for (const { x, ranks } of panels) drawRange(group, x, y, ranks[position]);
    return [group.node(), index];
  });
  linked("ranges", parts, (index) => rangeWords(index, panels, pageItems.indexOf(index)));
}

function drawRange(group, x, y, range) {
  if (!range) return;
  const { rank, rankLow, rankHigh } = range;
  const first = rankLow === 1 ? " first" : "";
  if (rankLow) stroke(group, `range${first}`, [x(rankLow) - 1, y], [x(rankHigh) + 1, y]);
  const dot = group.append("circle").attr("class", `spot${first}`);
  dot.attr("cx", x(rank)).attr("cy", y).attr("r", 3.5);
}

/** Write a rank with its range; "none" where cells are missing. */
function rankWords(ranks) {
  if (!ranks) return "none";
  const range = ranks.rankLow ? ` (${rangeText(ranks.rankLow, ranks.rankHigh)})` : "";
  return `${ranks.rank}${range}`;
}

function rangeWords(index, panels, position) {
  const rankTexts = panels.map(({ name, ranks }) => `${name} ${rankWords(ranks[position])}`);
  return `${models[index].name}: rank ${rankTexts.join(", ")}`;
}

function rangeTable(pageItems, regimes, ranks) {
  const rows = pageItems.map((index, position) =>
    row(modelLink(index), ...ranks.map((regimeRanks) => number(rankWords(regimeRanks[position])))),
  );
  const heads = [head("Model"), ...regimes.map((name) => head(`Rank, ${regimeWords(name)}`))];
  return table({ id: "ranks" }, "Ranks and their ranges by regime", heads, rows);
}
