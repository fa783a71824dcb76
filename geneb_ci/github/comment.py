"""A verdict as comment, label and status of a pull request: at most three writes."""

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
    """Return the section on rank and neighbours of a row without errors; "" if there is none."""
    parts = []
    if pull.comparison is not None:
        parts.append(_categories(pull.comparison))
    if pull.standings:
        parts.append(_regimes(pull.standings))
    if pull.neighbour is not None:
        parts.append(_neighbour(pull.neighbour))
    standing = "\n### Rank on the board\n\n" + "\n".join(parts) if parts else ""
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
        ["mean over categories", *(f"{standing.score:.3f}" for standing in standings)],
        ["rank", *(f"{standing.rank} of {standing.rows}" for standing in standings)],
        ["previous rank", *map(_before, standings)],
    ]
    if any(standing.ties is not None for standing in standings):
        columns.append(["no significant difference to", *map(_ties, standings)])
    head, *rows = zip(*columns, strict=True)
    return _table(head, rows)


def _before(standing: RowStanding) -> str:
    if standing.before is None:
        return "new row"
    return "unchanged" if standing.before == standing.rank else str(standing.before)


def _ties(standing: RowStanding) -> str:
    if standing.ties is None:
        return "unknown"
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
        f"Most similar row: {cell(near.model)}, with {near.near:,} of {near.cells:,} scores equal "
        f"within rerun noise; from {near.limit:,} on it would count as a copy.\n"
    )


def _audit(audit: AuditEstimate) -> str:
    data = f"about {audit.sequences:,} test sequences and " if audit.sequences else ""
    return (
        f"\n### Cost and power of an audit\n\nAn audit reruns {audit.drawn} of {audit.tasks} "
        "tasks, drawn at random after the submission is fixed. It embeds and scores "
        f"{data}the training sequences of those tasks. If {audit.fabricated} of the "
        f"{audit.tasks} scores were fabricated, the sample would include at least one of them "
        f"with probability {audit.detection:.1%}.\n"
    )


TITLES = {
    PullOutcome.PASSED: "passed",
    PullOutcome.WARNINGS: "passed, with warnings",
    PullOutcome.CHANGES_NEEDED: "changes needed",
    PullOutcome.NEEDS_MAINTAINER: "a maintainer decides",
    PullOutcome.NOT_CHECKED: "not checked",
}
_NEXT = {
    PullOutcome.PASSED: "You need not do anything: a maintainer will review and merge.",
    PullOutcome.WARNINGS: (
        "Explain each warning in a comment here, or push a correction. Warnings do not fail a "
        "submission: a maintainer reads your explanation and decides."
    ),
    PullOutcome.CHANGES_NEEDED: (
        "Fix the errors below and push to this branch; this comment is updated within 15 "
        "minutes. To check the row on your own machine:"
    ),
    PullOutcome.NEEDS_MAINTAINER: (
        "A submission changes only the row, the card and the extractor of one model; this pull "
        "request changes other files as well. Remove those changes and push, or wait for a "
        "maintainer's review."
    ),
    PullOutcome.NOT_CHECKED: (
        "You need not do anything: geneb-ci crashed on this pull request. The label notifies the "
        "maintainers."
    ),
}
_NO_SUBMISSION = (
    "No submission was found in this pull request. A submission changes `submissions/MODEL.json`, "
    "`submissions/cards/MODEL.md` and `submissions/extractors/MODULE.py`, and nothing else. A "
    "maintainer reviews any other change."
)
_EDIT = (
    "You need not do anything: the row is already published, so a maintainer asks its author "
    "before merging."
)
_CUT_MAX = 120  # room for the line that counts what is not listed
_SHA_SHOWN = 12


def comment(pull: PullVerdict) -> str:
    """Return the text of the comment, a deterministic function of the verdict.

    It lists errors and warnings, then the row's rank, then notes.
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
    """Return the numbers of findings: "2 errors, 1 warning"."""
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
    listed = "This verdict applies to exactly these files:\n\n" + "\n".join(digests) + "\n\n"
    return (
        f"\n---\n\n{listed if digests else ''}To explain a rule: `geneb-ci explain RULE`. "
        f"Base commit: {code(pull.base_sha[:_SHA_SHOWN])}.\n"
    )


LABELS = {
    PullOutcome.PASSED: "geneb: passed",
    PullOutcome.WARNINGS: "geneb: warnings",
    PullOutcome.CHANGES_NEEDED: "geneb: changes needed",
    PullOutcome.NEEDS_MAINTAINER: "needs-maintainer",
    PullOutcome.NOT_CHECKED: "geneb: not checked",
}
"""The only labels that geneb-ci adds or removes."""
STATES = {
    PullOutcome.PASSED: "success",
    PullOutcome.WARNINGS: "success",
    PullOutcome.CHANGES_NEEDED: "failure",
    PullOutcome.NEEDS_MAINTAINER: "pending",
    PullOutcome.NOT_CHECKED: "error",
}
_DESCRIPTION_MAX = 140  # GitHub's limit
_QUEUED = "nothing was written; the new commits are queued, and are checked within 15 minutes"


class Written(NamedTuple):
    """What was written to one pull request."""

    status: bool
    labels: bool
    comment: bool


def publish(github: GitHub, verdict: PullVerdict) -> Written:
    """Write comment, label and status where they differ: two read requests, at most three writes.

    Raises HeadMoved, before anything is written, if the pull request has new commits.
    """
    # 1. Read the present state; the head last, right before the first write.
    text = comment(verdict)
    sticky = own_comment(github.comments(verdict.number), github.author)
    pull = github.pull(verdict.number)
    if pull.head.sha != verdict.head_sha or pull.state != "open":
        what = "is closed" if pull.state != "open" else f"has the new head {pull.head.sha}"
        raise HeadMoved(f"pull request {verdict.number} {what}", _QUEUED)
    is_said = sticky is not None and _same(sticky.body, text)
    # 2. The label, before the list of the other labels is outdated.
    is_labelled = _label(github, pull, LABELS[verdict.outcome])
    # 3. The status, on the checked commit. The comment is written last, so that its presence
    #    proves that the status was set.
    if not is_said:
        github.set_status(verdict.head_sha, STATES[verdict.outcome], _description(verdict))
    # 4. The comment: edited if it exists, else created.
    if sticky is None:
        _comment_once(github, verdict.number, text)
    elif not is_said:
        github.edit_comment(sticky.id, text)
    return Written(status=not is_said, labels=is_labelled, comment=not is_said)


def _label(github: GitHub, pull: Pull, wanted: str) -> bool:
    """Set our label on a pull request, in at most one write; return whether one was needed.

    A first label is added, which keeps labels set meanwhile. To replace one in a single write, all
    labels are set.
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
    """Comment; if GitHub fails, check whether the comment exists before sending it again.

    Raises Unavailable if that fails, too.
    """
    try:
        github.add_comment(number, text)
    except Unavailable:
        time.sleep(github.wire.patience.between_writes)  # GitHub reads from replicas that lag
        if own_comment(github.comments(number), github.author) is None:
            github.add_comment(number, text)


def _description(verdict: PullVerdict) -> str:
    if verdict.outcome is PullOutcome.NEEDS_MAINTAINER:
        return "a maintainer has to review this change"
    return found_line(verdict)[:_DESCRIPTION_MAX]


def _same(one: str, other: str) -> bool:
    """Whether two comments are equal, apart from line ends and trailing blanks."""
    return one.replace("\r\n", "\n").strip() == other.strip()
