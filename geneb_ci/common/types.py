"""Types that several formats share, the typed benchmark, and the first error of a value.

`tools/generate.py` has benchmark.schema.json and all lists of levels from here.
"""

import enum
import json
import re
import unicodedata
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, Self

from pydantic import (
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidationError,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from geneb_ci.common.errors import BadConfiguration
from geneb_ci.common.files import SUBMISSION_BYTES_MAX
from geneb_ci.common.finding import plural, quoted
from reference_harness.formats.base import Hex40, Hex64, Scores, StrictModel


class TrustLevel(enum.StrEnum):
    """Authorship and evidence in one word, which upstream's page shows."""

    SELF_REPORTED = "self-reported"
    VERIFIED = "verified"
    REPRODUCED = "reproduced"
    OFFICIAL = "official"
    DISPUTED = "disputed"
    STALE = "stale"


class Authorship(enum.StrEnum):
    """Whose file a row is; it says nothing of whether the scores were confirmed."""

    OFFICIAL = "official"
    CONTRIBUTED = "contributed"


class Evidence(enum.StrEnum):
    """What others did to confirm the scores of a row, whoever its author is."""

    NONE = "none"
    CHECKED = "checked"
    AUDITED = "audited"
    REPRODUCED = "reproduced"
    DISPUTED = "disputed"
    STALE = "stale"


AUTHORSHIP_MEANING = {
    Authorship.OFFICIAL: "the file of the benchmark's authors, byte for byte",
    Authorship.CONTRIBUTED: "a file that somebody else submitted",
}
EVIDENCE_MEANING = {
    Evidence.NONE: "does not pass the checks, so it is not on the board",
    Evidence.CHECKED: "passes every check; no audit confirms its scores",
    Evidence.AUDITED: "an audit of tasks drawn after the submission was fixed agrees",
    Evidence.REPRODUCED: "audits by two signers cover every task of every audited regime",
    Evidence.DISPUTED: "an audit failed, or its last runs were aborted",
    Evidence.STALE: "the audits are for another version of harness, benchmark or data",
}
"""One line for readers of the board, in the order in which the page explains them."""
EVIDENCE_ORDER = (Evidence.NONE, Evidence.CHECKED, Evidence.AUDITED, Evidence.REPRODUCED)
"""From least to most; `disputed` and `stale` meet none of them."""


def has_evidence(evidence: Evidence, least: Evidence | None) -> bool:
    """Whether evidence is at least the one that is asked for; None asks for any but `disputed`."""
    if least is None:
        return evidence is not Evidence.DISPUTED
    return evidence in EVIDENCE_ORDER[EVIDENCE_ORDER.index(least) :]


CONTRADICTION = "contradiction"
"""Type of the errors of values that cannot go together."""


def first_error(
    error: ValidationError, top: str = "the document", *, with_value: bool = False
) -> str:
    """Return "place: message" of the first validation error, on one line of printable ASCII.

    The place is the path of keys, joined by "/", escaped and cut; `top` names the whole value. With
    `with_value`, "found value; " comes before the message, unless several values contradict each
    other, which the message names.
    """
    first = error.errors(include_url=False, include_input=with_value)[0]
    place, value = "/".join(map(str, first["loc"])), first.get("input")
    is_shown = with_value and first["type"] not in {"json_invalid", "missing", CONTRADICTION}
    shown = f"found {quoted(value)}; " if is_shown else ""
    return f"{quoted(place)[1:-1] or top}: {shown}{first['msg']}"


# Rules iterate over regimes x tasks x metrics (3 x 100 x 3 in the real benchmark). The limits allow
# ten times as many tasks and keep a hostile definition from taking minutes. A file of predictions
# has a bit for each of eight regimes.
REGIMES_MAX, TASKS_MAX, SEEDS_MAX, CLASSES_MAX = 8, 1_000, 100, 1_000
# No receipt has more rows of one task: real test splits have up to 10^5.
SIZE_MAX = 10_000_000
TITLE_MAX = 100
"""Characters of the name of a benchmark, a category or a task; those of GENEB have 35 at most."""
SEED_MAX = (1 << 32) - 1
"""The largest seed of NumPy's generator, by which training examples are drawn."""
FULL = "full"
"""The regime that trains on all examples, which every benchmark has."""
_SHOTS = re.compile(r"([1-9][0-9]{0,6})shot")


class _Compared(ABC):
    """A comparison that follows on the type of a member."""

    def __get_pydantic_core_schema__(self, of: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema of the type, after which `compared` is called."""
        return core_schema.no_info_after_validator_function(self.compared, handler(of))

    @abstractmethod
    def compared(self, found: Any) -> Any:
        """Return the value. Raises PydanticCustomError where it is not one that is expected."""


@dataclass(frozen=True)
class Only(_Compared):
    """The one value that a member may have, and why it may have no other."""

    value: Any
    why: str

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Return what the JSON Schema says of it."""
        return {**handler(schema), "const": self.value}

    def compared(self, found: Any) -> Any:
        """Return the value. Raises PydanticCustomError for another one."""
        if found != self.value:
            raise _unusable(f"expected {json.dumps(self.value)}: {self.why}")
        return found


@dataclass(frozen=True)
class Written(_Compared):
    """How a text is written: by a pattern, and in words."""

    pattern: str
    words: str

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Return what the JSON Schema says of it."""
        return {**handler(schema), "pattern": f"^({self.pattern})$"}

    def compared(self, found: str) -> str:
        """Return the text. Raises PydanticCustomError where it is written in another way."""
        if re.fullmatch(self.pattern, found) is None:
            raise _unusable(f"expected {self.words}")
        return found


def _unusable(message: str) -> PydanticCustomError:
    """Return the error of a value that this version cannot use, in these words alone."""
    return PydanticCustomError("unusable", "{message}", {"message": message})


def _contradiction(message: str) -> PydanticCustomError:
    """Return the error of values that cannot go together; the message names them."""
    return PydanticCustomError(CONTRADICTION, "{message}", {"message": message})


_BARE = r"\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069"
"""What moves or hides text: control characters, ends of lines, directions."""
Title = Annotated[
    str,
    Field(min_length=1, max_length=TITLE_MAX),
    Written(
        rf"[^\s{_BARE}]([^{_BARE}]*[^\s{_BARE}])?",
        "one line without control characters, and without blanks at its ends",
    ),
]
TaskId = Annotated[
    str,
    Field(max_length=TITLE_MAX),
    Written(
        "[A-Za-z0-9][A-Za-z0-9._-]*",
        "letters, digits, '.', '_' and '-', of which the first is a letter or a digit: files are "
        "named after it",
    ),
]
Regime = Annotated[
    str,
    Written(f"{FULL}|{_SHOTS.pattern}", f'"{FULL}", or a number of examples and "shot": "10shot"'),
]


class TaskEntry(StrictModel):
    """One classification task."""

    id: TaskId
    label: Title
    category: Title
    n_test: Annotated[int, Field(ge=1, le=SIZE_MAX)] | None = None
    """Number of sequences in the test split, if known."""
    test_class_counts: (
        Annotated[
            list[Annotated[int, Field(ge=1, le=SIZE_MAX)]],
            Field(min_length=2, max_length=CLASSES_MAX),
        ]
        | None
    ) = None
    """Number of test sequences of each class that the split has, ascending, without names."""

    @model_validator(mode="after")
    def _counts_add_up(self) -> Self:
        counts = self.test_class_counts
        if counts is not None and (counts != sorted(counts) or sum(counts) != self.n_test):
            raise _contradiction(
                f"test_class_counts {quoted(counts)} must ascend and add up to n_test "
                f"{quoted(self.n_test)}"
            )
        return self


class DatasetEntry(StrictModel):
    """Repository, commit and file layout of the task data."""

    repo_id: Title
    former_repo_id: Title | None = None
    revision: Hex40
    remote_layout: str
    local_layout: str


class ProtocolEntry(StrictModel):
    """How frozen embeddings are scored: probe, scaling, seeds, shots per class."""

    probe: Annotated[str, Only("logistic_regression", "no other probe is fitted")]
    logreg: Annotated[
        dict[str, Any],
        Only(
            {"C": 1.0, "max_iter": 1000, "solver": "lbfgs"}, "the harness fits with these settings"
        ),
    ]
    feature_scaling: Annotated[str | None, Only(None, "features are fitted as they are")] = None
    seeds: Annotated[
        list[Annotated[int, Field(ge=0, le=SEED_MAX)]],
        Field(min_length=1, max_length=SEEDS_MAX, json_schema_extra={"uniqueItems": True}),
    ]
    few_shot_k: dict[Regime, Annotated[int, Field(ge=1, le=SIZE_MAX)]]
    pooling: str = ""

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        if len(set(self.seeds)) < len(self.seeds):
            raise _contradiction(
                f"seeds {quoted(self.seeds)} has one twice: its draw would count twice"
            )
        for name, k in self.few_shot_k.items():
            shots = _SHOTS.fullmatch(name)
            if shots is None or int(shots[1]) != k:
                due = f"{k}shot"
                raise _contradiction(
                    f"few_shot_k: {quoted(name)} draws {k} of each class; expected the name "
                    f"{quoted(due)}, which pages and logs read the number from"
                )
        return self


class BenchmarkFile(StrictModel):
    """A benchmark definition. Tasks and categories are in the order of the board."""

    schema_: Annotated[str | None, Field(alias="$schema")] = None
    schema_version: Annotated[str, Only("1.0", "this version reads no other format")]
    name: Title
    harness_version: Title
    regimes: Annotated[
        list[Regime],
        Field(
            min_length=1,
            max_length=REGIMES_MAX,
            json_schema_extra={"prefixItems": [{"const": FULL}], "uniqueItems": True},
        ),
    ]
    metrics: Annotated[
        list[str], Only(list(Scores.model_fields), "a submission has these scores of each cell")
    ]
    primary_metric: Annotated[
        str, Only("MCC", "intervals, ranks and advice are computed of no other metric")
    ]
    protocol: ProtocolEntry
    dataset: DatasetEntry
    category_order: Annotated[list[Title], Field(min_length=1, max_length=TASKS_MAX)]
    sources: dict[str, str] = {}  # noqa: RUF012 (pydantic copies it)
    tasks: Annotated[list[TaskEntry], Field(min_length=1, max_length=TASKS_MAX)]
    sha256: Annotated[Hex64, Field(exclude=True)] = "0" * 64
    """Digest of the bytes it was read from; not part of the file."""

    @model_validator(mode="after")
    def _regimes_can_be_drawn(self) -> Self:
        known = self.protocol.few_shot_k
        if self.regimes[0] != FULL or len(set(self.regimes)) < len(self.regimes):
            raise _contradiction(
                f"regimes {quoted(self.regimes)}; expected {quoted(FULL)} first, and each once"
            )
        for name in self.regimes[1:]:
            if name not in known:
                raise _contradiction(
                    f"regimes has {quoted(name)}, and protocol.few_shot_k draws only "
                    f"{quoted(list(known))}"
                )
        return self

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        for what, names in (
            ("tasks have ids", [task.id for task in self.tasks]),
            ("tasks have labels", [task.label for task in self.tasks]),
            ("category_order has names", self.category_order),
        ):
            known: dict[str, str] = {}
            for name in names:
                read = _read_alike(name)
                if read in known:
                    raise _contradiction(
                        f"{what} that read alike: {quoted(known[read])} and {quoted(name)}; "
                        "expected names that differ by more than letter case"
                    )
                known[read] = name
        listed = {task.category: None for task in self.tasks}
        if set(listed) != set(self.category_order):
            raise _contradiction(
                f"category_order {quoted(self.category_order)} differs from the tasks' "
                f"{quoted(list(listed))}"
            )
        if taken := [name for name in listed if _read_alike(name) in _MEANS]:
            raise _contradiction(f"categories {quoted(taken)} have names of means; use other names")
        return self

    @model_validator(mode="after")
    def _submissions_fit(self) -> Self:
        seeds, regimes = len(self.protocol.seeds), len(self.regimes)
        sizes = (_cell_bytes(task, seeds) for task in self.tasks)
        if (size := regimes * sum(sizes)) > SUBMISSION_BYTES_MAX:
            raise _contradiction(
                f"a submission of {plural(len(self.tasks), 'task')}, {plural(regimes, 'regime')} "
                f"and {plural(seeds, 'seed')} with its confusion matrices has some {size:,} bytes; "
                f"expected at most {SUBMISSION_BYTES_MAX:,}: use fewer tasks, regimes, seeds or "
                "classes"
            )
        return self


_MEANS = frozenset({"macro", "micro"})


def _cell_bytes(task: TaskEntry, seeds: int) -> int:
    """Return about how many bytes a cell of format 1.2 has, with its canonical scores.

    Twice its name, its digests and means; three scores a seed; and two matrices a seed, of numbers
    of one digit.
    """
    classes = len(task.test_class_counts or (0, 0))
    return 2 * len(task.id) + 400 + seeds * (60 + 4 * classes * classes)


def _read_alike(name: str) -> str:
    """Return the form in which names that readers take for the same one are equal."""
    return unicodedata.normalize("NFKC", " ".join(name.split())).casefold()


def validated(raw: bytes, name: str) -> dict[str, Any]:
    """Return the members of the definition in `raw`, by the names of their keys in a Benchmark.

    Raises BadConfiguration, which names the file, the key and what it has, when it cannot be used.
    """
    try:
        return BenchmarkFile.model_validate_json(raw).model_dump()
    except ValidationError as error:
        raise BadConfiguration(
            f"{name}: {first_error(error, with_value=True)}",
            "compare it with schemas/benchmark.schema.json",
        ) from error
