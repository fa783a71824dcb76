// Draw the view that a state names, once the parts of the data that it shows are there.

import { fitWindow } from "../charts/frame.js";
import { bench, byId, models } from "../data/board.js";
import { UNANSWERED, UPDATED, load, missingParts } from "../data/parts.js";
import { aboutView } from "../views/about.js";
import { compareView } from "../views/compare.js";
import { downloadsView } from "../views/downloads.js";
import { findingsView } from "../views/findings.js";
import { modelView } from "../views/model.js";
import { overview } from "../views/overview.js";
import { plotsView } from "../views/plots.js";
import { tableView } from "../views/table.js";
import { redraw, reload } from "../state/store.js";
import { syncControls } from "./controls.js";
import { byName, h, say } from "./dom.js";

const VIEWS = {
  overview: { title: "Choose", draw: overview },
  table: { title: "Scores", draw: tableView },
  plots: { title: "Plots", draw: plotsView },
  compare: { title: "Compare", draw: compareView },
  findings: { title: "Findings", draw: findingsView },
  model: { draw: modelView },
  downloads: { title: "Downloads", draw: downloadsView },
  about: { title: "Method and data", draw: aboutView },
};

let requests = 0; // so that a part that comes late does not draw over a newer state
let drawn = null;

/** Show a state; where a part of the data cannot be had, say so. */
export function show(state) {
  // Asked before anything changes: afterwards the browser would lay out the whole page to answer.
  const scrolled = byName("main").querySelector(".scroller")?.scrollLeft ?? 0;
  fitWindow();
  syncControls(state);
  requests += 1;
  const request = requests;
  const missing = missingParts(state);
  if (!missing.length) {
    draw(state, scrolled);
    return;
  }
  byName("main").setAttribute("aria-busy", "true");
  Promise.all(missing.map(load)).then(
    () => request === requests && draw(state, scrolled),
    (error) => request === requests && fail(error, () => show(state)),
  );
}

/** Draw the charts of the view again if the window is not as wide as when they were drawn. */
export function refit() {
  if (fitWindow() && byName("main").querySelector(".chart")) redraw();
}

function draw(state, scrolled) {
  const main = byName("main");
  const focused = document.activeElement?.dataset?.focus ?? document.activeElement?.id;
  const address = `${state.view}/${state.model}`;
  const isNew = drawn !== null && drawn !== address;
  drawn = address;
  const { title, draw: view } = VIEWS[state.view];
  const content = document.createDocumentFragment();
  say("");
  try {
    content.append(...view(state).filter(Boolean));
  } catch (error) {
    fail(new Error(`This view could not be drawn (${error.message}): a file is damaged`));
    return;
  }
  main.replaceChildren(content);
  main.removeAttribute("aria-busy");
  const name = title ?? models[byId.get(state.model)]?.name ?? "No such model";
  document.title = `${name} · ${bench.name} leaderboard`;
  if (isNew) {
    scrollTo(0, 0);
    main.focus({ preventScroll: true });
    return;
  }
  if (scrolled) main.querySelector(".scroller")?.scrollTo({ left: scrolled });
  refocus(main, focused);
}

/** Give the focus to the successor of the element that had it and was drawn again. */
function refocus(main, focused) {
  if (!focused || document.activeElement !== document.body) return;
  const successor = [...main.querySelectorAll("[data-focus], [id]")].find(
    (element) => (element.dataset.focus ?? element.id) === focused,
  );
  successor?.focus({ preventScroll: true });
}

const PERSISTENT =
  "If this stays, a maintainer has to publish or build the board again: the page needs all files that geneb-ci build wrote, side by side. ";

/** Show in the place of a view what is missing, by an error of `load`, and offer what helps. */
export function fail({ message, cause }, again = reload) {
  const main = byName("main");
  const [regime, metric] = bench ? [bench.regimes[0], bench.primary] : ["full", "MCC"];
  const plain = h("a", { href: `scores/${regime}-${metric}.html` }, "All scores as plain tables");
  const [text, name, action] = {
    [UPDATED]: [
      "The board was updated since this page was opened, and the rest of its former scores is gone. ",
      "Reload the page",
      reload,
    ],
    [UNANSWERED]: [
      `${message}, nor could board-current.js: the network failed, or files are missing. ${PERSISTENT}`,
      "Try again",
      again,
    ],
  }[cause] ?? [`${message}. Reload the page. ${PERSISTENT}`, "Try again", again];
  const button = h("button", { type: "button", "data-focus": "again", onclick: () => action() }, name);
  main.replaceChildren(
    h("p", { class: "fault", role: "alert" }, text, plain, ". ", button),
  );
  main.removeAttribute("aria-busy");
}
