"""missing-evidence: a format 1.1 file has scores without per-seed values."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, first_and_more, plural
from geneb_ci.submission.fault import Fault
from geneb_ci.submission.structure import version_of

ID = "missing-evidence"


def check(context: Context) -> Iterator[Fault]:
    """Report, once per regime, the scored tasks without evidence; format 1.0 has no evidence."""
    if version_of(context.document.value) in {None, "1.0"} or context.member("evidence") is None:
        return
    for regime in context.benchmark.regimes:
        evidence = context.table("evidence", regime)
        scored = (t for t in context.table("results", regime) if t in context.benchmark.by_id)
        lacking = [task for task in scored if task not in evidence]
        if lacking:
            yield Fault(
                ID,
                ("evidence", regime) if evidence else ("evidence",),
                f'evidence is missing for {plural(len(lacking), "cell")} of "{regime}": '
                f"{first_and_more(lacking)}",
                f"evidence for {plural(len(evidence), 'cell')}",
                f"evidence for {plural(len(evidence) + len(lacking), 'cell')}",
                on_key=True,
            )


RULE = Rule(
    id=ID,
    severity=Severity.ERROR,
    what="Scores of format 1.1 have no evidence.",
    why="Anyone can check a mean from its per-seed values; without them nobody can.",
    fix=(
        "Write the file with `geneb-harness run --submission FILE`, or use format 1.0, which has "
        "no evidence."
    ),
    check=check,
)
