// Elements. A text of a contributor becomes a text node or an attribute, never markup.

const SVG = "http://www.w3.org/2000/svg";

/** Make an element. Children are elements or texts; what is null or undefined is left out. */
export function h(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** Make an element of a drawing. */
export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  // A redraw makes thousands of elements: loops leave no arrays for it to clear away.
  for (const name of Object.keys(attributes)) {
    const value = attributes[name];
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, String(value));
    }
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined) element.append(child);
  }
  return element;
}

/** Make a link to another site: it opens beside the board, which may be shown in a frame. */
export function outward(href, text, rel = "noopener") {
  return h("a", { href, target: "_blank", rel }, text);
}

export const byName = (id) => document.getElementById(id);

/** Fill a list of choices, pairs of value and text or of a heading and its pairs; choose one. */
export function options(select, choices, value) {
  const option = ([key, text]) =>
    Array.isArray(text)
      ? h("optgroup", { label: key }, ...text.map(option))
      : h("option", { value: key }, text);
  select.replaceChildren(...choices.map(option));
  if (value !== undefined) select.value = value;
  return select;
}

/** Make a table: a caption, for screen readers alone unless it is seen; one row of heads; rows. */
export function table(attributes, caption, heads, rows, { isSeen = false } = {}) {
  return h(
    "table",
    attributes,
    h("caption", { class: isSeen ? null : "unseen" }, caption),
    h("thead", {}, h("tr", {}, ...heads)),
    h("tbody", {}, ...rows),
  );
}

export function head(text, ...more) {
  return h("th", { scope: "col" }, text, ...more);
}

export function row(first, ...cells) {
  return h("tr", {}, h("th", { scope: "row" }, first), ...cells);
}

export function number(...children) {
  return h("td", { class: "number" }, ...children);
}

/** Wrap what may be wider than the screen; it can be scrolled with the keyboard, too. */
export function scroller(label, child, { isTall = false } = {}) {
  const name = isTall ? "scroller tall" : "scroller";
  return h("div", { class: name, role: "region", "aria-label": label, tabindex: 0 }, child);
}

export function hint(...text) {
  return h("p", { class: "hint" }, ...text);
}

/** Announce to people and screen readers what is shown. */
export function say(text) {
  const status = byName("status");
  if (status.textContent !== text) status.textContent = text;
}
