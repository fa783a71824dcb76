// All that the table shows of a state, before any element: rows in order, scores by column, ranks.

import { MACRO, columnsOf, isDecided, models, tableFacts } from "../data/board.js";
import { filtered, scoresIn, standingOf } from "../data/scores.js";
import { chosenTasks } from "../data/tasks.js";
import { HIDE_MARK } from "../pure/address.js";
import { plainRanks, rangesOf } from "../pure/ranks.js";
import { paged, sorted } from "../pure/rows.js";

// With more cells a redraw takes longer than a tenth of a second; what fits one page stays whole.
const ROWS_PER_PAGE = 50;
const ROWS_OF_INTERVALS = 30;
const ROWS_OF_TASKS = 15;
const WIDE = 50; // columns
// Columns of scores that a printed sheet has room for, A4 or letter, lying.
const PRINTED_MAX = 35;
/** Columns of scores from which a table is set smaller in print, and scrolled on a screen. */
export const MANY_COLUMNS = 20;

/** Gather the content of the table. */
export function contentOf(state) {
  const { regime, metric } = state;
  const every = columnsOf(state.columns, chosenTasks(state));
  // The sorted column ranks, or the mean where a fact such as the name or the size is sorted.
  const sortedFact = tableFacts.find(({ table }) => table.sort === state.sort) ?? null;
  const ranking = 
    every.find(({ key }) => key === state.sort) ?? every.find(({ key }) => key === MACRO);
  const hidden = new Set(state.hide.split(HIDE_MARK));
  const columns = every.filter((column) => column === ranking || !hidden.has(column.key));
  const scores = columns.map((column) => scoresIn(column, regime, metric));
  const rankingScores = scores[columns.indexOf(ranking)];
  const indexes = sorted(filtered(state), models, rankingScores, state.order, sortedFact);
  const page = paged(indexes, rowsOf(state, columns, indexes), state.page);
  const standings = page.pageItems.map((index) => standingOf(ranking, regime, metric, index));
  return {
    columns,
    facts: tableFacts.filter(({ kind, table }) => kind === "name" || !hidden.has(table.sort)),
    ranking,
    sortedFact,
    indexes,
    scores,
    standings,
    hasBadges: isDecided(metric, ranking),
    printed: printedOf(columns),
    ranges: rangesOf(scores, indexes, state.scale === "column"),
    ranks: plainRanks(rankingScores),
    ...page,
  };
}

/** Return how many rows a page has. */
function rowsOf({ intervals }, columns, indexes) {
  if (indexes.length <= ROWS_PER_PAGE) return ROWS_PER_PAGE;
  if (columns.length > WIDE) return ROWS_OF_TASKS;
  return intervals === "all" ? ROWS_OF_INTERVALS : ROWS_PER_PAGE;
}

/** Return how many columns are printed: all, or those of the categories that fit a sheet. */
function printedOf(columns) {
  if (columns.length <= PRINTED_MAX) return columns.length;
  for (let end = PRINTED_MAX; end > PRINTED_MAX / 2; end -= 1) {
    if (columns[end].category !== columns[end - 1].category) return end;
  }
  return PRINTED_MAX;
}
