// Which kinds of task, or tasks, rank the models alike.

import { columnsOf, taskColumns } from "../data/board.js";
import { scoresIn } from "../data/scores.js";
import { chosenTasks } from "../data/tasks.js";
import { h, head, row, table } from "../page/dom.js";
import { alikeOrder, rankCorrelations } from "../pure/likeness.js";
import { heat } from "../pure/ranks.js";
import { counted, metricName, regimeWords } from "../pure/words.js";
import { framed } from "./frame.js";

const TASKS_MAX = 30; // the largest category; names of more cannot be read beside each other
const CHANCE = 1.96; // standard errors, of 1 / sqrt(n - 1), that chance seldom exceeds
const WHOLE = [0, 1]; // the range of the colours

/** Draw how alike the models are ranked by the matching tasks, or by their categories. */
export function likenessChart(state, indexes) {
  const { regime, metric } = state;
  const tasks = chosenTasks(state);
  const isOfTasks = tasks !== null && tasks.length <= TASKS_MAX;
  const columns = isOfTasks
    ? tasks.map((task) => taskColumns[task])
    : columnsOf("categories", tasks).filter(({ key }) => key.startsWith("category:"));
  const scores = columns.map((column) => scoresIn(column, regime, metric));
  const likeness = rankCorrelations(
    scores.map((columnScores) => indexes.map((index) => columnScores[index])),
  );
  const order = alikeOrder(likeness);
  const what = isOfTasks ? "tasks" : "categories of task";
  const least = CHANCE / Math.sqrt(indexes.length - 1);
  return framed({
    name: "likeness",
    title: "Correlation of tasks",
    caption:
      `A number says how alike two ${what} rank ${counted(indexes.length, "model")} by ${metricName(metric)}, ` +
      `${regimeWords(regime)}: 1 is the same order, 0 no relation (Spearman). Alike ones stand side by side. ` +
      `Up to ${least.toFixed(2)} may be chance, and more, since models of one family are alike.` +
      `${isOfTasks ? "" : ` A species or kind with at most ${TASKS_MAX} tasks shows each of them.`}`,
    draw: (box, title) => box.append(likenessTable(title, columns, likeness, order)),
  });
}

/** Make the table; a column is named by the number that its row has. */
function likenessTable(title, columns, likeness, order) {
  const names = order.map((position, k) => `${k + 1} ${columns[position].label}`);
  const rows = order.map((first, k) =>
    row(
      names[k],
      ...order.map((second, m) =>
        k === m
          ? h("td", {}, "")
          : h(
              "td",
              { class: `heat ${heat(likeness[first][second], WHOLE)}`, title: `${names[k]}, ${names[m]}` },
              likeness[first][second].toFixed(2).replace("-0.00", "0.00").replace("-", "−").replace("0.", "."),
            ),
      ),
    ),
  );
  const heads = names.map((name, k) => h("th", { scope: "col", abbr: name, title: name }, String(k + 1)));
  return table({ class: "likeness" }, title, [head("Name"), ...heads], rows);
}
