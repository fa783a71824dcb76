// How alike columns of scores rank models, and in which order alike ones stand together.

/** Return Spearman's correlation of every two columns, each the scores of the same models. */
export function rankCorrelations(columns) {
  const ranks = columns.map(unitRanks);
  const product = (first, second) => {
    let sum = 0;
    for (let k = 0; k < first.length; k += 1) sum += first[k] * second[k];
    return sum;
  };
  return ranks.map((first) => ranks.map((second) => product(first, second)));
}

/** Return ranks moved to a mean of 0 and scaled to a length of 1; equal scores share their mean. */
function unitRanks(scores) {
  const order = scores.map((_, k) => k).sort((a, b) => scores[a] - scores[b]);
  const ranks = scores.map(() => 0);
  for (let first = 0; first < order.length; ) {
    let end = first;
    while (end < order.length && scores[order[end]] === scores[order[first]]) end += 1;
    for (let k = first; k < end; k += 1) ranks[order[k]] = (first + end - 1) / 2;
    first = end;
  }
  const mean = (order.length - 1) / 2;
  const length = Math.sqrt(ranks.reduce((sum, rank) => sum + (rank - mean) ** 2, 0));
  return ranks.map((rank) => (length ? (rank - mean) / length : 0));
}

/** Order columns so that alike ones stand together: the two groups whose members are most alike on
 * average are joined, again and again, each turned so that the ends that meet are most alike. */
export function alikeOrder(likeness) {
  const groups = likeness.map((_, position) => [position]);
  const between = (first, second) => {
    let sum = 0;
    for (const a of first) for (const b of second) sum += likeness[a][b];
    return sum / (first.length * second.length);
  };
  while (groups.length > 1) {
    let best = { mean: -Infinity };
    for (let j = 1; j < groups.length; j += 1) {
      for (let i = 0; i < j; i += 1) {
        const mean = between(groups[i], groups[j]);
        if (mean > best.mean) best = { mean, i, j };
      }
    }
    const [first] = groups.splice(best.i, 1);
    const [second] = groups.splice(best.j - 1, 1);
    groups.splice(best.i, 0, joined(first, second, likeness));
  }
  return groups[0] ?? [];
}

function joined(first, second, likeness) {
  const turned = (group) => [group, [...group].reverse()];
  const ways = turned(first).flatMap((left) => turned(second).map((right) => [left, right]));
  const meeting = ([left, right]) => likeness[left.at(-1)][right[0]];
  return ways.reduce((a, b) => (meeting(b) > meeting(a) ? b : a)).flat();
}
