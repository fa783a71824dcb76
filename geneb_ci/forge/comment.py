"""A verdict as one comment: pure text to text, at most 60,000 characters.

GitHub takes 65,536. What a contributor wrote stands in code spans only (`report.markdown`).
"""

from collections.abc import Iterator

from geneb_ci.check.registry import BY_ID
from geneb_ci.finding import Finding, Severity, counted
from geneb_ci.forge.receipt import marker_line, receipt_of
from geneb_ci.forge.verdict import (
    AuditEstimate,
    Comparison,
    Neighbour,
    Outcome,
    PullVerdict,
    Standing,
    VerdictFinding,
)
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
        "within 15 minutes. The same check on your own machine:"
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
_EDIT = (
    "Nothing is left for you to do: the row is on the board already, so a maintainer asks its "
    "author before merging."
)
_CUT_MAX = 120  # room for the line that counts what was cut
_SHA_SHOWN = 12


def comment(pull: PullVerdict) -> str:
    """Render the comment; the same verdict gives the same bytes."""
    findings = [_finding(found) for found in pull.findings]
    head = marker_line(receipt_of(pull)) + _head(pull)
    foot = _foot(pull)
    room = CHARACTERS_MAX - len(head) - len(foot) - _CUT_MAX
    body, left = fill(_blocks(findings), room)
    total = pull.counts.error + pull.counts.warning + pull.counts.note + pull.counts.crashed
    left += max(0, total - len(findings))
    cut = (
        f"\n**{left:,} more** are not listed here; `geneb-ci check` lists them all.\n"
        if left
        else ""
    )
    return f"{head}{body}{cut}{foot}"


def found_line(pull: PullVerdict) -> str:
    """Count what was found: "2 errors, 1 warning"."""
    counts = pull.counts
    pairs = (
        (counts.error, "error"),
        (counts.crashed, "failed rule"),
        (counts.warning, "warning"),
        (counts.note, "note"),
    )
    return ", ".join(counted(number, noun) for number, noun in pairs if number) or "nothing to fix"


def _head(pull: PullVerdict) -> str:
    name = code(pull.model) if pull.model else "No submission"
    sha = code(pull.head_sha[:_SHA_SHOWN])
    is_done = pull.outcome is Outcome.PASSED and pull.is_edit
    step = _EDIT if is_done else _NEXT[pull.outcome]
    if pull.outcome is Outcome.CHANGES_NEEDED:
        path = f"submissions/{pull.model}.json" if pull.model else "submissions"
        step += f" {code(f'geneb-ci check {path}')}"
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


def _blocks(findings: list[Finding]) -> Iterator[tuple[str, str]]:
    yield from finding_blocks(by_rule(findings))


def _foot(pull: PullVerdict) -> str:
    parts = []
    if pull.comparison is not None:
        parts.append(_table(pull.comparison))
    if pull.standings:
        parts.append("".join(_standing(standing) for standing in pull.standings))
    if pull.neighbour is not None:
        parts.append(_neighbour(pull.neighbour))
    standing = "\n### Where it stands\n\n" + "\n".join(parts) if parts else ""
    audit = _audit(pull.audit) if pull.audit is not None else ""
    return standing + audit + _small_print(pull)


def _table(table: Comparison) -> str:
    roles = {"this": "this row", "nearest": "near", "best": "best"}
    names = [
        roles[role] if role == "this" else f"{roles[role]}: {code(name)}"
        for role, name in zip(table.roles, table.models, strict=False)
    ]
    lines = [
        f"| {code(table.metric)}, {code(table.regime)} | " + " | ".join(names) + " |",
        "|---|" + "---:|" * len(names),
    ]
    lines += [
        f"| {_cell(row.category)} | " + " | ".join(f"{score:.3f}" for score in row.scores) + " |"
        for row in table.categories
    ]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return code(text).replace("|", "\\|")


def _standing(standing: Standing) -> str:
    text = f"- {code(standing.regime)}: rank {standing.rank} of {standing.rows}, "
    text += f"mean of the categories {standing.score:.3f}"
    if standing.before is None:
        text += "; a new row"
    elif standing.before == standing.rank:
        text += "; its rank stays"
    else:
        text += f"; it was {standing.before}"
    if standing.tied_with:
        text += f"; within noise of {', '.join(code(name) for name in standing.tied_with[:10])}"
        text += f" and {len(standing.tied_with) - 10} more" if len(standing.tied_with) > 10 else ""  # noqa: PLR2004
    elif standing.tied_with is not None:
        text += "; no other row is within noise"
    return f"{text}\n"


def _neighbour(near: Neighbour) -> str:
    return (
        f"Nearest neighbour: {code(near.model)}, with {near.near:,} of {near.cells:,} scores "
        f"within the noise of a rerun; {near.limit:,} would make it a copy.\n"
    )


def _audit(audit: AuditEstimate) -> str:
    data = f"about {audit.sequences:,} test sequences, and " if audit.sequences else ""
    return (
        f"\n### What an audit would take, and find\n\n{audit.drawn} of {audit.tasks} tasks, drawn "
        f"at random after the submission is fixed: {data}the training sequences of those tasks, to "
        f"embed and score. Were the scores of {counted(audit.fabricated, 'task')} made up, the "
        f"draw would hold one of them in {audit.detection:.1%} of cases.\n"
    )


def _small_print(pull: PullVerdict) -> str:
    digests = [f"- {code(file.path)}: sha256 {code(file.sha256)}" for file in pull.files]
    listed = "This verdict is about these bytes and no others:\n\n" + "\n".join(digests) + "\n\n"
    return (
        f"\n---\n\n{listed if digests else ''}Why a rule is there: `geneb-ci explain RULE`. "
        f"Held against {code(pull.base_sha[:_SHA_SHOWN])}.\n"
    )
