"""Six tries, each of which reads first: whatever became of the try before, it is seen."""

import time
from collections.abc import Callable
from typing import Protocol, TypeVar

from geneb_ci.publish.faults import GaveUp, Limited, Moved, Setback, Unknown, Unstored

T = TypeVar("T")

# A head that moves six times in a row is no accident, and a token that may only open pull requests
# gets 412 for ever (huggingface/datasets issue 7777).
TRIES = 6
FIRST_WAIT_S = 2.0  # doubled after each try: 2, 4, 8, 16, 32
# The Hub counts requests in windows of 300 s; a wait that is longer is better spent by another run.
WAIT_MAX_S = 600.0
# A Hub that takes calls and answers none costs the limit of an answer with each try: after two of
# them there is no point in four more. Pauses do not count, and neither does what was answered.
SILENT_MAX_S = 200.0
_LATER = "run the command again later: it reads what became of them first"


class Clock(Protocol):
    """What waits; tests have one that does not."""

    def sleep(self, seconds: float, /) -> None:
        """Wait."""


def attempt(
    one_try: Callable[[], T], *, clock: Clock = time, say: Callable[[str], None] = lambda _: None
) -> T:
    """Try until it works, `TRIES` times at most. Raises GaveUp, and any fault at once.

    412 is tried again at once, since reading anew is the cure; 429 after the time the Hub names;
    409, 5xx and lost answers after a wait that doubles. Two tries are made, however long they take.
    """
    wait = FIRST_WAIT_S
    last, silent = "", 0.0
    for number in range(1, TRIES + 1):
        began = time.monotonic()
        try:
            return one_try()
        except Setback as setback:
            last = str(setback)
            if isinstance(setback, Unknown | Unstored):
                silent += time.monotonic() - began
            pause = 0.0 if isinstance(setback, Moved) else wait
            if isinstance(setback, Limited) and setback.wait_s is not None:
                # One second more: the Hub names whole seconds.
                pause = setback.wait_s + 1
        wait *= 2
        if pause > WAIT_MAX_S:
            raise GaveUp(
                f"{last}: the Hub wants a pause of {pause:.0f} s",
                "run the command again after that; publishing twice changes nothing",
            )
        if silent > SILENT_MAX_S and 1 < number < TRIES:
            raise GaveUp(f"{number} tries failed in {silent:.0f} s; the last: {last}", _LATER)
        if number < TRIES:
            say(f"try {number} of {TRIES}: {last}; again after {pause:.0f} s")
            if pause:
                clock.sleep(pause)
    raise GaveUp(f"{TRIES} tries failed; the last: {last}", _LATER)
