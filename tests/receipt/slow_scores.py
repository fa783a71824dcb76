"""Slows the harness by 0.6 seconds for one task that it scores, so that a test can kill it there.

tests/forked.py calls `install` in the command, of which the harness is a fork.
"""

import time

from reference_harness.receipt import cells

SECONDS = 0.6
TASK = "third"
"""Task that takes so long: the last one of a receipt of tests/receipt/written.py."""


def install() -> None:
    """Put a wait before the scores of the task."""
    execute = cells.CellsJob.execute

    def slow(self: cells.CellsJob) -> cells.CellsResult:
        if self.task_id == TASK:
            time.sleep(SECONDS)
        return execute(self)

    cells.CellsJob.execute = slow  # type: ignore[method-assign]
