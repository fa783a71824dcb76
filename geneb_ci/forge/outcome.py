"""From findings to one word, by a table that both jobs use: the reader computes it again."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from geneb_ci.check.registry import BY_ID
from geneb_ci.finding import Finding, Severity
from geneb_ci.forge.verdict import FINDINGS_MAX, PLACES_MAX, Outcome

# What is not a submission's to change, or was not seen whole: no program decides on it.
FOR_MAINTAINERS = frozenset(
    {
        "truncated-tree",
        "too-many-files",
        "foreign-file",
        "generated-file",
        "several-models",
        "deleted-file",
    }
)
CRASHED = "check-crashed"


class Counts(NamedTuple):
    """All findings by severity; rules of ours that failed are none of the errors."""

    error: int
    crashed: int
    warning: int
    note: int


def counts_of(places: Mapping[str, int]) -> Counts:
    """Count findings by severity, from the places of each rule."""
    found: Counter[str] = Counter()
    for rule, number in places.items():
        found["crashed" if rule == CRASHED else BY_ID[rule].severity.value] += number
    return Counts(**{name: found[name] for name in Counts._fields})


def outcome_of(places: Mapping[str, int], *, is_checked: bool) -> Outcome:
    """Give the outcome; `is_checked` says whether a row was read at all."""
    counts = counts_of(places)
    if FOR_MAINTAINERS & places.keys():
        return Outcome.NEEDS_MAINTAINER
    if counts.error:
        return Outcome.CHANGES_NEEDED
    if counts.crashed:
        return Outcome.NOT_CHECKED
    if not is_checked:
        return Outcome.NEEDS_MAINTAINER
    return Outcome.WARNINGS if counts.warning else Outcome.PASSED


def places_of(findings: Iterable[Finding]) -> dict[str, int]:
    """Count the places of each rule, by its id."""
    return dict(sorted(Counter(finding.rule for finding in findings).items()))


def chosen(findings: Iterable[Finding]) -> list[Finding]:
    """Choose what is told: the first finding of each rule, the heaviest above, then the second.

    However far the end is cut, no rule hides another.
    """
    met: Counter[str] = Counter()
    ordered: list[tuple[int, tuple[bool, int, bool], Finding]] = []
    for finding in findings:
        ordered.append((met[finding.rule], _weight(finding), finding))
        met[finding.rule] += 1
    ordered.sort(key=lambda entry: entry[:2])
    return [finding for nth, _, finding in ordered if nth < PLACES_MAX][:FINDINGS_MAX]


def _weight(finding: Finding) -> tuple[bool, int, bool]:
    severity = list(Severity).index(finding.severity)
    return (finding.rule not in FOR_MAINTAINERS, severity, finding.rule == CRASHED)
