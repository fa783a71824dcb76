"""What is kept of a checked file: its result as JSON, and what it asked of the other rows.

A result that depends on other rows holds as long as every question it asked has the same answer: no
list has to be kept of what each rule reads. `Parts` keeps what is made of checked files by key.
"""

import hashlib
import itertools
import json
import os
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from geneb_ci.check.report import Outcome
from geneb_ci.common.errors import NothingChecked
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

    Raises ValueError, TypeError or KeyError for what `part_of` did not write.
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
        if kind == NAMES:
            return [[_name(path, own), name] for path, name in self.peers.names.get(key, ())]
        by_key = self.peers.ids if kind == IDS else self.peers.by_digest
        return [_name(path, own) for path in by_key.get(key, ())]

    @property
    def rows(self) -> str:
        """A digest of all rows that are kept for comparison: places, names and values."""
        if not self._rows:
            found = hashlib.sha256()
            names: dict[int, bytes] = {}
            for row in self.peers.rows:
                if id(row.names) not in names:  # rows share their tuple of names
                    joined = "\0".join(row.names).encode("utf-8", "surrogatepass")
                    names[id(row.names)] = hashlib.sha256(joined).digest()
                place = str(row.path).encode("utf-8", "surrogateescape")
                values = row.values.tobytes()
                found.update(b"%d %d\0" % (len(place), len(values)))
                found.update(place + names[id(row.names)] + values)
            self._rows = found.hexdigest()
        return self._rows

    def hold(self, trace: Trace, own: Path) -> bool:
        """Whether every question of a trace has the same answer."""
        return all(self.answer(kind, key, own) == said for kind, key, said in trace)


def _name(path: Path, own: Path) -> str:
    return OWN if path == own else str(path)


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

    def has_other(self, own: Path) -> bool:
        """As of Peers."""
        self.ask(OTHERS)
        return self._peers.has_other(own)


MANY_FILES = 100
"""Files from which several processes are quicker than one: less than a second of work."""
JOBS_MAX = 16


def jobs_for(files: int) -> int:
    """Return how many processes compute results of so many files."""
    if files < MANY_FILES:
        return 1
    known = hasattr(os, "sched_getaffinity")
    return min(JOBS_MAX, len(os.sched_getaffinity(0)) if known else os.cpu_count() or 1)


class PartStore(Protocol):
    """Where parts lie, as `reuse.Store` is."""

    folder: Path | None

    def load(self, name: str) -> bytes | None:
        """Return the content that was saved under a name, if there is one."""

    def save(self, name: str, body: bytes) -> None:
        """Keep a content under a name."""


Wanted = tuple[object, Callable[[], bytes]]
"""Values that a part follows from, which JSON can write, and what makes it."""


class Parts:
    """Parts of a board that follow from given values alone, each kept under a digest of these.

    They lie in the folder of results of checks, in one file for each state of the code. What is
    not there, was cut or belongs elsewhere is made again.
    """

    def __init__(
        self, store: PartStore | None = None, code: str = "", jobs: int | None = None
    ) -> None:
        """Keep parts of a state of the code in a store.

        `jobs` processes make them, None as many as their number asks for.
        """
        self.jobs = jobs
        self._store = store if store is not None and store.folder is not None else None
        self._root = code
        self._found: dict[str, bytes] = {}
        self._used: dict[str, bytes] = {}
        self._is_changed = False
        if self._store is not None:
            self._load(self._store.load(self._name) or b"")

    @property
    def _name(self) -> str:
        return f"{self._root}-board"

    def taken(self, wanted: Sequence[Wanted]) -> list[bytes]:
        """Return each part, as it is kept or else as it is made; many are made by processes."""
        if self._store is None:
            return list(made([make for _, make in wanted], self.jobs))
        keys = [part_key(known) for known, _ in wanted]
        missing = {
            k: make for k, (_, make) in zip(keys, wanted, strict=True) if self.kept(k) is None
        }
        for key, part in zip(missing, made(list(missing.values()), self.jobs), strict=True):
            self.keep(key, part)
        return [self._used[key] for key in keys]

    def kept(self, key: str) -> bytes | None:
        """Return the part that is kept under the digest of what it follows from; None without."""
        if key in self._found:
            self._used.setdefault(key, self._found[key])
        return self._used.get(key)

    def keep(self, key: str, part: bytes) -> None:
        """Keep a part, once `save` is called."""
        if self._store is not None and self._used.get(key) != part:
            self._used[key] = part
            self._is_changed = True

    def _load(self, body: bytes) -> None:
        head, _, rest = body.partition(b"\n")
        try:
            sizes = json.loads(head)
            ends = list(itertools.accumulate(sizes.values()))
            if ends and ends[-1] == len(rest):
                starts = [0, *ends[:-1]]
                self._found = {k: rest[a:b] for k, a, b in zip(sizes, starts, ends, strict=True)}
        except (ValueError, TypeError, AttributeError):
            self._found = {}

    def save(self) -> None:
        """Keep what this build used, then what earlier ones did, as far as there is room."""
        if self._store is None or not self._is_changed:
            return
        kept, room = {}, PARTS_BYTES_MAX
        for key, part in (self._used | self._found).items():
            room -= len(part)
            if room < 0:
                break
            kept[key] = part
        sizes = json.dumps({key: len(part) for key, part in kept.items()}).encode()
        self._store.save(self._name, b"\n".join([sizes, b"".join(kept.values())]))


def part_key(known: object) -> str:
    """Return the digest of the values that a part follows from."""
    return hashlib.sha256(json.dumps(known).encode()).hexdigest()


NO_PARTS = Parts()
PARTS_BYTES_MAX = 240_000_000
"""Of all parts together: a row has 10 kB, and a file of the store at most 256 MB."""


_makers: list[Callable[[], bytes]] = []
"""Of the process that makes parts: they were there before the processes parted."""


def made(
    makers: list[Callable[[], bytes]], jobs: int | None = None, at_once: int = 25
) -> Iterator[bytes]:
    """Yield what is made, in order, by processes where it is much; alone where one is killed."""
    done, jobs = 0, jobs or jobs_for(len(makers))
    if jobs > 1:
        import multiprocessing  # 30 ms that one process does not need
        from concurrent.futures import ProcessPoolExecutor
        from concurrent.futures.process import BrokenProcessPool

        if "fork" in multiprocessing.get_all_start_methods():
            fork = multiprocessing.get_context("fork")
            _makers[:] = makers
            try:
                with ProcessPoolExecutor(jobs, mp_context=fork) as pool:
                    for one in pool.map(_make, range(len(makers)), chunksize=at_once):
                        yield one
                        done += 1
            except BrokenProcessPool:
                pass
            finally:
                _makers.clear()
    yield from (make() for make in makers[done:])


def _make(number: int) -> bytes:
    return _makers[number]()
