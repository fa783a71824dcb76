// One model: what it is, how far it can be trusted, and every score.

import { byId, facts, models } from "../data/board.js";
import { h, scroller } from "../page/dom.js";
import { factList } from "../page/facts.js";
import { pickOrSay } from "../page/marks.js";
import { csvButton } from "../page/save.js";
import { metricName } from "../pure/words.js";
import { addressOf } from "../state/store.js";
import { historySection } from "./history.js";
import { matrixSection } from "./matrices.js";
import { modelCategories, modelTasks } from "./model-scores.js";
import { modelRows } from "./rows-saved.js";

/** Draw the page of the model that a state names. */
export function modelView(state) {
  const index = byId.get(state.model);
  if (index === undefined) return unknown(state.model);
  const model = models[index];
  const metric = metricName(state.metric);
  return [
    h("h2", { dir: "auto" }, model.name),
    factList(facts, model),
    h(
      "p",
      { class: "actions" },
      pickButton(state, model.id),
      h(
        "a",
        { href: `models/${encodeURIComponent(model.id)}.html` },
        "Page to link to: links, citation, badge, code that loads it",
      ),
      csvButton("Download these scores as CSV", `model-${model.id}`, () => modelRows(state, index)),
    ),
    ...historySection(model.id),
    h("h3", {}, `Scores by category, ${metric}`),
    scroller("Scores by category", modelCategories(state, index)),
    ...matrixSection(state, index),
    h("h3", {}, `Scores by task, ${metric}`),
    scroller("Scores by task", modelTasks(state, index), { isTall: true }),
  ];
}

function unknown(id) {
  return [
    h("h2", {}, "No such model"),
    h("p", {}, "The board has no model ", h("q", { dir: "auto" }, id), "."),
    h("p", {}, h("a", { href: addressOf({ view: "table", model: "" }) }, "See all models")),
  ];
}

function pickButton(state, id) {
  const isPicked = state.models.includes(id);
  return h(
    "button",
    {
      type: "button",
      "data-focus": "pick",
      "aria-pressed": String(isPicked),
      onclick: () => pickOrSay(id, !isPicked),
    },
    isPicked ? "Take out of the comparison" : "Add to the comparison",
  );
}
