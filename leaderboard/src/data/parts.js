// Parts of the data, and the library of the charts, are scripts that are loaded when a view needs
// them: a page opened from a disk may load scripts, but fetch nothing.

import { bench, regimePlace } from "./board.js";

// Only these scripts may ever be added: the policy of trusted types holds it, too.
const PART = /^(?:board-(?:tasks-[0-9]+|matrices|history)\.js|vendor\/d3\.min\.js)$/;
const scripts = globalThis.trustedTypes?.createPolicy("geneb", { createScriptURL: ownScript }) ?? {
  createScriptURL: ownScript,
};
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

function partsOf({ view, columns, regime }) {
  const tasks = (name) => `board-tasks-${regimePlace(name)}.js`;
  if (view === "table" && columns !== "categories") return [tasks(regime)];
  if (view === "model") {
    return [...bench.regimes.map(tasks), "board-matrices.js", "board-history.js"];
  }
  if (["plots", "compare"].includes(view)) return ["vendor/d3.min.js"];
  return [];
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
    element.addEventListener("load", () => {
      loaded.add(name);
      resolve();
    });
    element.addEventListener("error", () => {
      loading.delete(name);
      element.remove();
      reject(new Error(`${name} could not be loaded`));
    });
  });
  element.src = scripts.createScriptURL(name);
  document.head.append(element);
  return done;
}
