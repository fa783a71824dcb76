"""Check how a model is loaded: every weight comes from a file, and the checkpoint's code is used.

transformers and torch report what they load. Weights that no report names are compared with the
tensors of the files.
"""

import contextlib
import dataclasses
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reference_harness.extractors.base import ExtractorError
from reference_harness.extractors.checkpoint_keys import (
    ALLOWED_MISSING,
    ALLOWED_UNUSED,
    allowed_keys,
    keys_not_allowed,
    without_tied,
)
from reference_harness.extractors.weight_files import PICKLE_ENDINGS, SAFETENSORS_ENDINGS
from reference_harness.loading.file_watch import WATCH
from reference_harness.text import first_and_more

from .hooks import torch_modules
from .opened_files import named_paths
from .result import BrokenError, UnverifiedError
from .subject import Subject

_TENSOR_KEYS = ("", "state_dict", "model", "model_state_dict")
"""Keys under which a file of torch may hold its tensors; "" is the file's top level."""
_SHARED_KEY = "loads"
"""Key of the reports in `Subject.shared`."""
_REPORT_FUNCTION = "log_state_dict_report"
"""Function of transformers that reports missing and unused weights."""
_CODE_FUNCTION = "resolve_trust_remote_code"
"""Function of transformers that decides whether the checkpoint's code is run."""


@dataclass
class LoadReports:
    """Reports of transformers and torch while the extractor was built a second time."""

    allowed_missing: tuple[tuple[str, str], ...]
    """Pattern and reason of weights that the file may lack."""
    allowed_unexpected: tuple[tuple[str, str], ...]
    """Pattern and reason of tensors of the file that no weight needs."""
    faults: list[str] = field(default_factory=list)
    """Phrases about the weights that were missing from a file or unused."""
    filled_weights: list[tuple[Any, str]] = field(default_factory=list)
    """Module and weight name of each weight that a load was reported to have filled."""
    loaded_classes: list[str] = field(default_factory=list)
    """Names of the classes of the modules that were loaded."""
    ignored_checkpoints: list[str] = field(default_factory=list)
    """Checkpoints whose code was ignored, as `trust_remote_code` was neither True nor False."""
    is_code_visible: bool = True
    """False if the installed transformers does not show whether it ignores a checkpoint's code."""

    def note(self, module: Any, missing: Sequence[str], unexpected: Sequence[str]) -> None:
        """Record what one load reported about a module."""
        class_name = type(module).__name__
        absent = set(keys_not_allowed(missing, self.allowed_missing))
        for fault, weight_keys in (
            ("missing from", sorted(absent)),
            ("unused in", keys_not_allowed(unexpected, self.allowed_unexpected)),
        ):
            if weight_keys:
                self.faults.append(
                    f"{len(weight_keys)} weights are {fault} the file of {class_name} "
                    f"({first_and_more(weight_keys)})"
                )
        self.loaded_classes.append(class_name)
        for path, submodule in module.named_modules():
            weights = (
                *submodule.named_parameters(recurse=False),
                *submodule.named_buffers(recurse=False),
            )
            self.filled_weights += [
                (submodule, weight_name)
                for weight_name, _ in weights
                if (f"{path}.{weight_name}" if path else weight_name) not in absent
            ]


def loaded_weights(subject: Subject) -> str:
    """Check that every weight is read from the file, and that every tensor of the file is used."""
    extractor, reports = _reload_with_reports(subject)
    if reports.faults:
        msg = (
            f"{'; '.join(dict.fromkeys(reports.faults))}, expected that the model and its file "
            "have the same weights, as a missing weight holds random numbers: build the class from "
            "which the checkpoint was saved (trust_remote_code, or another Auto class)"
        )
        raise BrokenError(msg, f"{subject.spec}(name_model={subject.name_model!r})")
    tensors = _weights_of(extractor)
    if not tensors:
        msg = "The origin of the weights cannot be verified: no torch module is visible."
        raise UnverifiedError(msg)
    filled = {
        id(getattr(module, weight_name, None)) for module, weight_name in reports.filled_weights
    }
    unreported = {name: tensor for name, tensor in tensors.items() if id(tensor) not in filled}
    if unreported:
        return _compare_with_files(subject, tensors, unreported)
    class_names = first_and_more(sorted(set(reports.loaded_classes)))
    return f"Loading {class_names} reported no missing weight and no unused one."


def own_code(subject: Subject) -> str:
    """Check that the Auto classes of transformers did not ignore a checkpoint's own code."""
    shared_reports = subject.shared.get(_SHARED_KEY)
    reports = (
        shared_reports
        if isinstance(shared_reports, LoadReports)
        else _reload_with_reports(subject)[1]
    )
    if reports.ignored_checkpoints:
        msg = (
            f"{first_and_more(reports.ignored_checkpoints)} has code of its own, but the library's "
            "class was loaded, as trust_remote_code is not given: read that code and pass "
            "trust_remote_code=True, or trust_remote_code=False if the library's class is meant"
        )
        raise BrokenError(msg, f"{subject.spec}(name_model={subject.name_model!r})")
    if not reports.is_code_visible:
        msg = (
            "This version of transformers does not show whether it ignores a checkpoint's own "
            "code: install transformers 5"
        )
        raise UnverifiedError(msg)
    return "No checkpoint's own code for an Auto class of transformers is ignored."


def _reload_with_reports(subject: Subject) -> tuple[Any, LoadReports]:
    """Return the extractor, built a second time, and the reports about it.

    The copy of the reports in `subject.shared` holds no weights, to save memory.
    """
    _ = subject.loaded  # what it imports is imported by now, and can be watched
    is_builtin = subject.spec.removeprefix("builtin:") == "huggingface"
    reports = LoadReports(*allowed_keys(subject.options if is_builtin else {}))
    with contextlib.ExitStack() as stack:
        if torch := sys.modules.get("torch"):
            stack.enter_context(
                _replaced(torch.nn.Module, "load_state_dict", reports, _reports_of_torch)
            )
        if modeling_utils := sys.modules.get("transformers.modeling_utils"):
            # Before version 5 there is no such report: weights are then compared with the files.
            stack.enter_context(
                _replaced(modeling_utils, _REPORT_FUNCTION, reports, _reports_of_transformers)
            )
        resolving_modules = [
            module
            for name, module in list(sys.modules.items())
            if name.startswith("transformers.") and _CODE_FUNCTION in vars(module)
        ]
        reports.is_code_visible = bool(resolving_modules) or "transformers" not in sys.modules
        for module in resolving_modules:
            stack.enter_context(_replaced(module, _CODE_FUNCTION, reports, _reports_of_code))
        extractor = subject.load().extractor
    subject.shared[_SHARED_KEY] = dataclasses.replace(reports, filled_weights=[])
    return extractor, reports


@contextlib.contextmanager
def _replaced(
    owner: Any, function_name: str, reports: LoadReports, watch: Callable[[Any, LoadReports], Any]
) -> Iterator[None]:
    """Replace a function of a module or class, if it exists, by `watch(function, reports)`."""
    original = getattr(owner, function_name, None)
    if original is None:
        yield
        return
    setattr(owner, function_name, watch(original, reports))
    try:
        yield
    finally:
        setattr(owner, function_name, original)


def _reports_of_torch(original: Any, reports: LoadReports) -> Any:
    """Return a function that calls torch's and records which weights were missing or unused."""

    def load_state_dict(module: Any, *args: Any, **keywords: Any) -> Any:
        report = original(module, *args, **keywords)
        reports.note(module, report.missing_keys, report.unexpected_keys)
        return report

    return load_state_dict


def _reports_of_transformers(original: Any, reports: LoadReports) -> Any:
    """Return a function that calls that of transformers and records what it reports."""

    def report(*args: Any, **keywords: Any) -> None:
        info, model = keywords["loading_info"], keywords["model"]
        reshaped_keys = {key for key, *_ in info.mismatched_keys}
        missing_keys = [
            *without_tied(model, info.missing_keys),
            *sorted(reshaped_keys - info.missing_keys),
        ]
        reports.note(model, missing_keys, sorted(info.unexpected_keys))
        original(*args, **keywords)

    return report


def _reports_of_code(original: Any, reports: LoadReports) -> Any:
    """Return a function that calls that of transformers and records ignored checkpoints."""

    def resolve(
        trusted: Any, name: Any, has_local: Any, has_remote: Any, *args: Any, **keywords: Any
    ) -> Any:
        if trusted is None and has_local and has_remote:
            reports.ignored_checkpoints.append(f"{name}")
        return original(trusted, name, has_local, has_remote, *args, **keywords)

    return resolve


def _weights_of(extractor: object) -> dict[str, Any]:
    """Return the floating-point weights of all visible torch modules, by name."""
    return {
        f"{root}.{name}": tensor
        for root, module in torch_modules(extractor)
        for name, tensor in module.state_dict(keep_vars=True).items()
        if getattr(tensor, "is_floating_point", bool)()
    }


def _compare_with_files(
    subject: Subject, weights: dict[str, Any], unreported: dict[str, Any]
) -> str:
    """Compare the weights that no load was reported to have filled with the tensors of the files.

    Return a sentence if all are found. Raise BrokenError for other numbers under the same name,
    UnverifiedError if a weight or a tensor has no counterpart.
    """
    files = _weight_files(subject)
    stored_tensors = {
        name: tensor for file in files for name, tensor in _tensors_of_file(file).items()
    }
    source_names = {
        name: _equal_tensors(weight, stored_tensors) for name, weight in weights.items()
    }
    lacking_names = [
        name for name in keys_not_allowed(unreported, ALLOWED_MISSING) if not source_names[name]
    ]
    differing = [
        name for name in lacking_names if _has_namesake(name, unreported[name], stored_tensors)
    ]
    origin = first_and_more(list(dict.fromkeys(file.name for file in files)))
    origin_text = f"{origin} has no such numbers" if origin else "no file of weights was opened"
    if differing:
        msg = (
            f"{len(differing)} weights have other numbers than the tensors of {origin} with the "
            "same "
            f"names ({first_and_more(differing)}): fill all of them, as "
            "load_state_dict(tensors, strict=True) does"
        )
        raise BrokenError(msg, f"{subject.spec}(name_model={subject.name_model!r})")
    if lacking_names:
        msg = (
            f"The origin of {len(lacking_names)} of {len(weights)} weights cannot be verified "
            f"({first_and_more(lacking_names)}): no load reports them, and {origin_text}; load "
            "them with load_state_dict(tensors, strict=True)"
        )
        raise UnverifiedError(msg)
    used_names = {name for names in source_names.values() for name in names}
    if unused_names := keys_not_allowed(set(stored_tensors) - used_names, ALLOWED_UNUSED):
        msg = (
            f"Weights are filled by hand, each with numbers of {origin}; whether its "
            f"{len(unused_names)} other tensors are needed cannot be verified "
            f"({first_and_more(unused_names)}): load them with load_state_dict(tensors, "
            "strict=True)"
        )
        raise UnverifiedError(msg)
    return f"Each weight has the numbers of a tensor of {origin}, and every tensor is used."


def _weight_files(subject: Subject) -> list[Path]:
    """Return the weight files at paths in the command, and those that Python has opened."""
    endings = (*SAFETENSORS_ENDINGS, *PICKLE_ENDINGS)
    weight_files = [
        file
        for path in named_paths(subject)
        for file in (sorted(path.iterdir()) if path.is_dir() else [path])
    ]
    files = dict.fromkeys(file.resolve() for file in (*weight_files, *map(Path, WATCH.opened)))
    return [file for file in files if file.suffix in endings and file.is_file()]


def _tensors_of_file(file: Path) -> dict[str, Any]:
    """Return the floating-point tensors of a file by name; none if it cannot be read."""
    from reference_harness.extractors.tensors import read_tensors  # torch, loaded by now

    for key in _TENSOR_KEYS:
        with contextlib.suppress(ExtractorError):
            tensors = read_tensors(file, key)
            return {name: tensor for name, tensor in tensors.items() if tensor.is_floating_point()}
    return {}


def _equal_tensors(weight: Any, tensors: dict[str, Any]) -> list[str]:
    """Return the names of the tensors that equal a weight, as they are or transposed."""
    cpu_weight = weight.detach().cpu()
    return [
        name
        for name, tensor in tensors.items()
        for oriented in _orientations(tensor)
        if oriented.shape == cpu_weight.shape
        and bool((oriented.to(cpu_weight.dtype) == cpu_weight).all())
    ]


def _orientations(tensor: Any) -> Iterable[Any]:
    """Return a tensor and, if it is a matrix, its transpose."""
    return (tensor, tensor.T) if len(tensor.shape) == len("ij") else (tensor,)


def _has_namesake(name: str, weight: Any, tensors: dict[str, Any]) -> bool:
    """Whether a tensor of the same shape has the weight's name or an ending of its dotted name."""
    return any(
        tensor.shape == weight.shape and f".{name}".endswith(f".{tensor_name}")
        for tensor_name, tensor in tensors.items()
    )
