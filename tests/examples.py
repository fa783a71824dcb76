"""How many examples a property is tried with: fewer where a change is gated than by night."""

from hypothesis import settings

NIGHT, GATE = 100, 15


def choose(*, derandomize: bool, gate: bool) -> None:
    """Let every property try as many examples as fit a gate or a night.

    A busy machine is no fault of the code: what is slow, `benchmarks` says.
    """
    count = GATE if gate else NIGHT
    settings.register_profile(
        "geneb-ci", deadline=None, derandomize=derandomize, max_examples=count
    )
    settings.load_profile("geneb-ci")


def gate_a_change() -> bool:
    """Return whether these tests gate a change; by night, and outside of tests, they do not."""
    return settings().max_examples < NIGHT


def examples(by_night: int) -> int:
    """Return how many examples a property is to try, of a number that is right by night."""
    return max(1, by_night * settings().max_examples // NIGHT)
