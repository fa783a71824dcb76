// The board that `geneb-ci build` wrote into board-data.DIGEST.js: models, categories, tasks, columns.

import { counted } from "../pure/words.js";

/** Limits of size, in parameters; null is none. */
export const SIZES = [null, 1e9, 5e8, 1e8, 2.5e7];
export const COMPARED_MAX = 4;
export const MACRO = "macro";
const MICRO = "micro";

export const base = globalThis.geneb?.base;
export const bench = base?.benchmark;

/** Return a part of the data, once it is loaded. Rows are found by position, so only a part with
 * the digest of this board belongs to it: one of another board has another name. */
export function partOf(name) {
  return globalThis.geneb[keyOf(name)];
}

/** Name what the script of a part leaves. */
export function keyOf(name) {
  return `${name}.${base.digest}`;
}

/** What is said of a model beside its scores, as geneb_ci/board/columns.py defines it. */
export const facts = base?.columns ?? [];
export const tableFacts = facts.filter(({ table }) => table);
/** Facts by whose values models are filtered. */
export const facets = facts.filter((fact) => fact.facet);
// Rows have the keys of leaderboard.json; two of them have plainer names here.
export const models = (base?.models ?? []).map((row) => ({
  ...row,
  id: row.model,
  name: row.disp,
}));
/** MCC of what needs no training, by name, of a regime and a column. */
export function baselinesOf(regime, metric, { key }) {
  const baselines = metric === "MCC" ? Object.entries(base?.baselines?.[regime] ?? {}) : [];
  return baselines
    .filter(([, scores]) => key in scores)
    .map(([name, scores]) => ({ name, score: scores[key] }));
}
export const params = models.map((model) => model.params);
export const byId = new Map(models.map((model, index) => [model.id, index]));

// Scores of a row stand in the order of the means, then the categories.
const means = base?.encoding.means ?? [];
const MEANS = {
  [MACRO]: { label: "Macro", title: "Mean of the category means" },
  [MICRO]: { label: "Micro", title: "Mean over all tasks" },
};
const summaryColumns = means.map((key, position) => ({ key, position, ...MEANS[key] }));
export const categoryColumns = (bench?.categories ?? []).map((name, index) => ({
  key: categoryKey(name),
  label: name,
  position: means.length + index,
  title: `Mean of ${counted(bench.tasks.filter((task) => task.category === index).length, "task")}`,
}));
export const taskColumns = (bench?.tasks ?? []).map((task, index) => ({
  key: `task:${task.id}`,
  label: task.label,
  task: index,
  category: task.category,
  title: `${task.id}, ${bench.categories[task.category]}`,
}));
/** The columns that every model has without the scores of tasks. */
export const meanColumns = [...summaryColumns, ...categoryColumns];
export const columnByKey = new Map(
  [...meanColumns, ...taskColumns].map((column) => [column.key, column]),
);

/** Name the column of a category, or of all where it is null or empty. */
export function categoryKey(name) {
  return name ? `category:${name}` : MACRO;
}

/** Return the position of a regime, by which data are stored. */
export function regimePlace(regime) {
  return bench.regimes.indexOf(regime);
}

/** Return the columns that one choice of `columns` shows: of all tasks, or of those that are `left`
 * by a species and a kind, whose means are then made anew. */
export function columnsOf(choice, left = null) {
  if (left) return columnsLeft(choice, left);
  if (choice === "categories") return meanColumns;
  if (choice === "tasks") return [...summaryColumns, ...taskColumns];
  const category = bench.categories.indexOf(choice.slice("tasks:".length));
  const columns = taskColumns.filter((column) => column.category === category);
  // What was asked for comes first: on a narrow screen the rest is out of sight.
  return [categoryColumns[category], ...columns, ...summaryColumns];
}

function columnsLeft(choice, left) {
  const whole = {
    key: MACRO, // in its place
    label: `Mean of ${counted(left.length, "task")}`,
    title: "Mean of the tasks that match, each counting alike",
    tasks: left,
  };
  const columns = taskColumns.filter(({ task }) => left.includes(task));
  if (choice !== "categories") {
    const category = bench.categories.indexOf(choice.slice("tasks:".length));
    return [whole, ...columns.filter((column) => category < 0 || column.category === category)];
  }
  const categories = categoryColumns.map((column, category) => {
    const tasks = columns.filter((column) => column.category === category).map(({ task }) => task);
    return { ...column, tasks, title: `Mean of ${counted(tasks.length, "task")}` };
  });
  return [whole, ...categories.filter(({ tasks }) => tasks.length)];
}

/** Return how many standard errors of a difference make it significant in a regime. */
export function criticalOf(regime) {
  return base.decisions.critical[regimePlace(regime)];
}

/** Whether intervals are known for a metric. */
export function hasIntervals(metric) {
  return metric === bench.primary && Boolean(base.decisions);
}

/** Whether models can be compared by a metric in a column: tasks, and means of some, have intervals
 * alone. */
export function isDecided(metric, column) {
  return hasIntervals(metric) && column.task === undefined && !column.tasks;
}
