"""Load a model from a pinned source, and refuse weights that do not fit the model."""

import contextlib
import copy
import inspect
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import transformers

from .base import ExtractorError
from .checkpoint_keys import allowed_keys, keys_not_allowed, without_tied
from .options import Options
from .origin import Origin, check_class, class_of
from .state_dict import float32_weights, load_state
from .tensors import read_tensors
from .weight_files import PICKLE_ENDINGS, SAFETENSORS_ENDINGS, digests

AUTO_CLASSES = tuple(
    sorted(
        (name for name in dir(transformers) if name.startswith("AutoModel")),
        key=lambda name: (len(name), name),
    )
)
"""The Auto classes of transformers, plain AutoModel first."""
LISTED_KEYS_MAX = 3
"""Maximum number of names of weights that a message lists."""
_QUOTED_CHARACTERS_MAX = 400
"""Maximum number of quoted characters of an exception; transformers puts its advice first."""
_SAFETENSORS_FILES = ("model.safetensors", "model.safetensors.index.json")
"""Names that transformers gives to a checkpoint in safetensors: its only file, or the index of its
files."""


def check_model_class(options: Options) -> None:
    """Raise ExtractorError if `auto_class` does not exist, before anything is loaded."""
    check_class("auto_class", options.auto_class, AUTO_CLASSES)


def check_configuration(origin: Origin, options: Options) -> None:
    """Raise ExtractorError if the model needs a config.json, and its source has none."""
    is_package = options.auto_class.partition(":")[0] == "package"
    if options.weights or is_package or origin.file("config.json") is not None:
        return
    msg = (
        f"{origin.name!r} has no config.json at its top level, from which the model is built: pass "
        "the folder that has it, or declare weights=FILE with auto_class=transformers:CLASS and "
        "config_arguments"
    )
    raise ExtractorError(msg)


def load_model(origin: Origin, options: Options, device: str) -> tuple[Any, dict[str, Any]]:
    """Return the model in evaluation mode on its device, and a description of its source.

    The description has `kind`, `location`, `revision` and `weights` as in submission format 1.1.
    Raise ExtractorError if weights are missing or unused, or if `submodule` does not exist.
    """
    model_class = class_of(options.auto_class, origin)
    if options.weights:
        model, loading_report, path = load_state(model_class, origin, options)
        _check_weights(origin.name, model, loading_report, options)
        folder, files = path.parent, [path]
    else:
        model, loading_report, is_safetensors = _model_from_files(
            model_class,
            origin,
            dtype=getattr(torch, options.dtype),
            **origin.keywords,
            **options.config_arguments,
        )
        _check_weights(origin.name, model, loading_report, options)
        _compute_unsaved_tensors(model)
        endings = SAFETENSORS_ENDINGS if is_safetensors else PICKLE_ENDINGS
        folder = origin.folder
        files = sorted(file for file in folder.iterdir() if file.suffix in endings)
        if options.keep_float32:
            _keep_float32(model, files, options.keep_float32)
    module = _submodule(model, options.submodule)
    return module.to(device).eval(), _source_description(origin, folder, files)


def _source_description(origin: Origin, folder: Path, files: list[Path]) -> dict[str, Any]:
    """Return kind, location and revision of a source, and the digests of its weight files."""
    return {
        "kind": "local" if origin.is_local else "huggingface",
        "location": folder.resolve().name if origin.is_local else origin.name,
        "revision": None if origin.is_local else origin.revision,
        "weights": digests(folder, files),
    }


_DTYPE_OPTION_VERSION = (4, 56)
"""Version of transformers from which on `torch_dtype` is named `dtype`."""


def _renamed_options(cls: Any, options: dict[str, Any]) -> dict[str, Any]:  # any model class
    """Return options of `from_pretrained` with the names that the installed transformers uses.

    `weights_only` is dropped for versions without it: torch reads only tensors since 2.6.
    """
    arguments = dict(options)
    version = tuple(int(part) for part in transformers.__version__.split(".")[:2])
    if version < _DTYPE_OPTION_VERSION:
        arguments["torch_dtype"] = arguments.pop("dtype")
    model_class = getattr(transformers, "PreTrainedModel", cls)
    if "weights_only" not in inspect.signature(model_class.from_pretrained).parameters:
        arguments.pop("weights_only", None)
    return arguments


def _model_from_files(cls: Any, origin: Origin, **options: Any) -> tuple[Any, dict[str, Any], bool]:
    """Return the model, the loading report of transformers, and whether the files are safetensors.

    Of pickle files, only tensors are read.
    """
    has_safetensors = any(origin.file(name) is not None for name in _SAFETENSORS_FILES)
    model, loading_report = cls.from_pretrained(
        origin.loads_from,
        use_safetensors=has_safetensors,
        output_loading_info=True,
        **_renamed_options(cls, {"weights_only": True, **options}),
    )
    return model, loading_report, has_safetensors


def _check_weights(name: str, model: Any, loading_report: dict[str, Any], options: Options) -> None:
    """Raise ExtractorError if the file has other tensors than the model, except allowed ones."""
    allowed_missing, allowed_unused = allowed_keys(vars(options))
    missing = keys_not_allowed(without_tied(model, loading_report["missing_keys"]), allowed_missing)
    unused = keys_not_allowed(loading_report["unexpected_keys"], allowed_unused)
    ill_shaped = [
        str(key) for key in (*loading_report["mismatched_keys"], *loading_report["error_msgs"])
    ]
    if not (missing or unused or ill_shaped):
        return
    mismatch_texts = [
        f"{len(keys)} {mismatch} "
        f"({', '.join(keys[:LISTED_KEYS_MAX])}{', ...' if len(keys) > LISTED_KEYS_MAX else ''})"
        for mismatch, keys in (
            ("missing", missing),
            ("unused", unused),
            ("of another shape", ill_shaped),
        )
        if keys
    ]
    advice = (
        "correct the options rename, split, transpose, zeros or config_arguments"
        if options.weights
        else "if the repository brings its own code, read it and pass trust_remote_code=True"
    )
    msg = (
        f"the weights of {name!r} do not fit the model that was built from its configuration: "
        f"{'; '.join(mismatch_texts)}; {advice}; declare weights that do not affect the embeddings "
        "with missing=REGEX or unexpected=REGEX"
    )
    raise ExtractorError(msg)


def _compute_unsaved_tensors(model: Any) -> None:  # any PreTrainedModel
    """Compute the tensors of a model that no file contains, if the repository has its own code.

    transformers creates a model without memory and fills it from the file. Buffers that are not
    saved, and tensors in plain attributes, get no values. Version 4 builds the whole model first,
    and has no `is_custom_code`.
    """
    is_custom_code = getattr(model, "is_custom_code", lambda: False)
    if not is_custom_code() or not _unsaved_tensor_names(model):
        return
    rebuilt_model = _rebuilt(model, weights=False)
    if any(tensor.is_meta for tensor in _tensors_to_copy(model, rebuilt_model)):
        # Its constructor computes them from the weights, which therefore need memory.
        rebuilt_model = _rebuilt(model, weights=True)
    for name, tensor in zip(
        _unsaved_tensor_names(model), _tensors_to_copy(model, rebuilt_model), strict=True
    ):
        owner, attribute = _owner_and_attribute(model, name)
        # Keep the type in which the model was loaded.
        setattr(owner, attribute, tensor.to(getattr(owner, attribute).dtype))


def _rebuilt(model: Any, *, weights: bool) -> Any:
    """Return the model built again from its configuration.

    Without `weights`, its parameters have no memory, and only buffers are computed.
    """
    with torch.random.fork_rng(), contextlib.ExitStack() as stack:
        if not weights:
            stack.enter_context(_parameters_without_memory())
        return type(model)(copy.deepcopy(model.config))


@contextlib.contextmanager
def _parameters_without_memory() -> Iterator[None]:
    """Let new modules create parameters without memory, so that only buffers are computed."""
    original_register = torch.nn.Module.register_parameter

    def register_without_memory(
        module: torch.nn.Module, name: str, param: torch.nn.Parameter | None
    ) -> None:
        parameter_without_memory = (
            None if param is None else torch.nn.Parameter(param.to("meta"), param.requires_grad)
        )
        original_register(module, name, parameter_without_memory)

    torch.nn.Module.register_parameter = register_without_memory  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        torch.nn.Module.register_parameter = original_register  # type: ignore[method-assign]


def _unsaved_tensor_names(model: Any) -> list[str]:
    """Return the dotted names of all tensors of a model that no file contains."""
    return [*_unsaved_buffer_names(model), *_attributes_without_memory(model)]


def _tensors_to_copy(model: Any, rebuilt_model: Any) -> list[torch.Tensor]:
    """Return the tensors of a rebuilt model that the files of `model` do not contain."""
    owners = [(_owner_and_attribute(rebuilt_model, name)) for name in _unsaved_tensor_names(model)]
    return [getattr(owner, attribute) for owner, attribute in owners]


def _unsaved_buffer_names(model: Any) -> list[str]:
    """Return the names of the buffers that are not saved."""
    saved = model.state_dict().keys()
    return [n for n, _ in model.named_buffers(remove_duplicate=False) if n not in saved]


def _attributes_without_memory(model: Any) -> list[str]:
    """Return the dotted names of plain attributes whose values are tensors without memory."""
    return [
        f"{name}.{key}" if name else key
        for name, module in model.named_modules()
        for key, value in vars(module).items()
        if isinstance(value, torch.Tensor) and value.is_meta
    ]


def _owner_and_attribute(model: Any, name: str) -> tuple[Any, str]:
    """Return the module that has the attribute with a dotted name, and the attribute's name."""
    path, _, attribute = name.rpartition(".")
    return model.get_submodule(path), attribute


def _keep_float32(model: Any, files: list[Path], pattern: str) -> None:
    """Replace the weights that match a pattern, which were rounded, by those of the files."""
    pending_weights = float32_weights(model, pattern)
    for file in files:
        for name, tensor in read_tensors(file, only=pattern).items():
            if name in pending_weights:
                pending_weights.pop(name).data = tensor.to(torch.float32)
    if pending_weights:
        msg = (
            f"keep_float32 matches {min(pending_weights)!r}, which the files of weights do not "
            "contain: declare a narrower keep_float32"
        )
        raise ExtractorError(msg)


def _submodule(model: Any, path: str) -> Any:
    """Return the module with a dotted name; the model itself for ""."""
    try:
        return model.get_submodule(path)
    except AttributeError:
        children = [name for name, _ in model.named_children()]
        msg = (
            f"submodule is {path!r}, but {type(model).__name__} has no such module; its top-level "
            f"modules are: {', '.join(children)}"
        )
        raise ExtractorError(msg) from None


def error_and_cause_text(error: BaseException) -> str:
    """Return type and text of an exception in one line, and of its cause unless the text has it."""
    text = " ".join(str(error).split())
    cause = error.__cause__
    cause_text = (
        f" ({error_and_cause_text(cause)})"
        if cause is not None and not _contains_text_of(text, cause)
        else ""
    )
    short_text = textwrap.shorten(text, _QUOTED_CHARACTERS_MAX, placeholder=" ...")
    return f"{type(error).__name__}: {short_text}{cause_text}"


def _contains_text_of(text: str, cause: BaseException) -> bool:
    """Whether a text contains the text of an exception."""
    return " ".join(str(cause).split()) in text
