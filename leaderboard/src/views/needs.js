// Every need at a glance: the recommended model by category and size, with its own score.

import { bench, categoryKey, columnByKey, models, sizes } from "../data/board.js";
import { adviceFor } from "../data/advice.js";
import { scoresIn } from "../data/scores.js";
import { h, head, hint, row, scroller, table } from "../page/dom.js";
import { cautionMark, modelLink } from "../page/marks.js";
import { limitText, regimeWords, scoreText, sizeText, weightText } from "../pure/words.js";

/** Draw the table of needs for the regime and the evidence of a state. */
export function needs(state) {
  return [
    h("h3", {}, `For every need, ${regimeWords(state.regime)}`),
    hint(
      "Each cell names the recommended model: the smallest within the margin of the best with 95 % ",
      "confidence, or else the one with the highest score. Below: its size, its own score and its ",
      "evidence, and how many of the models that meet the need could be best.",
    ),
    scroller("What to take for every category and size", needsTable(state)),
  ];
}

function needsTable(state) {
  const heads = sizes().map((limit) =>
    head(limitText(limit), limit ? h("small", {}, `${weightText(limit)} of weights`) : null),
  );
  const rows = [null, ...bench.categories].map((category) =>
    row(category ?? "All categories (macro)", ...sizes().map((limit) => cell(state, category, limit))),
  );
  const caption = "The recommended model by category and size";
  return table({ class: "needs" }, caption, [head("Need"), ...heads], rows);
}

function cell(state, category, limit) {
  const { regime, evidence, need } = state;
  const size = limit === null ? "any" : String(limit);
  const one = adviceFor({ category, regime, size, evidence });
  if (!one || one.best === null) return h("td", { class: "none" }, "no model");
  const isAsked = (need || null) === category && state.size === size;
  const column = columnByKey.get(categoryKey(category));
  const model = models[one.recommended];
  const score = scoreText(scoresIn(column, regime, bench.primary)[one.recommended]);
  const others = one.could.length > 1 ? `${one.could.length} could be best` : "no other could be best";
  return h(
    "td",
    { class: isAsked ? "asked" : null },
    modelLink(one.recommended),
    h("small", {}, `${sizeText(model.params)} · ${score} · ${model.evidence}`),
    h("small", {}, others),
    cautionMark(model),
  );
}
