"""Checks files, and computes again only what a change can affect.

What cannot be read, was cut, changed or belongs elsewhere is as if it were not there; what cannot
be written is not kept. A run never fails, and never gives another verdict, because of its cache.

A result is kept under a digest of everything that it follows from; what it asked of other rows is
kept beside it and asked again. So a kept result is that of a run without any: see `docs/scale.md`.
"""

import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from geneb_ci.check.kept import (
    KeptEntry,
    Miss,
    Seen,
    StoredFits,
    TracedAnswers,
    entry_from,
    entry_text,
    jobs_for,
    outcome_from,
)
from geneb_ci.check.place import (
    FILE,
    Against,
    Place,
    compared_folder,
    place_of,
    practice_benchmark,
    rows_known_to,
)
from geneb_ci.check.report import Outcome
from geneb_ci.check.row_facts import NOTHING, RowFacts, RowSource, card_at, module_digest
from geneb_ci.common.config import (
    PRACTICE_BENCHMARK,
    Finder,
    LayoutKind,
    cache_folder,
    find_layout,
)
from geneb_ci.common.errors import BadConfiguration, NothingChecked
from geneb_ci.common.files import NotReadable, read_regular, seal, write_whole
from geneb_ci.common.shipped import FIT_FILE, KNOWN_FILE, shipped
from geneb_ci.submission.reading import files_in, read_bytes

if TYPE_CHECKING:
    from geneb_ci.check.runner import PartMaker

_PACKAGE = Path(__file__).resolve().parents[1]
_PARTS = ("check", "common", "models", "receipt", "statistics", "submission")
"""Packages whose code may take part in a finding."""


def code_digest() -> str:
    """Return a digest of the code of the rules, the shipped data, Python and installed packages."""
    found = hashlib.sha256(sys.version.encode())
    for path in sorted(one for part in _PARTS for one in _modules(str(_PACKAGE / part))):
        raw = Path(path).read_bytes()
        found.update(f"\0{path}\0{len(raw)}\0".encode("utf-8", "surrogateescape") + raw)
    for name in (KNOWN_FILE, FIT_FILE, PRACTICE_BENCHMARK, FILE):
        found.update(shipped("schemas", name).read_bytes())
    found.update("\0".join(sorted(_distributions())).encode("utf-8", "surrogateescape"))
    return found.hexdigest()


def _modules(folder: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                yield entry.path
            elif entry.is_dir(follow_symlinks=False) and entry.name != "__pycache__":
                yield from _modules(entry.path)


def _distributions() -> Iterator[str]:
    """Yield the names of installed packages with their versions, as their folders have them."""
    for place in sys.path:
        if place and os.path.isdir(place):  # noqa: PTH112 (a path of Python's own, as text)
            yield from (name for name in os.listdir(place) if name.endswith(".dist-info"))  # noqa: PTH208


_HEAD = b"geneb-ci cache 1\n"
FILE_BYTES_MAX = 256_000_000
"""Results of 10,000 files take 15 MB."""
FILES_MAX = 128
"""Of results two files for each set of rules, of a large board 18, of other rows a fit."""
BYTES_MAX = 512_000_000
"""Of all files together."""


ENTRIES_MAX = 30_000
"""Results in one file, and so of one set of rows."""


class Store:
    """A folder of files by name; None keeps nothing.

    Names begin with `scope`. `entries` is how many results it holds: those of this run, then the
    newest of earlier runs.
    """

    def __init__(self, folder: Path | None, scope: str = "", entries: int = ENTRIES_MAX) -> None:
        self.folder, self.scope, self.entries = folder, scope, entries

    def load(self, name: str) -> bytes | None:
        """Return the content that was saved under a name; None if there is none, or in doubt."""
        if self.folder is None:
            return None
        name = self.scope + name
        try:
            raw = read_regular(self.folder / name, FILE_BYTES_MAX, links=False)
        except NotReadable:
            return None
        head = _head(name)
        digest, body = raw[len(head) : len(head) + 32], raw[len(head) + 32 :]
        is_ours = raw.startswith(head) and hashlib.sha256(body).digest() == digest
        return body if is_ours else None

    def save(self, name: str, body: bytes) -> None:
        """Keep a content under a name, or do nothing if it cannot be written."""
        if self.folder is None or len(body) > FILE_BYTES_MAX:
            return
        name = self.scope + name
        content = _head(name) + hashlib.sha256(body).digest() + body
        with contextlib.suppress(OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(self.folder / name, lambda stream: stream.write(content))
            _prune(self.folder)


NO_STORE = Store(None)


FILES_MIN = 20
"""Files, checked or compared with, from which on results are kept: the same check again then
takes less than half of its time. For one file it saves a tenth of a second, which nobody notices.
"""
VERSIONS = 2
"""Results kept of each file: a row that is changed and changed back is not computed again."""


def own_store(
    files: Sequence[Path],
    find: Finder = find_layout,
    against: Against | None = None,
    *,
    cache: bool,
) -> Store:
    """Return where results of files are kept: nowhere for few files, nor in GitHub Actions.

    There, others may write what a workflow restores. Files of the same folders, which are compared
    with the same rows, have a store of their own: what a check reads follows what it is about.
    """
    if not cache or os.environ.get("GITHUB_ACTIONS") == "true":
        return NO_STORE
    folders = {parent.resolve() for parent in {path.parent for path in files}}
    compared: set[Path] = set()
    rows = 0
    with contextlib.suppress(BadConfiguration, NothingChecked):  # which the check reports
        compared = set(filter(None, (compared_folder(one, find, against) for one in folders)))
        rows = sum(1 for folder in compared for _ in files_in(folder))
    count = max(len(files), rows)
    if count < FILES_MIN:
        return NO_STORE
    scope = "\0".join(sorted(map(str, folders | compared)))
    entries = min(ENTRIES_MAX, VERSIONS * count)
    return Store(cache_folder("check"), f"{_sha256(scope)[:SCOPE_DIGITS]}-", entries)


SCOPE_DIGITS = 16
"""Of the digest of a store's folders: two of them never share it by chance."""


def _head(name: str) -> bytes:
    return _HEAD + name.encode() + b"\n"


def _prune(folder: Path) -> None:
    """Remove the oldest files beyond the limits."""
    with os.scandir(folder) as entries:
        found = sorted(((e.stat(), e.path) for e in entries), key=lambda one: -one[0].st_mtime)
    total = 0
    for number, (status, path) in enumerate(found):
        total += status.st_size
        if number >= FILES_MAX or total > BYTES_MAX:
            Path(path).unlink(missing_ok=True)


class Reuse:
    """Checks files as `Checker` does; results that are kept are not computed.

    `jobs` processes compute the others: None as many as their number asks for. Of a file without
    errors they call `make`, too, whose results are in `made` afterwards.
    """

    def __init__(
        self,
        rules: tuple[str, ...],
        find: Finder,
        against: Against | None,
        store: Store,
        jobs: int | None = 1,
        make: "PartMaker | None" = None,
    ) -> None:
        self.rules, self.find, self.against, self.jobs = rules, find, against, jobs
        self.order = {name: number for number, name in enumerate(rules)}
        self.benchmarks: dict[str, str] = {}
        """Name to sha256 of each benchmark definition that was used."""
        self.source = RowSource(learns=store.folder is not None)
        self.given: tuple[Path, ...] = ()
        self.made: dict[str, bytes] = {}
        self._make = make
        self._store = store
        self._code = code_digest() if store.folder is not None else ""
        self._fits = (
            StoredFits(store.load, store.save, self._code) if store.folder is not None else None
        )
        self._lines: dict[str, bytes] = {}
        """Key to a result, as an earlier run kept it, behind its seal."""
        self._entries: dict[str, KeptEntry] = {}
        self._used: dict[str, None] = {}
        self._is_changed = False
        self._parents: dict[Path, Path] = {}
        self._places: dict[Path, tuple[Place, TracedAnswers, str]] = {}

    def run(self, files: list[Path]) -> Iterator[Outcome | NothingChecked]:
        """Yield the outcome of each file, or the NothingChecked error of one that cannot be read.

        Raises BadConfiguration at the end if settings, benchmark or policy of any file are invalid.
        """
        name = self._load()
        seen = [self._seen(path) for path in files]
        self.given = tuple(one.path for one in seen)
        if self._code:
            unknown = {one.path: one.sha256 for one in seen if one.sha256}
            self.source.learn_all(unknown, self._jobs)
        found: dict[int, Outcome | NothingChecked] = {}
        misses: list[Miss] = []
        broken: dict[str, str] = {}
        for number, one in enumerate(seen):
            try:
                outcome = one.lost or self._kept(number, one)
            except BadConfiguration as error:
                broken.setdefault(error.message, error.fix)
                continue
            if isinstance(outcome, Miss):
                misses.append(outcome)
            else:
                found[number] = outcome
        computed = self._computed(misses) if misses else iter(())
        for number in range(len(files)):
            if number in found:
                yield found.pop(number)
            elif misses and misses[0].number == number:
                result = self._taken(misses.pop(0), next(computed))
                if isinstance(result, BadConfiguration):
                    broken.setdefault(result.message, result.fix)
                else:
                    yield result
        self._save(name)
        if broken:
            raise BadConfiguration("; ".join(broken), next(iter(broken.values())))

    def _seen(self, name: Path) -> Seen:
        parent = name.parent
        if parent not in self._parents:
            self._parents[parent] = parent.resolve()
        path = self._parents[parent] / name.name
        try:
            raw = read_bytes(name)
        except NothingChecked as error:
            return Seen(name, path, "", error)
        return Seen(name, path, self.source.seen(path, raw) if isinstance(raw, bytes) else "")

    def place(self, folder: Path) -> tuple[Place, TracedAnswers, str]:
        """Return what the files of a folder are checked against, and a digest of its settings.

        Raises BadConfiguration.
        """
        if folder not in self._places:
            place = place_of(folder, self.find, self.given, self.against)
            reader = self.source.reader(rows_known_to(place.benchmark))
            place = replace(place, peers=replace(place.peers, reader=reader, fits=self._fits))
            settings = [
                place.layout.kind.value,
                place.benchmark.name,
                place.benchmark.sha256,
                sorted(place.policy.official.items()),
            ]
            digest = hashlib.sha256(json.dumps([self._root, settings]).encode()).hexdigest()
            self._places[folder] = (place, TracedAnswers(place.peers), digest)
        return self._places[folder]

    @property
    def _root(self) -> list[Any]:
        return [self._code, self.rules]

    def _kept(self, number: int, one: Seen) -> Outcome | Miss:
        """Return what is kept of a file, or what is to be computed. Raises BadConfiguration."""
        place, answers, settings = self.place(one.path.parent)
        key, card = self._key(one, place, settings)
        entry = self._entry(key) if key else None
        try:
            if entry is None or not answers.hold(entry.trace, one.path):
                return Miss(number, one, key, entry)
            outcome = outcome_from((entry.alone, entry.among), self.order, str(one.name), card)
        except ValueError:  # about a card that this file does not have
            return Miss(number, one, key, None)
        self._used[key] = None
        self.benchmarks[place.benchmark.name] = place.benchmark.sha256
        return outcome

    def _entry(self, key: str) -> KeptEntry | None:
        """Return the result that is kept under a key; None if there is none, or in doubt."""
        own, _, text = self._lines.get(key, b"").partition(b" ")
        try:
            if own.decode("ascii") == seal(key, text):
                return entry_from(text, self.order)
        except ValueError:
            pass
        self._lines.pop(key, None)
        return None

    def _key(self, one: Seen, place: Place, settings: str) -> tuple[str, str | None]:
        """Return the key of a result and the name of the card; "" if it is not to be kept.

        Raises BadConfiguration if the model's entry in the registry cannot be read.
        """
        facts = self._facts(one) if self._code else None
        if facts is None or not facts.is_plain:
            return "", None
        if place.layout.kind is LayoutKind.ALONE and facts.benchmark == practice_benchmark().name:
            return "", None
        in_repository = place.layout.holds(one.path)
        card = card_at(one.path, place.layout) if in_repository else None
        if card is not None and card.fault is not None:
            return "", None
        module = facts.module if in_repository else ""
        entry = place.registry.raw(facts.model_id)
        parts = [
            settings,
            one.path.name,
            one.sha256,
            in_repository,
            None if card is None else _sha256(card.text),
            module_digest(module, place.layout, NOTHING) if module else None,
            None if entry is None else hashlib.sha256(entry).hexdigest(),
        ]
        digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
        return digest, None if card is None else card.name

    def _facts(self, one: Seen) -> RowFacts | None:
        if one.sha256 and self.source.known(one.sha256) is None:
            self.source.read(one.path, keep=False)
        return self.source.known(one.sha256)

    def _jobs(self, files: int) -> int:
        return self.jobs or jobs_for(files)

    def _computed(self, misses: list[Miss]) -> Iterator[Any]:
        from geneb_ci.check.runner import Computer, computed  # imports the rules

        computer = Computer(
            self.rules,
            self.find,
            self.against,
            self.place,
            self.source,
            self._make,
        )
        jobs = self._jobs(len(misses))
        if jobs > 1:
            for folder in {miss.seen.path.parent for miss in misses}:
                _ = self.place(folder)[1].rows  # read once, before the processes part
        return computed(computer, list(misses), jobs)

    def _taken(self, miss: Miss, found: Any) -> Outcome | NothingChecked | BadConfiguration:
        if isinstance(found, NothingChecked | BadConfiguration):
            return found
        outcome, entry, benchmark, part = found
        if part is not None:
            self.made[part[0]] = part[1]
        if entry is not None and miss.key:
            self._entries[miss.key] = entry
            self._used[miss.key] = None
            self._is_changed = True
        self.benchmarks[benchmark[0]] = benchmark[1]
        return outcome  # type: ignore[no-any-return]

    def _load(self) -> str:
        """Read what earlier runs of these rules kept; return the name of the file."""
        name = _sha256(json.dumps(self._root))
        kinds: dict[bytes, dict[str, bytes]] = {_RESULT: {}, _FACTS: {}}
        for line in (self._store.load(name) or b"").split(b"\n"):
            kind, _, rest = line.partition(b" ")
            key, _, content = rest.partition(b" ")
            if kind in kinds and key.isalnum():
                kinds[kind][key.decode("ascii")] = content
        self._lines = kinds[_RESULT]
        self.source.load(kinds[_FACTS], self._store.load(f"{name}-scores"))
        return name

    def _save(self, name: str) -> None:
        if self._store.folder is None or not (self._is_changed or self.source.is_changed):
            return
        kept = [*self._used, *(key for key in reversed(self._lines) if key not in self._used)]
        facts, scores = self.source.dumped(self._store.entries)
        lines = [b"%s %s %s" % (_FACTS, one.encode(), facts[one]) for one in facts]
        for key in kept[: self._store.entries]:
            if key in self._entries:  # of this run
                text = entry_text(self._entries[key])
                self._lines[key] = f"{seal(key, text)} ".encode() + text
            lines.append(b"%s %s %s" % (_RESULT, key.encode(), self._lines[key]))
        self._store.save(f"{name}-scores", scores)
        self._store.save(name, b"\n".join(lines))


_RESULT, _FACTS = b"result", b"facts"
"""What begins a line of kept results: its kind, then its key, a seal and JSON."""


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
