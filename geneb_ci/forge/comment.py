"""A verdict as one comment: pure text to text, at most 60,000 characters.

GitHub takes 65,536. What a contributor wrote stands in code spans only (`report.markdown`).
"""

from collections.abc import Sequence

from geneb_ci.check.registry import BY_ID
from geneb_ci.finding import Finding, Severity, counted
from geneb_ci.forge.outcome import counts_of
from geneb_ci.forge.place import place
from geneb_ci.forge.receipt import marker_line, receipt_of
from geneb_ci.forge.verdict import Outcome, PullVerdict, VerdictFinding
from geneb_ci.report.markdown import CHARACTERS_MAX, code, fill, finding_blocks
from geneb_ci.report.summary import by_rule

TITLES = {
    Outcome.PASSED: "passed",
    Outcome.WARNINGS: "passed, with warnings",
    Outcome.CHANGES_NEEDED: "changes needed",
    Outcome.NEEDS_MAINTAINER: "a maintainer decides",
    Outcome.NOT_CHECKED: "not checked",
}
_NEXT = {
    Outcome.PASSED: "Nothing is left for you to do: a maintainer reviews it and merges.",
    Outcome.WARNINGS: (
        "Answer here what explains each warning, or push a correction. A warning does not fail a "
        "submission: a maintainer reads your answer and decides."
    ),
    Outcome.CHANGES_NEEDED: (
        "Mend the errors below and push to this branch: this comment then changes by itself, "
        "within 15 minutes. To check the row on your own machine:"
    ),
    Outcome.NEEDS_MAINTAINER: (
        "A submission changes the row, the card and the extractor of one model; this pull request "
        "changes something else. Take that out and push, or wait for a maintainer: no program "
        "decides on it."
    ),
    Outcome.NOT_CHECKED: (
        "Nothing to do for you: geneb-ci failed, and the fault is its own. Maintainers see the "
        "label."
    ),
}
_NO_SUBMISSION = (
    "There is no submission in this pull request, or not where it belongs. One changes "
    "`submissions/MODEL.json`, `submissions/cards/MODEL.md` and "
    "`submissions/extractors/MODULE.py`, and nothing else. If this is none, a maintainer reviews "
    "it as any other change."
)
_EDIT = (
    "Nothing is left for you to do: the row is on the board already, so a maintainer asks its "
    "author before merging."
)
_CUT_MAX = 120  # room for the line that counts what is not listed
_SHA_SHOWN = 12


def comment(pull: PullVerdict) -> str:
    """Render the comment; the same verdict gives the same bytes.

    What the contributor has to act on comes first, then where the row stands, then notes.
    """
    findings = [_finding(found) for found in pull.findings]
    notes = [finding for finding in findings if finding.severity is Severity.NOTE]
    urgent = [finding for finding in findings if finding.severity is not Severity.NOTE]
    head, middle, foot = marker_line(receipt_of(pull)) + _head(pull), place(pull), _foot(pull)
    room = CHARACTERS_MAX - len(head) - len(middle) - len(foot) - _CUT_MAX
    first, left = _blocks(pull, urgent, room)
    last, unnoted = _blocks(pull, notes, room - len(first))
    left += unnoted + sum(pull.places.values()) - len(findings)
    cut = (
        f"\n**{left:,} more** are not listed here; `geneb-ci check` lists them all.\n"
        if left
        else ""
    )
    return f"{head}{first}{middle}{last}{cut}{foot}"


def found_line(pull: PullVerdict) -> str:
    """Count what was found: "2 errors, 1 warning"."""
    counts = counts_of(pull.places)
    nouns = {"crashed": "failed rule"}
    pairs = counts._asdict().items()
    said = [counted(number, nouns.get(name, name)) for name, number in pairs if number]
    return ", ".join(said) or "nothing to fix"


def _head(pull: PullVerdict) -> str:
    name = code(pull.model) if pull.model else "No submission"
    sha = code(pull.head_sha[:_SHA_SHOWN])
    is_done = pull.outcome is Outcome.PASSED and pull.is_edit
    step = _EDIT if is_done else _NEXT[pull.outcome]
    if pull.outcome is Outcome.NEEDS_MAINTAINER and pull.model is None:
        step = _NO_SUBMISSION
    if pull.outcome is Outcome.CHANGES_NEEDED:
        rows = [file.path for file in pull.files if file.path.endswith(".json")]
        step += " " + code(" ".join(["geneb-ci check", *rows]))
    return (
        f"## geneb-ci: {TITLES[pull.outcome]}\n\n"
        f"{name} at commit {sha}: {found_line(pull)}.\n\n**Next step.** {step}\n"
    )


def _finding(found: VerdictFinding) -> Finding:
    values = found.model_dump()
    values["severity"] = Severity(values["severity"])
    values["fix"] = values["fix"] or BY_ID[values["rule"]].fix
    values["file"] = values["file"] or "this pull request"
    return Finding(**values)


def _blocks(pull: PullVerdict, findings: Sequence[Finding], room: int) -> tuple[str, int]:
    return fill(finding_blocks(by_rule(list(findings)), pull.places), room)


def _foot(pull: PullVerdict) -> str:
    digests = [f"- {code(file.path)}: sha256 {code(file.sha256)}" for file in pull.files]
    listed = "This verdict is about these bytes and no others:\n\n" + "\n".join(digests) + "\n\n"
    return (
        f"\n---\n\n{listed if digests else ''}Why a rule is there: `geneb-ci explain RULE`. "
        f"Held against {code(pull.base_sha[:_SHA_SHOWN])}.\n"
    )
