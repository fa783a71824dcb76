"""What is left of work, in words."""

from geneb_ci.receipt.cells import RemainingTime


def test_what_is_left_follows_from_what_was_done() -> None:
    now = [100.0]
    left = RemainingTime(10.0, clock=lambda: now[0])
    assert left.text(0) == ""
    now[0] += 4
    assert (left.text(1), left.is_due()) == (", about 36 s left", False)
    now[0] += 96
    assert (left.text(4), left.is_due()) == (", about 2 min left", True)
