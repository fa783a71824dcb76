// Which values every part of the state may have, and which is usual.

import { COMPARED_MAX, MACRO, bench, byId, columnByKey, columnsOf } from "../data/board.js";
import { meanColumns, sizes, tableFacts } from "../data/board.js";
import { read } from "../pure/address.js";
import { LEVELS } from "../pure/levels.js";

const VIEWS = ["overview", "table", "plots", "compare", "model", "about"];
const FACT_SORTS = tableFacts.map(({ table }) => table.sort);

/** Return the state of a page that is opened without an address. */
export function usual() {
  return {
    view: "overview",
    model: "",
    regime: bench.regimes[0],
    metric: bench.primary,
    size: "any",
    trust: "any",
    level: "any",
    columns: "categories",
    intervals: "sorted",
    scale: "table",
    q: "",
    sort: MACRO,
    order: "down",
    page: 1,
    need: "",
    y: MACRO,
    task: "",
    models: [],
  };
}

export function levelChoices() {
  return [
    ["any", "any level"],
    ["verified+", "verified or more"],
    ["reproduced+", "reproduced or more"],
    ...LEVELS.map(([level]) => [level, `${level} only`]),
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
    trust: ["any", "verified"],
    level: firsts(levelChoices()),
    columns: firsts(columnChoices()),
    intervals: ["sorted", "all", "none"],
    scale: ["table", "column"],
    order: ["down", "up"],
    need: bench.categories,
    task: bench.tasks.map((task) => task.id),
    sort: [...columnByKey.keys(), ...FACT_SORTS],
    y: meanColumns.map((column) => column.key),
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
