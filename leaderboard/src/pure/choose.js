// Which models do how well on some tasks, and what a smaller one loses: the same arithmetic as
// geneb_ci/board/recommend.py. Functions of their arguments alone.
//
// A group is one regime: { critical, models, params, ids, cells }, where `cells` gives of a model
// its tasks, each with score, variance and what is uncertain of the variance.

import { normalBelow, pairError, stretched } from "./decide.js";

const DIGITS = 1e9; // nine decimals, as Python rounds bounds
const CONFIDENCE = 0.95;

/** Return the mean of each model over tasks, one weight for each. */
export function meansOf(cells, count) {
  return cells.map((tasks, model) => {
    const sums = { score: 0, variance: 0, uncertain: 0 };
    for (const task of tasks) {
      sums.score += task.score;
      sums.variance += task.variance;
      sums.uncertain += task.uncertain;
    }
    return { ...standing(sums, count), sums, model };
  });
}

function standing({ score, variance, uncertain }, count) {
  const total = variance / (count * count);
  const freedom = uncertain > 0 ? (total * total) / (uncertain / count ** 4) : Infinity;
  return { score: score / count, error: Math.sqrt(Math.max(total, 0)), freedom };
}

/** Return the same without one of the tasks. */
function meansWithout(means, cells, position, count) {
  return means.map(({ sums, model }) => {
    const task = cells[model][position];
    const left = {
      score: sums.score - task.score,
      variance: sums.variance - task.variance,
      uncertain: Math.max(sums.uncertain - task.uncertain, 0),
    };
    return { ...standing(left, count - 1), model };
  });
}

/** Return the models by their mean, the highest first; of equal ones the smallest, then by id. */
export function orderOf(means, { params, ids }) {
  return means
    .map((_, position) => position)
    .sort(
      (a, b) =>
        means[b].score - means[a].score ||
        params[a] - params[b] ||
        (ids[a] < ids[b] ? -1 : Number(ids[a] > ids[b])),
    );
}

const limit = (first, second, constant) => {
  const { error, freedom } = pairError(first, second);
  return stretched(constant, freedom) * error;
};

/** Return the models than which none scores significantly higher. */
function couldBeBest(means, critical) {
  const order = means
    .map((_, position) => position)
    .sort((a, b) => means[b].score - means[a].score);
  return order.filter((position) => {
    const mean = means[position];
    for (const rival of order) {
      const apart = means[rival].score - mean.score;
      if (apart <= 0) return true;
      if (apart > limit(means[rival], mean, critical)) return false;
    }
    return true;
  });
}

const constants = new Map();

/** Return the normal quantile at which one of `count` comparisons may err, so that all hold. */
function singleConstant(count) {
  if (!constants.has(count)) {
    const target = CONFIDENCE ** (1 / (count - 1));
    let [low, high] = [0, 9];
    for (let step = 0; step < 60; step += 1) {
      const middle = (low + high) / 2;
      if (normalBelow(middle) < target) low = middle;
      else high = middle;
    }
    constants.set(count, (low + high) / 2);
  }
  return constants.get(count);
}

/** Return what each model loses at most with 95 % confidence against the best; Infinity for one
 * that scores further below the highest than is accepted, 0 for the only one that could be best. */
export function boundsOf(means, critical, accepted) {
  const best = couldBeBest(means, critical);
  const highest = Math.max(...means.map(({ score }) => score));
  if (means.length === 1) return [0];
  const single = singleConstant(means.length);
  return means.map((mean, position) => {
    if (best.length === 1 && best[0] === position) return 0;
    if (highest - mean.score > accepted) return Infinity;
    let bound = 0;
    for (const rival of best) {
      if (rival === position) continue;
      bound = Math.max(bound, means[rival].score - mean.score + limit(means[rival], mean, single));
    }
    return Math.max(Math.round(bound * DIGITS) / DIGITS, 1 / DIGITS);
  });
}

/** Return the models smaller than a highest one whose bound is accepted in each group, the smallest
 * first. `means` are those of each group. */
export function smallerOf(groups, means, accepted) {
  const [{ params, ids }] = groups;
  const bounds = groups.map(({ critical }, k) => boundsOf(means[k], critical, accepted));
  const largest = Math.max(...groups.map((group, k) => params[orderOf(means[k], group)[0]]));
  return params
    .map((_, position) => position)
    .filter(
      (position) =>
        params[position] < largest &&
        bounds.every((groupBounds) => groupBounds[position] <= accepted),
    )
    .sort(
      (a, b) =>
        params[a] - params[b] ||
        means[0][b].score - means[0][a].score ||
        (ids[a] < ids[b] ? -1 : 1),
    );
}

/** Return on how many tasks no model scores higher than one. */
function winsOf({ cells }, model) {
  return cells[model].filter((task, position) =>
    cells.every((tasks) => tasks[position].score <= task.score),
  ).length;
}

/** Return the model that comes first in `orderOf`. */
function highestOf(means, { params, ids }) {
  let first = 0;
  for (let position = 1; position < means.length; position += 1) {
    const above = means[position].score - means[first].score;
    if (above < 0) continue;
    const isFirst =
      above > 0 ||
      params[position] < params[first] ||
      (params[position] === params[first] && ids[position] < ids[first]);
    if (isFirst) first = position;
  }
  return first;
}

/** Return the first of `smallerOf`, or undefined: only what may exclude it is computed. */
function smallestOf(groups, means, accepted) {
  if (accepted < 1 / DIGITS || means[0].length === 1) return smallerOf(groups, means, accepted)[0];
  const [{ params, ids }] = groups;
  const tops = groups.map((group, k) => highestOf(means[k], group));
  const largest = Math.max(...tops.map((top) => params[top]));
  const single = singleConstant(params.length);
  const bestByModel = groups.map(() => new Map());
  const exceeds = (groupMeans, position, rival) => {
    const [low, high] = [groupMeans[position], groupMeans[rival]];
    if (high.score - low.score > accepted) return true;
    const bound = high.score - low.score + limit(high, low, single);
    return Math.round(bound * DIGITS) / DIGITS > accepted;
  };
  const isBest = (k, position) => {
    const cache = bestByModel[k];
    if (!cache.has(position)) {
      cache.set(position, isAmongBest(means[k], position, groups[k].critical));
    }
    return cache.get(position);
  };
  const fits = (position) =>
    means.every(
      (groupMeans, k) => tops[k] === position || !exceeds(groupMeans, position, tops[k]),
    ) &&
    means.every((groupMeans, k) =>
      groupMeans.every(
        (_, rival) =>
          rival === position || !exceeds(groupMeans, position, rival) || !isBest(k, rival),
      ),
    );
  return params
    .map((_, position) => position)
    .filter((position) => params[position] < largest)
    .sort(
      (a, b) =>
        params[a] - params[b] ||
        means[0][b].score - means[0][a].score ||
        (ids[a] < ids[b] ? -1 : 1),
    )
    .find(fits);
}

/** Whether no model scores significantly higher than one. */
function isAmongBest(means, position, critical) {
  const mean = means[position];
  return means.every((rival) => {
    const apart = rival.score - mean.score;
    return apart <= 0 || apart <= limit(rival, mean, critical);
  });
}

/** Return what can be said of a highest model and of the smallest that is accepted: on how many
 * tasks it wins, and in how many cases another is named when one task is left out. */
export function claimsOf(groups, means, count, accepted) {
  const choices = [
    ...groups.map((group, k) => (all) => highestOf(all[k], group)),
    (all) => smallestOf(groups, all, accepted),
  ];
  const whole = choices.map((name) => name(means));
  const changed = choices.map(() => 0);
  for (let position = 0; count > 1 && position < count; position += 1) {
    const left = means.map((groupMeans, k) =>
      meansWithout(groupMeans, groups[k].cells, position, count),
    );
    choices.forEach((name, n) => {
      if (name(left) !== whole[n]) changed[n] += 1;
    });
  }
  const claim = (some, n) => ({
    at: whole[n],
    wins: some.map((group) => winsOf(group, whole[n])),
    without: changed[n],
  });
  const last = groups.length;
  return {
    highest: groups.map((group, k) => claim([group], k)),
    smallest: whole[last] === undefined ? null : claim(groups, last),
  };
}
