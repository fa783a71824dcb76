// How the page writes, sorts and downloads the columns of the board, by their kind. The columns
// themselves are defined once, in geneb_ci/board/columns.py. Functions of their arguments alone.

import { ORDER } from "./evidence.js";
import { attestedText, disputeText, evidenceText, sizeText, warningsText } from "./words.js";

const same = (value) => value;
const lower = (value) => String(value).toLowerCase();
const cased = { text: String, key: lower };
const inWords = (value, { terms = {} }) =>
  Object.hasOwn(terms, value) ? `${terms[value]} (${value})` : String(value);
const countText = (value) => value.toLocaleString("en");

// What a kind is written as, sorted by, and aligned like a number or not.
const KINDS = {
  id: { text: same, key: same },
  name: cased,
  text: { text: inWords, key: lower }, // the paper's abbreviations with what they stand for
  link: cased,
  count: { text: countText, key: same, isNumber: true },
  size: { text: sizeText, key: same, isNumber: true },
  flag: { text: (value, { words }) => words[value ? 0 : 1], key: Number },
  level: cased,
  evidence: { text: (_, __, model) => evidenceText(model), key: (value) => ORDER.indexOf(value) },
  audit: { text: (_, __, model) => evidenceText(model), key: ({ tasks }) => tasks },
  attested: { text: attestedText, key: ({ length }) => length },
  disputes: { text: (value) => value.map(disputeText).join(" "), key: ({ length }) => length },
  warnings: { text: warningsText, key: (value) => Object.keys(value).length },
  defects: { text: (value) => value.map(({ what }) => what).join(" "), key: ({ length }) => length },
};

/** Return the kinds of columns that can be shown. */
export function kinds() {
  return Object.keys(KINDS);
}

/** Return a model's value of a column as text; "" where nothing is known. */
export function factText(column, model) {
  const value = model[column.key];
  return value === undefined ? "" : KINDS[column.kind].text(value, column, model);
}

/** Return what models are sorted by in a column; undefined where nothing is known. */
export function factKey({ key, kind }, model) {
  return model[key] === undefined ? undefined : KINDS[kind].key(model[key]);
}

export function isNumber({ kind }) {
  return Boolean(KINDS[kind].isNumber);
}

// In a file, what is structured on the page is one text.
function cellOf(kind, value, model) {
  if (kind === "audit") return evidenceText(model);
  if (value === undefined) return value;
  if (kind === "warnings") return warningsText(value);
  return kind === "defects" ? value.map(({ id }) => id).join(" ") : value;
}

/** Return the cells of a model for the download of a table, by heading. */
export function factCells(columns, model) {
  const downloaded = columns.filter(({ download }) => download);
  return Object.fromEntries(
    downloaded.map(({ download, key, kind }) => [download, cellOf(kind, model[key], model)]),
  );
}
