"""Read what an extractor declares about itself, in the terms of submission format 1.1."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reference_harness.extractors.base import UNDECLARED
from reference_harness.formats.submission_terms import DTYPES, SOURCE_KINDS, TRUNCATIONS

TOKEN_LIMIT_MAX = 10**9
"""Largest `max_length`, in tokens, that is a limit: tokenizers without a limit declare 10**30."""

UNIT_SCALE = "unit"
"""Scale declared by an extractor whose embeddings are to be divided by their root mean square."""

_UNSET = object()
"""Default that no extractor can declare."""


def describe(extractor: object, name_model: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return `{"model": ..., "embedding": ...}` and the names of undeclared fields.

    An attribute with an unexpected type or value, such as a pooling layer called `pooling`, counts
    as undeclared. `loaded_model` records which weights were loaded.
    """
    embedding = {
        "layer": _declared_text(getattr(extractor, "layer", None)),
        "pooling": _declared_text(getattr(extractor, "pooling", None)),
        "max_length": max_length(extractor),
        "truncation": _allowed_or_undeclared(getattr(extractor, "truncation", None), TRUNCATIONS),
        "dtype": _allowed_or_undeclared(_dtype(getattr(extractor, "dtype", None)), DTYPES),
    }
    if (
        getattr(extractor, "scale", None) == UNIT_SCALE
    ):  # absent otherwise, as its presence changes the key of cached embeddings
        embedding["scale"] = UNIT_SCALE
    model = _described_source(getattr(extractor, "source", None), name_model)
    undeclared = [key for key, value in embedding.items() if value == UNDECLARED]
    if model["kind"] == UNDECLARED:
        undeclared.append("source")
    return {"model": model, "embedding": embedding}, tuple(undeclared)


def max_length(extractor: object) -> int | str | None:
    """Return the declared limit in tokens, None for no limit, or "undeclared"."""
    declared = getattr(extractor, "max_length", _UNSET)
    if declared is None:
        return None
    if isinstance(declared, bool) or not isinstance(declared, int | float) or declared < 1:
        return UNDECLARED
    return None if declared > TOKEN_LIMIT_MAX else int(declared)


def _declared_text(value: object) -> str:
    """Return a text, or an integer as text; "undeclared" for any other value."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) and value else UNDECLARED


def _dtype(value: object) -> str:
    """Return "float32" for torch.float32, np.float32 and "float32" alike."""
    type_name = value if isinstance(value, str) else getattr(value, "__name__", str(value))
    return type_name.removeprefix("torch.")


def _allowed_or_undeclared(value: object, allowed: tuple[str, ...]) -> str:
    """Return the value if it is allowed, else "undeclared"."""
    return value if isinstance(value, str) and value in allowed else UNDECLARED


def _described_source(source: object, name_model: str) -> dict[str, Any]:
    """Return the source of the weights as format 1.1 describes it; "undeclared" where unknown."""
    declared = source if isinstance(source, Mapping) else {}
    kind = _allowed_or_undeclared(declared.get("kind"), SOURCE_KINDS)
    folder = Path(name_model)
    is_local = bool(name_model) and folder.exists()
    # Only the name: the rest of the path may be private.
    location = str(declared.get("location", folder.resolve().name if is_local else name_model))
    if kind == UNDECLARED and is_local:
        kind = "local"
    return {
        "kind": kind,
        "location": location,
        "revision": declared.get("revision"),
        "weights": dict(declared.get("weights") or {}),
    }
