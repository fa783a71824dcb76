"""Precision and memorisation: how exactly embeddings repeat, and whether sequences were memorised.

Precision. The tolerance of an audit follows from the noise of the declared dtype. A contributor who
declares bfloat16 for an extractor that computes in float32 gets tolerances two to four times as
wide. Therefore the audit embeds some sequences three times, in other places and other batches. A
model in bfloat16 or float16 then returns different numbers. If the embeddings agree as closely as
in float32, the tolerance is that of float32.

Variants. D = (worse - better) / n, over test sequences of all rerun tasks, for each kind of
variant: `worse` is the number of sequences that are classified right as published and wrong as a
variant, `better` the reverse. For an extractor that computes, both are about equal; one that looks
up labels loses those of the published sequences. An audit is flagged if D is above

    limit = margin + VARIANT_ALARM_QUANTILE sqrt(worse + better) / n

or if D of one of T tasks is above a limit whose margin is larger by `TASK_MARGIN`, and which chance
exceeds T times less often.

Training sequences have the same test with another margin: it compares the decisions of a probe
fitted on the published sequences with those of a probe fitted on their variants.

Fresh sets. The loss is the accuracy on public test sequences less the accuracy of the same probe on
fresh sequences, averaged over the tasks. An audit is flagged if the loss exceeds `FRESH_MARGIN` by
`FRESH_ALARM_QUANTILE` standard errors.

Limits. A look-up that tolerates small changes is detected only by a fresh set, and a table with few
labels stays below the limit. docs/research/adversary.md has the rates.
"""

import math
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

from pydantic import Field

from reference_harness.formats.base import Count, Hex64, Name, Positive, StrictModel
from reference_harness.formats.rescored import ChangedDecisions, Decisions, LabelledDecisions
from reference_harness.formats.text import plural

if TYPE_CHECKING:
    import numpy as np


FLOAT32_DIFFERENCE_MAX = 1e-5
"""Largest difference between embeddings of one sequence, relative to their length, from which an
audit concludes that the model computes in float32. Measured
on random BERTs in other batches: at most 2.3e-7 in float32, up to 1.8e-3 in bfloat16. There 61 % of
embeddings differ, so that the probability that none of 64 pairs differs is below 1e-13."""
PAIRS_MIN = 16
"""Smallest number of pairs of embeddings from which the precision is inferred."""
HALF_PRECISION_DTYPES = ("bfloat16", "float16")
"""Declared dtypes that are replaced by float32 if the embeddings are that precise."""
FULL_PRECISION_DTYPE = "float32"
SIGNIFICAND_BITS = {"float16": 10, "float32": 23, "float64": 52}
"""Number of stored significand bits of each dtype that a matrix may have."""


class Repeatability(StrictModel):
    """The difference between embeddings of one sequence that was embedded several times."""

    pairs: Count
    """Number of sequences that were embedded twice."""
    difference: float = Field(ge=0)
    """Largest distance of two embeddings of a sequence, divided by their length."""
    bits: Count
    """Number of significant bits that the numbers use: 24 in float32, 8 in bfloat16."""


class Precision(StrictModel):
    """The declared dtype, and the precision that the embeddings of all tasks show."""

    declared: Name
    """Dtype in which the contributor says that the model computes."""
    pairs: Positive
    """Number of sequences that were embedded twice, in all tasks."""
    difference: float = Field(ge=0)
    """Largest difference of two embeddings of a sequence, relative to their length."""
    bits: Count
    """Number of significant bits that the numbers use."""

    @property
    def noise(self) -> str:
        """The dtype whose noise the tolerance includes: never coarser than the declared one."""
        is_float32 = self.pairs >= PAIRS_MIN and self.difference <= FLOAT32_DIFFERENCE_MAX
        return (
            FULL_PRECISION_DTYPE
            if self.declared in HALF_PRECISION_DTYPES and is_float32
            else self.declared
        )


def precision_of(declared: str, results: Iterable[Repeatability]) -> Precision | None:
    """Return the precision that the repeats of all tasks show; None if no sequence was repeated."""
    repeatabilities = [repeatability for repeatability in results if repeatability.pairs]
    if not repeatabilities:
        return None
    return Precision(
        declared=declared,
        pairs=sum(repeatability.pairs for repeatability in repeatabilities),
        difference=max(repeatability.difference for repeatability in repeatabilities),
        bits=max(repeatability.bits for repeatability in repeatabilities),
    )


def repeatability_of(pairs: Sequence[tuple["np.ndarray", "np.ndarray"]]) -> Repeatability:
    """Return how far pairs of (d,) embeddings of one sequence differ.

    Embeddings of different widths, and embeddings too long to measure, differ by the largest float.
    """
    import numpy as np  # slow to import, and only needed here

    differences = [relative_difference(first, second) for first, second in pairs]
    return Repeatability(
        pairs=len(pairs),
        difference=min(max(differences, default=0.0), float(np.finfo(np.float64).max)),
        bits=max((_significant_bits(first) for first, _ in pairs), default=0),
    )


def relative_difference(first: "np.ndarray", second: "np.ndarray") -> float:
    """Return the Euclidean distance of two embeddings, divided by the length of the first.

    The distance is infinite for embeddings of different widths, and for embeddings too long to
    measure.
    """
    if first.shape != second.shape:
        return math.inf
    first_values, second_values = first.astype("<f8").tolist(), second.astype("<f8").tolist()
    distance = math.hypot(*(a - b for a, b in zip(first_values, second_values, strict=True)))
    relative_distance = distance / (math.hypot(*first_values) or 1.0)
    return math.inf if math.isnan(relative_distance) else relative_distance


def _significant_bits(embedding: "np.ndarray") -> int:
    """Return how many significant bits the numbers of an embedding use; 0 if all are zero."""
    import numpy as np  # slow to import, and only needed here

    stored_bits = SIGNIFICAND_BITS[embedding.dtype.name]
    numbers = embedding.view(f"<u{embedding.dtype.itemsize}")[embedding != 0]
    if not numbers.size:
        return 0
    # The lowest bit that is set in any number is the lowest bit of their disjunction.
    used_bits = int(np.bitwise_or.reduce(numbers)) & ((1 << stored_bits) - 1)
    return (
        stored_bits + 1 - ((used_bits & -used_bits).bit_length() - 1 if used_bits else stored_bits)
    )


def precision_text(precision: Precision) -> str:
    """Return the declared dtype and the measured precision as one line."""
    noise_text = f"; the tolerance has the noise of {precision.noise}" * (
        precision.noise != precision.declared
    )
    return (
        f"precision: {precision.declared} declared; {precision.pairs} pairs of embeddings in other "
        f"batches differ by up to {precision.difference:.1e} of their length, with "
        f"{precision.bits} significant bits{noise_text}"
    )


VARIANT_ALARM_QUANTILE = 4.0
"""Number of standard errors above its margin from which D, the net share of decisions that became
wrong, is flagged. All kinds of variants are judged on one test set: with 3.09, which is a
false-alarm rate of 0.001, a random model of one task with 160 sequences was sometimes flagged."""
FRESH_ALARM_QUANTILE = 3.09
"""Number of standard errors above `FRESH_MARGIN` from which a loss of accuracy on a fresh set is
flagged: a one-sided false-alarm rate of 0.001."""
VARIANT_MARGIN = 0.02
"""Largest D, the net share of decisions that became wrong, of an honest extractor on variants of
test sequences: three changed letters in a hundred can break a motif that the extractor needs.
docs/research/adversary.md has measured values."""
TRAINING_MARGIN = 0.03
"""Largest D of an honest extractor after a refit on variants of training sequences, which changes
many decisions."""
FRESH_MARGIN = 0.05
"""Accuracy that an honest extractor may lose on a fresh set, which differs a little from the public
test set."""
TASK_MARGIN = 0.03
"""Addition to `VARIANT_MARGIN` and `TRAINING_MARGIN` for a single task, whose decisions may depend
on one motif that a variant breaks. docs/research/adversary.md has measured values."""
VARIED_PER_AUDIT = 4000
"""Number of test sequences that an audit varies, over all tasks; if 7 % of the decisions change,
the limit of D is 0.037."""
VARIED_PER_TASK_MIN = 40
"""Smallest number of test sequences that an audit varies in each task, however many it draws."""
VARIANT_KIND = "substituted"
"""The kind of variant in audits by receipt: up to three letters are substituted anywhere. It
detects all that crops and shifts detect; docs/research/adversary.md has the table."""
MEMORISED_OBJECTION = "labels of published sequences are known that variants of them do not get"
"""The reason why an audit differs if the decisions on variants are flagged."""
FRESH_OBJECTION = "fresh sequences are classified far worse than the published ones"
"""The reason why an audit differs if the decisions on a fresh set are flagged."""


class VariantDecisions(StrictModel):
    """The decisions on variants by one probe, summed over its fits."""

    fits: Positive
    """Number of fits of the probe."""
    kinds: dict[Name, ChangedDecisions]
    """The changed decisions, by kind of variant."""


class TaskVariantDecisions(StrictModel):
    """The decisions on variants of the sequences of one task."""

    kinds: dict[Name, ChangedDecisions]
    """By kind of variant, the changed decisions of the canonical probe of the full regime."""
    training: ChangedDecisions | None
    """Decisions of the probe that is fitted on variants of training sequences; null if no training
    sequence, or none of some class, was varied."""
    others: dict[Name, VariantDecisions]
    """Decisions of all other probes, by name, such as `10shot, record`."""


class VariantResult(StrictModel):
    """The decisions on variants of the sequences of all rerun tasks."""

    nonce: Hex64
    """Secret that decides, with the seed of the plan, the varied sequences and their changes;
    published in the record."""
    rows: Positive
    """Number of test sequences, and of training sequences, varied per task; fewer if a task has
    fewer."""
    reversed: bool
    """Whether reverse complements are among the kinds, because the model declares both strands
    equal."""
    kinds: dict[Name, ChangedDecisions]
    """By kind of variant, the changed decisions of the canonical probe of the full regime."""
    training: ChangedDecisions | None
    """Test sequences whose decision changes if the probe is fitted on variants of training
    sequences."""
    others: dict[Name, VariantDecisions] = Field(default={}, exclude_if=operator.not_)
    """Decisions of all other probes, such as `10shot, record`; left out in earlier records."""
    tasks: dict[Name, TaskVariantDecisions] = Field(default={}, exclude_if=operator.not_)
    """The decisions of each task, whose sums are the fields above; left out in earlier records."""
    memorised: bool
    """Whether more decisions on variants became wrong than chance explains."""


def _is_one(value: int) -> bool:
    """Whether a number of fits is 1, which a record leaves out."""
    return value == 1


class FreshTask(StrictModel):
    """The decisions of one probe on public test sequences and on fresh sequences of a task."""

    public: LabelledDecisions
    """Decisions on the public test sequences."""
    fresh: LabelledDecisions
    """Decisions on the fresh sequences."""
    fits: Positive = Field(default=1, exclude_if=_is_one)
    """Number of fits whose decisions are summed."""


class FreshResult(StrictModel):
    """Decisions on a fresh set that a maintainer committed to before the audit."""

    commitment: Hex64
    """Salted digest of the set, which `geneb-ci audit fresh check` compares after its release."""
    tasks: dict[Name, FreshTask] = Field(min_length=1)
    """By task, the decisions of the canonical probe of the full regime."""
    others: dict[Name, dict[Name, FreshTask]] = Field(default={}, exclude_if=operator.not_)
    """By probe and task, the decisions of all other probes; left out in earlier records."""
    dropped: bool
    """Whether the accuracy of a probe drops by more on fresh sequences than chance explains."""


def varied_sequence_count(tasks: int) -> int:
    """Return how many test sequences of each task an audit of `tasks` tasks varies."""
    return max(VARIED_PER_TASK_MIN, math.ceil(VARIED_PER_AUDIT / tasks))


def net_error_share(changed: ChangedDecisions) -> float:
    """Return D, the net share of decisions that became wrong; 0 if no sequence was varied."""
    return (changed.worse - changed.better) / changed.rows if changed.rows else 0.0


def difference_limit(
    decisions: ChangedDecisions,
    margin: float,
    fits: int = 1,
    alarm_quantile: float = VARIANT_ALARM_QUANTILE,
) -> float:
    """Return the largest net share D of decisions that became wrong that is not flagged.

    Several fits count as one, since they decide on the same sequences and often make the same
    errors.
    """
    changed_count = fits * (decisions.worse + decisions.better)
    return margin + alarm_quantile * math.sqrt(changed_count) / max(1, decisions.rows)


def task_alarm_quantile(task_count: int) -> float:
    """Return the number of standard errors above the margin from which D of one task is flagged.

    In each task, chance exceeds this number with probability P(Z > `VARIANT_ALARM_QUANTILE`) /
    `task_count`, so that the rate of false alarms over all tasks is that of
    `VARIANT_ALARM_QUANTILE`.
    """
    normal = NormalDist()
    return -normal.inv_cdf(normal.cdf(-VARIANT_ALARM_QUANTILE) / task_count)


class JudgedDifference(NamedTuple):
    """The decisions on some variants, and the limit of their net share D that became wrong."""

    name: str
    """Kind of variant or name of a probe, after the task if there are several."""
    decisions: ChangedDecisions
    """Counts of the decisions that became wrong, and right."""
    limit: float
    """Largest D that is not flagged."""

    @property
    def is_flagged(self) -> bool:
        """Whether more decisions became wrong than chance explains."""
        return net_error_share(self.decisions) > self.limit

    @property
    def text(self) -> str:
        """The name, the net share D of decisions that became wrong, and its limit, as text."""
        return f"{self.name} D {net_error_share(self.decisions):+.4f} of at most {self.limit:.4f}"


def judged_differences(
    kinds: Mapping[str, ChangedDecisions],
    training: ChangedDecisions | None,
    other_probes: Mapping[str, VariantDecisions],
    extra_margin: float = 0.0,
    alarm_quantile: float = VARIANT_ALARM_QUANTILE,
) -> Iterator[JudgedDifference]:
    """Yield D and its limit for each kind of variant, training variants, and each other probe.

    `extra_margin` is added to the margins.
    """
    margin = VARIANT_MARGIN + extra_margin
    for kind, decisions in kinds.items():
        limit = difference_limit(decisions, margin, 1, alarm_quantile)
        yield JudgedDifference(kind, decisions, limit)
    if training is not None:
        limit = difference_limit(training, TRAINING_MARGIN + extra_margin, 1, alarm_quantile)
        yield JudgedDifference("training", training, limit)
    for probe_name, probe in other_probes.items():
        for kind, decisions in probe.kinds.items():
            limit = difference_limit(decisions, margin, probe.fits, alarm_quantile)
            yield JudgedDifference(f"{probe_name}, {kind}", decisions, limit)


def judged_task_differences(
    tasks: Mapping[str, TaskVariantDecisions],
) -> Iterator[JudgedDifference]:
    """Yield D and its limit for each of several tasks; nothing for a single task."""
    if len(tasks) < 2:  # noqa: PLR2004 (it is all together, with a smaller margin)
        return
    alarm_quantile = task_alarm_quantile(len(tasks))
    for task_id, task in tasks.items():
        for each in judged_differences(
            task.kinds, task.training, task.others, TASK_MARGIN, alarm_quantile
        ):
            yield each._replace(name=f"{task_id}, {each.name}")


def are_variants_flagged(
    kinds: Mapping[str, ChangedDecisions],
    training: ChangedDecisions | None,
    other_probes: Mapping[str, VariantDecisions] | None = None,
    tasks: Mapping[str, TaskVariantDecisions] | None = None,
) -> bool:
    """Return whether more decisions on variants became wrong than chance explains.

    The decisions of all tasks together are judged, then those of each of `tasks`.
    """
    differences = judged_differences(kinds, training, other_probes or {})
    return any(each.is_flagged for each in (*differences, *judged_task_differences(tasks or {})))


def variant_contradiction(result: VariantResult, expected_rows: int) -> str:
    """Return a contradiction in a result, or to the expected number of sequences; "" if none."""
    if result.rows != expected_rows:
        return f"{result.rows} sequences per task were varied, expected {expected_rows}"
    differences = judged_differences(result.kinds, result.training, result.others)
    for name, decisions, _ in (*differences, *judged_task_differences(result.tasks)):
        changed_count = decisions.worse + decisions.better
        if changed_count > decisions.rows:
            return f"{name}: {changed_count} of {decisions.rows} decisions changed"
    if result.tasks and pooled_decisions(result.tasks.values()) != pooled_decisions([result]):
        return "the sums of the decisions of the tasks are not the decisions of all together"
    if result.memorised != are_variants_flagged(
        result.kinds, result.training, result.others, result.tasks
    ):
        return f"memorised is {result.memorised}, which contradicts the numbers"
    return ""


def summed_decisions(decisions: Iterable[ChangedDecisions]) -> ChangedDecisions:
    """Return the sum of several counts of changed decisions."""
    counts = list(decisions)
    return ChangedDecisions(
        rows=sum(count.rows for count in counts),
        worse=sum(count.worse for count in counts),
        better=sum(count.better for count in counts),
    )


def task_decisions(decisions: Decisions) -> TaskVariantDecisions:
    """Return the decisions of a task's probes on variants, without those on fresh sequences."""
    return TaskVariantDecisions(
        kinds=decisions.kinds,
        training=decisions.training,
        others={
            name: VariantDecisions(fits=probe.fits, kinds=probe.kinds)
            for name, probe in decisions.others.items()
        },
    )


def pooled_decisions(tasks: Iterable[TaskVariantDecisions | VariantResult]) -> TaskVariantDecisions:
    """Return the sum of the decisions of several tasks."""
    tasks = list(tasks)
    kinds = _summed_by_kind([task.kinds for task in tasks])
    other_probes = {
        name: VariantDecisions(
            fits=max(task.others[name].fits for task in tasks if name in task.others),
            kinds=_summed_by_kind(
                [task.others[name].kinds for task in tasks if name in task.others]
            ),
        )
        for name in dict.fromkeys(name for task in tasks for name in task.others)
    }
    refits = [task.training for task in tasks if task.training is not None]
    training = summed_decisions(refits) if refits else None
    return TaskVariantDecisions(kinds=kinds, training=training, others=other_probes)


def variant_result(
    tasks: Mapping[str, TaskVariantDecisions],
    nonce: str,
    rows: int,
    *,
    reverse: bool,
    by_task: bool = True,
) -> VariantResult:
    """Return the decisions on variants, of each task and summed over all tasks.

    Without `by_task`, only the sum is in the result and decides, as in earlier records.
    """
    total = pooled_decisions(tasks.values())
    decisions_by_task = dict(tasks) if by_task else {}
    return VariantResult(
        nonce=nonce,
        rows=rows,
        reversed=reverse,
        kinds=total.kinds,
        training=total.training,
        others=total.others,
        tasks=decisions_by_task,
        memorised=are_variants_flagged(
            total.kinds, total.training, total.others, decisions_by_task
        ),
    )


def _summed_by_kind(
    decisions: Sequence[Mapping[str, ChangedDecisions]],
) -> dict[str, ChangedDecisions]:
    """Return the sum of the decisions for each kind of variant."""
    return {
        kind: summed_decisions(by_kind[kind] for by_kind in decisions if kind in by_kind)
        for kind in dict.fromkeys(kind for by_kind in decisions for kind in by_kind)
    }


def fresh_result(decisions: Mapping[str, Decisions], commitment: str) -> FreshResult | None:
    """Return the decisions on fresh sequences; None if no rerun task has fresh sequences."""
    tasks = {
        task: FreshTask(public=probe_decisions.public, fresh=probe_decisions.fresh)
        for task, probe_decisions in decisions.items()
        if probe_decisions.fresh is not None
    }
    if not tasks:
        return None
    other_probes: dict[str, dict[str, FreshTask]] = {}
    for task, decisions_of_task in decisions.items():
        for probe_name, probe_decisions in decisions_of_task.others.items():
            if probe_decisions.fresh is not None:
                fresh_task = FreshTask(
                    public=probe_decisions.public,
                    fresh=probe_decisions.fresh,
                    fits=probe_decisions.fits,
                )
                other_probes.setdefault(probe_name, {})[task] = fresh_task
    return FreshResult(
        commitment=commitment,
        tasks=tasks,
        others=other_probes,
        dropped=loses_accuracy(tasks, other_probes),
    )


def accuracy_loss(tasks: Mapping[str, FreshTask]) -> tuple[float, float]:
    """Return the loss of accuracy on fresh sequences, mean over tasks, and its standard error."""
    losses, variance = [], 0.0
    for task in tasks.values():
        losses.append(task.public.right / task.public.rows - task.fresh.right / task.fresh.rows)
        variance += task.fits * (_accuracy_variance(task.public) + _accuracy_variance(task.fresh))
    return math.fsum(losses) / len(losses), math.sqrt(variance) / len(losses)


def _accuracy_variance(decisions: LabelledDecisions) -> float:
    """Return the variance of the accuracy of decisions, with one right and one wrong one added."""
    share = (decisions.right + 1) / (decisions.rows + 2)
    return share * (1 - share) / decisions.rows


def loses_accuracy(
    tasks: Mapping[str, FreshTask],
    other_probes: Mapping[str, Mapping[str, FreshTask]] | None = None,
) -> bool:
    """Return whether a probe loses more accuracy on fresh sequences than chance explains."""
    losses = [accuracy_loss(fresh_tasks) for fresh_tasks in (tasks, *(other_probes or {}).values())]
    return any(
        loss > FRESH_MARGIN + FRESH_ALARM_QUANTILE * standard_error
        for loss, standard_error in losses
    )


def fresh_contradiction(fresh: FreshResult) -> str:
    """Return why the numbers of a fresh set contradict each other; "" if they do not."""
    for tasks in (fresh.tasks, *fresh.others.values()):
        for task_id, task in tasks.items():
            if any(decisions.right > decisions.rows for decisions in (task.public, task.fresh)):
                return f"more decisions on sequences of {task_id} are right than were made"
    if fresh.dropped != loses_accuracy(fresh.tasks, fresh.others):
        return f"dropped is {fresh.dropped}, which contradicts the numbers"
    return ""


def fresh_power(loss: float, fresh_count: int, public_count: int, accuracy: float = 0.75) -> float:
    """Return the probability that a true loss of accuracy on a fresh set is flagged.

    The probability is computed by a normal approximation. `fresh_count` and `public_count` are
    numbers of sequences, `accuracy` is that on the fresh ones.
    """
    public_accuracy = min(accuracy + loss, 1 - 1 / (public_count + 2))
    standard_error = math.sqrt(
        accuracy * (1 - accuracy) / fresh_count
        + public_accuracy * (1 - public_accuracy) / public_count
    )
    return 0.5 * math.erfc(
        -((loss - FRESH_MARGIN) / standard_error - FRESH_ALARM_QUANTILE) / math.sqrt(2)
    )


def variant_text(result: VariantResult) -> str:
    """Return the decisions on variants, with their limits, as one line."""
    texts = [
        f"{each.text} ({each.decisions.rows} sequences)"
        for each in judged_differences(result.kinds, result.training, {})
    ]
    other_differences = (
        *judged_differences({}, None, result.others),
        *judged_task_differences(result.tasks),
    )
    texts += [each.text for each in other_differences if each.is_flagged]
    return f"variants: {'; '.join(texts)}"


def fresh_text(fresh: FreshResult) -> str:
    """Return the accuracy on fresh sequences, compared with public ones, as one line."""
    loss, standard_error = accuracy_loss(fresh.tasks)
    sequence_count = sum(task.fresh.rows for task in fresh.tasks.values())
    mcc = math.fsum(task.public.MCC - task.fresh.MCC for task in fresh.tasks.values())
    flagged_probes = {
        name: accuracy_loss(fresh_tasks)
        for name, fresh_tasks in fresh.others.items()
        if loses_accuracy(fresh_tasks)
    }
    flagged_text = "".join(
        f"; by {name} {-loss:+.4f} ({probe_error:.4f})"
        for name, (loss, probe_error) in flagged_probes.items()
    )
    return (
        f"fresh set: {sequence_count} sequences of {plural(len(fresh.tasks), 'task')}, accuracy "
        f"{-loss:+.4f} (standard error {standard_error:.4f}) and MCC "
        f"{-mcc / len(fresh.tasks):+.4f} beside the public test sequences{flagged_text}; "
        f"more than {FRESH_MARGIN:g} is not explained by chance"
    )
