// The scores of all models as a heat map of categories or tasks.

import { bench, hasIntervals, isDecided, models } from "../data/board.js";
import { rankedCount } from "../data/scores.js";
import { h, hint, say, scroller } from "../page/dom.js";
import { csvButton, saveFile } from "../page/save.js";
import { pager } from "../page/pager.js";
import { HEAT_STEPS } from "../pure/ranks.js";
import { counted, metricName, regimeWords, scoreText } from "../pure/words.js";
import { MANY_COLUMNS, contentOf } from "./table-content.js";
import { scoreTable } from "./table-cells.js";
import { scoreRows } from "./rows-saved.js";

const FILTERED =
  " Filters change neither ranks nor this mark; “Choose” says what could be best of a size or an evidence.";

/** Draw the table. */
export function tableView(state) {
  const content = contentOf(state);
  const { columns, indexes, printed } = content;
  const remainder =
    state.columns === "tasks"
      ? "For the others choose a category under Columns, and print again."
      : "The downloads have all.";
  tell(state, content);
  return [
    // The line above says the same, to people.
    h("h2", { class: "unseen" }, `${metricName(state.metric)}, ${regimeWords(state.regime)}`),
    columns.length > printed
      ? h(
          "p",
          { class: "printed hint", "aria-hidden": "true" },
          `A sheet has room for ${printed} of ${columns.length} columns. ${remainder}`,
        )
      : null,
    indexes.length
      ? scroller("Scores", scoreTable(state, content), { isTall: true })
      : h("p", { class: "waiting" }, "No model passes these filters."),
    pager(content, indexes.length, "table"),
    indexes.length ? legend(state, content) : null,
    indexes.length ? note(state, content) : null,
    h(
      "p",
      { class: "actions" },
      csvButton("Download these rows as CSV", `scores-${state.regime}-${state.metric}`, () => scoreRows(state, content)),
      h("button", { type: "button", id: "json", onclick: () => saveJson(state, scoreRows(state, content)) }, "Download these rows as JSON"),
      columns.length > MANY_COLUMNS
        ? h("span", { class: "hint" }, "All tasks: scroll sideways.")
        : null,
    ),
  ];
}

function saveJson({ regime, metric }, rows) {
  const benchmark = { name: bench.name, sha256: bench.sha256 };
  const text = JSON.stringify({ benchmark, regime, metric, rows }, null, 1);
  saveFile(`scores-${regime}-${metric}.json`, "application/json", text);
}

function tell({ regime, metric, order }, { indexes, ranking, sortedFact }) {
  const of = `${indexes.length.toLocaleString("en")} of ${counted(models.length, "model")}`;
  const by = sortedFact ? sortedFact.table.sort_label : ranking.label;
  const direction = order === "up" ? "lowest first" : "highest first";
  say(`${of}, ${regimeWords(regime)}, ${metricName(metric)}, by ${by}, ${direction}`);
}

function note({ regime, metric }, { ranking, indexes }) {
  if (isDecided(metric, ranking)) {
    return hint(
      `Rank ranges by ${ranking.label} hold jointly with 95 % confidence, among all ranked models of `,
      "the board (test sequences of these tasks). Could be best: none of them scores significantly ",
      "higher.",
      indexes.length < rankedCount(regime) ? FILTERED : null,
    );
  }
  if (metric !== bench.primary) {
    return hint(`Intervals and rank ranges are known for ${metricName(bench.primary)} only.`);
  }
  if (hasIntervals(metric)) return hint("Tasks, and means of some of them, have intervals, but no rank ranges.");
  return hint("This board was built without intervals and rank ranges.");
}

function legend({ scale, metric }, { ranges }) {
  const steps = Array.from({ length: HEAT_STEPS }, (_, step) => h("i", { class: `h${step}` }));
  const [low, high] = ranges[0];
  const ends =
    scale === "column" ? ["lowest of a column", "highest"] : [scoreText(low), scoreText(high)];
  return h(
    "p",
    { class: "legend" },
    h("span", {}, ends[0]),
    h("span", { class: "ramp", "aria-hidden": "true" }, ...steps),
    h("span", {}, ends[1]),
    h("span", {}, metric === "MCC" ? "MCC: 0 is chance, 1 is perfect." : "1 is perfect."),
  );
}
