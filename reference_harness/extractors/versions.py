"""Facts beside a bare error of torch or transformers: versions, and the way out."""

import json
import re
from pathlib import Path
from typing import Any

import torch
import transformers

from reference_harness.formats.files import NotReadable, member_at, read_regular

_CHAIN_MAX = 10
"""Errors that follow from each other, of which the words are read."""
_CONFIG_BYTES_MAX = 10_000_000
_VERSION = re.compile(r"\d+(\.\d+)*")
_ON_META = (
    "the code of the model computes with tensors while it is built, as code for transformers 4 "
    "may; transformers 5 builds models without memory (on the meta device)"
)
_NAME_GONE = (
    "the code of the model takes a name from the library that this version does not have: it was "
    "written for another one"
)
_OTHER_CODE = "the code of the model or its configuration may be for another version"
_UNKNOWN = "this version of transformers does not have the model's architecture or tokenizer"
_PACKAGE = "the code of the model needs a package that is not here, or one of another version"
_CAUSES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (_ON_META, (r"meta (tensor|device)", r"[Cc]annot copy out of meta")),
    (
        _NAME_GONE,
        (
            r"cannot import name '\w+' from '(transformers|torch)",
            r"No module named '(transformers|torch)\.",
            r"module '(transformers|torch)[\w.]*' has no attribute",
        ),
    ),
    (
        _OTHER_CODE,
        (
            r"tied_weights_keys|get_head_mask|past_key_values|DynamicCache|post_init|_init_weights",
            r"is_flash_attn|rope_(scaling|parameters)|_supports_",
            r"object has no attribute '|unexpected keyword argument '",
        ),
    ),
    (
        _UNKNOWN,
        (
            r"does not recognize this architecture|Unrecognized (model|configuration class)",
            r"Tokenizer class \w+ does not exist",
        ),
    ),
    (
        _PACKAGE,
        (
            r"following packages that were not found|No module named '|requires the .* library",
            r"DLL load failed|undefined symbol|cannot open shared object",
        ),
    ),
)
"""Meanings of errors, and the words by which each is known; the first that fits counts."""
_WAY_OUT = (
    "run it in an environment in which it loads, as entries of the model registry pin one "
    "(docs/maintainer/models.md: `[run.environment]`), or write an extractor of your own "
    "(docs/contributor/extractor.md)"
)


def version_advice(folder: Path | None, error: BaseException, *, own_code: bool) -> str:
    """Return what is known about an error that a model raised while it was loaded or run.

    That is what the error means by its words, which versions are installed, which one the
    configuration in the folder names, and what to do; "" for an error of files or memory that says
    nothing of versions. `own_code` is whether code of the model's author was run.
    """
    text = _texts(error)
    causes = (cause for cause, words in _CAUSES if any(re.search(word, text) for word in words))
    cause = next(causes, "")
    if not cause and isinstance(error, OSError | MemoryError | torch.OutOfMemoryError):
        return ""
    configured_version = _configured_version(folder)
    saved = f"the model's config.json names {configured_version}{_compared(configured_version)}"
    parts = [
        cause,
        f"installed are transformers {transformers.__version__} and torch {torch.__version__}",
        saved if configured_version else "the model's config.json names no version",
    ]
    is_of_another = (
        bool(configured_version)
        and _parts(configured_version)[0] != _parts(transformers.__version__)[0]
    )
    way_out = _WAY_OUT if cause or own_code or is_of_another else ""
    return "; ".join(part for part in (*parts, way_out) if part)


def _texts(error: BaseException) -> str:
    """Return type and text of an error and of what caused it."""
    texts: list[str] = []
    link: BaseException | None = error
    while link is not None and len(texts) < _CHAIN_MAX:
        texts.append(f"{type(link).__name__}: {link}")
        link = link.__cause__ or link.__context__
    return "\n".join(texts)


def _configured_version(folder: Path | None) -> str:
    """Return the transformers_version of a configuration; "" where there is none."""
    if folder is None:
        return ""
    try:
        config: Any = json.loads(read_regular(folder / "config.json", _CONFIG_BYTES_MAX))
    except (NotReadable, ValueError, RecursionError):
        return ""
    version = member_at(config, "transformers_version")
    return version if isinstance(version, str) and _VERSION.match(version) else ""


def _compared(version: str) -> str:
    """Return how a version differs from the installed one, in parentheses; "" for the same."""
    configured, installed = _parts(version), _parts(transformers.__version__)
    if configured == installed:
        return ""
    return " (an older one)" if configured < installed else " (a newer one)"


def _parts(version: str) -> tuple[int, ...]:
    match = _VERSION.match(version)
    return tuple(map(int, match.group().split("."))) if match else ()
