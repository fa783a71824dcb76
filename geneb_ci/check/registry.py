"""Every rule, in the order of RULES.md; only rules listed here are run."""

from collections.abc import Iterable

from geneb_ci.check.rule import AnyRule, ChangeRule, Rule
from geneb_ci.check.rules import reported
from geneb_ci.check.rules.arithmetic import (
    accuracy_off_grid,
    impossible_mean,
    impossible_scores,
    impossible_seed_scores,
    inconsistent_metrics,
    repeated_digest,
    rounded_scores,
    seeds_differ_in_full,
    wrong_matrix_scores,
    wrong_matrix_size,
    wrong_seed_mean,
    wrong_test_size,
)
from geneb_ci.check.rules.card import (
    card_disagrees,
    incomplete_card,
    missing_card,
    overlap_despite_zero_shot,
    placeholder_in_card,
)
from geneb_ci.check.rules.coverage import (
    declared_gap,
    evidence_without_scores,
    gap_without_reason,
    missing_evidence,
    missing_regime,
    missing_task,
    needless_gap,
    unknown_regime,
    unknown_task,
    wrong_seed_count,
)
from geneb_ci.check.rules.identity import (
    bad_url,
    blank_display_name,
    confusable_name,
    display_name_form,
    file_name_mismatch,
    identical_results,
    missing_submitter,
    mixed_scripts,
    model_id_collision,
    parameter_count_disagrees,
    reserved_model_id,
)
from geneb_ci.check.rules.plausibility import (
    blended_rows,
    category_crown,
    constant_predictions,
    few_shot_above_full,
    implausible_cell,
    near_copy,
    nested_tasks,
    regimes_out_of_order,
    round_numbers,
    size_against_width,
    uniform_gain,
)
from geneb_ci.check.rules.provenance import (
    changed_official_file,
    extractor_mismatch,
    impossible_dates,
    modified_harness,
    no_run_details,
    practice_run,
    self_claimed_level,
    unknown_harness_version,
    unpinned_model,
    wrong_benchmark,
    wrong_dataset_revision,
    wrong_receipt,
)
from geneb_ci.check.rules.pullrequest import (
    colliding_paths,
    deleted_file,
    edited_without_note,
    executable_file,
    foreign_file,
    generated_file,
    git_submodule,
    row_without_card,
    row_without_extractor,
    several_models,
    symbolic_link,
    too_many_files,
    truncated_tree,
)
from geneb_ci.check.rules.ranges import all_scores_equal, percent_scores, score_out_of_range
from geneb_ci.common.errors import UsageProblem
from geneb_ci.submission.structure import near

RULES: tuple[Rule, ...] = (
    # structure
    *reported.STRUCTURE,
    # coverage
    missing_regime.RULE,
    unknown_regime.RULE,
    missing_task.RULE,
    unknown_task.RULE,
    reported.MISSING_METRIC,
    reported.UNKNOWN_METRIC,
    declared_gap.RULE,
    needless_gap.RULE,
    gap_without_reason.RULE,
    missing_evidence.RULE,
    evidence_without_scores.RULE,
    wrong_seed_count.RULE,
    # ranges
    score_out_of_range.RULE,
    percent_scores.RULE,
    all_scores_equal.RULE,
    # arithmetic
    accuracy_off_grid.RULE,
    impossible_scores.RULE,
    impossible_mean.RULE,
    inconsistent_metrics.RULE,
    impossible_seed_scores.RULE,
    wrong_seed_mean.RULE,
    seeds_differ_in_full.RULE,
    wrong_test_size.RULE,
    wrong_matrix_size.RULE,
    wrong_matrix_scores.RULE,
    repeated_digest.RULE,
    rounded_scores.RULE,
    # identity
    reported.BAD_MODEL_ID,
    reserved_model_id.RULE,
    model_id_collision.RULE,
    file_name_mismatch.RULE,
    blank_display_name.RULE,
    display_name_form.RULE,
    confusable_name.RULE,
    mixed_scripts.RULE,
    bad_url.RULE,
    reported.BAD_PARAMETER_COUNT,
    parameter_count_disagrees.RULE,
    missing_submitter.RULE,
    identical_results.RULE,
    # plausibility
    nested_tasks.RULE,
    implausible_cell.RULE,
    few_shot_above_full.RULE,
    regimes_out_of_order.RULE,
    uniform_gain.RULE,
    near_copy.RULE,
    blended_rows.RULE,
    category_crown.RULE,
    constant_predictions.RULE,
    round_numbers.RULE,
    size_against_width.RULE,
    # provenance
    self_claimed_level.RULE,
    changed_official_file.RULE,
    unknown_harness_version.RULE,
    wrong_benchmark.RULE,
    practice_run.RULE,
    wrong_dataset_revision.RULE,
    wrong_receipt.RULE,
    unpinned_model.RULE,
    modified_harness.RULE,
    impossible_dates.RULE,
    extractor_mismatch.RULE,
    no_run_details.RULE,
    # card
    missing_card.RULE,
    reported.UNREADABLE_CARD,
    incomplete_card.RULE,
    placeholder_in_card.RULE,
    card_disagrees.RULE,
    overlap_despite_zero_shot.RULE,
    # internal
    reported.CHECK_CRASHED,
)
"""Rules that `geneb-ci check` runs on a file."""

CHANGE_RULES: tuple[ChangeRule, ...] = (
    # pullrequest
    truncated_tree.RULE,
    too_many_files.RULE,
    foreign_file.RULE,
    generated_file.RULE,
    several_models.RULE,
    colliding_paths.RULE,
    symbolic_link.RULE,
    git_submodule.RULE,
    executable_file.RULE,
    deleted_file.RULE,
    edited_without_note.RULE,
    row_without_card.RULE,
    row_without_extractor.RULE,
)
"""Rules that `geneb-ci reconcile` runs on a pull request before it reads the files."""

ALL: tuple[AnyRule, ...] = (*RULES, *CHANGE_RULES)
BY_ID = {rule.id: rule for rule in ALL}
FAMILIES = tuple(dict.fromkeys(rule.family for rule in ALL))


def select(wanted: Iterable[str], unwanted: Iterable[str]) -> tuple[Rule, ...]:
    """Return the rules to run: those named by id or family, or all, without those in `unwanted`.

    Rules of the family `internal` always run: bugs of geneb-ci cannot be hidden.
    Raises UsageProblem for an unknown name, and if no rule is left.
    """
    wanted, unwanted = tuple(wanted), tuple(unwanted)
    for name in (*wanted, *unwanted):
        if name not in BY_ID and name not in FAMILIES:
            raise UsageProblem(
                f"{name!r} is not a rule or a family{near(name, [*BY_ID, *FAMILIES])}",
                "`geneb-ci rules` lists them",
            )
    chosen = tuple(
        rule
        for rule in RULES
        if rule.family == "internal"
        or (
            (not wanted or {rule.id, rule.family} & set(wanted))
            and not {rule.id, rule.family} & set(unwanted)
        )
    )
    if all(rule.family == "internal" for rule in chosen):
        raise UsageProblem(
            "no rule is left to run",
            "name fewer rules in --ignore, or more in --select",
        )
    return chosen
