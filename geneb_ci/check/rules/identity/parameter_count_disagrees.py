"""parameter-count-disagrees: the parameter count differs from the model registry."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity
from geneb_ci.submission.fault import Fault

ID = "parameter-count-disagrees"


def check(context: Context) -> Iterator[Fault]:
    """Report a count that differs from both counts in the model registry (actual and in paper)."""
    params = context.member("meta", "params")
    facts = context.facts
    known = [facts[key] for key in ("params", "params_in_paper") if key in facts]
    if known and type(params) is int and params not in known:
        yield Fault(
            ID,
            ("meta", "params"),
            f"params is {params:,}; the model registry has {' or '.join(f'{n:,}' for n in known)}",
            str(params),
            " or ".join(map(str, known)),
        )


RULE = Rule(
    id=ID,
    severity=Severity.WARNING,
    what="The parameter count differs from that in the model registry.",
    why="The board plots score against parameter count.",
    fix="Count the parameters of the encoder; if the registry is wrong, open an issue.",
    check=check,
)
