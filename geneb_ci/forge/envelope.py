"""The verdict as one line of JSON, and back: the reader believes none of it unchecked."""

import json
from collections import Counter

from pydantic import ValidationError

from geneb_ci.check.registry import BY_ID
from geneb_ci.errors import UsageProblem
from geneb_ci.forge.errors import Tampered
from geneb_ci.forge.outcome import outcome_of
from geneb_ci.forge.verdict import BYTES_MAX, PullVerdict, Verdict
from geneb_ci.read.scanner import scan
from geneb_ci.report.plain import visible

_AGAIN = "run `geneb-ci reconcile` again, and give its output unchanged"


def encode(verdict: Verdict) -> str:
    """Write a verdict on one line of ASCII, at most `BYTES_MAX` bytes: findings are cut to fit.

    The places still tell of those that were cut. No "##[" is left for a runner to take for a
    command.
    """
    limit = max((len(pull.findings) for pull in verdict.pulls), default=0)
    while len(text := _line(verdict)) > BYTES_MAX:
        if limit == 0:
            raise AssertionError(len(text))  # all else is bounded by the schema
        limit = limit * 3 // 4
        pulls = [p.model_copy(update={"findings": p.findings[:limit]}) for p in verdict.pulls]
        verdict = verdict.model_copy(update={"pulls": pulls})
    return text


def _line(verdict: Verdict) -> str:
    text = json.dumps(verdict.model_dump(mode="json"), ensure_ascii=True, allow_nan=False)
    return text.replace("##[", "\\u0023#[")


def decode(text: str, repository: str) -> Verdict:
    """Read a verdict strictly. Raises Tampered where it is not one, or contradicts itself."""
    # 1. Its size, before a byte of it is parsed.
    if not text.strip():
        raise UsageProblem("there is no verdict: VERDICT is empty", _AGAIN)
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > BYTES_MAX:
        raise Tampered(f"the verdict has {size:,} bytes; the limit is {BYTES_MAX:,}", _AGAIN)
    # 2. JSON without duplicate keys, NaN or depth.
    faults = scan(text).faults
    if faults:
        raise Tampered(f"the verdict is not JSON: {visible(faults[0].message, 200)}", _AGAIN)
    # 3. Its schema.
    try:
        verdict = Verdict.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = "/".join(str(part) for part in first["loc"])
        raise Tampered(
            f"the verdict does not fit its schema at {visible(place, 100)}: {first['msg']}", _AGAIN
        ) from error
    # 4. Its subject.
    if verdict.repository.casefold() != repository.casefold():
        raise Tampered(f"the verdict is about {verdict.repository}, not about {repository}", _AGAIN)
    numbers = [pull.number for pull in verdict.pulls]
    if len(set(numbers)) < len(numbers):
        raise Tampered("the verdict names one pull request twice", _AGAIN)
    # 5. Its reasons: each a rule of ours, with that rule's severity, and the outcome they lead to.
    for pull in verdict.pulls:
        _hold_together(pull)
    return verdict


def _hold_together(pull: PullVerdict) -> None:
    unknown = next((rule for rule in pull.places if rule not in BY_ID), None)
    if unknown is not None:
        raise Tampered(f"the verdict on {pull.number} holds no rule of ours: {unknown}", _AGAIN)
    for finding in pull.findings:
        if finding.rule not in pull.places or BY_ID[finding.rule].severity != finding.severity:
            raise Tampered(
                f"the verdict on {pull.number} counts no {finding.severity} {finding.rule}", _AGAIN
            )
    told = Counter(finding.rule for finding in pull.findings)
    if any(number > pull.places[rule] for rule, number in told.items()):
        raise Tampered(f"the verdict on {pull.number} tells of more than it counts", _AGAIN)
    expected = outcome_of(pull.places, is_checked=bool(pull.files and pull.model))
    if pull.outcome is not expected:
        raise Tampered(
            f"the verdict on {pull.number} says {pull.outcome.value}, its findings say "
            f"{expected.value}",
            _AGAIN,
        )
