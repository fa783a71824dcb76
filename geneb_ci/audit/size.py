"""How many tasks a draw takes: what is committed, or more."""

from collections.abc import Sequence
from fractions import Fraction

from geneb_ci.audit.commitment import Commitment
from geneb_ci.audit.power import Design
from geneb_ci.audit.sampling import parts_of
from geneb_ci.errors import UsageProblem


def design_of(tasks: Sequence[str], strata: Sequence[Sequence[str]]) -> Design:
    """Give what a sample of these tasks is drawn from; without strata, from all alike."""
    if not strata:
        return Design((len(tasks),))
    return Design(tuple(len(part) for part in parts_of(tasks, strata)), len(strata))


def size_of(commitment: Commitment, drawn: int | None, wanted: int, before: int) -> int:
    """Give k: what is committed, or more where that is asked for or was drawn before."""
    committed = commitment.policy.drawn
    if drawn is not None and drawn < max(committed, before):
        raise UsageProblem(
            f"--drawn {drawn} would lower the sample: {committed} tasks are committed"
            + (f", and {before} were drawn" if before > committed else ""),
            "a sample may be raised, and never lowered; leave out --drawn",
        )
    return max(committed, drawn or 0, wanted, before)


def probability(text: str, option: str) -> Fraction:
    """Read a probability exactly as it is written. Raises UsageProblem when it is none."""
    try:
        found = Fraction(text)
    except (ValueError, ZeroDivisionError):
        found = Fraction(-1)
    if not 0 < found <= 1:
        raise UsageProblem(
            f"{option} {text!r} is not a probability", "write a number above 0, at most 1: 0.95"
        )
    return found
