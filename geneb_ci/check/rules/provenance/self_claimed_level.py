"""self-claimed-level: the submission claims a trust level."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, quoted
from geneb_ci.submission.fault import Fault

ID = "self-claimed-level"


def check(context: Context) -> Iterator[Fault]:
    """Report a provenance other than self-reported, unless the file is listed as official."""
    claim = context.member("meta", "provenance")
    changed = context.model_id in context.policy.official and claim == "official"
    if not isinstance(claim, str) or context.is_official or changed:
        return
    if claim != "self-reported":
        yield Fault(
            ID,
            ("meta", "provenance"),
            f"provenance is {quoted(claim)}",
            quoted(claim),
            '"self-reported"',
        )


RULE = Rule(
    id=ID,
    severity=Severity.ERROR,
    what="The submission claims a trust level.",
    why=(
        "Trust levels are computed from evidence: signed audits, or the digest of an official "
        "file. What the file itself claims does not count."
    ),
    fix='Write "provenance": "self-reported". For a higher level, ask a maintainer for an audit.',
    check=check,
)
