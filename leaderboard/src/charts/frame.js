// The frame of every chart: title, drawing, what is pointed at, caption, figures as a table.

import { h, scroller, byName } from "../page/dom.js";

export const WIDTH = 860;

/** Frame a chart; the drawing is an image to screen readers, for whom the table has the figures. */
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

/** Begin a drawing that is as wide as its box. */
export function drawing(box, title, height) {
  return d3
    .select(box)
    .append("svg")
    .attr("viewBox", `0 0 ${WIDTH} ${height}`)
    .attr("role", "img")
    .attr("aria-label", `${title}: the figures stand in a table below`);
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
