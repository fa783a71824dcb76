"""The power of a draw of embeddings, as text, for the decision about its size."""

from collections.abc import Collection, Iterator

from geneb_ci.receipt.alteration_power import (
    MEASURED_GAINS,
    POWER_TABLE_RAISES,
    POWER_TABLE_SHARES,
    hit_probability_in_test,
    hit_probability_in_training,
)
from geneb_ci.receipt.draw import EmbeddingCounts
from geneb_ci.receipt.raise_bound import alterations_of_regime
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.submission import SubmissionV12
from reference_harness.formats.text import plural

WRITTEN_PROBABILITY_MAX = 0.999
"""Largest probability that a text states, since no detection is certain."""


def power_lines(
    submission: SubmissionV12,
    counts: EmbeddingCounts,
    benchmark: Benchmark,
    committed_tasks: Collection[str],
) -> Iterator[str]:
    """Yield lines of text with the probability that a draw of this size finds altered embeddings.

    The probabilities follow from the confusion matrices of the submission.
    """
    tasks = [task for task in benchmark.task_ids if task in committed_tasks]
    probabilities, task_count = {}, 0
    for regime in benchmark.regimes:
        matrices = {}
        for task in tasks:
            evidence = submission.evidence.get(regime, {}).get(task)
            if evidence is not None:
                probes = evidence.confusion
                is_few_shot = regime in benchmark.protocol.few_shot_k
                matrices[task] = probes if is_few_shot else probes[:1]
        if not matrices:
            continue
        cells = alterations_of_regime(matrices, benchmark.categories)
        task_count = max(task_count, len(matrices))
        probabilities[regime] = [
            hit_probability_in_test(cells, raise_, counts.test) for raise_ in POWER_TABLE_RAISES
        ]
    yield f"test embeddings, {counts.test:,} in each of {plural(len(probabilities), 'regime')}:"
    yield "  altered test embeddings that raise the macro MCC are found with at least these"
    yield f"  probabilities, by the row's confusion matrices of {task_count} of {len(tasks)} tasks:"
    for regime, chances in probabilities.items():
        chances_text = ", ".join(
            f"{chance_text(chance)} for a raise by {raise_:g}"
            for raise_, chance in zip(POWER_TABLE_RAISES, chances, strict=True)
        )
        yield f"  {regime:<8} {chances_text}"
    yield f"training embeddings, {counts.training:,} in each of {plural(len(tasks), 'task')}:"
    for share in POWER_TABLE_SHARES:
        mean, largest = MEASURED_GAINS[share]
        chance = hit_probability_in_training(share, counts.training * len(tasks))
        yield (
            f"  {share:.1%} altered, in the mean over tasks, are found with {chance_text(chance)}; "
            f"in measurements they raised MCC by {mean:.3f} in the mean, {largest:.3f} at most"
        )
    yield "  This is not a bound: embeddings altered by a better method gain more. The strongest of"
    yield "  each task are embedded in any case; few others raised MCC by up to 0.09 in a task."


def chance_text(chance: float) -> str:
    """Return a lower bound of a probability as a percentage, never rounded up to 100 %."""
    return f"{min(chance, WRITTEN_PROBABILITY_MAX):.1%}"
