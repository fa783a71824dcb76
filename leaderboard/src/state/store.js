// The one state of the page. It is what the address says; views are told when it changes.

import { COMPARED_MAX } from "../data/board.js";
import { written } from "../pure/address.js";
import { stateIn, usual } from "./choices.js";

// A Space of the Hub shows the board in a frame, and takes its state into the window's address.
const FRAME = "https://huggingface.co";
const isFramed = window.parent !== window;

let state = null;
let shownAddress = null; // the address of it
let wasTyping = false;
let listener = () => {};

/** Return the address of the present state with some changes. */
export function addressOf(changes = {}) {
  return written({ ...state, ...changes }, usual());
}

/** Take the state from the address of the window, and tell the view. */
function follow() {
  shownAddress = location.hash;
  state = stateIn(shownAddress);
  tellFrame();
  listener(state);
}

/** Send the page around the board the address that it needs, so that a reload comes back here.
 * What the Hub itself adds, such as the signature of a private Space, begins with two underscores
 * and stays out of it. */
function tellFrame() {
  if (!isFramed) return;
  const query = new URLSearchParams(location.search);
  for (const key of [...query.keys()]) if (key.startsWith("__")) query.delete(key);
  window.parent.postMessage({ queryString: query.toString(), hash: location.hash }, FRAME);
}

/** Return the address at which a reader finds this view: in a frame that of the page around it. */
export function outerAddress(space) {
  return isFramed && space ? `${space}${location.hash}` : location.href;
}

/** Change the state: a step back in the browser's history undoes it. Typing on is one step. */
export function change(changes, { isTyping = false } = {}) {
  const address = addressOf(changes);
  if (address !== location.hash) {
    history[isTyping && wasTyping ? "replaceState" : "pushState"](null, "", address);
  }
  wasTyping = isTyping;
  follow();
}

/** Load the page again, with the same state: the board that is there now. */
export function reload() {
  location.reload();
}

/** Draw the present state again. */
export function redraw() {
  listener(state);
}

/** Start: `draw` is called with every state from now on. */
export function watch(draw) {
  listener = draw;
  // Going back is told twice, as a new state and as a new address, and drawn once.
  const again = () => {
    if (location.hash === shownAddress) return;
    wasTyping = false;
    follow();
  };
  addEventListener("hashchange", again);
  addEventListener("popstate", again);
  follow();
}

/** Put a model among the compared ones or take it out; false where there is no room. */
export function pick(id, isWanted) {
  const otherModels = state.models.filter((model) => model !== id);
  const isFull = isWanted && otherModels.length === COMPARED_MAX;
  change(isFull ? {} : { models: isWanted ? [...otherModels, id] : otherModels });
  return !isFull;
}
