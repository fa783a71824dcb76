// The state of the page as an address, and back. Functions of their arguments alone.

const LONGEST_SEARCH = 100;
/** What stands between the columns that are hidden. */
export const HIDE_MARK = "|";
const OWN_PLACES = ["view", "model", "models"]; // not written as key=value

/** Write a state as an address that says only what is not usual. */
export function written(state, usual) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(state)) {
    if (OWN_PLACES.includes(key) || value === usual[key]) continue;
    query.set(key, String(value));
  }
  for (const id of state.models) query.append("m", id);
  const path = state.view === "model" ? `model/${encoded(state.model)}` : state.view;
  const text = query.toString();
  return `#/${path}${text ? `?${text}` : ""}`;
}

/** Read an address; whatever does not exist falls back to what is usual.
 *
 * `known` has the values that every key may have (`choices`), the columns that may be hidden,
 * the ids of the models and how many of them may be compared.
 */
export function read(address, usual, options) {
  const state = { ...usual };
  const [path, query = ""] = address.replace(/^#\/?/, "").split("?", 2);
  const [view, ...furtherParts] = path.split("/");
  const parameters = new URLSearchParams(query);
  if (options.choices.view.includes(view)) state.view = view;
  for (const [key, choices] of Object.entries(options.choices)) {
    if (key !== "view" && choices.includes(parameters.get(key))) state[key] = parameters.get(key);
  }
  state.q = (parameters.get("q") ?? "").slice(0, LONGEST_SEARCH);
  const hidden = (parameters.get("hide") ?? "").split(HIDE_MARK);
  state.hide = hidden.filter((key) => options.columns.includes(key)).join(HIDE_MARK);
  state.page = Math.max(1, Number.parseInt(parameters.get("page") ?? "1", 10) || 1);
  state.models = [...new Set(parameters.getAll("m"))]
    .filter((id) => options.ids.has(id))
    .slice(0, options.compared);
  if (state.view === "model") state.model = decoded(furtherParts.join("/"));
  return state;
}

/** Write a text for an address, which cannot hold half of a surrogate pair. */
function encoded(text) {
  return encodeURIComponent(text.replace(/\p{Surrogate}/gu, "\u{fffd}"));
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
