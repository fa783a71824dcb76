"""From submissions to rows, and the two files of a board that upstream reads.

Numpy comes with the extra `build` alone, and is imported where it is needed.
"""

import array
import contextlib
import functools
import hashlib
import itertools
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import Field, ValidationError, create_model
from pydantic_core import to_json

from geneb_ci.board.columns import BY_TASK, PUBLISHED, Column, Entry, facts_of
from geneb_ci.check.claims import two_classes
from geneb_ci.check.kept import Parts, Wanted
from geneb_ci.check.rule import Context
from geneb_ci.common.benchmark import Benchmark
from geneb_ci.common.errors import GenebError, UsageProblem
from geneb_ci.common.files import is_simple, json_text, object_text
from geneb_ci.common.types import Signed, StrictModel, first_error
from geneb_ci.statistics.binary import Recovered, recovered_cell
from geneb_ci.statistics.metrics import PackedNumbers, RowNumbers
from geneb_ci.submission.document import read_document
from geneb_ci.submission.models import MODELS, Submission, SubmissionV11
from geneb_ci.submission.structure import check_structure

if TYPE_CHECKING:
    from geneb_ci.check.reuse import Store

EXTRA = frozenset({"numpy", "scipy"})


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


def board_parts(store: "Store | None" = None, jobs: int | None = None) -> Parts:
    """Return the parts that boards kept in a store; `jobs` processes make others."""
    return Parts(store, _code() if store is not None and store.folder is not None else "", jobs)


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


TYPES: dict[str, type[StrictModel]] = {LEADERBOARD: Leaderboard, TASKS: TaskLeaderboard}
"""Types of the files that are built as plain values; the others come from a type already."""


class InvalidBoard(GenebError):
    """What was built does not fit its own schema: an error of ours, and nothing is written."""


def encode(name: str, value: dict[str, Any]) -> bytes:
    """Return the bytes of a board file: compact, UTF-8, keys in order of the rows, no NaN.

    Raises InvalidBoard when a row does not fit its type.
    """
    if name not in {DIAGNOSTICS, *TYPES}:
        return json_text(value)
    large: dict[str, Callable[[Any], Iterable[bytes]]] = {
        "ranks": _ranks_text,
        "data": functools.partial(_rows_text, name),
    }
    members = ((k, large[k](one) if k in large else [json_text(one)]) for k, one in value.items())
    return b"".join(object_text(members))


def _rows_text(name: str, data: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[bytes]:
    """Yield the text of the rows of upstream's files. Raises InvalidBoard."""
    type_ = CategoryRow if name == LEADERBOARD else TaskRow

    def texts(regime: str) -> Iterator[bytes]:
        for number, row in enumerate(data[regime]):
            try:
                yield (b"," if number else b"") + _row_text(row, type_)
            except ValidationError as error:
                raise InvalidBoard(
                    f"{name}: data/{regime}/{number}/{first_error(error)}",
                    "report this to the maintainers",
                ) from error

    return object_text((regime, itertools.chain([b"["], texts(regime), [b"]"])) for regime in data)


def _ranks_text(ranks: Mapping[str, Mapping[str, Any]]) -> Iterator[bytes]:
    """Yield the text of the ranks of each regime, column by column."""

    def member(key: str, one: Any) -> Iterable[bytes]:
        if key in {"macro", "micro"}:
            return _column_text(one)
        if key in {"categories", "tasks"}:
            return object_text((name, _column_text(column)) for name, column in one.items())
        return [json_text(one)]

    return object_text(
        (regime, object_text((key, member(key, one)) for key, one in members.items()))
        for regime, members in ranks.items()
    )


AT_ONCE = 64
"""Models of a column that are written together: one number near 0 makes all of them slow."""


def _column_text(column: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield the text of numbers by model, in a mapping or a tuple for each."""
    plain = column.plain() if isinstance(column, PackedNumbers) else column
    items = list(plain.items())
    yield b"{"
    for start in range(0, len(items), AT_ONCE):
        part = dict(items[start : start + AT_ONCE])
        every = (one.values() if isinstance(one, Mapping) else one for one in part.values())
        numbers = [one for row in every for one in row if isinstance(one, float)]
        text = to_json(part) if is_simple(numbers) else json_text(part)
        yield (b"," if start else b"") + text[1:-1]
    yield b"}"


def _row_text(row: Mapping[str, Any], type_: type[StrictModel]) -> bytes:
    """Return the text of a row that fits its type. Raises ValidationError."""
    parts = {key: one for key, one in row.items() if key.startswith(("cat_", "task_"))}
    numbers = [one for one in row.values() if isinstance(one, float)]
    for one in parts.values():
        numbers += one.numbers if isinstance(one, PackedNumbers) else one.values()
    if not is_simple(numbers):
        text = json_text(row)
        type_.model_validate_json(text)
        return text
    type_.model_validate({**row, **{key: {} for key in parts}})
    return to_json(row, fallback=PackedNumbers.plain)


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


def mean(values: Iterable[float]) -> float:
    """Return the mean, from a sum that is rounded once (math.fsum): equal on every Python.

    Raises ZeroDivisionError when there is no value: the mean of nothing is not a score.
    """
    numbers = list(values)
    return math.fsum(numbers) / len(numbers)


def numbers_of(submission: Submission, benchmark: Benchmark) -> RowNumbers:
    """Return scores and means of a row, of the regimes in which it has every task."""
    every: dict[str, array.array[float]] = {}
    means: dict[str, array.array[float]] = {}
    for regime in ranked_regimes(submission, benchmark):
        cells = submission.results[regime]
        every[regime], means[regime] = array.array("d"), array.array("d")
        for metric in benchmark.metrics:
            # Adding 0.0 turns -0.0 into 0.0: a score has one way to be zero.
            told = {task: float(getattr(cells[task], metric)) + 0.0 for task in benchmark.task_ids}
            categories = category_means(told, benchmark).values()
            every[regime].extend(told.values())
            means[regime].extend([mean(told.values()), mean(categories), *categories])
    return RowNumbers(every, means)


def leaderboards(
    entries: Iterable[Entry], benchmark: Benchmark
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return leaderboard.json and leaderboard_tasks.json as values.

    A regime with missing cells has no row: its means would not be comparable.
    """
    ordered = sorted(entries, key=lambda e: (e.submission.model_id.lower(), e.submission.model_id))
    by_category: dict[str, list[dict[str, Any]]] = {regime: [] for regime in benchmark.regimes}
    by_task: dict[str, list[dict[str, Any]]] = {regime: [] for regime in benchmark.regimes}
    places = {task: place for place, task in enumerate(benchmark.task_ids)}
    for entry in ordered:
        numbers = entry.numbers or numbers_of(entry.submission, benchmark)
        category_facts, task_facts = facts_of(entry, PUBLISHED), facts_of(entry, BY_TASK)
        for regime, scores in numbers.scores.items():
            category_row, task_row = dict(category_facts), dict(task_facts)
            means = iter(numbers.means[regime])
            for number, metric in enumerate(benchmark.metrics):
                summary = {f"micro_{metric}": next(means), f"macro_{metric}": next(means)}
                categories = dict(zip(benchmark.categories, means, strict=False))
                own = scores[number * len(places) : (number + 1) * len(places)]
                category_row |= summary | {f"cat_{metric}": categories}
                task_row |= summary | {f"task_{metric}": PackedNumbers(places, own)}
            by_category[regime].append(category_row)
            by_task[regime].append(task_row)
    tasks = [{"id": t.id, "label": t.label, "cat": t.category} for t in benchmark.tasks]
    return {"data": by_category}, {"tasks": tasks, "data": by_task}


def ranked_regimes(submission: Submission, benchmark: Benchmark) -> list[str]:
    """Name the regimes in which a submission has every task."""
    gaps = submission.gaps if isinstance(submission, SubmissionV11) else {}
    return [regime for regime in benchmark.regimes if not gaps.get(regime)]


def category_means(scores: Mapping[str, float], benchmark: Benchmark) -> dict[str, float]:
    """Return the mean score of each category, in board order, from the score of each task."""
    return {
        name: mean(scores[task] for task in tasks) for name, tasks in benchmark.categories.items()
    }


class BoardRow(NamedTuple):
    """A submission as a board takes it."""

    sha256: str
    """Of its file."""
    origin: str
    submission: Submission | None
    """None for what is no submission."""
    numbers: RowNumbers | None = None
    """With these, the submission has neither results nor evidence."""


def read_row(seen: tuple[Path, str]) -> BoardRow:
    """Read a file that had a digest when it was checked. Raises UsageProblem if it has another."""
    path, sha256 = seen
    document = read_document(path)
    if document.sha256 != sha256:
        raise UsageProblem(f"{path} changed while it was checked", "run the command again")
    submission, _ = check_structure(document.value)
    return BoardRow(document.sha256, document.origin, submission)


class KeptRows(NamedTuple):
    """Reads rows as numbers, by processes; what parts of boards have of a file is not read."""

    parts: Parts
    matrices: Callable[[Submission, Benchmark], Mapping[str, Sequence[int]]]
    alone: Callable[[Submission, Benchmark], Mapping[str, bytes]] | None = None
    """What `uncertainty` computes of a row alone; None without diagnostics."""

    def read(self, seen: Sequence[tuple[Path, str]], benchmark: Benchmark) -> Iterator[BoardRow]:
        """Yield the row of each file with the digest that it had when it was checked.

        Raises UsageProblem where a file changed.
        """
        known = ["row", benchmark.sha256, self.alone is not None]
        wanted: list[Wanted] = [
            ([*known, one[1]], functools.partial(_packed, one, benchmark, self)) for one in seen
        ]
        for (_, sha256), raw in zip(seen, self.parts.taken(wanted), strict=True):
            yield _unpacked(sha256, raw)


_SLIM: dict[str, Any] = {"results": {}, "evidence": {}}


def _packed(seen: tuple[Path, str], benchmark: Benchmark, rows: KeptRows) -> bytes:
    """Return a row as bytes: a line of JSON, then its numbers in the order of that line."""
    row = read_row(seen)
    submission = row.submission
    if submission is None:
        return b""
    numbers = numbers_of(submission, benchmark)
    errors = {} if rows.alone is None else rows.alone(submission, benchmark)
    blocks = [*numbers.scores.values(), *numbers.means.values()]
    slim = {key: value for key, value in _SLIM.items() if hasattr(submission, key)}
    head = {
        "model": type(submission).__name__,
        "submission": submission.model_copy(update=slim).model_dump(
            mode="json", by_alias=True, exclude_unset=True
        ),
        "origin": row.origin,
        "regimes": list(numbers.scores),
        "sizes": [len(block) for block in blocks] + [len(one) // 8 for one in errors.values()],
        "matrices": rows.matrices(submission, benchmark),
    }
    body = b"".join([*(block.tobytes() for block in blocks), *errors.values()])
    return json.dumps(head).encode() + b"\n" + body


def _unpacked(sha256: str, raw: bytes) -> BoardRow:
    if not raw:
        return BoardRow(sha256, sha256, None)
    line, _, body = raw.partition(b"\n")
    head = json.loads(line)
    ends = [8 * end for end in itertools.accumulate(head["sizes"], initial=0)]
    blocks = [body[start:end] for start, end in itertools.pairwise(ends)]
    regimes, count = head["regimes"], len(head["regimes"])
    arrays = [array.array("d", block) for block in blocks[: 2 * count]]
    numbers = RowNumbers(
        dict(zip(regimes, arrays[:count], strict=True)),
        dict(zip(regimes, arrays[count:], strict=True)),
        dict(zip(regimes, blocks[2 * count :], strict=False)),
        head["matrices"],
    )
    model = next(one for one in MODELS.values() if one.__name__ == head["model"])
    return BoardRow(sha256, head["origin"], model.model_validate(head["submission"]), numbers)
