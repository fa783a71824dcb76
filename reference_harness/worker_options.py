"""Options of the sandboxed worker: a small JSON file without secrets."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from .batching import TOKEN_BUDGET
from .embed import FILE_BATCH, Batching, Mode
from .errors import OptionError
from .formats.base import StrictModel, first_error


class WorkerOptions(StrictModel):
    """How to embed. No label, claim, seed or task id belongs here: the extractor can read it."""

    schema_version: Literal["1.0"]
    extractor: Annotated[str, Field(min_length=1)]
    """`builtin:<name>`, or `<file>:<class>` with the file's path inside the sandbox."""
    name_model: str
    """Hub name, or the folder of the weights inside the sandbox."""
    device: str
    options: dict[str, str]
    """Keyword arguments of the extractor's constructor, as text; whole numbers, true, false and
    none mean such values."""
    batching: Mode
    token_budget: Annotated[int, Field(ge=1)] = TOKEN_BUDGET
    measure: bool = False
    """Whether the token budget is measured: as much as memory has room for. The one above is then
    that of a machine whose memory cannot be measured."""
    memory_mib: Annotated[int, Field(ge=1)] | None = None
    """Memory above which the sandbox ends this process, where it does."""
    rows: Annotated[int, Field(ge=1)] = FILE_BATCH
    tf32: bool = True
    """As `EmbedderSpec.tf32`."""
    processes: Annotated[int, Field(ge=1)]
    """Processes and threads allowed, as RLIMIT_NPROC."""

    @property
    def plan(self) -> Batching:
        """The batching that the options ask for."""
        return Batching(self.batching, self.token_budget, self.rows)


def read_options(file: Path) -> WorkerOptions:
    """Read the options. Raises OptionError when they are not what this worker understands."""
    try:
        return WorkerOptions.model_validate_json(file.read_bytes())
    except ValidationError as error:
        msg = f"worker options: {first_error(error, with_input=True)}"
        raise OptionError(msg) from error
