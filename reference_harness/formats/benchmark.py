"""The benchmark definition: tasks, categories, regimes, metrics, protocol, pinned data.

Its parts are dataclasses, so that a check of one file need not import pydantic: `parse` validates
with pydantic, unless the digest of the bytes is that of a definition known to be valid.
"""

import contextlib
import dataclasses
import functools
import hashlib
import json
import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from annotated_types import Ge, Le, MaxLen, MinLen

from .recognition import foreign_format_of
from .submission_terms import SUBMISSION_BYTES_MAX
from .text import plural, quoted

if TYPE_CHECKING:
    from pydantic import TypeAdapter

# Rules iterate over regimes x tasks x metrics (3 x 100 x 3 in GENEB). The limits allow ten times as
# many tasks, and a hostile definition cannot take minutes. A file of predictions has one bit per
# regime in a byte.
REGIMES_MAX, TASKS_MAX, SEEDS_MAX, CLASSES_MAX = 8, 1_000, 100, 1_000
TEST_SEQUENCES_MAX = 10_000_000
"""Maximum number of sequences of a test split; real ones have up to 10^5."""
TITLE_MAX = 100
"""Maximum number of characters of the name of a benchmark, category or task; GENEB's have up to
35."""
SEED_MAX = (1 << 32) - 1
"""The largest seed of NumPy's generator, which draws training examples."""
DEFINITION_BYTES_MAX = 1_000_000
"""Maximum number of bytes of a benchmark definition; GENEB's has 21 kB."""
LISTED_FAULTS_MAX = 20
"""Maximum number of faults of a definition that an error lists: more than an empty file has."""
EXAMPLE_CHARACTERS_MAX = 400
"""Maximum number of characters of an example in a message, such as a whole protocol, or one
task."""
FULL = "full"
"""The regime that trains on all examples, which every benchmark has."""
METRICS = ["MCC", "Acc", "F1"]
"""Scores of each cell: Matthews correlation, accuracy, macro-averaged F1."""
TASK_ID_PATTERN = "[A-Za-z0-9][A-Za-z0-9._-]*"
"""Pattern of the id of a task, which names its file."""
_FEW_SHOT_PATTERN = "([1-9][0-9]{0,6})shot"
"""Pattern of the name of a few-shot regime."""
_MEAN_NAMES = frozenset({"macro", "micro"})
"""Names of the board's means of scores, which no category may have."""
_UNSAFE_CHARACTERS = r"\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069"
"""Characters that move or hide text: control characters, line ends, text directions."""


class UnusableBenchmarkError(ValueError):
    """A definition that no program can use; `faults` are lines of "key: what is wrong"."""

    def __init__(self, faults: list[str]) -> None:
        """Store the faults, in the order of the file."""
        super().__init__("\n".join(faults))
        self.faults = faults


class _Condition(ABC):
    """A condition on a member, from which pydantic makes the validation and the JSON Schema."""

    def unmet_expectation(self, value: Any) -> str | None:
        """Return what is expected, as text, if `value` does not meet the condition, else None."""
        del value
        return None

    @abstractmethod
    def schema_keywords(self) -> dict[str, Any]:
        """Return the keywords that state the condition in a JSON Schema."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Return the schema of the type, followed by the condition."""
        from pydantic_core import PydanticCustomError, core_schema  # as in `_members_and_faults`

        def validate(value: Any) -> Any:
            if (message := self.unmet_expectation(value)) is not None:
                raise PydanticCustomError("unusable", "{message}", {"message": message})
            return value

        return core_schema.no_info_after_validator_function(validate, handler(source))

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        """Return the JSON Schema of the type with the keywords."""
        return {**handler(schema), **self.schema_keywords()}


@dataclass(frozen=True)
class OnlyValue(_Condition):
    """The only value that a member may have, and the reason."""

    value: Any
    """The value that the member must have."""
    reason: str
    """Why no other value is allowed, as the end of a message."""

    def unmet_expectation(self, value: Any) -> str | None:
        """Return the expected value and the reason; None if `value` equals it."""
        expected = f"expected {json.dumps(self.value)}: {self.reason}"
        return None if value == self.value else expected

    def schema_keywords(self) -> dict[str, Any]:
        """Return the keyword `const` with the value."""
        return {"const": self.value}


@dataclass(frozen=True)
class TextForm(_Condition):
    """The form of a text: a pattern of the whole text, and its description."""

    pattern: str
    """Regular expression that the whole text must match."""
    description: str
    """Description of the required text, for a message."""

    def unmet_expectation(self, value: Any) -> str | None:
        """Return the description of the form; None if the whole text matches the pattern."""
        return None if re.fullmatch(self.pattern, value) else f"expected {self.description}"

    def schema_keywords(self) -> dict[str, Any]:
        """Return the keyword `pattern` with the pattern."""
        return {"pattern": f"^({self.pattern})$"}


@dataclass(frozen=True)
class _SchemaKeywords(_Condition):
    """Keywords of a condition that involves several members, which `_CHECKS` verify."""

    members: dict[str, Any]
    """Keywords of JSON Schema and their values."""

    def schema_keywords(self) -> dict[str, Any]:
        """Return the keywords with which this was created."""
        return self.members


Title = Annotated[
    str,
    MinLen(1),
    MaxLen(TITLE_MAX),
    TextForm(
        rf"[^\s{_UNSAFE_CHARACTERS}]([^{_UNSAFE_CHARACTERS}]*[^\s{_UNSAFE_CHARACTERS}])?",
        "one line without control characters, and without blanks at its ends",
    ),
]
"""The name of a benchmark, task or category: one line without control characters."""
TaskId = Annotated[
    str,
    MaxLen(TITLE_MAX),
    TextForm(
        TASK_ID_PATTERN,
        "letters, digits, '.', '_' and '-', of which the first is a letter or a digit: files are "
        "named after it",
    ),
]
"""The id of a task, from which the names of its files are made."""
Regime = Annotated[
    str,
    TextForm(
        f"{FULL}|{_FEW_SHOT_PATTERN}", f'"{FULL}", or a number of examples and "shot": "10shot"'
    ),
]
"""A regime: "full", or a number of training examples per class, such as "10shot"."""
Revision = Annotated[str, TextForm("[0-9a-f]{40}", "a commit: 40 digits of 0-9 and a-f")]
"""A git commit: 40 hexadecimal digits."""
Size = Annotated[int, Ge(1), Le(TEST_SEQUENCES_MAX)]
"""A number of sequences, or of training examples per class."""
Seed = Annotated[int, Ge(0), Le(SEED_MAX)]
"""A seed of the random draw of few-shot training examples."""


class _DefinitionPart:
    """Base of the parts of a definition: no unknown keys, no conversion of types, no NaN."""

    __pydantic_config__ = {  # noqa: RUF012 (pydantic reads it from the class)
        "extra": "forbid",
        "strict": True,
        "alias_generator": lambda name: "$schema" if name == "schema_" else name,
    }


@dataclass(frozen=True, kw_only=True)
class Task(_DefinitionPart):
    """One classification task."""

    id: TaskId
    """Key of the task, which names its files."""
    label: Title
    """Name of the task on the board."""
    category: Title
    """Name of the group of tasks that it belongs to, such as "Splice Sites"."""
    n_test: Size | None = None
    """Number of sequences in the test split, if known."""
    test_class_counts: Annotated[list[Size], MinLen(2), MaxLen(CLASSES_MAX)] | None = None
    """Number of test sequences of each class in the split, ascending, without names."""

    @property
    def two_class_sizes(self) -> tuple[int, int] | None:
        """Numbers of test sequences of two classes; None for another number of classes."""
        counts = self.test_class_counts
        return (counts[0], counts[1]) if counts and len(counts) == 2 else None  # noqa: PLR2004


@dataclass(frozen=True, kw_only=True)
class Dataset(_DefinitionPart):
    """Repository, commit and file layout of the task data."""

    repo_id: Title
    """Repository of the task data on the Hugging Face Hub: its owner, a slash and its name."""
    former_repo_id: Title | None = None
    """An earlier name of this repository, which older submissions may state."""
    revision: Revision
    """Commit of the repository."""
    remote_layout: str
    """Paths of a task's files in the repository, with <task_id> for its id, and their columns."""
    local_layout: str
    """Paths of a task's files in a local folder, with <task_id> for its id, and their columns."""


@dataclass(frozen=True, kw_only=True)
class Protocol(_DefinitionPart):
    """Scoring of frozen embeddings: probe, scaling, seeds, shots per class."""

    probe: Annotated[str, OnlyValue("logistic_regression", "no other probe is fitted")]
    """The classifier that is trained on embeddings: "logistic_regression"."""
    logreg: Annotated[
        dict[str, Any],
        OnlyValue(
            {"C": 1.0, "max_iter": 1000, "solver": "lbfgs"}, "the harness fits with these settings"
        ),
    ]
    """The settings of scikit-learn's LogisticRegression."""
    feature_scaling: Annotated[str | None, OnlyValue(None, "features are fitted as they are")] = (
        None
    )
    """Scaling of embeddings before the fit; null: they are not scaled."""
    seeds: Annotated[
        list[Seed], MinLen(1), MaxLen(SEEDS_MAX), _SchemaKeywords({"uniqueItems": True})
    ]
    """Seeds of the few-shot draws, each of which gives one training sample."""
    few_shot_k: dict[Regime, Size]
    """Number of training examples per class of each few-shot regime, by its name."""
    pooling: str = ""
    """Note on how hidden states become one embedding; "" if there is none."""


@dataclass(frozen=True, kw_only=True)
class BenchmarkFile(_DefinitionPart):
    """A benchmark definition. Tasks and categories are in the order of the board."""

    # Members are in the order of the file, on which the digest of the completed definition depends.
    schema_: str | None = None
    """URI of the JSON Schema, for completion in editors; the key is "$schema"."""
    schema_version: Annotated[str, OnlyValue("1.0", "this version reads no other format")]
    name: Title
    harness_version: Title
    """Version of upstream's harness, which every submission repeats."""
    regimes: Annotated[
        list[Regime],
        MinLen(1),
        MaxLen(REGIMES_MAX),
        _SchemaKeywords({"prefixItems": [{"const": FULL}], "uniqueItems": True}),
    ]
    """Names of the regimes, "full" first."""
    metrics: Annotated[list[str], OnlyValue(METRICS, "a submission has these scores of each cell")]
    """The scores of each cell."""
    primary_metric: Annotated[
        str, OnlyValue("MCC", "intervals, ranks and advice are computed of no other metric")
    ]
    """The metric by which rows are compared and ranked."""
    protocol: Protocol
    """How embeddings are scored."""
    dataset: Dataset
    """Where the task data is."""
    category_order: Annotated[list[Title], MinLen(1), MaxLen(TASKS_MAX)]
    """Names of the categories, in the order of the board."""
    sources: dict[str, str] = field(default_factory=dict)
    """Sources of this definition, by what is taken from each."""
    tasks: Annotated[list[Task], MinLen(1), MaxLen(TASKS_MAX)]
    """The tasks, in the order of the board."""


@dataclass(frozen=True, kw_only=True)
class Benchmark(BenchmarkFile):
    """A valid definition, the digest of its bytes, and derived values."""

    sha256: str = "0" * 64
    """SHA-256 of the bytes of the file."""

    @classmethod
    def of(cls, members: Mapping[str, Any], sha256: str) -> "Benchmark":
        """Return the definition with these valid members of a file."""
        fields_ = {("schema_" if key == "$schema" else key): members[key] for key in members}
        objects = {
            "protocol": Protocol(**fields_["protocol"]),
            "dataset": Dataset(**fields_["dataset"]),
            "tasks": [Task(**task) for task in fields_["tasks"]],
        }
        return cls(**fields_ | objects | {"sha256": sha256})

    def document(self) -> dict[str, Any]:
        """Return the members of the file by key, as JSON values."""
        members = dataclasses.asdict(self)
        del members["sha256"]
        return {("$schema" if name == "schema_" else name): members[name] for name in members}

    @functools.cached_property
    def task_ids(self) -> tuple[str, ...]:
        """Task ids in board order."""
        return tuple(task.id for task in self.tasks)

    @functools.cached_property
    def by_id(self) -> dict[str, Task]:
        """Tasks by id."""
        return {task.id: task for task in self.tasks}

    @functools.cached_property
    def categories(self) -> dict[str, tuple[str, ...]]:
        """Task ids of each category, both in board order."""
        return {c: tuple(t.id for t in self.tasks if t.category == c) for c in self.category_order}

    @functools.cached_property
    def category_indices(self) -> tuple[tuple[int, ...], ...]:
        """Indices in board order of the tasks of each category."""
        index_of = {task: index for index, task in enumerate(self.task_ids)}
        return tuple(tuple(index_of[task] for task in tasks) for tasks in self.categories.values())

    @functools.cached_property
    def test_sizes(self) -> tuple[tuple[str, int | None, tuple[int, int] | None], ...]:
        """Id, number of test sequences and `two_class_sizes` of each task."""
        return tuple((task.id, task.n_test, task.two_class_sizes) for task in self.tasks)


def parse(
    raw: bytes, *, valid: Container[str] = (), example: Callable[[], bytes] | None = None
) -> Benchmark:
    """Return the benchmark definition in `raw`.

    `valid` contains the digests of definitions that need no validation. `example` returns a
    definition whose members are quoted where a key is missing. Raise UnusableBenchmarkError with
    every fault.
    """
    sha256 = hashlib.sha256(raw).hexdigest()
    if sha256 in valid:
        return Benchmark.of(json.loads(raw), sha256)
    members, faults = _members_and_faults(raw, example)
    # A check raises such an error if a type is wrong, which is reported already.
    for check in _CHECKS:
        with contextlib.suppress(TypeError, ValueError, LookupError, AttributeError):
            faults.extend(check(members))
    if len(faults) > LISTED_FAULTS_MAX:
        faults[LISTED_FAULTS_MAX:] = [f"and {len(faults) - LISTED_FAULTS_MAX} more"]
    if faults:
        raise UnusableBenchmarkError(faults)
    return Benchmark.of(members, sha256)


@functools.cache
def _file_validator() -> "TypeAdapter[BenchmarkFile]":
    """Return the validator of the file, cached, as building it takes longer than validating."""
    from pydantic import TypeAdapter

    return TypeAdapter(BenchmarkFile)


def _members_and_faults(raw: bytes, example: Callable[[], bytes] | None) -> tuple[Any, list[str]]:
    """Return the JSON value and its faults.

    The value is None if this is no JSON or another format.
    """
    from pydantic import ValidationError
    from pydantic_core import from_json

    try:
        members = from_json(raw, allow_inf_nan=False)
    except ValueError as error:
        return None, [f"the document: {error}"]
    foreign_format = None if _is_definition(members) else foreign_format_of(members)
    if foreign_format is not None:
        return None, [f"the document: it {foreign_format.predicate}, not a benchmark definition"]
    try:
        _file_validator().validate_json(raw)
    except ValidationError as error:
        example_value = json.loads(example()) if example is not None else None
        return members, [
            _fault_text(detail, example_value) for detail in error.errors(include_url=False)
        ]
    return members, []


def _is_definition(members: Any) -> bool:
    """Whether a value has the keys that only a definition has."""
    return isinstance(members, dict) and "tasks" in members and "regimes" in members


def _fault_text(error: Mapping[str, Any], example: Any) -> str:
    """Return "place: what is wrong" for one error of pydantic, on one line."""
    pointer = quoted("/".join(map(str, error["loc"])))[1:-1] or "the document"
    if error["type"] == "missing":
        example_text = _example_text(example, error["loc"])
        return f"{pointer}: missing{example_text and f', expected for example {example_text}'}"
    if error["type"] == "unexpected_keyword_argument":
        return f"{pointer}: found {quoted(error['input'])}; expected no such key: delete it"
    return f"{pointer}: found {quoted(error['input'])}; {error['msg']}"


def _example_text(example: Any, path: tuple[int | str, ...]) -> str:
    """Return the value at a path of the example as JSON on one line; "" without an example."""
    if example is None:
        return ""
    member = example
    for step in path:
        member = member[0] if isinstance(step, int) else member.get(step)
    if path in {("tasks",), ("category_order",)}:  # the first task is in the first category
        member = member[:1]
    return quoted(member, EXAMPLE_CHARACTERS_MAX)


def _regime_faults(members: Any) -> Iterator[str]:
    """Yield a fault for a repeated regime, and for a name without the number of examples."""
    regimes, shots = members["regimes"], members["protocol"]["few_shot_k"]
    if regimes[:1] != [FULL] or len(set(regimes)) < len(regimes):
        yield f"regimes: found {quoted(regimes)}; expected {quoted(FULL)} first, each regime once"
    for regime in dict.fromkeys(regimes):
        if regime not in {FULL, *shots}:
            yield (
                f"regimes: found {quoted(regime)}; expected {quoted(FULL)} or a name in "
                f"protocol.few_shot_k: {quoted(list(shots))}"
            )
    for regime, k in shots.items():
        if regime != f"{k}shot":
            yield (
                f"protocol/few_shot_k: {quoted(regime)} draws {k} of each class; expected the name "
                f"{quoted(f'{k}shot')}, from which pages and logs read the number"
            )


def _seed_faults(members: Any) -> Iterator[str]:
    """Yield a fault if a seed occurs twice."""
    seeds = members["protocol"]["seeds"]
    if len(set(seeds)) < len(seeds):
        yield (
            f"protocol/seeds: found {quoted(seeds)}; expected no seed twice, as its draw would "
            "count twice"
        )


def _task_name_faults(members: Any) -> Iterator[str]:
    """Yield a fault for ids or labels of tasks that look alike."""
    yield from _lookalike_faults("tasks have ids", [task["id"] for task in members["tasks"]])
    yield from _lookalike_faults("tasks have labels", [task["label"] for task in members["tasks"]])


def _category_faults(members: Any) -> Iterator[str]:
    """Yield faults of categories that no task has, that look alike, or are named after a mean."""
    order = members["category_order"]
    task_categories = list(dict.fromkeys(task["category"] for task in members["tasks"]))
    yield from _lookalike_faults("category_order has names", order)
    if set(task_categories) != set(order):
        expected = f"expected the categories of the tasks: {quoted(task_categories)}"
        yield f"category_order: found {quoted(order)}; {expected}"
    if reserved := [name for name in task_categories if _visual_form(name) in _MEAN_NAMES]:
        yield f"category_order: found {quoted(reserved)}, the name of a mean; expected other names"


def _lookalike_faults(objects: str, names: list[str]) -> Iterator[str]:
    """Yield a fault for each name that looks like an earlier one."""
    first_names: dict[str, str] = {}
    for name in names:
        folded = _visual_form(name)
        if folded in first_names:
            yield (
                f"{objects} that look alike: {quoted(first_names[folded])} and {quoted(name)}; "
                "expected names that differ by more than letter case"
            )
        first_names.setdefault(folded, name)


def _visual_form(name: str) -> str:
    """Return a form of a name that two names have in common if they look alike to a reader."""
    return unicodedata.normalize("NFKC", " ".join(name.split())).casefold()


def _class_count_faults(members: Any) -> Iterator[str]:
    """Yield a fault for class counts that are not ascending, or whose sum is not `n_test`."""
    for index, task in enumerate(members["tasks"]):
        counts, size = task.get("test_class_counts"), task.get("n_test")
        if counts is None or not isinstance(size, int | None):
            continue  # the wrong type is reported already
        if counts != sorted(counts) or sum(counts) != size:
            yield (
                f"tasks/{index}: found test_class_counts {quoted(counts)}; expected ascending "
                "numbers "
                f"with the sum n_test, {quoted(size)}"
            )


def _submission_size_faults(members: Any) -> Iterator[str]:
    """Yield a fault if a complete submission would exceed the maximum size of one."""
    tasks, regimes = members["tasks"], len(members["regimes"])
    seeds = len(members["protocol"]["seeds"])
    bytes_total = regimes * sum(_cell_evidence_bytes(task, seeds) for task in tasks)
    if bytes_total > SUBMISSION_BYTES_MAX:
        yield (
            f"the document: a submission of {plural(len(tasks), 'task')}, "
            f"{plural(regimes, 'regime')} and {plural(seeds, 'seed')} with its confusion matrices "
            f"has about {bytes_total:,} bytes; expected at most {SUBMISSION_BYTES_MAX:,}: use "
            "fewer tasks, regimes, seeds or classes"
        )


def _cell_evidence_bytes(task: Mapping[str, Any], seeds: int) -> int:
    """Return the approximate bytes of a task in one regime of format 1.2, with canonical scores.

    Counted are its name (twice), its digests and its means, and for each seed three scores and two
    matrices, whose numbers are taken to have one digit.
    """
    classes = len(task.get("test_class_counts") or (0, 0))
    return 2 * len(task["id"]) + 400 + seeds * (60 + 4 * classes * classes)


_CHECKS: tuple[Callable[[Any], Iterator[str]], ...] = (
    *(
        _regime_faults,
        _seed_faults,
        _task_name_faults,
        _category_faults,
        _class_count_faults,
        _submission_size_faults,
    ),
)
"""Checks that compare members with each other; each yields the faults that it finds."""
