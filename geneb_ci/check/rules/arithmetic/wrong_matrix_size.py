"""wrong-matrix-size: confusion matrices do not have the sequences of the test split."""

import itertools
from collections.abc import Iterator

from geneb_ci.check.claims import MatrixClaims
from geneb_ci.check.context import Context
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, quoted
from geneb_ci.statistics.confusion import truths
from geneb_ci.submission.fault import Fault

ID = "wrong-matrix-size"


def check(context: Context) -> Iterator[Fault]:
    """Report each cell whose matrices have other classes, sizes or sums than they must."""
    for claim in context.matrix_claims:
        _, regime, task = claim.path[:3]
        cell = context.table("evidence", str(regime), str(task))
        labels = cell.get("classes")
        wrong = _wrong(claim, cell.get("n_test"), labels if isinstance(labels, list) else None)
        if wrong is not None:
            message, found, expected = wrong
            place = f'the confusion matrices of {quoted(claim.task.id)} in "{claim.regime}"'
            yield Fault(ID, claim.path, f"{place} {message}", found, expected, on_key=True)


def _wrong(
    claim: MatrixClaims, n_test: object, labels: list[object] | None
) -> tuple[str, str, str] | None:
    """Return the first contradiction: how the message goes on, found, expected."""
    if labels is not None:
        if any(len(one) != len(labels) for one in claim.matrices):
            sizes = sorted({len(one) for one in claim.matrices})
            found = f"{sizes[0]} x {sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
            return (
                f"are {found}, for {_classes(len(labels))}",
                found,
                (f"{len(labels)} x {len(labels)}"),
            )
        if any(a >= b for a, b in itertools.pairwise(labels)):  # type: ignore[operator]
            return "have classes that do not ascend", "unordered classes", "ascending classes"
    rows = [truths(one) for one in claim.matrices]
    if any(one != rows[0] for one in rows):
        return (
            "differ in how many sequences a class has",
            "different true classes",
            "the same test split for every seed",
        )
    total = sum(rows[0])
    if type(n_test) is int and total != n_test:
        return f"count {total} sequences, and n_test is {n_test}", str(total), str(n_test)
    counts = claim.task.test_class_counts
    present = sorted(count for count in rows[0] if count)
    if counts is not None and present != sorted(counts):
        return (
            f"have test classes of {present} sequences; the test split has {sorted(counts)}",
            str(present),
            str(sorted(counts)),
        )
    return None


def _classes(number: int) -> str:
    return "1 class" if number == 1 else f"{number} classes"


RULE = Rule(
    id=ID,
    severity=Severity.ERROR,
    what="Confusion matrices do not have the sequences of the test split.",
    why=(
        "Every score of a cell follows from its matrices. Matrices of other sequences, or of "
        "another number of classes, are of other data or were made up."
    ),
    fix="Write scores and evidence together, with `geneb-harness run --submission FILE`.",
    check=check,
)
