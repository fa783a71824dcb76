// Parts of the data, and the library of the charts, are scripts that are loaded when a view needs
// them: a page opened from a disk may load scripts, but fetch nothing.

import { base, bench, regimePlace } from "./board.js";

// Only these scripts may ever be added: the policy of trusted types holds it, too.
const PART = /^(?:board-(?:(?:scores|tasks)-[0-9]+|matrices|history)\.js|vendor\/d3\.min\.js)$/;
const scripts = globalThis.trustedTypes?.createPolicy("geneb", { createScriptURL: ownScript }) ?? {
  createScriptURL: ownScript,
};
// A part that is requested and not answered by then is not waited for; a slow line takes seconds.
const PATIENCE_MS = 20_000;
const loading = new Map();
const loaded = new Set();

function ownScript(name) {
  if (!PART.test(name)) throw new TypeError(`${name} is no part of this page`);
  return name;
}

/** Return the parts that a state shows and that are not there yet. */
export function missingParts(state) {
  return partsOf(state).filter((name) => !loaded.has(name));
}

function partsOf({ view, columns, regime, need }) {
  const scores = (name) => `board-scores-${regimePlace(name)}.js`;
  const tasks = (name) => `board-tasks-${regimePlace(name)}.js`;
  const all = bench.regimes;
  const parts = {
    // What it shows without a need, in the first regime, is in board-data.js.
    overview: need || regime !== all[0] ? [scores(regime)] : [],
    table: [scores(regime), ...(columns === "categories" ? [] : [tasks(regime)])],
    plots: [...all.map(scores), "vendor/d3.min.js"],
    compare: [scores(regime), "vendor/d3.min.js"],
    // A chart of the paper's figure, which is of the regime of all data.
    findings: base.facts ? [scores(all[0]), "vendor/d3.min.js"] : [],
    model: [...all.map(scores), ...all.map(tasks), "board-matrices.js", "board-history.js"],
  };
  return parts[view] ?? [];
}

/** Whether a script, once run, has left what it brings: a damaged one runs, and leaves nothing. */
function isWhole(name) {
  if (name.startsWith("vendor/")) return Boolean(globalThis.d3);
  const [, key, place = ""] = /^board-([a-z]+)(?:-([0-9]+))?\.js$/.exec(name);
  return Object.hasOwn(globalThis.geneb ?? {}, `${key}${place}`);
}

/** Load a script of this page once; the promise is rejected, and the next call tries again,
 * when it cannot be had. */
export function load(name) {
  if (!loading.has(name)) loading.set(name, loadedScript(name));
  return loading.get(name);
}

function loadedScript(name) {
  const element = document.createElement("script");
  const done = new Promise((resolve, reject) => {
    const give = (reason) => {
      if (loaded.has(name)) return;
      loading.delete(name);
      element.remove();
      reject(new Error(`${name} ${reason}`));
    };
    const late = setTimeout(() => give("was not answered within 20 seconds"), PATIENCE_MS);
    element.addEventListener("load", () => {
      clearTimeout(late);
      if (!isWhole(name)) return give("is damaged: it cannot be read");
      loaded.add(name);
      return resolve();
    });
    element.addEventListener("error", () => {
      clearTimeout(late);
      give("could not be loaded");
    });
  });
  element.src = scripts.createScriptURL(name);
  document.head.append(element);
  return done;
}
