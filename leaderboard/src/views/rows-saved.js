// The rows of each view as they are saved: codebook.json says what their columns are.

import { base, bench, facts, meanColumns, models, taskColumns } from "../data/board.js";
import { isRanked, rankedCount, scoresIn, standingOf } from "../data/scores.js";
import { roundedTo } from "../pure/csv.js";
import { couldBeBest } from "../pure/decide.js";
import { factCells } from "../pure/facts.js";
import { rankOf } from "../pure/ranks.js";

/** Return the rows of the first page: each model in each regime, beside what was asked. */
export function choiceRows({ species, kind, examples, memory, evidence }, choices) {
  const { tasks, regimes, indexes, orders, means, bounds, smaller, accepted } = choices;
  return orders.flatMap((order, k) =>
    order.map((at) => {
      const { score, error, low, high } = means[k][at];
      const model = models[indexes[at]];
      return {
        species: species || "any",
        kind: kind || "any",
        tasks: tasks.length,
        labelled_examples: examples,
        gpu_memory: memory,
        evidence_asked: evidence,
        accepted_loss: accepted,
        regime: regimes[k],
        model: model.id,
        display: model.name,
        params: model.params,
        authorship: model.authorship,
        evidence: model.evidence,
        defects: (model.defects ?? []).map(({ id }) => id).join(" "),
        warnings: Object.keys(model.warnings ?? {}).join(" "),
        mean: roundedTo(score, error),
        standard_error: roundedTo(error, error),
        low: roundedTo(low, error),
        high: roundedTo(high, error),
        loses_at_most: Number.isFinite(bounds[k][at]) ? roundedTo(bounds[k][at], error) : "",
        qualifies: String(smaller.includes(at)),
      };
    }),
  );
}

/** Return the rows of the table: what is filtered and sorted on the page is so in the file. */
export function scoreRows({ regime, metric }, { columns, indexes, scores, ranks, ranking }) {
  const count = rankedCount(regime);
  return indexes.map((index) => {
    const standing = standingOf(ranking, regime, metric, index);
    const row = factCells(facts, models[index]);
    row[`rank by ${ranking.label}`] = standing?.rank ?? ranks[index];
    // Ranks stay those of the whole board when rows are filtered.
    row["ranked models"] = count;
    if (standing?.rank) {
      Object.assign(row, {
        "rank from": standing.rankLow,
        "rank to": standing.rankHigh,
        "could be best": couldBeBest(standing),
      });
    }
    columns.forEach((column, position) => {
      const key = column.task === undefined ? column.label : bench.tasks[column.task].id;
      const ends = standingOf(column, regime, metric, index);
      row[key] = roundedTo(scores[position][index], ends?.error);
      if (!ends) return;
      row[`${key} low`] = roundedTo(ends.low, ends.error);
      row[`${key} high`] = roundedTo(ends.high, ends.error);
    });
    return row;
  });
}

/** Return every task with the scores of some models, and their standard errors if known. */
export function taskRows({ regime, metric }, indexes) {
  return taskColumns.map((column) => {
    const { id, category } = bench.tasks[column.task];
    const row = { task: id, category: bench.categories[category] };
    const scores = scoresIn(column, regime, metric);
    for (const index of indexes) {
      const error = standingOf(column, regime, metric, index)?.error;
      row[models[index].id] = roundedTo(scores[index], error);
      if (error !== undefined) row[`${models[index].id} standard error`] = roundedTo(error, error);
    }
    return row;
  });
}

/** Return every mean and score of one model, in each regime in which it is ranked. */
export function modelRows({ metric }, index) {
  return bench.regimes
    .filter((regime) => isRanked(index, regime))
    .flatMap((regime) =>
      [...meanColumns, ...taskColumns].map((column) => {
        const isTask = column.task !== undefined;
        const scores = scoresIn(column, regime, metric);
        const standing = standingOf(column, regime, metric, index) ?? {};
        const { error, low, high, rank, rankLow, rankHigh } = standing;
        const rounded = (value) => (value === undefined ? "" : roundedTo(value, error));
        return {
          model: models[index].id,
          regime,
          scope: isTask ? "task" : "mean",
          name: isTask ? bench.tasks[column.task].id : column.label,
          metric,
          value: rounded(scores[index]),
          standard_error: rounded(error),
          low: rounded(low),
          high: rounded(high),
          rank: rank ?? rankOf(scores, index),
          rank_from: rankLow ?? "",
          rank_to: rankHigh ?? "",
        };
      }),
    );
}

/** Return the figures of the paper in a scope, a line for each part. */
export function figureRows(scope) {
  const figures = (base.facts?.findings ?? []).filter((finding) => finding.scope === scope);
  return figures.flatMap(({ id, definition, unit, rows, value, parts }) =>
    [{ name: "", value }, ...parts].map((part) => ({
      figure: id,
      scope,
      definition,
      unit,
      rows,
      part: part.name,
      value: part.value === null ? "" : roundedTo(part.value),
    })),
  );
}
