"""Compare the declared layer, pooling and dtype with what the modules compute."""

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from reference_harness.embedding.letters_read import relative_distance
from reference_harness.extractors.base import UNDECLARED

from .hooks import ModuleStates, Recorder
from .result import TOLERANCES, BrokenError, UnverifiedError
from .sequences import many_sequences, random_letters
from .subject import Subject, call_code

SEQUENCE_LETTERS = 60
"""Length of the sequences: ten tokens of six letters, so that the mean differs from every single
token."""
SEQUENCE_COUNT = 3
"""Number of sequences that must all agree with a layer and a pooling."""
CLOSE_FACTOR = 4.0
"""A distance of up to this factor times the smallest counts as equal to it, because of rounding."""
SIGNIFICANDS_MIN = 64
"""Minimum number of distinct significands for a test whether embeddings are half-precision:
bfloat16 has 128, and counts or one-hot features of short sequences have fewer than twenty."""

POOLINGS = {"mean": "mean", "average": "mean", "avg": "mean", "cls": "cls", "first": "cls",
            "last": "last", "max": "max"}  # fmt: skip
"""The pooling that each declared word means; a declaration in other words cannot be verified."""

_HALF_TYPES = ("bfloat16", "float16")
"""Names of the half-precision types."""
SUM_TOLERANCE = 1e-4
"""Largest tolerance for which sums of two poolings are searched: with a larger one, a sum could not
be distinguished from one pooling of fewer tokens."""
COEFFICIENT_MIN = 0.01
"""Smallest coefficient of a pooling in a sum; smaller ones are rounding."""
SUMMED_POOLINGS = ("mean", "cls", "last", "mean 1:-1")
"""Poolings that are searched in sums over two modules."""
SUMMED_MODULES_MAX = 100
"""Maximum number of modules, the last ones, whose sums of two are tried: 5,000 pairs."""


@dataclass(frozen=True)
class _PoolingMatch:
    """A module and a pooling, whose result is compared with the embeddings."""

    path: str
    """Dotted name of the module."""
    pooling: str
    """Name of the pooling."""
    layer: int | None
    """Index among the hidden states, 0 for the embedding layer; None if unknown."""
    distance: float
    """Distance of the pooled hidden states from the embeddings."""


def layer_and_pooling(subject: Subject) -> tuple[str, float | None]:
    """Check that pooling the hidden states of the declared layer gives the embeddings.

    A constant factor is allowed. Raise BrokenError for another layer or pooling, also for a sum of
    two poolings of one module, or of one pooling of two modules. Raise UnverifiedError if layer or
    pooling is undeclared or in unknown words, or if nothing fits: hooks may not see the hidden
    states, or they are pooled in another way.
    """
    declared = subject.loaded.description["embedding"]
    calls = _recorded_calls(subject)
    layers, block_count = _layer_by_module(calls[-1].recorder)
    tolerance = TOLERANCES["float32" if declared["dtype"] == UNDECLARED else declared["dtype"]]
    factor = ""
    matches = _matches(calls, layers, relative_distance)
    smallest_distance = min((m.distance for m in matches), default=np.inf)
    if smallest_distance > tolerance:
        matches = _matches(calls, layers, _scaled_distance)
        smallest_distance, factor = (
            min((m.distance for m in matches), default=np.inf),
            ", up to a factor",
        )
    if smallest_distance > tolerance:
        _refuse_sum(
            calls, declared["pooling"], tolerance, call_code([_short_sequence(subject, 0)], 1)
        )
        msg = (
            "Layer and pooling cannot be verified: no module's hidden states match the embeddings."
        )
        raise UnverifiedError(msg)
    close_matches = [
        m
        for m in matches
        if m.distance <= max(TOLERANCES["float32"], CLOSE_FACTOR * smallest_distance)
    ]
    layer = _layer_index(declared["layer"], block_count)
    pooling = POOLINGS.get(declared["pooling"].lower())
    agreeing_matches = [
        m
        for m in close_matches
        if pooling in (None, m.pooling) and (layer is None or m.layer in (None, layer))
    ]
    best_match = min(agreeing_matches or close_matches, key=lambda m: (m.layer is None, m.distance))
    layer_matches = [m for m in agreeing_matches if _is_named(declared["layer"], m.path)]
    best_match = min(layer_matches, key=lambda m: m.distance, default=best_match)
    is_layer_known = bool(layer_matches) or None not in (layer, best_match.layer)
    if agreeing_matches and is_layer_known and pooling is not None:
        sentence = f"Embeddings are {_description(best_match, block_count)}, as declared{factor}."
        return sentence, best_match.distance
    if agreeing_matches:
        unclear_declarations = [f"layer {declared['layer']!r}"] if not is_layer_known else []
        unclear_declarations += [f"pooling {declared['pooling']!r}"] if pooling is None else []
        msg = (
            f"Embeddings are {_description(best_match, block_count)}; the declared "
            f"{' and '.join(unclear_declarations)} cannot be compared with this description."
        )
        raise UnverifiedError(msg, best_match.distance)
    msg = (
        f"the extractor declares layer {declared['layer']!r} and pooling {declared['pooling']!r}, "
        f"but its embeddings are {_description(best_match, block_count)}: declare what is "
        "computed, or compute what is declared"
    )
    raise BrokenError(msg, call_code([_short_sequence(subject, 0)], 1))


def _is_named(declared: str, path: str) -> bool:
    """Whether a layer declared as `module:NAME` is the module at this path."""
    form, colon, module_name = declared.partition(":")
    return bool(colon) and form == "module" and f"{path}.".endswith(f".{module_name}.")


def computed_dtype(subject: Subject) -> str:
    """Check that the model computes in the declared dtype, by its modules and its embeddings."""
    declared = subject.loaded.description["embedding"]["dtype"]
    sequence = _short_sequence(subject, 0)
    with Recorder(subject.extractor, 0) as recorder:
        subject.embed([sequence], 1)
    embeddings = subject.embed(many_sequences())
    half_type = _half_type(embeddings)
    computed_counts = recorder.dtype_counts.most_common()
    module_counts = ", ".join(f"{count} in {name}" for name, count in computed_counts)
    if declared == UNDECLARED:
        outputs_text = (
            f"outputs of its layers: {module_counts}" if computed_counts else "no layer is visible"
        )
        msg = f"The extractor declares no dtype ({outputs_text})."
        raise UnverifiedError(msg)
    if computed_counts and (most_frequent := computed_counts[0][0]) != declared:
        msg = (
            f"the extractor declares dtype {declared!r}, but most layers compute in "
            f"{most_frequent} (outputs: {module_counts}): declare {most_frequent!r}, or load the "
            f"model in {declared} without autocast"
        )
        raise BrokenError(msg, call_code([sequence], 1))
    if half_type and declared not in _HALF_TYPES:
        msg = (
            f"the extractor declares dtype {declared!r}, but all numbers of {len(embeddings)} "
            f"embeddings are {half_type} values: declare {half_type!r}, or do not round the "
            "embeddings"
        )
        raise BrokenError(msg, call_code(many_sequences()[:1], 1))
    if computed_counts:
        return f"Its layers compute in {declared}, as declared (outputs: {module_counts})."
    msg = f"Whether the extractor computes in {declared} cannot be verified: no layer is visible."
    if declared not in _HALF_TYPES:
        msg += f" Its embeddings are not rounded to fewer digits than {declared} has."
    raise UnverifiedError(msg)


def _short_sequence(subject: Subject, salt: int) -> str:
    """Return a sequence short enough for the extractor."""
    declared = subject.loaded.description["embedding"]
    limit = declared["max_length"]
    refuses_long_input = declared["truncation"] == "none" and isinstance(limit, int)
    return random_letters(
        min(SEQUENCE_LETTERS, max(1, limit - 3)) if refuses_long_input else SEQUENCE_LETTERS, salt
    )


@dataclass(frozen=True)
class _RecordedCall:
    """One call of the extractor: the recorded hidden states, and the embedding."""

    recorder: Recorder
    """The recorded hidden states of all modules."""
    row: np.ndarray
    """The embedding, (d,)."""


def _recorded_calls(subject: Subject) -> list[_RecordedCall]:
    """Return one call for each of `SEQUENCE_COUNT` sequences, with hooks on every module."""
    width = subject.embed([_short_sequence(subject, 0)], 1).shape[1]
    calls = []
    for salt in range(SEQUENCE_COUNT):
        with Recorder(subject.extractor, width) as recorder:
            row = subject.embed([_short_sequence(subject, salt)], 1)[0]
        calls.append(_RecordedCall(recorder, row))
    return calls


_Distance = Callable[[np.ndarray, np.ndarray], float]
"""Function that returns the distance of two vectors."""


def _matches(
    calls: list[_RecordedCall], layers: dict[str, int | None], distance_of: _Distance
) -> list[_PoolingMatch]:
    """Return a match for each module and pooling; its distance is the largest over the calls."""
    distances_by_match: dict[tuple[str, str], list[float]] = {}
    for call_index, layer_call in enumerate(calls):
        for path, module_states in layer_call.recorder.states.items():
            for variant, vector in _pooled_vectors(module_states):
                distance = distance_of(layer_call.row, vector)
                pooling = variant.partition(" ")[0]
                distances = distances_by_match.setdefault((path, pooling), [])
                if len(distances) <= call_index:
                    distances.append(distance)
                else:
                    distances[call_index] = min(distances[call_index], distance)
    return [
        _PoolingMatch(path, pooling, layers.get(path), max(distances))
        for (path, pooling), distances in distances_by_match.items()
        if len(distances) == len(calls)
    ]


def _pooled_vectors(module_states: ModuleStates) -> Iterator[tuple[str, np.ndarray]]:
    """Yield variant and (d,) vector of each pooling: of each sequence, then the means over all."""
    for poolings in module_states.poolings_by_sequence:
        yield from poolings.items()
    if len(module_states.poolings_by_sequence) > 1:
        for variant in module_states.poolings_by_sequence[0]:
            vectors = [
                poolings[variant]
                for poolings in module_states.poolings_by_sequence
                if variant in poolings
            ]
            yield variant, np.mean(vectors, axis=0)


def _scaled_distance(row: np.ndarray, vector: np.ndarray) -> float:
    """Return the distance of two vectors scaled to length 1, ignoring an opposite sign."""
    row_direction, vector_direction = row.astype(np.float64), vector.astype(np.float64)
    lengths = float(np.linalg.norm(row_direction)), float(np.linalg.norm(vector_direction))
    if not all(np.isfinite(lengths)) or 0 in lengths:
        return np.inf
    row_direction, vector_direction = row_direction / lengths[0], vector_direction / lengths[1]
    return float(
        min(
            np.linalg.norm(row_direction - vector_direction),
            np.linalg.norm(row_direction + vector_direction),
        )
    )


def _refuse_sum(calls: list[_RecordedCall], pooling: str, tolerance: float, example: str) -> None:
    """Raise BrokenError if the embeddings are a sum of two poolings, but one is declared."""
    if pooling.lower() not in POOLINGS or tolerance > SUM_TOLERANCE:
        return
    embeddings = np.concatenate([layer_call.row for layer_call in calls]).astype(np.float64)
    vectors = _joined_vectors(calls)
    for first_source, second_source in _pooling_pairs(vectors):
        basis = np.column_stack([vectors[first_source], vectors[second_source]])
        coefficients, *_ = np.linalg.lstsq(basis, embeddings, rcond=None)
        if (
            relative_distance(embeddings, basis @ coefficients) <= tolerance
            and np.abs(coefficients).min() > COEFFICIENT_MIN
        ):
            sum_text = " + ".join(
                f"{coefficient:.2f} x {name} of {path}"
                for coefficient, (path, name) in zip(
                    coefficients, (first_source, second_source), strict=True
                )
            )
            msg = (
                f"the extractor declares pooling {pooling!r} of one layer, but its embeddings are "
                f"{sum_text}: "
                "declare what is computed in your own words, or compute what is declared"
            )
            raise BrokenError(msg, example)


def _joined_vectors(calls: list[_RecordedCall]) -> dict[tuple[str, str], np.ndarray]:
    """Return the joined vectors of all calls, (calls * d,), by module and pooling."""
    vectors_by_source: dict[tuple[str, str], list[np.ndarray]] = {}
    for layer_call in calls:
        for path, module_states in layer_call.recorder.states.items():
            for variant, vector in dict(_pooled_vectors(module_states)).items():
                vectors_by_source.setdefault((path, variant), []).append(vector)
    return {
        name: np.concatenate(vectors).astype(np.float64)
        for name, vectors in vectors_by_source.items()
        if len(vectors) == len(calls)
    }


def _pooling_pairs(
    sources: Iterable[tuple[str, str]],
) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    """Yield pairs of poolings of one module, and of the same pooling of two modules.

    A pooling is given as (path of the module, variant).
    """
    sources_by_path: dict[str, list[tuple[str, str]]] = {}
    sources_by_variant: dict[str, list[tuple[str, str]]] = {}
    for path, variant in sources:
        sources_by_path.setdefault(path, []).append((path, variant))
        if variant in SUMMED_POOLINGS:
            sources_by_variant.setdefault(variant, []).append((path, variant))
    for group in sources_by_path.values():
        yield from itertools.combinations(group, 2)
    for group in sources_by_variant.values():
        yield from itertools.combinations(group[-SUMMED_MODULES_MAX:], 2)


def _layer_by_module(recorder: Recorder) -> tuple[dict[str, int | None], int | None]:
    """Return the layer of each module, by its path, and the number of blocks.

    A layer is an index among the hidden states, 0 for the embedding layer; None if unknown.
    Blocks are the children of the outermost list of modules of one class that all returned hidden
    states. A module that was used more often than others, as with shared weights, has no index.
    """
    listed_layers = {
        path: int(path.rpartition("[")[2][:-1]) for path in recorder.states if path[-1] == "]"
    }
    block_list_path = _block_list_path(recorder)
    if block_list_path is None:
        return dict(listed_layers), max(listed_layers.values(), default=None)
    blocks = [
        f"{block_list_path}.{name}"
        for name, _ in recorder.modules[block_list_path].named_children()
    ]
    first_order, last_order = recorder.states[blocks[0]].order, recorder.states[blocks[-1]].order
    use_count = min(len(state.poolings_by_sequence) for state in recorder.states.values())
    layers: dict[str, int | None] = {}
    for path, module_states in recorder.states.items():
        block_index = next(
            (i for i, block in enumerate(blocks) if f"{path}.".startswith(f"{block}.")), None
        )
        if path in listed_layers:
            layers[path] = listed_layers[path]
        elif len(module_states.poolings_by_sequence) > use_count:
            layers[path] = None
        elif block_index is not None:
            layers[path] = block_index + 1
        elif module_states.order < first_order:
            layers[path] = 0
        else:
            layers[path] = len(blocks) if module_states.order > last_order else None
    return layers, len(blocks)


def _block_list_path(recorder: Recorder) -> str | None:
    """Return the path of the outermost list of blocks, or of the longest one; None without one."""
    block_lists: list[tuple[int, int, str]] = []
    for path, module in recorder.modules.items():
        children = dict(module.named_children())
        has_one_class = len({type(child) for child in children.values()}) == 1
        is_recorded = all(f"{path}.{name}" in recorder.states for name in children)
        is_list = type(module).__name__ in {"ModuleList", "Sequential"}
        if len(children) > 1 and has_one_class and is_recorded and is_list:
            block_lists.append((path.count("."), -len(children), path))
    return min(block_lists, default=(0, 0, None))[2]


def _layer_index(declared: str, block_count: int | None) -> int | None:
    """Return the declared layer as an index among the hidden states; None if unknown."""
    if block_count is None:
        return None
    if declared == "last":
        return block_count
    try:
        index = int(declared)
    except ValueError:
        return None
    return index if index >= 0 else block_count + 1 + index


def _description(match: _PoolingMatch, block_count: int | None) -> str:
    """Return in words which pooling of which layer or module a match is."""
    pooling = {"cls": "the first token", "last": "the last token"}.get(
        match.pooling, f"the {match.pooling} over the tokens"
    )
    if match.layer is None:
        return f"{pooling} ({match.pooling!r}) of the output of {match.path}"
    layer_name = "last" if match.layer == block_count else str(match.layer)
    layer_text = f"layer {layer_name!r} of {block_count} (output of {match.path})"
    return f"{pooling} ({match.pooling!r}) of {layer_text}"


def _half_type(embeddings: np.ndarray) -> str:
    """Return the half-precision type that can represent all numbers of the embeddings, or ""."""
    numbers = embeddings[np.isfinite(embeddings) & (embeddings != 0)].astype(np.float64)
    if len(np.unique(np.frexp(np.abs(numbers))[0])) < SIGNIFICANDS_MIN:
        return ""
    float32_values = numbers.astype(np.float32)
    if not np.array_equal(float32_values, numbers):
        return ""
    with np.errstate(over="ignore"):
        if not (float32_values.view(np.uint32) & 0xFFFF).any():
            return "bfloat16"
        return (
            "float16" if np.array_equal(float32_values.astype(np.float16), float32_values) else ""
        )
