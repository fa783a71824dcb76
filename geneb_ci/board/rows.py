"""From submissions to rows, and the two files of a board that upstream reads.

Numpy comes with the extra `build` alone, and is imported where it is needed.
"""

import contextlib
import hashlib
import json
import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import Field, ValidationError, create_model

from geneb_ci.board.columns import BY_TASK, PUBLISHED, Column, Entry, facts_of
from geneb_ci.check.claims import two_classes
from geneb_ci.check.rule import Context
from geneb_ci.common.benchmark import Benchmark
from geneb_ci.common.errors import GenebError, UsageProblem
from geneb_ci.common.files import in_processes, seal
from geneb_ci.common.types import Signed, StrictModel, first_error
from geneb_ci.statistics.binary import (
    BinaryTable,
    Classes,
    TableRun,
    nearest,
    runs,
    scores_of,
    table,
)
from geneb_ci.statistics.metrics import Reading, Triple
from geneb_ci.submission.models import Submission, SubmissionV11

if TYPE_CHECKING:
    from geneb_ci.check.reuse import Store

EXTRA = frozenset({"numpy"})


@contextlib.contextmanager
def extra_at_hand(remedy: str = "") -> Iterator[None]:
    """Stand around imports of what only the extra `build` brings.

    Raises UsageProblem, whose fix ends with the remedy, where it is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in EXTRA:
            raise
        raise UsageProblem(
            f"{error.name} is not installed, and the board's analyses need it",
            f'pip install "geneb-ci[build]"{remedy}',
        ) from error


Wanted = tuple[object, Callable[[], bytes]]
"""Values that a part follows from, which JSON can write, and what makes it."""
PAGE_BYTES_MAX = 16_000_000
"""Of a compressed part: a page has 50 kB, and a row of ten thousand models less than this."""


def is_compressed(part: bytes) -> bool:
    """Whether a part is one whole stream of zlib, of at most `PAGE_BYTES_MAX` bytes."""
    stream = zlib.decompressobj()
    try:
        stream.decompress(part, PAGE_BYTES_MAX)
    except zlib.error:
        return False
    return stream.eof and not stream.unused_data


class Parts:
    """Parts of a board that follow from given values alone, each kept under a digest of these.

    They lie in the folder of results of checks, in one file for each state of the code. What is
    not there, was cut or belongs elsewhere is made again.
    """

    def __init__(self, store: "Store | None" = None) -> None:
        self._store = store if store is not None and store.folder is not None else None
        self._root = "" if self._store is None else _code()
        self._found: dict[str, bytes] = {}
        self._seals: dict[str, str] = {}
        self._used: dict[str, bytes] = {}
        self._is_changed = False
        if self._store is not None:
            self._load(self._store.load(self._name) or b"")

    @property
    def _name(self) -> str:
        return f"{self._root}-board"

    def taken(
        self, wanted: Sequence[Wanted], is_sound: Callable[[bytes], bool] = is_compressed
    ) -> list[bytes]:
        """Return each part, as it is kept or else as it is made; many are made by processes.

        A kept one counts only where it is sound: made by this code, it always is.
        """
        if self._store is None:
            return [make() for _, make in wanted]
        keys = [hashlib.sha256(json.dumps(known).encode()).hexdigest() for known, _ in wanted]
        for key in keys:
            part = self._found.get(key)
            if part is not None and key not in self._used:
                if seal(key, part) == self._seals[key] and is_sound(part):
                    self._used[key] = part
                else:
                    del self._found[key]
        missing = {
            k: make for k, (_, make) in zip(keys, wanted, strict=True) if k not in self._used
        }
        if missing:
            self._is_changed = True
            self._used |= zip(missing, _made(list(missing.values())), strict=True)
        return [self._used[key] for key in keys]

    def _load(self, body: bytes) -> None:
        head, _, rest = body.partition(b"\n")
        at = 0
        try:
            for key, (size, own) in json.loads(head).items():
                self._seals[key], self._found[key] = own, rest[at : at + size]
                at += len(self._found[key])
        except (ValueError, TypeError, AttributeError, RecursionError):
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
        listed = {key: [len(part), seal(key, part)] for key, part in kept.items()}
        head = json.dumps(listed).encode()
        self._store.save(self._name, b"\n".join([head, b"".join(kept.values())]))


NO_PARTS = Parts()
PARTS_BYTES_MAX = 240_000_000
"""Of all parts together: a row has 20 kB, and a file of the store at most 256 MB."""


def _made(makers: list[Callable[[], bytes]]) -> Iterator[bytes]:
    """Yield what is made, in order, by processes where it is much."""
    from geneb_ci.check.reuse import MANY_FILES, jobs_for

    jobs, chunk = jobs_for(len(makers)), MANY_FILES // 4
    return in_processes(lambda number: makers[number](), range(len(makers)), jobs, chunk)


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


LEADERBOARD, TASKS = "leaderboard.json", "leaderboard_tasks.json"
DIAGNOSTICS, RECOMMENDATIONS = "diagnostics.json", "recommendations.json"
METRICS = ("MCC", "Acc", "F1")


def _row(name: str, about: str, columns: Iterable[Column], part: str) -> type[StrictModel]:
    """Return the type of a row: its columns, then the scores of every metric."""
    fields: dict[str, Any] = {
        column.key: (column.type, Field(description=column.about))
        if column.is_required
        else (column.type, Field(None, description=column.about, json_schema_extra=_left_out))
        for column in columns
    }
    for metric in METRICS:
        fields[f"micro_{metric}"] = Signed, Field(description="Mean over all tasks.")
        fields[f"macro_{metric}"] = Signed, Field(description="Mean of the category means.")
        fields[f"{part}_{metric}"] = dict[str, Signed], Field(description=_PARTS[part])
    return create_model(name, __base__=StrictModel, __doc__=about, **fields)


def _left_out(schema: dict[str, Any]) -> None:
    """Say nothing of a default: a key that a row may lack is never null."""
    del schema["default"]


_PARTS = {
    "cat": "Category to the mean score of its tasks.",
    "task": "Id of a task to its score.",
}
CategoryRow = _row("CategoryRow", "One model in one regime, by category.", PUBLISHED, "cat")
TaskRow = _row("TaskRow", "One model in one regime, by task.", BY_TASK, "task")


class TaskName(StrictModel):
    """A task as the page shows it."""

    id: str
    label: str
    cat: str


class Leaderboard(StrictModel):
    """leaderboard.json: regime to rows, ordered by the lower-case model id."""

    data: dict[str, list[CategoryRow]]  # type: ignore[valid-type]  # made by create_model


class TaskLeaderboard(StrictModel):
    """leaderboard_tasks.json: the tasks in board order, and regime to rows."""

    tasks: list[TaskName]
    data: dict[str, list[TaskRow]]  # type: ignore[valid-type]  # made by create_model


TYPES: dict[str, type[StrictModel]] = {
    LEADERBOARD: Leaderboard,
    TASKS: TaskLeaderboard,
}
"""Types of the files that are built as plain values; the others come from a type already."""


class InvalidBoard(GenebError):
    """What was built does not fit its own schema: an error of ours, and nothing is written."""


def encode(name: str, value: dict[str, Any]) -> bytes:
    """Return the bytes of a board file: compact, UTF-8, keys in order of the rows, no NaN.

    Raises InvalidBoard when the value does not fit the type of its name.
    """
    raw = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    if name in TYPES:
        try:
            TYPES[name].model_validate_json(raw)
        except ValidationError as error:
            raise InvalidBoard(
                f"{name}: {first_error(error)}", "report this to the maintainers"
            ) from error
    return raw


# More are counted, but not listed: a reader can do nothing with them.
LISTED_MAX = 100
# A task of 70,000 sequences has no more tables than this.
COUNT_MAX = 70_000**2


class Recovered(NamedTuple):
    """What is known of one cell, or of one seed of it."""

    regime: str
    task: str
    seed: int | None
    """None for a regime of one fit."""
    classes: Classes
    printed: Triple
    matrices: int
    """Number of tables whose scores are the printed ones; 0 where the scores are impossible."""
    table: BinaryTable | None
    """The one that comes nearest to what was printed."""
    tables: tuple[BinaryTable, ...]
    """All of them, unless there are more than `LISTED_MAX`."""

    @property
    def scores(self) -> Triple | None:
        """The metrics of the nearest table."""
        return scores_of(self.table) if self.table else None


def recovered(context: Context, regime: str) -> Iterator[Recovered]:
    """Recover the tables of a regime's two-class cells; of a mean, those of its seeds if given."""
    for claim in context.claims:
        if claim.path[:2] == ("results", regime) and claim.classes and claim.fits == 1:
            yield recovered_cell(regime, claim.task.id, None, claim.classes, claim.reading)
    if regime in context.benchmark.protocol.few_shot_k:
        seeds = context.benchmark.protocol.seeds
        for claims in context.seed_claims:
            classes = two_classes(claims.task)
            if claims.regime == regime and classes:
                for seed, reading in zip(seeds, claims.readings, strict=True):
                    yield recovered_cell(regime, claims.task.id, seed, classes, reading)


def recovered_cell(
    regime: str, task: str, seed: int | None, classes: Classes, reading: Reading
) -> Recovered:
    """Recover the tables of one cell, or of one seed of it."""
    found: list[TableRun] = []
    matrices = 0
    for run in runs(classes, reading):
        found.append(run)
        matrices += len(run)
        if matrices > COUNT_MAX:
            break
    listed = (
        table(classes, run.right, rho) for run in found for rho in range(run.first, run.last + 1, 2)
    )
    tables = tuple(listed) if matrices <= LISTED_MAX else ()
    best = tables[0] if matrices == 1 else None
    if matrices > 1:
        best = nearest(classes, reading.value).table
    return Recovered(regime, task, seed, classes, reading.value, matrices, best, tables)


def mean(values: Iterable[float]) -> float:
    """Return the mean, from a sum that is rounded once (math.fsum): equal on every Python.

    Raises ZeroDivisionError when there is no value: the mean of nothing is not a score.
    """
    numbers = list(values)
    return math.fsum(numbers) / len(numbers)


def leaderboards(
    entries: Iterable[Entry], benchmark: Benchmark
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return leaderboard.json and leaderboard_tasks.json as values.

    A regime with missing cells has no row: its means would not be comparable.
    """
    ordered = sorted(entries, key=lambda e: (e.submission.model_id.lower(), e.submission.model_id))
    by_category: dict[str, list[dict[str, Any]]] = {regime: [] for regime in benchmark.regimes}
    by_task: dict[str, list[dict[str, Any]]] = {regime: [] for regime in benchmark.regimes}
    for entry in ordered:
        for regime in benchmark.regimes:
            if regime in ranked_regimes(entry.submission, benchmark):
                category_row, task_row = _rows(entry, regime, benchmark)
                by_category[regime].append(category_row)
                by_task[regime].append(task_row)
    tasks = [{"id": t.id, "label": t.label, "cat": t.category} for t in benchmark.tasks]
    return {"data": by_category}, {"tasks": tasks, "data": by_task}


def ranked_regimes(submission: Submission, benchmark: Benchmark) -> list[str]:
    """Name the regimes in which a submission has every task."""
    gaps = submission.gaps if isinstance(submission, SubmissionV11) else {}
    return [regime for regime in benchmark.regimes if not gaps.get(regime)]


def _rows(entry: Entry, regime: str, benchmark: Benchmark) -> tuple[dict[str, Any], dict[str, Any]]:
    cells = entry.submission.results[regime]
    category_row, task_row = facts_of(entry, PUBLISHED), facts_of(entry, BY_TASK)
    for metric in benchmark.metrics:
        # Adding 0.0 turns -0.0 into 0.0: a score has one way to be zero.
        scores = {task: float(getattr(cells[task], metric)) + 0.0 for task in benchmark.task_ids}
        categories = category_means(scores, benchmark)
        summary = {
            f"micro_{metric}": mean(scores.values()),
            f"macro_{metric}": mean(categories.values()),
        }
        category_row |= summary | {f"cat_{metric}": categories}
        task_row |= summary | {f"task_{metric}": scores}
    return category_row, task_row


def category_means(scores: Mapping[str, float], benchmark: Benchmark) -> dict[str, float]:
    """Return the mean score of each category, in board order, from the score of each task."""
    return {
        name: mean(scores[task] for task in tasks) for name, tasks in benchmark.categories.items()
    }
