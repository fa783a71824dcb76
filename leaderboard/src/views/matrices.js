// Confusion matrices follow from the scores where a task has two classes of known sizes.

import { bench, partOf } from "../data/board.js";
import { h, head, hint, number, row, table } from "../page/dom.js";
import { taskSelect } from "../page/marks.js";
import { counted, scoreText } from "../pure/words.js";

const PER_TASK = 3; // how many matrices; right predictions in the minority and majority class

const HEADS = ["True class", "predicted minority class", "predicted majority class", "recall"];

/** Draw the matrices of one task, chosen from all that have some. */
export function matrixSection(state, index) {
  const part = partOf("matrices");
  const regimes = Object.keys(part.regimes);
  if (!regimes.length || !part.tasks.length) return [];
  const position = bench.tasks.findIndex((task) => task.id === state.task);
  const at = Math.max(0, part.tasks.indexOf(position));
  const task = bench.tasks[part.tasks[at]];
  const cells = (regime) =>
    part.regimes[regime][index].slice(PER_TASK * at, PER_TASK * (at + 1));
  return [
    h("h3", {}, "Confusion matrices"),
    hint(
      `Recovered from the printed scores of ${counted(part.tasks.length, "task")} with two classes, one fit each. `,
      "The benchmark says how large the classes are, not which is which.",
    ),
    h("p", { class: "question" }, h("label", {}, "Task ", taskSelect("matrix", part.tasks, task.id))),
    ...regimes.map((regime) => matrix(regime, cells(regime), task)),
  ];
}

function matrix(regime, [count, small, large], task) {
  if (!count) return h("p", {}, `${regime}: no matrix gives these scores.`);
  const [n, m] = task.counts;
  const matrixText =
    count === 1
      ? "the only matrix with these scores"
      : `the nearest of ${count.toLocaleString("en")} matrices with these scores`;
  const cells = (...counts) => counts.map((counted) => number(counted.toLocaleString("en")));
  const caption = `${task.label}, ${regime}: ${matrixText}`;
  const rows = [
    row("minority class", ...cells(small, n - small), number(scoreText(small / n))),
    row("majority class", ...cells(m - large, large), number(scoreText(large / m))),
  ];
  return table({ class: "matrix" }, caption, HEADS.map((text) => head(text)), rows, { isSeen: true });
}
