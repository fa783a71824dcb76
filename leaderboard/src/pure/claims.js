// What the first page says of models, as geneb_ci/board/reasons.py writes it: that one scores
// highest on the tasks, or loses so much on them, and how much that rests on. Ids stand in
// backticks.

import { boundText, counted, intervalText, regimeWords, scoreText, sizeText } from "./words.js";

export const DRAWS =
  "Intervals cover other training draws: by the submission's scores by seed, or else by a standard deviation of 0.1 between draws, as k-mers have it on six tasks.";

const REASONS = {
  checked: "nobody has rerun its scores",
  stale: "its audits are of another version of harness, benchmark or data",
};

/** Write that a model scores highest on the tasks. */
export function highestText({ id, standing, claim, regime, count }) {
  const where = count === 1 ? "this task" : `these ${count} tasks`;
  const score = `${scoreText(standing.score)}, 95 % interval ${intervalText(standing)}`;
  const support = supportText(claim, [regime], count, "highest");
  return `Highest on ${where} with ${regimeWords(regime)}: \`${id}\`, ${score}. ${support}`;
}

/** Write on how many tasks a claim rests, how many the model wins, and how it depends on one. */
function supportText({ wins, without }, regimes, count, what) {
  if (count === 1) return "This rests on one task alone.";
  const won = wins.map((number, k) => (wins.length > 1 ? `${number} in ${regimes[k]}` : number));
  const steady = without
    ? `without one of them another is ${what} in ${counted(without, "case")}`
    : `without any one of them it stays ${what}`;
  return `It scores highest on ${won.join(" and ")} of the ${count} tasks; ${steady}.`;
}

/** Write how far the scores of all models lie apart in two regimes: between nothing is known. */
export function gapText(regimes, means) {
  const mean = (standings) =>
    standings.reduce((sum, { score }) => sum + score, 0) / standings.length;
  const [few, many] = means.map(mean);
  return (
    `Hundreds of examples lie between: the mean of these models is ${scoreText(few)} with ` +
    `${regimes[0]} and ${scoreText(many)} with ${regimes[1]}, and nothing was measured in the gap.`
  );
}

/** Write which smaller models lose no more than is accepted. */
export function smallerText(choice) {
  const { id, params, claim, below, bounds, regimes, count, smaller, accepted } = choice;
  const most = `at most ${accepted} with 95 % confidence`;
  if (!claim) return `No smaller model loses ${most} on these tasks.`;
  const lost = below.map((difference, k) => {
    const where = regimes.length > 1 ? ` in ${regimes[k]}` : "";
    return `${scoreText(difference)} below the highest and at most ${boundText(bounds[k])}${where}`;
  });
  return (
    `${counted(smaller, "smaller model")} ${smaller === 1 ? "loses" : "lose"} ${most}; the smallest is ` +
    `\`${id}\`, ${params ? sizeText(params) : 0} parameters: ${lost.join(" and ")}. ` +
    supportText(claim, regimes, count, "the smallest")
  );
}

/** Write what should be known of a row before it is relied on, a sentence each. */
export function doubtTexts({ id, authorship, evidence, defects = [], warnings = {} }) {
  const reason = REASONS[evidence];
  const rules = Object.keys(warnings).map((rule) => `[${rule}]`);
  return [
    ...(reason ? [`\`${id}\` is ${authorship}, and ${reason}.`] : []),
    ...defects.map(
      (defect) => `Published defect [${defect.id}] of the extractor of \`${id}\`: ${defect.what}`,
    ),
    ...(rules.length ? [`geneb-ci check warns about \`${id}\`: ${rules.join(", ")}.`] : []),
  ];
}
