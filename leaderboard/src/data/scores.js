// Scores, standard errors and ranks of models, by column, regime and metric.

import { base, bench, facets, facts, hasIntervals } from "./board.js";
import { criticalOf, isDecided, models, partOf, regimePlace } from "./board.js";
import { meansOf } from "../pure/choose.js";
import { intervalOf, rankRange } from "../pure/decide.js";
import { factText } from "../pure/facts.js";
import { rankOf } from "../pure/ranks.js";
import { passes } from "../pure/rows.js";
import { matching, plain } from "../pure/search.js";

// Numbers are whole multiples of a unit; the data name the parts of a standing.
const { score: SCORE_UNIT, standing: PARTS = [] } = base?.encoding ?? {};
const AT = Object.fromEntries(PARTS.map((name, position) => [name, position]));

const partOfMeans = (regime) => partOf(`scores-${regimePlace(regime)}`);
const tasksOf = (regime) => partOf(`tasks-${regimePlace(regime)}`);

/** Return the scores of all models in one column, as numbers; undefined where cells are missing. */
export function scoresIn(column, regime, metric) {
  if (isDecided(metric, column)) {
    // As computed: what decides is never a rounded number.
    return columnOf(column, regime).map((row) => (row ? row[AT.score] : undefined));
  }
  if (column.tasks) {
    const taskScores = column.tasks.map((task) => scoresIn({ task }, regime, metric));
    return models.map((_, index) =>
      isRanked(index, regime)
        ? taskScores.reduce((sum, scores) => sum + scores[index], 0) / taskScores.length
        : undefined,
    );
  }
  const isTask = column.task !== undefined;
  const rows = isTask ? tasksOf(regime).scores[metric] : partOfMeans(regime).scores[metric];
  // Scores of tasks that means are decided by are exact already.
  const unit = isTask && hasIntervals(metric) ? 1 : SCORE_UNIT;
  return rows.map((row) => (row ? row[column.task ?? column.position] / unit : undefined));
}

const columnOf = (column, regime) => partOfMeans(regime).standings[column.position];

/** Return score, error, interval and ranks of a model in a column, as far as they are known. */
export function standingOf(column, regime, metric, model) {
  if (!hasIntervals(metric)) return null;
  if (!isDecided(metric, column)) {
    if (!isRanked(model, regime)) return null;
    const mean = meanOver(column.tasks ?? [column.task], regime, model);
    return { ...mean, ...intervalOf(mean, base.decisions.normal) };
  }
  const row = columnOf(column, regime)[model];
  if (!row) return null;
  const [score, error] = [row[AT.score], row[AT.error]];
  const shared = sharedBy(column, regime, model);
  const standing = { score, error, freedom: row[AT.freedom] ?? Infinity, model, shared };
  return {
    ...standing,
    ...intervalOf(standing, base.decisions.normal),
    rank: row[AT.rank],
    rankLow: row[AT.rank_low],
    rankHigh: row[AT.rank_high],
  };
}

/** Return score, rank and rank range of some models, among all that the regime ranks; undefined for
 * one that it does not rank. The board's decisions for its own columns, the same relation for means
 * of some tasks; without intervals a rank is by score alone, and has no range. */
export function ranksIn(column, regime, metric, indexes) {
  if (isDecided(metric, column)) {
    return indexes.map((index) => standingOf(column, regime, metric, index) ?? undefined);
  }
  if (!hasIntervals(metric)) {
    const scores = scoresIn(column, regime, metric);
    const ranked = (index) => ({ score: scores[index], rank: rankOf(scores, index) });
    return indexes.map((index) => (isRanked(index, regime) ? ranked(index) : undefined));
  }
  const all = models.map((_, index) => standingOf(column, regime, metric, index));
  const ranked = all.filter(Boolean);
  const ranksOf = (standing) =>
    standing && { ...standing, ...rankRange(ranked, standing, criticalOf(regime)) };
  return indexes.map((index) => ranksOf(all[index]) ?? undefined);
}

/** Return score, error and degrees of freedom of a model in a task, or in the mean of some. */
function meanOver(tasks, regime, model) {
  const { scores, errors, spreads } = tasksOf(regime);
  const cells = tasks.map((task) => ({
    score: scores[bench.primary][model][task],
    variance: errors[model][task] ** 2,
    uncertain: spreads ? spreads[model][task] : 0,
  }));
  return meansOf([cells], cells.length)[0];
}

/** Return what gives the covariance of a model's error with another's in a column; undefined for a
 * model without predictions. */
function sharedBy(column, regime, model) {
  const { models: indexes = [], columns = [] } = partOfMeans(regime).shared ?? {};
  const triangle = columns[column.position];
  const modelPosition = triangle ? indexes.indexOf(model) : -1;
  if (modelPosition < 0) return undefined;
  return (otherModel) => {
    const position = indexes.indexOf(otherModel);
    if (position < 0 || position === modelPosition) return 0;
    return triangle[Math.max(modelPosition, position)][Math.min(modelPosition, position)];
  };
}

/** Return how many models a regime ranks: all ranks and rank ranges are among them. */
export function rankedCount(regime) {
  return models.filter((_, index) => isRanked(index, regime)).length;
}

/** Whether a model has every score of a regime; one with missing cells is not ranked. */
export function isRanked(index, regime) {
  return base.ranked[regimePlace(regime)][index] === 1;
}

/** Return the indexes of the models that are ranked and pass the filters of a state. */
export function filtered(state) {
  const matches = new Set(matching(texts(), state.q));
  return models
    .map((_, index) => index)
    .filter(
      (index) =>
        isRanked(index, state.regime) &&
        matches.has(index) &&
        passes(models[index], state, facets),
    );
}

let written = null;

/** Return what is searched of each model: name, id, and the facts that models are filtered by. */
function texts() {
  const searched = facts.filter(({ facet, kind }) => facet || kind === "id" || kind === "name");
  written ??= models.map((model) =>
    plain(searched.map((fact) => factText(fact, model)).join(" ")),
  );
  return written;
}
