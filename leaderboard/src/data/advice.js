// What recommendations.json says: for a category, a regime, a limit of size and a level of trust.

import { base } from "./board.js";

let byNeed = null;

const keyOf = (...need) => JSON.stringify(need);

/** Find the advice for a need; undefined where the board has none. `category` null is all. */
export function adviceFor({ category, regime, size = "any", trust = "any" }) {
  byNeed ??= new Map(
    base.advice.map((one) => [keyOf(one.category, one.regime, one.max_params, one.level), one]),
  );
  const limit = size === "any" ? null : Number(size);
  return byNeed.get(keyOf(category, regime, limit, trust === "any" ? null : trust));
}
