// The GENEB board. Data come as scripts (board-data.js and parts), so the page works from a disk.
// Text of contributors enters the page as text nodes and attributes only.
"use strict";

/* ---------------------------------------------------------------- data */

const STANDARD_SIZES = [null, 1e9, 5e8, 1e8, 2.5e7];
const TRUST = ["self-reported", "verified", "reproduced", "official"];
const SCORE_UNIT = 1e6; // a score is a whole number of these
const INTERVAL_UNIT = 1e4; // and an end of an interval of these
// With more cells a redraw takes longer than a tenth of a second; what fits one page stays whole.
const ROWS_PER_PAGE = 50;
const ROWS_OF_TASKS = 25;
const WIDE = 50; // columns
const COMPARED_MAX = 4;
const HEAT_STEPS = 16; // classes h0 to h15 of the stylesheet
const MACRO = "macro";
const MICRO = "micro";

const base = globalThis.geneb?.base;
const bench = base?.benchmark;
const models = base?.models ?? [];
const byId = new Map(models.map((model, index) => [model.id, index]));

// Scores of a row stand in the order macro, micro, categories; columns are found by their key.
const summaryColumns = bench
  ? [
      { key: MACRO, label: "Macro", place: 0, title: "Mean of the category means" },
      { key: MICRO, label: "Micro", place: 1, title: "Mean over all tasks" },
    ]
  : [];
const categoryColumns = (bench?.categories ?? []).map((name, index) => ({
  key: `category:${name}`,
  label: name,
  place: index + 2,
  title: `Mean of ${counted(bench.tasks.filter((task) => task.category === index).length, "task")}`,
}));
const taskColumns = (bench?.tasks ?? []).map((task, index) => ({
  key: `task:${task.id}`,
  label: task.label,
  task: index,
  category: task.category,
  title: `${task.id}, ${bench.categories[task.category]}`,
}));
const columnByKey = new Map(
  [...summaryColumns, ...categoryColumns, ...taskColumns].map((column) => [column.key, column]),
);
const regimeNames = { full: "All data", "10shot": "10-shot", "1shot": "1-shot" };

function regimeName(regime) {
  return Object.hasOwn(regimeNames, regime) ? regimeNames[regime] : regime;
}

const metricNames = { MCC: "MCC", Acc: "Accuracy", F1: "Macro-F1" };

function metricName(metric) {
  return Object.hasOwn(metricNames, metric) ? metricNames[metric] : metric;
}

// Only these scripts may ever be added: the policy of trusted types holds it, too.
const PART = /^(?:board-(?:tasks-[0-9]+|matrices|history)\.js|vendor\/d3\.min\.js)$/;
const scripts = globalThis.trustedTypes?.createPolicy("geneb", { createScriptURL: ownScript }) ?? {
  createScriptURL: ownScript,
};
const loading = new Map();

function ownScript(name) {
  if (!PART.test(name)) throw new TypeError(`${name} is no part of this page`);
  return name;
}

/** Load a script of this page once; the promise is rejected when it is not there. */
function load(name) {
  if (!loading.has(name)) {
    const element = document.createElement("script");
    const done = new Promise((resolve, reject) => {
      element.addEventListener("load", resolve);
      element.addEventListener("error", () => reject(new Error(`${name} could not be loaded`)));
    });
    element.src = scripts.createScriptURL(name);
    document.head.append(element);
    loading.set(name, done);
  }
  return loading.get(name);
}

const tasksPart = (regime) => `board-tasks-${bench.regimes.indexOf(regime)}.js`;
const tasksOf = (regime) => globalThis.geneb[`tasks${bench.regimes.indexOf(regime)}`];

/** Give the scores of all models in one column, as numbers; undefined where a model has gaps. */
function scoresIn(column, regime, metric) {
  const rows =
    column.task === undefined
      ? base.scores[bench.regimes.indexOf(regime)][metric]
      : tasksOf(regime).scores[metric];
  const place = column.task ?? column.place;
  return rows.map((row) => (row ? row[place] / SCORE_UNIT : undefined));
}

/** Give interval, ranks and tie group of a model in a column, as far as they are known. */
function standingOf(column, regime, metric, model) {
  if (metric !== bench.primary || !base.standings) return null;
  if (column.task !== undefined) {
    const ends = tasksOf(regime).intervals?.[model];
    if (!ends) return null;
    const [low, high] = ends.slice(2 * column.task, 2 * column.task + 2);
    return { low: low / INTERVAL_UNIT, high: high / INTERVAL_UNIT };
  }
  const row = base.standings[bench.regimes.indexOf(regime)][column.place][model];
  if (!row) return null;
  const [low, high, rank, rankLow, rankHigh, group] = row;
  return { low: low / INTERVAL_UNIT, high: high / INTERVAL_UNIT, rank, rankLow, rankHigh, group };
}

/** Give the rank of every model by score alone; equal scores share the better rank. */
function plainRanks(scores) {
  const order = scores.filter((score) => score !== undefined).sort((a, b) => b - a);
  const first = new Map();
  order.forEach((score, index) => first.has(score) || first.set(score, index + 1));
  return scores.map((score) => first.get(score));
}

/* ---------------------------------------------------------------- words and numbers */

function counted(count, noun) {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

function scoreText(score) {
  return score === undefined ? "none" : score.toFixed(3).replace("-", "−");
}

function intervalText(standing) {
  return `${scoreText(standing.low)} to ${scoreText(standing.high)}`;
}

function rangeText(low, high) {
  return low === high ? String(low) : `${low}–${high}`;
}

function sizeText(params) {
  if (!params) return "none";
  const [unit, letter] = params >= 1e9 ? [1e9, "B"] : params >= 1e6 ? [1e6, "M"] : [1e3, "K"];
  if (params < 1e3) return String(params);
  return `${Number((params / unit).toPrecision(3))}${letter}`;
}

function limitText(limit) {
  return limit === null ? "any size" : `at most ${sizeText(limit)}`;
}

/** Say a level with its evidence, never as a bare mark. */
function trustText(model) {
  const { audit, level } = model;
  if (!audit)
    return level === "official" ? "official: the authors' own file" : `${level}: not audited`;
  const verb = audit.agrees ? "audited" : "audit failed,";
  return `${level}: ${verb} ${audit.tasks}/${audit.of}, sandbox level ${audit.sandbox}, ${audit.date}`;
}

/** Give an address that may be linked to; contributors write what they like. */
function safeAddress(text) {
  if (!URL.canParse(text)) return null;
  const address = new URL(text);
  return address.protocol === "https:" && !address.username && !address.password ? address : null;
}

/* ---------------------------------------------------------------- state, in the address */

const CHOICES = {
  regime: () => bench.regimes,
  metric: () => bench.metrics,
  size: () => ["any", ...sizes().filter(Boolean).map(String)],
  trust: () => ["any", "verified"],
  level: () => levelChoices().map(([value]) => value),
  columns: () => columnChoices().map(([value]) => value),
  intervals: () => ["sorted", "all", "none"],
  scale: () => ["table", "column"],
  order: () => ["down", "up"],
};
const VIEWS = ["overview", "table", "plots", "compare", "model", "about"];
let state = null;

function defaults() {
  return {
    view: "overview",
    model: "",
    regime: bench.regimes[0],
    metric: bench.primary,
    size: "any",
    trust: "any",
    level: "any",
    columns: "categories",
    intervals: "sorted",
    scale: "table",
    q: "",
    sort: MACRO,
    order: "down",
    page: 1,
    need: "",
    y: MACRO,
    task: "",
    models: [],
  };
}

function sizes() {
  const known = base.advice
    ? [...new Set(base.advice.map((one) => one.max_params))]
    : STANDARD_SIZES;
  return known.includes(null) ? known : [null, ...known];
}

function levelChoices() {
  return [
    ["any", "any level"],
    ["verified+", "verified or more"],
    ["reproduced+", "reproduced or more"],
    ...["official", "reproduced", "verified", "self-reported", "stale", "disputed"].map((level) => [
      level,
      `${level} only`,
    ]),
  ];
}

function columnChoices() {
  return [
    ["categories", `${bench.categories.length} categories`],
    ["tasks", `all ${bench.tasks.length} tasks`],
    ...bench.categories.map((name) => [`tasks:${name}`, `tasks of ${name}`]),
  ];
}

/** Read the address; whatever does not exist falls back to what is usual. */
function readAddress() {
  const read = defaults();
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const [view, ...rest] = path.split("/");
  if (VIEWS.includes(view)) read.view = view;
  const given = new URLSearchParams(query);
  for (const [key, choices] of Object.entries(CHOICES)) {
    if (choices().includes(given.get(key))) read[key] = given.get(key);
  }
  read.q = (given.get("q") ?? "").slice(0, 100);
  read.page = Math.max(1, Number.parseInt(given.get("page") ?? "1", 10) || 1);
  if (bench.categories.includes(given.get("need"))) read.need = given.get("need");
  if (bench.tasks.some((task) => task.id === given.get("task"))) read.task = given.get("task");
  if (
    columnByKey.has(given.get("sort")) ||
    ["name", "params", "level"].includes(given.get("sort"))
  ) {
    read.sort = given.get("sort");
  }
  if ([...summaryColumns, ...categoryColumns].some((column) => column.key === given.get("y"))) {
    read.y = given.get("y");
  }
  read.models = [...new Set(given.getAll("m"))].filter((id) => byId.has(id)).slice(0, COMPARED_MAX);
  if (read.view === "model") read.model = decoded(rest.join("/"));
  return read;
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

/** Write a state as an address that says only what is not usual. */
function addressOf(change = {}) {
  const wanted = { ...state, ...change };
  const usual = defaults();
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(wanted)) {
    if (["view", "model", "models"].includes(key) || value === usual[key]) continue;
    query.set(key, String(value));
  }
  for (const id of wanted.models) query.append("m", id);
  const path = wanted.view === "model" ? `model/${encoded(wanted.model)}` : wanted.view;
  const text = query.toString();
  return `#/${path}${text ? `?${text}` : ""}`;
}

/** Change the state: a new view is a step back in the browser's history, a filter is not. */
function change(changes) {
  const address = addressOf(changes);
  const isStep = changes.view !== undefined && changes.view !== state.view;
  history[isStep ? "pushState" : "replaceState"](null, "", address);
  show();
}

/* ---------------------------------------------------------------- elements */

/** Make an element. Children are elements or texts; a text can never become markup. */
function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, String(value));
    }
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

const byName = (id) => document.getElementById(id);

function options(select, choices) {
  select.replaceChildren(...choices.map(([value, text]) => h("option", { value }, text)));
}

function modelLink(index, attributes = {}) {
  const model = models[index];
  const href = addressOf({ view: "model", model: model.id, task: "" });
  return h("a", { href, title: model.id, class: "model", dir: "auto", ...attributes }, model.name);
}

/** Wrap what may be wider than the screen; it can be scrolled with the keyboard, too. */
function scroller(label, ...children) {
  return h(
    "div",
    { class: "scroller", role: "region", "aria-label": label, tabindex: 0 },
    ...children,
  );
}

/** Let a long table scroll in itself, so that its head stays in sight. */
function tall(element) {
  element.classList.add("tall");
  return element;
}

function trustMark(model) {
  const { audit, level } = model;
  const evidence = audit
    ? `${audit.tasks}/${audit.of}, sandbox ${audit.sandbox}, ${audit.date}`
    : level === "official"
      ? "authors' file"
      : "not audited";
  return h(
    "span",
    { class: `trust ${level}`, title: trustText(model) },
    level,
    h("small", {}, evidence),
  );
}

function say(text) {
  const status = byName("status");
  if (status.textContent !== text) status.textContent = text;
}

/* ---------------------------------------------------------------- filters and order */

/** Give the models that the filters leave, by their places. */
function filtered() {
  const limit = state.size === "any" ? null : Number(state.size);
  const wanted = state.q.trim().toLowerCase();
  const places = base.scores[bench.regimes.indexOf(state.regime)][state.metric];
  return models
    .map((_, index) => index)
    .filter((index) => places[index])
    .filter((index) => limit === null || models[index].params <= limit)
    .filter((index) => hasLevel(models[index].level))
    .filter((index) => {
      const { id, name } = models[index];
      return !wanted || `${name} ${id}`.toLowerCase().includes(wanted);
    });
}

function hasLevel(level) {
  if (state.level === "any") return true;
  if (!state.level.endsWith("+")) return level === state.level;
  return TRUST.indexOf(level) >= TRUST.indexOf(state.level.slice(0, -1));
}

function shownColumns() {
  if (state.columns === "categories") return [...summaryColumns, ...categoryColumns];
  if (state.columns === "tasks") return [...summaryColumns, ...taskColumns];
  const category = bench.categories.indexOf(state.columns.slice("tasks:".length));
  const own = taskColumns.filter((column) => column.category === category);
  return [...summaryColumns, categoryColumns[category], ...own];
}

/** Give the column that ranks: the sorted one, or macro where names or sizes are sorted. */
function rankingColumn(columns) {
  return columns.find((column) => column.key === state.sort) ?? summaryColumns[0];
}

function sorted(places, ranking) {
  const sign = state.order === "up" ? 1 : -1;
  const name = (index) => models[index].name.toLowerCase();
  const keys = {
    name,
    params: (index) => models[index].params,
    level: (index) => TRUST.indexOf(models[index].level),
  };
  const scores = scoresIn(ranking, state.regime, state.metric);
  const key = keys[state.sort] ?? ((index) => scores[index]);
  const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
  return [...places].sort(
    (a, b) =>
      sign * compare(key(a), key(b)) || compare(scores[b], scores[a]) || compare(name(a), name(b)),
  );
}

/** Whether the view needs scores of tasks, which are a file of their own. */
function partsNeeded() {
  if (state.view === "table" && state.columns !== "categories") return [tasksPart(state.regime)];
  if (state.view === "model") {
    return [...bench.regimes.map(tasksPart), "board-matrices.js", "board-history.js"];
  }
  if (["plots", "compare"].includes(state.view)) return ["vendor/d3.min.js"];
  return [];
}

/* ---------------------------------------------------------------- overview: what to take */

function overview() {
  if (!base.advice) return [h("h2", {}, "Which model to take"), withoutAdvice()];
  return [
    h("h2", {}, "Which model to take"),
    misleading(),
    needForm(),
    h("div", { id: "answer", class: "answer" }, ...answer()),
    h("h3", {}, `For every need, ${regimeName(state.regime).toLowerCase()}`),
    h(
      "p",
      { class: "hint" },
      "Each cell names the smallest model among the best: the model with the highest MCC and all that ",
      "cannot be told from it. The best score and the number of such ties stand below it.",
    ),
    scroller("What to take for every category and size", needsTable()),
  ];
}

function withoutAdvice() {
  return h(
    "p",
    {},
    "This board was built without intervals, so nothing here says which differences are real. ",
    h("a", { href: addressOf({ view: "table" }) }, "See the scores"),
    ".",
  );
}

/** Say with the board's own figures why there is more than one answer. */
function misleading() {
  const winners = new Set(
    bench.categories.map((name) => adviceFor({ category: name, size: "any", trust: "any" })?.best),
  );
  const overall = adviceFor({ category: null, size: "any", trust: "any" });
  const pair = base.facts?.pairs.find((one) => one.regimes.includes(bench.regimes[0]));
  const parts = [];
  if (Number.isInteger(overall?.best)) {
    const wins = bench.categories.filter(
      (name) => adviceFor({ category: name, size: "any", trust: "any" })?.best === overall.best,
    ).length;
    parts.push(
      "First overall is ",
      modelLink(overall.best),
      `, yet it is first in ${wins} of ${bench.categories.length} categories; `,
      `${winners.size} models share the first places. `,
    );
  }
  if (pair) {
    parts.push(
      `Between ${regimeName(pair.regimes[0])} and ${regimeName(pair.regimes[1])}, ${pair.changed} of ${pair.categories} `,
      `first places change hands, ${pair.surely} of them surely.`,
    );
  }
  return h("p", { class: "lead" }, ...parts);
}

function needForm() {
  const select = h("select", {
    id: "need",
    onchange: (event) => change({ need: event.target.value }),
  });
  options(select, [
    ["", "a bit of everything (macro)"],
    ...bench.categories.map((name) => [name, name]),
  ]);
  select.value = state.need;
  return h("p", { class: "question" }, h("label", {}, "My sequences are about ", select));
}

/** Find the advice for a need; undefined where the board has none. */
function adviceFor({ category, size, trust, regime = state.regime }) {
  const limit = size === "any" ? null : Number(size);
  const level = trust === "any" ? null : trust;
  return adviceIndex().get(JSON.stringify([category, regime, limit, level]));
}

let adviceByNeed = null;

function adviceIndex() {
  adviceByNeed ??= new Map(
    base.advice.map((one) => [
      JSON.stringify([one.category, one.regime, one.max_params, one.level]),
      one,
    ]),
  );
  return adviceByNeed;
}

function answer() {
  const one = adviceFor({ category: state.need || null, size: state.size, trust: state.trust });
  if (!one || one.best === null) {
    return [
      h("h3", {}, "No model meets this"),
      h("p", {}, one?.why[0] ?? "No advice was built for this need."),
    ];
  }
  const key = state.need ? `category:${state.need}` : MACRO;
  const column = columnByKey.get(key);
  const ties = [one.best, ...one.ties];
  const compared = [...new Set([one.smallest, one.best, ...one.ties])].slice(0, COMPARED_MAX);
  return [
    h("h3", {}, one.ties.length ? "Take one of these" : "Take this one"),
    h(
      "dl",
      { class: "choices" },
      choice("Highest score", one.best, column),
      one.smallest === one.best ? null : choice("Smallest that ties with it", one.smallest, column),
    ),
    h("p", {}, tieSentence(one, ties.length)),
    one.ties.length
      ? h(
          "details",
          { class: "ties" },
          h("summary", {}, `All ${ties.length} that tie`),
          tieList(ties, column),
        )
      : null,
    h(
      "details",
      {},
      h("summary", {}, "Why"),
      h("ul", {}, ...one.why.map((text) => h("li", {}, text))),
    ),
    h(
      "p",
      { class: "actions" },
      compared.length > 1
        ? h(
            "a",
            { href: addressOf({ view: "compare", models: compared.map((i) => models[i].id) }) },
            "Compare them",
          )
        : null,
      h(
        "a",
        { href: addressOf({ view: "table", sort: key, order: "down", page: 1 }) },
        "See all scores",
      ),
    ),
  ];
}

function choice(label, index, column) {
  const model = models[index];
  const score = scoresIn(column, state.regime, bench.primary)[index];
  const standing = standingOf(column, state.regime, bench.primary, index);
  return h(
    "div",
    {},
    h("dt", {}, label),
    h(
      "dd",
      {},
      modelLink(index),
      h(
        "span",
        { class: "figure" },
        scoreText(score),
        standing ? h("small", {}, `95 % ${intervalText(standing)}`) : null,
      ),
      h("span", { class: "figure" }, sizeText(model.params), h("small", {}, "parameters")),
      trustMark(model),
    ),
  );
}

function tieSentence(one, count) {
  const of = `of ${counted(one.considered, "model")} that meet size and trust`;
  if (count === 1) return `It is the only choice ${of}: every other is surely below it.`;
  return `${count} ${of} cannot be told apart here: their scores differ by less than their uncertainty.`;
}

const TIES_SHOWN = 60; // a longer list helps nobody

function tieList(ties, column) {
  const scores = scoresIn(column, state.regime, bench.primary);
  const items = ties
    .slice(0, TIES_SHOWN)
    .map((index) =>
      h(
        "li",
        {},
        modelLink(index),
        ` ${scoreText(scores[index])}, ${sizeText(models[index].params)}`,
      ),
    );
  if (ties.length > TIES_SHOWN) items.push(h("li", {}, `and ${ties.length - TIES_SHOWN} more`));
  return h("ol", {}, ...items);
}

function needsTable() {
  const limits = sizes();
  const rows = [null, ...bench.categories];
  return h(
    "table",
    { class: "needs" },
    h("caption", { class: "unseen" }, "The smallest of the best models by category and size"),
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        h("th", { scope: "col" }, "Need"),
        ...limits.map((one) => h("th", { scope: "col" }, limitText(one))),
      ),
    ),
    h("tbody", {}, ...rows.map((category) => needsRow(category, limits))),
  );
}

function needsRow(category, limits) {
  const cells = limits.map((limit) => {
    const size = limit === null ? "any" : String(limit);
    const one = adviceFor({ category, size, trust: state.trust });
    const isAsked = (state.need || null) === category && state.size === size;
    if (!one || one.best === null) return h("td", { class: "none" }, "no model");
    const column = columnByKey.get(category === null ? MACRO : `category:${category}`);
    const best = scoresIn(column, state.regime, bench.primary)[one.best];
    const ties = one.ties.length
      ? `best ${scoreText(best)}, ${counted(one.ties.length, "tie")}`
      : `${scoreText(best)}, alone`;
    return h(
      "td",
      { class: isAsked ? "asked" : null },
      modelLink(one.smallest),
      h("small", {}, `${sizeText(models[one.smallest].params)} · ${ties}`),
    );
  });
  const label = category ?? "Everything (macro)";
  return h("tr", {}, h("th", { scope: "row" }, label), ...cells);
}

/* ---------------------------------------------------------------- table */

/** Gather all that the table shows: rows in order, scores by column, ranges of the colours. */
function tableContent() {
  const columns = shownColumns();
  if (columnByKey.has(state.sort) && !columns.some((column) => column.key === state.sort)) {
    state.sort = MACRO;
  }
  const ranking = rankingColumn(columns);
  const places = sorted(filtered(), ranking);
  const scores = columns.map((column) => scoresIn(column, state.regime, state.metric));
  const ranges = rangesOf(scores, places);
  const isLarge = columns.length > WIDE && places.length > ROWS_PER_PAGE;
  const perPage = isLarge ? ROWS_OF_TASKS : ROWS_PER_PAGE;
  const pages = Math.max(1, Math.ceil(places.length / perPage));
  const page = Math.min(state.page, pages);
  const ranks = plainRanks(scoresIn(ranking, state.regime, state.metric));
  return { columns, ranking, places, scores, ranges, perPage, pages, page, ranks };
}

function rangesOf(scores, places) {
  const own = scores.map((column) => {
    const values = places.map((index) => column[index]);
    return [
      values.reduce((a, b) => Math.min(a, b), Infinity),
      values.reduce((a, b) => Math.max(a, b), -Infinity),
    ];
  });
  if (state.scale === "column") return own;
  const whole = [Math.min(...own.map(([low]) => low)), Math.max(...own.map(([, high]) => high))];
  return own.map(() => whole);
}

function heat(score, [low, high]) {
  const share = high > low ? (score - low) / (high - low) : 0.5;
  return `h${Math.min(HEAT_STEPS - 1, Math.floor(share * HEAT_STEPS))}`;
}

function tableView() {
  const content = tableContent();
  const { columns, places, ranking, perPage, pages, page } = content;
  const first = (page - 1) * perPage;
  const shown = places.slice(first, first + perPage);
  const where = state.order === "up" ? "lowest first" : "highest first";
  const by = { name: "name", params: "size", level: "trust" }[state.sort] ?? ranking.label;
  say(
    `${places.length.toLocaleString("en")} of ${counted(models.length, "model")}, ${state.regime}, ${metricName(state.metric)}, by ${by}, ${where}`,
  );
  return [
    h("h2", {}, `${metricName(state.metric)}, ${regimeName(state.regime).toLowerCase()}`),
    tableNote(ranking),
    places.length ? legend(content) : null,
    places.length
      ? tall(scroller("Scores", scoreTable(content, shown, first)))
      : h("p", { class: "waiting" }, "No model passes these filters."),
    pages > 1 ? pager(page, pages, first, shown.length, places.length) : null,
    h(
      "p",
      { class: "actions" },
      h(
        "button",
        { type: "button", id: "csv", onclick: () => download("csv", content) },
        "Download these rows as CSV",
      ),
      h(
        "button",
        { type: "button", id: "json", onclick: () => download("json", content) },
        "Download these rows as JSON",
      ),
      columns.length > 20 ? h("span", { class: "hint" }, "All tasks: scroll sideways.") : null,
    ),
  ];
}

function tableNote(ranking) {
  const hasGroups = state.metric === bench.primary && base.standings && ranking.task === undefined;
  const text = hasGroups
    ? `Ranks are by ${ranking.label}, among all models of the board. “Could be” is the rank's interval; models of one tie group cannot be told from the best of the group.`
    : state.metric !== bench.primary
      ? `Intervals and tie groups are known for ${metricName(bench.primary)} only.`
      : base.standings
        ? "Tasks have intervals, but no tie groups."
        : "This board was built without intervals and tie groups.";
  return h("p", { class: "hint" }, text);
}

function legend({ ranges }) {
  const steps = Array.from({ length: HEAT_STEPS }, (_, step) => h("i", { class: `h${step}` }));
  const [low, high] = ranges[0];
  const ends =
    state.scale === "column"
      ? ["lowest of a column", "highest"]
      : [scoreText(low), scoreText(high)];
  return h(
    "p",
    { class: "legend" },
    h("span", {}, ends[0]),
    h("span", { class: "ramp", "aria-hidden": "true" }, ...steps),
    h("span", {}, ends[1]),
  );
}

function scoreTable(content, shown, first) {
  const { columns, ranking, places } = content;
  const hasGroups =
    state.metric === bench.primary && base.standings !== null && ranking.task === undefined;
  const groups = state.columns === "tasks" ? [categoryHeads(columns, hasGroups)] : [];
  return h(
    "table",
    { class: "scores", "aria-rowcount": places.length + 1 + groups.length },
    h("caption", { class: "unseen" }, `${metricName(state.metric)} by model, ${state.regime}`),
    h("thead", {}, ...groups, h("tr", {}, ...heads(columns, hasGroups, ranking))),
    h(
      "tbody",
      {},
      ...shown.map((index, row) =>
        scoreRow(content, index, first + row + 2 + groups.length, hasGroups),
      ),
    ),
  );
}

/** Name the category above its tasks. */
function categoryHeads(columns, hasGroups) {
  const spans = [h("td", { colspan: (hasGroups ? 4 : 3) + 3 })];
  bench.categories.forEach((name, index) => {
    const count = columns.filter((column) => column.category === index).length;
    if (count) spans.push(h("th", { scope: "colgroup", colspan: count }, name));
  });
  return h("tr", { class: "above" }, ...spans);
}

function heads(columns, hasGroups, ranking) {
  return [
    h("th", { scope: "col", class: "pick" }, h("span", { class: "unseen" }, "Compare")),
    h("th", { scope: "col", class: "rank" }, "Rank", h("small", {}, `by ${ranking.label}`)),
    hasGroups ? h("th", { scope: "col", class: "group" }, "Tie group") : null,
    sortHead("name", "Model", "name"),
    sortHead("params", "Size", "parameters", "sized"),
    sortHead("level", "Trust", "trust level and its evidence", "trusted"),
    ...columns.map((column) => sortHead(column.key, column.label, column.title)),
  ];
}

function sortHead(key, label, title, className = null) {
  const isSorted = state.sort === key;
  const direction = state.order === "up" ? "ascending" : "descending";
  const usual = key === "name" ? "up" : "down";
  const next = isSorted ? (state.order === "up" ? "down" : "up") : usual;
  const arrow = isSorted ? (state.order === "up" ? "▲" : "▼") : "";
  return h(
    "th",
    {
      scope: "col",
      class: `${key === "name" ? "name" : ""} ${className ?? ""}`.trim() || null,
      "aria-sort": isSorted ? direction : null,
    },
    h(
      "button",
      {
        type: "button",
        title,
        "data-focus": `sort ${key}`,
        onclick: () => change({ sort: key, order: next, page: 1 }),
      },
      label,
      h("span", { class: "arrow", "aria-hidden": "true" }, arrow),
    ),
  );
}

function scoreRow(content, index, position, hasGroups) {
  const { columns, ranking, scores, ranges, ranks } = content;
  const standing = standingOf(ranking, state.regime, state.metric, index);
  const rank = standing?.rank ?? ranks[index];
  const could = standing?.rank ? rangeText(standing.rankLow, standing.rankHigh) : null;
  return h(
    "tr",
    { "aria-rowindex": position, class: hasGroups ? (standing.group % 2 ? "odd" : "even") : null },
    h("td", { class: "pick" }, pickBox(index)),
    h(
      "td",
      { class: "rank" },
      String(rank),
      could ? h("small", {}, h("span", { class: "unseen" }, "could be "), could) : null,
    ),
    hasGroups ? h("td", { class: "group" }, String(standing.group)) : null,
    h("th", { scope: "row", class: "name" }, modelLink(index), narrowFacts(models[index])),
    h("td", { class: "number sized" }, sizeText(models[index].params)),
    h("td", { class: "trusted" }, trustMark(models[index])),
    ...columns.map((column, place) =>
      scoreCell(column, index, scores[place][index], ranges[place]),
    ),
  );
}

/** Say size and trust below the name, for screens that have no room for columns of their own. */
function narrowFacts(model) {
  return h(
    "small",
    { class: "narrow", "aria-hidden": "true" },
    `${sizeText(model.params)}, ${trustText(model)}`,
  );
}

function scoreCell(column, index, score, range) {
  const isWanted =
    state.intervals === "all" || (state.intervals === "sorted" && column.key === state.sort);
  const standing = isWanted ? standingOf(column, state.regime, state.metric, index) : null;
  return h(
    "td",
    { class: `heat ${heat(score, range)}` },
    scoreText(score),
    standing ? h("small", {}, `${scoreText(standing.low)}–${scoreText(standing.high)}`) : null,
  );
}

function pickBox(index) {
  const { id, name } = models[index];
  return h("input", {
    type: "checkbox",
    "aria-label": `Compare ${name}`,
    "data-focus": `pick ${id}`,
    checked: state.models.includes(id),
    onchange: (event) => pick(id, event.target.checked),
  });
}

/** Put a model among the compared ones or take it out. */
function pick(id, isWanted) {
  const others = state.models.filter((other) => other !== id);
  if (isWanted && others.length === COMPARED_MAX) {
    change({});
    say(`${COMPARED_MAX} models are compared already: take one out first.`);
    return;
  }
  change({ models: isWanted ? [...others, id] : others });
}

function pager(page, pages, first, count, total) {
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
  return h(
    "nav",
    { class: "pager", "aria-label": "Pages of the table" },
    button("First", page > 1 ? 1 : 0, "page first"),
    button("Previous", page - 1, "page previous"),
    h("span", {}, `${first + 1} to ${first + count} of ${total.toLocaleString("en")}`),
    button("Next", page + 1, "page next"),
    button("Last", page < pages ? pages : pages + 1, "page last"),
  );
}

/* ---------------------------------------------------------------- downloads */

const FORMULA = /^[=+\-@\t\r]/; // a spreadsheet would run a text that begins so

function csvField(value) {
  if (typeof value === "number") return String(value);
  const text = FORMULA.test(value) ? `'${value}` : value;
  return `"${text.replaceAll('"', '""')}"`;
}

function downloadRows({ columns, places, scores, ranks, ranking }) {
  return places.map((index) => {
    const { id, name, params, level } = models[index];
    const standing = standingOf(ranking, state.regime, state.metric, index);
    const row = { model: id, display: name, params, level, trust: trustText(models[index]) };
    row[`rank by ${ranking.label}`] = standing?.rank ?? ranks[index];
    if (standing?.rank) {
      Object.assign(row, {
        "rank from": standing.rankLow,
        "rank to": standing.rankHigh,
        "tie group": standing.group,
      });
    }
    columns.forEach((column, place) => {
      const name = column.task === undefined ? column.label : bench.tasks[column.task].id;
      row[name] = scores[place][index];
      const ends = standingOf(column, state.regime, state.metric, index);
      if (ends) Object.assign(row, { [`${name} low`]: ends.low, [`${name} high`]: ends.high });
    });
    return row;
  });
}

function download(kind, content) {
  const rows = downloadRows(content);
  const name = `geneb-${state.regime}-${state.metric}.${kind}`;
  if (kind === "json") {
    const { regime, metric } = state;
    const benchmark = { name: bench.name, sha256: bench.sha256 };
    save(name, "application/json", JSON.stringify({ benchmark, regime, metric, rows }, null, 1));
    return;
  }
  const keys = Object.keys(rows[0] ?? { model: "" });
  const lines = [
    keys.map(csvField),
    ...rows.map((row) => keys.map((key) => csvField(row[key] ?? ""))),
  ];
  save(name, "text/csv", `${lines.map((line) => line.join(",")).join("\r\n")}\r\n`);
}

function save(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }));
  const link = h("a", { href: address, download: name, hidden: true });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/* ---------------------------------------------------------------- one model */

function modelView() {
  const index = byId.get(state.model);
  if (index === undefined) {
    return [
      h("h2", {}, "No such model"),
      h("p", {}, "The board has no model ", h("q", { dir: "auto" }, state.model), "."),
      h("p", {}, h("a", { href: addressOf({ view: "table", model: "" }) }, "See all models")),
    ];
  }
  const model = models[index];
  return [
    h("h2", { dir: "auto" }, model.name),
    facts(model),
    h("p", { class: "actions" }, pickButton(model.id)),
    h("h3", {}, `Scores by category, ${metricName(state.metric)}`),
    scroller("Scores by category", modelCategories(index)),
    h("h3", {}, `Scores by task, ${metricName(state.metric)}`),
    scroller("Scores by task", modelTasks(index)),
    ...matrixSection(index),
    ...historySection(model.id),
  ];
}

function facts(model) {
  const address = safeAddress(model.url);
  const link = address
    ? h("a", { href: address.href, rel: "noopener noreferrer nofollow ugc" }, model.url)
    : model.url || "not given";
  const pairs = [
    ["Model id", h("code", {}, model.id)],
    [
      "Parameters",
      model.params ? `${sizeText(model.params)} (${model.params.toLocaleString("en")})` : "none",
    ],
    ["Trust", h("span", { class: `trust ${model.level}` }, trustText(model))],
    model.official && model.level !== "official" ? ["File", "the authors' own"] : null,
    ["Address", link],
    [
      "Zero-shot",
      model.zero_shot
        ? "yes: saw no sequence of any task in training, as submitted"
        : "no, as submitted",
    ],
    ["Training data", model.training || "not given"],
    ["Submitted by", model.by || "not given"],
  ].filter(Boolean);
  return h(
    "dl",
    { class: "facts" },
    ...pairs.map(([term, text]) => h("div", {}, h("dt", {}, term), h("dd", { dir: "auto" }, text))),
  );
}

function pickButton(id) {
  const isPicked = state.models.includes(id);
  return h(
    "button",
    {
      type: "button",
      "data-focus": "pick",
      "aria-pressed": isPicked,
      onclick: () => pick(id, !isPicked),
    },
    isPicked ? "Take out of the comparison" : "Add to the comparison",
  );
}

function scoreWithInterval(column, regime, index) {
  const score = scoresIn(column, regime, state.metric)[index];
  if (score === undefined) return [h("td", { class: "none" }, "gaps"), h("td", {}, "")];
  const standing = standingOf(column, regime, state.metric, index);
  const rank = standing?.rank ?? plainRanks(scoresIn(column, regime, state.metric))[index];
  const could = standing?.rank
    ? `${rangeText(standing.rankLow, standing.rankHigh)}, group ${standing.group}`
    : null;
  return [
    h(
      "td",
      { class: `heat ${heat(score, [0, 1])}` },
      scoreText(score),
      standing ? h("small", {}, `${scoreText(standing.low)}–${scoreText(standing.high)}`) : null,
    ),
    h("td", { class: "rank" }, String(rank), could ? h("small", {}, could) : null),
  ];
}

function regimeHeads() {
  return bench.regimes.flatMap((regime) => [
    h("th", { scope: "col" }, regime),
    h("th", { scope: "col", class: "rank" }, "Rank", h("small", {}, regime)),
  ]);
}

function modelCategories(index) {
  const columns = [...summaryColumns, ...categoryColumns];
  const row = (column) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, column.label),
      ...bench.regimes.flatMap((regime) => scoreWithInterval(column, regime, index)),
    );
  return h(
    "table",
    {},
    h("caption", { class: "unseen" }, "Scores, intervals and ranks by category and regime"),
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Category"), ...regimeHeads())),
    h("tbody", {}, ...columns.map(row)),
  );
}

function modelTasks(index) {
  const row = (column) => {
    const task = bench.tasks[column.task];
    return h(
      "tr",
      {},
      h("th", { scope: "row", title: task.id }, task.label),
      h("td", {}, bench.categories[task.category]),
      h("td", { class: "number" }, task.n ? task.n.toLocaleString("en") : ""),
      ...bench.regimes.flatMap((regime) => scoreWithInterval(column, regime, index)),
    );
  };
  return h(
    "table",
    {},
    h("caption", { class: "unseen" }, "Scores, intervals and ranks by task and regime"),
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        h("th", { scope: "col" }, "Task"),
        h("th", { scope: "col" }, "Category"),
        h("th", { scope: "col" }, "Test sequences"),
        ...regimeHeads(),
      ),
    ),
    h("tbody", {}, ...taskColumns.map(row)),
  );
}

/* Confusion matrices follow from the scores where a task has two classes of known sizes. */

function matrixSection(index) {
  const part = globalThis.geneb.matrices;
  const regimes = Object.keys(part.regimes);
  if (!regimes.length || !part.tasks.length) return [];
  const places = part.tasks;
  const wanted = bench.tasks.findIndex((task) => task.id === state.task);
  const at = Math.max(0, places.indexOf(wanted));
  const select = h("select", {
    id: "matrix",
    onchange: (event) => change({ task: event.target.value }),
  });
  options(
    select,
    places.map((place) => [
      bench.tasks[place].id,
      `${bench.tasks[place].label} (${bench.categories[bench.tasks[place].category]})`,
    ]),
  );
  select.value = bench.tasks[places[at]].id;
  return [
    h("h3", {}, "Confusion matrices"),
    h(
      "p",
      { class: "hint" },
      `Recovered from the printed scores of ${counted(places.length, "task")} with two classes, one fit each. `,
      "The benchmark says how large the classes are, not which is which.",
    ),
    h("p", {}, h("label", {}, "Task ", select)),
    ...regimes.map((regime) => matrixOf(regime, index, at, bench.tasks[places[at]])),
  ];
}

function matrixOf(regime, index, at, task) {
  const [count, small, large] = globalThis.geneb.matrices.regimes[regime][index].slice(
    3 * at,
    3 * at + 3,
  );
  if (!count) return h("p", {}, `${regime}: no matrix gives these scores.`);
  const [n, m] = task.counts;
  const row = (label, cells) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, label),
      ...cells.map((cell) => h("td", { class: "number" }, cell.toLocaleString("en"))),
    );
  const found =
    count === 1
      ? "the only matrix with these scores"
      : `the nearest of ${count.toLocaleString("en")} matrices with these scores`;
  return h(
    "table",
    { class: "matrix" },
    h("caption", {}, `${task.label}, ${regime}: ${found}`),
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        h("th", { scope: "col" }, "True class"),
        h("th", { scope: "col" }, "said: smaller"),
        h("th", { scope: "col" }, "said: larger"),
        h("th", { scope: "col" }, "recall"),
      ),
    ),
    h(
      "tbody",
      {},
      recallRow(row, "smaller", [small, n - small], small / n),
      recallRow(row, "larger", [m - large, large], large / m),
    ),
  );
}

function recallRow(row, label, cells, recall) {
  const made = row(label, cells);
  made.append(h("td", { class: "number" }, scoreText(recall)));
  return made;
}

function historySection(id) {
  const events = globalThis.geneb.history?.filter((event) => event.model === id);
  if (!events) return [];
  const item = (event) =>
    h(
      "li",
      {},
      h("time", { datetime: event.when }, event.when.slice(0, 10)),
      ` ${event.kind}`,
      event.level
        ? `, ${event.former_level && event.former_level !== event.level ? `${event.former_level} to ${event.level}` : event.level}`
        : "",
      ": ",
      h("span", { dir: "auto" }, event.why),
      h("small", {}, `by ${event.who}, commit ${event.commit.slice(0, 10)}`),
    );
  return [h("h3", {}, "History"), h("ol", { class: "history" }, ...events.map(item))];
}

/* ---------------------------------------------------------------- comparison */

function compareView() {
  const places = state.models.map((id) => byId.get(id));
  const parts = [
    h("h2", {}, "Comparison"),
    addForm(places.length),
    places.length
      ? h("ul", { class: "compared" }, ...places.map(comparedItem))
      : h(
          "p",
          { class: "hint" },
          `Add up to ${COMPARED_MAX} models here, or tick them in the table.`,
        ),
  ];
  const ranked = places.filter((index) => isRanked(index));
  if (ranked.length < places.length) {
    parts.push(h("p", { class: "hint" }, "A model with gaps in this regime is left out of it."));
  }
  if (!ranked.length) return parts;
  const figure = chart("profile", "Category profile", profileCaption(), (box) =>
    drawProfile(box, ranked),
  );
  return [
    ...parts,
    figure,
    h("h3", {}, `${metricName(state.metric)}, ${regimeName(state.regime).toLowerCase()}`),
    compareNote(),
    scroller("Comparison", compareTable(ranked)),
  ];
}

function isRanked(index) {
  return base.scores[bench.regimes.indexOf(state.regime)][state.metric][index] !== null;
}

function profileCaption() {
  const bars = state.metric === bench.primary && base.standings ? " Bars are 95 % intervals." : "";
  return `${metricName(state.metric)} by category, ${state.regime}.${bars}`;
}

function addForm(count) {
  const input = h("input", {
    id: "add",
    list: "names",
    autocomplete: "off",
    "data-focus": "add",
    disabled: count >= COMPARED_MAX,
  });
  const names = h(
    "datalist",
    { id: "names" },
    ...models.map(({ id, name }) => h("option", { value: id }, name)),
  );
  const add = (event) => {
    event.preventDefault();
    const wanted = input.value.trim();
    const found =
      models.find(({ id }) => id === wanted) ?? models.find(({ name }) => name === wanted);
    if (found) pick(found.id, true);
    else say("No model has this name: choose one from the list.");
  };
  return h(
    "form",
    { class: "add", onsubmit: add },
    h("label", {}, "Model ", input),
    names,
    h("button", { type: "submit", disabled: count >= COMPARED_MAX }, "Add"),
  );
}

function comparedItem(index, order) {
  const { id, name } = models[index];
  return h(
    "li",
    {},
    h("span", { class: `swatch s${order}`, "aria-hidden": "true" }, MARKS[order]),
    modelLink(index),
    h("span", { class: "figure" }, sizeText(models[index].params)),
    trustMark(models[index]),
    h(
      "button",
      { type: "button", "aria-label": `Remove ${name}`, onclick: () => pick(id, false) },
      "Remove",
    ),
  );
}

function compareNote() {
  const text =
    state.metric === bench.primary && base.standings
      ? "Bold is the best of these; “near” marks a score whose interval overlaps that of the best."
      : "Bold is the best of these.";
  return h("p", { class: "hint" }, text);
}

function compareTable(places) {
  const columns = [...summaryColumns, ...categoryColumns];
  return h(
    "table",
    { class: "comparison" },
    h("caption", { class: "unseen" }, "Scores of the compared models by category"),
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        h("th", { scope: "col" }, "Category"),
        ...places.map((index) => h("th", { scope: "col" }, modelLink(index))),
      ),
    ),
    h("tbody", {}, ...columns.map((column) => compareRow(column, places))),
  );
}

function compareRow(column, places) {
  const scores = scoresIn(column, state.regime, state.metric);
  const best = places.reduce((a, b) => (scores[b] > scores[a] ? b : a));
  const limit = standingOf(column, state.regime, state.metric, best)?.low;
  const cell = (index) => {
    const standing = standingOf(column, state.regime, state.metric, index);
    const isNear = index !== best && standing !== null && standing.high >= limit;
    return h(
      "td",
      { class: `heat ${heat(scores[index], [0, 1])}` },
      h(index === best ? "strong" : "span", {}, scoreText(scores[index])),
      isNear ? " near" : null,
      standing ? h("small", {}, `${scoreText(standing.low)}–${scoreText(standing.high)}`) : null,
    );
  };
  return h("tr", {}, h("th", { scope: "row" }, column.label), ...places.map(cell));
}

/* ---------------------------------------------------------------- plots */

const MARKS = ["●", "■", "▲", "◆"];
const FLOW_MAX = 45; // lines in the rank flow; more cannot be told apart
const LABELLED_MAX = 14;

/** Frame a chart: its name and text for all readers, the figures as a table for who wants them. */
function chart(name, title, caption, draw, data = null) {
  const box = h("div", { class: "chart", id: `chart-${name}` });
  draw(box, title);
  return h(
    "figure",
    { class: "plot" },
    h("h3", {}, title),
    scroller(title, box),
    h("p", { class: "pointed", id: `pointed-${name}` }, " "),
    h("figcaption", {}, caption),
    data
      ? h(
          "details",
          {},
          h("summary", {}, "The figures of this plot"),
          scroller(`Figures: ${title}`, data),
        )
      : null,
  );
}

function point(name, text) {
  byName(`pointed-${name}`).textContent = text || " ";
}

function svgIn(box, title, width, height) {
  return d3
    .select(box)
    .append("svg")
    .attr("viewBox", `0 0 ${width} ${height}`)
    .attr("role", "img")
    .attr("aria-label", `${title}: the figures stand in a table below`);
}

function plotsView() {
  const places = filtered();
  const regimes = state.regime;
  say(
    `${places.length.toLocaleString("en")} of ${counted(models.length, "model")} in the plots, ${regimes}, ${metricName(state.metric)}`,
  );
  if (!places.length)
    return [h("h2", {}, "Plots"), h("p", { class: "waiting" }, "No model passes these filters.")];
  const column = columnByKey.get(state.y);
  const compared = profiled(places);
  const flow = flowRows(places, column);
  const left =
    places.length > flow.length
      ? ` The first ${flow.length} of ${places.length.toLocaleString("en")} are drawn.`
      : "";
  return [
    h("h2", {}, "Plots"),
    h("p", { class: "question" }, h("label", {}, "Score ", columnSelect())),
    chart(
      "size",
      "Score against size",
      sizeCaption(column),
      (box, title) => drawSizes(box, title, places, column),
      sizeTable(places, column),
    ),
    chart(
      "flow",
      "Rank flow between regimes",
      `Ranks by ${column.label} among the models drawn, ${metricName(state.metric)}.${left} Coloured: ${compared.text}.`,
      (box, title) => drawFlow(box, title, flow, compared.places),
      flowTable(flow),
    ),
    chart(
      "profile",
      "Category profile",
      `${profileCaption()} Shown: ${compared.text}.`,
      (box) => drawProfile(box, compared.places),
      compareTable(compared.places),
    ),
  ];
}

function columnSelect() {
  const select = h("select", { id: "y", onchange: (event) => change({ y: event.target.value }) });
  options(
    select,
    [...summaryColumns, ...categoryColumns].map(({ key, label }) => [key, label]),
  );
  select.value = state.y;
  return select;
}

/** The compared models, or the best by the plotted score where none is compared. */
function profiled(places) {
  const chosen = state.models.map((id) => byId.get(id)).filter((index) => isRanked(index));
  if (chosen.length) return { places: chosen, text: "the compared models" };
  const scores = scoresIn(columnByKey.get(state.y), state.regime, state.metric);
  const best = [...places].sort((a, b) => scores[b] - scores[a]).slice(0, COMPARED_MAX);
  return { places: best, text: `the best ${best.length}; compare models to choose others` };
}

/** Models better than all that are no larger, smallest first; those without parameters are left out. */
function frontOf(places, scores) {
  const order = places
    .filter((index) => models[index].params > 0)
    .sort((a, b) => models[a].params - models[b].params || scores[b] - scores[a]);
  let best = -Infinity;
  return order.filter((index) => {
    if (scores[index] <= best) return false;
    best = scores[index];
    return true;
  });
}

function sizeCaption(column) {
  return `${column.label} ${metricName(state.metric)}, ${state.regime}, against parameters (logarithmic). The line is the Pareto front: no smaller model scores as high.`;
}

function sizeTable(places, column) {
  const scores = scoresIn(column, state.regime, state.metric);
  const front = new Set(frontOf(places, scores));
  const order = [...places].sort((a, b) => models[a].params - models[b].params);
  const row = (index) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, modelLink(index)),
      h("td", { class: "number" }, sizeText(models[index].params)),
      h("td", { class: "number" }, scoreText(scores[index])),
      h("td", {}, front.has(index) ? "yes" : ""),
    );
  return h(
    "table",
    { id: "sizes" },
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        ...["Model", "Size", column.label, "On the front"].map((text) =>
          h("th", { scope: "col" }, text),
        ),
      ),
    ),
    h("tbody", {}, ...order.map(row)),
  );
}

function drawSizes(box, title, places, column) {
  const [width, height, left, bottom] = [860, 420, 56, 46];
  const scores = scoresIn(column, state.regime, state.metric);
  const sized = places.filter((index) => models[index].params > 0);
  const svg = svgIn(box, title, width, height);
  const x = d3
    .scaleLog(
      d3.extent(sized, (index) => models[index].params),
      [left + 16, width - 30],
    )
    .nice();
  const y = d3
    .scaleLinear(
      d3.extent(sized, (index) => scores[index]),
      [height - bottom, 30],
    )
    .nice();
  axis(
    svg,
    `translate(0,${height - bottom})`,
    d3.axisBottom(x).ticks(6, (value) => sizeText(value)),
  );
  axis(svg, `translate(${left},0)`, d3.axisLeft(y).ticks(8));
  svg
    .append("text")
    .attr("class", "label")
    .attr("x", width - 30)
    .attr("y", height - 8)
    .attr("text-anchor", "end")
    .text("parameters");
  svg
    .append("text")
    .attr("class", "label")
    .attr("x", 8)
    .attr("y", 12)
    .text(`${metricName(state.metric)}, ${column.label}`);
  const front = frontOf(sized, scores);
  const line = d3
    .line(
      (index) => x(models[index].params),
      (index) => y(scores[index]),
    )
    .curve(d3.curveStepAfter);
  svg.append("path").attr("class", "front").attr("d", line(front));
  const compared = state.models.map((id) => byId.get(id));
  svg
    .selectAll("circle")
    .data(sized)
    .join("circle")
    .attr("class", (index) => dotClass(index, front, compared))
    .attr("cx", (index) => x(models[index].params))
    .attr("cy", (index) => y(scores[index]))
    .attr("r", (index) => (front.includes(index) || compared.includes(index) ? 6 : 4.5))
    .on("pointerenter", (_, index) => point("size", dotText(index, scores, column)))
    .on("click", (_, index) => change({ view: "model", model: models[index].id }));
  const position = (index) => [x(models[index].params), y(scores[index])];
  labels(
    svg,
    [...new Set([...compared.filter((index) => sized.includes(index)), ...[...front].reverse()])],
    position,
    sized.map(position),
    width,
  );
}

function dotClass(index, front, compared) {
  const order = compared.indexOf(index);
  if (order >= 0) return `dot s${order}`;
  return front.includes(index) ? "dot on-front" : "dot";
}

function dotText(index, scores, column) {
  const standing = standingOf(column, state.regime, state.metric, index);
  const interval = standing ? ` (${intervalText(standing)})` : "";
  return `${models[index].name}: ${scoreText(scores[index])}${interval}, ${sizeText(models[index].params)}`;
}

function axis(svg, transform, made) {
  svg.append("g").attr("class", "axis").attr("transform", transform).call(made);
}

/** Write names beside points, as far as they cover neither each other nor, if possible, a point. */
function labels(svg, places, position, points, width) {
  const taken = [];
  const covers = ([a, b, length]) =>
    points.filter(([x, y]) => x > a - 5 && x < a + length + 5 && y > b - 14 && y < b + 5).length;
  for (const index of places.slice(0, LABELLED_MAX)) {
    const text = shortened(models[index].name);
    const [x, y] = position(index);
    const length = text.length * 6.2;
    const spots = [
      [x + 9, y + 16],
      [x - 9 - length, y - 8],
      [x + 9, y - 8],
      [x - 9 - length, y + 16],
      [x - length / 2, y - 16],
      [x - length / 2, y + 24],
    ];
    const [spot] = spots
      .filter(
        ([a, b]) =>
          a > 60 &&
          a + length < width &&
          b > 14 &&
          !taken.some(([c, d, l]) => a < c + l && c < a + length && Math.abs(b - d) < 13),
      )
      .sort((one, other) => covers([...one, length]) - covers([...other, length]));
    if (!spot) continue;
    taken.push([...spot, length]);
    svg.append("text").attr("class", "name").attr("x", spot[0]).attr("y", spot[1]).text(text);
  }
}

function shortened(name, most = 26) {
  const letters = [...name];
  return letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : name;
}

/** Give the best models that all regimes rank, and their ranks among each other in every regime. */
function flowRows(places, column) {
  const scores = bench.regimes.map((regime) => scoresIn(column, regime, state.metric));
  const now = scores[bench.regimes.indexOf(state.regime)];
  const drawn = places
    .filter((index) => scores.every((row) => row[index] !== undefined))
    .sort((a, b) => now[b] - now[a])
    .slice(0, FLOW_MAX);
  const ranks = scores.map((row) => plainRanks(drawn.map((index) => row[index])));
  return drawn.map((index, order) => ({ index, ranks: ranks.map((row) => row[order]) }));
}

function flowTable(flow) {
  const row = ({ index, ranks }) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, modelLink(index)),
      ...ranks.map((rank) => h("td", { class: "number" }, String(rank))),
    );
  return h(
    "table",
    { id: "flows" },
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        h("th", { scope: "col" }, "Model"),
        ...bench.regimes.map((regime) => h("th", { scope: "col" }, regime)),
      ),
    ),
    h("tbody", {}, ...flow.map(row)),
  );
}

function drawFlow(box, title, flow, compared) {
  const [width, side, top, step] = [860, 220, 34, 17];
  const depth = Math.max(...flow.flatMap(({ ranks }) => ranks));
  const squeeze = Math.min(1, (FLOW_MAX * 1.2) / depth);
  const height = top + depth * step * squeeze + 12;
  const svg = svgIn(box, title, width, height);
  const x = d3.scalePoint(bench.regimes, [side, width - side]);
  const y = (rank) => top + (rank - 0.5) * step * squeeze;
  bench.regimes.forEach((regime) => {
    svg
      .append("text")
      .attr("class", "label")
      .attr("x", x(regime))
      .attr("y", 16)
      .attr("text-anchor", "middle")
      .text(regime);
    svg
      .append("line")
      .attr("class", "rule")
      .attr("x1", x(regime))
      .attr("x2", x(regime))
      .attr("y1", top - 8)
      .attr("y2", height - 6);
  });
  const path = d3
    .line(
      (_, order) => x(bench.regimes[order]),
      (rank) => y(rank),
    )
    .curve(d3.curveBumpX);
  const order = [...flow].sort((a, b) => compared.includes(a.index) - compared.includes(b.index));
  for (const one of order) drawFlowLine(svg, one, path, x, y, compared.indexOf(one.index));
}

function drawFlowLine(svg, { index, ranks }, path, x, y, place) {
  const group = svg
    .append("g")
    .attr("class", place >= 0 ? `flow s${place}` : "flow")
    .on("pointerenter", () =>
      point(
        "flow",
        `${models[index].name}: ${bench.regimes.map((regime, i) => `${regime} ${ranks[i]}`).join(", ")}`,
      ),
    )
    .on("click", () => change({ view: "model", model: models[index].id }));
  group.append("path").attr("class", "reach").attr("d", path(ranks));
  group.append("path").attr("class", "line").attr("d", path(ranks));
  ranks.forEach((rank, order) =>
    group.append("circle").attr("r", 3.5).attr("cx", x(bench.regimes[order])).attr("cy", y(rank)),
  );
  const name = shortened(models[index].name, 28);
  const end = ranks.length - 1;
  group
    .append("text")
    .attr("class", "name")
    .attr("text-anchor", "end")
    .attr("x", x(bench.regimes[0]) - 10)
    .attr("y", y(ranks[0]) + 4)
    .text(`${name}  ${ranks[0]}`);
  group
    .append("text")
    .attr("class", "name")
    .attr("x", x(bench.regimes[end]) + 10)
    .attr("y", y(ranks[end]) + 4)
    .text(`${ranks[end]}  ${name}`);
}

const SYMBOLS = ["symbolCircle", "symbolSquare", "symbolTriangle", "symbolDiamond"];

function drawProfile(box, places) {
  const columns = [...summaryColumns, ...categoryColumns];
  const [width, left, top, step] = [860, 150, 34 + 18 * Math.ceil(places.length / 2), 34];
  const height = top + columns.length * step + 30;
  const svg = svgIn(box, "Category profile", width, height);
  const scores = columns.map((column) => scoresIn(column, state.regime, state.metric));
  const standings = columns.map((column) =>
    places.map((index) => standingOf(column, state.regime, state.metric, index)),
  );
  const ends = standings
    .flat()
    .filter(Boolean)
    .flatMap(({ low, high }) => [low, high]);
  const values = [...ends, ...scores.flatMap((row) => places.map((index) => row[index])), 0];
  const x = d3.scaleLinear(d3.extent(values), [left, width - 24]).nice();
  axis(
    svg,
    `translate(0,${height - 26})`,
    d3
      .axisBottom(x)
      .ticks(8)
      .tickSize(-(height - 26 - top)),
  );
  columns.forEach((column, row) => {
    const y = top + (row + 0.5) * step;
    svg
      .append("text")
      .attr("class", "label")
      .attr("x", left - 12)
      .attr("y", y + 4)
      .attr("text-anchor", "end")
      .text(column.label);
    places.forEach((index, order) =>
      drawMark(
        svg,
        x,
        y + (order - (places.length - 1) / 2) * 7,
        scores[row][index],
        standings[row][order],
        order,
      ),
    );
  });
  places.forEach((index, order) => {
    const [a, b] = [left + (order % 2) * 350, 16 + 18 * Math.floor(order / 2)];
    svg
      .append("path")
      .attr("class", `mark s${order}`)
      .attr("transform", `translate(${a},${b - 4})`)
      .attr("d", d3.symbol(d3[SYMBOLS[order]], 60)());
    svg
      .append("text")
      .attr("class", "name")
      .attr("x", a + 12)
      .attr("y", b)
      .text(shortened(models[index].name, 44));
  });
}

function drawMark(svg, x, y, score, standing, order) {
  if (standing)
    svg
      .append("line")
      .attr("class", `bar s${order}`)
      .attr("x1", x(standing.low))
      .attr("x2", x(standing.high))
      .attr("y1", y)
      .attr("y2", y);
  svg
    .append("path")
    .attr("class", `mark s${order}`)
    .attr("transform", `translate(${x(score)},${y})`)
    .attr("d", d3.symbol(d3[SYMBOLS[order]], 50)());
}

/* ---------------------------------------------------------------- method and data */

const PUBLISHED = [
  ["leaderboard.json", "scores by category, one row a model and regime"],
  ["leaderboard_tasks.json", "scores by task"],
];
const ANALYSED = [
  ["diagnostics.json", "ranks, intervals, tie groups, stability, size"],
  ["recommendations.json", "which model to take for every need"],
];

function aboutView() {
  const files = base.standings ? [...PUBLISHED, ...ANALYSED] : PUBLISHED;
  const paragraph = (title, ...text) => [h("h3", {}, title), h("p", {}, ...text)];
  return [
    h("h2", {}, "Method and data"),
    ...paragraph(
      "What is measured",
      `A model turns DNA into embeddings and is not trained further. A logistic-regression probe learns ${bench.tasks.length} classification tasks in ${bench.categories.length} categories from them: with all training data, and with few examples per class, averaged over ${bench.fits} draws. Macro is the mean of the category means, micro the mean of all tasks; more than half of the tasks are in two categories, which therefore decide micro.`,
    ),
    ...paragraph(
      "Intervals, ranks and tie groups",
      `They exist for ${metricName(bench.primary)}. The printed scores give back the confusion matrices, and these say how far a score would move on other test sequences: 95 % intervals. Two models are told apart when their difference exceeds its uncertainty, compared with all others at once. A tie group holds its best model and all that cannot be told from it. For few examples per class, intervals are for the benchmark's own training draws, unless the submission gives scores by seed.`,
    ),
    h("h3", {}, "Levels of trust"),
    h(
      "dl",
      { class: "facts" },
      ...[
        ["self-reported", "passes every check; nobody else has run it"],
        ["verified", "an audit reran a sample of tasks that nobody could foresee, and agrees"],
        ["reproduced", "audits cover every task of a regime"],
        ["official", "the file of the benchmark's authors"],
        ["stale", "the evidence is for another version of harness, benchmark or data"],
        ["disputed", "an audit failed"],
      ].map(([term, text]) =>
        h("div", {}, h("dt", {}, h("span", { class: `trust ${term}` }, term)), h("dd", {}, text)),
      ),
    ),
    h("h3", {}, "Files"),
    h(
      "ul",
      {},
      ...files.map(([name, text]) =>
        h("li", {}, h("a", { href: name, download: name }, name), `: ${text}`),
      ),
    ),
    h(
      "p",
      { class: "hint" },
      `Benchmark ${bench.name}, harness ${bench.harness}, definition sha256 `,
      h("code", {}, bench.sha256),
      ".",
    ),
  ];
}

/* ---------------------------------------------------------------- controls and start */

const VIEW_TITLES = {
  overview: "Which model",
  table: "Scores",
  plots: "Plots",
  compare: "Compare",
  about: "Method and data",
};
const DRAW = {
  overview,
  table: tableView,
  plots: plotsView,
  compare: compareView,
  model: modelView,
  about: aboutView,
};

function segments(container, name, choices) {
  const make = ([value, text]) => {
    const input = h("input", {
      type: "radio",
      name,
      value,
      onchange: () => change({ [name]: value, page: 1 }),
    });
    return h("label", {}, input, h("span", {}, text));
  };
  container.replaceChildren(...choices.map(make));
}

function buildControls() {
  segments(
    byName("regimes"),
    "regime",
    bench.regimes.map((regime) => [regime, regimeName(regime)]),
  );
  segments(
    byName("metrics"),
    "metric",
    bench.metrics.map((metric) => [metric, metricName(metric)]),
  );
  options(
    byName("size"),
    sizes().map((limit) => [limit === null ? "any" : String(limit), limitText(limit)]),
  );
  options(byName("level"), levelChoices());
  options(byName("columns"), columnChoices());
  for (const name of ["size", "trust", "level", "intervals", "scale"]) {
    byName(name).addEventListener("change", (event) =>
      change({ [name]: event.target.value, page: 1 }),
    );
  }
  byName("columns").addEventListener("change", (event) => changeColumns(event.target.value));
  byName("search").addEventListener("input", (event) => change({ q: event.target.value, page: 1 }));
  byName("reset").addEventListener("click", () =>
    change({ size: "any", level: "any", q: "", page: 1 }),
  );
  byName("controls").addEventListener("submit", (event) => event.preventDefault());
  byName("skip").addEventListener("click", (event) => {
    event.preventDefault(); // the address holds the state, not a place on the page
    byName("main").focus();
  });
}

/** Tasks of one category are sorted by that category, not by the mean of all. */
function changeColumns(columns) {
  const category = columns.startsWith("tasks:") ? columns.slice("tasks:".length) : null;
  change({ columns, sort: category ? `category:${category}` : MACRO, order: "down", page: 1 });
}

function syncControls() {
  const controls = byName("controls");
  for (const element of controls.querySelectorAll("[data-for]")) {
    element.hidden = !element.dataset.for.split(" ").includes(state.view);
  }
  controls.hidden = state.view === "about";
  for (const name of ["regime", "metric"]) {
    for (const input of controls.querySelectorAll(`input[name=${name}]`))
      input.checked = input.value === state[name];
  }
  for (const name of ["size", "trust", "level", "columns", "intervals", "scale"])
    byName(name).value = state[name];
  if (byName("search").value !== state.q) byName("search").value = state.q;
  for (const link of byName("views").children) {
    link.href = addressOf({ view: link.dataset.view, model: "", page: 1 });
    if (link.dataset.view === state.view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  byName("chosen").textContent = state.models.length ? `(${state.models.length})` : "";
}

let drawing = 0;
let drawnView = null;

/** Draw what the address says; parts of the data are loaded first where a view needs them. */
function show() {
  state = readAddress();
  syncControls();
  drawing += 1;
  const mine = drawing;
  const needed = partsNeeded().filter((name) => !loaded.has(name));
  if (!needed.length) {
    draw();
    return;
  }
  byName("main").setAttribute("aria-busy", "true");
  Promise.all(needed.map(load)).then(
    () => {
      needed.forEach((name) => loaded.add(name));
      if (mine === drawing) draw();
    },
    (error) => mine === drawing && fail(error.message),
  );
}

const loaded = new Set();

function draw() {
  const main = byName("main");
  const focused = document.activeElement?.dataset?.focus ?? document.activeElement?.id;
  const scrolled = main.querySelector(".scroller")?.scrollLeft ?? 0;
  const isNew = drawnView !== null && drawnView !== `${state.view}/${state.model}`;
  drawnView = `${state.view}/${state.model}`;
  if (!["table", "plots"].includes(state.view)) say("");
  const content = document.createDocumentFragment();
  content.append(...DRAW[state.view]().filter(Boolean));
  main.replaceChildren(content);
  main.removeAttribute("aria-busy");
  const name =
    state.view === "model"
      ? (models[byId.get(state.model)]?.name ?? "No such model")
      : VIEW_TITLES[state.view];
  document.title = `${name} · GENEB leaderboard`;
  if (isNew) {
    scrollTo(0, 0);
    main.focus({ preventScroll: true });
    return;
  }
  if (scrolled) main.querySelector(".scroller").scrollLeft = scrolled;
  refocus(main, focused);
}

/** What had the focus was drawn anew: give the focus to its successor. */
function refocus(main, focused) {
  if (!focused || document.activeElement !== document.body) return;
  const successor = [...main.querySelectorAll("[data-focus], [id]")].find(
    (element) => (element.dataset.focus ?? element.id) === focused,
  );
  successor?.focus({ preventScroll: true });
}

function fail(text) {
  byName("main").replaceChildren(
    h(
      "p",
      { class: "fault" },
      `${text}. The page needs all files that geneb-ci build wrote, side by side.`,
    ),
  );
  byName("main").removeAttribute("aria-busy");
}

function start() {
  if (!base) {
    fail("The data of the board, board-data.js, could not be loaded");
    return;
  }
  buildControls();
  addEventListener("hashchange", show);
  addEventListener("popstate", show);
  show();
}

start();
