// Which values every part of the state may have, and which is usual.

import { COMPARED_MAX, MACRO, base, bench, byId, columnByKey, columnsOf } from "../data/board.js";
import { SIZES, facets, models, tableFacts } from "../data/board.js";
import { HUNDREDS } from "../data/choices.js";
import { chosenTasks, speciesNames } from "../data/tasks.js";
import { read } from "../pure/address.js";
import { EVIDENCE, ORDER } from "../pure/evidence.js";
import { factText } from "../pure/facts.js";
import { shotsOf } from "../pure/words.js";

const VIEWS = ["overview", "table", "plots", "compare", "findings", "model", "downloads", "about"];
/** The plots, each with its name. */
export const PLOTS = [
  ["ranges", "Ranges of ranks"],
  ["sizes", "Score against size"],
  ["curves", "Few-shot curves"],
  ["task", "One task"],
  ["likeness", "Correlation of tasks"],
];
const SCOPES = ["paper", "board", "exclusions"];
export const ANY = "any";
const FACT_SORTS = tableFacts.map(({ table }) => table.sort);
const SORTS = [...columnByKey.keys(), ...FACT_SORTS];

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
    intervals: "none",
    scale: "column",
    density: "compact",
    hide: "",
    q: "",
    sort: MACRO,
    order: "down",
    page: 1,
    species: "",
    kind: "",
    examples: bench.regimes[0],
    memory: "any",
    loss: String(base.decisions?.margin ?? 0),
    plot: PLOTS[0][0],
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
  const ordered = [...counts].sort(([a, many], [b, few]) => few - many || (a < b ? -1 : 1));
  const text = (value) => factText(fact, { [key]: value });
  return [[ANY, ANY], ...ordered.map(([value, count]) => [value, `${text(value)}: ${count}`])];
}

/** Return the filters by evidence; those that end in "+" have advice. */
export function evidenceChoices() {
  return [
    ["any", "any evidence"],
    ...ORDER.slice(2).map((least) => [`${least}+`, `${least} or more`]),
    ...EVIDENCE.slice(1).map(([level]) => [level, `${level} only`]),
  ];
}

export function scopeChoices() {
  return [
    ["paper", "rows of the paper"],
    ["board", "all rows of the board"],
    ["exclusions", "paper, no known defects"],
  ];
}

export function columnChoices() {
  return [
    ["categories", `${bench.categories.length} categories`],
    ["tasks", `all ${bench.tasks.length} tasks`],
    ...bench.categories.map((name) => [`tasks:${name}`, `tasks of ${name}`]),
  ];
}

/** Return the numbers of labelled examples, in a visitor's words. */
export function exampleChoices() {
  const isFew = (name) => bench.few.includes(name);
  const many = bench.regimes.filter((name) => !isFew(name));
  const few = bench.regimes.filter(isFew);
  return [
    ...many.map((name) => [name, `thousands (${name})`]),
    ...(many.length && few.length ? [[HUNDREDS, "hundreds, such as 200"]] : []),
    ...few.map((name) => [name, `${shotsOf(name)} per class (${name})`]),
  ];
}

const MEMORIES = [8, 16, 24, 48, 80];

/** Return the sizes of GPUs: a model fits whose weights take at most half of the memory. */
export function memoryChoices() {
  return [[ANY, "any size"], ...MEMORIES.map((size) => [String(size), `${size} GB`])];
}

const LOSS_STEPS = 20;
export const LOSS_STEP = 0.005;

/** Return the losses that may be accepted. */
function losses() {
  const steps = Array.from({ length: LOSS_STEPS + 1 }, (_, step) => step);
  return steps.map((step) => String(Math.round(step * LOSS_STEP * 1000) / 1000));
}

const firsts = (pairs) => pairs.map(([value]) => value);

function choices() {
  return {
    view: VIEWS,
    regime: bench.regimes,
    metric: bench.metrics,
    size: ["any", ...SIZES.filter(Boolean).map(String)],
    evidence: firsts(evidenceChoices()),
    scope: SCOPES,
    figure: [...new Set((base.facts?.findings ?? []).map(({ id }) => id))],
    columns: firsts(columnChoices()),
    intervals: ["sorted", "all", "none"],
    scale: ["table", "column"],
    density: ["comfortable", "compact"],
    order: ["down", "up"],
    species: speciesNames(),
    kind: bench.categories,
    examples: firsts(exampleChoices()),
    memory: firsts(memoryChoices()),
    loss: losses(),
    task: bench.tasks.map((task) => task.id),
    sort: SORTS,
    plot: firsts(PLOTS),
    ...Object.fromEntries(facets.map((fact) => [fact.key, firsts(facetChoices(fact))])),
  };
}

let addressOptions = null;

/** Read a state from an address; it is always one that can be shown. */
export function stateIn(address) {
  addressOptions ??= { choices: choices(), columns: SORTS, ids: byId, compared: COMPARED_MAX };
  const state = read(address, usual(), addressOptions);
  const columns = columnsOf(state.columns, chosenTasks(state));
  const isShown = columns.some((column) => column.key === state.sort);
  if (!isShown && !FACT_SORTS.includes(state.sort)) state.sort = MACRO;
  return state;
}
