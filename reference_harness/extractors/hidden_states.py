"""Find the hidden states in the output of a model's forward."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from .base import ExtractorError
from .forward_arguments import ForwardArguments

_STATE_DIMENSIONS = 3
"""Dimensions of hidden states: sequences, tokens, columns."""
_LISTED_MODULES_MAX = 3
"""Maximum number of modules that a message lists."""
_ALL_STATES = {"output_hidden_states": True}
"""Argument of forward with which a model of transformers returns the states of all layers."""


class HiddenStates:
    """Wraps a model: a call returns the hidden states from the declared part of its output."""

    def __init__(self, model: Any, inputs: ForwardArguments, output: str, layer: str) -> None:
        """Raise ExtractorError if the declared module does not exist."""
        self._model, self._inputs = model, inputs
        self._output_form, _, self._module_or_item = output.partition(":")
        self._layer = None if layer == "last" else int(layer)
        if self._layer is not None:
            self._output_form = "hidden_states"
        if self._output_form == "module" and self._module_or_item not in dict(
            model.named_modules()
        ):
            msg = (
                f"output is {output!r}, but {self._model_name} has no such module; "
                f"{self._module_advice()}"
            )
            raise ExtractorError(msg)

    @property
    def _model_name(self) -> str:
        """Name of the model's class, for messages."""
        return type(self._model).__name__

    def __call__(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return the hidden states (b, t, d) for ids and mask (b, t).

        Raise ExtractorError if the declared part of the output has none.
        """
        states = self._read_output(self._inputs.keyword_arguments(ids, mask))
        shape = tuple(states.shape) if isinstance(states, Tensor) else type(states).__name__
        if not (
            isinstance(states, Tensor)
            and states.is_floating_point()
            and states.ndim == _STATE_DIMENSIONS
            and len(states) == len(ids)
        ):
            msg = (
                f"output {self._declared_output()} of {self._model_name} is {shape}, expected "
                f"numbers of shape ({len(ids)}, tokens, width): declare another output"
            )
            raise ExtractorError(msg)
        return states

    def _declared_output(self) -> str:
        """Return the declared part of the output, for messages."""
        return (
            f"{self._output_form}:{self._module_or_item}"
            if self._module_or_item
            else self._output_form
        )

    def _read_output(self, arguments: dict[str, Any]) -> Any:
        """Run the model and return the part of its output that `output` declares."""
        if self._output_form == "module":
            return self._module_output(arguments)
        if self._output_form == "item":
            return self._item(self._model(**arguments))
        if self._output_form == "hidden_states":
            return self._hidden_states(arguments)
        output = self._model(**arguments)
        states = getattr(output, "last_hidden_state", None)
        if states is None and self._output_form == "auto" and self._returns_all_states(output):
            # Only the first call comes here: later ones request the list at once.
            self._output_form = "hidden_states"
            return self._hidden_states(arguments)
        if states is None:
            msg = (
                f"{self._model_name} returns no last_hidden_state but {_output_text(output)}; "
                f"{self._output_advice(output)}"
            )
            raise ExtractorError(msg)
        return states

    def _returns_all_states(self, output: object) -> bool:
        """Whether the model can return all hidden states."""
        return isinstance(output, Mapping) and self._inputs.takes("output_hidden_states")

    def _hidden_states(self, arguments: dict[str, Any]) -> Tensor:
        """Run the model and return the hidden states of the declared layer."""
        if not self._inputs.takes("output_hidden_states"):
            msg = (
                f"forward of {self._model_name} takes no output_hidden_states, so no layer can be "
                f"chosen; {self._module_advice()}"
            )
            raise ExtractorError(msg)
        output = self._model(**arguments, **_ALL_STATES)
        states = getattr(output, "hidden_states", None)
        if not isinstance(states, list | tuple) or not states:
            states_text = "a tensor" if isinstance(states, Tensor) else repr(states)
            msg = (
                f"hidden_states of {self._model_name} is {states_text}, expected a list of "
                f"layers: the model returns {_output_text(output)}; {self._output_advice(output)}"
            )
            raise ExtractorError(msg)
        index = -1 if self._layer is None else self._layer
        if not -len(states) <= index < len(states):
            msg = (
                f"layer is {index}, expected last or a number from {-len(states)} to "
                f"{len(states) - 1}: declare another layer"
            )
            raise ExtractorError(msg)
        layer: Tensor = states[index]
        return layer

    def _item(self, output: Any) -> object:
        """Return the declared item of an output. Raise ExtractorError if it does not exist."""
        items = _output_items(output)
        item_index = int(self._module_or_item)
        if item_index >= len(items):
            msg = (
                f"output is item:{item_index}, but {self._model_name} returns "
                f"{_output_text(output)}: declare an item from 0 to {len(items) - 1}"
            )
            raise ExtractorError(msg)
        return items[item_index][1]

    def _module_output(self, arguments: dict[str, Any]) -> object:
        """Run the model and return the output of one of its modules."""
        outputs: list[object] = []
        module = self._model.get_submodule(self._module_or_item)
        hook = module.register_forward_hook(
            lambda _module, _arguments, output: outputs.append(output)
        )
        try:
            self._model(**arguments)
        finally:
            hook.remove()
        if len(outputs) != 1:
            msg = (
                f"output is module:{self._module_or_item}, which ran {len(outputs)} times in a "
                f"call of {self._model_name}, expected once; {self._module_advice()}"
            )
            raise ExtractorError(msg)
        return outputs[0][0] if isinstance(outputs[0], list | tuple) else outputs[0]

    def _output_advice(self, output: Any) -> str:
        """Return advice to declare an item of the output that has the shape of hidden states."""
        item_options = [
            f"output=item:{i}"
            for i, (_, value) in enumerate(_output_items(output))
            if isinstance(value, Tensor) and value.ndim == _STATE_DIMENSIONS
        ]
        item_advice = (
            f"declare {' or '.join(item_options)} if that is the hidden states; "
            if item_options
            else ""
        )
        return f"{item_advice}{self._module_advice()}"

    def _module_advice(self) -> str:
        """Return advice to declare a module, with names of the last norms or modules."""
        norm_names = [
            n for n, m in self._model.named_modules() if "norm" in type(m).__name__.lower()
        ]
        listed_modules = (
            norm_names[-_LISTED_MODULES_MAX:]
            or [n for n, _ in self._model.named_children()][-_LISTED_MODULES_MAX:]
        )
        return f"declare output=module:NAME to read a module, such as {', '.join(listed_modules)}"


def _output_items(output: Any) -> list[tuple[str, Any]]:
    """Return (name, value) of each item of an output; `item:N` is the one with index N."""
    if isinstance(output, Mapping):
        return [(name, value) for name, value in output.items() if value is not None]
    members = output if isinstance(output, list | tuple) else (output,)
    return [(str(number), value) for number, value in enumerate(members)]


def _output_text(output: Any) -> str:
    """Return the type of a call's result, and the names and shapes of its items, as text."""
    item_texts = [
        f"{name} {tuple(value.shape) if isinstance(value, torch.Tensor) else type(value).__name__}"
        for name, value in _output_items(output)
    ]
    return f"{type(output).__name__} of {', '.join(item_texts)}"
