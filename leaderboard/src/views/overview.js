// What to take for which need: the answer, then every need, then why no single ranking fits all.

import { base } from "../data/board.js";
import { h } from "../page/dom.js";
import { addressOf } from "../state/store.js";
import { answer } from "./answer.js";
import { misleading } from "./misleading.js";
import { needs } from "./needs.js";

/** Draw the overview. */
export function overview(state) {
  const title = h("h2", {}, "Which model to take");
  if (!base.advice) return [title, withoutAdvice()];
  return [title, answer(state), ...needs(state), ...misleading(state)];
}

function withoutAdvice() {
  return h(
    "p",
    {},
    "This board was built without intervals, so it cannot say which differences are significant. ",
    h("a", { href: addressOf({ view: "table" }) }, "See the scores"),
    ".",
  );
}
