"""Decoys: added sequences that show if embeddings depend on their order or were looked up.

Order. Some sequences appear twice, at random positions, and a third time in a second, short run in
file order, in other batches. If an embedding depends on the position, the batch or earlier
sequences, these embeddings differ.

Memory. Some real sequences x have two point mutants y and z, which differ from x and from each
other in one letter at one position. An extractor that computes treats all three alike. If it looks
x up in a table of known sequences, the table lacks y and z: x is then far from both, while they are
close to each other. The statistic of a triangle is

q = min(|x - y|, |x - z|) / max(|y - z|, noise)

and an extractor is flagged when q is above `JUMP` in at least `SHARE_MEMORISED` of the triangles.
The three sides are compared within a triangle, so the scale of the embedding, the distances between
a task's sequences and the effect of a single letter on the tokenizer do not matter.

A look-up that tolerates a few changed letters does not distinguish x, y and z, but it has few
answers. An extractor is also flagged if sequences that are far from each other share `ANSWERS_MAX`
embeddings or fewer.

Limits. A table that adds a label's direction to a sound embedding is detected only if that
direction is longer than `JUMP` times the effect of one letter. A tolerant table that also adds
noise to each answer is not detected. Nothing here proves intent: a flag is for a human to judge.
"""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from geneb_ci.audit.compare.outcome import Decoys
from geneb_ci.audit.rerun.honesty import Repeatability, relative_difference, repeatability_of

if TYPE_CHECKING:
    import numpy as np

TWICE = 32
"""Number of real sequences that are added to the list a second time."""
TRIANGLES = 32
"""Number of triangles: real sequences, each with two mutants. If a quarter of all embeddings is
memorised, 32 triangles contain at least four of them with probability 0.97; if half is, nearly
always."""
FRESH = 16
"""Number of added shuffled sequences, which hide how many sequences of the list are real."""
JUMP = 10.0
"""Largest allowed value of q: the distance of a real embedding from those of its two mutants,
divided by the distance between these two. Measured: at most 1.8 on k-mer counts, 1.2 on random
BERT, ESM and GPT-2 (mean and one-token pooling), on four sets, one of them 200 variants of one
sequence. No trained model was measured, hence the margin."""
SHARE_MEMORISED = 0.125
"""Smallest flagged share of triangles above `JUMP`: four of 32, so that one outlier is allowed."""
ANSWERS_MAX = 8
"""Largest number of distinct embeddings, of all sequences of a task together, that shows a table of
labels: more than the classes of any task."""
SEQUENCES_MIN = 64
"""Smallest number of distinct real sequences to which `ANSWERS_MAX` applies."""
NOISE = {
    "float64": 1e-9,
    "float32": 2e-3,
    "float16": 2e-2,
    "bfloat16": 1e-1,
}
"""By dtype of the model, the largest difference that other batches alone may make to an embedding,
relative to its length. A
float32 model on a GPU may multiply in TF32, whose unit roundoff is 4.9e-4; float16 has the same,
bfloat16 3.9e-3; a deep model multiplies that several times over. float64 has 1.1e-16."""

NOISE_SHARE_MIN = 0.1
"""Smallest distance between two mutants in the statistic q, as a share of `NOISE`: three embeddings
that differ by noise alone are then not flagged, and a look-up under bfloat16 still is."""

_NUCLEOTIDES = "ACGT"


@dataclass(frozen=True)
class SequencesWithDecoys:
    """A list of real sequences and decoys, and what the sequence at each position is."""

    sequences: list[str]
    """All sequences in the order in which they are embedded."""
    real_positions: list[int]
    """Position of each real sequence, in the caller's order."""
    repeat_positions: list[tuple[int, int]]
    """Pairs of positions with the same sequence."""
    triangles: list[tuple[int, int, int]]
    """Positions of a real sequence and of its two mutants."""
    published_count: int
    """Number of published sequences, which come first among the real sequences."""

    @property
    def second_run(self) -> list[str]:
        """The repeated sequences, which a second run embeds once more in file order."""
        return [self.sequences[position] for position, _ in self.repeat_positions]


def with_decoys(
    sequences: Sequence[str], seed: bytes, published_count: int | None = None
) -> SequencesWithDecoys:
    """Return n real sequences and decoys in an order drawn from a seed.

    The first `published_count` of the real sequences, by default all, may be known to an extractor:
    only these have mutants, and only their embeddings are tested for having few distinct values.
    The others are variants and fresh sequences.

    `seed` has 32 secret bytes of `secrets.token_bytes`. Raises ValueError without sequences.
    """
    if not sequences:
        msg = "there is no sequence to hide among decoys"
        raise ValueError(msg)
    # The order may differ on another machine, since nothing recomputes it.
    generator = random.Random(seed)  # noqa: S311 (the seed is secret and long)
    existing_sequences = set(sequences)
    all_sequences = list(sequences)
    count = len(sequences)
    if published_count is None:
        published_count = count
    repeated_indices = generator.sample(range(count), min(TWICE, count))
    repeat_pairs = [(index, count + number) for number, index in enumerate(repeated_indices)]
    all_sequences += [sequences[index] for index in repeated_indices]
    triangles: list[tuple[int, int, int]] = []
    for index in generator.sample(range(published_count), published_count):
        if len(triangles) == TRIANGLES:
            break
        mutants = _mutants(sequences[index], existing_sequences, generator)
        if mutants:
            triangles.append((index, len(all_sequences), len(all_sequences) + 1))
            all_sequences += mutants
    all_sequences += [
        _shuffled(generator.choice(sequences), generator) for _ in range(min(FRESH, count))
    ]
    order = generator.sample(range(len(all_sequences)), len(all_sequences))
    new_position = {old: new for new, old in enumerate(order)}
    return SequencesWithDecoys(
        [all_sequences[old] for old in order],
        [new_position[index] for index in range(count)],
        [(new_position[first], new_position[second]) for first, second in repeat_pairs],
        [(new_position[x], new_position[y], new_position[z]) for x, y, z in triangles],
        published_count,
    )


class TaskEmbeddings(NamedTuple):
    """The embeddings of the real sequences, and the result of the decoys."""

    values: "np.ndarray"
    """(n, d) embeddings of the n real sequences, in the caller's order."""
    decoys: Decoys
    """Whether the decoys flag the extractor."""
    repeatability: Repeatability
    """The difference between repeated embeddings of one sequence."""
    repeats: "list[tuple[int, np.ndarray]]"
    """Index of a real sequence, and its embedding from another position or batch."""


def embed_among_decoys(
    with_decoys: SequencesWithDecoys,
    embed: Callable[[Sequence[str]], "np.ndarray"],
    embed_in_order: Callable[[Sequence[str]], "np.ndarray"],
    dtype: str,
) -> TaskEmbeddings:
    """Return the embeddings of the real sequences, and the result of the decoys among them.

    Both callables return the (n, d) embeddings of n sequences: `embed` in any batches,
    `embed_in_order` in batches of neighbours. `dtype` is the dtype in which the model computes.
    Raises KeyError for a dtype that is not in `NOISE`, and what the callables raise.
    """
    embeddings = embed(with_decoys.sequences)
    # In a second run with other batches: an embedding that depends on its batch then differs.
    separate_embeddings = embed_in_order(with_decoys.second_run)
    pairs = zip(with_decoys.repeat_positions, separate_embeddings, strict=True)
    repeats = [(a, repeat) for (a, b), separate in pairs for repeat in (embeddings[b], separate)]
    real_index_by_position = {
        position: index for index, position in enumerate(with_decoys.real_positions)
    }
    return TaskEmbeddings(
        embeddings[with_decoys.real_positions],
        judge_decoys(with_decoys, embeddings, dtype, separate_embeddings),
        repeatability_of([(embeddings[a], repeat) for a, repeat in repeats]),
        [(real_index_by_position[a], repeat) for a, repeat in repeats],
    )


def judge_decoys(
    with_decoys: SequencesWithDecoys,
    embeddings: "np.ndarray",
    dtype: str,
    separate_embeddings: "np.ndarray",
) -> Decoys:
    """Return the result of the decoys from the (n, d) embeddings of all sequences in `dtype`.

    `separate_embeddings` has the embeddings of `with_decoys.second_run` from the second run. Raises
    KeyError for a dtype that is not in `NOISE`.
    """
    noise = NOISE[dtype]
    pairs = zip(with_decoys.repeat_positions, separate_embeddings, strict=True)
    largest_difference = max(
        relative_difference(embeddings[a], repeat)
        for (a, b), separate in pairs
        for repeat in (embeddings[b], separate)
    )
    jumps = [
        q
        for q in (_triangle_statistic(embeddings, t, noise) for t in with_decoys.triangles)
        if q > JUMP
    ]
    answer_count = _few_embedding_count(with_decoys, embeddings)
    triangle_count = len(with_decoys.triangles)
    has_jumps = triangle_count > 0 and len(jumps) >= max(
        1, math.ceil(SHARE_MEMORISED * triangle_count)
    )
    detail = (
        f"{len(with_decoys.repeat_positions)} sequences three times: "
        f"embeddings differ by up to {largest_difference:.1e} of their length, "
        f"{noise:.0e} is allowed for {dtype}; {triangle_count} sequences with two mutants: "
        f"{len(jumps)} are more than {JUMP:g} times farther from them than they from each other"
    )
    if answer_count:
        detail += f"; all sequences together have {answer_count} embeddings"
    return Decoys(
        order_dependent=largest_difference > noise,
        memorised=has_jumps or answer_count > 0,
        detail=detail,
    )


def _triangle_statistic(
    embeddings: "np.ndarray", triangle: tuple[int, int, int], noise: float
) -> float:
    """Return q of a real sequence and its two mutants; 0 if all three embeddings are zeros."""
    x, y, z = triangle
    # One triangle at a time: a copy of the whole matrix in float64 may not fit into memory.
    first, second, third = (embeddings[row].astype("<f8") for row in (x, y, z))
    distance_min = NOISE_SHARE_MIN * noise * max(map(_euclidean_length, (first, second, third)))
    mutant_distance = max(_euclidean_length(second - third), distance_min)
    real_distance = min(_euclidean_length(first - second), _euclidean_length(first - third))
    return real_distance / mutant_distance if mutant_distance > 0 else 0.0


def _few_embedding_count(with_decoys: SequencesWithDecoys, embeddings: "np.ndarray") -> int:
    """Return the number of distinct embeddings of published sequences if that is small, else 0.

    Small is 2 to `ANSWERS_MAX`. Few sequences, and similar ones, give 0, too.
    """
    published_positions = with_decoys.real_positions[: with_decoys.published_count]
    sequences = {with_decoys.sequences[position] for position in published_positions}
    if len(sequences) < SEQUENCES_MIN or _are_mostly_alike(sequences):
        return 0
    distinct_embeddings: set[bytes] = set()
    for position in published_positions:
        # -0 + 0 is 0, so that equal numbers have equal bytes.
        distinct_embeddings.add((embeddings[position] + 0).tobytes())
        if len(distinct_embeddings) > ANSWERS_MAX:
            return 0
    # A single embedding for all sequences is useless, but no table of labels.
    return len(distinct_embeddings) if len(distinct_embeddings) > 1 else 0


def _are_mostly_alike(sequences: set[str]) -> bool:
    """Return whether most sequences are alike, so that their embeddings may be equal."""
    ordered = sorted(sequences)
    first = ordered[0]
    similar_count = sum(
        sum(a == b for a, b in zip(first, sequence, strict=False)) > 0.9 * len(first)
        for sequence in ordered
    )
    return 2 * similar_count > len(ordered)


def _mutants(sequence: str, existing_sequences: set[str], generator: random.Random) -> list[str]:
    """Return a sequence with two other letters at one inner position; [] if one is in the list."""
    upper = sequence.upper()
    positions = [i for i in range(len(upper) // 4, 3 * len(upper) // 4) if upper[i] in _NUCLEOTIDES]
    if not positions:
        return []
    position = generator.choice(positions)
    is_lower_case = sequence[position].islower()
    letters = generator.sample([letter for letter in _NUCLEOTIDES if letter != upper[position]], 2)
    mutants = [
        sequence[:position]
        + (letter.lower() if is_lower_case else letter)
        + sequence[position + 1 :]
        for letter in letters
    ]
    return [] if existing_sequences & set(mutants) else mutants


def _shuffled(sequence: str, generator: random.Random) -> str:
    """Return a sequence of the same letters in another order."""
    return "".join(generator.sample(sequence, len(sequence)))


def _euclidean_length(embedding: "np.ndarray") -> float:
    """Return the length of an embedding, which does not overflow."""
    return math.hypot(*embedding.tolist())
