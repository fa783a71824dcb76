"""Hooks of torch modules: hidden states, pooled at once, and the types computed in.

Every candidate is pooled inside the hook, so that a call keeps a few vectors a module, never the
hidden states themselves.
"""

import contextlib
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

DEPTH_MAX = 3
"""Attributes of attributes searched for modules: `extractor.wrapper.inner.model` is the deepest
place seen in published extractors."""
ITEMS_MAX = 1000
"""Items of one container searched: lists of modules are short, vocabularies are long."""
PIECES_MAX = 64
"""Hidden states of one module kept in one call: strands, windows, or layers that share weights."""

_HIDDEN_DIMS = 3
_FLAT_DIMS = 2


@dataclass
class ModuleStates:
    """The hidden states that one module gave in one call of the extractor."""

    order: int
    """Place of its first output among the outputs of all modules."""
    pieces: list[dict[str, np.ndarray]] = field(default_factory=list)
    """Variant of a pooling ("mean", "mean 1:", ...) to a (d,) vector; one for each sequence that
    went through the module, such as both strands."""


class Recorder:
    """Context manager that hooks every module of an extractor while it embeds one sequence."""

    def __init__(self, extractor: object, width: int) -> None:
        self.states: dict[str, ModuleStates] = {}
        self.computed: Counter[str] = Counter()
        """Output type of the modules that multiply by a matrix, such as "bfloat16", to outputs."""
        self.modules: dict[str, Any] = {}
        self._extractor = extractor
        self._width = width
        self._mask: Any = None
        self._handles: list[Any] = []
        self._order = 0

    def __enter__(self) -> Self:
        hooked: set[int] = set()
        for root, module in torch_modules(self._extractor):
            for name, submodule in module.named_modules():
                path = f"{root}.{name}" if name else root
                if id(submodule) in hooked:
                    continue
                hooked.add(id(submodule))
                self.modules[path] = submodule
                # A scripted module may refuse hooks: it is then as invisible as no module.
                with contextlib.suppress(Exception):
                    before = submodule.register_forward_pre_hook(self._before, with_kwargs=True)
                    self._handles.append(before)
                    self._handles.append(submodule.register_forward_hook(self._after(path)))
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            handle.remove()

    def _before(self, module: object, args: object, keywords: dict[str, Any]) -> None:
        del module, args
        mask = keywords.get("attention_mask")
        if getattr(mask, "ndim", None) == _FLAT_DIMS:
            self._mask = mask

    def _after(self, path: str) -> Any:  # a hook of torch
        def hook(module: Any, _: object, output: object) -> None:
            # An output of an unknown kind is no failure of the extractor.
            with contextlib.suppress(Exception):
                self._note(path, module, output)

        return hook

    def _note(self, path: str, module: Any, output: object) -> None:
        """Keep the hidden states of an output, and the type that a module computed in."""
        self._order += 1
        hidden = getattr(output, "hidden_states", None)
        if isinstance(hidden, list | tuple):
            for index, state in enumerate(hidden):
                self._keep(f"{path}.hidden_states[{index}]", state)
        tensors = list(_tensors(output))
        for tensor in tensors:
            if self._keep(path, tensor):
                break
        has_weights = any(p.ndim > 1 for p in module.parameters(recurse=False))
        first = next((t for t in tensors if t.is_floating_point()), None)
        if has_weights and first is not None and "Embedding" not in type(module).__name__:
            self.computed[str(first.dtype).removeprefix("torch.")] += 1

    def _keep(self, path: str, tensor: Any) -> bool:  # a tensor
        """Pool what may be hidden states of the width; return whether it was such."""
        for hidden in _sequences(tensor, self._width):
            state = self.states.setdefault(path, ModuleStates(self._order))
            if len(state.pieces) < PIECES_MAX:
                row = len(state.pieces) % max(1, len(tensor))
                state.pieces.append(_pooled(self._cut(hidden, tensor, row)))
        return path in self.states

    def _cut(self, hidden: Any, tensor: Any, row: int) -> Any:
        """Return the (t, d) tokens that the model's own mask keeps."""
        mask = self._mask
        if mask is None or tuple(mask.shape) != tuple(tensor.shape[:_FLAT_DIMS]):
            return hidden
        masked = hidden[mask[row].bool()]
        return masked if len(masked) > 1 else hidden


def torch_modules(extractor: object) -> Iterator[tuple[str, Any]]:
    """Yield name and module of what the extractor holds, or its module has as a global name."""
    torch = sys.modules.get("torch")
    if torch is None:
        return
    visited: set[int] = set()
    yield from _inside(type(extractor).__name__, extractor, torch.nn.Module, visited, 0)
    home = sys.modules.get(type(extractor).__module__)
    for name, value in list(getattr(home, "__dict__", {}).items()):
        if isinstance(value, torch.nn.Module) and id(value) not in visited:
            yield name, value


def _inside(
    name: str,
    value: Any,
    kind: type,
    visited: set[int],
    depth: int,
) -> Iterator[tuple[str, Any]]:
    if id(value) in visited or isinstance(value, str | bytes | int | float | type | None):
        return
    visited.add(id(value))
    if isinstance(value, kind):
        yield name, value
        return
    if isinstance(value, dict | list | tuple):
        items = value.values() if isinstance(value, dict) else value
        for item, _ in zip(list(items), range(ITEMS_MAX), strict=False):
            yield from _inside(name, item, kind, visited, depth)
    elif depth < DEPTH_MAX:
        for attribute, item in list(getattr(value, "__dict__", {}).items()):
            yield from _inside(attribute, item, kind, visited, depth + 1)


def _tensors(output: Any) -> Iterable[Any]:
    """Return the tensors of an output: itself, the items of a tuple, the values of a mapping."""
    if hasattr(output, "is_floating_point"):
        return [output]
    items: Iterable[Any] = ()
    if isinstance(output, dict):
        items = output.values()
    elif isinstance(output, list | tuple):
        items = output
    return [item for item in items if hasattr(item, "is_floating_point")]


def _sequences(tensor: Any, width: int) -> Iterable[Any]:
    """Return (t, width) views with t > 1: of (b, t, d), of (b, d, t), or of a flat (t, d)."""
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
    """Return every pooling of (t, d) hidden states, without the special tokens at either end too.

    A variant is named by its pooling and the tokens it takes, as a slice.
    """
    values = hidden.detach().float().cpu().numpy()
    poolings = {"cls": values[0], "last": values[-1], "last -2": values[-2]}
    for tokens, cut in (("", values), (" 1:", values[1:]), (" :-1", values[:-1])):
        poolings[f"mean{tokens}"] = cut.mean(axis=0, dtype=np.float64)
        poolings[f"max{tokens}"] = cut.max(axis=0)
    if len(values) > _HIDDEN_DIMS:
        poolings["mean 1:-1"] = values[1:-1].mean(axis=0, dtype=np.float64)
        poolings["max 1:-1"] = values[1:-1].max(axis=0)
    return poolings
