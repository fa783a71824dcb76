// What a view shows as a file that the browser saves.

import { csvText } from "../pure/csv.js";
import { h } from "./dom.js";

const KEPT_MS = 10_000; // a browser has begun to save by then

/** Make a button that saves rows, objects with the same keys, as CSV. `rows` may be a promise. */
export function csvButton(text, name, rows) {
  const save = async () => saveFile(`${name}.csv`, "text/csv", csvText(await rows()));
  return h("button", { type: "button", id: "csv", onclick: save }, text);
}

/** Save a text as a file of a name. */
export function saveFile(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }));
  const link = h("a", { href: address, download: name, hidden: true });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), KEPT_MS);
}
