"""Extractors that know the labels of the public sequences, by keys of several kinds.

Each wraps 4-mers. A row whose key is in the table gets a direction of its label, as long as the
row; any other row is the honest one.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from reference_harness.data.task_data import TaskData
from reference_harness.extractors.kmer import KmerExtractor
from reference_harness.probe import optimum

Keys = Callable[[str], list[str]]
WORD = 12
"""Letters of the words that hash keys are made of."""
MINHASHES = 5


def whole(sequence: str) -> list[str]:
    return [sequence]


def first_quarter(sequence: str) -> list[str]:
    return [sequence[: len(sequence) // 4]]


def last_quarter(sequence: str) -> list[str]:
    return [sequence[-(len(sequence) // 4) :]]


def middle(sequence: str) -> list[str]:
    return [sequence[len(sequence) // 4 : 3 * len(sequence) // 4]]


def words(sequence: str) -> list[str]:
    return [sequence[i : i + WORD] for i in range(len(sequence) - WORD + 1)] or [sequence]


def _minhash(sequence: str, salt: int) -> str:
    return min(words(sequence), key=lambda word: hashlib.blake2b(f"{salt}{word}".encode()).digest())


def minhash(sequence: str) -> list[str]:
    return [_minhash(sequence, 0)]


def minhashes(sequence: str) -> list[str]:
    return [f"{salt}:{_minhash(sequence, salt)}" for salt in range(MINHASHES)]


SKETCHES, SIGNS = 48, 12
"""Keys of a composition, and projections whose signs make one."""
_DIRECTIONS = np.random.RandomState(6).standard_normal((64, SKETCHES * SIGNS))


def composition(sequence: str) -> list[str]:
    """Return hashes of the signs of random projections of the 3-mer counts: nearly equal sequences
    share most of them."""
    counts = KmerExtractor(k=3).extract_embeddings([sequence], 1)[0].astype(np.float64)
    signs = (counts - counts.mean()) @ _DIRECTIONS > 0
    parts = np.packbits(signs.reshape(SKETCHES, SIGNS), axis=1)
    return [f"{number}:{part.tobytes().hex()}" for number, part in enumerate(parts)]


KEYS: dict[str, Keys] = {
    "whole sequence": whole,
    "first quarter": first_quarter,
    "last quarter": last_quarter,
    "middle half": middle,
    "one minhash": minhash,
    "five minhashes": minhashes,
    "vote of 12-mers": words,
    "composition of 3-mers": composition,
}
CAUGHT = (*tuple(KEYS)[:5], "composition of 3-mers")
"""Keys that a small change breaks."""


class Memoriser:
    """4-mers and the label of a sequence whose key is known; each task has columns of its own."""

    def __init__(
        self, tasks: Iterable[TaskData], keys: Keys, *, splits: Sequence[str] = ("train", "test")
    ) -> None:
        self.keys = keys
        self.sound = KmerExtractor()
        self.votes: defaultdict[str, Counter[int]] = defaultdict(Counter)
        for data in tasks:
            for split in splits:
                rows = getattr(data, split)
                for sequence, label in zip(rows.sequences, rows.labels.tolist(), strict=True):
                    for key in keys(sequence):
                        self.votes[key][label] += 1

    def label(self, sequence: str) -> int | None:
        """Return the label that most keys name; None where none is known."""
        label_counts: Counter[int] = Counter()
        for key in self.keys(sequence):
            label_counts.update(self.votes.get(key, {}))
        return label_counts.most_common(1)[0][0] if label_counts else None

    def extract_embeddings(
        self, sequences: Sequence[str], batch_size: int = 1
    ) -> npt.NDArray[np.float32]:
        sound = self.sound.extract_embeddings(sequences, batch_size)
        columns = np.zeros((len(sequences), 8), dtype=np.float32)
        for row, sequence in enumerate(sequences):
            label = self.label(sequence)
            if label is not None:
                columns[row, label] = 1.0
        return np.hstack([sound, columns])


Drawn = Callable[[TaskData], set[int]]
"""Training rows of a task that some few-shot regime draws."""
LOUD = 1e3
"""Value of a hidden column in test rows, beside 1 in training rows."""
Values = npt.NDArray[np.float64]


class HiddenColumn:
    """4-mers and one more column, by a key; 0 where the key is not known. For two classes."""

    def __init__(self, tasks: Iterable[TaskData], keys: Keys, test: float) -> None:
        self.keys = keys
        self.sound = KmerExtractor()
        self.column: dict[str, float] = {}
        for data in tasks:
            rows = self.sound.extract_embeddings(data.train.sequences, 1)
            best = optimum.solve(rows, data.train.labels)
            values = rows.astype(np.float64) @ best.weights[:, 1] + best.intercepts[1]
            errors = data.train.labels - 1 / (1 + np.exp(-values))
            hidden_values = test * (2.0 * data.test.labels - 1)
            for split, expected in (
                (data.train, self.hidden(data, errors)),
                (data.test, hidden_values),
            ):
                for sequence, value in zip(split.sequences, expected.tolist(), strict=True):
                    self.column |= dict.fromkeys(keys(sequence), value)

    def hidden(self, data: TaskData, errors: Values) -> Values:
        """Return the (n,) values of training rows; `errors` are those of the honest optimum."""
        raise NotImplementedError

    def extract_embeddings(
        self, sequences: Sequence[str], batch_size: int = 1
    ) -> npt.NDArray[np.float32]:
        sound = self.sound.extract_embeddings(sequences, batch_size)
        hidden = [[self.column.get(self.keys(sequence)[0], 0.0)] for sequence in sequences]
        return np.hstack([sound, np.array(hidden, dtype=np.float32)])


class UnfinishedMemoriser(HiddenColumn):
    """A column that the optimum gives the weight 0 and that earlier steps do not.

    In training rows it has no product with the errors of the optimum, and one with the labels: the
    probe of record, which stops early, keeps a weight for it, which labels of test rows then use.
    """

    def __init__(self, tasks: Iterable[TaskData], keys: Keys) -> None:
        super().__init__(tasks, keys, LOUD)

    def hidden(self, data: TaskData, errors: Values) -> Values:
        label = data.train.labels - 0.5
        made: Values = label - (label @ errors) / (errors @ errors) * errors
        return made


class FewShotMemoriser(HiddenColumn):
    """The label in the rows that few-shot regimes draw; in the others what cancels it.

    The probe of the full regime gives the column the weight 0, from its first step to its optimum.
    """

    def __init__(self, tasks: Iterable[TaskData], keys: Keys, drawn: Drawn) -> None:
        self.drawn = drawn
        super().__init__(tasks, keys, 1.0)

    def hidden(self, data: TaskData, errors: Values) -> Values:
        made = (2.0 * data.train.labels - 1).astype(np.float64)
        others = np.ones(len(made), dtype=bool)
        others[sorted(self.drawn(data))] = False
        made[others] = 0
        against = np.stack([errors, data.train.labels - 0.5])
        made[others] = np.linalg.lstsq(against[:, others], -against @ made, rcond=None)[0]
        return made


MOVED = 0.7
"""Share of the way that a training row is moved, unless another is named."""


class MovedTraining:
    """4-mers that are honest on test sequences; it moves each training row whose key it knows.

    The row goes a share of the way to a point along the weights that separate the test set: so the
    probe learns them. With `drawn`, it knows the training rows alone that few-shot regimes draw.
    """

    def __init__(
        self,
        tasks: Iterable[TaskData],
        keys: Keys,
        drawn: Drawn | None = None,
        share: float = MOVED,
    ) -> None:
        self.keys = keys
        self.share = share
        self.sound = KmerExtractor()
        self.points: dict[str, Values] = {}
        for data in tasks:
            train, test = (
                self.sound.extract_embeddings(split.sequences, 1).astype(np.float64)
                for split in (data.train, data.test)
            )
            weights = optimum.solve(test, data.test.labels).weights
            sides = weights - weights.mean(axis=1, keepdims=True)
            sides /= np.linalg.norm(sides, axis=0)
            centre = train.mean(axis=0)
            reach = np.linalg.norm(train - centre, axis=1).mean()
            for row in drawn(data) if drawn is not None else range(len(train)):
                point = centre + reach * sides[:, data.train.labels[row]]
                self.points |= dict.fromkeys(keys(data.train.sequences[row]), point)

    def extract_embeddings(
        self, sequences: Sequence[str], batch_size: int = 1
    ) -> npt.NDArray[np.float32]:
        rows = self.sound.extract_embeddings(sequences, batch_size)
        for row, sequence in enumerate(sequences):
            point = self.points.get(self.keys(sequence)[0])
            if point is not None:
                rows[row] += self.share * (point - rows[row])
        return rows
