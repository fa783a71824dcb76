"""The benchmark definition: tasks, categories, regimes and protocol, from a file of `schemas/`.

The toolkit refuses the same definitions: what one accepts, the other can use.
"""

import contextlib
import hashlib
import json
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from .errors import OptionError
from .files import read_bounded
from .formats.base import Hex40
from .formats.run_record import every_error
from .shipped import schema

TASK_ID = "[A-Za-z0-9][A-Za-z0-9._-]*"
"""Pattern of the id of a task, which names its file."""
FULL = "full"
"""The regime that trains on the whole split; the others have a k in `few_shot_k`."""
# A file of predictions has a bit for each of eight regimes.
REGIMES_MAX, TASKS_MAX, SEEDS_MAX, CLASSES_MAX = 8, 1_000, 100, 1_000
SIZE_MAX = 10_000_000
TITLE_MAX = 100
SEED_MAX = (1 << 32) - 1
"""The largest seed of NumPy's generator."""
SUBMISSION_BYTES_MAX = 1_000_000
"""The largest submission that a board takes."""
_SHOTS = "([1-9][0-9]{0,6})shot"
_BARE = r"\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069"
Title = Annotated[
    str,
    Field(max_length=TITLE_MAX, pattern=rf"^[^\s{_BARE}]([^{_BARE}]*[^\s{_BARE}])?$"),
]
TaskId = Annotated[str, Field(max_length=TITLE_MAX, pattern=f"^{TASK_ID}$")]
Regime = Annotated[str, Field(pattern=f"^({FULL}|{_SHOTS})$")]
Size = Annotated[int, Field(ge=1, le=SIZE_MAX)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class Task(_Part):
    """One classification task."""

    id: TaskId
    label: Title
    category: Title
    n_test: Size | None = None
    test_class_counts: Annotated[list[Size], Field(min_length=2, max_length=CLASSES_MAX)] | None = (
        None
    )
    """Test sequences of each class that the split has, ascending, without names, if known."""


class Dataset(_Part):
    """Location of the task data."""

    repo_id: Title
    former_repo_id: Title | None = None
    revision: Hex40
    remote_layout: str
    local_layout: str


class Protocol(_Part):
    """How a frozen embedding is scored."""

    probe: str
    logreg: dict[str, Any]
    feature_scaling: str | None = None
    seeds: Annotated[
        list[Annotated[int, Field(ge=0, le=SEED_MAX)]],
        Field(min_length=1, max_length=SEEDS_MAX),
    ]
    few_shot_k: dict[Regime, Size]
    pooling: str = ""


class Benchmark(_Part):
    """A benchmark definition and the digest of the bytes it was read from."""

    schema_: Annotated[str | None, Field(alias="$schema")] = None
    schema_version: str
    name: Title
    harness_version: Title
    regimes: Annotated[list[Regime], Field(min_length=1, max_length=REGIMES_MAX)]
    metrics: list[str]
    primary_metric: str
    protocol: Protocol
    dataset: Dataset
    category_order: Annotated[list[Title], Field(min_length=1, max_length=TASKS_MAX)]
    sources: dict[str, str] = {}
    tasks: Annotated[list[Task], Field(min_length=1, max_length=TASKS_MAX)]
    sha256: str = ""

    def task(self, task_id: str) -> Task:
        """Return a task by its id. Raises KeyError if there is none."""
        for task in self.tasks:
            if task.id == task_id:
                return task
        raise KeyError(task_id)


# Scores and probe are fixed in code: a definition with others is rejected.
_LOGREG = {"C": 1.0, "max_iter": 1000, "solver": "lbfgs"}
_ONLY: tuple[tuple[tuple[str, ...], Any, str], ...] = (
    (("schema_version",), "1.0", "this harness reads {}"),
    (("metrics",), ["MCC", "Acc", "F1"], "this harness computes {}"),
    (("primary_metric",), "MCC", "boards rank by {}"),
    (("protocol", "probe"), "logistic_regression", "this harness fits {}"),
    (("protocol", "logreg"), _LOGREG, "this harness fits {}, unscaled"),
    (("protocol", "feature_scaling"), None, "this harness fits unscaled features: expected null"),
)
"""Members that have one possible value, and what else is said of another."""
# The real definition has 21 kB.
BYTES_MAX = 1_000_000
FAULTS_MAX = 20
"""Errors that one message lists: all keys of an empty definition, and some."""
EXAMPLE_MAX = 400
"""Characters of GENEB's value in a message: the whole protocol, or the first task."""
WRITES_ONE = "geneb-harness data define DIR writes a definition for the task files in DIR"


def load(path: Path) -> Benchmark:
    """Return the benchmark definition in a file.

    Raises OptionError, which names the file and each key that is missing or invalid, with what was
    expected there.
    """
    try:
        raw = read_bounded(path, BYTES_MAX)
    except OSError as error:
        msg = f"{path}: cannot be read: {error.strerror}; {WRITES_ONE}"
        raise OptionError(msg) from error
    return parsed(raw, str(path))


def parsed(raw: bytes, name: str) -> Benchmark:
    """Return the definition in `raw`; `name` is the file name for messages. Raises OptionError."""
    try:
        found = Benchmark.model_validate_json(raw)
        faults = []
    except ValidationError as error:
        faults = every_error(error, _example)
    faults += _contradictions(raw)
    if faults:
        shown = faults[:FAULTS_MAX]
        if more := len(faults) - len(shown):
            shown.append(f"and {more} more")
        shown.append(WRITES_ONE)
        raise OptionError("\n".join(f"{name}: {line}" for line in shown))
    return found.model_copy(update={"sha256": hashlib.sha256(raw).hexdigest()})


def _example(place: tuple[int | str, ...]) -> str:
    """Return what GENEB's definition has at a place, as JSON on one line."""
    value = json.loads(schema("benchmark.json").read_bytes())
    for key in place:
        value = value[0] if isinstance(key, int) else value[key]
    if place in {("tasks",), ("category_order",)}:  # the first task is in the first category
        value = value[:1]
    text = json.dumps(value)
    return text if len(text) <= EXAMPLE_MAX else f"{text[:EXAMPLE_MAX]}..."


def _contradictions(raw: bytes) -> list[str]:
    """Return what the harness refuses although every key has the right type."""
    try:
        told = json.loads(raw)
    except (ValueError, RecursionError):
        return []  # that is said
    lines: list[str] = []
    for check in _CHECKS:
        # Where a type is not the right one, that is said.
        with contextlib.suppress(TypeError, ValueError, LookupError, AttributeError):
            lines.extend(check(told))
    return lines


def _only(told: Any) -> Iterator[str]:
    for place, value, says in _ONLY:
        found = told
        for key in place:
            found = found.get(key, value)
        if found != value:
            yield f"{'/'.join(place)}: found {found!r:.200}, {says.format(value)}"


def _regimes(told: Any) -> Iterator[str]:
    regimes, known = told["regimes"], told["protocol"]["few_shot_k"]
    if regimes[:1] != [FULL] or len(set(regimes)) < len(regimes):
        yield f"regimes: found {regimes!r:.200}, expected {FULL!r} first, and each once"
    for name in regimes:
        if name not in {FULL, *known}:
            yield (
                f"regimes: found {name!r}, which protocol.few_shot_k does not define: expected "
                f"{FULL!r} or one of {list(known)}"
            )
    for name, k in known.items():
        if name != f"{k}shot":
            yield f"protocol/few_shot_k: found {name!r} for {k} of each class, expected '{k}shot'"


def _seeds(told: Any) -> Iterator[str]:
    seeds = told["protocol"]["seeds"]
    if len(set(seeds)) < len(seeds):
        yield f"protocol/seeds: found {seeds!r:.200}, expected each once"


def _ids(told: Any) -> Iterator[str]:
    return _alike("tasks: the id", [task["id"] for task in told["tasks"]])


def _labels(told: Any) -> Iterator[str]:
    return _alike("tasks: the label", [task["label"] for task in told["tasks"]])


def _categories(told: Any) -> Iterator[str]:
    order = told["category_order"]
    listed = dict.fromkeys(task["category"] for task in told["tasks"])
    yield from _alike("category_order: the name", order)
    if set(listed) != set(order):
        yield (
            f"category_order: found {order!r:.200}, expected those of the tasks: "
            f"{list(listed)!r:.200}"
        )
    for name in listed:
        if _read_alike(name) in {"macro", "micro"}:
            yield f"category_order: found {name!r}, the name of a mean: use another"


def _alike(what: str, names: list[str]) -> Iterator[str]:
    known: dict[str, str] = {}
    for name in names:
        first = known.setdefault(_read_alike(name), name)
        if first != name:
            yield f"{what} {name!r} reads like {first!r}: expected another"
    for name, count in Counter(names).items():
        if count > 1:
            yield f"{what} {name!r} occurs more than once"


def _read_alike(name: str) -> str:
    """Return the form in which names that readers take for the same one are equal."""
    return unicodedata.normalize("NFKC", " ".join(name.split())).casefold()


def _sizes(told: Any) -> Iterator[str]:
    for place, task in enumerate(told["tasks"]):
        counts, size = task.get("test_class_counts"), task.get("n_test")
        if counts is not None and (counts != sorted(counts) or sum(counts) != size):
            yield (
                f"tasks/{place}: test_class_counts {counts!r:.200} must ascend and add up to "
                f"n_test {size!r:.200}"
            )


def _submissions(told: Any) -> Iterator[str]:
    seeds, size = len(told["protocol"]["seeds"]), 0
    for task in told["tasks"]:
        # Twice its name, its digests and means; three scores a seed; two matrices a seed.
        classes = len(task.get("test_class_counts") or (0, 0))
        size += 2 * len(task["id"]) + 400 + seeds * (60 + 4 * classes * classes)
    size *= len(told["regimes"])
    if size > SUBMISSION_BYTES_MAX:
        yield (
            f"the document: a submission to it has some {size:,} bytes, expected at most "
            f"{SUBMISSION_BYTES_MAX:,}: use fewer tasks, regimes, seeds or classes"
        )


_CHECKS: tuple[Callable[[Any], Iterator[str]], ...] = (
    *(_only, _regimes, _seeds, _ids, _labels, _categories, _sizes, _submissions),
)


def geneb() -> Benchmark:
    """Return the 100 tasks of GENEB."""
    return load(schema("benchmark.json"))


def document(
    *,
    name: str,
    repo_id: str,
    revision: str,
    made_by: str,
    category_order: list[str],
    sources: dict[str, str],
    tasks: list[dict[str, Any]],
) -> dict[str, Any]:
    """Return the content of a definition as JSON values: GENEB's protocol on other tasks.

    `made_by` says where the data come from.
    """
    ours = geneb()
    return {
        "schema_version": ours.schema_version,
        "name": name,
        "harness_version": ours.harness_version,
        "regimes": ours.regimes,
        "metrics": ours.metrics,
        "primary_metric": ours.primary_metric,
        "protocol": ours.protocol.model_dump() | {"pooling": "left to each extractor"},
        "dataset": {
            "repo_id": repo_id,
            "revision": revision,
            "remote_layout": f"none: {made_by}",
            "local_layout": "<task_id>.csv with text,label,split",
        },
        "category_order": category_order,
        "sources": sources,
        "tasks": tasks,
    }


def mini() -> Benchmark:
    """Return the 13 synthetic tasks of GENEB-mini."""
    return load(schema("benchmark-mini.json"))
