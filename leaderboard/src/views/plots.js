// The plots of the models that the filters leave, one at a time.

import { models } from "../data/board.js";
import { filtered } from "../data/scores.js";
import { matchingColumn, matchingTasks } from "../data/tasks.js";
import { rangeChart, rangePage } from "../charts/ranges.js";
import { sizeChart } from "../charts/sizes.js";
import { h, say } from "../page/dom.js";
import { pager } from "../page/pager.js";
import { counted, matchText, metricName, regimeWords } from "../pure/words.js";
import { PLOTS } from "../state/choices.js";
import { addressOf } from "../state/store.js";

const DRAWN = { ranges, sizes };

/** Draw the plot that a state names, of the models that the filters leave. */
export function plotsView(state) {
  const places = filtered(state);
  const of = `${places.length.toLocaleString("en")} of ${counted(models.length, "model")}`;
  say(`${of} in the plot, ${regimeWords(state.regime)}, ${metricName(state.metric)}`);
  const top = [h("h2", {}, "Plots"), plotLinks(state)];
  if (!matchingTasks(state).length) return [...top, nothing(`No task is of ${matchText(state)}.`)];
  if (!places.length) return [...top, nothing("No model passes these filters.")];
  return [...top, ...DRAWN[state.plot](state, places)];
}

const nothing = (text) => h("p", { class: "waiting" }, text);

function plotLinks({ plot }) {
  const links = PLOTS.map(([key, text]) =>
    h(
      "a",
      {
        href: addressOf({ plot: key, page: 1 }),
        "data-focus": `plot ${key}`,
        "aria-current": key === plot ? "true" : null,
      },
      text,
    ),
  );
  return h("nav", { class: "plot-links", "aria-label": "Plots" }, ...links);
}

function ranges(state, places) {
  const column = matchingColumn(state);
  const page = rangePage(state, places, column);
  return [rangeChart(state, page, column), pager(page, places.length, "plot")];
}

function sizes(state, places) {
  return [sizeChart(state, places, matchingColumn(state))];
}
