"""Which task of a run embeds a sequence that several of them have: the first of the benchmark."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .cache import Cache
from .tasks import DIGEST_BYTES, TaskData

Digests = npt.NDArray[np.void]
"""(n,) digests, each once; of 16 bytes, and not text, whose last zeros NumPy drops."""


class EmbeddingClaim(NamedTuple):
    """The sequences that one task embeds, and the tasks that embed the rest of what it needs."""

    missing: Digests
    lenders: frozenset[str]


def distinct(data: TaskData) -> dict[bytes, str]:
    """Return digest to sequence of both splits, identical ones once, in file order."""
    sequences = [*data.train.sequences, *data.test.sequences]
    digests = [*data.digests["train"], *data.digests["test"]]
    return dict(zip(digests, sequences, strict=True))


def packed(digests: Iterable[bytes]) -> Digests:
    """Return digests in 16 bytes each: those of the benchmark are millions."""
    return np.frombuffer(b"".join(digests), dtype=f"V{DIGEST_BYTES}")


def claims(digests_by_task: Mapping[str, Digests], cache: Cache) -> dict[str, EmbeddingClaim]:
    """Return the claim of each task, in the order given; what the cache has is in none."""
    tasks = list(digests_by_task)
    lacking = {}
    for task_id, digests in digests_by_task.items():
        names = digests.tolist()
        present = cache.find(names)
        absent = np.array([name not in present for name in names], dtype=np.bool_)
        lacking[task_id] = digests[absent]
    all_digests = np.concatenate([*lacking.values()]) if tasks else packed(())
    owner = np.repeat(
        np.arange(len(tasks)), [len(digests_of_task) for digests_of_task in lacking.values()]
    )
    # Bytes compare as text of one length does; the first of equal ones is that of the first task.
    _, first, inverse = np.unique(
        all_digests.view(f"S{DIGEST_BYTES}"), return_index=True, return_inverse=True
    )
    lender = owner[first][inverse]
    is_first = np.zeros(len(all_digests), dtype=np.bool_)
    is_first[first] = True
    claim_of = {}
    for number, task_id in enumerate(tasks):
        rows = owner == number
        lenders = np.unique(lender[rows & ~is_first]).tolist()
        claim_of[task_id] = EmbeddingClaim(
            all_digests[rows & is_first], frozenset(tasks[i] for i in lenders)
        )
    return claim_of
