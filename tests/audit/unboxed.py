"""Audits without sandbox and without processes, for tests of what follows from a rerun.

`install` lets the extractor and the harness run in this process, in the place of what
`geneb_ci.audit.rerun.runner` opens. Where `SCORES` names a folder, the scores of a matrix or of a
receipt are computed once and kept there: an audit with the same embeddings, claims and task data
gets those, and its own seed and harness.
So an extractor that is honest on published rows alone needs the real sandbox or no `SCORES`: its
decisions on variants would be those of an honest one. No escape is attempted, and all count as
refused. tests/forked.py runs this file before a command, so it imports
the product and nothing of the tests.
"""

import contextlib
import functools
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from geneb_ci.audit.rerun import runner
from geneb_ci.common.errors import ExtractorFailed, LimitExceeded
from geneb_ci.harness import process
from geneb_ci.sandbox import levels, mounts
from geneb_ci.sandbox.launch import NONE, Escape, Sandbox
from geneb_ci.sandbox.limits import MIB, Limits, limit_fix
from geneb_ci.sandbox.run import (
    ESCAPE_NAMES,
    ExtractorSpec,
    SandboxRun,
    _weights_path,
    worker_options,
)
from geneb_ci.sandbox.supervise import noted_attempts, token_budget

if TYPE_CHECKING:  # NumPy and scikit-learn are loaded where something is scored
    from reference_harness.engine.worker_pool import TaskWork

Done = TypeVar("Done")
SCORES = "GENEB_CI_TEST_SCORES"
PEAK = 64 * MIB
"""Memory that an extractor is said to have used."""


def install(put: Callable[[Any, str, Any], None] = setattr) -> None:
    """Put these functions in the place of the product's."""
    put(levels, "trial_failure", lambda _: None)
    put(runner, "run_escape_suite", lambda _: [_refused(name) for name in ESCAPE_NAMES])
    put(runner, "run_in_sandbox", embedded)
    install_harness(put)


def install_harness(put: Callable[[Any, str, Any], None] = setattr) -> None:
    """Let the harness alone run in this process: the extractor stays in its sandbox."""
    put(process.HarnessProcess, "call", called)


def _refused(name: str) -> Escape:
    return Escape(name=name, refused=True, detail="not attempted")


class Queue(Generic[Done]):
    """Jobs done one after another, in the place of a pool of processes."""

    def __init__(self, workers: int = 1) -> None:
        del workers
        self._jobs: list[TaskWork[Done]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._jobs.clear()

    @property
    def waiting(self) -> int:
        return len(self._jobs)

    def submit(self, work: "TaskWork[Done]") -> None:
        self._jobs.append(work)

    def results(self, *, block: bool) -> Iterator[Done]:
        del block
        jobs, self._jobs = self._jobs, []
        for job in jobs:
            yield job.execute()


def called(
    _: process.HarnessProcess,
    words: Sequence[str],
    task: str = "",
    limits: process.ScoringLimits | None = None,
) -> process.ResourceUse:
    """Do what a process of the harness does with these words."""
    del task, limits
    earlier = _earlier_scores(words)
    if earlier is None or not earlier.exists():
        _score(words)
        if earlier is not None:
            _keep(words, earlier)
    else:
        for number, file in enumerate(_outputs(words)):
            file.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(earlier / str(number), file)
        if words[0] == "rescore":
            document = json.loads(_file(words, "--output").read_bytes())
            document["noise"]["seed"] = int(_word(words, "--seed"))
            document["harness"] = _harness()
            _file(words, "--output").write_text(json.dumps(document), encoding="utf-8")
    return process.ResourceUse(0.0, 0)


def _score(words: Sequence[str]) -> None:
    from threadpoolctl import threadpool_limits

    from reference_harness.cli.batch import result_of
    from reference_harness.engine.worker_pool import PoolLender

    class Here(PoolLender):
        """Lends a queue."""

        @contextlib.contextmanager
        def lend(self, count: int) -> Iterator[Any]:
            del count
            yield Queue()

    with threadpool_limits(1):  # as each worker of the harness has
        error, message = result_of(list(words), Here())
    if error is not None:
        raise process._harness_error(words, message)


def _word(words: Sequence[str], option: str) -> str:
    return words[list(words).index(option) + 1]


def _file(words: Sequence[str], option: str) -> Path:
    return Path(_word(words, option))


def _keep(words: Sequence[str], folder: Path) -> None:
    """Copy what a command wrote into a new folder, unless another process has made it meanwhile."""
    whole = Path(tempfile.mkdtemp(dir=folder.parent))
    for number, file in enumerate(_outputs(words)):
        shutil.copyfile(file, whole / str(number))
    try:
        whole.rename(folder)
    except OSError:
        shutil.rmtree(whole)


FOLDER_OPTIONS = {"--digests": (".digests",), "--strata": (".npz", ".txt"), "--labels": (".npz",)}
"""Options that name a folder for the files of each task, and the endings of these files."""


def _outputs(words: Sequence[str]) -> list[Path]:
    """Return the files that a command of the harness writes."""
    return [
        _file(words, "--output"),
        *(
            _file(words, option) / f"{_word(words, '--tasks')}{suffix}"
            for option, suffixes in FOLDER_OPTIONS.items()
            if option in words
            for suffix in suffixes
        ),
    ]


def _earlier_scores(words: Sequence[str]) -> Path | None:
    """Return the folder of the scores that these words ask for; None where none are kept."""
    folder = os.environ.get(SCORES)
    if folder is None or words[0] not in {"rescore", "receipt-cells"}:
        return None
    if words[0] == "receipt-cells":
        receipt = _file(words, "--receipt") / f"{_word(words, '--tasks')}.f16"
        files = [_file(words, "--submission"), receipt]  # an audit has a copy, in one line
        names: tuple[str, ...] = ("--tasks", "--other-draws", *FOLDER_OPTIONS)
    else:
        files = [_file(words, option) for option in ("--embeddings", "--sequences")]
        names = ("--tasks", "--regimes", "--noise", "--copies")
    # The results depend on whether a folder is named, not on which.
    same = {name: name in FOLDER_OPTIONS or _word(words, name) for name in names if name in words}
    beside: list[str] = []
    if "--further" in words:  # the variants are drawn anew for each audit
        rows = json.loads(_file(words, "--further").read_bytes())["rows"]
        beside = sorted({f"{row['split']} {row['kind']}" for row in rows})
    if "--benchmark" in words:
        files.append(_file(words, "--benchmark"))
    if "--data" in words:  # labels may be other ones
        folder_of_data = _file(words, "--data")
        files += sorted(path for path in folder_of_data.rglob("*") if path.is_file())
    if not all(path.is_file() for path in files):
        return None  # the harness names it
    digests = [hashlib.sha256(_content(path)).hexdigest() for path in files]
    key = json.dumps([words[0], same, "--unrounded" in words, beside, digests])
    return Path(folder, hashlib.sha256(key.encode()).hexdigest())


def _content(path: Path) -> bytes:
    """Return the bytes of a file; of a JSON document, those without spaces and line ends."""
    raw = path.read_bytes()
    return json.dumps(json.loads(raw)).encode() if path.suffix == ".json" else raw


@functools.cache
def _harness() -> dict[str, object]:
    """Return the version and commit of this harness: an audit compares them between its tasks."""
    from reference_harness.environment import harness

    return harness().model_dump()


def embedded(
    sequences: Sequence[str],
    spec: ExtractorSpec,
    sandbox: Sandbox,
    limits: Limits | None = None,
    *_: object,
) -> SandboxRun:
    """Return the embeddings of n sequences; nobody is told of the progress."""
    from reference_harness import worker  # NumPy
    from reference_harness.worker_options import read_options

    limits = limits or Limits()
    if limits.memory_mib * MIB < PEAK:
        raise LimitExceeded("memory_mib", "the extractor was stopped", limit_fix("memory_mib"))
    extra = {}
    if spec.module is not None:
        extra[mounts.EXTRACTORS] = spec.module.resolve().parent
    if spec.weights is not None:
        extra[_weights_path(spec.weights)] = spec.weights
    visible_path = Sandbox(0, NONE, sandbox.scratch).visible_path(mounts.sandbox_view(extra, {}))
    file = sandbox.scratch / "options.json"
    file.write_bytes(worker_options(spec, limits, visible_path))
    try:
        with _caught() as log:
            values = worker.embed(read_options(file), list(sequences))
    except Exception as error:
        raise ExtractorFailed(f"the extractor ended with code 4: {error}", "") from error
    return SandboxRun(values, "", noted_attempts(bytes(log)), PEAK, token_budget(bytes(log)))


@contextlib.contextmanager
def _caught() -> Iterator[bytearray]:
    """Catch what is written to standard error, as a supervisor does."""
    log, before = bytearray(), os.dup(2)
    with tempfile.TemporaryFile() as stream:
        os.dup2(stream.fileno(), 2)
        try:
            yield log
        finally:
            os.dup2(before, 2)
            os.close(before)
            stream.seek(0)
            log += stream.read()
