// What the first page shows: the models that meet a need, by their mean over the matching tasks.

import { base, bench, models, partOf, regimePlace } from "./board.js";
import { isRanked } from "./scores.js";
import { matchingTasks } from "./tasks.js";
import { boundsOf, claimsOf, meansOf, orderOf, smallerOf } from "../pure/choose.js";
import { intervalOf } from "../pure/decide.js";
import { fits } from "../pure/rows.js";

export const HUNDREDS = "hundreds";

/** Return the regimes that are shown for some number of labelled examples, the fewest first. */
export function regimesOf(examples) {
  if (examples !== HUNDREDS) return [examples];
  const isFew = (name) => bench.few.includes(name);
  return [bench.regimes.find(isFew), bench.regimes.find((name) => !isFew(name))];
}

/** Whether a state asks for nothing: what it shows is in board-data.js. */
export function asksNothing({ species, kind, examples, memory, evidence, loss }) {
  return (
    !species &&
    !kind &&
    memory === "any" &&
    evidence === "any" &&
    examples === bench.regimes[0] &&
    Number(loss) === base.decisions?.margin
  );
}

/** Return the tasks, the models that meet the state's need, and what can be said of them. */
export function chosen(state) {
  const tasks = matchingTasks(state);
  const regimes = regimesOf(state.examples);
  const indexes = models
    .map((_, index) => index)
    .filter((index) => regimes.every((name) => isRanked(index, name)))
    .filter((index) => fits(models[index], state));
  const accepted = Number(state.loss);
  if (!tasks.length || !indexes.length) return { tasks, regimes, indexes, accepted };
  const isFirst = asksNothing(state);
  const groups = regimes.map((regime) => groupOf(regime, indexes, isFirst ? [] : tasks));
  const means = groups.map((group) =>
    isFirst ? indexes.map(overallOf) : meansOf(group.cells, tasks.length),
  );
  const firstClaims = base.first && {
    highest: base.first.highest.map((claim) => local(claim, indexes)),
    smallest: base.first.smallest && local(base.first.smallest, indexes),
  };
  return {
    tasks,
    regimes,
    indexes,
    accepted,
    means: means.map(withIntervals),
    orders: groups.map((group, k) => orderOf(means[k], group)),
    bounds: groups.map(({ critical }, k) => boundsOf(means[k], critical, accepted)),
    smaller: smallerOf(groups, means, accepted),
    claims: isFirst ? firstClaims : claimsOf(groups, means, tasks.length, accepted),
  };
}

const withIntervals = (means) =>
  means.map((mean) => ({ ...mean, ...intervalOf(mean, base.decisions.normal) }));

/** Return the means of some models over tasks, whose intervals cover other training draws. */
export function meansIn(regime, indexes, tasks) {
  return withIntervals(meansOf(groupOf(regime, indexes, tasks).cells, tasks.length));
}

const local = (claim, indexes) => ({ ...claim, at: indexes.indexOf(claim.at) });

function groupOf(regime, indexes, tasks) {
  const position = regimePlace(regime);
  return {
    critical: base.decisions.critical[position],
    params: indexes.map((index) => models[index].params),
    ids: indexes.map((index) => models[index].id),
    cells: indexes.map((index) => cellsOf(position, index, tasks)),
  };
}

/** Return score, variance and what is uncertain of it, of a model in tasks. A row without scores by
 * seed has the spread between training draws that is assumed. */
function cellsOf(regime, index, tasks) {
  if (!tasks.length) return [];
  const { scores, errors, spreads } = partOf(`tasks-${regime}`);
  const drawn = base.facts.covered[regime].includes(index) ? 0 : base.decisions.drawn[regime];
  return tasks.map((task) => ({
    score: scores[bench.primary][index][task],
    variance: errors[index][task] ** 2 + drawn,
    uncertain: spreads ? spreads[index][task] : 0,
  }));
}

/** Return the mean of a model over all tasks in the first regime. */
function overallOf(index, model) {
  const [score, error, freedom] = base.overall[index];
  const drawn = base.facts.covered[0].includes(index) ? 0 : base.decisions.drawn[0];
  const variance = error * error + drawn / bench.tasks.length;
  const wider = freedom === null ? Infinity : freedom * (variance / (error * error)) ** 2;
  return { score, error: Math.sqrt(variance), freedom: wider, model };
}
