// The figures of the paper, in its own scope, the board's, or without rows of known defects.

import { base } from "../data/board.js";
import { h, hint, number, row, say, scroller, table, head } from "../page/dom.js";
import { counted, scoreText } from "../pure/words.js";
import { addressOf } from "../state/store.js";

const PARTS_MAX = 30; // more lines help nobody; diagnostics.json has all
const COUNTS = ["tasks", "categories", "pairs"];

/** Draw the figures of a scope, or the one that the address names. */
export function findingsView({ scope, figure }) {
  const title = h("h2", {}, "Findings");
  const all = (base.facts?.findings ?? []).filter((one) => one.scope === scope);
  if (!all.length) return [title, h("p", {}, "This board was built without diagnostics.")];
  const shown = figure ? all.filter(({ id }) => id === figure) : all;
  say(`${counted(shown.length, "figure")}, scope ${scope}`);
  return [
    title,
    hint(
      "Each figure with its definition and parameters. `geneb-ci findings` computes them with other ",
      "rows, thresholds and regimes.",
    ),
    figure ? h("p", {}, h("a", { href: addressOf({ figure: "" }) }, "All figures")) : null,
    ...shown.flatMap(section),
  ];
}

function section(one) {
  const title = `${one.id}: ${valueText(one.value, one.unit)}`;
  const used = Object.entries(one.parameters)
    .filter(([, value]) => !Array.isArray(value) || value.length)
    .map(([name, value]) => `${name} ${Array.isArray(value) ? value.join(" ") : value}`);
  return [
    h("h3", {}, h("a", { href: addressOf({ figure: one.id }) }, title)),
    h("p", {}, one.definition),
    hint(`${counted(one.rows, "row")}; ${used.join(", ")}.`),
    one.parts.length ? scroller(title, parts(one)) : null,
  ];
}

function valueText(value, unit) {
  if (value === null) return "not known";
  return COUNTS.includes(unit) ? `${value} ${unit}` : `${scoreText(value)} (${unit})`;
}

function parts({ parts: found, id, unit }) {
  const rows = found
    .slice(0, PARTS_MAX)
    .map(({ name, value }) => row(name, number(value === null ? "" : scoreText(value))));
  const left = found.length - PARTS_MAX;
  if (left > 0) rows.push(row(`and ${left} more`, number("")));
  const heads = [head("Part"), head(COUNTS.includes(unit) ? "MCC" : unit)];
  return table({ class: "findings" }, `Parts of ${id}`, heads, rows);
}
