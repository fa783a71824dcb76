"""Rules on evidence: seeds, test sizes, matrices and digests must agree with the scores."""

import itertools
import math
from collections.abc import Iterator, Sequence

from geneb_ci.check.claims import METRIC_BY_FIELD, MatrixClaims, ScoreClaim, fit_count_of
from geneb_ci.check.rule import Context, Rule
from geneb_ci.common.finding import Fault, Need, Severity
from geneb_ci.statistics.binary import fitting_table_count
from geneb_ci.statistics.metrics import (
    SINGLE_HALF_WIDTH,
    UNROUNDED_HALF_WIDTH,
    ReportedTriple,
    Triple,
    distinct_texts,
    scores_of_matrix,
    true_class_sizes,
)
from reference_harness.formats.text import quoted


def wrong_seed_mean(context: Context) -> Iterator[Fault]:
    """Report each metric that differs from the mean of its seeds by more than rounding."""
    reported_by_path = {claim.path: claim.reported for claim in context.claims}
    for claim in context.seed_claims:
        reported = reported_by_path.get(("results", claim.regime, claim.task.id))
        if reported is None:
            continue
        for name, metric in METRIC_BY_FIELD.items():
            seeds = [getattr(seed.value, name) for seed in claim.seed_triples]
            width = max(getattr(seed.width, name) for seed in claim.seed_triples)
            mean, claimed = math.fsum(seeds) / len(seeds), getattr(reported.value, name)
            if abs(mean - claimed) > width + getattr(reported.width, name):
                yield Fault(
                    WRONG_SEED_MEAN.id,
                    ("results", claim.regime, claim.task.id, metric),
                    f'{metric} of {quoted(claim.task.id)} in "{claim.regime}" is {claimed!r}, but '
                    f"the mean of its {len(seeds)} seeds is {mean!r}",
                    repr(claimed),
                    repr(mean),
                )


WRONG_SEED_MEAN = Rule(
    id="wrong-seed-mean",
    severity=Severity.ERROR,
    what="A reported mean is not the mean of its seeds.",
    why=(
        "One of the two was changed after the run. The board shows the mean; audits rerun the "
        "seeds."
    ),
    fix="Write scores and evidence together, with `geneb-harness run --submission FILE`.",
    check=wrong_seed_mean,
)


def seeds_differ_in_full(context: Context) -> Iterator[Fault]:
    """Report each cell whose seeds differ although they train on the same sequences."""
    for claim in context.seed_claims:
        if fit_count_of(context.benchmark, claim.regime) > 1:
            continue
        columns = zip(*(reported.value for reported in claim.seed_triples), strict=True)
        metric_names = ("MCC", "accuracy", "F1")
        for name, column in zip(metric_names, columns, strict=True):
            if max(column) - min(column) <= UNROUNDED_HALF_WIDTH:
                continue
            yield Fault(
                SEEDS_DIFFER_IN_FULL.id,
                claim.path,
                f'the seeds of {quoted(claim.task.id)} in "{claim.regime}" differ: {name} ranges '
                f"from {min(column)!r} to {max(column)!r}",
                "values that differ",
                f"{len(column)} equal values",
                on_key=True,
            )
            break


SEEDS_DIFFER_IN_FULL = Rule(
    id="seeds-differ-in-full",
    severity=Severity.ERROR,
    what="Seeds differ in a regime without random sampling.",
    why=(
        "With all training data every seed trains on the same rows, and the fit is deterministic: "
        "different values come from another protocol, or from noise that was added."
    ),
    fix="Fit once on all training rows, in their order, and report its scores for each seed.",
    check=seeds_differ_in_full,
)


def wrong_test_size(context: Context) -> Iterator[Fault]:
    """Report each cell whose n_test is not the benchmark's number of test sequences."""
    for regime in context.benchmark.regimes:
        cells = context.table("evidence", regime)
        for task in context.benchmark.tasks:
            n_test = (
                context.member("evidence", regime, task.id, "n_test") if task.id in cells else None
            )
            if task.n_test is not None and type(n_test) in {int, float} and n_test != task.n_test:
                yield Fault(
                    WRONG_TEST_SIZE.id,
                    ("evidence", regime, task.id, "n_test"),
                    f'{quoted(task.id)} in "{regime}" was scored on {quoted(n_test)} sequences; '
                    f"its test split has {task.n_test}",
                    quoted(n_test),
                    str(task.n_test),
                )


WRONG_TEST_SIZE = Rule(
    id="wrong-test-size",
    severity=Severity.ERROR,
    what="The number of test sequences in the evidence is not the size of the test split.",
    why="Scores on a part of the test split, or on other data, are not comparable with other rows.",
    fix="Run `geneb-ci data pull` and `geneb-ci data verify`, then score the whole test split.",
    check=wrong_test_size,
    needs=(Need.TEST_SIZES,),
)


def wrong_matrix_size(context: Context) -> Iterator[Fault]:
    """Report each cell whose matrices have other classes, sizes or sums than the test split."""
    for claim in context.matrix_claims:
        _, regime, task = claim.path[:3]
        cell = context.table("evidence", str(regime), str(task))
        labels = cell.get("classes")
        contradiction = _size_contradiction(
            claim, cell.get("n_test"), labels if isinstance(labels, list) else None
        )
        if contradiction is not None:
            message, actual, expected = contradiction
            subject = f'the confusion matrices of {quoted(claim.task.id)} in "{claim.regime}"'
            yield Fault(
                WRONG_MATRIX_SIZE.id,
                claim.path,
                f"{subject} {message}",
                actual,
                expected,
                on_key=True,
            )


def _size_contradiction(
    claim: MatrixClaims, n_test: object, labels: list[object] | None
) -> tuple[str, str, str] | None:
    """Return the end of a message, what was found and what was expected; None if all agree."""
    if labels is not None:
        if any(len(matrix) != len(labels) for matrix in claim.matrices):
            sizes = sorted({len(matrix) for matrix in claim.matrices})
            size = f"{sizes[0]} x {sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
            return (
                f"are {size}, for {_class_count_text(len(labels))}",
                size,
                (f"{len(labels)} x {len(labels)}"),
            )
        if any(a >= b for a, b in itertools.pairwise(labels)):  # type: ignore[operator]
            return "have classes that do not ascend", "unordered classes", "ascending classes"
    class_counts_by_seed = [true_class_sizes(matrix) for matrix in claim.matrices]
    if any(class_counts != class_counts_by_seed[0] for class_counts in class_counts_by_seed):
        return (
            "differ in how many sequences a class has",
            "different true classes",
            "the same test split for every seed",
        )
    total = sum(class_counts_by_seed[0])
    if type(n_test) is int and total != n_test:
        return f"count {total} sequences, but n_test is {n_test}", str(total), str(n_test)
    counts = claim.task.test_class_counts
    found_counts = sorted(count for count in class_counts_by_seed[0] if count)
    if counts is not None and found_counts != sorted(counts):
        return (
            f"have test classes of {found_counts} sequences; the test split has {sorted(counts)}",
            str(found_counts),
            str(sorted(counts)),
        )
    return None


def _class_count_text(number: int) -> str:
    """Return a number of classes in words."""
    return "1 class" if number == 1 else f"{number} classes"


WRONG_MATRIX_SIZE = Rule(
    id="wrong-matrix-size",
    severity=Severity.ERROR,
    what="The row sums of a confusion matrix are not the class counts of the test split.",
    why=(
        "Every score of a cell follows from its matrices. Matrices of other sequences, or of "
        "another number of classes, are of other data or were made up."
    ),
    fix="Write scores and evidence together, with `geneb-harness run --submission FILE`.",
    check=wrong_matrix_size,
)


def wrong_matrix_scores(context: Context) -> Iterator[Fault]:
    """Report each cell with a seed's scores, or a canonical mean, that its matrices contradict."""
    for claim in context.matrix_claims:
        for number, reported, expected in _seed_comparisons(claim):
            if reported.agrees_with(expected, UNROUNDED_HALF_WIDTH):
                continue
            claimed, computed = distinct_texts(reported.value, expected)
            source = "the mean" if number is None else f"seed {number} of {len(claim.matrices)}"
            yield Fault(
                WRONG_MATRIX_SCORES.id,
                claim.path,
                f'{quoted(claim.task.id)} in "{claim.regime}": {source} has {claimed}; its '
                f"confusion {'matrices give' if number is None else 'matrix gives'} {computed}",
                claimed,
                computed,
                on_key=True,
            )
            break


def _seed_comparisons(claim: MatrixClaims) -> Iterator[tuple[int | None, ReportedTriple, Triple]]:
    """Yield each seed's number (None for the mean), its reported scores and its matrix's scores."""
    computed = [scores_of_matrix(matrix) for matrix in claim.matrices]
    if len(claim.scores) == len(computed) and claim.path[-2] != "canonical":
        yield from zip(range(1, len(computed) + 1), claim.scores, computed, strict=True)
    else:
        for reported in claim.scores[:1]:
            yield None, reported, mean_of(computed)


def mean_of(triples: Sequence[Triple]) -> Triple:
    """Return the mean of each metric."""
    return Triple(*(math.fsum(column) / len(triples) for column in zip(*triples, strict=True)))


WRONG_MATRIX_SCORES = Rule(
    id="wrong-matrix-scores",
    severity=Severity.ERROR,
    what="Scores are not those of the confusion matrices beside them.",
    why=(
        "MCC, accuracy and F1 of a seed follow from its confusion matrix in whole numbers, for any "
        "number of classes: one of the two was changed after the run."
    ),
    fix="Write scores and evidence together, with `geneb-harness run --submission FILE`.",
    check=wrong_matrix_scores,
)


def repeated_digest(context: Context) -> Iterator[Fault]:
    """Report each digest of predictions that an earlier cell has too, with another size or scores.

    Two tasks of the same size may share a digest if all predictions are constant.
    """
    triples_by_cell = {
        claim.path[:3]: [reported.value for reported in claim.seed_triples]
        for claim in context.seed_claims
    }
    first_cell_by_digest: dict[str, tuple[str, str]] = {}
    for regime in context.benchmark.regimes:
        for task, cell in context.table("evidence", regime).items():
            task_facts = context.benchmark.by_id.get(task)
            digest = cell.get("predictions_sha256") if isinstance(cell, dict) else None
            if task_facts is None or task_facts.n_test is None or not isinstance(digest, str):
                continue
            if digest not in first_cell_by_digest:
                first_cell_by_digest[digest] = (regime, task)
                continue
            first_regime, first_task = first_cell_by_digest[digest]
            has_same_size = context.benchmark.by_id[first_task].n_test == task_facts.n_test
            scores, other_scores = (
                triples_by_cell.get(("evidence", *cell))
                for cell in ((regime, task), (first_regime, first_task))
            )
            if has_same_size and (first_task != task or scores == other_scores):
                continue
            yield Fault(
                REPEATED_DIGEST.id,
                ("evidence", regime, task, "predictions_sha256"),
                f'the predictions of {quoted(task)} in "{regime}" have the same digest as those of '
                f'{quoted(first_task)} in "{first_regime}", but the '
                f"{'scores' if has_same_size else 'sizes of the test sets'} differ",
                quoted(digest),
                "a different digest",
            )


REPEATED_DIGEST = Rule(
    id="repeated-digest",
    severity=Severity.ERROR,
    what="Two cells have one digest of their predictions, but their scores or test sets differ.",
    why=(
        "An audit compares the predictions of a rerun with this digest. Different predictions have "
        "different digests, so at least one of the two was not computed from its predictions."
    ),
    fix="Write the evidence with `geneb-harness run --submission FILE`; do not edit it by hand.",
    check=repeated_digest,
    needs=(Need.TEST_SIZES,),
)


STATED_MATRICES_MAX = 1000
"""Maximum number of matrices fitting a cell that a message states exactly."""


def rounded_scores(context: Context) -> Iterator[Fault]:
    """Report each regime without seeds whose rounded scores fit several confusion matrices.

    Scores with two decimals are reported by `round-numbers` instead.
    """
    if context.rounding and context.rounding.is_coarse:
        return
    for regime in context.benchmark.regimes:
        claims = [claim for claim in context.claims if claim.path[:2] == ("results", regime)]
        matrix_counts = {claim.task.id: _matrix_count(claim) for claim in claims}
        ambiguous_counts = {
            task: matrix_count for task, matrix_count in matrix_counts.items() if matrix_count > 1
        }
        if ambiguous_counts:
            worst_task = max(ambiguous_counts, key=lambda task: ambiguous_counts[task])
            count_text = (
                f"more than {STATED_MATRICES_MAX}"
                if ambiguous_counts[worst_task] > STATED_MATRICES_MAX
                else str(ambiguous_counts[worst_task])
            )
            yield Fault(
                ROUNDED_SCORES.id,
                ("results", regime),
                f'the scores of "{regime}" were rounded: {len(ambiguous_counts)} of its '
                f"{len(claims)} cells "
                f"fit more than one confusion matrix, and {quoted(worst_task)} fits {count_text}",
                f"{count_text} matrices",
                "one matrix",
                on_key=True,
            )


def _matrix_count(claim: ScoreClaim) -> int:
    """Return the number of matrices that fit a rounded cell.

    Return 0 if the cell was not rounded, is a mean over seeds, or has more than two classes.
    """
    if (
        claim.classes is None
        or claim.fit_count > 1
        or max(claim.reported.width) <= SINGLE_HALF_WIDTH
    ):
        return 0
    return fitting_table_count(claim.classes, claim.reported, STATED_MATRICES_MAX)


ROUNDED_SCORES = Rule(
    id="rounded-scores",
    severity=Severity.NOTE,
    what="Scores were rounded, so that several confusion matrices fit them.",
    why=(
        "Unrounded scores determine one confusion matrix, which confirms the cell and gives its "
        "confidence interval; with rounded scores small errors go unnoticed."
    ),
    fix="Report the scores as computed, with all digits.",
    check=rounded_scores,
    needs=(Need.CLASS_SIZES,),
)
