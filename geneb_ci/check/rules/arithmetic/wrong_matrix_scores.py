"""wrong-matrix-scores: scores are not those of the confusion matrices beside them."""

import math
from collections.abc import Iterator, Sequence

from geneb_ci.check.claims import MatrixClaims
from geneb_ci.check.context import Context
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, quoted
from geneb_ci.statistics.confusion import scores_of_matrix
from geneb_ci.statistics.printed import EXACT, Reading, Triple, distinct_text
from geneb_ci.submission.fault import Fault

ID = "wrong-matrix-scores"


def check(context: Context) -> Iterator[Fault]:
    """Report each cell with a seed, or a canonical mean, that its matrices do not give."""
    for claim in context.matrix_claims:
        for number, reading, expected in _pairs(claim):
            if reading.holds(expected, EXACT):
                continue
            found, computed = distinct_text(reading.value, expected)
            whose = "the mean" if number is None else f"seed {number} of {len(claim.matrices)}"
            yield Fault(
                ID,
                claim.path,
                f'{quoted(claim.task.id)} in "{claim.regime}": {whose} has {found}; its confusion '
                f"{'matrices give' if number is None else 'matrix gives'} {computed}",
                found,
                computed,
                on_key=True,
            )
            break


def _pairs(claim: MatrixClaims) -> Iterator[tuple[int | None, Reading, Triple]]:
    """Yield each reported triple with the one its matrices give, and its seed, from 1."""
    computed = [scores_of_matrix(one) for one in claim.matrices]
    if len(claim.scores) == len(computed) and claim.path[-2] != "canonical":
        yield from zip(range(1, len(computed) + 1), claim.scores, computed, strict=True)
    else:
        for reading in claim.scores[:1]:
            yield None, reading, mean_of(computed)


def mean_of(triples: Sequence[Triple]) -> Triple:
    """Return the mean of each metric."""
    return Triple(*(math.fsum(column) / len(triples) for column in zip(*triples, strict=True)))


RULE = Rule(
    id=ID,
    severity=Severity.ERROR,
    what="Scores are not those of the confusion matrices beside them.",
    why=(
        "MCC, accuracy and F1 of a seed follow from its confusion matrix in whole numbers, for any "
        "number of classes: one of the two was changed after the run."
    ),
    fix="Write scores and evidence together, with `geneb-harness run --submission FILE`.",
    check=check,
)
