// The form above every view: it shows the state, and changes it.

import { MACRO, SIZES, bench, columnsOf, facets, tableFacts } from "../data/board.js";
import { chosenTasks, kindChoices, speciesChoices } from "../data/tasks.js";
import { HIDE_MARK } from "../pure/address.js";
import { limitText, metricName, regimeExamples, weightText } from "../pure/words.js";
import { ANY, columnChoices, evidenceChoices, facetChoices } from "../state/choices.js";
import { LOSS_STEP, exampleChoices, memoryChoices, scopeChoices } from "../state/choices.js";
import { addressOf, change, outerAddress } from "../state/store.js";
import { byName, h, options, say } from "./dom.js";

const LISTS = [
  ...["species", "kind", "examples", "memory", "size", "evidence", "columns"],
  ...["intervals", "scale", "scope", "density"],
];

/** Fill the form with what this board has, and listen to it. */
export function buildControls() {
  segments("regime", bench.regimes.map((regime) => [regime, regime, regimeExamples(regime)]));
  segments("metric", bench.metrics.map((metric) => [metric, metricName(metric)]));
  options(byName("examples"), exampleChoices());
  options(byName("memory"), memoryChoices());
  options(byName("size"), SIZES.map(sizeChoice));
  byName("loss").step = LOSS_STEP;
  options(byName("evidence"), evidenceChoices());
  options(byName("scope"), scopeChoices());
  options(byName("columns"), columnChoices());
  for (const name of LISTS) {
    byName(name).addEventListener("change", (event) => choose(name, event.target.value));
  }
  byName("loss").addEventListener("input", (event) =>
    change({ loss: String(Number(event.target.value)) }, { isTyping: true }),
  );
  byName("facets").replaceChildren(...facets.map(facetList));
  byName("sort").addEventListener("change", (event) =>
    change({ sort: event.target.value, order: "down", page: 1 }),
  );
  byName("search").addEventListener("input", (event) =>
    change({ q: event.target.value, page: 1 }, { isTyping: true }),
  );
  byName("reset").addEventListener("click", () =>
    change({ size: ANY, evidence: ANY, species: "", kind: "", q: "", page: 1, ...noFacets() }),
  );
  byName("controls").addEventListener("submit", (event) => event.preventDefault());
  byName("link").addEventListener("click", copyLink);
  byName("skip").addEventListener("click", (event) => {
    event.preventDefault(); // the address holds the state, not a place on the page
    byName("main").focus();
  });
}

/** Copy the address of this view; where that is not allowed, show it to be copied by hand. */
async function copyLink() {
  const address = outerAddress(byName("link").dataset.space);
  const field = byName("address");
  try {
    await navigator.clipboard.writeText(address);
    field.hidden = true;
    say("The address of this view is copied.");
  } catch {
    field.value = address;
    field.hidden = false;
    field.select();
    say("Copy the address of this view from the field.");
  }
}

/** Make the list of the values that a fact of the models has. */
function facetList(fact) {
  const { key, label } = fact;
  const select = h("select", {
    id: `facet-${key}`,
    onchange: (event) => change({ [key]: event.target.value, page: 1 }),
  });
  return h("label", {}, `${label} `, options(select, facetChoices(fact)));
}

const noFacets = () => Object.fromEntries(facets.map(({ key }) => [key, ANY]));

/** Show a box for each column of the table but the name and the one that ranks: these stay. */
function syncHidden(state) {
  const stateColumns = columnsOf(state.columns, chosenTasks(state));
  const ranking = stateColumns.some(({ key }) => key === state.sort) ? state.sort : MACRO;
  const name = tableFacts.find(({ kind }) => kind === "name").table.sort;
  const columns = sortChoices(state).filter(([key]) => key !== ranking && key !== name);
  const list = byName("hide");
  const keys = columns.map(([key]) => key).join(HIDE_MARK);
  if (list.dataset.keys !== keys) {
    list.dataset.keys = keys; // boxes that are there stay, and so does the focus
    list.replaceChildren(h("legend", {}, "Columns shown"), ...columns.map(columnBox));
  }
  const hidden = state.hide.split(HIDE_MARK);
  for (const box of list.querySelectorAll("input")) box.checked = !hidden.includes(box.value);
}

function columnBox([value, label]) {
  return h("label", {}, h("input", { type: "checkbox", value, onchange: hideUnchecked }), ` ${label}`);
}

function hideUnchecked() {
  const boxes = [...byName("hide").querySelectorAll("input:not(:checked)")];
  change({ hide: boxes.map(({ value }) => value).join(HIDE_MARK) });
}

/** Return what a table without visible headings may be sorted by. */
function sortChoices(state) {
  const columns = columnsOf(state.columns, chosenTasks(state));
  const choices = columns.map(({ key, label }) => [key, label]);
  return [...choices, ...tableFacts.map(({ table, label }) => [table.sort, label])];
}

function sizeChoice(limit) {
  if (limit === null) return ["any", limitText(limit)];
  return [String(limit), `${limitText(limit)} (${weightText(limit)})`];
}

function segments(name, choices) {
  const make = ([value, text, title = value]) => {
    const input = h("input", {
      type: "radio",
      name,
      value,
      onchange: () => change({ [name]: value, page: 1 }),
    });
    return h("label", { title }, input, h("span", {}, text));
  };
  byName(`${name}s`).replaceChildren(...choices.map(make));
}

function choose(name, value) {
  if (name !== "columns") return change({ [name]: value, page: 1 });
  // Tasks of one category are sorted by that category, not by the mean of all.
  const sort = value.startsWith("tasks:") ? `category:${value.slice("tasks:".length)}` : "macro";
  return change({ columns: value, sort, order: "down", page: 1 });
}

let sortedIn = null; // the choice of columns and tasks whose names the list of sort orders has

/** Fill the list of sort orders where other columns are shown: it may have a hundred entries. */
function syncSort(state) {
  const list = byName("sort");
  const columnsShown = [state.columns, state.species, state.kind].join("\n");
  if (sortedIn !== columnsShown) options(list, sortChoices(state));
  sortedIn = columnsShown;
  list.value = state.sort;
}

/** Show a state: only what its view uses, each control with its value. */
export function syncControls(state) {
  const controls = byName("controls");
  for (const element of controls.querySelectorAll("[data-for]")) {
    element.hidden = !element.dataset.for.split(" ").includes(state.view);
  }
  controls.hidden = ["about", "downloads"].includes(state.view);
  for (const name of ["regime", "metric"]) {
    for (const input of controls.querySelectorAll(`input[name=${name}]`)) {
      input.checked = input.value === state[name];
    }
  }
  options(byName("species"), speciesChoices(state));
  options(byName("kind"), kindChoices(state));
  for (const name of LISTS) byName(name).value = state[name];
  byName("loss").value = state.loss;
  byName("lost").textContent = state.loss;
  for (const { key } of facets) byName(`facet-${key}`).value = state[key];
  // What filters the models is not hidden.
  if (facets.some(({ key }) => state[key] !== ANY)) byName("more").open = true;
  syncSort(state);
  syncHidden(state);
  if (byName("search").value !== state.q) byName("search").value = state.q;
  for (const link of byName("views").children) {
    link.href = addressOf({ view: link.dataset.view, model: "", page: 1 });
    if (link.dataset.view === state.view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  byName("chosen").textContent = state.models.length ? `(${state.models.length})` : "";
}
