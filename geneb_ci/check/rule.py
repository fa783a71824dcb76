"""A rule: an id, three texts and a pure function."""

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
    """One kind of problem that can be found.

    `what` states the problem, `why` the harm it does, `fix` how to fix it. `geneb-ci explain`,
    RULES.md and the findings show these texts.
    """

    id: str
    severity: Severity
    what: str
    why: str
    fix: str
    check: Callable[[Any], Iterator[Any]]
    needs: tuple[Need, ...] = ()
    """What the rule requires, in the order in which unmet needs are reported."""

    @property
    def family(self) -> str:
        """The rule's folder below `geneb_ci/check/rules`."""
        return self.check.__module__.removeprefix(f"{RULES}.").split(".")[0]


@dataclass(frozen=True)
class Rule(AnyRule):
    """A rule about one file, run by `geneb-ci check`."""

    check: Check


@dataclass(frozen=True)
class ChangeRule(AnyRule):
    """A rule about what a pull request changes, run by `geneb-ci reconcile`."""

    check: ChangeCheck


def reported(
    family: str, rule_id: str, *, what: str, why: str, fix: str, needs: tuple[Need, ...] = ()
) -> Rule:
    """Return a rule of severity error whose faults were already found while the file was read."""

    def check(context: Context) -> Iterator[Fault]:
        yield from context.reported.get(rule_id, ())

    check.__module__ = f"{RULES}.{family}.{rule_id.replace('-', '_')}"  # as if it had a file
    return Rule(rule_id, Severity.ERROR, what, why, fix, check, needs)
