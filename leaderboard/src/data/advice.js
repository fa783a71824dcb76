// What recommendations.json says: for a category, a regime, a limit of size and the least evidence.

import { base } from "./board.js";

let byNeed = null;

const keyOf = (...need) => JSON.stringify(need);

/** Find the advice for a need; undefined where the board has none. `category` null is all. */
export function adviceFor({ category, regime, size = "any", evidence = "any" }) {
  byNeed ??= new Map(
    base.advice.map((one) => [keyOf(one.category, one.regime, one.max_params, one.evidence), one]),
  );
  const limit = size === "any" ? null : Number(size);
  // Advice knows no "only": evidence is what is asked for, or more.
  if (evidence !== "any" && !evidence.endsWith("+")) return undefined;
  const least = evidence === "any" ? null : evidence.slice(0, -1);
  return byNeed.get(keyOf(category, regime, limit, least));
}
