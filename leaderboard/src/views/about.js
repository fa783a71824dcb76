// Method and data: what is measured, what the numbers mean, what the levels rest on, the files.

import { base, bench } from "../data/board.js";
import { h, hint } from "../page/dom.js";
import { LEVELS } from "../pure/levels.js";

const PUBLISHED = [
  ["leaderboard.json", "scores by category, one row a model and regime"],
  ["leaderboard_tasks.json", "scores by task"],
];
const ANALYSED = [
  ["diagnostics.json", "ranks, intervals, tie groups, stability, size"],
  ["recommendations.json", "which model to take for every need"],
];

/** Draw the page about the board. */
export function aboutView() {
  return [
    h("h2", {}, "Method and data"),
    ...section("What is measured", measured()),
    ...section(
      "What the numbers mean",
      "MCC, Matthews' correlation coefficient, is 1 for predictions that are all right, 0 for chance or for always saying the same class, and negative where worse than chance. Unlike accuracy it does not rise because one class is common: that is why it ranks here. Macro-F1 is the mean over classes of the harmonic mean of precision and recall.",
    ),
    ...section(
      "Intervals, ranks and tie groups",
      `They exist for ${bench.primary}. The printed scores give back the confusion matrices, and these say how far a score would move on other test sequences: 95 % intervals. Two models differ significantly when the difference of their scores exceeds its uncertainty, with all pairs compared at once. A tie group holds its best model and all that do not differ significantly from it. For few examples per class, intervals are for the benchmark's own training draws, unless the submission gives scores by seed.`,
    ),
    ...section(
      "Size and memory",
      "Weights take two bytes a parameter in fp16 or bf16, four in fp32. What a run needs on top depends on the length of the sequences and the batch: try it.",
    ),
    h("h3", {}, "Levels of trust"),
    hint("Each level is computed from published evidence; no submitter can set one."),
    h("dl", { class: "facts" }, ...LEVELS.map(levelItem)),
    h("h3", {}, "Files"),
    h("ul", {}, ...(base.standings ? [...PUBLISHED, ...ANALYSED] : PUBLISHED).map(fileItem)),
    hint(
      `Benchmark ${bench.name}, harness ${bench.harness}, definition sha256 `,
      h("code", {}, bench.sha256),
      ".",
    ),
  ];
}

function section(title, text) {
  return [h("h3", {}, title), h("p", {}, text)];
}

function measured() {
  return `A model turns DNA into embeddings and is not trained further. A logistic-regression probe learns ${bench.tasks.length} classification tasks in ${bench.categories.length} categories from them: with all training data, and with few examples per class, averaged over ${bench.fits} draws. Macro is the mean of the category means, micro the mean of all tasks: categories of many tasks decide it.`;
}

function levelItem([level, text]) {
  return h("div", {}, h("dt", {}, h("span", { class: `trust ${level}` }, level)), h("dd", {}, text));
}

function fileItem([name, text]) {
  return h("li", {}, h("a", { href: name, download: name }, name), `: ${text}`);
}
