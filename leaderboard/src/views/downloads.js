// Every file of the board, and where the rows of a view are saved.

import { base } from "../data/board.js";
import { h, hint } from "../page/dom.js";
import { addressOf } from "../state/store.js";

const WHOLE = [
  ["values.csv", "every score on the board, a line for each: model, task, category, regime, metric, value, standard error, whether it is claimed or was rerun, evidence, trust level"],
  ["values.parquet", "the same table for pandas, DuckDB, R and other programs"],
  ["codebook.json", "what each column is, in these files and in those of the views"],
];
const PUBLISHED = [
  ["leaderboard.json", "scores by category with all digits, one row a model and regime"],
  ["leaderboard_tasks.json", "scores by task with all digits"],
];
const ANALYSED = [["diagnostics.json", "standard errors, ranks, stability, figures of the paper"]];
const VIEWS = [
  ["overview", "Choose", "what you asked, and each model with its mean, interval and what it loses at most"],
  ["table", "Scores", "the rows and columns that are shown, with intervals and rank ranges; also as JSON"],
  ["compare", "Compare", "every task with the scores of the compared models and their standard errors"],
  ["findings", "Findings", "the figures of the paper with their parts"],
];

/** Draw the page of the files. */
export function downloadsView() {
  const files = base.decisions ? [...PUBLISHED, ...ANALYSED] : PUBLISHED;
  return [
    h("h2", {}, "Downloads"),
    h("h3", {}, "Everything"),
    h("ul", { class: "files" }, ...WHOLE.map(fileItem)),
    hint("Numbers are rounded to two digits of their standard error, or to six decimals where none is known."),
    h("h3", {}, "Views"),
    hint("Each has a button that saves what it shows as CSV. The page of a model has one, too."),
    h("ul", { class: "files" }, ...VIEWS.map(viewItem)),
    h("h3", {}, "For programs"),
    h("ul", { class: "files" }, ...files.map(fileItem)),
  ];
}

function fileItem([name, text]) {
  return h("li", {}, h("a", { href: name, download: name }, name), `: ${text}`);
}

function viewItem([view, name, text]) {
  return h("li", {}, h("a", { href: addressOf({ view }) }, name), `: ${text}`);
}
