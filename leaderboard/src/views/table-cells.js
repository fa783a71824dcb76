// The elements of the table of scores.

import { bench, models, tableFacts } from "../data/board.js";
import { standingOf } from "../data/scores.js";
import { h, head } from "../page/dom.js";
import { factCell } from "../page/facts.js";
import { cautionMark, modelLink, pickBox } from "../page/marks.js";
import { couldBeBest } from "../pure/decide.js";
import { factText } from "../pure/facts.js";
import { heat } from "../pure/ranks.js";
import { metricName, rangeText, regimeWords, scoreText } from "../pure/words.js";
import { shortInterval } from "../pure/words.js";
import { change } from "../state/store.js";
import { MANY_COLUMNS } from "./table-content.js";

const BADGE = "Could be best: no model of the board scores significantly higher.";

const isName = ({ kind }) => kind === "name";

/** Make the table of the rows that a page shows. */
export function scoreTable(state, content) {
  const { columns, indexes, first, pageItems } = content;
  const above = state.columns === "tasks" ? [categoryHeads(content)] : [];
  const before = first + 2 + above.length;
  const many = columns.length > MANY_COLUMNS ? "many" : "";
  return h(
    "table",
    { class: `scores ${state.density} ${many}`, "aria-rowcount": indexes.length + 1 + above.length },
    h(
      "caption",
      { class: "unseen" },
      `${metricName(state.metric)} by model, ${regimeWords(state.regime)}`,
    ),
    h("thead", {}, ...above, h("tr", {}, ...heads(state, content))),
    h("tbody", {}, ...pageItems.map((_, order) => scoreRow(state, content, order, before))),
  );
}

const classOf = (fact) => (isName(fact) ? "name" : "fact");

/** Leave what a sheet has no room for out of a print, instead of cutting it. */
function printedIf(isPrinted, cell) {
  if (!isPrinted) cell.classList.add("unprinted");
  return cell;
}

/** Name the category above its tasks.
 *
 * The cells before have the classes of the heads below them, and are hidden together with these. */
function categoryHeads({ columns, facts, hasBadges, printed }) {
  const fixed = ["pick", "rank", ...(hasBadges ? ["badge"] : []), ...facts.map(classOf)];
  const means = columns.filter((column) => column.task === undefined);
  const spans = [...fixed, ...means.map(() => null)].map((name) => h("td", { class: name }));
  bench.categories.forEach((name, index) => {
    const count = columns.filter((column) => column.category === index).length;
    const position = columns.findIndex((column) => column.category === index);
    if (!count) return;
    // A cell spans as many columns on paper as on a screen: what is not printed is one of its own.
    const fits = Math.min(Math.max(printed - position, 0), count);
    if (fits) spans.push(h("th", { scope: "colgroup", colspan: fits }, name));
    if (fits < count) {
      const remainder = fits ? h("span", { class: "unseen" }, name) : name;
      spans.push(printedIf(false, h("th", { scope: "colgroup", colspan: count - fits }, remainder)));
    }
  });
  return h("tr", { class: "above" }, ...spans);
}

function heads(state, { columns, facts, hasBadges, printed, ranking }) {
  const by = h("small", {}, `by ${ranking.label}`);
  return [
    h("th", { scope: "col", class: "pick" }, h("span", { class: "unseen" }, "Compare")),
    h("th", { scope: "col", class: "rank" }, "Rank", by),
    hasBadges ? h("th", { scope: "col", class: "badge", title: BADGE }, "Could be best") : null,
    ...facts.map((fact) => factHead(state, fact)),
    ...columns.map((column, position) => printedIf(position < printed, scoreHead(state, column))),
  ];
}

/** Make the heading of a score: it stands upright, so that all categories fit a screen. */
function scoreHead(state, { key, label, title }) {
  const heading = sortHead(state, key, label, `${label}: ${title}`);
  heading.className = "score";
  return heading;
}

function factHead(state, fact) {
  const { sort, title, first } = fact.table;
  const heading = sortHead(state, sort, fact.label, title, first);
  heading.className = classOf(fact);
  return heading;
}

function sortHead({ sort, order }, key, label, title, usualOrder = "down") {
  const isSorted = sort === key;
  const isUp = order === "up";
  const next = isSorted ? (isUp ? "down" : "up") : usualOrder;
  const arrow = isSorted ? (isUp ? "▲" : "▼") : "";
  const heading = head(
    h(
      "button",
      {
        type: "button",
        title,
        "data-focus": `sort ${key}`,
        onclick: () => change({ sort: key, order: next, page: 1 }),
      },
      label,
      h("span", { class: "arrow", "aria-hidden": "true" }, arrow),
    ),
    // Browsers do not repeat a button on the second sheet of a print.
    h("span", { class: "printed", "aria-hidden": "true" }, label, isSorted ? ` ${arrow}` : ""),
  );
  if (isSorted) heading.setAttribute("aria-sort", isUp ? "ascending" : "descending");
  return heading;
}

function scoreRow(state, content, order, before) {
  const { columns, facts, pageItems, scores, ranges, standings, hasBadges, printed } = content;
  const index = pageItems[order];
  const isBest = couldBeBest(standings[order]);
  const model = models[index];
  return h(
    "tr",
    { "aria-rowindex": before + order },
    h("td", { class: "pick" }, pickBox(state, model)),
    rankCell(standings[order], content.ranks[index]),
    hasBadges ? h("td", { class: "badge", title: BADGE }, isBest ? "yes" : "") : null,
    h(
      "th",
      { scope: "row", class: "name" },
      modelLink(index),
      narrowFacts(model, isBest),
      h("span", { class: "narrow-mark" }, cautionMark(model)),
    ),
    ...facts.filter((fact) => !isName(fact)).map((fact) => factCell(fact, model)),
    ...columns.map((column, position) =>
      printedIf(
        position < printed,
        scoreCell(state, column, index, scores[position][index], ranges[position]),
      ),
    ),
  );
}

/** Show a rank as the range it could be, and its place by score alone below. */
export function rankCell(standing, plain) {
  if (!standing?.rank) return h("td", { class: "rank" }, String(plain));
  return h(
    "td",
    { class: "rank" },
    rangeText(standing.rankLow, standing.rankHigh),
    h("small", {}, h("span", { class: "unseen" }, "by score "), `#${standing.rank}`),
  );
}

/** Write size, trust and so on below the name, where the screen has no room for their columns. */
function narrowFacts(model, isBest) {
  const facts = tableFacts.filter((fact) => !isName(fact)).map((fact) => factText(fact, model));
  const badge = isBest ? "could be best" : "";
  const text = [...facts, badge].filter(Boolean).join(" · ");
  return h("small", { class: "narrow", "aria-hidden": "true" }, text);
}

function scoreCell({ intervals, sort, regime, metric }, column, index, score, range) {
  const isWanted = intervals === "all" || (intervals === "sorted" && column.key === sort);
  const standing = isWanted ? standingOf(column, regime, metric, index) : null;
  const cell = heatCell(score, range, standing);
  cell.dataset.label = column.label; // a card has no headings
  return cell;
}

/** Show a score on its colour, and its interval where there is one. */
export function heatCell(score, range, standing) {
  return h(
    "td",
    { class: `heat ${heat(score, range)}` },
    scoreText(score),
    standing ? h("small", {}, shortInterval(standing)) : null,
  );
}
