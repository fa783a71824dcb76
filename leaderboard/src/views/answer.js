// The answer to one need: the best model, smaller ones of bounded loss, what could be best, why.

import { COMPARED_MAX, base, bench, categoryKey, columnByKey, models } from "../data/board.js";
import { adviceFor } from "../data/advice.js";
import { scoresIn, standingOf } from "../data/scores.js";
import { h, head, hint, number, scroller, table } from "../page/dom.js";
import { evidenceMark, intervalBar, modelLink, reason } from "../page/marks.js";
import { boundText, counted, intervalText, memoryText, parametersText } from "../pure/words.js";
import { regimeWords, scoreText, shortInterval, sizeText, weightText } from "../pure/words.js";
import { ORDER } from "../pure/evidence.js";
import { addressOf, change } from "../state/store.js";

const OPEN = 8; // more rows push the rest of the page out of sight
const SHOWN = 60; // a longer list helps nobody
const AUDITED = "audited";
const NOT_RERUN = {
  checked: "nobody has rerun these scores",
  stale: "its audits are of another version of harness, benchmark or data",
};

/** Answer the need of a state. */
export function answer(state) {
  const { need, size, evidence, regime } = state;
  const one = adviceFor({ category: need || null, regime, size, evidence });
  const found = one && one.best !== null;
  return h(
    "section",
    { id: "answer", class: "answer", "aria-label": "The answer" },
    ...(found ? chosen(state, one) : nothing(one)),
  );
}

function nothing(one) {
  return [
    h("h3", {}, "No model meets this"),
    h("p", {}, one?.why[0] ?? "No advice was built for this need."),
  ];
}

function chosen(state, one) {
  const key = categoryKey(state.need);
  const seen = { column: columnByKey.get(key), regime: state.regime };
  return [
    h("h3", {}, `${state.need || "All categories"}, ${regimeWords(state.regime)}`),
    h("div", { class: "choices" }, ...choices(one).map((part) => choice(part, seen))),
    caution(state, one),
    h(
      "div",
      { class: "reasons" },
      one.could.length > 1 ? contenders(one, seen) : null,
      h(
        "div",
        {},
        h("h4", {}, "Why"),
        h("ul", { class: "why" }, ...one.why.map((text) => h("li", {}, ...reason(text)))),
        actions(one, key),
      ),
    ),
  ];
}

/** Return the models to show with what each is: the best, within the margin, on average. */
function choices({ best, within, average, considered, could }) {
  const margin = `${base.decisions.margin} MCC`;
  const isWithin = within?.at === best.at;
  const only = considered === 1 ? "The only one" : "Highest score";
  const label = could.length === 1 && considered > 1 ? "Significantly the best" : only;
  const parts = [{ label, one: best }];
  if (within && !isWithin) {
    parts.push({ label: `Smallest within ${margin} with 95 % confidence`, one: within });
  }
  if (average && ![best.at, within?.at].includes(average.at)) {
    parts.push({ label: `Smallest within ${margin} on average: no guarantee`, one: average });
  }
  return parts;
}

function choice({ label, one }, { column, regime }) {
  const model = models[one.at];
  const score = scoresIn(column, regime, bench.primary)[one.at];
  const standing = standingOf(column, regime, bench.primary, one.at);
  const figure = (text, small) => h("span", { class: "figure" }, text, h("small", {}, small));
  return h(
    "div",
    { class: "choice" },
    h("p", { class: "label" }, label),
    h("p", { class: "name" }, modelLink(one.at)),
    h(
      "p",
      { class: "figures" },
      figure(`${bench.primary} ${scoreText(score)}`, `95 % ${intervalText(standing)}`),
      figure(
        `loses at most ${boundText(one.loss_bound)}`,
        `${scoreText(one.expected_loss)} expected, against the best model`,
      ),
      figure(parametersText(model.params), memoryText(model.params)),
      evidenceMark(model),
    ),
  );
}

/** Warn of scores that were not rerun independently, and offer the answer without them. */
function caution({ evidence }, one) {
  const named = [one.best, one.within, one.average].filter(Boolean).map(({ at }) => at);
  const doubtful = [...new Set(named)]
    .map((index) => models[index])
    .filter((model) => ORDER.indexOf(model.evidence) < ORDER.indexOf(AUDITED));
  if (evidence !== "any" || !doubtful.length) return null;
  const warnings = doubtful.flatMap((model) => [
    h("b", { dir: "auto" }, model.name),
    ` is ${model.evidence}: ${NOT_RERUN[model.evidence]}. `,
  ]);
  return h(
    "p",
    { class: "caution" },
    ...warnings,
    h(
      "button",
      { type: "button", id: AUDITED, onclick: () => change({ evidence: `${AUDITED}+` }) },
      "Show audited models only",
    ),
  );
}

function contenders({ could, considered }, seen) {
  const title = `All ${could.length} that could be best`;
  return h(
    "details",
    { class: "ties", open: could.length <= OPEN },
    h("summary", {}, title),
    hint(`Could be best: none of the ${counted(considered, "model")} that meet this scores significantly higher.`),
    scroller(title, contenderTable(could.slice(0, SHOWN), seen, title)),
    could.length > SHOWN ? hint(`And ${could.length - SHOWN} more.`) : null,
  );
}

function contenderTable(could, { column, regime }, title) {
  const scores = scoresIn(column, regime, bench.primary);
  const standings = could.map((index) => standingOf(column, regime, bench.primary, index));
  const range = [
    Math.min(...standings.map(({ low }) => low)),
    Math.max(...standings.map(({ high }) => high)),
  ];
  const rows = could.map((index, order) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, modelLink(index)),
      number(scoreText(scores[index])),
      h("td", { class: "bars" }, intervalBar(scores[index], standings[order], range)),
      number(shortInterval(standings[order])),
      number(sizeText(models[index].params)),
      number(models[index].params ? weightText(models[index].params) : "none"),
      h("td", {}, evidenceMark(models[index])),
    ),
  );
  const heads = [
    ...[head("Model"), head(bench.primary), h("td", {}), head("95 % interval"), head("Size")],
    ...[head("Weights (fp16)"), head("Evidence")],
  ];
  return table({}, title, heads, rows);
}

function actions(one, key) {
  const named = [one.recommended, one.best.at, ...one.could];
  const ids = [...new Set(named)].slice(0, COMPARED_MAX).map((index) => models[index].id);
  return h(
    "p",
    { class: "actions" },
    ids.length > 1
      ? h("a", { href: addressOf({ view: "compare", models: ids }) }, "Compare them")
      : null,
    h("a", { href: addressOf({ view: "table", sort: key, page: 1 }) }, "See all scores"),
  );
}
