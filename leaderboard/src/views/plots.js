// Score against size, rank flow between regimes, category profile.

import { COMPARED_MAX, byId, columnByKey, meanColumns, models } from "../data/board.js";
import { filtered, isRanked, scoresIn } from "../data/scores.js";
import { flowChart } from "../charts/flow.js";
import { profileChart } from "../charts/profile.js";
import { sizeChart } from "../charts/sizes.js";
import { h, options, say } from "../page/dom.js";
import { counted, metricName, regimeWords } from "../pure/words.js";
import { change } from "../state/store.js";
import { compareTable } from "./compare-table.js";

/** Draw the plots of the models that the filters leave. */
export function plotsView(state) {
  const places = filtered(state);
  const of = `${places.length.toLocaleString("en")} of ${counted(models.length, "model")}`;
  say(`${of} in the plots, ${regimeWords(state.regime)}, ${metricName(state.metric)}`);
  const title = h("h2", {}, "Plots");
  if (!places.length) {
    return [title, h("p", { class: "waiting" }, "No model passes these filters.")];
  }
  const column = columnByKey.get(state.y);
  const coloured = profiled(state, places, column);
  return [
    title,
    h("p", { class: "question" }, h("label", {}, "Score ", columnSelect(state))),
    sizeChart(state, places, column),
    flowChart(state, places, column, coloured),
    profileChart(state, coloured.places, {
      shown: ` Shown: ${coloured.text}.`,
      figures: () => compareTable(state, coloured.places),
    }),
  ];
}

function columnSelect({ y }) {
  const select = h("select", { id: "y", onchange: (event) => change({ y: event.target.value }) });
  return options(select, meanColumns.map(({ key, label }) => [key, label]), y);
}

/** The compared models, or the best by the plotted score where none is compared. */
function profiled(state, places, column) {
  const { regime, metric } = state;
  const chosen = state.models
    .map((id) => byId.get(id))
    .filter((index) => isRanked(index, regime));
  if (chosen.length) return { places: chosen, text: "the compared models" };
  const scores = scoresIn(column, regime, metric);
  const best = [...places].sort((a, b) => scores[b] - scores[a]).slice(0, COMPARED_MAX);
  return { places: best, text: `the best ${best.length} of those drawn; compare models to choose others` };
}
