// Small things that several views show: a link to a model, its evidence, an interval as a bar.

import { COMPARED_MAX, bench, byId, models } from "../data/board.js";
import { auditText, evidenceText, markTexts } from "../pure/words.js";
import { addressOf, change, pick } from "../state/store.js";
import { h, options, say, svg } from "./dom.js";

/** Of the compared models; the charts draw the same. */
export const MARKS = ["●", "■", "▲", "◆"];

export function modelLink(index) {
  const { id, name } = models[index];
  const href = addressOf({ view: "model", model: id, task: "" });
  return h("a", { href, title: id, class: "model", dir: "auto" }, name);
}

/** Write what confirms the scores of a model, and what should be known before relying on them. */
export function evidenceMark(model) {
  return h(
    "span",
    { class: `trust ${model.evidence}`, title: evidenceText(model) },
    model.evidence,
    h("small", {}, auditText(model)),
    cautionMark(model),
  );
}

/** Mark published defects and warnings, each with a link to what it means; null without any. */
export function cautionMark(model) {
  const marks = markTexts(model);
  if (!marks.length) return null;
  const links = marks.map(({ text, kind, ids, title }) =>
    h("a", { href: explained(kind, ids[0]), title }, text),
  );
  return h("small", { class: "doubt" }, ...links.flatMap((link, k) => (k ? [", ", link] : [link])));
}

/** Name each published defect and each rule that warns, as links to what they mean. */
export function markLinks({ defects = [], warnings = {} }) {
  const links = [
    ...defects.map(({ id, what }) => h("a", { href: explained("defect", id), title: what }, id)),
    ...Object.keys(warnings).map((rule) => h("a", { href: explained("rule", rule) }, rule)),
  ];
  if (!links.length) return null;
  const word = defects.length ? "defect: " : "warning: ";
  return h("small", { class: "doubt" }, word, ...links.flatMap((link, k) => (k ? [", ", link] : [link])));
}

/** Make the list that chooses one of some tasks. */
export function taskSelect(id, positions, value) {
  const choices = positions.map((position) => {
    const task = bench.tasks[position];
    return [task.id, `${task.label} (${bench.categories[task.category]})`];
  });
  const select = h("select", { id, onchange: (event) => change({ task: event.target.value }) });
  return options(select, choices, value);
}

/** Write whose file a row is, and what others did to confirm it. */
export function whoseMark(model) {
  const isOfficial = model.authorship === "official";
  const audits = auditText(model);
  const text = [model.authorship, model.evidence, audits].filter(Boolean);
  return h("small", { class: isOfficial ? null : "doubt", title: evidenceText(model) }, text.join(", "));
}

/** Return where a published defect (`defect`) or a rule that warns (`rule`) is explained. */
export function explained(kind, id) {
  return `marks.html#${kind}-${encodeURIComponent(id)}`;
}

// As geneb_ci/board/reasons.py writes them: `id of a model`, [id of a rule or a defect].
const MARKED = /(`[^`]+`|\[[a-z0-9-]+\])/;

/** Write a reason of an advice: models by their names, and rules and defects, all as links. */
export function reason(sentence) {
  return sentence.split(MARKED).map((part) => {
    const id = part.slice(1, -1);
    if (part.startsWith("`") && byId.has(id)) return modelLink(byId.get(id));
    const kind = part.startsWith("[") ? kindOf(id) : null;
    return kind ? h("a", { href: explained(kind, id) }, id) : part;
  });
}

function kindOf(id) {
  const isDefect = ({ defects = [] }) => defects.some((defect) => defect.id === id);
  if (models.some(isDefect)) return "defect";
  const isRule = ({ warnings = {} }) => Object.hasOwn(warnings, id);
  return models.some(isRule) ? "rule" : null;
}

/** Put a model among the compared ones or take it out, and say so where there is no room. */
export function pickOrSay(id, isWanted) {
  if (!pick(id, isWanted)) say(`${COMPARED_MAX} models are compared already: take one out first.`);
}

/** Make the box that puts a model among the compared ones. */
export function pickBox(state, { id, name }) {
  return h("input", {
    type: "checkbox",
    "aria-label": `Compare ${name}`,
    "data-focus": `pick ${id}`,
    checked: state.models.includes(id),
    onchange: (event) => pickOrSay(id, event.target.checked),
  });
}

const BAR = { width: 240, height: 14 };

/** Draw a score with its interval on a scale that the rows of a table share; `band` is what is
 * accepted below the highest. A ring is a row that nobody but its submitter stands for. */
export function intervalBar(score, standing, [least, most], { isOfficial = true, band }) {
  const x = (value) => {
    const at = 4 + ((value - least) / (most - least || 1)) * (BAR.width - 8);
    return Math.min(Math.max(at, 0), BAR.width);
  };
  const middle = BAR.height / 2;
  const [low, high] = [x(standing.low), x(standing.high)];
  const [from, to] = band.map(x);
  return svg(
    "svg",
    { class: "bar-of", viewBox: `0 0 ${BAR.width} ${BAR.height}`, "aria-hidden": "true" },
    svg("rect", { class: "band", x: from, width: to - from, y: 0, height: BAR.height }),
    svg("line", { class: "track", x1: 0, x2: BAR.width, y1: middle, y2: middle }),
    svg("line", { class: "reach", x1: low, x2: high, y1: middle, y2: middle }),
    svg("circle", { class: isOfficial ? null : "ring", cx: x(score), cy: middle, r: 3.5 }),
  );
}
