// How the scores of a few models grow with training examples.

import { COMPARED_MAX, bench, hasIntervals } from "../data/board.js";
import { meansIn } from "../data/choices.js";
import { isRanked, scoresIn } from "../data/scores.js";
import { head, number, row, table } from "../page/dom.js";
import { modelLink } from "../page/marks.js";
import { byExamples, intervalText, metricName, overText, regimeExamples } from "../pure/words.js";
import { scoreText } from "../pure/words.js";
import { BELOW, area, axisBelow, axisLeft, comparedIn, drawing, framed } from "./frame.js";
import { legend, legendHeight, stroke, symbol } from "./frame.js";

const [LEFT, PLOT] = [46, 300];
const APART = 9; // units between the models at one number of examples

/** Draw the curves of the compared models, or of those that score highest where none is. */
export function curveChart(state, indexes, tasks) {
  const { metric } = state;
  const regimes = byExamples(bench.regimes);
  const models = shownIn(state, indexes, tasks);
  const means = regimes.map((name) => meansOf(name, metric, models, tasks));
  const bars = hasIntervals(metric)
    ? " Bars are 95 % intervals, for other test sequences and other training draws."
    : "";
  return framed({
    name: "curves",
    title: "Few-shot curves",
    caption:
      `A sign is the mean ${metricName(metric)} of a model ${overText(tasks.length, state)}, with so many ` +
      `training examples; between them nothing was measured.${bars} ` +
      `Shown: ${comparedIn(state).length ? "the compared models." : "the highest of those that the filters leave; compare models to choose others."}`,
    draw: (box, title) => drawCurves(box, title, { metric, regimes, models, means }),
    figures: () => curveTable(regimes, models, means),
  });
}

/** Return up to four models, each with every score. */
function shownIn(state, indexes, tasks) {
  const isWhole = (index) => bench.regimes.every((name) => isRanked(index, name));
  const compared = comparedIn(state);
  if (compared.length) return compared.filter(isWhole);
  const scores = scoresIn({ tasks }, state.regime, state.metric);
  const order = indexes.filter(isWhole).sort((a, b) => scores[b] - scores[a]);
  return order.slice(0, COMPARED_MAX);
}

function meansOf(regime, metric, models, tasks) {
  if (hasIntervals(metric)) return meansIn(regime, models, tasks);
  const scores = scoresIn({ tasks }, regime, metric);
  return models.map((index) => ({ score: scores[index] }));
}

function drawCurves(box, title, { metric, regimes, models, means }) {
  const top = 34 + legendHeight(models);
  const bottom = top + PLOT;
  const drawn = drawing(box, title, bottom + BELOW);
  const ends = means
    .flat()
    .flatMap(({ score, low, high }) => (low === undefined ? [score] : [low, high]));
  const x = d3.scalePoint(regimes, [LEFT, area.width - 12]).padding(0.4);
  const y = d3.scaleLinear(d3.extent(ends), [bottom, top]).nice();
  const text = "training examples per class, not to scale";
  axisBelow(drawn, x, { top, bottom, text, format: examplesText });
  axisLeft(drawn, y, { left: LEFT, right: area.width - 12, text: `mean ${metricName(metric)}`, at: top - 14 });
  models.forEach((index, order) => {
    const aside = (order - (models.length - 1) / 2) * APART;
    const points = regimes.map((name, k) => [x(name) + aside, y(means[k][order].score)]);
    drawn.append("path").attr("class", `curve s${order}`).attr("d", d3.line()(points));
    regimes.forEach((name, k) => {
      const [at, height] = points[k];
      const { low, high } = means[k][order];
      if (low !== undefined) stroke(drawn, `bar s${order}`, [at, y(low)], [at, y(high)]);
      symbol(drawn, at, height, order);
    });
  });
  legend(drawn, models, 0);
}

/** Write how many examples a regime gives, for a tick. */
function examplesText(regime) {
  const [, shots] = /^(\d+)/.exec(regimeExamples(regime)) ?? [];
  return shots ?? (regimeExamples(regime) ? "all" : regime);
}

function curveTable(regimes, models, means) {
  const rows = models.map((index, order) =>
    row(
      modelLink(index),
      ...means.map((regimeMeans) => {
        const { score, low, high } = regimeMeans[order];
        const interval = low === undefined ? "" : ` (${intervalText({ low, high })})`;
        return number(`${scoreText(score)}${interval}`);
      }),
    ),
  );
  return table({ id: "curves" }, "Means by training examples", [head("Model"), ...regimes.map((name) => head(name))], rows);
}
