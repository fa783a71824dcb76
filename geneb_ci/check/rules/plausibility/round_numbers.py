"""round-numbers: more round values than computed scores have."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity
from geneb_ci.statistics.view import score_of
from geneb_ci.submission.fault import Fault

ID = "round-numbers"
# Not accuracy: 0.75 is likely with 1,000 sequences. MCC and F1 are seldom round.
METRICS = ("MCC", "F1")
# With fewer values the counts below are too noisy.
VALUES_MIN = 50
# A file counts as rounded if 90 % of its values have at most this many decimals.
FULL_DECIMALS = 6
# Two decimals hide the differences between neighbours on the board and defeat arithmetic checks.
COARSE = 2
# In a file of full precision, values of at most 4 decimals are rare: the 41 public rows have one
# nonzero case in 24,600 (F1 0.7).
SHORT_DECIMALS = 4
SHORT_MAX = 3
# In a rounded file one last digit in five is 0 or 5. An honest file of 600 values exceeds 6
# standard deviations once in a hundred million.
DEVIATIONS = 6.0


def check(context: Context) -> Iterator[Fault]:
    """Report few decimals, round values in an unrounded file, and too many last digits 0 and 5."""
    cells = [c for c in context.cells if c.regime in context.benchmark.regimes]
    values = [c.scores[m] for c in cells for m in METRICS if m in c.scores]
    lengths = [n for value in values if value and (n := decimals(value)) is not None]
    if len(lengths) < VALUES_MIN:
        return
    grid = sorted(lengths)[int(0.9 * (len(lengths) - 1))]
    if grid <= COARSE:
        yield _fault(f"scores have {grid} decimals", f"{grid} decimals", "4 decimals or more", 1.0)
    elif grid > FULL_DECIMALS:
        short = sum(n <= SHORT_DECIMALS for n in lengths)
        if short >= SHORT_MAX:
            message = f"{short} values have at most {SHORT_DECIMALS} decimals; most have {grid}"
            score = score_of(short, SHORT_MAX)
            yield _fault(message, f"{short} round values", "digits as computed", score)
    else:
        # A value with fewer decimals than the file ends in 0.
        ends = sum(
            n < grid or round(v * 10**grid) % 5 == 0 for v in values if v and (n := decimals(v))
        )
        excess = (ends - 0.2 * len(lengths)) / (0.16 * len(lengths)) ** 0.5
        if excess > DEVIATIONS:
            message = (
                f"{ends} of {len(lengths)} values of MCC and F1 end in 0 or 5 at decimal {grid}"
            )
            score = score_of(excess, DEVIATIONS)
            yield _fault(message, f"{ends} of {len(lengths)}", "about one in five", score)


def decimals(value: float) -> int | None:
    """Return the number of decimals of `repr(value)`; None if it has an exponent."""
    text = repr(float(value))
    if "e" in text or "n" in text:
        return None
    tail = text.partition(".")[2]
    return 0 if tail == "0" else len(tail)


def _fault(message: str, found: str, expected: str, score: float) -> Fault:
    return Fault(ID, ("results",), message, found, expected, on_key=True, score=score)


RULE = Rule(
    id=ID,
    severity=Severity.WARNING,
    what="More values are round than in computed scores, or all are rounded to two decimals.",
    why="Typed numbers are often round, computed ones seldom; two decimals defeat other checks.",
    fix="Submit the file as the harness wrote it.",
    check=check,
)
