"""One pull request to its findings, and from these to a verdict of bounded size."""

import dataclasses
import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from geneb_ci.check.change import REGULAR, Blob, Change, Places
from geneb_ci.check.companions import Proposed, extractor_module, is_built_in
from geneb_ci.check.context import Context
from geneb_ci.check.registry import BY_ID, RULES
from geneb_ci.check.runner import Checker, FileResult
from geneb_ci.common.config import Layout
from geneb_ci.common.errors import UsageProblem
from geneb_ci.common.finding import Finding, Severity, quoted
from geneb_ci.github.api import GitHub
from geneb_ci.github.pull_request import Sides, change_findings, git_sha, read_blob, read_sides
from geneb_ci.github.replies import Pull
from geneb_ci.github.standing import BaseBranch, audit_estimate, comparison, neighbour, standings
from geneb_ci.github.verdict import (
    CRASHED,
    FileDigest,
    PullVerdict,
    VerdictFinding,
    chosen,
    counts_of,
    outcome_of,
    shown_places_of,
)
from geneb_ci.render.plain import visible
from geneb_ci.submission.card import Card, parse_card
from geneb_ci.submission.document import parse_document
from geneb_ci.submission.fault import Fault

# With these, nothing of the pull request is read: what it changes is not a submission's to change,
# or not all of it is known.
UNREAD = frozenset({"truncated-tree", "too-many-files"})
_CORRECTION = "correction"


@dataclass(frozen=True)
class Judged:
    """All that is known of one pull request."""

    merge_base: str
    change: Change
    findings: tuple[Finding, ...]
    files: tuple[FileDigest, ...]
    context: Context | None
    """The row with what it is held against; None where no row was read."""
    result: FileResult | None


def places_of(layout: Layout) -> Places:
    """Return the folders of a repository relative to its root.

    Raises UsageProblem where this is no repository of submissions.
    """
    if layout.submissions is None:
        raise UsageProblem(
            "this is not a repository of submissions",
            "run it in a checkout of the base branch: rows are held against those that lie there",
        )
    folders = (layout.submissions, layout.cards, layout.extractors)
    standard = dataclasses.astuple(Places())
    names = [
        PurePosixPath(folder.relative_to(layout.root)).as_posix() if folder else usual
        for folder, usual in zip(folders, standard, strict=True)
    ]
    return Places(*names)


class Judge:
    """Judges pull requests of one repository against the checkout of its base branch."""

    def __init__(self, github: GitHub, layout: Layout, modules: Mapping[str, str]) -> None:
        """Take `modules`: each published row's model id to the file name of its extractor."""
        self.github = github
        self.layout = layout
        self.modules = modules
        self.places = places_of(layout)
        self.checker = Checker(RULES)

    def judge(self, pull: Pull) -> Judged:
        """Read and check one pull request: at most six requests. Raises ForgeProblem."""
        sides = read_sides(self.github, pull, self.places)
        first = change_findings(sides.change)
        if {finding.rule for finding in first} & UNREAD or not sides.change.model:
            return Judged(sides.merge_base, sides.change, tuple(first), (), None, None)
        raws = self._read(sides.change, sides.head)
        change = self._told(sides, raws)
        if change.extractor is not None and change.extractor.path not in raws:
            raws |= self._read(change, sides.head)  # only now is it known to be the row's own
        findings = change_findings(change)
        files = tuple(
            FileDigest(path=path, blob=git_sha(raw), sha256=hashlib.sha256(raw).hexdigest())
            for path, raw in sorted(raws.items())
            if isinstance(raw, bytes)
        )
        row = f"{self.places.submissions}/{change.model}.json"
        if row not in raws:
            return Judged(sides.merge_base, change, tuple(findings), files, None, None)
        context = self._context(change, raws, row)
        result = self.checker.result(context)
        findings += [*_too_large(change, raws), *result.findings]
        if any(finding.rule == "row-without-card" for finding in findings):
            findings = [finding for finding in findings if finding.rule != "missing-card"]
        findings.sort(key=Finding.sort_key)
        return Judged(sides.merge_base, change, tuple(findings), files, context, result)

    def _read(self, change: Change, head: Mapping[str, Blob]) -> dict[str, bytes | Fault]:
        """Read the model's own files; the row also where it is not changed."""
        row = f"{self.places.submissions}/{change.model}.json"
        wanted = [file.path for file in change.own if file.after is not None]
        if row in head and row not in wanted:
            wanted.append(row)
        return {
            path: read_blob(self.github, head[path])
            for path in wanted
            if head[path].mode == REGULAR
        }

    def _told(self, sides: Sides, raws: Mapping[str, bytes | Fault]) -> Change:
        """Add to a change what its own files say, the extractor and the correction."""
        change = sides.change
        row = raws.get(f"{self.places.submissions}/{change.model}.json")
        value = parse_document(row, Path(), "").value if row is not None else None
        module = extractor_module(value)
        card = _card(raws, f"{self.places.cards}/{change.model}.md")
        note = card.find(_CORRECTION) if card is not None else None
        published = self.modules.get(change.model, "")
        is_shared = any(
            name == published for model, name in self.modules.items() if model != change.model
        )
        return dataclasses.replace(
            change,
            module=module,
            is_there=is_built_in(value) or f"{self.places.extractors}/{module}" in sides.head,
            published_module="" if is_shared else published,
            correction=note.value if note is not None else "",
        )

    def _context(self, change: Change, raws: Mapping[str, bytes | Fault], row: str) -> Context:
        card_path = f"{self.places.cards}/{change.model}.md"
        extractor = change.extractor.path if change.extractor is not None else ""
        code = raws.get(extractor)
        proposed = Proposed(
            raws[row],
            _card(raws, card_path),
            {extractor.rsplit("/", 1)[-1]: code} if isinstance(code, bytes) else {},
        )
        place = Path(str(self.layout.submissions)) / f"{change.model}.json"
        return self.checker.proposed(place, row, proposed)


def _card(raws: Mapping[str, bytes | Fault], path: str) -> Card | None:
    return parse_card(raws[path], path) if path in raws else None


def _too_large(change: Change, raws: Mapping[str, bytes | Fault]) -> list[Finding]:
    """Report an extractor that is too large to be read; rows and cards have rules of their own."""
    raw = raws.get(change.extractor.path) if change.extractor is not None else None
    if change.extractor is None or not isinstance(raw, Fault):
        return []
    rule = BY_ID[raw.rule]
    return [
        Finding(
            rule.id,
            rule.severity,
            raw.message,
            change.extractor.path,
            "",
            1,
            1,
            raw.found,
            raw.expected,
            rule.fix,
        )
    ]


SHORT, LONG = 255, 600  # characters of a field of the verdict


def pull_verdict(pull: Pull, judged: Judged, base: BaseBranch) -> PullVerdict:
    """Say what became of a pull request."""
    result, context = judged.result, judged.context
    places = shown_places_of(judged.findings)
    is_sound = result is not None and not counts_of(places).error
    own = result.submission if result is not None and is_sound else None
    digest = result.document.sha256 if result is not None else ""
    board, benchmark = base.rows, base.benchmark
    model = judged.change.model or None
    return PullVerdict(
        number=pull.number,
        head_sha=pull.head.sha,
        base_sha=judged.merge_base,
        outcome=outcome_of(places, is_checked=result is not None),
        model=model,
        level=base.level(own, digest) if own is not None else None,
        is_edit=any(row.model_id == model for row in board),
        files=list(judged.files),
        places=places,
        weight=_weight(judged.findings),
        findings=_findings(judged.findings),
        comparison=comparison(own, board, benchmark) if own is not None else None,
        standings=standings(own, board, benchmark, base.ties(own)) if own is not None else [],
        neighbour=neighbour(context) if own is not None and context is not None else None,
        audit=audit_estimate(benchmark, base.policy) if own is not None else None,
    )


def crash_verdict(pull: Pull, merge_base: str, error: Exception) -> PullVerdict:
    """Say that we failed, and of what: a pull request on which we fail does not pass."""
    rule = BY_ID[CRASHED]
    what = f"reading the pull request failed: {type(error).__name__}: {quoted(str(error))}"
    finding = Finding(rule.id, rule.severity, what, "", "", 1, 1, "", "", rule.fix)
    places = shown_places_of([finding])
    return PullVerdict(
        number=pull.number,
        head_sha=pull.head.sha,
        base_sha=merge_base,
        outcome=outcome_of(places, is_checked=False),
        model=None,
        level=None,
        is_edit=False,
        files=[],
        places=places,
        weight=0.0,
        findings=_findings([finding]),
        comparison=None,
        standings=[],
        neighbour=None,
        audit=None,
    )


def _weight(findings: Sequence[Finding]) -> float:
    """Sum the scores of all warnings; one without a measure counts as one at its threshold."""
    warnings = (finding for finding in findings if finding.severity is Severity.WARNING)
    return round(math.fsum(max(1.0, finding.score) for finding in warnings), 1)


def _findings(findings: Sequence[Finding]) -> list[VerdictFinding]:
    return [
        VerdictFinding(
            rule=finding.rule,
            severity=Severity(finding.severity).value,
            message=visible(finding.message, LONG),
            file=visible(finding.file, SHORT),
            pointer=visible(finding.pointer, SHORT),
            line=finding.line,
            column=finding.column,
            found=visible(finding.found, SHORT),
            expected=visible(finding.expected, SHORT),
            fix="" if finding.fix == BY_ID[finding.rule].fix else visible(finding.fix, LONG),
            score=finding.score,
        )
        for finding in chosen(findings)
    ]
