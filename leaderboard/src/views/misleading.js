// Why no single ranking fits every use, shown with the board's own figures.

import { base, bench, categoryColumns, columnByKey, MACRO } from "../data/board.js";
import { adviceFor } from "../data/advice.js";
import { standingOf } from "../data/scores.js";
import { h } from "../page/dom.js";
import { modelLink } from "../page/marks.js";
import { rangeText, regimeWords } from "../pure/words.js";

/** Say how little the first overall is first elsewhere. */
export function misleading({ regime }) {
  const overall = adviceFor({ category: null, regime })?.best?.at;
  if (!Number.isInteger(overall)) return [];
  const winners = bench.categories.map((category) => adviceFor({ category, regime })?.best?.at);
  const wins = winners.filter((index) => index === overall).length;
  const standings = categoryColumns
    .map((column) => ({ column, standing: standingOf(column, regime, bench.primary, overall) }))
    .filter(({ standing }) => standing)
    .sort((a, b) => a.standing.rank - b.standing.rank);
  const macro = standingOf(columnByKey.get(MACRO), regime, bench.primary, overall);
  return [
    h("h3", {}, "Why not simply the first overall?"),
    h(
      "p",
      {},
      `First overall, ${regimeWords(regime)}, is `,
      modelLink(overall),
      macro && macro.rankHigh > 1
        ? `, which may be number ${macro.rankHigh} on other test sequences`
        : "",
      `. It is first in ${wins} of ${bench.categories.length} categories; `,
      `${new Set(winners).size} models share the first places. `,
      ...changes(),
    ),
    h("ul", { class: "ranks", "aria-label": "Its rank by category" }, ...standings.map(rankItem)),
  ];
}

function changes() {
  const pair = base.facts?.pairs.find((one) => one.regimes.includes(bench.regimes[0]));
  if (!pair) return [];
  const [one, other] = pair.regimes;
  return [
    `Between “${one}” and “${other}”, ${pair.changed} of ${pair.categories} `,
    `first places change hands, ${pair.significant} of them significantly.`,
  ];
}

function rankItem({ column, standing }) {
  const { rank, rankLow, rankHigh } = standing;
  return h(
    "li",
    { class: rank === 1 ? "first" : rankLow === 1 ? "near" : null },
    h("b", {}, `#${rank}`),
    ` ${column.label}`,
    h("small", {}, `could be ${rangeText(rankLow, rankHigh)}`),
  );
}
