"""What a rule is: one name, three texts and a pure function."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from geneb_ci.check.change import Change, ChangeFault
from geneb_ci.check.context import Context
from geneb_ci.check.need import Need
from geneb_ci.common.finding import Severity
from geneb_ci.submission.fault import Fault

Check = Callable[[Context], Iterator[Fault]]
ChangeCheck = Callable[[Change], Iterator[ChangeFault]]
RULES = "geneb_ci.check.rules"


@dataclass(frozen=True)
class AnyRule:
    """One fault that can be found.

    `what` says when it is raised, `why` what it would cost to let it through, `fix` the cure. They
    are the text of `geneb-ci explain`, of RULES.md and of every finding.
    """

    id: str
    severity: Severity
    what: str
    why: str
    fix: str
    check: Callable[[Any], Iterator[Any]]
    needs: tuple[Need, ...] = ()
    """What must be at hand for it to be run, the plainest first."""

    @property
    def family(self) -> str:
        """The folder the rule lies in, below `geneb_ci/check/rules`."""
        return self.check.__module__.removeprefix(f"{RULES}.").split(".")[0]


@dataclass(frozen=True)
class Rule(AnyRule):
    """One fault a submission can have: `geneb-ci check` looks for it in a file."""

    check: Check


@dataclass(frozen=True)
class ChangeRule(AnyRule):
    """One fault a pull request can have: `geneb-ci reconcile` looks for it in what it changes."""

    check: ChangeCheck


def reported(
    family: str, rule_id: str, *, what: str, why: str, fix: str, needs: tuple[Need, ...] = ()
) -> Rule:
    """Return a rule, an error, whose faults were already found while the file was read."""

    def check(context: Context) -> Iterator[Fault]:
        yield from context.reported.get(rule_id, ())

    check.__module__ = f"{RULES}.{family}.{rule_id.replace('-', '_')}"  # as if it had a file
    return Rule(rule_id, Severity.ERROR, what, why, fix, check, needs)
