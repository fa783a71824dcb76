"""What is kept of a checked file: its result as JSON, and what it asked of the other rows.

A result that depends on other rows holds as long as every question it asked has the same answer: no
list has to be kept of what each rule reads.
"""

import hashlib
import json
import os
from collections.abc import Callable, Container, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from geneb_ci.check.report import Outcome
from geneb_ci.common.errors import NothingChecked
from geneb_ci.common.files import KeptBytes, read_json
from geneb_ci.common.finding import Finding, Need, Severity
from geneb_ci.submission.peers import PeerRow, Peers

CRASHED = "check-crashed"
Part = list[Any]
"""Findings and skipped rules of one part of the rules."""


class KeptEntry(NamedTuple):
    """The two parts of a result: what needs the file alone, and what needs other rows."""

    alone: Part
    among: Part
    trace: list[list[Any]]
    """What the second part asked of the other rows, and the answers."""


class Seen(NamedTuple):
    """One file to check: as it was named, and where it is."""

    name: Path
    path: Path
    sha256: str
    """Of its bytes; "" if it could not be read."""
    lost: NothingChecked | None = None


class Miss(NamedTuple):
    """A file whose result, or a part of it, has to be computed."""

    number: int
    seen: Seen
    key: str
    """Under which the result is kept; "" for none."""
    entry: KeptEntry | None
    """An earlier result, of which the part for the file alone holds."""


def part_of(outcome: Outcome) -> Part:
    """Return the findings of an outcome, and the rules that were not run."""
    findings = [
        [
            one.rule,
            one.severity.value,
            one.message,
            one.file != outcome.name,
            one.pointer,
            one.line,
            one.column,
            one.found,
            one.expected,
            one.fix,
            one.score,
            outcome.frames.get(one),
        ]
        for one in outcome.findings
    ]
    return [findings, [[rule, need.value] for rule, need in outcome.skipped]]


def has_crashed(part: Part) -> bool:
    """Whether a rule crashed: perhaps because memory was missing, so that it is tried again."""
    return any(one[0] == CRASHED for one in part[0])


def outcome_from(
    parts: Sequence[Part], order: dict[str, int], name: str, card: str | None
) -> Outcome:
    """Return the outcome of all parts for a file and a card of these names; rules are in `order`.

    Raises ValueError for a finding about a card where there is none.
    """
    findings: list[Finding] = []
    frames: dict[Finding, tuple[str, int]] = {}
    for found, _ in parts:
        for rule, severity, message, of_card, *rest, frame in found:
            if of_card and card is None:
                raise ValueError("a finding about a card without a card")
            file = str(card) if of_card else name
            pointer, line, column, shown, expected, fix, score = rest
            finding = Finding(
                rule, Severity(severity), message, file, pointer, line, column, shown, expected,
                fix, score,
            )  # fmt: skip
            findings.append(finding)
            if frame is not None:
                frames[finding] = (frame[0], frame[1])
    skipped = [(rule, Need(need)) for _, rules in parts for rule, need in rules]
    skipped.sort(key=lambda one: order[one[0]])
    findings.sort(key=Finding.sort_key)
    return Outcome(name, tuple(findings), frames, tuple(skipped))


Trace = list[list[Any]]
"""Questions in order: what was asked, of which key, and the answer."""
OWN = ""
"""Stands for the file itself in an answer."""
IDS, NAMES, DIGESTS, ROWS, OTHERS = "ids", "names", "digests", "rows", "others"
_KINDS = frozenset({IDS, NAMES, DIGESTS, ROWS, OTHERS})
_SEVERITIES = frozenset(map(str, Severity))
_NEEDS = frozenset(need.value for need in Need)
_FINDING = (str, str, str, bool, str, int, int, str, str, str)
"""Types of what `part_of` writes of a finding, up to its score."""


def entry_text(entry: KeptEntry) -> bytes:
    """Return an entry as one line of JSON."""
    return json.dumps(entry, separators=(",", ":")).encode()


def entry_from(text: bytes, rules: Container[str]) -> KeptEntry:
    """Return the entry that `entry_text` wrote of results of these rules.

    Raises ValueError for anything else: neither its shape nor a type of it is taken on trust.
    """
    value = read_json(text, own=True)
    alone, among, trace = _listed(value, 3)
    for part in (alone, among):
        findings, skipped = _listed(part, 2)
        for one in _listed(findings):
            _require_finding(_listed(one, len(_FINDING) + 2), rules)
        for one in _listed(skipped):
            rule, need = _typed(_listed(one, 2), (str, str))
            if rule not in rules or need not in _NEEDS:
                raise ValueError("a need of no rule")
    for one in _listed(trace):
        kind, _ = _typed(_listed(one, 3)[:2], (str, str))
        if kind not in _KINDS:
            raise ValueError("no question")
    return KeptEntry(alone, among, trace)


def _require_finding(value: list[Any], rules: Container[str]) -> None:
    *told, score, frame = value
    rule, severity, _, _, _, line, column, *_ = _typed(told, _FINDING)
    if rule not in rules or severity not in _SEVERITIES or min(line, column) < 1:
        raise ValueError("a finding of no rule")
    if type(score) not in {int, float} or not 0 <= score <= SCORE_MAX:  # NaN is neither
        raise ValueError("a score that no rule gives")
    if frame is not None and _typed(_listed(frame, 2), (str, int))[1] < 0:
        raise ValueError("an excerpt without a place")


SCORE_MAX = 10
"""How unusual a finding can be (`Finding.score`)."""


def _listed(value: Any, length: int | None = None) -> list[Any]:
    if type(value) is not list or (length is not None and len(value) != length):
        raise ValueError("no list of this length")
    return value


def _typed(values: list[Any], types: tuple[type, ...]) -> list[Any]:
    if tuple(map(type, values)) != types:
        raise ValueError("values of other types")
    return values


class TracedAnswers:
    """TracedAnswers of one set of rows, as values that can be compared and written."""

    def __init__(self, peers: Peers) -> None:
        self.peers = peers
        self._rows = ""

    def answer(self, kind: str, key: str, own: Path) -> Any:
        """Return what these rows say to a question of the file `own`."""
        if kind == ROWS:
            return self.rows
        if kind == OTHERS:
            return self.peers.has_other(own)
        itself = str(own)  # which paths keep; comparing paths themselves takes twice as long
        if kind == NAMES:
            named = [(str(path), name) for path, name in self.peers.names.get(key, ())]
            return [[OWN if path == itself else path, name] for path, name in named]
        by_key = self.peers.ids if kind == IDS else self.peers.by_digest
        return [OWN if path == itself else path for path in map(str, by_key.get(key, ()))]

    @property
    def rows(self) -> str:
        """A digest of all rows that are kept for comparison: places, names and values."""
        if not self._rows:
            found = hashlib.sha256()
            names: dict[int, bytes] = {}
            for row in self.peers.rows:
                if id(row.names) not in names:  # rows share their tuple of names
                    listed = json.dumps(row.names).encode()  # a name may have any letter
                    names[id(row.names)] = hashlib.sha256(listed).digest()
                place = str(row.path).encode("utf-8", "surrogateescape")
                values = row.values.tobytes()
                found.update(b"%d %d\0" % (len(place), len(values)))
                found.update(place + names[id(row.names)] + values)
            self._rows = found.hexdigest()
        return self._rows

    def hold(self, trace: Trace, own: Path) -> bool:
        """Whether every question of a trace has the same answer."""
        return all(self.answer(kind, key, own) == said for kind, key, said in trace)


class _Lookups:
    """A mapping of the rows that records what is looked up."""

    def __init__(self, traced: "TracedPeers", kind: str, found: Mapping[str, Any]) -> None:
        self._traced, self._kind, self._found = traced, kind, found

    def get(self, key: str, default: Any = None) -> Any:  # as of the mapping
        """Return the value of a key, and record the question."""
        self._traced.ask(self._kind, key)
        return self._found.get(key, default)


class TracedPeers:
    """Stands for `Peers` in the context of one file; anything else that is asked is an error."""

    def __init__(self, answers: TracedAnswers, own: Path) -> None:
        self._answers, self._peers, self._own = answers, answers.peers, own
        self._asked: dict[tuple[str, str], None] = {}

    def ask(self, kind: str, key: str = "") -> None:
        """Record a question."""
        self._asked[kind, key] = None

    def taken(self) -> Trace:
        """Return the questions since the last call, with their answers."""
        asked, self._asked = self._asked, {}
        return [[kind, key, self._answers.answer(kind, key, self._own)] for kind, key in asked]

    @property
    def ids(self) -> _Lookups:
        """As of Peers."""
        return _Lookups(self, IDS, self._peers.ids)

    @property
    def names(self) -> _Lookups:
        """As of Peers."""
        return _Lookups(self, NAMES, self._peers.names)

    @property
    def by_digest(self) -> _Lookups:
        """As of Peers."""
        return _Lookups(self, DIGESTS, self._peers.by_digest)

    @property
    def rows(self) -> tuple[PeerRow, ...]:
        """As of Peers."""
        self.ask(ROWS)
        return self._peers.rows

    @property
    def derived(self) -> dict[Hashable, Any]:
        """As of Peers: a function of the rows."""
        self.ask(ROWS)
        return self._peers.derived

    @property
    def fits(self) -> KeptBytes | None:
        """As of Peers: a fit that is kept equals one that is computed, so nothing is asked."""
        return self._peers.fits

    def has_other(self, own: Path) -> bool:
        """As of Peers."""
        self.ask(OTHERS)
        return self._peers.has_other(own)


class StoredFits:
    """Keeps fits of rows by `save` and `load`, each in a file, for one state of the code."""

    def __init__(
        self, load: Callable[[str], bytes | None], save: Callable[[str, bytes], None], code: str
    ) -> None:
        self._load, self._save, self._code = load, save, code

    def kept(self, key: str) -> bytes | None:
        """Return the fit that was kept under a digest of all that it depends on."""
        return self._load(self._name(key))

    def keep(self, key: str, part: bytes) -> None:
        """Keep a fit."""
        self._save(self._name(key), part)

    def _name(self, key: str) -> str:
        return f"{hashlib.sha256(f'{self._code} {key}'.encode()).hexdigest()}-fit"


MANY_FILES = 100
"""Files from which several processes are quicker than one: less than a second of work."""
JOBS_MAX = 16


def jobs_for(files: int) -> int:
    """Return how many processes compute results of so many files."""
    if files < MANY_FILES:
        return 1
    known = hasattr(os, "sched_getaffinity")
    return min(JOBS_MAX, len(os.sched_getaffinity(0)) if known else os.cpu_count() or 1)
