"""Compares the declared layer, pooling and dtype with what the modules were seen to compute."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from reference_harness.extractors.base import UNDECLARED
from reference_harness.reach import difference

from .hooks import ModuleStates, Recorder
from .probes import many_sequences, random_letters
from .result import TOLERANCES, BrokenError, UnverifiedError
from .subject import Subject, call

LETTERS = 60
"""Letters of a sequence tried: ten tokens even where a token holds six, so that the mean is far
from any one token."""
SEQUENCES = 3
"""Sequences that must all agree before a layer and a pooling count as found."""
CLOSE_DISTANCES = 4.0
"""Distances, in units of the smallest, that still count as the same: rounding of the pooling."""
SIGNIFICANDS_MIN = 64
"""Distinct significands in the embeddings before they are compared with a half-precision grid:
bfloat16 has 128, and counts or one-hot features of short sequences have fewer than twenty."""

POOLINGS = {"mean": "mean", "average": "mean", "avg": "mean", "cls": "cls", "first": "cls",
            "last": "last", "max": "max"}  # fmt: skip
"""Declared words that can be compared; any other word is only reported."""

_HALVES = ("bfloat16", "float16")


@dataclass(frozen=True)
class _Match:
    """Hidden states of a module, pooled in one way, and their distance from the embeddings."""

    path: str
    pooling: str
    layer: int | None
    """Index among the hidden states, 0 for the embedding layer; None when unknown."""
    distance: float


def layer_and_pooling(subject: Subject) -> tuple[str, float | None]:
    """Check that pooling the hidden states of the declared layer gives the embeddings.

    Where none does, nothing is verified: hidden states may be invisible to hooks, or pooled in
    another way. Nor is what was not declared, or in words that no layer or pooling is known by.
    """
    declared = subject.loaded.description["embedding"]
    matches, blocks = _matches(subject)
    tolerance = TOLERANCES["float32" if declared["dtype"] == UNDECLARED else declared["dtype"]]
    best = min((m.distance for m in matches), default=np.inf)
    if best > tolerance:
        msg = (
            "Layer and pooling cannot be verified: no module's hidden states match the embeddings."
        )
        raise UnverifiedError(msg)
    near = [m for m in matches if m.distance <= max(TOLERANCES["float32"], CLOSE_DISTANCES * best)]
    layer = _index(declared["layer"], blocks)
    pooling = POOLINGS.get(declared["pooling"].lower())
    agreeing = [
        m
        for m in near
        if pooling in (None, m.pooling) and (layer is None or m.layer in (None, layer))
    ]
    shown = min(agreeing or near, key=lambda m: (m.layer is None, m.distance))
    named = [m for m in agreeing if _is_named(declared["layer"], m.path)]
    shown = min(named, key=lambda m: m.distance, default=shown)
    is_layer = bool(named) or None not in (layer, shown.layer)
    if agreeing and is_layer and pooling is not None:
        return f"Embeddings are {_description(shown, blocks)}, as declared.", shown.distance
    if agreeing:
        unclear = [f"layer {declared['layer']!r}"] if not is_layer else []
        unclear += [f"pooling {declared['pooling']!r}"] if pooling is None else []
        msg = (
            f"Embeddings are {_description(shown, blocks)}; the declared {' and '.join(unclear)} "
            "cannot be compared with that."
        )
        raise UnverifiedError(msg, shown.distance)
    msg = f"it declares layer {declared['layer']!r} and pooling {declared['pooling']!r}, and its "
    msg += (
        f"embeddings are {_description(shown, blocks)}: declare what is computed, or compute what "
        "is declared"
    )
    raise BrokenError(msg, call([_sequence(subject, 0)], 1))


def _is_named(declared: str, path: str) -> bool:
    """Whether a layer that is declared as `module:NAME` is the module at this place."""
    kind, colon, name = declared.partition(":")
    return bool(colon) and kind == "module" and f"{path}.".endswith(f".{name}.")


def computed_dtype(subject: Subject) -> str:
    """Check that the model computes in the declared dtype, by its modules and by the embeddings."""
    declared = subject.loaded.description["embedding"]["dtype"]
    sequence = _sequence(subject, 0)
    with Recorder(subject.extractor, 0) as recorder:
        subject.embed([sequence], 1)
    rows = subject.embed(many_sequences())
    grid = _half_type(rows)
    seen = recorder.computed.most_common()
    where = ", ".join(f"{count} in {name}" for name, count in seen)
    if declared == UNDECLARED:
        seen_text = f"outputs of its layers: {where}" if seen else "no layer is visible"
        msg = f"It declares no dtype ({seen_text})."
        raise UnverifiedError(msg)
    if seen and seen[0][0] != declared:
        msg = (
            f"it declares dtype {declared!r}, and most layers compute in {seen[0][0]} (outputs: "
            f"{where}): declare {seen[0][0]!r}, or load the model in {declared} without autocast"
        )
        raise BrokenError(msg, call([sequence], 1))
    if grid and declared not in _HALVES:
        msg = (
            f"it declares dtype {declared!r}, and every number of {len(rows)} embeddings is a "
            f"{grid} number: declare {grid!r}, or do not round the embeddings"
        )
        raise BrokenError(msg, call(many_sequences()[:1], 1))
    if seen:
        return f"Its layers compute in {declared}, as declared (outputs: {where})."
    msg = f"Whether it computes in {declared} cannot be verified: no layer is visible."
    if declared not in _HALVES:
        msg += f" Its embeddings are not rounded to fewer digits than {declared} has."
    raise UnverifiedError(msg)


def _sequence(subject: Subject, salt: int) -> str:
    """Return a sequence that the extractor takes whole."""
    declared = subject.loaded.description["embedding"]
    limit = declared["max_length"]
    refuses = declared["truncation"] == "none" and isinstance(limit, int)
    return random_letters(min(LETTERS, max(1, limit - 3)) if refuses else LETTERS, salt)


def _matches(subject: Subject) -> tuple[list[_Match], int | None]:
    """Return each place and pooling with its distance, and the number of blocks."""
    width = subject.embed([_sequence(subject, 0)], 1).shape[1]
    worst: dict[tuple[str, str], list[float]] = {}
    recorder = Recorder(subject.extractor, width)
    for salt in range(SEQUENCES):
        recorder = Recorder(subject.extractor, width)
        with recorder:
            row = subject.embed([_sequence(subject, salt)], 1)[0]
        for path, state in recorder.states.items():
            for variant, distance in _distances(state, row):
                worst.setdefault((path, variant.partition(" ")[0]), [])
                distances = worst[path, variant.partition(" ")[0]]
                if len(distances) <= salt:
                    distances.append(distance)
                else:
                    distances[salt] = min(distances[salt], distance)
    layers, blocks = _layers(recorder)
    return [
        _Match(path, pooling, layers.get(path), max(distances))
        for (path, pooling), distances in worst.items()
        if len(distances) == SEQUENCES
    ], blocks


def _distances(state: ModuleStates, row: np.ndarray) -> Iterator[tuple[str, float]]:
    """Yield variant and distance, for each piece of a state and for the mean of all."""
    for piece in state.pieces:
        for variant, vector in piece.items():
            yield variant, difference(row, vector)
    if len(state.pieces) > 1:
        for variant in state.pieces[0]:
            vectors = [piece[variant] for piece in state.pieces if variant in piece]
            yield variant, difference(row, np.mean(vectors, axis=0))


def _layers(recorder: Recorder) -> tuple[dict[str, int | None], int | None]:
    """Return the index of each place among the hidden states, and the number of blocks.

    Blocks are the children of the outermost list of modules of one class that all gave hidden
    states. A place that was used more than the others, as a block that shares its weights, has no
    index of its own.
    """
    listed = {
        path: int(path.rpartition("[")[2][:-1]) for path in recorder.states if path[-1] == "]"
    }
    container = _container(recorder)
    if container is None:
        return dict(listed), max(listed.values(), default=None)
    blocks = [f"{container}.{name}" for name, _ in recorder.modules[container].named_children()]
    first, last = recorder.states[blocks[0]].order, recorder.states[blocks[-1]].order
    uses = min(len(state.pieces) for state in recorder.states.values())
    layers: dict[str, int | None] = {}
    for path, state in recorder.states.items():
        inside = next((i for i, b in enumerate(blocks) if f"{path}.".startswith(f"{b}.")), None)
        if path in listed:
            layers[path] = listed[path]
        elif len(state.pieces) > uses:
            layers[path] = None
        elif inside is not None:
            layers[path] = inside + 1
        elif state.order < first:
            layers[path] = 0
        else:
            layers[path] = len(blocks) if state.order > last else None
    return layers, len(blocks)


def _container(recorder: Recorder) -> str | None:
    """Return the path of the outermost list of blocks, the longest of several; None without."""
    containers: list[tuple[int, int, str]] = []
    for path, module in recorder.modules.items():
        children = dict(module.named_children())
        alike = len({type(child) for child in children.values()}) == 1
        recorded = all(f"{path}.{name}" in recorder.states for name in children)
        if len(children) > 1 and alike and recorded and _is_list(module):
            containers.append((path.count("."), -len(children), path))
    return min(containers, default=(0, 0, None))[2]


def _is_list(module: Any) -> bool:
    return type(module).__name__ in {"ModuleList", "Sequential"}


def _index(declared: str, blocks: int | None) -> int | None:
    """Return the declared layer as an index among the hidden states; None if that is unknown."""
    if blocks is None:
        return None
    if declared == "last":
        return blocks
    try:
        index = int(declared)
    except ValueError:
        return None
    return index if index >= 0 else blocks + 1 + index


def _description(match: _Match, blocks: int | None) -> str:
    pooling = {"cls": "the first token", "last": "the last token"}.get(
        match.pooling, f"the {match.pooling} over the tokens"
    )
    if match.layer is None:
        return f"{pooling} ({match.pooling!r}) of the output of {match.path}"
    which = "last" if match.layer == blocks else str(match.layer)
    return f"{pooling} ({match.pooling!r}) of layer {which!r} of {blocks} (output of {match.path})"


def _half_type(rows: np.ndarray) -> str:
    """Return the half-precision type that holds all numbers of the embeddings, or ""."""
    values = rows[np.isfinite(rows) & (rows != 0)].astype(np.float64)
    if len(np.unique(np.frexp(np.abs(values))[0])) < SIGNIFICANDS_MIN:
        return ""
    single = values.astype(np.float32)
    if not np.array_equal(single, values):
        return ""
    with np.errstate(over="ignore"):
        if not (single.view(np.uint32) & 0xFFFF).any():
            return "bfloat16"
        return "float16" if np.array_equal(single.astype(np.float16), single) else ""
