// The frame of every chart: title, caption, axes, marks, what is pointed at, figures as a table.

import { byId, models } from "../data/board.js";
import { h, scroller, byName } from "../page/dom.js";
import { shortened } from "../pure/words.js";
import { change } from "../state/store.js";

const [NARROWEST, WIDEST, MARGINS] = [300, 860, 48];
const NARROW = matchMedia("(max-width: 45rem)");
/** Whether the window is narrow, and the width of a drawing in units: a pixel each, so that its
 * texts are as large as others. `fitWindow` measures both. */
export const area = { isNarrow: false, width: WIDEST };
/** Units below a drawing for the ticks of its axis, and what it measures. */
export const BELOW = 42;

const SYMBOLS = ["symbolCircle", "symbolSquare", "symbolTriangle", "symbolDiamond"];
const LEGEND_STEP = 18;
const LETTER = 6.6; // units a letter at the size of names
const TICK = 60; // units between ticks
const POINT = "Point at one for its figures, or go from one to the next with the arrow keys; click it, or press Enter, for the model's page.";

/** Measure the window for the charts that are drawn next; return whether its width changed. */
export function fitWindow() {
  const width = Math.max(NARROWEST, Math.min(WIDEST, innerWidth - MARGINS));
  const isChanged = width !== area.width || NARROW.matches !== area.isNarrow;
  Object.assign(area, { isNarrow: NARROW.matches, width });
  return isChanged;
}

/** Frame a chart; what is drawn as an image to screen readers has its figures in the table. */
export function framed({ name, title, caption, hasParts = false, draw, figures = null }) {
  const box = h("div", { class: "chart", id: `chart-${name}` });
  draw(box, title);
  return h(
    "figure",
    { class: "plot" },
    h("h3", {}, title),
    h("figcaption", {}, caption),
    scroller(title, box),
    hasParts ? h("p", { class: "pointed", id: `pointed-${name}` }, POINT) : null,
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

/** Write below a chart what the pointer is on. */
function point(name, text) {
  byName(`pointed-${name}`).textContent = text;
}

/** Begin a drawing that is as wide as its box; one with `parts` has links for each model. */
export function drawing(box, title, height, { parts = false } = {}) {
  const keys = parts ? "; arrow keys go from model to model" : "";
  return d3
    .select(box)
    .append("svg")
    .attr("viewBox", `0 0 ${area.width} ${height}`)
    .attr("role", parts ? "group" : "img")
    .attr("aria-label", `${title}: the figures stand in a table below${keys}`);
}

const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

/** Make the parts of a drawing links that pointer and keyboard reach: one of them is a stop of the
 * tab key, arrow keys go on from it, and Enter opens the model.
 *
 * `parts` are pairs of an element and the index of its model, in the order of the arrow keys. */
export function linked(name, parts, text) {
  const positions = new Map(parts.map(([element], position) => [element, position]));
  let stop = 0;
  parts.forEach(([element, index], position) => {
    element.setAttribute("role", "link");
    element.setAttribute("aria-label", text(index));
    element.setAttribute("tabindex", position === stop ? 0 : -1);
  });
  const open = (position) => change({ view: "model", model: models[parts[position][1]].id, task: "" });
  const go = (position) => {
    parts[stop][0].setAttribute("tabindex", -1);
    stop = position;
    parts[stop][0].setAttribute("tabindex", 0);
    parts[stop][0].focus();
  };
  const tell = (position, element) => point(name, element.getAttribute("aria-label"));
  const pressed = (position, _, event) => {
    const next = position + (STEPS[event.key] ?? 0);
    if (event.key === "Enter") open(position);
    else if (next !== position && parts[next]) go(next);
    else return;
    event.preventDefault();
  };
  const handlers = { pointerover: tell, focusin: tell, click: open, keydown: pressed };
  // One listener for all parts: a thousand of each would take longer than to draw them.
  const drawn = parts[0]?.[0].ownerSVGElement;
  for (const [event, act] of Object.entries(handlers)) {
    drawn?.addEventListener(event, (happened) => {
      const element = happened.target.closest(".part");
      if (element) act(positions.get(element), element, happened);
    });
  }
}

/** Return the compared models, in the order of their colours. */
export const comparedIn = (state) => state.models.map((id) => byId.get(id));

/** Name the class of a model's colour: none where it is not one of those that stand out. */
export const colourOf = (chosen, index) =>
  chosen.includes(index) ? `s${chosen.indexOf(index)}` : "";

/** Draw an axis below, its lines from `top` to `bottom`, and say what it measures; one that is tall
 * has its numbers above, too, 16 units high. */
export function axisBelow(drawn, scale, { top, bottom, text, format, isTall = false }) {
  const [left, right] = scale.range();
  const isPower = (tick) => Number.isInteger(Math.log10(tick));
  const draw = (axis, y) => {
    if (scale.base) axis.tickValues(scale.ticks().filter(isPower));
    else if (scale.ticks) axis.ticks(Math.max(2, (right - left) / TICK));
    if (format) axis.tickFormat(format);
    axis.tickSizeOuter(0).tickPadding(6);
    drawn.append("g").attr("class", "axis").attr("transform", `translate(0,${y})`).call(axis);
  };
  draw(d3.axisBottom(scale).tickSizeInner(top - bottom), bottom);
  if (isTall) draw(d3.axisTop(scale).tickSizeInner(0), top);
  label(drawn, text, right, bottom + 36, { anchor: "end" });
}

/** Draw an axis on the left, its lines from `left` to `right`, and say what it measures. */
export function axisLeft(drawn, scale, { left, right, text, at = 12 }) {
  const axis = d3.axisLeft(scale).ticks(8).tickSize(left - right).tickPadding(6);
  drawn.append("g").attr("class", "axis").attr("transform", `translate(${left},0)`).call(axis);
  label(drawn, text, 8, at);
}

/** Draw a line from one point to another. */
export function stroke(drawn, kind, [x1, y1], [x2, y2]) {
  const line = drawn.append("line").attr("class", kind);
  return line.attr("x1", x1).attr("y1", y1).attr("x2", x2).attr("y2", y2);
}

/** Draw the sign of the model with a colour of its own. */
export function symbol(drawn, x, y, order, kind = "mark") {
  return drawn
    .append("path")
    .attr("class", `${kind} s${order}`)
    .attr("transform", `translate(${x},${y})`)
    .attr("d", d3.symbol(d3[SYMBOLS[order]], 55)());
}

const legendColumns = () => (area.isNarrow ? 1 : 2);

/** Return the height of a legend. */
export const legendHeight = (indexes) => LEGEND_STEP * Math.ceil(indexes.length / legendColumns());

/** Name the models with a colour of their own; `noteOf` returns what is added to a name. */
export function legend(drawn, indexes, left, noteOf = () => "") {
  const columns = legendColumns();
  const width = (area.width - left) / columns;
  indexes.forEach((index, order) => {
    const x = left + (order % columns) * width + 6;
    const y = 16 + LEGEND_STEP * Math.floor(order / columns);
    const more = noteOf(index, order);
    symbol(drawn, x, y - 4, order);
    const letters = Math.floor((width - 24) / LETTER) - more.length;
    label(drawn, `${shortened(models[index].name, letters)}${more}`, x + 12, y, { kind: "name" });
  });
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
