// How the page writes names, numbers and addresses. Functions of their arguments alone.

export function counted(count, noun) {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

/** Write a score with three decimals; what rounds to zero has no sign. */
export function scoreText(score) {
  if (score === undefined) return "none";
  const text = score.toFixed(3);
  return text === "-0.000" ? "0.000" : text.replace("-", "−");
}

export function intervalText({ low, high }) {
  return `${scoreText(low)} to ${scoreText(high)}`;
}

/** Write an interval for a narrow cell. */
export function shortInterval({ low, high }) {
  return `${scoreText(low)}–${scoreText(high)}`;
}

export function rangeText(low, high) {
  return low === high ? String(low) : `${low}–${high}`;
}

export function sizeText(params) {
  if (!params) return "none";
  if (params < 1e3) return String(params);
  const [unit, letter] = params >= 1e9 ? [1e9, "B"] : params >= 1e6 ? [1e6, "M"] : [1e3, "K"];
  return `${Number((params / unit).toPrecision(3))}${letter}`;
}

export function limitText(limit) {
  return limit === null ? "any size" : `at most ${sizeText(limit)}`;
}

const BYTES_A_PARAMETER = 2; // half precision, in which most models are run on an accelerator

/** Write how much memory the weights take; a run needs more, by its sequences and batch. */
export function weightText(params) {
  const bytes = params * BYTES_A_PARAMETER;
  const [unit, name] = bytes >= 1e9 ? [1e9, "GB"] : [1e6, "MB"];
  return `${Number((bytes / unit).toPrecision(2))} ${name}`;
}

/** Write what the weights of a model take in half precision. */
export function memoryText(params) {
  return params ? `${weightText(params)} weights (fp16)` : "no weights";
}

/** Return the regimes from few training examples to all. */
export function byExamples(regimes) {
  const shots = (name) => Number(/^(\d+)shot$/.exec(name)?.[1] ?? Infinity);
  return [...regimes].sort((a, b) => (shots(a) < shots(b) ? -1 : Number(shots(a) > shots(b))));
}

/** Write which tasks match a species and a kind. */
export function matchText({ species, kind }) {
  return [species, kind].filter(Boolean).join(", ");
}

/** Write over how many tasks, and which, a mean is. */
export function overText(count, state) {
  return `over ${counted(count, "task")} (${matchText(state) || "all"}), each counting alike`;
}

const METRICS = { MCC: "MCC", Acc: "Accuracy", F1: "Macro-F1" };

/** Write which training examples a regime gives; "" for one whose name does not tell. */
export function regimeExamples(regime) {
  const shots = shotsOf(regime);
  if (shots) return `${counted(Number(shots), "training example")} per class`;
  return regime === "full" ? "all training examples" : "";
}

/** Return how many examples of each class a regime gives, as its name has it; else undefined. */
export function shotsOf(regime) {
  return /^(\d+)shot$/.exec(regime)?.[1];
}

/** Write a regime by its name, which is that of the files and of the command line, explained. */
export function regimeWords(regime) {
  const examples = regimeExamples(regime);
  return examples ? `${regime} (${examples})` : regime;
}

export function metricName(metric) {
  return Object.hasOwn(METRICS, metric) ? METRICS[metric] : metric;
}

/** Write what audits did: tasks rerun, or cells and rows of a receipt that differs, or both. */
function auditedText({ tasks, of, cells, rows, unaudited }, what = " tasks") {
  const without = unaudited ? `, none in ${unaudited.join(", ")}` : "";
  const rerunParts = tasks || !rows ? [`${tasks} of ${of}${what}${without}`] : [];
  return [...rerunParts, ...(rows ? [`${cells} cells, ${rows} embeddings`] : [])].join(", ");
}

/** Write what others did to confirm the scores of a model, and what confirms none of them. */
export function evidenceText({ audit, evidence, recomputed }) {
  return joined(rerunText(audit, evidence), recomputed);
}

function rerunText(audit, evidence) {
  if (!audit) return evidence === "checked" ? "checked, not rerun" : evidence;
  const what = `${auditedText(audit)}, sandbox level ${audit.sandbox}, ${audit.date}`;
  return `${evidence}: ${audit.verdict === "agrees" ? "rerun" : "rerun, with other scores,"} ${what}`;
}

/** Write the audits alone, where the evidence stands above them. */
export function auditText({ audit, evidence, recomputed }) {
  const audits = audit ? `${auditedText(audit, "")}, ${audit.date}` : "";
  // What was recomputed is a sentence whose first words say it in short.
  return joined(audits || (evidence === "checked" ? "not rerun" : ""), recomputed?.split(":")[0]);
}

/** Write who stands for some fields of a row, one sentence each. */
export function attestedText(statements) {
  return statements.map(({ fields, by }) => `${fields}: ${by}`).join("; ");
}

/** Write why a row is disputed: by each audit, what it objects to and who signed it. */
export function disputeText({ record, signer, date, why, scores }) {
  const source = record ? [`audit ${record}, signed by ${signer}, ${date}`] : [];
  return [...why, ...scores.map(differingText), ...source].join("; ");
}

function differingText({ task, regime, metric, claimed, rerun, tolerance }) {
  const [claim, result, allowed] = [claimed, rerun, tolerance].map((score) => score.toFixed(4));
  return `${metric} of ${task}, ${regime}: claimed ${claim}, rerun ${result}, tolerance ${allowed}`;
}

function joined(...parts) {
  return parts.filter(Boolean).join("; ");
}

/** Write the rules that warn about a row, each with its number of warnings. */
export function warningsText(warnings) {
  return Object.entries(warnings)
    .map(([rule, count]) => (count > 1 ? `${rule} (${count})` : rule))
    .join(", ");
}

/** Write how many published defects and warnings a row has, each kind with its ids. */
export function markTexts({ defects = [], warnings = {} }) {
  const marks = [];
  if (defects.length) {
    const title = defects.map(({ what }) => what).join(" ");
    const ids = defects.map(({ id }) => id);
    marks.push({ text: counted(defects.length, "published defect"), kind: "defect", ids, title });
  }
  const rules = Object.keys(warnings);
  if (rules.length) {
    const text = `warnings of ${counted(rules.length, "rule")}`;
    marks.push({ text, kind: "rule", ids: rules, title: warningsText(warnings) });
  }
  return marks;
}

/** Write an upper bound of a loss, rounded up: 0.000 only where nothing can be lost. */
export function boundText(bound) {
  if (!(bound > 0)) return "0.000";
  const near = Number(bound.toFixed(3));
  return (near >= bound ? near : near + 0.001).toFixed(3);
}

/** Write a probability that is a lower bound, rounded down. */
export function probabilityText(probability) {
  if (probability >= 0.999) return "more than 0.999";
  const near = Number(probability.toFixed(3));
  return `at least ${(near <= probability ? near : near - 0.001).toFixed(3)}`;
}

/** Write how two models compare in one score, the higher one first. */
export function comparedText(high, low, where, comparison) {
  const by = scoreText(comparison.difference);
  if (comparison.isSignificant) {
    return (
      `${high} is significantly better than ${low} on ${where}: ${by} higher (95 % interval ` +
      `${intervalText(comparison)}, corrected for all pairs).`
    );
  }
  return (
    `${high} scores ${by} higher than ${low} on ${where}; the difference is not significant after ` +
    `correction for all pairs. Probability that ${high} is better: ` +
    `${probabilityText(comparison.probability)}.`
  );
}

/** Return an address that may be linked to; contributors write what they like. */
export function safeAddress(text) {
  if (!URL.canParse(text)) return null;
  const address = new URL(text);
  return address.protocol === "https:" && !address.username && !address.password ? address : null;
}

export function shortened(name, most = 26) {
  const letters = [...name];
  return letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : name;
}
