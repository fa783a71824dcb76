// The rows of the table as files: what is filtered and sorted on the page is so in the file.

import { bench, facts, models } from "../data/board.js";
import { rankedCount, standingOf } from "../data/scores.js";
import { h } from "../page/dom.js";
import { csvText, roundedTo } from "../pure/csv.js";
import { couldBeBest } from "../pure/decide.js";
import { factCells } from "../pure/facts.js";

const KEPT_MS = 10_000; // a browser has begun to save by then

export function downloadButtons(state, content) {
  const button = (kind, write) =>
    h(
      "button",
      { type: "button", id: kind, onclick: () => write(state, rowsOf(state, content)) },
      `Download these rows as ${kind.toUpperCase()}`,
    );
  return [button("csv", ({ regime, metric }, rows) => saveCsv(`scores-${regime}-${metric}`, rows)), button("json", saveJson)];
}

function rowsOf({ regime, metric }, { columns, places, scores, ranks, ranking }) {
  const count = rankedCount(regime);
  return places.map((index) => {
    const standing = standingOf(ranking, regime, metric, index);
    const made = factCells(facts, models[index]);
    made[`rank by ${ranking.label}`] = standing?.rank ?? ranks[index];
    // Ranks stay those of the whole board when rows are filtered.
    made["ranked models"] = count;
    if (standing?.rank) {
      Object.assign(made, {
        "rank from": standing.rankLow,
        "rank to": standing.rankHigh,
        "could be best": couldBeBest(standing),
      });
    }
    columns.forEach((column, place) => {
      const key = column.task === undefined ? column.label : bench.tasks[column.task].id;
      const ends = standingOf(column, regime, metric, index);
      made[key] = roundedTo(scores[place][index], ends?.error);
      if (!ends) return;
      made[`${key} low`] = roundedTo(ends.low, ends.error);
      made[`${key} high`] = roundedTo(ends.high, ends.error);
    });
    return made;
  });
}

/** Save rows, objects with the same keys, as CSV. */
export function saveCsv(name, rows) {
  save(`${name}.csv`, "text/csv", csvText(rows));
}

function saveJson({ regime, metric }, rows) {
  const benchmark = { name: bench.name, sha256: bench.sha256 };
  const text = JSON.stringify({ benchmark, regime, metric, rows }, null, 1);
  save(`scores-${regime}-${metric}.json`, "application/json", text);
}

function save(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }));
  const link = h("a", { href: address, download: name, hidden: true });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), KEPT_MS);
}
