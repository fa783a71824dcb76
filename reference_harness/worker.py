"""The program in the sandbox: it reads sequences from a file and writes embeddings to a pipe.

`python -m reference_harness.worker OPTIONS SEQUENCES`. Standard output is the pipe of the result.
It is duplicated before any foreign code is imported, and what that code prints goes to standard
error. The result is a header and then the matrix, sequence by sequence, little-endian:

  8s  magic      b"GENEBEMB"
  u16 version    1
  u16 item size  bytes of a number: 2, 4 or 8 for float16, float32, float64
  u32 reserved   0
  u64 n          sequences
  u64 d          columns

The extractor controls this process once it is loaded. The reader outside trusts only the shape of
the bytes.
"""

import contextlib
import os
import resource
import struct
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import numpy as np

from .embedding.exact_batches import with_exact_limits
from .embedding.extractor_calls import current_budget, embed_sequences
from .embedding.memory import MemoryLimit, memory_of
from .environment import set_exact, set_tf32
from .errors import HarnessError
from .loading.constructor_arguments import is_compiled, keywords
from .loading.loader import load
from .worker_options import WorkerOptions, read_options

MAGIC = b"GENEBEMB"
"""First bytes of the result."""
VERSION = 1
"""Version of the format of the result."""
HEADER = struct.Struct("<8sHHIQQ")
"""Layout of the header of the result."""
PIECE_BYTES = 1 << 20  # bytes per write
"""Number of bytes that are written at once."""

FAILED_CODE = 3
"""Exit code of an expected error, whose reason was printed."""
BROKEN_CODE = 4
"""Exit code of an unexpected error."""

BUDGET_PREFIX = "token budget: "
"""Beginning of the line with the final limit of padded tokens per batch."""

LETTERS_PREFIX = "letters embedded: "
"""Beginning of a line with the number of letters embedded so far."""
LETTERS_SECONDS = 10.0
"""Seconds between two lines with `LETTERS_PREFIX`: a day of them is 300 kB of text."""

NOT_COMPILED_NOTICE = b"compile=true was left out: the model is run as it is\n"
"""Printed if torch compiled the model in the run: a sandbox has no compiler, and compiling changes
only rounding, which the tolerance of an audit covers."""

NOTED_EVENTS = frozenset({
    "socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto",
    "subprocess.Popen", "os.exec", "os.posix_spawn", "os.system", "os.kill",
})  # fmt: skip
"""Events of Python's audit hook that an extractor rarely needs. They are hints for the reader of an
audit, not a barrier, as native code does not raise them."""


def main(arguments: list[str]) -> NoReturn:
    """Embed all sequences, write the matrix and exit; with 0 unless an error occurs."""
    result_stream = os.dup(1)  # not inherited by children (PEP 446)
    os.dup2(2, 1)
    try:
        options, sequences = read_options(Path(arguments[0])), read_sequences(Path(arguments[1]))
        limit_process(options)
        note_attempts()
        embeddings = embed(options, sequences)
    except HarnessError as error:
        exit_with(str(error), FAILED_CODE)
    except BaseException:  # noqa: BLE001 - foreign code may raise anything
        exit_with(traceback.format_exc(), BROKEN_CODE)
    with contextlib.suppress(BrokenPipeError):  # the reader refused the header and closed the pipe
        write(result_stream, embeddings)
    sys.stderr.flush()
    os._exit(0)


def read_sequences(file: Path) -> list[str]:
    """Return the lines of a file, one sequence each; the last also ends with a line feed."""
    return file.read_text(encoding="ascii").split("\n")[:-1]


def limit_process(options: WorkerOptions) -> None:
    """Limit the number of processes and threads of this process permanently.

    It is done here and not by the launcher, as the kernel counts those of a user namespace only
    from inside it. The limit does not apply to root of the host.
    """
    _, hard_limit = resource.getrlimit(resource.RLIMIT_NPROC)
    processes = (
        options.processes
        if hard_limit == resource.RLIM_INFINITY
        else min(options.processes, hard_limit)
    )
    resource.setrlimit(resource.RLIMIT_NPROC, (processes, processes))


def note_attempts() -> None:
    """Print a line the first time that the extractor's code causes each event of `NOTED_EVENTS`."""
    noted: set[str] = set()

    def hook(event: str, _: tuple[object, ...]) -> None:
        if event in NOTED_EVENTS and event not in noted:
            noted.add(event)
            os.write(2, f"attempt: {event}\n".encode())

    sys.addaudithook(hook)


def embed(options: WorkerOptions, sequences: list[str]) -> np.ndarray:
    """Load the extractor and return the embedding of every sequence, including duplicates."""
    options_by_name = dict(options.options)
    if is_compiled(options.extractor, options_by_name):
        del options_by_name["compile"]
        os.write(2, NOT_COMPILED_NOTICE)
    loaded = load(
        options.extractor,
        options.name_model,
        options.device,
        **keywords(options.extractor, options_by_name, options.plan),
    )
    if not options.tf32:
        set_tf32(allowed=False)
    if options.batching == "exact" and options.device.startswith("cuda"):
        set_exact()
    plan = with_exact_limits(loaded, options.plan, options.device)
    bytes_allowed = None if options.memory_mib is None else options.memory_mib << 20
    memory_limit = MemoryLimit(
        memory_of(options.device, bytes_allowed) if options.measure else None
    )
    embeddings = embed_sequences(loaded, plan, sequences, memory_limit, _letters_printer())
    os.write(2, f"{BUDGET_PREFIX}{current_budget(loaded, plan, memory_limit)}\n".encode())
    little_endian_dtype = embeddings.dtype.newbyteorder("<")
    return np.ascontiguousarray(embeddings, dtype=little_endian_dtype)


def _letters_printer() -> Callable[[int], None]:
    """Return a function that adds up letters, and prints their number every `LETTERS_SECONDS`."""
    total, printed_at = 0, time.monotonic()

    def add(letters: int) -> None:
        nonlocal total, printed_at
        total += letters
        if time.monotonic() - printed_at >= LETTERS_SECONDS:
            printed_at = time.monotonic()
            os.write(2, f"{LETTERS_PREFIX}{total}\n".encode())

    return add


def write(stream: int, embeddings: np.ndarray) -> None:
    """Write header and matrix to a file descriptor, and close it."""
    header = HEADER.pack(MAGIC, VERSION, embeddings.dtype.itemsize, 0, *embeddings.shape)
    for block in (memoryview(header), embeddings.data.cast("B")):
        written = 0
        while written < len(block):
            written += os.write(stream, block[written : written + PIECE_BYTES])
    os.close(stream)


def exit_with(text: str, code: int) -> NoReturn:
    """Print a text and exit at once, without running handlers that foreign code installed."""
    os.write(2, text.encode("utf-8", "backslashreplace") + b"\n")
    os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
