// Scores, intervals, ranks and tie groups of models, by column, regime and metric.

import { base, hasIntervals, models, regimePlace } from "./board.js";
import { passes } from "../pure/rows.js";

// Numbers are whole multiples of a unit; what a place of a standing holds is said with the data.
const { score: SCORE_UNIT, interval: INTERVAL_UNIT, standing: PARTS = [] } = base?.encoding ?? {};
const AT = Object.fromEntries(PARTS.map((name, place) => [name, place]));

const tasksOf = (regime) => globalThis.geneb[`tasks${regimePlace(regime)}`];

/** Return the scores of all models in one column, as numbers; undefined where cells are missing. */
export function scoresIn(column, regime, metric) {
  const rows =
    column.task === undefined
      ? base.scores[regimePlace(regime)][metric]
      : tasksOf(regime).scores[metric];
  const place = column.task ?? column.place;
  return rows.map((row) => (row ? row[place] / SCORE_UNIT : undefined));
}

/** Return interval, ranks and tie group of a model in a column, as far as they are known. */
export function standingOf(column, regime, metric, model) {
  if (!hasIntervals(metric)) return null;
  if (column.task !== undefined) {
    const ends = tasksOf(regime).intervals?.[model];
    if (!ends) return null;
    const [low, high] = ends.slice(2 * column.task, 2 * column.task + 2);
    return { low: low / INTERVAL_UNIT, high: high / INTERVAL_UNIT };
  }
  const row = base.standings[regimePlace(regime)][column.place][model];
  if (!row) return null;
  return {
    low: row[AT.low] / INTERVAL_UNIT,
    high: row[AT.high] / INTERVAL_UNIT,
    rank: row[AT.rank],
    rankLow: row[AT.rank_low],
    rankHigh: row[AT.rank_high],
    group: row[AT.group],
  };
}

/** Whether a model has every score of a regime; one with missing cells is not ranked. */
export function isRanked(index, regime, metric) {
  return base.scores[regimePlace(regime)][metric][index] !== null;
}

/** Return the places of the models that are ranked and pass the filters of a state. */
export function filtered(state) {
  return models
    .map((_, index) => index)
    .filter((index) => isRanked(index, state.regime, state.metric) && passes(models[index], state));
}
