"""Decoys: extra sequences for the extractor, and what their embeddings show about it.

Order. Some sequences appear twice, at random places, and a third time in a second, short run in
file order, in other batches. An extractor that depends on the place, on the batch or on earlier
sequences gives them different embeddings.

Memory. For some real sequences x there are two point mutants y and z, which differ from x and from
each other in one letter at one place. An extractor that computes treats all three alike. One that
looks x up in a table of known sequences does not know y and z: x is then far from both, while they
are close to each other. The statistic of a triangle is

    q = min(|x - y|, |x - z|) / max(|y - z|, noise)

and an extractor is flagged when q is above `JUMP` in at least `SHARE_MEMORISED` of the triangles.
The three sides are compared within a triangle, so the scale of the embedding, the distances between
a task's sequences and the effect of a single letter on the tokenizer do not matter.

A look-up that tolerates a few changed letters sees no difference between x, y and z, but it has few
answers. An extractor is also flagged when sequences that are far from each other share
`ANSWERS_MAX` embeddings or fewer, which no embedding does that depends on the sequence.

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
from geneb_ci.audit.rerun.honesty import Repeatability, repeatability_of

if TYPE_CHECKING:
    import numpy as np

TWICE = 32
"""Real sequences that appear a second time."""
TRIANGLES = 32
"""Real sequences with two mutants. If a quarter of all embeddings is memorised, 32 triangles hold
at least four of them with probability 0.97; if half is, always in practice."""
FRESH = 16
"""Shuffled sequences: they hide how many of the list are real."""
JUMP = 10.0
"""Largest distance of a real sequence from its mutants, in distances between these. Measured: at
most 1.8 on k-mer counts, 1.2 on random BERT, ESM and GPT-2 (mean and one-token pooling), on four
sets, one of them 200 variants of one sequence. No trained model was measured, hence the margin."""
SHARE_MEMORISED = 0.125
"""Share of triangles that have to jump: four of 32, so that a single outlier is not flagged."""
ANSWERS_MAX = 8
"""Distinct embeddings that a table of labels can give: the largest task has fewer classes."""
SEQUENCES_MIN = 64
"""Distinct real sequences needed before few answers mean anything."""
NOISE = {
    "float64": 1e-9,
    "float32": 2e-3,
    "float16": 2e-2,
    "bfloat16": 1e-1,
}
"""Largest difference, relative to the length of the embedding, that batching alone may make. A
float32 model on a GPU may multiply in TF32, whose unit roundoff is 4.9e-4; float16 has the same,
bfloat16 3.9e-3; a deep model multiplies that several times over. float64 has 1.1e-16."""

FLOOR = 0.1
"""Share of that noise below which a distance between mutants counts as no smaller: three embeddings
of one triangle that differ by noise alone are not a jump, and a look-up still is under bfloat16."""

_LETTERS = "ACGT"


@dataclass(frozen=True)
class SequencesWithDecoys:
    """Real sequences with decoys among them, and what each place of the list is."""

    sequences: list[str]
    """In the order in which they are embedded."""
    real_positions: list[int]
    """Place of each real sequence, in the caller's order."""
    repeat_positions: list[tuple[int, int]]
    """Pairs of places with the same sequence."""
    triangles: list[tuple[int, int, int]]
    """Places of a real sequence and of its two mutants."""
    published: int
    """How many of the real sequences, the first ones, are published."""

    @property
    def apart(self) -> list[str]:
        """Sequences for the second run, to be embedded in file order."""
        return [self.sequences[position] for position, _ in self.repeat_positions]


def with_decoys(
    sequences: Sequence[str], seed: bytes, published: int | None = None
) -> SequencesWithDecoys:
    """Return n real sequences and decoys in an order drawn from a seed.

    The first `published` of them, or all, may be known to an extractor: only these have mutants and
    are counted for few answers; the others are variants and fresh sequences.

    `seed` has 32 bytes of `secrets.token_bytes` and is secret. Raises ValueError for no sequence.
    """
    if not sequences:
        msg = "there is no sequence to hide among decoys"
        raise ValueError(msg)
    # The stream need not be the same on another machine: nothing recomputes this order.
    draw = random.Random(seed)  # noqa: S311 (the seed is secret and long; nothing else is drawn)
    present = set(sequences)
    listed = list(sequences)
    count = len(sequences)
    first = count if published is None else published
    twice = draw.sample(range(count), min(TWICE, count))
    again = [(row, len(listed) + index) for index, row in enumerate(twice)]
    listed += [sequences[row] for row in twice]
    triangles: list[tuple[int, int, int]] = []
    for row in draw.sample(range(first), first):
        if len(triangles) == TRIANGLES:
            break
        mutants = _mutants(sequences[row], present, draw)
        if mutants:
            triangles.append((row, len(listed), len(listed) + 1))
            listed += mutants
    listed += [_fresh(draw.choice(sequences), draw) for _ in range(min(FRESH, count))]
    order = draw.sample(range(len(listed)), len(listed))
    position = {old: new for new, old in enumerate(order)}
    return SequencesWithDecoys(
        [listed[old] for old in order],
        [position[row] for row in range(count)],
        [(position[first_place], position[second_place]) for first_place, second_place in again],
        [(position[x], position[y], position[z]) for x, y, z in triangles],
        first,
    )


class TaskEmbeddings(NamedTuple):
    """Embeddings of the real sequences, and what those of the decoys show."""

    values: "np.ndarray"
    """(n, d), embedding i for real sequence i."""
    decoys: Decoys
    repeatability: Repeatability
    repeats: "list[tuple[int, np.ndarray]]"
    """Real sequences, by number, and what they gave in another place or batch."""


def embed_among_decoys(
    with_decoys: SequencesWithDecoys,
    embed: Callable[[Sequence[str]], "np.ndarray"],
    embed_in_order: Callable[[Sequence[str]], "np.ndarray"],
    dtype: str,
) -> TaskEmbeddings:
    """Embed real sequences and decoys, and judge the extractor by the decoys.

    Both callables turn n sequences into an (n, d) matrix: `embed` in batches of its choice,
    `embed_in_order` in batches of neighbours. `dtype` is what the model computes in.
    Raises KeyError for a dtype that is not in `NOISE`, and what the callables raise.
    """
    values = embed(with_decoys.sequences)
    # Again, alone and in order: an embedding that depends on its batch shows a difference.
    apart = embed_in_order(with_decoys.apart)
    rows = zip(with_decoys.repeat_positions, apart, strict=True)
    again = [(a, repeat) for (a, b), row in rows for repeat in (values[b], row)]
    number_of = {position: number for number, position in enumerate(with_decoys.real_positions)}
    return TaskEmbeddings(
        real_embeddings(with_decoys, values),
        judge_decoys(with_decoys, values, dtype, apart),
        repeatability_of([(values[a], repeat) for a, repeat in again]),
        [(number_of[a], repeat) for a, repeat in again],
    )


def real_embeddings(with_decoys: SequencesWithDecoys, values: "np.ndarray") -> "np.ndarray":
    """Return the (n, d) embeddings of the real sequences, in the caller's order."""
    return values[with_decoys.real_positions]


def judge_decoys(
    with_decoys: SequencesWithDecoys,
    values: "np.ndarray",
    dtype: str,
    separate_values: "np.ndarray | None" = None,
) -> Decoys:
    """Return the result of the decoys from the (n, d) embeddings of a whole list in `dtype`.

    `separate_values` has the embeddings of `with_decoys.apart` of the second run; without, a
    dependence on
    the batch is detected only where the two places fell into different batches. Raises KeyError for
    a dtype that is not in `NOISE`.
    """
    noise = NOISE[dtype]
    drift = max(_drift(values[a], values[b]) for a, b in with_decoys.repeat_positions)
    times = "twice"
    if separate_values is not None:
        rows = zip(with_decoys.repeat_positions, separate_values, strict=True)
        drift = max(drift, *(_drift(values[a], row) for (a, _), row in rows))
        times = "three times"
    jumps = [q for q in (_jump(values, t, noise) for t in with_decoys.triangles) if q > JUMP]
    few = _answers(with_decoys, values)
    many = len(with_decoys.triangles)
    jumping = many > 0 and len(jumps) >= max(1, math.ceil(SHARE_MEMORISED * many))
    detail = (
        f"{len(with_decoys.repeat_positions)} sequences {times}: "
        f"embeddings differ by up to {drift:.1e} of their length, "
        f"{noise:.0e} is allowed for {dtype}; {many} sequences with two mutants: "
        f"{len(jumps)} are more than {JUMP:g} times farther from them than they from each other"
    )
    if few:
        detail += f"; all sequences together have {few} embeddings"
    return Decoys(order_dependent=drift > noise, memorised=jumping or few > 0, detail=detail)


def _jump(values: "np.ndarray", triangle: tuple[int, int, int], noise: float) -> float:
    x, y, z = triangle
    # One triangle at a time: a copy of the whole matrix in float64 may not fit into memory.
    first, second, third = (_wide(values[row]) for row in (x, y, z))
    floor = FLOOR * noise * max(map(_length, (first, second, third)))
    near = max(_length(second - third), floor)
    far = min(_length(first - second), _length(first - third))
    return far / near if near > 0 else 0.0


def _answers(with_decoys: SequencesWithDecoys, values: "np.ndarray") -> int:
    """Return the number of distinct real embeddings when there are suspiciously few, else 0."""
    published = with_decoys.real_positions[: with_decoys.published]
    texts = {with_decoys.sequences[row] for row in published}
    if len(texts) < SEQUENCES_MIN or _alike(texts):
        return 0
    answers: set[bytes] = set()
    for row in published:
        answers.add((values[row] + 0).tobytes())  # -0 + 0 is 0: one number, one way to write it
        if len(answers) > ANSWERS_MAX:
            return 0
    # One embedding for all is not a table of labels, only useless.
    return len(answers) if len(answers) > 1 else 0


def _alike(texts: set[str]) -> bool:
    """Whether sequences are variants of one another, which a model may not distinguish."""
    ordered = sorted(texts)
    first = ordered[0]
    same = sum(
        sum(a == b for a, b in zip(first, text, strict=False)) > 0.9 * len(first)
        for text in ordered
    )
    return 2 * same > len(ordered)


def _mutants(sequence: str, existing: set[str], draw: random.Random) -> list[str]:
    """Return two mutants at one inner place, neither of them known; none where there are none."""
    upper = sequence.upper()
    places = [i for i in range(len(upper) // 4, 3 * len(upper) // 4) if upper[i] in _LETTERS]
    if not places:
        return []
    at = draw.choice(places)
    lower = sequence[at].islower()
    letters = draw.sample([letter for letter in _LETTERS if letter != upper[at]], 2)
    mutants = [
        sequence[:at] + (letter.lower() if lower else letter) + sequence[at + 1 :]
        for letter in letters
    ]
    return [] if existing & set(mutants) else mutants


def _fresh(sequence: str, draw: random.Random) -> str:
    """Return a sequence of the same letters in another order."""
    return "".join(draw.sample(sequence, len(sequence)))


def _drift(first: "np.ndarray", second: "np.ndarray") -> float:
    """Return the length of the difference of two embeddings, relative to the first.

    It is infinite for embeddings of different widths, and for embeddings too long to measure.
    """
    if first.shape != second.shape:
        return math.inf
    share = _length(_wide(first) - _wide(second)) / (_length(_wide(first)) or 1.0)
    return math.inf if math.isnan(share) else share


def _wide(row: "np.ndarray") -> "np.ndarray":
    return row.astype("<f8")


def _length(row: "np.ndarray") -> float:
    return math.hypot(*row.tolist())
