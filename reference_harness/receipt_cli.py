"""The command that scores a receipt.

Nothing here imports NumPy at module level; see cli.py.
"""

from pathlib import Path
from typing import Any

import click

from .rescore_cli import BENCHMARK, DATA, FILE, OUTPUT, QUIET, TASKS, names_of, place_of
from .text import plural

_SUBMISSION_BYTES_MAX = 1 << 25  # as `geneb-ci check` reads


@click.command("receipt-cells")
@click.option(
    "--submission", type=FILE, required=True, help="Submission whose receipt is to be scored."
)
@click.option(
    "--receipt",
    "folder",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    required=True,
    help="Folder of its files.",
)
@TASKS
@DATA
@BENCHMARK
@click.option("--workers", type=click.IntRange(min=1), help="Processes; default: one per CPU.")
@OUTPUT
@QUIET
def receipt_cells(**options: Any) -> None:  # noqa: ANN401 - click's own types
    """Compute the canonical scores of a receipt.

    The files are taken as they are; compare their digests with the submission's first.
    """
    import json  # noqa: PLC0415 - see cli.py

    from .engine.local import default_workers  # noqa: PLC0415 - NumPy: see cli.py
    from .errors import OptionError  # noqa: PLC0415
    from .files import read_bounded, write_json  # noqa: PLC0415
    from .receipt.scoring import CellsRequest, cells, tasks_said  # noqa: PLC0415

    bench, source = place_of(options)
    try:
        document = json.loads(read_bounded(options["submission"], _SUBMISSION_BYTES_MAX))
        said = tasks_said(document["receipt"])
        regimes = tuple(name for name in bench.regimes if name in document["results"])
    except (ValueError, KeyError, TypeError) as error:
        msg = f"{options['submission']}: no submission with a receipt: {error}"
        raise OptionError(msg) from error
    names = names_of(options["tasks"])
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
