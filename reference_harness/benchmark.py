"""The benchmark definition: tasks, categories, regimes and protocol, from a file of `schemas/`."""

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from .errors import OptionError
from .files import read_bounded
from .record import Hex40, every_error
from .shipped import schema

TASK_ID = "[A-Za-z0-9][A-Za-z0-9._-]*"
"""Pattern of the id of a task, which names its file."""
FULL = "full"
"""The regime that trains on the whole split; the others have a k in `few_shot_k`."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Task(_Part):
    """One classification task."""

    id: Annotated[str, Field(pattern=f"^{TASK_ID}$")]
    label: str
    category: str
    n_test: int | None = None
    test_class_counts: list[int] | None = None
    """Test sequences per class, ascending, without class names, if known."""


class Dataset(_Part):
    """Location of the task data."""

    repo_id: str
    revision: Hex40


class Protocol(_Part):
    """How a frozen embedding is scored."""

    probe: str
    logreg: dict[str, Any]
    feature_scaling: str | None = None
    seeds: Annotated[list[int], Field(min_length=1)]
    few_shot_k: dict[str, Annotated[int, Field(ge=1)]]


class Benchmark(_Part):
    """A benchmark definition and the digest of the bytes it was read from."""

    name: str
    harness_version: str
    regimes: Annotated[list[str], Field(min_length=1)]
    metrics: list[str]
    protocol: Protocol
    dataset: Dataset
    category_order: list[str]
    tasks: Annotated[list[Task], Field(min_length=1)]
    sha256: str = ""

    def task(self, task_id: str) -> Task:
        """Return a task by its id. Raises KeyError if there is none."""
        for task in self.tasks:
            if task.id == task_id:
                return task
        raise KeyError(task_id)


# The probe is fixed in code: a definition with another protocol is rejected.
_LOGREG = {"C": 1.0, "max_iter": 1000, "solver": "lbfgs"}
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
        raise OptionError("\n".join(f"{path}: {line}" for line in shown))
    return found.model_copy(update={"sha256": hashlib.sha256(raw).hexdigest()})


def _example(place: tuple[int | str, ...]) -> str:
    """Return what GENEB's definition has at a place, as JSON on one line."""
    value = json.loads(schema("benchmark.json").read_bytes())
    for key in place:
        value = value[0] if isinstance(key, int) else value[key]
    if isinstance(value, list) and isinstance(value[0], dict):
        value = value[:1]
    text = json.dumps(value)
    return text if len(text) <= EXAMPLE_MAX else f"{text[:EXAMPLE_MAX]}..."


def _contradictions(raw: bytes) -> list[str]:
    """Return what the harness refuses although every key has the right type."""
    try:
        told = json.loads(raw)
        protocol = dict(told.get("protocol") or {})
        tasks = Counter(str(one["id"]) for one in told.get("tasks") or ())
        regimes = [name for name in told.get("regimes") or () if name != FULL]
        known = list(protocol.get("few_shot_k") or ())
    except (ValueError, TypeError, KeyError, AttributeError):
        return []  # a type is not the right one, which is said
    lines = []
    if "logreg" in protocol and protocol["logreg"] != _LOGREG:
        lines.append(
            f"protocol/logreg: found {protocol['logreg']}, this harness fits {_LOGREG}, unscaled"
        )
    if protocol.get("feature_scaling") is not None:
        lines.append(
            f"protocol/feature_scaling: found {protocol['feature_scaling']!r}, this harness fits "
            "unscaled features: expected null"
        )
    lines += [
        f"regimes: found {name!r}, which protocol.few_shot_k does not define: expected {FULL!r} or "
        f"one of {known}"
        for name in regimes
        if name not in known
    ]
    doubled = [name for name, count in tasks.items() if count > 1]
    return lines + [f"tasks: the id {name!r} occurs more than once" for name in doubled]


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
        "schema_version": "1.0",
        "name": name,
        "harness_version": ours.harness_version,
        "regimes": ours.regimes,
        "metrics": ours.metrics,
        "primary_metric": ours.metrics[0],
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
