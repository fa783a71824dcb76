"""Explain errors of torch or transformers by the installed versions, and advise what to do."""

import json
import re
from pathlib import Path
from typing import Any

import torch
import transformers

from reference_harness.formats.files import NotReadable, member_at, read_regular

_CAUSES_MAX = 10
"""Maximum number of errors whose texts are searched: an error, its cause, and so on."""
_CONFIG_BYTES_MAX = 10_000_000
"""Largest config.json, in bytes, that is read."""
_VERSION = re.compile(r"\d+(\.\d+)*")
"""The numbers of a version."""
_META_DEVICE_CAUSE = (
    "the model's constructor computes with tensors, as transformers 4 allowed; transformers 5 "
    "builds models on the meta device, where tensors have no data"
)
"""Explanation of a model built with tensors without memory, as transformers 5 does."""
_MISSING_NAME_CAUSE = (
    "the code of the model imports a name that the installed library does not have: it was "
    "written for another version"
)
"""Explanation of an import that fails."""
_OTHER_VERSION_CAUSE = "the code of the model, or its configuration, may be for another version"
"""Explanation of other errors of a model's own code."""
_UNKNOWN_MODEL_CAUSE = (
    "this version of transformers does not have the model's architecture or tokenizer"
)
"""Explanation of a model type that transformers does not have."""
_MISSING_PACKAGE_CAUSE = (
    "the code of the model needs a package that is missing, or another version of one"
)
"""Explanation of a package that is not installed."""
_CAUSES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (_META_DEVICE_CAUSE, (r"meta (tensor|device)", r"[Cc]annot copy out of meta")),
    (
        _MISSING_NAME_CAUSE,
        (
            r"cannot import name '\w+' from '(transformers|torch)",
            r"No module named '(transformers|torch)\.",
            r"module '(transformers|torch)[\w.]*' has no attribute",
        ),
    ),
    (
        _OTHER_VERSION_CAUSE,
        (
            r"tied_weights_keys|get_head_mask|past_key_values|DynamicCache|post_init|_init_weights",
            r"is_flash_attn|rope_(scaling|parameters)|_supports_",
            r"object has no attribute '|unexpected keyword argument '",
        ),
    ),
    (
        _UNKNOWN_MODEL_CAUSE,
        (
            r"does not recognize this architecture|Unrecognized (model|configuration class)",
            r"Tokenizer class \w+ does not exist",
        ),
    ),
    (
        _MISSING_PACKAGE_CAUSE,
        (
            r"following packages that were not found|No module named '|requires the .* library",
            r"DLL load failed|undefined symbol|cannot open shared object",
        ),
    ),
)
"""(explanation, regular expressions of the texts of errors); the first match is used."""
_ENVIRONMENT_ADVICE = (
    "run it in an environment in which it can be loaded, such as the one that an entry of the "
    "model registry pins (docs/maintainer/models.md: `[run.environment]`), or write your own "
    "extractor (docs/contributor/extractor.md)"
)
"""Advice for a model that needs other versions."""


def version_advice(folder: Path | None, error: BaseException, *, own_code: bool) -> str:
    """Return an explanation of an error that a model raised while it was loaded or run.

    The explanation has the probable cause, the installed versions, the version in config.json of
    the folder, and what to do. It is "" for an error of files or memory whose cause is not known.
    `own_code` says whether code of the model's author was run.
    """
    error_texts = _error_texts(error)
    causes = (
        cause
        for cause, patterns in _CAUSES
        if any(re.search(pattern, error_texts) for pattern in patterns)
    )
    cause = next(causes, "")
    if not cause and isinstance(error, OSError | MemoryError | torch.OutOfMemoryError):
        return ""
    configured_version = _configured_version(folder)
    configured_text = (
        f"the model's config.json names transformers {configured_version}"
        f"{_older_or_newer_text(configured_version)}"
    )
    sentences = [
        cause,
        f"installed are transformers {transformers.__version__} and torch {torch.__version__}",
        configured_text
        if configured_version
        else "the model's config.json names no version of transformers",
    ]
    is_other_major_version = (
        bool(configured_version)
        and _version_numbers(configured_version)[0] != _version_numbers(transformers.__version__)[0]
    )
    advice = _ENVIRONMENT_ADVICE if cause or own_code or is_other_major_version else ""
    return "; ".join(sentence for sentence in (*sentences, advice) if sentence)


def _error_texts(error: BaseException) -> str:
    """Return the types and texts of an error and of its causes, one per line."""
    texts: list[str] = []
    next_error: BaseException | None = error
    while next_error is not None and len(texts) < _CAUSES_MAX:
        texts.append(f"{type(next_error).__name__}: {next_error}")
        next_error = next_error.__cause__ or next_error.__context__
    return "\n".join(texts)


def _configured_version(folder: Path | None) -> str:
    """Return the transformers_version of a configuration; "" if there is none."""
    if folder is None:
        return ""
    try:
        config: Any = json.loads(read_regular(folder / "config.json", _CONFIG_BYTES_MAX))
    except (NotReadable, ValueError, RecursionError):
        return ""
    version = member_at(config, "transformers_version")
    return version if isinstance(version, str) and _VERSION.match(version) else ""


def _older_or_newer_text(version: str) -> str:
    """Return a text that calls a version older or newer than the installed one; "" if equal."""
    configured, installed = _version_numbers(version), _version_numbers(transformers.__version__)
    if configured == installed:
        return ""
    return " (an older version)" if configured < installed else " (a newer version)"


def _version_numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, for comparisons."""
    match = _VERSION.match(version)
    return tuple(map(int, match.group().split("."))) if match else ()
