"""Every rule, in the order of RULES.md; only rules listed here are run.

A rule is imported when it is first needed, so that `check --select FAMILY` imports no other family.
"""

import functools
import importlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from geneb_ci.common.errors import UsageProblem

if TYPE_CHECKING:
    from geneb_ci.check.rule import AnyRule, ChangeRule, Rule

    RULES: tuple[Rule, ...]
    """The rules that `geneb-ci check` runs on a file."""
    CHANGE_RULES: tuple[ChangeRule, ...]
    """The rules that `geneb-ci reconcile` runs on the list of changed files."""
    ALL: tuple[AnyRule, ...]
    """All rules, in the order of RULES.md."""
    BY_ID: dict[str, AnyRule]
    """All rules by id."""

FILE_RULES: dict[str, tuple[str, ...]] = {
    "structure": (
        "irregular-file",
        "empty-file",
        "file-too-large",
        "wrong-encoding",
        "lfs-pointer",
        "merge-conflict",
        "foreign-format",
        "invalid-json",
        "too-deep",
        "too-many-values",
        "duplicate-key",
        "non-finite-number",
        "unrepresentable-number",
        "lone-surrogate",
        "forbidden-character",
        "not-an-object",
        "unknown-schema-version",
        "missing-field",
        "unknown-field",
        "wrong-type",
        "wrong-length",
        "malformed-value",
    ),
    "coverage": (
        "missing-regime",
        "unknown-regime",
        "missing-task",
        "unknown-task",
        "missing-metric",
        "unknown-metric",
        "declared-gap",
        "needless-gap",
        "gap-without-reason",
        "missing-evidence",
        "evidence-without-scores",
        "wrong-seed-count",
    ),
    "ranges": (
        "score-out-of-range",
        "percent-scores",
        "all-scores-equal",
        "repeated-regime",
    ),
    "arithmetic": (
        "accuracy-off-grid",
        "impossible-scores",
        "impossible-mean",
        "inconsistent-metrics",
        "impossible-seed-scores",
        "wrong-seed-mean",
        "seeds-differ-in-full",
        "wrong-test-size",
        "wrong-matrix-size",
        "wrong-matrix-scores",
        "repeated-digest",
        "rounded-scores",
    ),
    "identity": (
        "bad-model-id",
        "reserved-model-id",
        "model-id-collision",
        "file-name-mismatch",
        "blank-display-name",
        "display-name-form",
        "confusable-name",
        "mixed-scripts",
        "bad-url",
        "bad-parameter-count",
        "parameter-count-disagrees",
        "missing-submitter",
        "identical-results",
    ),
    "plausibility": (
        "nested-tasks",
        "implausible-cell",
        "few-shot-above-full",
        "regimes-out-of-order",
        "uniform-gain",
        "near-copy",
        "blended-rows",
        "category-crown",
        "constant-predictions",
        "round-numbers",
        "size-against-width",
    ),
    "provenance": (
        "self-claimed-level",
        "changed-official-file",
        "wrong-upgrade",
        "changed-entry",
        "unknown-harness-version",
        "wrong-benchmark",
        "practice-run",
        "wrong-dataset-revision",
        "wrong-receipt",
        "unpinned-model",
        "modified-harness",
        "impossible-dates",
        "extractor-mismatch",
        "uncallable-extractor",
        "unusable-lock",
        "lock-mismatch",
        "no-run-details",
    ),
    "measured": (
        "impossible-measurement",
        "unread-letters",
        "scale-moves-scores",
        "constant-embeddings",
        "drifting-embeddings",
        "contradicted-property",
    ),
    "card": (
        "missing-card",
        "unreadable-card",
        "incomplete-card",
        "placeholder-in-card",
        "card-disagrees",
        "copied-card",
        "overlap-despite-zero-shot",
    ),
    "internal": ("check-crashed",),
}
"""By family: the ids of the rules that `geneb-ci check` runs on a file."""

CHANGES: dict[str, tuple[str, ...]] = {
    "pullrequest": (
        "truncated-tree",
        "too-many-files",
        "foreign-file",
        "misplaced-file",
        "generated-file",
        "several-models",
        "colliding-paths",
        "symbolic-link",
        "git-submodule",
        "executable-file",
        "deleted-file",
        "edited-without-note",
        "invalid-audit-record",
        "outdated-branch",
        "open-collision",
        "open-copy",
        "row-without-card",
        "row-without-extractor",
    ),
}
"""By family: the ids of the rules that `geneb-ci reconcile` runs on the list of changed files."""

CHANGE_TOPICS: dict[str, tuple[str, ...]] = {
    "a card and an extractor beside a new row": ("row-without-card", "row-without-extractor"),
    "a note in the card of a changed row": ("edited-without-note",),
    "one model and no other file": (
        *("several-models", "foreign-file", "misplaced-file", "generated-file", "deleted-file"),
        *("too-many-files", "truncated-tree"),
    ),
    "regular files": ("symbolic-link", "git-submodule", "executable-file", "colliding-paths"),
    "main's newest version": ("outdated-branch",),
    "audit records that verify": ("invalid-audit-record",),
    "no open pull request with the same name or scores": ("open-collision", "open-copy"),
}
"""By requirement of a pull request besides a valid row: the ids of the rules that check it."""

MODULES_BY_FAMILY: dict[str, tuple[str, ...]] = {
    "arithmetic": ("arithmetic", "arithmetic_evidence"),
    "identity": ("identity", "identity_facts"),
    "plausibility": ("plausibility", "plausibility_rows"),
    "provenance": ("provenance", "provenance_model"),
    "internal": ("structure",),
    "pullrequest": ("pullrequest", "pullrequest_row"),
}
"""Modules of each family whose rules are in several modules, or in a module of another name."""

FAMILIES = (*FILE_RULES, *CHANGES)
"""Names of all families of rules."""
_FAMILY_BY_RULE = {name: family for family, ids in (FILE_RULES | CHANGES).items() for name in ids}
"""Family of each rule, by id of the rule."""


@functools.cache
def rule_of(rule_id: str) -> "AnyRule":
    """Return a rule by its id. Raises KeyError for an unknown id."""
    family = _FAMILY_BY_RULE[rule_id]
    modules = (_rules_in(module) for module in MODULES_BY_FAMILY.get(family, (family,)))
    return next(rules[rule_id] for rules in modules if rule_id in rules)


@functools.cache
def _rules_in(module: str) -> "dict[str, AnyRule]":
    """Return the rules of a module by id, from its constants and its tuple `REPORTED`."""
    from geneb_ci.check.rule import AnyRule  # imported with the first rule

    loaded = importlib.import_module(f"geneb_ci.check.rules.{module}")
    constants = (*vars(loaded).values(), *getattr(loaded, "REPORTED", ()))
    return {constant.id: constant for constant in constants if isinstance(constant, AnyRule)}


def __getattr__(name: str) -> object:
    """Return RULES, CHANGE_RULES, ALL or BY_ID, for which every rule is imported."""
    names = {"RULES": FILE_RULES, "CHANGE_RULES": CHANGES, "ALL": FILE_RULES | CHANGES}
    value: object
    if name in names:
        value = tuple(rule_of(rule_id) for ids in names[name].values() for rule_id in ids)
    elif name == "BY_ID":
        value = {rule_id: rule_of(rule_id) for rule_id in _FAMILY_BY_RULE}
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def select(selected: Iterable[str], ignored: Iterable[str]) -> "tuple[Rule, ...]":
    """Return the rules whose ids `chosen_rule_ids` returns. Raises UsageProblem as it does."""
    return tuple(rule_of(rule_id) for rule_id in chosen_rule_ids(selected, ignored))  # type: ignore[misc]  # of FILE_RULES


def chosen_rule_ids(selected: Iterable[str], ignored: Iterable[str]) -> tuple[str, ...]:
    """Return the ids of the selected rules, or of all if none is selected, without ignored rules.

    Both parameters contain ids of rules or names of families. Rules of the family `internal` always
    run, so that bugs of geneb-ci cannot be hidden. Raises UsageProblem for an unknown name, and if
    no rule remains.
    """
    selected_names, ignored_names = (
        set(map(exact_rule_name, selected)),
        set(map(exact_rule_name, ignored)),
    )
    rules = [
        (family, rule_id)
        for family, ids in FILE_RULES.items()
        for rule_id in ids
        if family == "internal"
        or (
            (not selected_names or {rule_id, family} & selected_names)
            and not {rule_id, family} & ignored_names
        )
    ]
    if all(family == "internal" for family, _ in rules):
        raise UsageProblem(
            "these options leave no rule to run",
            "name fewer rules in --ignore, or more in --select",
        )
    return tuple(rule_id for _, rule_id in rules)


def exact_rule_name(name: str) -> str:
    """Return the name of a rule or a family, whatever the letter case of `name`.

    Raises UsageProblem if there is none.
    """
    folded = name.casefold()
    if folded not in _FAMILY_BY_RULE and folded not in FAMILIES:
        raise _unknown_rule_error(name)
    return folded


def _unknown_rule_error(rule_name: str) -> UsageProblem:
    """Return the error for a name that is neither a rule nor a family."""
    from geneb_ci.common.finding import name_hint  # for an error alone

    hint = name_hint(rule_name, [*_FAMILY_BY_RULE, *FAMILIES])
    return UsageProblem(
        f"{rule_name!r} is not a rule or a family{hint}",
        "name a rule or a family that `geneb-ci rules` lists",
    )
