// What happened to a row: when, what, why, who, by which commit.

import { partOf } from "../data/board.js";
import { h } from "../page/dom.js";
import { WORD_BY_LEVEL } from "../pure/evidence.js";

const COMMIT_SHOWN = 10;

export function historySection(id) {
  const events = partOf("history")?.filter((event) => event.model === id);
  if (!events?.length) return [];
  const items = events.map(historyItem);
  return [h("h3", {}, "History"), h("ol", { class: "history" }, ...items)];
}

function historyItem({ when, kind, level, former_level: former, why, who, commit }) {
  const pair = former && former !== level ? [former, level] : [level];
  const levels = pair.map((level) => WORD_BY_LEVEL[level] ?? level).join(" to ");
  return h(
    "li",
    {},
    h("time", { datetime: when }, when.slice(0, "2026-11-21".length)),
    ` ${kind}${level ? `, ${levels}` : ""}: `,
    h("span", { dir: "auto" }, why),
    h("small", {}, `by ${who}, commit ${commit.slice(0, COMMIT_SHOWN)}`),
  );
}
