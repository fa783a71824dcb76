// The first page: which models do how well on the tasks that match, and what smaller ones lose.

import { COMPARED_MAX, base, bench, models } from "../data/board.js";
import { chosen } from "../data/choices.js";
import { h, head, hint, number, say, scroller, table } from "../page/dom.js";
import { intervalBar, markLinks, modelLink, pickBox, reason, whoseMark } from "../page/marks.js";
import { csvButton } from "../page/save.js";
import { DRAWS, doubtTexts, gapText, highestText, smallerText } from "../pure/claims.js";
import { boundText, counted, regimeWords, scoreText, shortInterval, sizeText } from "../pure/words.js";
import { matchText, overText, weightText } from "../pure/words.js";
import { addressOf } from "../state/store.js";
import { choiceRows } from "./rows-saved.js";

const READING =
  "A dot is a mean, its line the 95 % interval, the band what is accepted below the highest; a ring is a contributed row.";
const SHOWN = 60; // a longer list helps nobody choose

/** Draw the table of choices. */
export function overview(state) {
  const title = h("h2", {}, "Models for your task");
  if (!base.first) return [title, withoutIntervals()];
  const choices = chosen(state);
  const { tasks, indexes } = choices;
  say(`${counted(indexes.length, "model")} on ${counted(tasks.length, "task")}`);
  if (!tasks.length) {
    return [title, h("p", {}, `No task is of ${matchText(state)}.`)];
  }
  return [
    title,
    taskList(tasks, state),
    ...(indexes.length ? choicesOf(choices, state) : [h("p", {}, "No model meets memory and evidence.")]),
  ];
}

function withoutIntervals() {
  return h(
    "p",
    {},
    "This board was built without intervals, so it cannot say what a smaller model loses. ",
    h("a", { href: addressOf({ view: "table" }) }, "See the scores"),
    ".",
  );
}

/** Name and count the tasks that the mean is over. */
function taskList(tasks, { species, kind }) {
  const matchingTasks = tasks.map((position) => bench.tasks[position]);
  const ids = new Set(matchingTasks.map(({ id }) => id));
  const isTwin = (task) => (task.near_duplicates ?? []).some((id) => ids.has(id));
  const twins = matchingTasks.filter(isTwin).length;
  const items = matchingTasks.map(({ id, label, category }) =>
    h(
      "li",
      {},
      h("a", { href: `tasks/${encodeURIComponent(id)}.html` }, label),
      h("small", {}, ` ${bench.categories[category]}`),
    ),
  );
  return h(
    "details",
    { class: "matching" },
    h(
      "summary",
      {},
      `Mean ${bench.primary} ${overText(tasks.length, { species, kind })}`,
      twins ? `; ${twins} share their data with another of them` : "",
    ),
    h("ul", { class: "columns" }, ...items),
  );
}

function choicesOf(choices, state) {
  const { indexes, orders, regimes } = choices;
  const order = orders[0].slice(0, SHOWN);
  const left = indexes.length - order.length;
  return [
    sentenceList(claimTexts(choices)),
    scroller("Models by their mean", rangeTable(choices, state, order)),
    hint(READING),
    left > 0 ? hint(`And ${counted(left, "model")} more that score lower with ${regimes[0]}.`) : null,
    sentenceList(doubts(choices)),
    links(choices, state),
  ];
}

const sentenceList = (texts) =>
  h("ul", { class: "why" }, ...texts.map((text) => h("li", {}, ...reason(text))));

/** Write what should be known of the models that are named. */
function doubts({ regimes, indexes, claims: { highest, smallest } }) {
  const positions = new Set([...highest, ...(smallest ? [smallest] : [])].map(({ at }) => at));
  const texts = [...positions].flatMap((at) => doubtTexts(models[indexes[at]]));
  return regimes.some((name) => bench.few.includes(name)) ? [...texts, DRAWS] : texts;
}

function claimTexts({ tasks, regimes, indexes, means, bounds, smaller, claims, accepted }) {
  const count = tasks.length;
  const { highest, smallest } = claims;
  const sentences = highest.map((claim, k) => {
    const standing = means[k][claim.at];
    const { id } = models[indexes[claim.at]];
    return highestText({ id, standing, claim, regime: regimes[k], count });
  });
  if (regimes.length > 1) sentences.push(gapText(regimes, means));
  if (indexes.length > 1) {
    const at = smallest?.at;
    const isNamed = at !== undefined;
    sentences.push(
      smallerText({
        id: isNamed ? models[indexes[at]].id : "",
        params: isNamed ? models[indexes[at]].params : 0,
        claim: smallest,
        below: isNamed
          ? means.map(
              (regimeMeans, k) => regimeMeans[highest[k].at].score - regimeMeans[at].score,
            )
          : [],
        bounds: isNamed ? bounds.map((regimeBounds) => regimeBounds[at]) : [],
        smaller: smaller.length,
        regimes,
        count,
        accepted,
      }),
    );
  }
  return sentences;
}

function rangeTable(choices, state, order) {
  const { regimes, indexes, means, bounds, smaller, accepted } = choices;
  const ends = means.flat().flatMap(({ low, high }) => [low, high]);
  const range = [Math.min(...ends), Math.max(...ends)];
  const rows = order.map((at) => {
    const model = models[indexes[at]];
    const isEnough = smaller.includes(at);
    return h(
      "tr",
      { class: isEnough ? "enough" : null },
      h("td", { class: "pick" }, pickBox(state, model)),
      h("th", { scope: "row", class: "name" }, modelLink(indexes[at]), whoseMark(model), markLinks(model)),
      number(sizeText(model.params), h("small", {}, model.params ? weightText(model.params) : "")),
      ...means.flatMap((regimeMeans, k) => {
        const highest = Math.max(...regimeMeans.map(({ score }) => score));
        const mean = regimeMeans[at];
        const isOfficial = model.authorship === "official";
        return [
          h("td", { class: "bars" }, intervalBar(mean.score, mean, range, { isOfficial, band: [highest - accepted, highest] })),
          number(scoreText(mean.score), h("small", {}, shortInterval(mean))),
          number(lossText(bounds[k][at], accepted)),
        ];
      }),
    );
  });
  const heads = [
    h("th", { scope: "col", class: "pick" }, h("span", { class: "unseen" }, "Compare")),
    head("Model"),
    head("Size", h("small", {}, "weights, fp16")),
    ...regimes.flatMap((regime) => [
      h("td", { class: "bars" }, axis(range)),
      head(regime, h("small", {}, "95 %")),
      head("Loses at most", h("small", {}, "95 % confidence")),
    ]),
  ];
  const caption = `Mean of each model, ${regimes.map(regimeWords).join(" and ")}`;
  return table({ class: "ranges" }, caption, heads, rows);
}

// A bound is known of some models beyond the accepted loss alone, so none of these is written.
const lossText = (bound, accepted) =>
  bound <= accepted ? boundText(bound) : h("span", { class: "none" }, `over ${accepted}`);

/** Write the ends of the scale that all rows share, and its middle. */
function axis([low, high]) {
  const scores = [low, (low + high) / 2, high].map((score) => h("span", {}, scoreText(score)));
  return h("span", { class: "axis", "aria-hidden": "true" }, ...scores);
}

function links(choices, state) {
  const { indexes, orders, smaller, regimes } = choices;
  const { kind, species } = state;
  const first = [...orders.map(([highest]) => highest), ...smaller.slice(0, 1), ...orders[0]];
  const ids = [...new Set(first)]
    .slice(0, COMPARED_MAX)
    .map((at) => models[indexes[at]].id);
  const regime = regimes.at(-1);
  const columns = kind ? `tasks:${kind}` : species ? "tasks" : "categories";
  return h(
    "p",
    { class: "actions" },
    ids.length > 1
      ? h("a", { href: addressOf({ view: "compare", models: ids, regime }) }, "Compare the first of these")
      : null,
    h("a", { href: addressOf({ view: "table", columns, regime, page: 1 }) }, "Every score on these tasks"),
    h("a", { href: addressOf({ view: "plots", plot: "ranges", regime, page: 1 }) }, "Ranges of ranks on these tasks"),
    csvButton("Download these models as CSV", "choose", () => choiceRows(state, choices)),
  );
}
