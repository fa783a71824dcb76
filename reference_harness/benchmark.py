"""The benchmark definition: tasks, categories, regimes and protocol, from a file of `schemas/`."""

import hashlib
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from .errors import OptionError
from .files import read_bounded
from .record import Hex40, first_error
from .shipped import schema

FULL = "full"
"""The regime that trains on the whole split; the others have a k in `few_shot_k`."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Task(_Part):
    """One classification task."""

    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
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


def load(path: Path) -> Benchmark:
    """Return the benchmark definition in a file.

    Raises OptionError, which names file and key, if it is invalid.
    """
    try:
        raw = read_bounded(path, BYTES_MAX)
        found = Benchmark.model_validate_json(raw)
    except OSError as error:
        msg = f"{path}: cannot be read: {error.strerror}"
        raise OptionError(msg) from error
    except ValidationError as error:
        msg = f"{path}: {first_error(error)}"
        raise OptionError(msg) from error
    protocol = found.protocol
    if protocol.logreg != _LOGREG or protocol.feature_scaling is not None:
        msg = f"{path}: protocol: found {protocol.logreg}, this harness fits {_LOGREG}, unscaled"
        raise OptionError(msg)
    if unknown := [r for r in found.regimes if r != FULL and r not in protocol.few_shot_k]:
        msg = f"{path}: regimes: found {unknown[0]!r}, which protocol.few_shot_k does not define"
        raise OptionError(msg)
    return found.model_copy(update={"sha256": hashlib.sha256(raw).hexdigest()})


def geneb() -> Benchmark:
    """Return the 100 tasks of GENEB."""
    return load(schema("benchmark.json"))


def mini() -> Benchmark:
    """Return the 13 synthetic tasks of GENEB-mini."""
    return load(schema("benchmark-mini.json"))
