// The columns of the board as elements: a cell of the table, a line of a model's page.

import { factText, isNumber } from "../pure/facts.js";
import { disputeText, evidenceText, memoryText, safeAddress } from "../pure/words.js";
import { h, outward } from "./dom.js";
import { evidenceMark, explained } from "./marks.js";

/** Make the cell of a column in the table of scores. */
export function factCell(column, model) {
  if (column.kind === "evidence") return h("td", { class: "fact" }, evidenceMark(model));
  return h("td", { class: isNumber(column) ? "fact number" : "fact" }, factText(column, model));
}

// What a model's page shows otherwise than as the plain text of the column.
const SHOWN = {
  id: (id) => h("code", {}, id),
  size: sizeAndWeights,
  evidence: (evidence, model) => h("span", { class: `trust ${evidence}` }, evidenceText(model)),
  attested: (statements) => h("ul", { class: "why" }, ...statements.map(statementItem)),
  disputes: (disputes, { id }) => [
    h("ul", { class: "why" }, ...disputes.map((dispute) => h("li", {}, disputeText(dispute)))),
    h("a", { href: `models/${encodeURIComponent(id)}.html#disputed` }, "Table and signed records"),
  ],
  defects: (defects) => h("ul", { class: "why" }, ...defects.map(defectItem)),
  warnings: (warnings) => h("ul", { class: "why" }, ...Object.entries(warnings).map(warningItem)),
  link,
};

// What is said where a kind of column has no value, otherwise "not given".
const NONE = {
  attested: "nobody but the submitter",
  disputes: "not disputed",
  warnings: "none",
  defects: "none known",
};

/** Make the list of all that is said of a model. */
export function factList(columns, model) {
  // The name is the title of the page already.
  const listed = columns.filter(({ label, kind }) => label && kind !== "name");
  const line = (column) => {
    const value = model[column.key];
    const text = () => SHOWN[column.kind]?.(value, model) ?? factText(column, model);
    const valueText = value === undefined ? (NONE[column.kind] ?? "not given") : text();
    const source = value === undefined ? null : h("small", {}, column.source);
    return h("div", {}, h("dt", {}, column.label), h("dd", { dir: "auto" }, valueText, " ", source));
  };
  return h("dl", { class: "facts long" }, ...listed.map(line));
}

function statementItem({ fields, by }) {
  return h("li", {}, `${fields}: ${by}`);
}

function defectItem({ id, what }) {
  return h("li", {}, `${what} `, h("a", { href: explained("defect", id) }, "What this means"));
}

function warningItem([rule, count]) {
  return h("li", {}, h("a", { href: explained("rule", rule) }, rule), count > 1 ? ` (${count})` : "");
}

function sizeAndWeights(params) {
  if (!params) return "no parameters";
  return `${params.toLocaleString("en")} parameters; ${memoryText(params)}`;
}

function link(text) {
  const safe = safeAddress(text);
  if (!safe) return text;
  return outward(safe.href, text, "noopener noreferrer nofollow ugc");
}
