"""Hooks of torch modules that record pooled hidden states and the types of outputs.

Hidden states are pooled inside the hook, so that only a few vectors per module are kept.
"""

import contextlib
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

DEPTH_MAX = 3
"""Depth of attributes that are searched for modules: `extractor.wrapper.inner.model` is the deepest
in published extractors."""
ITEMS_MAX = 1000
"""Maximum number of items of a container that are searched: lists of modules are short,
vocabularies long."""
SEQUENCES_MAX = 64
"""Maximum number of sequences whose hidden states are kept, per module and call: strands and
windows pass a module several times, and so does a sequence if layers share weights."""

_HIDDEN_DIMS = 3
"""Dimensions of the hidden states of a batch: sequences, tokens, columns."""
_FLAT_DIMS = 2
"""Dimensions of the hidden states of one sequence, and of an attention mask."""
_INNER_MIN = 4
"""Minimum number of tokens of which a pooling without the first and the last is recorded."""


@dataclass
class ModuleStates:
    """The hidden states of one module in one call of the extractor."""

    order: int
    """Index of the module's first output among the outputs of all modules."""
    poolings_by_sequence: list[dict[str, np.ndarray]] = field(default_factory=list)
    """For each sequence that passed the module, such as both strands: (d,) vectors by variant of a
    pooling, such as "mean" or "mean 1:"."""


class Recorder:
    """Context manager that hooks every module of an extractor while it embeds one sequence."""

    def __init__(self, extractor: object, width: int) -> None:
        """Find the torch modules of an extractor whose embeddings have `width` columns."""
        self.states: dict[str, ModuleStates] = {}
        """Hidden states by path of the module."""
        self.dtype_counts: Counter[str] = Counter()
        """Number of outputs by type, such as "bfloat16", of modules with a weight matrix."""
        self.modules: dict[str, Any] = {}
        """Hooked modules by path."""
        self._extractor = extractor
        self._width = width
        self._mask: Any = None
        self._handles: list[Any] = []
        self._order = 0

    def __enter__(self) -> Self:
        """Add hooks to all modules."""
        hooked_ids: set[int] = set()
        for root, module in torch_modules(self._extractor):
            for module_name, submodule in module.named_modules():
                path = f"{root}.{module_name}" if module_name else root
                if id(submodule) in hooked_ids:
                    continue
                hooked_ids.add(id(submodule))
                self.modules[path] = submodule
                # A scripted module may refuse hooks; then it is not seen.
                with contextlib.suppress(Exception):
                    pre_handle = submodule.register_forward_pre_hook(
                        self._keep_mask, with_kwargs=True
                    )
                    self._handles.append(pre_handle)
                    self._handles.append(submodule.register_forward_hook(self._output_hook(path)))
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the hooks."""
        for handle in self._handles:
            handle.remove()

    def _keep_mask(self, module: object, args: object, keywords: dict[str, Any]) -> None:
        """Keep the attention mask with which a module is called, if it is 2-dimensional."""
        del module, args
        mask = keywords.get("attention_mask")
        if getattr(mask, "ndim", None) == _FLAT_DIMS:
            self._mask = mask

    def _output_hook(self, path: str) -> Any:  # a hook of torch
        """Return a hook that records the output of the module at a path."""

        def hook(module: Any, _: object, output: object) -> None:
            # An output of an unknown kind is not a failure of the extractor.
            with contextlib.suppress(Exception):
                self._record_output(path, module, output)

        return hook

    def _record_output(self, path: str, module: Any, output: object) -> None:
        """Record the hidden states of an output, and the type in which the module computed."""
        self._order += 1
        hidden = getattr(output, "hidden_states", None)
        if isinstance(hidden, list | tuple):
            for index, layer_states in enumerate(hidden):
                self._record_states(f"{path}.hidden_states[{index}]", layer_states)
        tensors = list(_output_tensors(output))
        for tensor in tensors:
            if self._record_states(path, tensor):
                break
        has_weights = any(p.ndim > 1 for p in module.parameters(recurse=False))
        first_float = next((t for t in tensors if t.is_floating_point()), None)
        if has_weights and first_float is not None and "Embedding" not in type(module).__name__:
            self.dtype_counts[str(first_float.dtype).removeprefix("torch.")] += 1

    def _record_states(self, path: str, tensor: Any) -> bool:  # a tensor
        """Pool and keep the hidden states in a tensor; return whether the module has any so far."""
        for hidden in _hidden_states(tensor, self._width):
            module_states = self.states.setdefault(path, ModuleStates(self._order))
            if len(module_states.poolings_by_sequence) < SEQUENCES_MAX:
                row = len(module_states.poolings_by_sequence) % max(1, len(tensor))
                module_states.poolings_by_sequence.append(
                    _pooled(self._unmasked_tokens(hidden, tensor, row))
                )
        return path in self.states

    def _unmasked_tokens(self, hidden: Any, tensor: Any, row: int) -> Any:
        """Return the (t, d) tokens that the model's attention mask keeps."""
        mask = self._mask
        if mask is None or tuple(mask.shape) != tuple(tensor.shape[:_FLAT_DIMS]):
            return hidden
        masked = hidden[mask[row].bool()]
        return masked if len(masked) > 1 else hidden


def torch_modules(extractor: object) -> Iterator[tuple[str, Any]]:
    """Yield the name and module of each torch module among an extractor's attributes.

    Those among the global variables of its Python module follow.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        return
    visited: set[int] = set()
    yield from _modules_in(type(extractor).__name__, extractor, torch.nn.Module, visited, 0)
    python_module = sys.modules.get(type(extractor).__module__)
    for global_name, member in list(getattr(python_module, "__dict__", {}).items()):
        if isinstance(member, torch.nn.Module) and id(member) not in visited:
            yield global_name, member


def _modules_in(
    name: str,
    member: Any,
    module_class: type,
    visited: set[int],
    depth: int,
) -> Iterator[tuple[str, Any]]:
    """Yield the name and module of each torch module in `member`, an attribute called `name`."""
    if id(member) in visited or isinstance(member, str | bytes | int | float | type | None):
        return
    visited.add(id(member))
    if isinstance(member, module_class):
        yield name, member
        return
    if isinstance(member, dict | list | tuple):
        members = member.values() if isinstance(member, dict) else member
        for inner, _ in zip(list(members), range(ITEMS_MAX), strict=False):
            yield from _modules_in(name, inner, module_class, visited, depth)
    elif depth < DEPTH_MAX:
        for attribute, inner in list(getattr(member, "__dict__", {}).items()):
            yield from _modules_in(attribute, inner, module_class, visited, depth + 1)


def _output_tensors(output: Any) -> Iterable[Any]:
    """Return the tensors of an output: itself, the items of a tuple, the values of a mapping."""
    if hasattr(output, "is_floating_point"):
        return [output]
    members: Iterable[Any] = ()
    if isinstance(output, dict):
        members = output.values()
    elif isinstance(output, list | tuple):
        members = output
    return [item for item in members if hasattr(item, "is_floating_point")]


def _hidden_states(tensor: Any, width: int) -> Iterable[Any]:
    """Return (t, width) views with t > 1 of a tensor (b, t, d), (b, d, t) or (t, d)."""
    if not hasattr(tensor, "is_floating_point") or not tensor.is_floating_point():
        return []
    shape = tuple(tensor.shape)
    if len(shape) == _HIDDEN_DIMS and shape[2] == width and shape[1] > 1:
        return list(tensor)
    if len(shape) == _HIDDEN_DIMS and shape[1] == width and shape[2] > 1:
        return [hidden.T for hidden in tensor]
    if len(shape) == _FLAT_DIMS and shape[1] == width and shape[0] > 1:
        return [tensor]
    return []


def _pooled(hidden: Any) -> dict[str, np.ndarray]:
    """Return every pooling of (t, d) hidden states, also without the tokens at either end.

    The key of a pooling is its name and, unless all are pooled, the slice of tokens: "mean 1:".
    """
    tokens = hidden.detach().float().cpu().numpy()
    poolings = {"cls": tokens[0], "last": tokens[-1], "last -2": tokens[-2]}
    for token_slice, kept_values in (("", tokens), (" 1:", tokens[1:]), (" :-1", tokens[:-1])):
        poolings[f"mean{token_slice}"] = kept_values.mean(axis=0, dtype=np.float64)
        poolings[f"max{token_slice}"] = kept_values.max(axis=0)
    if len(tokens) >= _INNER_MIN:
        poolings["mean 1:-1"] = tokens[1:-1].mean(axis=0, dtype=np.float64)
        poolings["max 1:-1"] = tokens[1:-1].max(axis=0)
    return poolings
