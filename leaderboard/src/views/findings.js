// The figures of the paper, in its own scope, the board's, or without rows of known defects.

import { MACRO, base, bench, byId, columnByKey, models, taskColumns } from "../data/board.js";
import { isRanked } from "../data/scores.js";
import { sizeChart } from "../charts/sizes.js";
import { h, head, hint, number, row, say, scroller, svg, table } from "../page/dom.js";
import { modelLink } from "../page/marks.js";
import { csvButton } from "../page/save.js";
import { counted, scoreText } from "../pure/words.js";
import { figureRows } from "./rows-saved.js";
import { addressOf } from "../state/store.js";

const PARTS_MAX = 30; // more lines help nobody; diagnostics.json has all
const COUNTS = ["tasks", "categories", "pairs"];
const TITLES = {
  "size-correlation": "Do larger models score higher?",
  "hard-tasks": "Hard tasks",
  "high-variance-tasks": "Tasks on which models differ most",
  "winner-changes": "Categories whose best model changes",
  "small-beats-large": "Small models that beat large ones",
  retention: "What remains with few training examples",
  "controlled-pair": "Two models that differ in little else",
  "mean-macro": "Mean of all models",
  "kmer-baseline": "Frequencies of 4-mers instead of a model",
};

/** Name a figure; those of one kind differ in a parameter. */
function titleOf({ id, parameters }) {
  const { regime, first, second } = parameters;
  const title = Object.hasOwn(TITLES, id) ? TITLES[id] : id;
  const [firstName, secondName] = [first, second].map((id) => models[byId.get(id)]?.name ?? id);
  if (first) return `${title}: ${firstName} and ${secondName}`;
  return ["retention", "mean-macro"].includes(id) ? `${title}: ${regime}` : title;
}

/** Draw the figures of a scope, or the one that the address names. */
export function findingsView(state) {
  const { scope, figure } = state;
  const title = h("h2", {}, "Findings");
  const all = (base.facts?.findings ?? []).filter((finding) => finding.scope === scope);
  if (!all.length) return [title, h("p", {}, "This board was built without diagnostics.")];
  const listed = figure ? all.filter(({ id }) => id === figure) : all;
  say(`${counted(listed.length, "figure")}, scope ${scope}`);
  return [
    title,
    hint(
      "Each figure with its definition and parameters; its heading is its permanent address. ",
      h("code", {}, "geneb-ci figures"),
      " computes them with other rows, thresholds and regimes.",
    ),
    figure ? h("p", {}, h("a", { href: addressOf({ figure: "" }) }, "All figures")) : null,
    h("p", { class: "actions" }, csvButton("Download the figures as CSV", `findings-${scope}`, () => figureRows(scope))),
    ...listed.flatMap((finding) => section(state, finding)),
  ];
}

function section(state, finding) {
  const used = Object.entries(finding.parameters)
    .filter(([, value]) => !Array.isArray(value) || value.length)
    .map(([name, value]) => `${name} ${Array.isArray(value) ? value.join(" ") : value}`);
  const title = titleOf(finding);
  return [
    h("h3", {}, h("a", { href: addressOf({ figure: finding.id }) }, title)),
    h("p", { class: "value" }, valueText(finding.value, finding.unit), h("small", {}, ` ${finding.id}`)),
    h("p", {}, finding.definition),
    hint(`${counted(finding.rows, "row")}; ${used.join(", ")}.`),
    finding.id === "size-correlation" ? sizes(state, finding) : null,
    finding.parts.length || (finding.unit === "MCC" && finding.value !== null)
      ? scroller(`Figures: ${title}`, partTable(finding))
      : null,
  ];
}

function valueText(value, unit) {
  if (value === null) return "not known";
  return COUNTS.includes(unit) ? `${value} ${unit}` : `${scoreText(value)} (${unit})`;
}

/** Draw the rows of a scope by size and score; the dots stand at the board's counts. */
function sizes({ scope, models: compared }, { parameters }) {
  const { regime, exclude } = parameters;
  const isIn = ({ id, official, defects }) =>
    !exclude.includes(id) &&
    (scope === "board" || official) &&
    !(scope === "exclusions" && defects);
  const indexes = models.map((_, k) => k).filter((k) => isRanked(k, regime) && isIn(models[k]));
  const scoreView = { regime, metric: bench.primary, models: compared };
  return sizeChart(scoreView, indexes, columnByKey.get(MACRO));
}

function partTable(finding) {
  const { id, unit, parts, count, value, parameters } = finding;
  const isChange = id === "winner-changes";
  const barParts = parts.length ? parts : [{ name: "value", value }];
  const scale = scaleOf(finding, barParts);
  const rows = barParts.slice(0, PARTS_MAX).map((part) => {
    if (isChange) return changeRow(part.name);
    const text = part.value === null ? "" : scoreText(part.value);
    return row(partLink(part.name), h("td", { class: "bars" }, partBar(part.value, scale)), number(text));
  });
  const left = (count ?? barParts.length) - PARTS_MAX;
  if (left > 0) rows.push(row(`and ${left.toLocaleString("en")} more, in diagnostics.json`));
  const measure = COUNTS.includes(unit) ? "MCC" : unit;
  const heads = isChange
    ? [head("Category"), head(parameters.before), head(parameters.after)]
    : [head("Part"), head(scale.text), h("th", { scope: "col", class: "number" }, measure)];
  return table({ class: "findings" }, `Parts of ${id}`, heads, rows);
}

/** Return the ends of the bars of a figure, its threshold, and what the heading says of both. */
function scaleOf({ unit, parameters }, barParts) {
  const values = barParts.map((part) => part.value ?? 0);
  const mark = parameters.threshold;
  const endsAtOne = ["rho", "ratio", "MCC"].includes(unit); // bars of several figures can be compared
  const high = Math.max(...values, mark ?? 0, endsAtOne ? 1 : 0);
  const low = Math.min(...values, 0);
  const line = mark === undefined ? "" : `; line at ${mark}`;
  return { low, high, mark, text: `${scoreText(low)} to ${scoreText(high)}${line}` };
}

const BAR = { width: 200, height: 14 };

function partBar(value, { low, high, mark }) {
  if (value === null) return "";
  const x = (at) => ((at - low) / (high - low || 1)) * BAR.width;
  const [start, end] = [Math.min(x(0), x(value)), Math.max(x(0), x(value))];
  return svg(
    "svg",
    { class: "part-bar", viewBox: `0 0 ${BAR.width} ${BAR.height}`, "aria-hidden": "true" },
    svg("rect", { x: start, width: Math.max(end - start, 1), y: 2, height: BAR.height - 4 }),
    mark === undefined
      ? null
      : svg("line", { x1: x(mark), x2: x(mark), y1: 0, y2: BAR.height }),
  );
}

function changeRow(text) {
  const [, category, before, after] = /^(.*): (\S+), then (\S+)$/.exec(text) ?? [];
  if (category === undefined) return row(text);
  return row(partLink(category), h("td", {}, partLink(before)), h("td", {}, partLink(after)));
}

/** Name a part: a task, a category or models, each with a link to its page. */
function partLink(text) {
  const task = taskColumns.find(({ key }) => key === `task:${text}`);
  if (task) return h("a", { href: `tasks/${encodeURIComponent(text)}.html` }, task.label);
  const category = bench.categories.indexOf(text);
  if (category >= 0) return h("a", { href: `categories/${bench.pages[category]}.html` }, text);
  const pair = text.split(" over ").map((id) => byId.get(id));
  if (pair.includes(undefined)) return text;
  return h("span", {}, ...pair.flatMap((k, n) => (n ? [" over ", modelLink(k)] : [modelLink(k)])));
}
