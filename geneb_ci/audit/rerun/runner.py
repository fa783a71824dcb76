"""Runs the extractor of an audit in a sandbox, and the harness in a process outside it.

No other module starts them; the rest of an audit is computed from their results.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from geneb_ci.harness.process import HarnessProcess
from geneb_ci.sandbox.launch import Escape, Sandbox
from geneb_ci.sandbox.levels import open_sandbox
from geneb_ci.sandbox.limits import Limits
from geneb_ci.sandbox.run import (
    ExtractorSpec,
    SandboxRun,
    refuse_leaks,
    run_escape_suite,
    run_in_sandbox,
)


@dataclass(frozen=True)
class Runner:
    """An open sandbox that refused every escape, and a process of the harness."""

    sandbox: Sandbox
    escapes: list[Escape]
    """Results of the escape suite in this sandbox."""
    harness: HarnessProcess
    """Lists sequences and scores embeddings, in one process for all tasks."""

    def embed(
        self,
        sequences: Sequence[str],
        spec: ExtractorSpec,
        limits: Limits,
        progress: Callable[[int], object] = lambda _letters: None,
    ) -> SandboxRun:
        """Return the embeddings of n sequences. Raises what `run_in_sandbox` raises."""
        return run_in_sandbox(sequences, spec, self.sandbox, limits, progress)


@contextlib.contextmanager
def open_runner(
    level: int, *, gpu: bool, throw_away_machine: bool, i_wrote_this_code: bool, folder: Path | None
) -> Iterator[Runner]:
    """Yield a runner whose sandbox has exactly this level.

    `folder` is the scratch folder of the sandbox. Raises what `open_sandbox` raises, and
    SandboxLeaks if an escape succeeds.
    """
    with (
        HarnessProcess() as harness,
        open_sandbox(
            level,
            gpu=gpu,
            throw_away_machine=throw_away_machine,
            i_wrote_this_code=i_wrote_this_code,
            folder=folder,
        ) as sandbox,
    ):
        escapes = run_escape_suite(sandbox)
        refuse_leaks(sandbox, escapes)
        yield Runner(sandbox, escapes, harness)
