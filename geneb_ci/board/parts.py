"""Parts of boards that later builds need not make again, rows as numbers among them.

Each is kept under a digest of all that it follows from, in the folder of results of checks. What
was cut, belongs elsewhere or has another shape is as if it were not there.
"""

import array
import functools
import hashlib
import itertools
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from geneb_ci.board.numbers import numbers_of, ranked_regimes
from geneb_ci.check.claims import Results
from geneb_ci.check.kept import jobs_for
from geneb_ci.common.benchmark import Benchmark
from geneb_ci.common.errors import UsageProblem
from geneb_ci.common.files import in_processes, read_json, seal
from geneb_ci.statistics.metrics import RowNumbers
from geneb_ci.submission.document import Document, read_document
from geneb_ci.submission.models import MODELS, Submission, SubmissionV10
from geneb_ci.submission.structure import check_structure, is_sound

if TYPE_CHECKING:
    from geneb_ci.check.reuse import Store


Wanted = tuple[object, Callable[[], bytes]]
"""Values that a part follows from, which JSON can write, and what makes it."""
T = TypeVar("T")


class Parts:
    """Parts of a board that follow from given values alone, each kept under a digest of these.

    They lie in the folder of results of checks, in files for each state of the code. What is not
    there, was cut or belongs elsewhere is made again.
    """

    def __init__(self, store: "Store", jobs: int | None = None) -> None:
        """Keep parts in a store; `jobs` processes make them, None as many as their number asks."""
        self.jobs = jobs
        self._store = store if store.folder is not None else None
        self._root = "" if self._store is None else _code()
        self._found: dict[str, bytes] = {}
        self._seals: dict[str, str] = {}
        self._used: dict[str, bytes] = {}
        self._changed: set[str] = set()
        """Keys of parts that this build made."""
        self._files: dict[str, list[str]] = {}
        """Name of a file to the keys of the parts that it had."""
        if self._store is not None:
            for name in _FILES:
                self._load(name, self._store.load(f"{self._root}-{name}") or b"")

    @property
    def is_kept(self) -> bool:
        """Whether parts are kept for later builds."""
        return self._store is not None

    def taken(self, wanted: Sequence[Wanted], read: Callable[[bytes], T]) -> list[T]:
        """Return each part as it is read, kept or else made; many are made by processes.

        `read` raises ValueError for what no build of this code writes: that is made again.
        """
        if self._store is None:
            return [read(raw) for raw in made([make for _, make in wanted], self.jobs)]
        keys = [part_key(known) for known, _ in wanted]
        values: dict[str, T] = {}
        missing: dict[str, Callable[[], bytes]] = {}
        for key, (_, make) in zip(keys, wanted, strict=True):
            raw = self.kept(key)
            try:
                if raw is None:
                    missing[key] = make
                else:
                    values[key] = read(raw)
            except ValueError:
                missing[key] = make
        for key, part in zip(missing, made(list(missing.values()), self.jobs), strict=True):
            self.keep(key, part)
            values[key] = read(part)
        return [values[key] for key in keys]

    def kept(self, key: str) -> bytes | None:
        """Return the part that is kept under the digest of what it follows from; None without.

        An empty part is none: a damaged file has it, too.
        """
        part = self._found.get(key)
        if part and key not in self._used and seal(key, part) == self._seals[key]:
            self._used[key] = part
        return self._used.get(key)

    def keep(self, key: str, part: bytes) -> None:
        """Keep a part, once `save` is called."""
        if self._store is not None and self.kept(key) != part:
            self._used[key] = part
            self._found.pop(key, None)
            self._seals[key] = seal(key, part)
            self._changed.add(key)

    def _load(self, name: str, body: bytes) -> None:
        head, _, rest = body.partition(b"\n")
        found, at = {}, 0
        try:
            for key, (size, own) in read_json(head, own=True).items():
                self._seals[key], found[key] = own, rest[at : at + size]
                at += len(found[key])
        except (ValueError, TypeError, AttributeError):
            return
        self._found |= found
        self._files[name] = list(found)

    def save(self) -> None:
        """Keep what this build used, then what earlier ones did, as far as there is room."""
        if self._store is None or not self._changed:
            return
        files: dict[str, dict[str, bytes]] = {name: {} for name in self._files}
        parts = self._used | self._found
        is_small = sum(map(len, parts.values())) < DIVIDED_BYTES
        room = min(PARTS_BYTES_MAX, PART_BYTES * self._store.entries)
        for key, part in parts.items():
            room -= len(part)
            if room < 0:
                break
            files.setdefault(_WHOLE if is_small else _file_of(key, part), {})[key] = part
        for name, kept in files.items():
            if self._changed.isdisjoint(kept) and set(kept) == set(self._files.get(name, ())):
                continue
            listed = {key: [len(part), self._seals[key]] for key, part in kept.items()}
            body = b"\n".join([json.dumps(listed).encode(), b"".join(kept.values())])
            self._store.save(f"{self._root}-{name}", body)


DIVIDED_BYTES = 10_000_000
"""From here on, parts lie in several files, so that not all are written when one row changes."""
_WHOLE = "board"
_FILES = (_WHOLE, *(f"board-{part}" for part in ("digests", "texts", *"0123456789abcdef")))
DIGESTS_BYTES_MAX, TEXTS_BYTES_MIN = 64, 100_000
"""Digests of pages have 32 bytes and rows 17 kB; the places of pieces in large files have more."""


def _file_of(key: str, part: bytes) -> str:
    """Name the file of a part: with others that change as often as it does."""
    if len(part) <= DIGESTS_BYTES_MAX:
        return "board-digests"
    return "board-texts" if len(part) >= TEXTS_BYTES_MIN else f"board-{key[0]}"


def part_key(known: object) -> str:
    """Return the digest of the values that a part follows from."""
    return hashlib.sha256(json.dumps(known).encode()).hexdigest()


PART_BYTES = 20_000
"""Of what a build keeps of a row."""
PARTS_BYTES_MAX = 240_000_000
"""Of all parts together: a file of the store has at most 256 MB."""


def made(
    makers: list[Callable[[], bytes]], jobs: int | None = None, at_once: int = 25
) -> Iterator[bytes]:
    """Yield what is made, in order; by processes, each of so many at once, where it is much."""
    jobs = jobs or jobs_for(len(makers))
    return in_processes(lambda number: makers[number](), range(len(makers)), jobs, at_once)


def _code() -> str:
    """Return a digest of the code that makes boards, its templates, and what checks depend on."""
    from geneb_ci import __version__
    from geneb_ci.check.reuse import code_digest

    found = hashlib.sha256(f"{code_digest()} {__version__}".encode())
    folder = Path(__file__).parent
    for path in sorted(one for one in folder.rglob("*.*") if one.suffix != ".pyc"):
        raw = path.read_bytes()
        found.update(f"\0{path.relative_to(folder).as_posix()}\0{len(raw)}\0".encode() + raw)
    return found.hexdigest()


class BoardRow(NamedTuple):
    """A submission as a board takes it."""

    sha256: str
    """Of its file."""
    origin: str
    submission: Submission
    numbers: RowNumbers | None = None
    """With these, the submission has neither results nor evidence."""


def read_row(seen: tuple[Path, str]) -> BoardRow | None:
    """Read a file with the digest that it had when it was checked; None if it is no submission.

    Raises UsageProblem if it has another digest.
    """
    return _row_of(_document(seen))


def _document(seen: tuple[Path, str]) -> Document:
    path, sha256 = seen
    document = read_document(path)
    if document.sha256 != sha256:
        raise UsageProblem(f"{path} changed while it was checked", "run the command again")
    return document


def _row_of(document: Document) -> BoardRow | None:
    submission, _ = check_structure(document.value)
    if submission is None:
        return None
    return BoardRow(document.sha256, document.origin, submission)


PartCheck = Callable[[Mapping[str, Any]], bool]
"""Tells whether kept values can be a part of a row on a board of one benchmark."""


class RowPart(NamedTuple):
    """What a build computes of a row alone, by regime, and what tells if values can be that."""

    of: Callable[[Submission, Results, Benchmark], Mapping[str, Any]]
    check_of: Callable[[Benchmark], PartCheck]


def unknown_sizes(benchmark: Benchmark) -> list[str]:
    """Name the tasks of which the test split has no known size: with one, no interval is known."""
    return [task.id for task in benchmark.tasks if task.n_test is None]


class KeptRows(NamedTuple):
    """Reads rows as numbers, by processes; what parts of boards have of a file is not read.

    What checks a file makes its row, too, from the same reading.
    """

    parts: Parts
    matrices: RowPart
    """Lists of counts."""
    alone: RowPart | None = None
    """What `uncertainty` computes, as bytes; None without diagnostics."""

    def made_of(
        self, document: Document, submission: Submission | None, benchmark: Benchmark
    ) -> tuple[str, bytes] | None:
        """Return the row of a sound document with the key of its part; None where that is kept.

        `submission` is what `structure.check_quickly` gave of it.
        """
        rows = self._sized(benchmark)
        key = part_key(rows.known(document.sha256, benchmark))
        if self.parts.kept(key):
            return None
        return key, _packed(document, submission or _untyped(document), benchmark, rows)

    def known(self, sha256: str, benchmark: Benchmark) -> list[Any]:
        """Return what the row of a file with a digest follows from."""
        return ["row", benchmark.sha256, self.alone is not None, sha256]

    def _sized(self, benchmark: Benchmark) -> "KeptRows":
        return self._replace(alone=None) if unknown_sizes(benchmark) else self

    def read(
        self, seen: Sequence[tuple[Path, str]], benchmark: Benchmark
    ) -> Iterator[BoardRow | None]:
        """Yield the row of each file with the digest that it had when it was checked.

        Raises UsageProblem where a file changed before its row was made.
        """
        rows = self._sized(benchmark)
        wanted: list[Wanted] = [
            (rows.known(one[1], benchmark), functools.partial(_read, one, benchmark, rows))
            for one in seen
        ]
        parts = [one for one in (rows.matrices, rows.alone) if one is not None]
        checks = [one.check_of(benchmark) for one in parts]
        unpacked = functools.partial(_unpacked, benchmark=benchmark, checks=checks)
        for (_, sha256), row in zip(seen, self.parts.taken(wanted, unpacked), strict=True):
            yield row and row._replace(sha256=sha256)


_SLIM: dict[str, Any] = {"results": {}, "evidence": {}}


def _read(seen: tuple[Path, str], benchmark: Benchmark, rows: KeptRows) -> bytes:
    """Return the row of a file as bytes; b"" without a row."""
    document = _document(seen)
    if is_sound(document.value):
        return _packed(document, _untyped(document), benchmark, rows)
    row = _row_of(document)
    return b"" if row is None else _packed(document, row.submission, benchmark, rows)


def _untyped(document: Document) -> Submission:
    """Return a sound submission without results: typed, they take longer than all the rest."""
    return SubmissionV10.model_validate(document.value | {"results": {}})


def _packed(
    document: Document, submission: Submission, benchmark: Benchmark, rows: KeptRows
) -> bytes:
    """Return a row as bytes: a line of JSON, then its numbers by regime."""
    results: Results = document.value["results"]
    numbers = numbers_of(submission, results, benchmark)
    errors = {} if rows.alone is None else rows.alone.of(submission, results, benchmark)
    slim = {key: value for key, value in _SLIM.items() if hasattr(submission, key)}
    head = {
        "model": type(submission).__name__,
        "submission": submission.model_copy(update=slim).model_dump(
            mode="json", by_alias=True, exclude_unset=True
        ),
        "origin": document.origin,
        "matrices": rows.matrices.of(submission, results, benchmark),
    }
    blocks = [*numbers.scores.values(), *numbers.means.values()]
    body = b"".join([*(block.tobytes() for block in blocks), *errors.values()])
    return json.dumps(head).encode() + b"\n" + body


def _unpacked(raw: bytes, benchmark: Benchmark, checks: Sequence[PartCheck]) -> BoardRow | None:
    """Return the row that `_packed` wrote. Raises ValueError for anything else.

    `checks` are those of matrices and, with diagnostics, of errors.
    """
    if not raw:
        return None
    line, _, body = raw.partition(b"\n")
    submission, origin, matrices = _head(line)
    regimes = ranked_regimes(submission, benchmark)
    count = len(regimes)
    sizes = [8 * len(benchmark.metrics) * len(benchmark.tasks)] * count
    sizes += [8 * len(benchmark.metrics) * (2 + len(benchmark.categories))] * count
    has_errors = len(checks) > 1
    if has_errors and count:
        sizes += [(len(body) - sum(sizes)) // count] * count
    ends = [*itertools.accumulate(sizes, initial=0)]
    if ends[-1] != len(body):
        raise ValueError("no row of this benchmark")
    told = array.array("d", body[: ends[2 * count]])
    arrays = [told[start // 8 : end // 8] for start, end in itertools.pairwise(ends)][: 2 * count]
    blocks = (body[start:end] for start, end in itertools.pairwise(ends[2 * count :]))
    errors = dict(zip(regimes, blocks, strict=False))
    values: list[Mapping[str, Any]] = [matrices, errors] if has_errors else [matrices]
    if not _are_scores(told) or not all(
        check(one) for check, one in zip(checks, values, strict=True)
    ):
        raise ValueError("numbers that no row has")
    numbers = RowNumbers(
        dict(zip(regimes, arrays[:count], strict=True)),
        dict(zip(regimes, arrays[count:], strict=True)),
        errors,
        matrices,
    )
    return BoardRow("", origin, submission, numbers)


def _are_scores(numbers: "array.array[float]") -> bool:
    """Whether all are from -1 to 1; looked at as a whole where numpy is at work anyway."""
    if sys.modules.get("numpy") is not None:
        import numpy as np

        return bool((np.abs(np.array(numbers)) <= 1).all())
    # The sum of what has a NaN is none.
    return not numbers or (
        min(numbers) >= -1 and max(numbers) <= 1 and not math.isnan(sum(numbers))
    )


def _head(line: bytes) -> tuple[Submission, str, dict[str, list[int]]]:
    """Return submission, origin and matrices of a kept row. Raises ValueError."""
    try:
        head = read_json(line, own=True)
        types = {one.__name__: one for one in MODELS.values()}
        submission = types[head["model"]].model_validate(head["submission"])
        origin, matrices = head["origin"], head["matrices"]
    except (KeyError, TypeError) as error:
        raise ValueError("no row") from error
    if type(origin) is not str or type(matrices) is not dict:
        raise ValueError("no row")
    return submission, origin, matrices
