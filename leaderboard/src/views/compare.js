// Up to four models beside each other.

import { COMPARED_MAX, byId, models, regimePlace } from "../data/board.js";
import { load } from "../data/parts.js";
import { isRanked } from "../data/scores.js";
import { matchingTasks } from "../data/tasks.js";
import { profileChart } from "../charts/profile.js";
import { stripChart } from "../charts/strips.js";
import { h, hint, say, scroller } from "../page/dom.js";
import { MARKS, evidenceMark, modelLink, pickOrSay } from "../page/marks.js";
import { csvButton } from "../page/save.js";
import { matchText, memoryText, metricName, regimeWords, sizeText } from "../pure/words.js";
import { compareNote, compareSentences, compareTable } from "./compare-table.js";
import { taskRows } from "./rows-saved.js";

/** Draw the comparison. */
export function compareView(state) {
  const indexes = state.models.map((id) => byId.get(id));
  const ranked = indexes.filter((index) => isRanked(index, state.regime));
  const parts = [
    h("h2", {}, "Comparison"),
    addForm(indexes.length),
    indexes.length
      ? h("ul", { class: "compared" }, ...indexes.map(comparedItem))
      : hint(`Add up to ${COMPARED_MAX} models here, or tick them in the table.`),
  ];
  if (ranked.length < indexes.length) {
    parts.push(hint("A model with missing cells in this regime is left out."));
  }
  if (!ranked.length) return parts;
  return [
    ...parts,
    profileChart(state, ranked),
    h("h3", {}, `${metricName(state.metric)}, ${regimeWords(state.regime)}`),
    compareSentences(state, ranked),
    compareNote(state),
    scroller("Comparison", compareTable(state, ranked)),
    strips(state, ranked),
    h(
      "p",
      { class: "actions" },
      csvButton("Download every task as CSV", `compare-${state.regime}-${state.metric}`, async () => {
        await load(`tasks-${regimePlace(state.regime)}`);
        return taskRows(state, ranked);
      }),
    ),
  ];
}

/** Draw the matching tasks of two models or more; null where there is nothing to compare. */
function strips(state, indexes) {
  const tasks = matchingTasks(state);
  if (indexes.length < 2) return null;
  if (!tasks.length) return hint(`No task is of ${matchText(state)}.`);
  return stripChart(state, indexes, tasks);
}

function addForm(count) {
  const isFull = count >= COMPARED_MAX;
  const input = h("input", {
    id: "add",
    list: "names",
    autocomplete: "off",
    "data-focus": "add",
    disabled: isFull,
  });
  const names = models.map(({ id, name }) => h("option", { value: id }, name));
  const add = (event) => {
    event.preventDefault();
    const name = input.value.trim();
    const position = byId.get(name) ?? models.findIndex((model) => model.name === name);
    if (position >= 0) pickOrSay(models[position].id, true);
    else say("No model has this name: choose one from the list.");
  };
  return h(
    "form",
    { class: "add", onsubmit: add },
    h("label", {}, "Model ", input),
    h("datalist", { id: "names" }, ...names),
    h("button", { type: "submit", disabled: isFull }, "Add"),
    isFull
      ? h("span", { class: "hint" }, `${COMPARED_MAX} are the most: remove one to add another.`)
      : null,
  );
}

function comparedItem(index, order) {
  const { id, name, params } = models[index];
  return h(
    "li",
    {},
    h("span", { class: `swatch s${order}`, "aria-hidden": "true" }, MARKS[order]),
    modelLink(index),
    h(
      "span",
      { class: "figure" },
      sizeText(params),
      h("small", {}, memoryText(params)),
    ),
    evidenceMark(models[index]),
    h(
      "button",
      {
        type: "button",
        "aria-label": `Remove ${name}`,
        "data-focus": `remove ${order}`,
        onclick: () => pickOrSay(id, false),
      },
      "Remove",
    ),
  );
}
