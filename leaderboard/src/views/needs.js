// Every need at a glance: the smallest of the best models by category and size.

import { bench, categoryKey, columnByKey, models, sizes } from "../data/board.js";
import { adviceFor } from "../data/advice.js";
import { scoresIn } from "../data/scores.js";
import { h, head, hint, row, scroller, table } from "../page/dom.js";
import { modelLink } from "../page/marks.js";
import { counted, limitText, regimeWords, scoreText, sizeText, weightText } from "../pure/words.js";
import { TRUST } from "../pure/levels.js";

/** Draw the table of needs for the regime and the trust of a state. */
export function needs(state) {
  return [
    h("h3", {}, `For every need, ${regimeWords(state.regime)}`),
    hint(
      "Each cell names the smallest model among the best: the model with the highest MCC and all that do ",
      "not differ significantly from it. Below: its size, the best score, and how many tie.",
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
  const caption = "The smallest of the best models by category and size";
  return table({ class: "needs" }, caption, [head("Need"), ...heads], rows);
}

function cell(state, category, limit) {
  const { regime, trust, need } = state;
  const size = limit === null ? "any" : String(limit);
  const one = adviceFor({ category, regime, size, trust });
  if (!one || one.best === null) return h("td", { class: "none" }, "no model");
  const isAsked = (need || null) === category && state.size === size;
  const column = columnByKey.get(categoryKey(category));
  const best = scoreText(scoresIn(column, regime, bench.primary)[one.best]);
  const { params, level } = models[one.smallest];
  const ties = counted(one.ties.length, "tie");
  const text = one.ties.length ? `best ${best}, ${ties}` : `${best}, alone`;
  const isDoubtful = TRUST.indexOf(level) < TRUST.indexOf("verified");
  return h(
    "td",
    { class: isAsked ? "asked" : null },
    modelLink(one.smallest),
    h("small", {}, `${sizeText(params)} · ${text}`),
    isDoubtful ? h("small", { class: "doubt" }, level) : null,
  );
}
