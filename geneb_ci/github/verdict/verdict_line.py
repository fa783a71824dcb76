"""Write verdicts as one line for another job, cut to fit, and read and validate them."""

from collections import Counter
from collections.abc import Iterable

from geneb_ci.check.registry import BY_ID
from geneb_ci.common.errors import UsageProblem
from geneb_ci.github import one_line
from geneb_ci.github.errors import Tampered
from geneb_ci.github.verdict.model import PullVerdict, Verdicts, outcome_of

_RETRY_FIX = "run `geneb-ci reconcile` again, and pass its output unchanged"


def encode(verdicts: Verdicts) -> str:
    """Return verdicts, shortened to fit, as one line of ASCII of at most `LINE_BYTES_MAX` bytes.

    The line is compressed if the JSON is longer.
    """
    return _shortest(shortened_verdicts(verdicts))


def shortened_verdicts(verdicts: Verdicts) -> Verdicts:
    """Return verdicts that fit into one line.

    If they are too long, findings are cut first; then the last pull requests are left for the next
    run. The numbers by rule stay complete.
    """
    limit = max((len(pull.findings) for pull in verdicts.pulls), default=0)
    while len(_shortest(verdicts)) > one_line.LINE_BYTES_MAX:
        if limit == 0:
            verdicts = _without_last(verdicts)
            continue
        limit = limit * 3 // 4
        pulls = [p.model_copy(update={"findings": p.findings[:limit]}) for p in verdicts.pulls]
        verdicts = verdicts.model_copy(update={"pulls": pulls})
    return verdicts


def _without_last(verdicts: Verdicts) -> Verdicts:
    """Return verdicts without the last one, whose pull request waits for the next run."""
    if len(verdicts.pulls) <= 1:
        raise AssertionError(len(verdicts.pulls))  # the schema bounds everything else
    shortened = {"pulls": verdicts.pulls[:-1], "waiting": verdicts.waiting + 1}
    return verdicts.model_copy(update=shortened)


def _shortest(verdicts: Verdicts) -> str:
    """Return the verdicts as JSON, compressed if the JSON does not fit."""
    line = one_line.json_line(verdicts)
    is_short = len(line) <= one_line.LINE_BYTES_MAX
    return (
        line
        if is_short or len(line) > one_line.UNPACKED_BYTES_MAX
        else one_line.packed_text(verdicts)
    )


def decode(line: str, repository: str) -> Verdicts:
    """Return the verdicts in a line from another job.

    Raises UsageProblem if the line is empty, and Tampered if it is invalid or contradicts itself.
    """
    if not line.strip():
        raise UsageProblem(
            "there is no verdict: the environment variable VERDICT is empty or not set", _RETRY_FIX
        )
    verdicts = one_line.decode(line, Verdicts, "the verdict", _RETRY_FIX)
    if verdicts.repository.casefold() != repository.casefold():
        raise Tampered(
            f"the verdict is about {verdicts.repository}, not about {repository}", _RETRY_FIX
        )
    numbers = [pull.number for pull in verdicts.pulls]
    if len(set(numbers)) < len(numbers):
        raise Tampered("the verdict has a duplicate pull request", _RETRY_FIX)
    # Known rules, their severities, and the outcome that follows from them.
    for pull in verdicts.pulls:
        require_consistent(pull)
    for group in verdicts.groups:
        _require_known_rules(group.places, "the merge queue")
    return verdicts


def require_consistent(pull: PullVerdict) -> None:
    """Raise Tampered if a verdict contradicts itself, or names an unknown rule.

    The job that computes verdicts calls this for each, because one error makes `report` refuse all.
    """
    _require_known_rules(pull.places, f"#{pull.number}")
    for finding in pull.findings:
        if finding.rule not in pull.places or BY_ID[finding.rule].severity != finding.severity:
            raise Tampered(
                f"the verdict on #{pull.number} lists {finding.rule} ({finding.severity}), but "
                "counts no such finding",
                _RETRY_FIX,
            )
    listed_counts = Counter(finding.rule for finding in pull.findings)
    for rule, number in listed_counts.items():
        if number > pull.places[rule]:
            raise Tampered(
                f"the verdict on #{pull.number} lists {number} findings of {rule}, but counts "
                f"{pull.places[rule]}",
                _RETRY_FIX,
            )
    expected = outcome_of(pull.places, is_checked=bool(pull.files and pull.model))
    if pull.outcome is not expected:
        raise Tampered(
            f"the verdict on #{pull.number} is {pull.outcome.value}, but its findings give "
            f"{expected.value}",
            _RETRY_FIX,
        )


def _require_known_rules(places: Iterable[str], subject: str) -> None:
    """Raise Tampered if a verdict names a rule that this version does not have."""
    unknown_rule = next((rule for rule in places if rule not in BY_ID), None)
    if unknown_rule is not None:
        raise Tampered(
            f"the verdict on {subject} names an unknown rule: {unknown_rule}", _RETRY_FIX
        )
