"""The base class of all file formats, types that they share, and messages of invalid files."""

from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from .files import NotReadable
from .text import quoted

Hex40 = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
"""A git commit: 40 hexadecimal digits in lower case."""
Hex64 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
"""A SHA-256: 64 hexadecimal digits in lower case."""
Moment = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")]
"""A time in UTC, to the second."""
Name = Annotated[str, Field(min_length=1, max_length=200)]
"""A text of 1 to 200 characters."""
Positive = Annotated[int, Field(ge=1)]
"""An integer from 1."""
Count = Annotated[int, Field(ge=0)]
"""An integer from 0."""
MinusOneToOne = Annotated[float, Field(ge=-1, le=1)]
"""A number from -1 to 1, such as MCC."""
ZeroToOne = Annotated[float, Field(ge=0, le=1)]
"""A number from 0 to 1, such as accuracy and macro-F1."""


Seconds = Annotated[float, Field(ge=0)]
"""A duration in seconds, from 0."""


class StrictModel(BaseModel):
    """Base of all models of files: no unknown fields, no type coercion, no NaN."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, allow_inf_nan=False, defer_build=True
    )


Model = TypeVar("Model", bound=StrictModel)
"""The class of the file that `parsed` reads."""
ERRORS_MAX = 10
"""Maximum number of validation errors that `all_errors` lists."""


class Scores(StrictModel):
    """Three metrics of one task in one regime, each a mean over the seeds."""

    MCC: MinusOneToOne
    """Matthews correlation coefficient, -1 to 1."""
    Acc: ZeroToOne
    """Accuracy, 0 to 1."""
    F1: ZeroToOne
    """Macro-averaged F1, 0 to 1."""


def first_error(
    error: ValidationError, root_name: str = "the document", *, with_input: bool = False
) -> str:
    """Return "place: message" of the first validation error, on one line of printable ASCII.

    The place is the path of keys, joined by "/", escaped and shortened, or `root_name` for an error
    of the whole document. With `with_input`, "; found VALUE" follows.
    """
    return _error_texts(error, root_name, 1, with_input=with_input)[0]


def all_errors(error: ValidationError, root_name: str = "the document") -> str:
    """Return every validation error of a file that people write by hand, as `first_error` does.

    They are separated by "; "; after the tenth, only the number of the others follows.
    """
    error_texts = _error_texts(error, root_name, ERRORS_MAX)
    other_count = error.error_count() - len(error_texts)
    return "; ".join([*error_texts, *([f"and {other_count} more"] if other_count else [])])


def _error_texts(
    error: ValidationError, root_name: str, count_max: int, *, with_input: bool = False
) -> list[str]:
    """Return up to `count_max` errors, each as `first_error` does."""
    texts = []
    for details in error.errors(include_url=False)[:count_max]:
        field = quoted("/".join(map(str, details["loc"])))[1:-1] or root_name
        end = f"; found {quoted(details['input'])}" if with_input else ""
        texts.append(f"{field}: {details['msg']}{end}")
    return texts


def json_schema(model_class: type, title: str) -> dict[str, object]:
    """Return the JSON Schema of a file that contains a value of this model or data class."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        **TypeAdapter(model_class).json_schema(),
    }


def parsed(model_class: type[Model], raw: bytes) -> Model:
    """Return the value of a JSON text. Raise NotReadable with the first error as its reason."""
    try:
        return model_class.model_validate_json(raw)
    except ValidationError as error:
        raise NotReadable(first_error(error)) from error
