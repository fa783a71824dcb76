// The frame of every chart: title, drawing, what is pointed at, caption, figures as a table.

import { h, scroller, byName } from "../page/dom.js";

/** Units that a drawing is wide; on a phone fewer, so that it fits and its texts stay readable. */
export const IS_NARROW = matchMedia("(max-width: 45rem)").matches;
export const WIDTH = IS_NARROW ? 400 : 860;

/** Frame a chart; what is drawn as an image to screen readers has its figures in the table. */
export function framed({ name, title, caption, invitation = " ", draw, figures = null }) {
  const box = h("div", { class: "chart", id: `chart-${name}` });
  draw(box, title);
  return h(
    "figure",
    { class: "plot" },
    h("h3", {}, title),
    scroller(title, box),
    h("p", { class: "pointed", id: `pointed-${name}` }, invitation),
    h("figcaption", {}, caption),
    figures ? figuresOf(title, figures) : null,
  );
}

/** Return the figures as a table, made when it is first opened: it may have a thousand rows. */
function figuresOf(title, figures) {
  const fill = ({ target }) => {
    if (target.children.length === 1) target.append(scroller(`Figures: ${title}`, figures()));
  };
  return h("details", { ontoggle: fill }, h("summary", {}, "The figures of this plot"));
}

/** Say below a chart what the pointer is on. */
export function point(name, text) {
  byName(`pointed-${name}`).textContent = text;
}

/** Begin a drawing that is as wide as its box; one with `parts` has links for each model. */
export function drawing(box, title, height, { parts = false } = {}) {
  const keys = parts ? "; arrow keys go from model to model" : "";
  return d3
    .select(box)
    .append("svg")
    .attr("viewBox", `0 0 ${WIDTH} ${height}`)
    .attr("role", parts ? "group" : "img")
    .attr("aria-label", `${title}: the figures stand in a table below${keys}`);
}

const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

/** Make the parts of a drawing links that pointer and keyboard reach: one of them is a stop of the
 * tab key, arrow keys go on from it, and Enter opens.
 *
 * `parts` are pairs of an element and the index of its model, in the order of the arrow keys. */
export function linked(name, parts, { text, open }) {
  const reach = (place) => {
    parts.forEach(([element], other) => element.setAttribute("tabindex", other === place ? 0 : -1));
    return parts[place][0];
  };
  parts.forEach(([element, index], place) => {
    const told = text(index);
    element.setAttribute("role", "link");
    element.setAttribute("aria-label", told);
    element.setAttribute("tabindex", place ? -1 : 0);
    element.addEventListener("pointerenter", () => point(name, told));
    element.addEventListener("focus", () => point(name, told));
    element.addEventListener("click", () => open(index));
    element.addEventListener("keydown", (event) => {
      const next = place + (STEPS[event.key] ?? 0);
      if (event.key === "Enter") open(index);
      else if (next !== place && parts[next]) reach(next).focus();
      else return;
      event.preventDefault();
    });
  });
}

export function axis(drawn, transform, made) {
  drawn.append("g").attr("class", "axis").attr("transform", transform).call(made);
}

/** Write a text; `anchor` is where it stands from its point: start, middle or end. */
export function label(drawn, text, x, y, { anchor = "start", kind = "label" } = {}) {
  return drawn
    .append("text")
    .attr("class", kind)
    .attr("x", x)
    .attr("y", y)
    .attr("text-anchor", anchor)
    .text(text);
}
