// The tasks by their facts: which match a species or kingdom and a kind.

import { bench, categoryKey, columnByKey, columnsOf } from "./board.js";

const every = (bench?.tasks ?? []).map((_, position) => position);
const isOf = (task, species) => !species || [task.species, task.kingdom].includes(species);

/** Return the indexes of the tasks that match; a question without an answer leaves all. */
export function matchingTasks({ species, kind }) {
  const category = bench.categories.indexOf(kind);
  return every.filter(
    (position) =>
      isOf(bench.tasks[position], species) &&
      (!kind || bench.tasks[position].category === category),
  );
}

/** Return the matching tasks, or null where the state asks for none in particular. */
export function chosenTasks(state) {
  return state.species || state.kind ? matchingTasks(state) : null;
}

/** Return the column of the matching tasks: of all categories, of one, or of some tasks. */
export function matchingColumn(state) {
  if (!state.species) return columnByKey.get(categoryKey(state.kind));
  return columnsOf("categories", matchingTasks(state))[0];
}

const counts = (names) => {
  const counted = new Map();
  for (const name of names) if (name) counted.set(name, (counted.get(name) ?? 0) + 1);
  return counted;
};

/** Return the kingdoms, each with its species, both with how many tasks of a kind are of them. */
export function speciesChoices({ kind }) {
  const tasks = matchingTasks({ species: "", kind }).map((position) => bench.tasks[position]);
  const groups = [...counts(tasks.map(({ kingdom }) => kingdom))].map(([kingdom, count]) => {
    const ofKingdom = tasks.filter((t) => t.kingdom === kingdom);
    const speciesCounts = counts(ofKingdom.map(({ species }) => species));
    const species = [...speciesCounts].sort(([, a], [, b]) => b - a);
    const choices = species.map(([name, many]) => [name, `${name} (${many})`]);
    return [kingdom, [[kingdom, `all ${kingdom} (${count})`], ...choices]];
  });
  return [["", `any (${tasks.length})`], ...groups];
}

/** Return the kinds of task, each with how many tasks of a species are of it. */
export function kindChoices({ species }) {
  const tasks = matchingTasks({ species, kind: "" }).map((position) => bench.tasks[position]);
  const categoryCounts = counts(tasks.map(({ category }) => bench.categories[category]));
  const kinds = bench.categories.filter((name) => categoryCounts.has(name));
  return [["", `any (${tasks.length})`], ...kinds.map((name) => [name, `${name} (${categoryCounts.get(name)})`])];
}

/** Return every species and kingdom. */
export function speciesNames() {
  const names = bench.tasks.flatMap(({ kingdom, species }) => [kingdom, species]);
  return [...new Set(names)].filter(Boolean);
}
