"""Keyword arguments of an extractor's constructor: as words, as text, as values."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from .embed import Batching
from .errors import OptionError
from .extractors import BUILTINS


def texts(arguments: Sequence[str], option: str) -> dict[str, str]:
    """Return KEY=VALUE words as a mapping.

    Raises OptionError for a word without "=", or with a key that Python could not take.
    """
    values: dict[str, str] = {}
    for word in arguments:
        key, equals, value = word.partition("=")
        if not equals or not key.isidentifier():
            msg = f"{option} {word!r}: expected KEY=VALUE"
            raise OptionError(msg)
        values[key] = value
    return values


def values(option_texts: Mapping[str, str]) -> dict[str, Any]:
    """Return the values that texts mean: integers, true, false and none become such values."""
    constants = {"true": True, "false": False, "none": None}
    return {
        key: int(value) if re.fullmatch(r"-?\d+", value) else constants.get(value, value)
        for key, value in option_texts.items()
    }


def is_compiled(extractor: str, option_texts: Mapping[str, str]) -> bool:
    """Whether options have the model of a built-in extractor compiled by torch."""
    built_in = BUILTINS.get(extractor.removeprefix("builtin:"))
    return built_in is not None and values(option_texts).get("compile") is True


def keywords(extractor: str, option_texts: Mapping[str, str], batching: Batching) -> dict[str, Any]:
    """Return the keywords for an extractor: one that plans batches learns how."""
    built_in = BUILTINS.get(extractor.removeprefix("builtin:"))
    plans = built_in is not None and built_in.plans_batches
    shared = {"batching": batching.mode, "token_budget": batching.token_budget} if plans else {}
    return shared | values(option_texts)
