"""Read only the tensors of a checkpoint file, whatever else a pickle contains."""

import pickle
import re
import types
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

import torch
from safetensors import safe_open
from torch import Tensor

from .base import ExtractorError
from .weight_files import SAFETENSORS_ENDINGS

_LISTED_ENTRIES_MAX = 5
"""Maximum number of entries of a file that a message lists."""


class _Ignored:
    """Replaces every class of a pickle that tensors do not need; calls of it have no effect."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __setstate__(self, _: object) -> None:
        pass

    def __setitem__(self, _: object, __: object) -> None:
        pass

    def __call__(self, *_: object, **__: object) -> "_Ignored":
        """Return this object, so that a call in a pickle has no effect."""
        return self

    def append(self, _: object) -> None:
        """Ignore an item; pickle calls this for objects that subclass list."""

    def extend(self, _: object) -> None:
        """Ignore several items; pickle calls this for objects that subclass list."""

    def __hash__(self) -> int:
        return id(self)


_ALLOWED: dict[tuple[str, str], Callable[..., Any]] = {
    ("collections", "OrderedDict"): OrderedDict,
    **{
        ("torch._utils", name): getattr(torch._utils, name)  # noqa: SLF001 - names in the files
        for name in ("_rebuild_tensor_v2", "_rebuild_parameter")
    },
    ("torch", "Size"): torch.Size,
}
"""(module, name) -> callable that a pickle may call; all others are replaced by `_Ignored`."""


class _Unpickler(pickle.Unpickler):
    """Unpickles tensors and replaces every other class by `_Ignored`."""

    def find_class(self, module: str, name: str) -> Any:  # any allowed callable
        """Return the callable that a pickle names, or its replacement."""
        return _ALLOWED.get((module, name), _Ignored)


def _torch_load(file: IO[bytes], **options: Any) -> Any:  # as pickle.load
    """Return what a pickle contains; the function `load` of `_TENSOR_PICKLE`."""
    return _Unpickler(file, **options).load()


_TENSOR_PICKLE = types.ModuleType("tensors_alone")
"""A pickle module for torch.load that reads only tensors; torch calls `load` for files from before
torch 1.6."""
_TENSOR_PICKLE.Unpickler = _Unpickler  # type: ignore[attr-defined]
_TENSOR_PICKLE.load = _torch_load  # type: ignore[attr-defined]


def read_tensors(path: Path, entry: str = "", only: str = "") -> dict[str, Tensor]:
    """Return name -> tensor of a file, in the stored types, on the CPU.

    `entry` is the key under which the tensors are stored, such as "state_dict"; in a file without
    this key, and in safetensors, they are at the top level. Of a safetensors file, only tensors
    whose name matches the regular expression `only` are read. Raise ExtractorError if another file
    has no tensors, or cannot be read.
    """
    if path.suffix in SAFETENSORS_ENDINGS:
        with safe_open(path, "pt") as file:
            return {name: file.get_tensor(name) for name in file.keys() if re.search(only, name)}  # noqa: SIM118 - no mapping
    content = _content_of_pickle(path)
    entry_content = content.get(entry) if isinstance(content, Mapping) and entry else None
    if isinstance(entry_content, Mapping):
        content = entry_content
    tensors = _tensors_in(content)
    if not tensors:
        entry_names = [str(key) for key in content] if isinstance(content, Mapping) else []
        content_text = (
            f"entries {', '.join(entry_names[:_LISTED_ENTRIES_MAX])}"
            if entry_names
            else type(content).__name__
        )
        msg = (
            f"{path.name} has no tensors but {content_text}: declare weights_at=ENTRY, the "
            "entry that has them"
        )
        raise ExtractorError(msg)
    return tensors


def _tensors_in(content: object) -> dict[str, Tensor]:
    """Return the tensors of a mapping by name."""
    if not isinstance(content, Mapping):
        return {}
    return {str(key): value for key, value in content.items() if isinstance(value, Tensor)}


def _content_of_pickle(path: Path) -> object:
    """Return the content of a file of torch, with tensors on the CPU."""
    try:
        return torch.load(
            path, map_location="cpu", weights_only=False, pickle_module=_TENSOR_PICKLE
        )
    except Exception as error:
        msg = (
            f"{path.name} cannot be read as a file of torch ({type(error).__name__}): compare its "
            "digest with the published one, and download it again"
        )
        raise ExtractorError(msg) from error
