// The buttons that go from one page of a long list to another.

import { change } from "../state/store.js";
import { h } from "./dom.js";

/** Make the buttons for a list cut by `paged`, of so many in all; null where it is one page. */
export function pager({ pages, page, first, pageItems }, count, of) {
  if (pages === 1) return null;
  const button = (text, to, name) =>
    h(
      "button",
      {
        type: "button",
        "data-focus": name,
        disabled: to < 1 || to > pages,
        onclick: () => change({ page: to }),
      },
      text,
    );
  const range = `${first + 1} to ${first + pageItems.length} of ${count.toLocaleString("en")}`;
  return h(
    "nav",
    { class: "pager", "aria-label": `Pages of the ${of}` },
    button("First", page > 1 ? 1 : 0, "page first"),
    button("Previous", page - 1, "page previous"),
    h("span", {}, range),
    button("Next", page + 1, "page next"),
    button("Last", page < pages ? pages : pages + 1, "page last"),
  );
}
