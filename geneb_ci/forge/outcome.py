"""From findings to one word, by a table that both jobs use: the reader computes it again."""

from collections import Counter
from collections.abc import Iterable

from geneb_ci.finding import Finding, Severity
from geneb_ci.forge.verdict import Counts, Outcome

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


def outcome_of(rules: Iterable[str], counts: Counts, *, is_checked: bool) -> Outcome:
    """Give the outcome; `is_checked` says whether a row was read at all."""
    if FOR_MAINTAINERS & set(rules):
        return Outcome.NEEDS_MAINTAINER
    if counts.error:
        return Outcome.CHANGES_NEEDED
    if counts.crashed:
        return Outcome.NOT_CHECKED
    if not is_checked:
        return Outcome.NEEDS_MAINTAINER
    return Outcome.WARNINGS if counts.warning else Outcome.PASSED


def by_weight(findings: Iterable[Finding]) -> list[Finding]:
    """Put what decides the outcome first, so that it is never cut; else keep the order."""
    return sorted(findings, key=_weight)


def _weight(finding: Finding) -> tuple[bool, int, bool]:
    severity = list(Severity).index(finding.severity)
    return (finding.rule not in FOR_MAINTAINERS, severity, finding.rule == CRASHED)


def tally(findings: Iterable[Finding]) -> Counts:
    """Count findings by severity, our own failures apart."""
    found = Counter(
        "crashed" if finding.rule == CRASHED else str(finding.severity) for finding in findings
    )
    return Counts(**{name: found[name] for name in Counts.model_fields})
