// The tasks by their facts: which match a species or kingdom and a kind.

import { bench, categoryKey, columnByKey, columnsOf } from "./board.js";

const every = (bench?.tasks ?? []).map((_, place) => place);
const isOf = (task, species) => !species || [task.species, task.kingdom].includes(species);

/** Return the places of the tasks that match; of what is not asked all. */
export function matchingTasks({ species, kind }) {
  const category = bench.categories.indexOf(kind);
  return every.filter(
    (place) =>
      isOf(bench.tasks[place], species) && (!kind || bench.tasks[place].category === category),
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
  const found = new Map();
  for (const name of names) if (name) found.set(name, (found.get(name) ?? 0) + 1);
  return found;
};

/** Return the kingdoms, each with its species, both with how many tasks of a kind are of them. */
export function speciesChoices({ kind }) {
  const tasks = matchingTasks({ species: "", kind }).map((place) => bench.tasks[place]);
  const groups = [...counts(tasks.map(({ kingdom }) => kingdom))].map(([kingdom, count]) => {
    const own = counts(tasks.filter((t) => t.kingdom === kingdom).map(({ species }) => species));
    const species = [...own].sort(([, a], [, b]) => b - a);
    const choices = species.map(([name, many]) => [name, `${name} (${many})`]);
    return [kingdom, [[kingdom, `all ${kingdom} (${count})`], ...choices]];
  });
  return [["", `any (${tasks.length})`], ...groups];
}

/** Return the kinds of task, each with how many tasks of a species are of it. */
export function kindChoices({ species }) {
  const tasks = matchingTasks({ species, kind: "" }).map((place) => bench.tasks[place]);
  const own = counts(tasks.map(({ category }) => bench.categories[category]));
  const kinds = bench.categories.filter((name) => own.has(name));
  return [["", `any (${tasks.length})`], ...kinds.map((name) => [name, `${name} (${own.get(name)})`])];
}

/** Return every species and kingdom. */
export function speciesNames() {
  const names = bench.tasks.flatMap(({ kingdom, species }) => [kingdom, species]);
  return [...new Set(names)].filter(Boolean);
}
