// Method and data: what is measured, what the numbers mean, what the levels rest on, the files.

import { bench, models } from "../data/board.js";
import { h, hint } from "../page/dom.js";
import { AUTHORSHIP, EVIDENCE } from "../pure/evidence.js";
import { counted } from "../pure/words.js";
import { addressOf } from "../state/store.js";

/** Draw the page about the board. */
export function aboutView() {
  return [
    h("h2", {}, "Method and data"),
    ...section("What is measured", measured()),
    h(
      "p",
      {},
      h("a", { href: addressOf({ view: "findings" }) }, "Findings"),
      ": the figures of the paper, in its scope, over all rows, and without rows of known defects.",
    ),
    ...section(
      "What the numbers mean",
      "MCC, Matthews' correlation coefficient, is 1 for predictions that are all right, 0 for chance or for always saying the same class, and negative where worse than chance. Unlike accuracy it does not rise because one class is common: that is why it ranks here. Macro-F1 is the mean over classes of the harmonic mean of precision and recall.",
    ),
    ...section(
      "Standard errors and ranks",
      `They exist for ${bench.primary}. The printed scores give back the confusion matrices, and these say how far a score would move on other test sequences: standard errors and 95 % intervals. A model is significantly better than another when the difference exceeds its margin, corrected for all pairs of the board at once; all rank ranges of a column then hold jointly. Not significantly different does not mean equal: a smaller model is named only if what it loses against the best is bounded. For few examples per class, significance and rank ranges hold for the benchmark's own training draws, unless the submission gives scores by seed; the intervals of the first page cover other draws, too.`,
    ),
    ...section(
      "Size and memory",
      "Weights take two bytes a parameter in fp16 or bf16, four in fp32. What a run needs on top depends on the length of the sequences and the batch: try it. A submission of format 1.2 records the letters that it embedded in a second and its peak memory; the page of the model shows both, on the hardware that it names.",
    ),
    h("h3", {}, "Evidence"),
    hint("What others did to confirm the scores of a row, whoever its author is; computed from records."),
    h("dl", { class: "facts" }, ...EVIDENCE.map(evidenceItem)),
    h("h3", {}, "Authorship"),
    h("dl", { class: "facts" }, ...AUTHORSHIP.map(([name, text]) => fact(name, text))),
    ...knownDefects(),
    h("h3", {}, "Categories and their tasks"),
    hint("What each task asks, of which species, how long its sequences are, and every score."),
    h("ul", { class: "columns" }, ...bench.categories.map(categoryItem)),
    hint(
      h("a", { href: addressOf({ view: "downloads" }) }, "Downloads"),
      ` has every file. Benchmark ${bench.name}, harness ${bench.harness}, definition sha256 `,
      h("code", {}, bench.sha256),
      ".",
    ),
  ];
}

function section(title, text) {
  return [h("h3", {}, title), h("p", {}, text)];
}

function measured() {
  return `A model turns sequences into embeddings and is not trained further. A logistic-regression probe learns ${bench.tasks.length} classification tasks in ${bench.categories.length} categories from them: with all training data, and with few examples per class, averaged over ${bench.fits} draws. Macro is the mean of the category means, micro the mean of all tasks: categories of many tasks decide it.`;
}

function evidenceItem([name, text]) {
  return fact(h("span", { class: `trust ${name}` }, name), text);
}

function fact(name, text) {
  return h("div", {}, h("dt", {}, name), h("dd", {}, text));
}

/** List the published defects of extractors, each with its rows. */
function knownDefects() {
  const defectsById = new Map();
  for (const { name, defects = [] } of models) {
    for (const { id, what } of defects) {
      defectsById.set(id, { what, names: [...(defectsById.get(id)?.names ?? []), name] });
    }
  }
  if (!defectsById.size) return [];
  const items = [...defectsById.values()].map(({ what, names }) => fact(names.join(", "), what));
  return [
    h("h3", {}, "Known defects of published extractors"),
    hint(
      "Scores of these rows were computed with them; a rerun may differ. ",
      h("a", { href: "marks.html" }, "What each of them means, and the warnings of the checks"),
      ".",
    ),
    h("dl", { class: "facts" }, ...items),
  ];
}

function categoryItem(name, position) {
  const count = bench.tasks.filter((task) => task.category === position).length;
  const link = h("a", { href: `categories/${bench.pages[position]}.html` }, name);
  return h("li", {}, link, `: ${counted(count, "task")}`);
}
