// One relation between models, as geneb_ci/board/decisions.py has it: the same formulas on the same
// doubles, so no two views can disagree. Functions of their arguments alone.

const DIGITS = 1e9; // nine decimals, as published
const FREEDOM_MAX = 1e5; // degrees of freedom from which a t distribution is the normal one

/** Return the quantile of Student's t at the probability at which the normal has `constant`. */
export function stretched(constant, freedom) {
  if (freedom >= FREEDOM_MAX) return constant;
  return Math.sqrt(freedom * Math.expm1(constant * constant * growth(freedom)));
}

const growth = (freedom) => (freedom - 1.5) / ((freedom - 1) * (freedom - 1));

function asNormal(statistic, freedom) {
  if (freedom >= FREEDOM_MAX) return statistic;
  const size = Math.sqrt(Math.log1p((statistic * statistic) / freedom) / growth(freedom));
  return statistic < 0 ? -size : size;
}

/** Return standard error and degrees of freedom of the difference of two standings. Errors count
 * as independent unless `shared` of the first has the covariance with the second, by its model. */
export function pairError(first, second) {
  const [a, b] = [first.error * first.error, second.error * second.error];
  const total = Math.max(a + b - 2 * (first.shared?.(second.model) ?? 0), 0);
  const uncertain = (a * a) / first.freedom + (b * b) / second.freedom;
  const freedom = uncertain > 0 ? (total * total) / uncertain : Infinity;
  return { error: Math.sqrt(total), freedom };
}

/** Compare two standings: difference, simultaneous interval, chance that the first is better. */
export function compared(first, second, critical) {
  const { error, freedom } = pairError(first, second);
  const reach = stretched(critical, freedom) * error;
  const difference = first.score - second.score;
  const probability = error === 0 ? 0.5 : normalBelow(asNormal(difference / error, freedom));
  return {
    difference,
    low: difference - reach,
    high: difference + reach,
    probability: Math.round(probability * DIGITS) / DIGITS,
    isSignificant: Math.abs(difference) > reach,
  };
}

/** Return the rank of one of all ranked standings with its range, as `ranks` of decisions.py. */
export function rankRange(standings, standing, critical) {
  let [higher, above, below] = [0, 0, 0];
  for (const rival of standings) {
    const apart = rival.score - standing.score;
    if (apart === 0) continue;
    if (apart > 0) higher += 1;
    const { error, freedom } = pairError(standing, rival);
    if (Math.abs(apart) <= stretched(critical, freedom) * error) continue;
    if (apart > 0) above += 1;
    else below += 1;
  }
  return { rank: 1 + higher, rankLow: 1 + above, rankHigh: standings.length - below };
}

/** Whether no model of the board scores significantly higher: its rank range begins at 1. */
export function couldBeBest(standing) {
  return standing?.rankLow === 1;
}

/** Return the ends of the 95 % interval of a score, cut at -1 and 1. */
export function intervalOf({ score, error, freedom }, normal) {
  const reach = stretched(normal, freedom) * error;
  return { low: Math.max(score - reach, -1), high: Math.min(score + reach, 1) };
}

/** Return the probability that a standard normal is below a value, to some 1e-15. */
export function normalBelow(value) {
  const x = Math.abs(value) / Math.SQRT2;
  const above = (x < 2 ? 1 - erfNear(x) : erfcFar(x)) / 2;
  return value < 0 ? above : 1 - above;
}

function erfNear(x) {
  // exp(-x^2) times a series of positive terms: nothing cancels.
  let term = x;
  let sum = x;
  for (let n = 1; term > sum * 1e-17; n += 1) {
    term *= (2 * x * x) / (2 * n + 1);
    sum += term;
  }
  return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * sum;
}

function erfcFar(x) {
  let fraction = x;
  for (let n = 120; n > 0; n -= 1) fraction = x + n / 2 / fraction;
  return Math.exp(-x * x) / Math.sqrt(Math.PI) / fraction;
}
