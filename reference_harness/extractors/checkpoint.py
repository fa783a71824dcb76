"""Loads a model and its tokenizer from one pinned place, and refuses weights that do not fit."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModel, AutoTokenizer
from transformers.utils.hub import cached_file

from .base import ExtractorError
from .checkpoint_keys import HEADS, UNUSED, unexplained
from .weights import PICKLED, SAFE, digests

DTYPES = ("float32", "bfloat16", "float16", "float64")

_SHOWN = 3


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A model in evaluation mode on its device, and where it came from."""

    model: Any
    tokenizer: Any
    source: dict[str, Any]
    """`kind`, `location`, `revision` and `weights` of submission format 1.1."""


def load_checkpoint(
    name: str, device: str, *, dtype: str, revision: str | None, trust_remote_code: bool
) -> Checkpoint:
    """Load a folder, or a repository of the Hugging Face Hub at a commit.

    A folder needs no `revision`: its weights are hashed. One may be given all the same, as an audit
    does that repeats a run from the Hub with the folder in which it has verified those files.

    Raises ExtractorError when the revision is no commit, when code of another repository would
    run, when nothing can be loaded, or when weights are missing or left over.
    """
    if dtype not in DTYPES:
        msg = f"dtype is {dtype!r}, expected one of {', '.join(DTYPES)}"
        raise ExtractorError(msg)
    local = bool(name) and Path(name).is_dir()
    _check_revision(name, revision, local=local)
    common: dict[str, Any] = {"trust_remote_code": trust_remote_code, "local_files_only": local}
    if not local:
        common["revision"] = revision
    try:
        place = _place(name, revision, local=local)
        _check_auto_map(name, place, revision)
        tokenizer = AutoTokenizer.from_pretrained(name, **common)
        model, info, safe = _load_model(name, dtype=getattr(torch, dtype), **common)
    except ExtractorError:
        raise
    except Exception as error:
        msg = f"{name!r} cannot be loaded: {_first_line(error)}; see the cause above"
        raise ExtractorError(msg) from error
    _check_weights(name, info)
    endings = SAFE if safe else PICKLED
    files = sorted(file for file in place.iterdir() if file.suffix in endings)
    return Checkpoint(
        model=model.to(device).eval(),
        tokenizer=tokenizer,
        source={
            "kind": "local" if local else "huggingface",
            "location": place.resolve().name if local else name,
            "revision": None if local else revision,
            "weights": digests(place, files),
        },
    )


def _check_revision(name: str, revision: str | None, *, local: bool) -> None:
    if local and revision is None:
        return
    if not re.fullmatch(r"[0-9a-f]{40}", revision or ""):
        where = "" if local else f"; copy it from https://huggingface.co/{name}/commits/main"
        msg = (
            f"revision of {name!r} is {revision!r}, expected the 40 hex digits of a commit: a "
            f"branch or tag can move{where}"
        )
        raise ExtractorError(msg)


def _place(name: str, revision: str | None, *, local: bool) -> Path:
    if local:
        return Path(name)
    found = cached_file(name, "config.json", revision=revision)
    return Path(str(found)).parent


def _check_auto_map(name: str, place: Path, revision: str | None) -> None:
    """Refuse `other/repo--module.Class`: that code is not under the revision we pin."""
    if not place.joinpath("tokenizer_config.json").exists() and revision is not None:
        cached_file(
            name,
            "tokenizer_config.json",
            revision=revision,
            _raise_exceptions_for_missing_entries=False,
        )
    for file in ("config.json", "tokenizer_config.json"):
        path = place / file
        if not path.is_file():
            continue
        for reference in _strings(json.loads(path.read_bytes()).get("auto_map")):
            if "--" in reference:
                msg = (
                    f"{file} of {name!r} takes its code from another repository ({reference}), "
                    "which the revision does not pin: copy the code into one repository"
                )
                raise ExtractorError(msg)


def _strings(value: object) -> Iterable[str]:
    """Yield every text of a nest of lists and objects."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _strings(list(value.values()))
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)


def _load_model(name: str, **options: Any) -> tuple[Any, dict[str, Any], bool]:  # noqa: ANN401
    """Load safetensors; only where there are none, the older format, read as tensors alone."""
    for safe in (True, False):
        try:
            model, info = AutoModel.from_pretrained(
                name, use_safetensors=safe, weights_only=True, output_loading_info=True, **options
            )
        except OSError:
            if not safe:
                raise
        else:
            return model, info, safe
    raise AssertionError


def _check_weights(name: str, info: dict[str, Any]) -> None:
    """Raise when the file and the model do not hold the same tensors."""
    missing = unexplained(info["missing_keys"], UNUSED)
    left_over = unexplained(info["unexpected_keys"], HEADS)
    other = [str(key) for key in (*info["mismatched_keys"], *info["error_msgs"])]
    if not (missing or left_over or other):
        return
    parts = [
        f"{len(keys)} {what} ({', '.join(keys[:_SHOWN])}{', ...' if len(keys) > _SHOWN else ''})"
        for what, keys in (("missing", missing), ("left over", left_over), ("ill-shaped", other))
        if keys
    ]
    msg = (
        f"the weights of {name!r} do not fit the model that was built from its configuration: "
        f"{'; '.join(parts)}; if the repository brings its own code, read it and pass "
        "trust_remote_code=True"
    )
    raise ExtractorError(msg)


def _first_line(error: BaseException) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0] if text else ''}"
