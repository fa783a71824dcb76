// The plots of the models that the filters leave, one at a time.

import { bench, models, taskColumns } from "../data/board.js";
import { filtered } from "../data/scores.js";
import { matchingColumn, matchingTasks } from "../data/tasks.js";
import { curveChart } from "../charts/curves.js";
import { dotChart } from "../charts/dots.js";
import { likenessChart } from "../charts/likeness.js";
import { rangeChart, rangePage } from "../charts/ranges.js";
import { sizeChart } from "../charts/sizes.js";
import { h, say } from "../page/dom.js";
import { taskSelect } from "../page/marks.js";
import { pager } from "../page/pager.js";
import { counted, matchText, metricName, regimeWords } from "../pure/words.js";
import { PLOTS } from "../state/choices.js";
import { addressOf } from "../state/store.js";

const DRAWN = { ranges, sizes, curves, task: oneTask, likeness };

/** Draw the plot that a state names, of the models that the filters leave. */
export function plotsView(state) {
  const indexes = filtered(state);
  const of = `${indexes.length.toLocaleString("en")} of ${counted(models.length, "model")}`;
  say(`${of} pass the filters, ${regimeWords(state.regime)}, ${metricName(state.metric)}`);
  const top = [h("h2", {}, "Plots"), plotLinks(state)];
  if (!matchingTasks(state).length) return [...top, nothing(`No task is of ${matchText(state)}.`)];
  if (!indexes.length) return [...top, nothing("No model passes these filters.")];
  return [...top, ...DRAWN[state.plot](state, indexes)];
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

function ranges(state, indexes) {
  const column = matchingColumn(state);
  const page = rangePage(state, indexes, column);
  return [rangeChart(state, page, column), pager(page, indexes.length, "plot")];
}

function sizes(state, indexes) {
  return [sizeChart(state, indexes, matchingColumn(state))];
}

function curves(state, indexes) {
  return [curveChart(state, indexes, matchingTasks(state))];
}

function oneTask(state, indexes) {
  const tasks = matchingTasks(state);
  const requested = bench.tasks.findIndex(({ id }) => id === state.task);
  const position = tasks.includes(requested) ? requested : tasks[0];
  const { id } = bench.tasks[position];
  const about = h("a", { href: `tasks/${encodeURIComponent(id)}.html` }, "About this task");
  return [
    h("p", { class: "question" }, h("label", {}, "Task ", taskSelect("one-task", tasks, id)), " ", about),
    dotChart(state, indexes, taskColumns[position]),
  ];
}

function likeness(state, indexes) {
  if (indexes.length < 3) return [nothing("Fewer than three models have no correlation.")];
  return [likenessChart(state, indexes)];
}
