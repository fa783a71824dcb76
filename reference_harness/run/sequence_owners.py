"""Decide which task of a run embeds a sequence that several tasks have: the first one."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from reference_harness.data.task_data import DIGEST_BYTES, TaskData
from reference_harness.embedding.cache import Cache

Digests = npt.NDArray[np.void]
"""(n,) distinct digests of 16 bytes; not of a text type, whose trailing zeros NumPy drops."""


class OwnedSequences(NamedTuple):
    """The sequences that a task is to embed itself, and the earlier tasks that embed its others."""

    missing: Digests
    """Digests of the sequences that the task is to embed."""
    source_tasks: frozenset[str]
    """Ids of the earlier tasks that embed other sequences of this task."""


def distinct_sequences(task_data: TaskData) -> dict[bytes, str]:
    """Return the distinct sequences of both splits by digest, in file order."""
    sequences = [*task_data.train.sequences, *task_data.test.sequences]
    digests = [*task_data.digests["train"], *task_data.digests["test"]]
    return dict(zip(digests, sequences, strict=True))


def packed_digests(digests: Iterable[bytes]) -> Digests:
    """Return digests as an array with 16 bytes each, as a benchmark has millions."""
    return np.frombuffer(b"".join(digests), dtype=f"V{DIGEST_BYTES}")


def owned_sequences(
    digests_by_task: Mapping[str, Digests], cache: Cache
) -> dict[str, OwnedSequences]:
    """Return which sequences each task is to embed, by task id; cached ones belong to no task."""
    tasks = list(digests_by_task)
    missing_by_task = {}
    for task_id, digests in digests_by_task.items():
        digest_list = digests.tolist()
        present = cache.find(digest_list)
        is_missing = np.array([digest not in present for digest in digest_list], dtype=np.bool_)
        missing_by_task[task_id] = digests[is_missing]
    all_digests = np.concatenate([*missing_by_task.values()]) if tasks else packed_digests(())
    task_of_digest = np.repeat(
        np.arange(len(tasks)),
        [len(digests_of_task) for digests_of_task in missing_by_task.values()],
    )
    # Digests compare as texts of equal length; the first of equal ones belongs to the first task.
    _, first_indices, inverse = np.unique(
        all_digests.view(f"S{DIGEST_BYTES}"), return_index=True, return_inverse=True
    )
    source_task_of_digest = task_of_digest[first_indices][inverse]
    is_first = np.zeros(len(all_digests), dtype=np.bool_)
    is_first[first_indices] = True
    owned_by_task = {}
    for task_index, task_id in enumerate(tasks):
        is_of_task = task_of_digest == task_index
        source_tasks = np.unique(source_task_of_digest[is_of_task & ~is_first]).tolist()
        owned_by_task[task_id] = OwnedSequences(
            all_digests[is_of_task & is_first], frozenset(tasks[i] for i in source_tasks)
        )
    return owned_by_task
