"""Slows the harness by 0.6 seconds for each task that it scores, so that a test can kill it there.

tests/forked.py calls `install` in the command, of which the harness is a fork.
"""

import time

from reference_harness.receipt import scoring

SECONDS = 0.6


def install() -> None:
    """Put a wait before the scores of a task."""
    execute = scoring.CellsJob.execute

    def slow(self: scoring.CellsJob) -> scoring.CellsResult:
        time.sleep(SECONDS)
        return execute(self)

    scoring.CellsJob.execute = slow  # type: ignore[method-assign]
