"""A verdict as one comment, labels and a status of a pull request: three writes, or none."""

import time
from collections.abc import Sequence
from typing import NamedTuple

from geneb_ci.check.registry import BY_ID
from geneb_ci.common.finding import Finding, Severity, plural
from geneb_ci.github.api import GitHub
from geneb_ci.github.errors import HeadMoved, Unavailable
from geneb_ci.github.receipt import marker_line, own_comment, receipt_of
from geneb_ci.github.replies import Pull
from geneb_ci.github.verdict import (
    AuditEstimate,
    Neighbour,
    PullOutcome,
    PullVerdict,
    RowComparison,
    RowStanding,
    VerdictFinding,
    counts_of,
)
from geneb_ci.render.markdown import CHARACTERS_MAX, cell, code, fill, finding_blocks
from geneb_ci.render.summary import by_rule
from geneb_ci.render.tables import Table

_NEAREST = 2


def place(pull: PullVerdict) -> str:
    """Render what is known of a sound row; "" where nothing is."""
    parts = []
    if pull.comparison is not None:
        parts.append(_categories(pull.comparison))
    if pull.standings:
        parts.append(_regimes(pull.standings))
    if pull.neighbour is not None:
        parts.append(_neighbour(pull.neighbour))
    standing = "\n### Where it stands\n\n" + "\n".join(parts) if parts else ""
    return standing + (_audit(pull.audit) if pull.audit is not None else "")


def _categories(table: RowComparison) -> str:
    names = [_column(number, name, table.best) for number, name in enumerate(table.models)]
    head = [f"{cell(table.metric)}, {cell(table.regime)}", *names]
    rows = [[cell(row.category), *(f"{s:.3f}" for s in row.scores)] for row in table.categories]
    return _table(head, rows)


def _column(number: int, name: str, best: str) -> str:
    if number == 0:
        return "this row, the best" if name == best else "this row"
    near = "near" if number <= _NEAREST else ""
    said = ", ".join(word for word in (near, "best" if name == best else "") if word)
    return f"{said}: {cell(name)}"


def _regimes(standings: Sequence[RowStanding]) -> str:
    columns = [
        ["regime", *(cell(standing.regime) for standing in standings)],
        ["mean of the categories", *(f"{standing.score:.3f}" for standing in standings)],
        ["rank", *(f"{standing.rank} of {standing.rows}" for standing in standings)],
        ["rank before", *map(_before, standings)],
    ]
    if any(standing.ties is not None for standing in standings):
        columns.append(["within noise of", *map(_ties, standings)])
    head, *rows = zip(*columns, strict=True)
    return _table(head, rows)


def _before(standing: RowStanding) -> str:
    if standing.before is None:
        return "new row"
    return "the same" if standing.before == standing.rank else str(standing.before)


def _ties(standing: RowStanding) -> str:
    if standing.ties is None:
        return "not known"
    if standing.ties == 0:
        return "no other row"
    names = ", ".join(map(cell, standing.tied_with))
    left = standing.ties - len(standing.tied_with)
    return f"{names} and {left:,} more" if left > 0 else names


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = Table(tuple(head), rows, right=frozenset(head[1:])).markdown_lines()
    return "".join(f"{line}\n" for line in lines)


def _neighbour(near: Neighbour) -> str:
    return (
        f"Nearest neighbour: {cell(near.model)}, with {near.near:,} of {near.cells:,} scores "
        f"within the noise of a rerun; {near.limit:,} would make it a copy.\n"
    )


def _audit(audit: AuditEstimate) -> str:
    data = f"about {audit.sequences:,} test sequences, and " if audit.sequences else ""
    return (
        f"\n### What an audit would take, and find\n\n{audit.drawn} of {audit.tasks} tasks, drawn "
        f"at random after the submission is fixed: {data}the training sequences of those tasks, to "
        f"embed and score. With made-up scores in {audit.fabricated} of the {audit.tasks}, the "
        f"draw holds at least one of them in {audit.detection:.1%} of cases.\n"
    )


TITLES = {
    PullOutcome.PASSED: "passed",
    PullOutcome.WARNINGS: "passed, with warnings",
    PullOutcome.CHANGES_NEEDED: "changes needed",
    PullOutcome.NEEDS_MAINTAINER: "a maintainer decides",
    PullOutcome.NOT_CHECKED: "not checked",
}
_NEXT = {
    PullOutcome.PASSED: "Nothing is left for you to do: a maintainer reviews it and merges.",
    PullOutcome.WARNINGS: (
        "Answer here what explains each warning, or push a correction. A warning does not fail a "
        "submission: a maintainer reads your answer and decides."
    ),
    PullOutcome.CHANGES_NEEDED: (
        "Mend the errors below and push to this branch: this comment then changes by itself, "
        "within 15 minutes. To check the row on your own machine:"
    ),
    PullOutcome.NEEDS_MAINTAINER: (
        "A submission changes the row, the card and the extractor of one model; this pull request "
        "changes something else. Take that out and push, or wait for a maintainer: no program "
        "decides on it."
    ),
    PullOutcome.NOT_CHECKED: (
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
    said = [plural(number, nouns.get(name, name)) for name, number in pairs if number]
    return ", ".join(said) or "nothing to fix"


def _head(pull: PullVerdict) -> str:
    name = code(pull.model) if pull.model else "No submission"
    sha = code(pull.head_sha[:_SHA_SHOWN])
    is_done = pull.outcome is PullOutcome.PASSED and pull.is_edit
    step = _EDIT if is_done else _NEXT[pull.outcome]
    if pull.outcome is PullOutcome.NEEDS_MAINTAINER and pull.model is None:
        step = _NO_SUBMISSION
    if pull.outcome is PullOutcome.CHANGES_NEEDED:
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


LABELS = {
    PullOutcome.PASSED: "geneb: passed",
    PullOutcome.WARNINGS: "geneb: warnings",
    PullOutcome.CHANGES_NEEDED: "geneb: changes needed",
    PullOutcome.NEEDS_MAINTAINER: "needs-maintainer",
    PullOutcome.NOT_CHECKED: "geneb: not checked",
}
"""The only labels that are ever set or taken away."""
STATES = {
    PullOutcome.PASSED: "success",
    PullOutcome.WARNINGS: "success",
    PullOutcome.CHANGES_NEEDED: "failure",
    PullOutcome.NEEDS_MAINTAINER: "pending",
    PullOutcome.NOT_CHECKED: "error",
}
_DESCRIPTION_MAX = 140  # GitHub's limit
_QUEUED = "nothing was written; the new commits are queued, and a sweep finds them in 15 minutes"


class Written(NamedTuple):
    """What was written to one pull request."""

    status: bool
    labels: bool
    comment: bool


def publish(github: GitHub, verdict: PullVerdict) -> Written:
    """Write what is not there yet: two requests to read, at most three to write.

    Raises HeadMoved, before anything is written, where the verdict is about other commits.
    """
    # 1. What is there. The head is read last, right before the first write.
    text = comment(verdict)
    sticky = own_comment(github.comments(verdict.number), github.author)
    pull = github.pull(verdict.number)
    if pull.head.sha != verdict.head_sha or pull.state != "open":
        what = "is closed" if pull.state != "open" else f"has moved on to {pull.head.sha}"
        raise HeadMoved(f"pull request {verdict.number} {what}", _QUEUED)
    is_said = sticky is not None and _same(sticky.body, text)
    # 2. The label, while what was read of the others still holds.
    is_labelled = _label(github, pull, LABELS[verdict.outcome])
    # 3. The status, on the very commit that was checked. The comment comes last, so that one that
    #    stands says that the status does, too.
    if not is_said:
        github.set_status(verdict.head_sha, STATES[verdict.outcome], _description(verdict))
    # 4. The comment: the one that is there, or a first.
    if sticky is None:
        _comment_once(github, verdict.number, text)
    elif not is_said:
        github.edit_comment(sticky.id, text)
    return Written(status=not is_said, labels=is_labelled, comment=not is_said)


def _label(github: GitHub, pull: Pull, wanted: str) -> bool:
    """Leave one label of ours on a pull request, in one write at most; gives whether it took one.

    A first label is added: what others set meanwhile stays. Another verdict takes a label away and
    sets one, which is one write only where all labels are written anew.
    """
    names = [label.name for label in pull.labels]
    ours = set(LABELS.values())
    if ours & set(names) == {wanted}:
        return False
    if ours & set(names):
        github.set_labels(pull.number, [*(name for name in names if name not in ours), wanted])
    else:
        github.add_label(pull.number, wanted)
    return True


def _comment_once(github: GitHub, number: int, text: str) -> None:
    """Comment. Where GitHub fails, look whether the comment stands before it is sent again.

    Raises Unavailable where that fails, too.
    """
    try:
        github.add_comment(number, text)
    except Unavailable:
        time.sleep(github.wire.patience.between_writes)  # GitHub reads from copies that lag
        if own_comment(github.comments(number), github.author) is None:
            github.add_comment(number, text)


def _description(verdict: PullVerdict) -> str:
    if verdict.outcome is PullOutcome.NEEDS_MAINTAINER:
        return "this is not for a program to decide: a maintainer looks at it"
    return found_line(verdict)[:_DESCRIPTION_MAX]


def _same(one: str, other: str) -> bool:
    """Whether two comments are one text; GitHub may change line ends and cut blanks at the end."""
    return one.replace("\r\n", "\n").strip() == other.strip()
