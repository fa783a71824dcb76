// What follows from lists of scores: ranks, colours, fronts by size. Functions of arguments.

import { compared } from "./decide.js";

export const HEAT_STEPS = 16; // classes h0 to h15 of the stylesheet

/** Return the rank of every model by score alone; equal scores share the better rank. */
export function plainRanks(scores) {
  const order = scores.filter((score) => score !== undefined).sort((a, b) => b - a);
  const first = new Map();
  order.forEach((score, index) => first.has(score) || first.set(score, index + 1));
  return scores.map((score) => first.get(score));
}

/** Return the rank of one model by score alone. */
export function rankOf(scores, index) {
  return 1 + scores.filter((score) => score > scores[index]).length;
}

/** Return the lowest and highest score of each column among the models `indexes`, or one pair for
 * all columns. */
export function rangesOf(columns, indexes, isByColumn) {
  const ranges = columns.map((scores) => {
    const range = [Infinity, -Infinity];
    for (const index of indexes) {
      range[0] = Math.min(range[0], scores[index]);
      range[1] = Math.max(range[1], scores[index]);
    }
    return range;
  });
  if (isByColumn) return ranges;
  const lowest = Math.min(...ranges.map(([low]) => low));
  const whole = [lowest, Math.max(...ranges.map(([, high]) => high))];
  return ranges.map(() => whole);
}

/** Name the class of a score's colour. */
export function heat(score, [low, high]) {
  const share = high > low ? (score - low) / (high - low) : 0.5;
  return `h${Math.max(0, Math.min(HEAT_STEPS - 1, Math.floor(share * HEAT_STEPS)))}`;
}

/** Return the models better than all that are no larger, smallest first; all have parameters. */
export function frontOf(indexes, params, scores) {
  const order = indexes
    .filter((index) => params[index] > 0)
    .sort((a, b) => params[a] - params[b] || scores[b] - scores[a]);
  let best = -Infinity;
  return order.filter((index) => {
    if (scores[index] <= best) return false;
    best = scores[index];
    return true;
  });
}

/** Return the models than which none that is no larger is significantly better, smallest first; all
 * have parameters. `standing` gives that of a model. */
export function unbeatenOf(indexes, params, standing, critical) {
  const sized = indexes
    .filter((index) => params[index] > 0)
    .map((index) => ({ ...standing(index), index, size: params[index] }));
  const byScore = sized.sort((a, b) => b.score - a.score);
  const isBeaten = (model) => {
    for (const rival of byScore) {
      if (rival.score <= model.score) return false;
      if (rival.size <= model.size && compared(rival, model, critical).isSignificant) return true;
    }
    return false;
  };
  const front = byScore.filter((model) => !isBeaten(model));
  return front.sort((a, b) => a.size - b.size).map(({ index }) => index);
}
