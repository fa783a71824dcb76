"""The commands that an audit calls: write sequences without labels, score their embeddings.

Nothing here imports NumPy at module level; see cli.py.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .text import plural

if TYPE_CHECKING:
    from .benchmark import Benchmark
    from .data import Source

_FILE = click.Path(path_type=Path, dir_okay=False)
_TASKS = click.option(
    "--tasks", multiple=True, required=True, metavar="ID[,ID]", help="Tasks; repeatable."
)
_DATA = click.option(
    "--data",
    type=click.Path(path_type=Path),
    help="Folder of task data; default: the synthetic GENEB-mini.",
)
_BENCHMARK = click.option(
    "--benchmark",
    "definition",
    type=click.Path(path_type=Path),
    help="Benchmark definition; default with --data: GENEB.",
)
_OUTPUT = click.option("--output", type=_FILE, required=True, help="File to write.")
_QUIET = click.option("--quiet", is_flag=True, help="Print only errors.")
_DTYPES = ("float64", "float32", "float16", "bfloat16")
_COPIES, _COPIES_MAX = 16, 1000
_SUBMISSION_BYTES_MAX = 1 << 25  # as `geneb-ci check` reads


@click.command()
@_TASKS
@_DATA
@_BENCHMARK
@_OUTPUT
@_QUIET
def sequences(**options: Any) -> None:  # noqa: ANN401 - click's own types
    """Write the distinct sequences of tasks, unlabelled.

    One per line; train and test of all tasks together, sorted by digest, so that neither order
    nor content tells split or label.
    """
    from .files import write_bytes  # noqa: PLC0415 - NumPy: see cli.py
    from .rescore import distinct  # noqa: PLC0415

    bench, source = _place(options)
    found = distinct(bench, source, _names(options["tasks"]))
    write_bytes(options["output"], *(f"{sequence}\n".encode() for sequence in found))
    if not options["quiet"]:
        click.echo(f"wrote {options['output']}: {plural(len(found), 'sequence')}", err=True)


@click.command()
@_TASKS
@click.option(
    "--sequences", "lines", type=_FILE, required=True, help="Sequences, as `sequences` writes them."
)
@click.option(
    "--embeddings", type=_FILE, required=True, help="Matrix in .npy format, row i for line i."
)
@click.option(
    "--noise",
    "dtype",
    type=click.Choice(_DTYPES),
    required=True,
    help="Dtype the embeddings were computed in: its rounding is the noise of the copies.",
)
@click.option(
    "--copies",
    type=click.IntRange(min=2, max=_COPIES_MAX),
    default=_COPIES,
    show_default=True,
    help="Jittered copies in the full regime; twice as many in the others.",
)
@click.option("--seed", type=click.IntRange(min=0), required=True, help="Seed of the noise.")
@_DATA
@_BENCHMARK
@click.option(
    "--canonical/--no-canonical",
    default=True,
    show_default=True,
    help="Also compute canonical scores (probe solved to its optimum).",
)
@click.option(
    "--workers", type=click.IntRange(min=1), help="Probe processes; default: one per CPU."
)
@_OUTPUT
@_QUIET
def rescore(**options: Any) -> None:  # noqa: ANN401 - click's own types
    """Score embeddings and jittered copies of them.

    An audit compares the claims with these scores.
    """
    from . import progress  # noqa: PLC0415 - NumPy: see cli.py
    from .engine.local import default_workers  # noqa: PLC0415
    from .files import write_json  # noqa: PLC0415
    from .rescore import RescoreRequest  # noqa: PLC0415
    from .rescore import rescore as run  # noqa: PLC0415

    bench, source = _place(options)
    asked = RescoreRequest(
        benchmark=bench,
        source=source,
        tasks=_names(options["tasks"]),
        sequences=options["lines"],
        embeddings=options["embeddings"],
        dtype=options["dtype"],
        seed=options["seed"],
        copies=options["copies"],
        canonical=options["canonical"],
        workers=options["workers"] or default_workers(),
    )
    with progress.listener(len(asked.tasks), quiet=options["quiet"]) as listener:
        found = run(asked, listener)
    write_json(options["output"], found.model_dump())
    if not options["quiet"]:
        tasks = plural(len(found.tasks), "task")
        said = f"wrote {options['output']}: {tasks} in {found.seconds:.1f} s"
        click.echo(said, err=True)


@click.command("receipt-cells")
@click.option(
    "--submission", type=_FILE, required=True, help="Submission whose receipt is to be scored."
)
@click.option(
    "--receipt",
    "folder",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    required=True,
    help="Folder of its files.",
)
@_TASKS
@_DATA
@_BENCHMARK
@click.option("--workers", type=click.IntRange(min=1), help="Processes; default: one per CPU.")
@_OUTPUT
@_QUIET
def receipt_cells(**options: Any) -> None:  # noqa: ANN401 - click's own types
    """Compute the canonical scores of a receipt.

    The files are taken as they are: `geneb-ci receipt verify` compares their digests first.
    """
    import json  # noqa: PLC0415 - see cli.py

    from .engine.local import default_workers  # noqa: PLC0415 - NumPy: see cli.py
    from .errors import OptionError  # noqa: PLC0415
    from .files import read_bounded, write_json  # noqa: PLC0415
    from .receipt.scoring import CellsRequest, cells, tasks_said  # noqa: PLC0415

    bench, source = _place(options)
    try:
        document = json.loads(read_bounded(options["submission"], _SUBMISSION_BYTES_MAX))
        said = tasks_said(document["receipt"])
        regimes = tuple(name for name in bench.regimes if name in document["results"])
    except (ValueError, KeyError, TypeError) as error:
        msg = f"{options['submission']}: no submission with a receipt: {error}"
        raise OptionError(msg) from error
    names = _names(options["tasks"])
    if unknown := [name for name in names if name not in said]:
        msg = f"--tasks {unknown[0]}: the receipt has no such task"
        raise OptionError(msg)
    found = cells(
        CellsRequest(
            benchmark=bench,
            source=source,
            folder=options["folder"],
            tasks={name: said[name] for name in names},
            regimes=regimes,
            workers=options["workers"] or default_workers(),
        )
    )
    write_json(options["output"], found.model_dump())
    if not options["quiet"]:
        tasks = plural(len(found.tasks), "task")
        click.echo(f"wrote {options['output']}: {tasks} in {found.seconds:.1f} s", err=True)


def _place(options: dict[str, Any]) -> "tuple[Benchmark, Source]":
    from . import benchmark, data  # noqa: PLC0415 - NumPy: see cli.py
    from .errors import OptionError  # noqa: PLC0415

    folder, definition = options["data"], options["definition"]
    if definition and not folder:
        msg = "--benchmark needs task data: add --data DIR"
        raise OptionError(msg)
    if not folder:
        return benchmark.mini(), data.MiniSource()
    bench = benchmark.load(definition) if definition else benchmark.geneb()
    return bench, data.Folder(folder, bench)


def _names(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the ids, each once, in the order given. Raises OptionError when there is none."""
    from .errors import OptionError  # noqa: PLC0415

    found = tuple(dict.fromkeys(n for word in words for n in word.split(",") if n.strip()))
    if not found:
        msg = "--tasks names no task"
        raise OptionError(msg)
    return tuple(name.strip() for name in found)
