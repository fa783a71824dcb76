"""One pull request: what it changes, by git's own trees, its findings, and a verdict from these."""

import base64
import binascii
import dataclasses
import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from geneb_ci.check.change import REGULAR, Blob, Change, ChangeFault, FileChange, Places
from geneb_ci.check.companions import Proposed, extractor_module, is_built_in
from geneb_ci.check.context import Context
from geneb_ci.check.registry import BY_ID, CHANGE_RULES, RULES
from geneb_ci.check.rule import AnyRule, ChangeRule
from geneb_ci.check.runner import Checker, FileResult, crash_message
from geneb_ci.common.config import Layout
from geneb_ci.common.errors import UsageProblem
from geneb_ci.common.finding import Finding, Severity, quoted
from geneb_ci.github.api import GitHub
from geneb_ci.github.errors import Tampered
from geneb_ci.github.replies import Pull, RecursiveTree
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
from geneb_ci.submission.bytes import BYTES_MAX, too_large
from geneb_ci.submission.card import Card, parse_card
from geneb_ci.submission.document import parse_document
from geneb_ci.submission.fault import Fault

_AGAIN = "run the command again; if it fails again, the connection to GitHub may be tampered with"


@dataclass(frozen=True)
class Sides:
    """The trees of the merge base and of the head of a pull request."""

    merge_base: str
    change: Change
    head: dict[str, Blob]
    """Every path of the head except folders."""


def read_sides(github: GitHub, pull: Pull, places: Places) -> Sides:
    """Read both trees, in at most three requests; trees of an earlier merge base are cached.

    Raises Tampered if an answer contradicts itself.
    """
    base = github.comparison(pull.base.sha, pull.head.sha).merge_base_commit
    before, base_cut = _entries(github.tree(base.commit.tree.sha))
    after, head_cut = _entries(github.tree(pull.head.sha))
    paths = sorted(p for p in before.keys() | after.keys() if before.get(p) != after.get(p))
    files = tuple(FileChange(path, before.get(path), after.get(path)) for path in paths)
    change = Change(files, truncated=base_cut or head_cut, places=places)
    return Sides(base.sha, change, after)


def _entries(tree: RecursiveTree) -> tuple[dict[str, Blob], bool]:
    found: dict[str, Blob] = {}
    for entry in tree.tree:
        if entry.type == "tree":
            continue
        if entry.path in found:
            raise Tampered(f"a tree has a duplicate path: {ascii(entry.path)[:80]}", _AGAIN)
        found[entry.path] = Blob(entry.mode, entry.sha, entry.size)
    return found, tree.truncated


def read_blob(github: GitHub, blob: Blob) -> bytes | Fault:
    """Return the bytes of a file, in one request; a Fault without a request if it is too large.

    Raises Tampered if the bytes do not match their git object id.
    """
    if blob.mode != REGULAR:
        raise ValueError(blob.mode)
    if blob.size > BYTES_MAX:
        return too_large(blob.size)
    reply = github.blob(blob.sha)
    try:
        if reply.encoding != "base64":
            raise Tampered(f"blob {blob.sha}: encoding {reply.encoding[:20]!a}", _AGAIN)
        raw = base64.b64decode(reply.content.replace("\n", ""), validate=True)
    except binascii.Error as error:
        raise Tampered(f"blob {blob.sha}: not base64", _AGAIN) from error
    if git_sha(raw) != blob.sha:
        raise Tampered(f"blob {blob.sha}: GitHub sent bytes with the id {git_sha(raw)}", _AGAIN)
    return raw if len(raw) <= BYTES_MAX else too_large(len(raw))


def git_sha(raw: bytes) -> str:
    """Return the git object id of a blob: SHA-1 of "blob", a space, the size, a NUL, the bytes."""
    return hashlib.sha1(b"blob %d\0" % len(raw) + raw, usedforsecurity=False).hexdigest()


# Listed findings per rule; the others are counted.
PATHS_MAX = 20


def change_findings(change: Change, rules: Iterable[ChangeRule] = CHANGE_RULES) -> list[Finding]:
    """Return the findings about a change, sorted by file and rule."""
    return sorted(_change_findings(change, rules), key=Finding.sort_key)


def _change_findings(change: Change, rules: Iterable[ChangeRule]) -> Iterator[Finding]:
    for rule in rules:
        try:
            faults = list(rule.check(change))
        except Exception as error:  # noqa: BLE001 (any exception is a bug, reported as a finding)
            crash = ChangeFault("check-crashed", "", crash_message(rule, error), rule.id)
            yield _change_finding(BY_ID["check-crashed"], crash)
            continue
        yield from (_change_finding(rule, fault) for fault in faults[:PATHS_MAX])
        if len(faults) > PATHS_MAX:
            more = len(faults) - PATHS_MAX
            message = f"{more:,} more findings of {rule.id} are not listed"
            yield _change_finding(
                rule, ChangeFault(rule.id, "", message, f"{len(faults)} paths", "none")
            )


def _change_finding(rule: AnyRule, fault: ChangeFault) -> Finding:
    return Finding(
        rule=rule.id,
        severity=rule.severity,
        message=fault.message,
        file=fault.file,
        pointer="",
        line=1,
        column=1,
        found=fault.found,
        expected=fault.expected,
        fix=fault.fix or rule.fix,
    )


# With these, nothing of the pull request is read: what it changes is not a submission's to change,
# or not all of it is known.
UNREAD = frozenset({"truncated-tree", "too-many-files"})
_CORRECTION = "correction"


@dataclass(frozen=True)
class Judged:
    """The results of checking one pull request."""

    merge_base: str
    change: Change
    findings: tuple[Finding, ...]
    files: tuple[FileDigest, ...]
    context: Context | None
    """The row with its context; None if no row was read."""
    result: FileResult | None


def places_of(layout: Layout) -> Places:
    """Return the folders of a repository relative to its root.

    Raises UsageProblem if this is not a repository of submissions.
    """
    if layout.submissions is None:
        raise UsageProblem(
            "this is not a repository of submissions",
            "run this in a checkout of the base branch, whose rows are used for comparison",
        )
    folders = (layout.submissions, layout.cards, layout.extractors)
    standard = dataclasses.astuple(Places())
    names = [
        PurePosixPath(folder.relative_to(layout.root)).as_posix() if folder else usual
        for folder, usual in zip(folders, standard, strict=True)
    ]
    return Places(*names)


class Judge:
    """Checks pull requests of a repository against a checkout of its base branch."""

    def __init__(self, github: GitHub, layout: Layout, modules: Mapping[str, str]) -> None:
        """`modules` maps the model id of each published row to the file name of its extractor."""
        self.github = github
        self.layout = layout
        self.modules = modules
        self.places = places_of(layout)
        self.checker = Checker(RULES)

    def judge(self, pull: Pull) -> Judged:
        """Read and check one pull request, in at most six requests. Raises ForgeProblem."""
        sides = read_sides(self.github, pull, self.places)
        first = change_findings(sides.change)
        if {finding.rule for finding in first} & UNREAD or not sides.change.model:
            return Judged(sides.merge_base, sides.change, tuple(first), (), None, None)
        raws = self._read(sides.change, sides.head)
        change = self._told(sides, raws)
        if change.extractor is not None and change.extractor.path not in raws:
            raws |= self._read(change, sides.head)  # now known to belong to the row
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
        """Read the model's files, including the row if it is unchanged."""
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
        """Return the change with the extractor and the correction that its files name."""
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
    """Report an extractor that is too large; rows and cards have their own rules."""
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
    """Return the verdict on a pull request."""
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
    """Return the verdict on a pull request on which geneb-ci crashed; it does not pass."""
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
    """Return the sum of the scores of all warnings; one without a score counts as 1."""
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
