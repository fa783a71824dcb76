// Scores, standard errors and ranks of models, by column, regime and metric.

import { MACRO, base, bench, facets, facts, hasIntervals } from "./board.js";
import { isDecided, models, partOf, regimePlace } from "./board.js";
import { intervalOf } from "../pure/decide.js";
import { factText } from "../pure/facts.js";
import { passes } from "../pure/rows.js";
import { found, plain } from "../pure/search.js";

// Numbers are whole multiples of a unit; what a place of a standing holds is said with the data.
const { score: SCORE_UNIT, standing: PARTS = [] } = base?.encoding ?? {};
const AT = Object.fromEntries(PARTS.map((name, place) => [name, place]));

const meansOf = (regime) => partOf(`scores-${regimePlace(regime)}`);
const tasksOf = (regime) => partOf(`tasks-${regimePlace(regime)}`);

/** Return the scores of all models in one column, as numbers; undefined where cells are missing. */
export function scoresIn(column, regime, metric) {
  if (isDecided(metric, column)) {
    // As computed: what decides is never a rounded number.
    return columnOf(column, regime).map((row) => (row ? row[AT.score] : undefined));
  }
  const rows =
    column.task === undefined
      ? meansOf(regime).scores[metric]
      : tasksOf(regime).scores[metric];
  const place = column.task ?? column.place;
  return rows.map((row) => (row ? row[place] / SCORE_UNIT : undefined));
}

/** Return the standings in a column. Until the part of the first regime is loaded these are, but
 * for macro, those of the models that advice names: the first view shows no others. */
function columnOf(column, regime) {
  const part = meansOf(regime);
  if (part) return part.standings[column.place];
  return column.key === MACRO ? base.overall : advisedIn()[column.place];
}

let advised = null;

function advisedIn() {
  if (advised) return advised;
  advised = base.encoding.means.concat(bench.categories).map(() => []);
  for (const [index, rows] of Object.entries(base.advised)) {
    advised.forEach((column, place) => {
      column[index] = rows[place];
    });
  }
  return advised;
}

/** Return score, error, interval and ranks of a model in a column, as far as they are known. */
export function standingOf(column, regime, metric, model) {
  if (!hasIntervals(metric)) return null;
  if (column.task !== undefined) {
    const ends = tasksOf(regime).intervals?.[model];
    if (!ends) return null;
    const [low, high] = ends.slice(2 * column.task, 2 * column.task + 2);
    return { low: low / SCORE_UNIT, high: high / SCORE_UNIT };
  }
  const row = columnOf(column, regime)[model];
  if (!row) return null;
  const [score, error] = [row[AT.score], row[AT.error]];
  const shared = sharedBy(column, regime, model);
  const known = { score, error, freedom: row[AT.freedom] ?? Infinity, model, shared };
  return {
    ...known,
    ...intervalOf(known, base.decisions.normal),
    rank: row[AT.rank],
    rankLow: row[AT.rank_low],
    rankHigh: row[AT.rank_high],
  };
}

/** Return what gives the covariance of a model's error with another's in a column; undefined for a
 * model without predictions. Until the part of the first regime is loaded, macro's is known. */
function sharedBy(column, regime, model) {
  const part = meansOf(regime);
  const { models: places = [], columns = [] } = (part ?? base).shared ?? {};
  const triangle = columns[column.place];
  const own = triangle ? places.indexOf(model) : -1;
  if (own < 0) return undefined;
  return (other) => {
    const place = places.indexOf(other);
    if (place < 0 || place === own) return 0;
    return triangle[Math.max(own, place)][Math.min(own, place)];
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

/** Return the places of the models that are ranked and pass the filters of a state. */
export function filtered(state) {
  const named = new Set(found(texts(), state.q));
  return models
    .map((_, index) => index)
    .filter(
      (index) =>
        isRanked(index, state.regime) &&
        named.has(index) &&
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
