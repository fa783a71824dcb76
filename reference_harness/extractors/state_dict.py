"""Load a file of tensors into a class by a declared mapping of names."""

import dataclasses
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from reference_harness.formats.files import read_json

from .base import ExtractorError
from .options import Options
from .origin import Origin
from .tensors import read_tensors

_LISTED_KEYS_MAX = 3
"""Maximum number of names of weights that a message lists."""


def load_state(
    model_class: Any, origin: Origin, options: Options
) -> tuple[Any, dict[str, Any], Path]:  # any class
    """Return a model with the tensors of the file `weights`, a report, and the file's path.

    The report has the form of the loading report of transformers: names of tensors under
    missing_keys, unexpected_keys, mismatched_keys. Raise ExtractorError if the file is missing or
    has no tensors.
    """
    path = origin.file(options.weights)
    if path is None:
        msg = (
            f"weights is {options.weights!r}, which is no file of {origin.name!r}: name one of "
            "its files"
        )
        raise ExtractorError(msg)
    model = _built_model(model_class, origin, options)
    tensors = tensors_by_model_name(read_tensors(path, options.weights_at), options)
    loading_report = _fill_weights(model, tensors, options.zeros)
    kept_weights = float32_weights(model, options.keep_float32)
    float32_tensors = {name: weight.data for name, weight in kept_weights.items()}
    model.to(getattr(torch, options.dtype))
    for name, weight in kept_weights.items():
        weight.data = float32_tensors[name]
    return model, loading_report, path


def float32_weights(model: Any, pattern: str) -> dict[str, torch.nn.Parameter]:
    """Return name -> weight of the weights whose names match `pattern`; {} if it is "".

    Raise ExtractorError for a pattern that matches no weight.
    """
    weights = dict(model.named_parameters())
    matching = {
        name: weight for name, weight in weights.items() if pattern and re.search(pattern, name)
    }
    if pattern and not matching:
        msg = (
            f"keep_float32 is {pattern!r}, which matches no weight of {type(model).__name__}: "
            f"declare a pattern of names such as {', '.join(list(weights)[:_LISTED_KEYS_MAX])}"
        )
        raise ExtractorError(msg)
    return matching


def tensors_by_model_name(tensors: Mapping[str, Tensor], options: Options) -> dict[str, Tensor]:
    """Return the tensors under the names of the model.

    In this order: `rename` rewrites names, one rule after the other; `split` divides a tensor along
    its first dimension into equal parts with other names; `transpose` swaps two dimensions. Raise
    ExtractorError for two tensors of one name, and for one that cannot be divided equally.
    """
    model_tensors: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        for part_name, part in _split_tensor(
            _renamed_tensor_name(name, options.rename), tensor, options.split
        ):
            if part_name in model_tensors:
                msg = f"rename gives two tensors the name {part_name!r}: correct its rules"
                raise ExtractorError(msg)
            is_transposed = options.transpose and re.search(options.transpose, part_name)
            model_tensors[part_name] = part.T.contiguous() if is_transposed else part
    return model_tensors


def _renamed_tensor_name(tensor_name: str, rules: Mapping[str, str]) -> str:
    """Return the name of a tensor after all rules of the option `rename`."""
    for pattern, replacement in rules.items():
        tensor_name = re.sub(pattern, replacement, tensor_name)
    return tensor_name


def _split_tensor(name: str, tensor: Tensor, rules: Mapping[str, Any]) -> list[tuple[str, Tensor]]:
    """Return the parts of a tensor by the option `split`, with their names."""
    for pattern, new_names in rules.items():
        if re.search(pattern, name) is None:
            continue
        if len(tensor) % len(new_names):
            msg = (
                f"split divides {name!r} into {len(new_names)} parts, but its first dimension is "
                f"{len(tensor)}, not a multiple: correct the rule {pattern!r}"
            )
            raise ExtractorError(msg)
        # Copied, as a view would keep the whole tensor in memory.
        parts = [part.clone() for part in tensor.chunk(len(new_names))]
        return [
            (re.sub(pattern, replacement, name), p)
            for replacement, p in zip(new_names, parts, strict=True)
        ]
    return [(name, tensor)]


def _built_model(model_class: Any, origin: Origin, options: Options) -> Any:
    """Return a model of the class, built from config.json, if it exists, and config_arguments."""
    if not hasattr(model_class, "config_class"):
        msg = (
            f"auto_class is {options.auto_class!r}, but {model_class.__name__} has no "
            "config_class to be built from: declare a class of transformers, or leave weights out"
        )
        raise ExtractorError(msg)
    path = origin.file("config.json")
    config = {} if path is None else read_json(path.read_bytes())
    if dataclasses.is_dataclass(model_class.config_class):
        # A class of the harness; config.json may have settings that it does not need.
        known_settings = {field.name for field in dataclasses.fields(model_class.config_class)}
        config = {name: value for name, value in config.items() if name in known_settings}
    with torch.random.fork_rng():
        # Weights that no file has are not used, but should be the same in each process.
        torch.manual_seed(0)
        return model_class(model_class.config_class(**{**config, **options.config_arguments}))


def _fill_weights(model: Any, tensors: dict[str, Tensor], zeros: str) -> dict[str, Any]:
    """Copy tensors into a model, and return a report as `load_state` does."""
    model_tensors = model.state_dict()
    if zeros:
        zero_names = [
            name for name in model_tensors if name not in tensors and re.search(zeros, name)
        ]
        tensors = tensors | {name: torch.zeros_like(model_tensors[name]) for name in zero_names}
    ill_shaped = [
        n
        for n, tensor in tensors.items()
        if n in model_tensors and model_tensors[n].shape != tensor.shape
    ]
    fitting_tensors = {name: tensor for name, tensor in tensors.items() if name not in ill_shaped}
    report = model.load_state_dict(fitting_tensors, strict=False)
    return {
        "missing_keys": [name for name in report.missing_keys if name not in ill_shaped],
        "unexpected_keys": report.unexpected_keys,
        "mismatched_keys": ill_shaped,
        "error_msgs": [],
    }
