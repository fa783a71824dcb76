// Which models the filters leave, and in which order. Functions of their arguments alone.

import { factKey } from "./facts.js";
import { ORDER } from "./evidence.js";

/** Whether evidence is the wanted one, or in its order at least the one before the "+". */
export function hasEvidence(evidence, required) {
  if (required === "any") return true;
  if (!required.endsWith("+")) return evidence === required;
  return ORDER.indexOf(evidence) >= ORDER.indexOf(required.slice(0, -1));
}

/** Whether a model passes the filters for size, evidence and facts. */
export function passes(model, state, facets) {
  const size = model.params_trained ?? model.params; // tables of positions are no trained weights
  if (state.size !== "any" && size > Number(state.size)) return false;
  if (!hasEvidence(model.evidence, state.evidence)) return false;
  return facets.every(({ key }) => state[key] === "any" || model[key] === state[key]);
}

const BYTES_A_GPU = 2 * 2; // two bytes a parameter, and the weights take half of the memory

/** Whether a model fits the memory, and has the evidence: of any, all but a disputed one. */
export function fits({ params, evidence }, state) {
  if (state.memory !== "any" && params * BYTES_A_GPU > Number(state.memory) * 1e9) return false;
  return state.evidence === "any" ? evidence !== "disputed" : hasEvidence(evidence, state.evidence);
}

const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

/** Sort indexes of models by a column, or by score where it is null; equals by score, then by name.
 *
 * What has no value comes last in either order. */
export function sorted(indexes, models, scores, order, column = null) {
  const sign = order === "up" ? 1 : -1;
  const name = (index) => models[index].name.toLowerCase();
  const key = (index) => (column ? factKey(column, models[index]) : scores[index]);
  const isMissing = (index) => key(index) === undefined;
  return [...indexes].sort(
    (a, b) =>
      isMissing(a) - isMissing(b) ||
      sign * compare(key(a), key(b)) ||
      compare(scores[b], scores[a]) ||
      compare(name(a), name(b)),
  );
}

/** Cut rows into pages and give one of them; a page past the end is the last. */
export function paged(indexes, perPage, requestedPage) {
  const pages = Math.max(1, Math.ceil(indexes.length / perPage));
  const page = Math.min(requestedPage, pages);
  const first = (page - 1) * perPage;
  return { pages, page, first, pageItems: indexes.slice(first, first + perPage) };
}
