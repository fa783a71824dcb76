"""Options of the sandboxed worker: a small JSON file without secrets."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from .batching import TOKEN_BUDGET
from .embed import FILE_BATCH, Batching, Mode
from .errors import OptionError
from .formats.base import StrictModel, first_error


class WorkerOptions(StrictModel):
    """How to embed. It contains no label, claim, seed or task id, as the extractor can read it."""

    schema_version: Literal["1.0"]
    extractor: Annotated[str, Field(min_length=1)]
    """`builtin:<name>`, or `<file>:<class>` with the file's path inside the sandbox."""
    name_model: str
    """Name on the Hub, or the folder of the weights inside the sandbox."""
    device: str
    options: dict[str, str]
    """Keyword arguments of the extractor's constructor, as text.

    Integers, true, false and none are converted.
    """
    batching: Mode
    token_budget: Annotated[int, Field(ge=1)] = TOKEN_BUDGET
    measure: bool = False
    """Whether the token budget is measured from the memory.

    Otherwise, or if memory cannot be measured, it is `token_budget`.
    """
    memory_mib: Annotated[int, Field(ge=1)] | None = None
    """Memory, in MiB, above which the sandbox kills this process; None for no limit."""
    rows: Annotated[int, Field(ge=1)] = FILE_BATCH
    """Sequences per batch in mode "file"."""
    tf32: bool = True
    """Whether TF32 is allowed, as in `EmbedderSpec.tf32`."""
    processes: Annotated[int, Field(ge=1)]
    """Number of processes and threads allowed (RLIMIT_NPROC)."""

    @property
    def plan(self) -> Batching:
        """The requested batching."""
        return Batching(self.batching, self.token_budget, self.rows)


def read_options(file: Path) -> WorkerOptions:
    """Return the options in a file. Raise OptionError if they are invalid."""
    try:
        return WorkerOptions.model_validate_json(file.read_bytes())
    except ValidationError as error:
        msg = f"worker options: {first_error(error, with_input=True)}"
        raise OptionError(msg) from error
