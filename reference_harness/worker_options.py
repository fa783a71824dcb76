"""Options of the sandboxed worker: a small JSON file without secrets.

The toolkit writes it, so a worker does not check its values. pydantic would take a third of the
time that a worker needs to start.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from annotated_types import Ge, MinLen

from .embedding.batching import DEFAULT_TOKEN_BUDGET
from .embedding.extractor_calls import FILE_BATCH_SEQUENCES, Batching, BatchingMode
from .errors import OptionError


@dataclass(frozen=True, kw_only=True)
class WorkerOptions:
    """How to embed. It contains no label, claim, seed or task id, as the extractor can read it."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}  # for the schema
    schema_version: Literal["1.0"]
    extractor: Annotated[str, MinLen(1)]
    """`builtin:<name>`, or `<file>:<class>` with the file's path inside the sandbox."""
    name_model: str
    """Name on the Hub, or the folder of the weights inside the sandbox."""
    device: str
    """Device of torch on which to embed."""
    options: dict[str, str]
    """Keyword arguments of the extractor's constructor, as text.

    Integers, true, false and none are converted.
    """
    batching: BatchingMode
    """How sequences are grouped into batches."""
    token_budget: Annotated[int, Ge(1)] = DEFAULT_TOKEN_BUDGET
    """Maximum number of padded tokens of a batch."""
    measure: bool = False
    """Whether the token budget is measured from the memory.

    Otherwise, or if memory cannot be measured, it is `token_budget`.
    """
    memory_mib: Annotated[int, Ge(1)] | None = None
    """Memory, in MiB, above which the sandbox kills this process; None for no limit."""
    rows: Annotated[int, Ge(1)] = FILE_BATCH_SEQUENCES
    """Sequences per batch in mode "file"."""
    tf32: bool = True
    """Whether TF32 is allowed, as in `EmbedderSpec.tf32`."""
    processes: Annotated[int, Ge(1)]
    """Number of processes and threads allowed (RLIMIT_NPROC)."""

    @property
    def plan(self) -> Batching:
        """The requested batching."""
        return Batching(self.batching, self.token_budget, self.rows)


def read_options(file: Path) -> WorkerOptions:
    """Return the options in a file. Raise OptionError if it is no JSON, or has other options."""
    try:
        return WorkerOptions(**json.loads(file.read_bytes()))
    except (TypeError, ValueError) as error:
        msg = f"worker options: {error}"
        raise OptionError(msg) from error
