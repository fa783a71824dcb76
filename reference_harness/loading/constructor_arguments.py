"""Keyword arguments of an extractor's constructor: parsed from words, and converted to values."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from reference_harness.embedding.extractor_calls import Batching
from reference_harness.errors import OptionError
from reference_harness.extractors import BUILTINS


def parsed_options(arguments: Sequence[str], option: str) -> dict[str, str]:
    """Return KEY=VALUE words as a mapping.

    Raise OptionError for a word without "=", or whose key is no Python identifier.
    """
    text_by_key: dict[str, str] = {}
    for word in arguments:
        key, equals, value = word.partition("=")
        if not equals or not key.isidentifier():
            msg = f"{option} {word!r}: expected KEY=VALUE, with a Python identifier as KEY"
            raise OptionError(msg)
        text_by_key[key] = value
    return text_by_key


def converted_options(option_texts: Mapping[str, str]) -> dict[str, Any]:
    """Return the options with converted values: integers, true, false and none."""
    constants = {"true": True, "false": False, "none": None}
    return {
        key: int(value) if re.fullmatch(r"-?\d+", value) else constants.get(value, value)
        for key, value in option_texts.items()
    }


def is_compiled(extractor: str, option_texts: Mapping[str, str]) -> bool:
    """Whether the options let torch compile the model of a built-in extractor."""
    built_in = BUILTINS.get(extractor.removeprefix("builtin:"))
    return built_in is not None and converted_options(option_texts).get("compile") is True


def keywords(extractor: str, option_texts: Mapping[str, str], batching: Batching) -> dict[str, Any]:
    """Return the keyword arguments for an extractor, with the batching if it plans batches."""
    built_in = BUILTINS.get(extractor.removeprefix("builtin:"))
    plans_batches = built_in is not None and built_in.plans_batches
    batching_keywords = (
        {"batching": batching.mode, "token_budget": batching.token_budget} if plans_batches else {}
    )
    return batching_keywords | converted_options(option_texts)
