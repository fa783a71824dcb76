"""The facts that an extractor declares of itself, in the terms of submission format 1.1."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .extractors.base import UNDECLARED
from .formats.submission_terms import DTYPES, SOURCE_KINDS, TRUNCATIONS

# A tokenizer without a limit has 10**30; no model reads 10**9 tokens.
LENGTH_MAX = 10**9

UNIT = "unit"
"""The scale of an extractor each of whose embeddings is divided by its root mean square."""

_MISSING = object()


def describe(extractor: object, name_model: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return `{"model": ..., "embedding": ...}` and the names of what is undeclared.

    Only declared words count: an attribute of another type or value, such as a pooling layer kept
    under the name `pooling`, is undeclared. `loaded_model` says which weights were loaded.
    """
    embedding = {
        "layer": _text(getattr(extractor, "layer", None)),
        "pooling": _text(getattr(extractor, "pooling", None)),
        "max_length": max_length(extractor),
        "truncation": _one_of(getattr(extractor, "truncation", None), TRUNCATIONS),
        "dtype": _one_of(_dtype(getattr(extractor, "dtype", None)), DTYPES),
    }
    if (
        getattr(extractor, "scale", None) == UNIT
    ):  # else the key of its cached embeddings would change
        embedding["scale"] = UNIT
    model = _model(getattr(extractor, "source", None), name_model)
    undeclared = [key for key, value in embedding.items() if value == UNDECLARED]
    if model["kind"] == UNDECLARED:
        undeclared.append("source")
    return {"model": model, "embedding": embedding}, tuple(undeclared)


def max_length(extractor: object) -> int | str | None:
    """Return the declared limit in tokens, None for no limit, or "undeclared"."""
    value = getattr(extractor, "max_length", _MISSING)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 1:
        return UNDECLARED
    return None if value > LENGTH_MAX else int(value)


def _text(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) and value else UNDECLARED


def _dtype(value: object) -> str:
    """Return "float32" for torch.float32, np.float32 and "float32" alike."""
    name = value if isinstance(value, str) else getattr(value, "__name__", str(value))
    return name.removeprefix("torch.")


def _one_of(value: object, allowed: tuple[str, ...]) -> str:
    return value if isinstance(value, str) and value in allowed else UNDECLARED


def _model(source: object, name_model: str) -> dict[str, Any]:
    declared = source if isinstance(source, Mapping) else {}
    kind = _one_of(declared.get("kind"), SOURCE_KINDS)
    folder = Path(name_model)
    local = bool(name_model) and folder.exists()
    # The name alone: the rest of the path is the contributor's own business.
    location = str(declared.get("location", folder.resolve().name if local else name_model))
    if kind == UNDECLARED and local:
        kind = "local"
    return {
        "kind": kind,
        "location": location,
        "revision": declared.get("revision"),
        "weights": dict(declared.get("weights") or {}),
    }
