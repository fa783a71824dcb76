// Parts of the data, and the library of the charts, are scripts that are loaded when a view needs
// them: a page opened from a disk may load scripts, but fetch nothing.

import { base, bench, keyOf, regimePlace } from "./board.js";
import { asksNothing, regimesOf } from "./choices.js";
import { chosenTasks } from "./tasks.js";

const D3 = "vendor/d3.min.js";
// It has one name on every board, and the digest of the newest: asked for with the time of asking,
// so that no cache answers.
const CURRENT = "board-current.js";
// Only these scripts may ever be added: the policy of trusted types holds it, too.
const SCRIPTS = [
  /^board-(?:(?:scores|tasks)-[0-9]+|matrices|history)\.[0-9a-f]{16}\.js$/,
  /^board-current\.js\?[0-9]+$/,
  /^vendor\/d3\.min\.js$/,
];
const DATA = /^board-data\.([0-9a-f]{16})\.js$/;
const scripts = globalThis.trustedTypes?.createPolicy("geneb", { createScriptURL: ownScript }) ?? {
  createScriptURL: ownScript,
};
// A part that is requested and not answered by then is not waited for; a slow line takes seconds.
const PATIENCE_MS = 20_000;
const loading = new Map();

/** Why a part is not there: the board is another one by now, or nobody answers. */
export const UPDATED = "updated";
export const UNANSWERED = "unanswered";

function ownScript(name) {
  if (!SCRIPTS.some((pattern) => pattern.test(name))) throw new TypeError(`${name} is no part of this page`);
  return name;
}

/** Return the parts that a state shows and that are not there yet. */
export function missingParts(state) {
  return partsOf(state).filter((part) => !isThere(part));
}

function partsOf(state) {
  const { view, columns, regime, examples, plot, models } = state;
  const scores = (name) => `scores-${regimePlace(name)}`;
  const tasks = (name) => `tasks-${regimePlace(name)}`;
  const all = bench.regimes;
  const plotted = ["ranges", "curves"].includes(plot) ? all : [regime];
  const isOfTasks = ["curves", "task"].includes(plot);
  const byTask = isOfTasks || (plot === "likeness" ? chosenTasks(state) : state.species);
  const parts = {
    overview: !base.first || asksNothing(state) ? [] : regimesOf(examples).map(tasks),
    table: [scores(regime), ...(columns === "categories" && !chosenTasks(state) ? [] : [tasks(regime)])],
    plots: [...plotted.map(scores), ...(byTask ? plotted.map(tasks) : []), D3],
    compare: [scores(regime), ...(models.length > 1 ? [tasks(regime)] : []), D3],
    // A chart of the paper's figure, which is of the regime of all data.
    findings: base.facts ? [scores(all[0]), D3] : [],
    model: [...all.map(scores), ...all.map(tasks), "matrices", "history"],
  };
  return parts[view] ?? [];
}

/** Whether a part has left what it brings: a damaged one runs, and leaves nothing. */
function isThere(part) {
  if (part === D3) return Boolean(globalThis.d3);
  return Object.hasOwn(globalThis.geneb ?? {}, keyOf(part));
}

/** Whether a part of another board came, under whatever name. */
function isOfAnother(part) {
  return Object.keys(globalThis.geneb).some((key) => key.startsWith(`${part}.`));
}

/** Load a part of this page once; the promise is rejected, and the next call tries again, when it
 * cannot be had. The error has as its `cause` UPDATED, UNANSWERED or nothing. */
export function load(part) {
  if (!loading.has(part)) {
    loading.set(
      part,
      loadedPart(part).finally(() => loading.delete(part)),
    );
  }
  return loading.get(part);
}

async function loadedPart(part) {
  const name = part === D3 ? D3 : `board-${keyOf(part)}.js`;
  const failure = await failureOf(name);
  if (isThere(part)) return;
  const cause = isOfAnother(part) ? UPDATED : await causeOf(base.digest);
  throw new Error(`${name} ${failure ?? "is damaged: it cannot be read"}`, { cause });
}

/** Return why the data that index.html names are not there, as an error of `load`. */
export function missingData() {
  const sources = [...document.scripts].map((script) => script.getAttribute("src"));
  const name = sources.find((src) => DATA.test(src)) ?? "board-data.js";
  const text = `The data of the board, ${name}, could not be loaded`;
  return causeOf(DATA.exec(name)?.[1]).then((cause) => new Error(text, { cause }));
}

/** Compare the digest of a board with that of the newest. */
async function causeOf(digest) {
  if (await failureOf(`${CURRENT}?${Date.now()}`)) return UNANSWERED;
  const current = globalThis.geneb?.current;
  return current === undefined || current === digest ? undefined : UPDATED;
}

/** Run a script; the promise gives null, or why it did not run. */
function failureOf(name) {
  const element = document.createElement("script");
  return new Promise((resolve) => {
    const end = (failure) => {
      clearTimeout(late);
      if (failure) element.remove();
      resolve(failure);
    };
    const late = setTimeout(() => end("was not answered within 20 seconds"), PATIENCE_MS);
    element.addEventListener("load", () => end(null));
    element.addEventListener("error", () => end("could not be loaded"));
    element.src = scripts.createScriptURL(name);
    document.head.append(element);
  });
}
