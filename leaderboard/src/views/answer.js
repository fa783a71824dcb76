// The answer to one need: the best model, the smallest that ties with it, all that tie, and why.

import { COMPARED_MAX, bench, categoryKey, columnByKey, models } from "../data/board.js";
import { adviceFor } from "../data/advice.js";
import { scoresIn, standingOf } from "../data/scores.js";
import { h, head, hint, number, scroller, table } from "../page/dom.js";
import { intervalBar, modelLink, trustMark } from "../page/marks.js";
import { counted, intervalText, memoryText, parametersText } from "../pure/words.js";
import { regimeWords, scoreText, shortInterval, sizeText, weightText } from "../pure/words.js";
import { TRUST } from "../pure/levels.js";
import { addressOf, change } from "../state/store.js";

const TIES_OPEN = 8; // more push the rest of the page out of sight
const TIES_SHOWN = 60; // a longer list helps nobody
const NOT_RERUN = "these scores have not been independently rerun";
const OLD = "its audit is of another version of harness, benchmark or data";

/** Answer the need of a state. */
export function answer(state) {
  const { need, size, trust, regime } = state;
  const one = adviceFor({ category: need || null, regime, size, trust });
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
  const tied = [one.best, ...one.ties];
  return [
    h("h3", {}, heading(state, tied.length)),
    h(
      "div",
      { class: "choices" },
      choice(bestLabel(one, tied.length), one.best, seen),
      one.smallest === one.best ? null : choice("Smallest that ties with it", one.smallest, seen),
    ),
    h("p", {}, tieSentence(one, tied.length)),
    caution(state, one),
    tied.length > 1 ? ties(tied, seen) : null,
    h("h4", {}, "Why"),
    h("ul", { class: "why" }, ...one.why.map((text) => h("li", {}, text))),
    actions(one, key),
  ];
}

function heading({ need, regime }, count) {
  const what = `${need || "All categories"}, ${regimeWords(regime)}`;
  return `${what}: ${count > 1 ? "take one of these" : "take this one"}`;
}

function bestLabel(one, count) {
  if (one.considered === 1) return "The only one";
  if (count === 1) return "Significantly the best";
  return one.smallest === one.best ? "Highest score, and the smallest that ties" : "Highest score";
}

function choice(label, index, { column, regime }) {
  const model = models[index];
  const score = scoresIn(column, regime, bench.primary)[index];
  const standing = standingOf(column, regime, bench.primary, index);
  const figure = (text, small) => h("span", { class: "figure" }, text, h("small", {}, small));
  return h(
    "div",
    { class: "choice" },
    h("p", { class: "label" }, label),
    h("p", { class: "name" }, modelLink(index)),
    h(
      "p",
      { class: "figures" },
      figure(`${bench.primary} ${scoreText(score)}`, `95 % ${intervalText(standing)}`),
      figure(parametersText(model.params), memoryText(model.params)),
      trustMark(model),
    ),
  );
}

function tieSentence(one, count) {
  const of = `of ${counted(one.considered, "model")} that meet size and trust`;
  if (one.considered === 1) return "It is the only model that meets size and trust.";
  if (count === 1) return `It is the only choice ${of}: every other is significantly worse.`;
  return (
    `${count} ${of} tie: the best, and those that do not differ significantly from it. ` +
    "Among them, take one that is small, or audited, or fits your machine."
  );
}

/** Warn of scores that were not rerun independently, and offer the answer without them. */
function caution({ trust }, one) {
  const named = [...new Set([one.best, one.smallest])].map((index) => models[index]);
  const doubtful = named.filter(({ level }) => TRUST.indexOf(level) < TRUST.indexOf("verified"));
  if (trust !== "any" || !doubtful.length) return null;
  const warnings = doubtful.flatMap(({ name, level }) => [
    h("b", { dir: "auto" }, name),
    ` is ${level}: ${level === "stale" ? OLD : NOT_RERUN}. `,
  ]);
  return h(
    "p",
    { class: "caution" },
    ...warnings,
    h(
      "button",
      { type: "button", id: "verified", onclick: () => change({ trust: "verified" }) },
      "Show verified models only",
    ),
  );
}

function ties(tied, seen) {
  const title = `All ${tied.length} that tie`;
  return h(
    "details",
    { class: "ties", open: tied.length <= TIES_OPEN },
    h("summary", {}, title),
    scroller(title, tieTable(tied.slice(0, TIES_SHOWN), seen, title)),
    tied.length > TIES_SHOWN ? hint(`And ${tied.length - TIES_SHOWN} more.`) : null,
  );
}

function tieTable(tied, { column, regime }, title) {
  const scores = scoresIn(column, regime, bench.primary);
  const standings = tied.map((index) => standingOf(column, regime, bench.primary, index));
  const range = [
    Math.min(...standings.map(({ low }) => low)),
    Math.max(...standings.map(({ high }) => high)),
  ];
  const rows = tied.map((index, order) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, modelLink(index)),
      number(scoreText(scores[index])),
      h("td", { class: "bars" }, intervalBar(scores[index], standings[order], range)),
      number(shortInterval(standings[order])),
      number(sizeText(models[index].params)),
      number(models[index].params ? weightText(models[index].params) : "none"),
      h("td", {}, trustMark(models[index])),
    ),
  );
  const heads = [
    ...[head("Model"), head(bench.primary), h("td", {}), head("95 % interval"), head("Size")],
    ...[head("Weights (fp16)"), head("Trust")],
  ];
  return table({}, title, heads, rows);
}

function actions(one, key) {
  const compared = [...new Set([one.smallest, one.best, ...one.ties])].slice(0, COMPARED_MAX);
  const ids = compared.map((index) => models[index].id);
  return h(
    "p",
    { class: "actions" },
    ids.length > 1
      ? h("a", { href: addressOf({ view: "compare", models: ids }) }, "Compare them")
      : null,
    h("a", { href: addressOf({ view: "table", sort: key, page: 1 }) }, "See all scores"),
  );
}
