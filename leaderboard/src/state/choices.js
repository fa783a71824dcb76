// Which values every part of the state may have, and which is usual.

import { COMPARED_MAX, MACRO, base, bench, byId, columnByKey, columnsOf } from "../data/board.js";
import { facets, meanColumns, models, sizes, tableFacts } from "../data/board.js";
import { read } from "../pure/address.js";
import { EVIDENCE, ORDER } from "../pure/evidence.js";
import { factText } from "../pure/facts.js";

const VIEWS = ["overview", "table", "plots", "compare", "findings", "model", "about"];
const SCOPES = ["paper", "board", "exclusions"];
export const ANY = "any";
const FACT_SORTS = tableFacts.map(({ table }) => table.sort);

/** Return the state of a page that is opened without an address. */
export function usual() {
  return {
    view: "overview",
    model: "",
    regime: bench.regimes[0],
    metric: bench.primary,
    size: "any",
    evidence: "any",
    columns: "categories",
    intervals: "sorted",
    scale: "table",
    density: "comfortable",
    q: "",
    sort: MACRO,
    order: "down",
    page: 1,
    need: "",
    y: MACRO,
    task: "",
    scope: SCOPES[0],
    figure: "",
    models: [],
    ...Object.fromEntries(facets.map(({ key }) => [key, ANY])),
  };
}

/** Return the values that models have of a fact, each with how many have it. */
export function facetChoices(fact) {
  const { key } = fact;
  const counts = new Map();
  for (const model of models) {
    if (model[key] !== undefined) counts.set(model[key], (counts.get(model[key]) ?? 0) + 1);
  }
  const found = [...counts].sort(([a, many], [b, few]) => few - many || (a < b ? -1 : 1));
  const text = (value) => factText(fact, { [key]: value });
  return [[ANY, ANY], ...found.map(([value, count]) => [value, `${text(value)}: ${count}`])];
}

/** Return the filters by evidence; those that end in "+" have advice. */
export function evidenceChoices() {
  return [
    ["any", "any evidence"],
    ...ORDER.slice(2).map((one) => [`${one}+`, `${one} or more`]),
    ...EVIDENCE.slice(1).map(([one]) => [one, `${one} only`]),
  ];
}

export function scopeChoices() {
  return [
    ["paper", "the paper's rows and counts"],
    ["board", "all rows, the board's counts"],
    ["exclusions", "the paper's rows without known defects"],
  ];
}

export function columnChoices() {
  return [
    ["categories", `${bench.categories.length} categories`],
    ["tasks", `all ${bench.tasks.length} tasks`],
    ...bench.categories.map((name) => [`tasks:${name}`, `tasks of ${name}`]),
  ];
}

export function needChoices() {
  return [["", "all categories"], ...bench.categories.map((name) => [name, name])];
}

const firsts = (pairs) => pairs.map(([value]) => value);

function choices() {
  return {
    view: VIEWS,
    regime: bench.regimes,
    metric: bench.metrics,
    size: ["any", ...sizes().filter(Boolean).map(String)],
    evidence: firsts(evidenceChoices()),
    scope: SCOPES,
    figure: [...new Set((base.facts?.findings ?? []).map(({ id }) => id))],
    columns: firsts(columnChoices()),
    intervals: ["sorted", "all", "none"],
    scale: ["table", "column"],
    density: ["comfortable", "compact"],
    order: ["down", "up"],
    need: bench.categories,
    task: bench.tasks.map((task) => task.id),
    sort: [...columnByKey.keys(), ...FACT_SORTS],
    y: meanColumns.map((column) => column.key),
    ...Object.fromEntries(facets.map((fact) => [fact.key, firsts(facetChoices(fact))])),
  };
}

let known = null;

/** Read a state from an address; it is always one that can be shown. */
export function stateIn(address) {
  known ??= { choices: choices(), ids: byId, compared: COMPARED_MAX };
  const state = read(address, usual(), known);
  const isShown = columnsOf(state.columns).some((column) => column.key === state.sort);
  if (!isShown && !FACT_SORTS.includes(state.sort)) state.sort = MACRO;
  return state;
}
