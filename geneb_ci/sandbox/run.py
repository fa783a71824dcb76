"""Run an extractor, or the escape suite, in a sandbox."""

import contextlib
import json
import os
import secrets
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from geneb_ci.common.errors import (
    ExtractorFailed,
    ExtractorRefused,
    LimitExceeded,
    SandboxLeaks,
    UsageProblem,
)
from geneb_ci.sandbox import escape_suite, mounts
from geneb_ci.sandbox.launch import NONE, PYTHON_FLAGS, Escape, Sandbox, python_of
from geneb_ci.sandbox.limits import MIB, TOKEN_BUDGET, Limits, limit_fix
from geneb_ci.sandbox.supervise import (
    EmbeddingsReceiver,
    last_line,
    noted_attempts,
    supervise,
    token_budget,
    visible_log,
)
from reference_harness.formats.files import read_json

if TYPE_CHECKING:
    import numpy as np

SEQUENCES_FILE = f"{mounts.INPUT}/sequences"
OPTIONS_FILE = f"{mounts.INPUT}/options.json"
"""Paths inside the sandbox of the files that the worker reads."""
KILLED_CODES = (-9, 137)
"""Exit codes of a process that SIGKILL ended, as Python and as a shell report them."""
BATCH_SEQUENCES = 8
"""Sequences per batch in file order, as in upstream's loop; also the harness's default."""

Batching = Literal["budget", "exact", "file"]
"""Batches of the worker: by number of padded tokens, of equal length, or in file order."""


@dataclass(frozen=True)
class ExtractorSpec:
    """An extractor with its weights and options."""

    extractor: str
    """`builtin:<name>`, or the class name in `module`."""
    module: Path | None = None
    """The file of a contributor's extractor; its folder is shown, since it may import modules from
    it."""
    name_model: str = ""
    """The constructor's argument `name_model`, unless there are weights."""
    weights: Path | None = None
    """File or folder of weights, shown read-only; its path inside becomes `name_model`."""
    packages: Path | None = None
    """Folder of installed packages that have priority over those of the harness."""
    device: str = "cpu"
    """`cpu`, `cuda`, or `cuda:N` for one of several GPUs."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Keyword arguments of the constructor, as text."""
    batching: Batching = "budget"
    token_budget: int | None = TOKEN_BUDGET
    """Padded tokens per batch; None: the worker measures how many fit into memory."""
    rows: int = BATCH_SEQUENCES
    """Sequences per batch in file order."""
    tf32: bool = True
    """Whether TF32 may be used on a GPU; True keeps the setting of torch or the extractor."""


class SandboxRun(NamedTuple):
    """Result of running an extractor in a sandbox."""

    values: "np.ndarray"
    """Embeddings (n, d), finite, read-only, little-endian float16, float32 or float64."""
    log: str
    """The printed output, made safe to show."""
    attempts: list[str]
    """Names of calls by foreign Python code that no extractor needs, such as `socket.connect`. They
    are only a hint for readers: calls of native code are missing, and a name can be forged."""
    peak: int
    """Largest resident memory that was measured on the host, in bytes, without GPU memory."""
    token_budget: int
    """Padded tokens per batch that the worker printed, 0 if it printed none; foreign code can print
    that line as well."""


def run_in_sandbox(
    sequences: Sequence[str],
    spec: ExtractorSpec,
    sandbox: Sandbox,
    limits: Limits | None = None,
    progress: Callable[[int], object] = lambda _letters: None,
) -> SandboxRun:
    """Return the result of embedding n sequences in a new sandboxed process.

    `progress` is called with the number of embedded letters that the process prints, which it can
    forge. Raises LimitExceeded, ResultRefused or ExtractorFailed, each with the printed text as
    `log`; UsageProblem if there is no sequence, or a sequence is not one line of printable ASCII.
    """
    limits = limits or Limits()
    content = _lines_of_sequences(sequences)
    shown_paths = {}
    if spec.module is not None:
        shown_paths[mounts.EXTRACTORS] = spec.module.resolve().parent
    if spec.weights is not None:
        shown_paths[_weights_path(spec.weights)] = spec.weights
    view = mounts.sandbox_view(shown_paths, {SEQUENCES_FILE: content}, packages=spec.packages)
    path_inside = sandbox.visible_path(view)
    view.data[OPTIONS_FILE] = worker_options(spec, limits, path_inside)
    command = [
        python_of(sandbox, view),
        *(
            *PYTHON_FLAGS,
            "-m",
            "reference_harness.worker",
            path_inside(OPTIONS_FILE),
            path_inside(SEQUENCES_FILE),
        ),
    ]
    receiver = EmbeddingsReceiver(len(sequences), limits)
    ended_process = supervise(sandbox, view, limits, command, receiver, progress)
    if ended_process.code in KILLED_CODES:
        error_of_limit = LimitExceeded(
            "memory_mib",
            f"the extractor was killed, probably because it used more than {limits.memory_mib} MiB",
            limit_fix("memory_mib"),
        )
        error_of_limit.log = visible_log(ended_process.log)
        raise error_of_limit
    if ended_process.code != 0:
        failure = ExtractorFailed(
            f"the extractor ended with code {ended_process.code}: {last_line(ended_process.log)}",
            "read what the extractor printed; `geneb-harness run` fails in the same way without "
            "the sandbox",
        )
        failure.log = visible_log(ended_process.log)
        raise failure
    return SandboxRun(
        receiver.finish(),
        visible_log(ended_process.log),
        noted_attempts(ended_process.log),
        ended_process.peak,
        token_budget(ended_process.log),
    )


def worker_options(spec: ExtractorSpec, limits: Limits, path_inside: Any) -> bytes:
    """Return the worker's options as JSON; `schemas/worker-options.schema.json` describes them."""
    if spec.module is None:
        extractor = spec.extractor
    else:
        extractor = f"{path_inside(f'{mounts.EXTRACTORS}/{spec.module.name}')}:{spec.extractor}"
    name_model = spec.name_model
    if spec.weights is not None:
        name_model = path_inside(_weights_path(spec.weights))
    return json.dumps({
        "schema_version": "1.0",
        "extractor": extractor,
        "name_model": name_model,
        "device": spec.device,
        "options": dict(spec.options),
        "batching": spec.batching,
        "token_budget": spec.token_budget or TOKEN_BUDGET,
        "measure": spec.token_budget is None,
        "memory_mib": limits.memory_mib,
        "rows": spec.rows,
        "tf32": spec.tf32,
        "processes": limits.kernel_processes,
    }).encode()  # fmt: skip


def _weights_path(weights: Path) -> str:
    """Return the path of the weights inside the sandbox.

    A file keeps its name, since loaders need the suffix.
    """
    return mounts.WEIGHTS if weights.is_dir() else f"{mounts.WEIGHTS}/{weights.name}"


def _lines_of_sequences(sequences: Sequence[str]) -> bytes:
    """Return the content of the file of sequences, one a line.

    Raises UsageProblem for a sequence that is not one line of ASCII, and without sequences.
    """
    if not sequences:
        raise UsageProblem("there is no sequence to embed", "choose a task that has sequences")
    for index, sequence in enumerate(sequences):
        if not sequence.isascii() or not sequence.isprintable():
            raise UsageProblem(
                f"sequence {index} is not one line of printable ASCII",
                "fix the task's data: download them with `geneb-ci data pull`",
            )
    return "".join(f"{sequence}\n" for sequence in sequences).encode("ascii")


ESCAPE_SUITE_FILE = f"{mounts.INPUT}/escape_suite.py"
PLANTED_FILE = f"{mounts.INPUT}/planted.json"
"""Path inside the sandbox of the file that says where targets are planted."""
ESCAPE_SUITE_LIMITS = Limits(seconds=30, memory_mib=1024, processes=64, tmp_mib=64)
VISIBLE_PROCESSES_MAX = 8
"""Maximum number of processes visible in a sandbox: its pid 1, bubblewrap's helper, the suite."""
REPORT_BYTES_MAX = 1 << 16
"""Largest size of the answer of the escape suite."""
SECRET_VARIABLE = "GENEB_CANARY"  # noqa: S105 (the name of a variable; its value is new each time)
"""Environment variable of the launcher with the secret that the escape suite looks for."""
DOCTOR_FIX = "run `geneb-ci doctor` to see what this machine can do"
ESCAPE_NAMES = tuple(escape_suite.ATTEMPTS)


def run_escape_suite(sandbox: Sandbox, limits: Limits = ESCAPE_SUITE_LIMITS) -> list[Escape]:
    """Attempt every escape, and return the results in the suite's order.

    While the suite runs, targets are planted outside the sandbox: a file with a label, a secret in
    our environment, and two servers on the host. Return [] at level 0, which refuses nothing.
    Raises SandboxLeaks if the suite prints no valid answer.
    """
    if sandbox.kind == NONE:
        return []
    view = mounts.sandbox_view({}, {ESCAPE_SUITE_FILE: Path(escape_suite.__file__).read_bytes()})
    with _planted_targets(sandbox) as facts:
        facts["tmp_bytes"] = limits.tmp_mib * MIB
        view.data[PLANTED_FILE] = json.dumps(facts).encode()
        report = _AnswerReceiver()
        command = [python_of(sandbox, view), "-I", "-B", ESCAPE_SUITE_FILE, PLANTED_FILE]
        try:
            ended_process = supervise(sandbox, view, limits, command, report)
        except ExtractorRefused as error:
            raise SandboxLeaks(
                f"the escape suite was stopped: {error.message}", DOCTOR_FIX
            ) from error
    try:
        outcomes = read_json(bytes(report.data))
        escapes = [
            Escape(name=name, refused=bool(outcomes[name][0]), detail=str(outcomes[name][1]))
            for name in ESCAPE_NAMES
        ]
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise SandboxLeaks(
            f"the escape suite ended with code {ended_process.code} and without a valid answer: "
            f"{last_line(ended_process.log)}",
            DOCTOR_FIX,
        ) from error
    return escapes


def refuse_leaks(sandbox: Sandbox, escapes: list[Escape]) -> None:
    """Raise SandboxLeaks if an escape succeeded, or if not every escape was attempted."""
    if sandbox.kind == NONE:
        return
    if [escape.name for escape in escapes] != list(ESCAPE_NAMES):
        raise SandboxLeaks(
            f"{len(escapes)} escapes were attempted, expected all {len(ESCAPE_NAMES)} of the suite",
            DOCTOR_FIX,
        )
    succeeded = [f"{escape.name} ({escape.detail})" for escape in escapes if not escape.refused]
    if succeeded:
        raise SandboxLeaks(
            f"{len(succeeded)} of {len(escapes)} escapes from the sandbox succeeded: "
            f"{'; '.join(succeeded)}",
            "do not audit on this machine until all of them are refused",
        )


class _AnswerReceiver:
    """Receiver of the suite's answer, without the bytes after `REPORT_BYTES_MAX`."""

    def __init__(self) -> None:
        self.data = bytearray()

    def feed(self, piece: bytes) -> None:
        self.data += piece[: REPORT_BYTES_MAX - len(self.data)]


@contextlib.contextmanager
def _planted_targets(sandbox: Sandbox) -> Iterator[dict[str, object]]:
    """Plant the targets of the escape suite, and yield where they are, without the secrets."""
    file = sandbox.scratch / "label"
    abstract = f"geneb-ci-{secrets.token_hex(8)}"
    earlier_secret = os.environ.get(SECRET_VARIABLE)
    os.environ[SECRET_VARIABLE] = f"geneb-canary-{secrets.token_hex(16)}"
    file.write_text(f"geneb-canary-{secrets.token_hex(16)}\n", encoding="ascii")
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as abstract_socket,
    ):
        abstract_socket.bind(f"\0{abstract}")
        abstract_socket.listen()
        try:
            yield {
                "port": server.getsockname()[1],
                "abstract": abstract,
                "label_file": str(file),
                "home": os.path.expanduser("~"),  # noqa: PTH111 (Path.home raises without one)
                "pid": os.getpid(),
                "processes": VISIBLE_PROCESSES_MAX,
            }
        finally:
            file.unlink()
            if earlier_secret is None:
                del os.environ[SECRET_VARIABLE]
            else:
                os.environ[SECRET_VARIABLE] = earlier_secret
