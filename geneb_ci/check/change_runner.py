"""Runs the rules of a pull request over what it changes."""

from collections.abc import Iterable, Iterator

from geneb_ci.check.change import Change, ChangeFault
from geneb_ci.check.registry import BY_ID, CHANGE_RULES
from geneb_ci.check.rule import AnyRule, ChangeRule
from geneb_ci.check.runner import crash_message
from geneb_ci.finding import Finding

# Findings of one rule: enough to mend the change, few enough to read.
PATHS_MAX = 20


def change_findings(change: Change, rules: Iterable[ChangeRule] = CHANGE_RULES) -> list[Finding]:
    """Give every finding of a change, in the order of file and rule."""
    return sorted(_findings(change, rules), key=Finding.sort_key)


def _findings(change: Change, rules: Iterable[ChangeRule]) -> Iterator[Finding]:
    for rule in rules:
        try:
            faults = list(rule.check(change))
        except Exception as error:  # noqa: BLE001 (whatever a rule raises is our fault, and shown)
            crash = ChangeFault("check-crashed", "", crash_message(rule, error), rule.id)
            yield _finding(BY_ID["check-crashed"], crash)
            continue
        yield from (_finding(rule, fault) for fault in faults[:PATHS_MAX])
        if len(faults) > PATHS_MAX:
            more = len(faults) - PATHS_MAX
            message = f"{more:,} more paths have the fault {rule.id}"
            yield _finding(rule, ChangeFault(rule.id, "", message, f"{len(faults)} paths", "none"))


def _finding(rule: AnyRule, fault: ChangeFault) -> Finding:
    return Finding(
        rule=rule.id,
        severity=rule.severity,
        message=fault.message,
        file=fault.file,
        pointer="",
        line=1,
        column=1,
        found=fault.found,
        expected=fault.expected,
        fix=fault.fix or rule.fix,
    )
