"""The command that fits other probes on receipts.

Nothing here imports NumPy at module level; see main.py.
"""

from typing import Any

import click

from reference_harness.other_probes import DESCRIPTIONS, KINDS
from reference_harness.text import echo

from .rescore import (
    BENCHMARK_OPTION,
    DATA_OPTION,
    FILE_TYPE,
    QUIET_OPTION,
    chosen_names,
    jobs_option,
)

FORMATS = ("text", "markdown", "json")
"""Formats of the printed result."""


@click.command("probe")
@click.argument("receipts", nargs=-1, required=True, metavar="FILE|DIR...")
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    type=click.Choice(KINDS, case_sensitive=False),
    help="Kind of probe, repeatable; default: all. Others are compared with the first. "
    + "; ".join(f"{kind}: {meaning}" for kind, meaning in DESCRIPTIONS.items())
    + ".",
)
@click.option(
    "--tasks",
    multiple=True,
    metavar="ID[,ID]",
    help="Tasks; default: all that the receipts have in common.",
)
@click.option("--regimes", metavar="NAME[,NAME]", help="Regimes; default: all.")
@click.option(
    "--seeds",
    metavar="N[,N]",
    help="Seeds of few-shot samples and of an MLP; default: the benchmark's.",
)
@DATA_OPTION
@BENCHMARK_OPTION
@jobs_option
@click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS, case_sensitive=False),
    default="text",
    show_default=True,
    help="What to print.",
)
@click.option("--output", type=FILE_TYPE, help="File to write; default: standard output.")
@QUIET_OPTION
def probe(**options: Any) -> None:
    """Fit other probes on receipts, and compare the resulting ranks.

    X.json or X is the submission X.json with the files of its receipt in the folder X; write
    FILE=DIR if they are elsewhere. The estimated cost is printed first.
    """
    from reference_harness.formats.files import write_bytes
    from reference_harness.formats.processes import processors
    from reference_harness.other_probes.run import (
        ProbeRequest,
        common_tasks,
        probe_receipts,
        read_receipt,
    )
    from reference_harness.other_probes.table import WRITERS
    from reference_harness.run import progress  # NumPy: see main.py

    from .rescore import benchmark_and_source

    bench, source = benchmark_and_source(options)
    receipts = tuple(read_receipt(word) for word in options["receipts"])
    tasks = common_tasks(receipts, bench)
    request = ProbeRequest(
        benchmark=bench,
        source=source,
        receipts=receipts,
        kinds=tuple(dict.fromkeys(options["kinds"])) or KINDS,
        regimes=chosen_names(options["regimes"] or "", tuple(bench.regimes), "--regimes"),
        tasks=chosen_names(",".join(options["tasks"]), tasks, "--tasks"),
        seeds=_seeds(options["seeds"]) or tuple(bench.protocol.seeds),
        workers=options["jobs"] or processors(),
    )
    total = len(request.receipts) * len(request.tasks)
    with progress.listener(total, quiet=options["quiet"]) as listener:
        report = probe_receipts(request, listener)
    report_text = WRITERS[options["format_"]](report)
    if options["output"] is None:
        click.echo(report_text, nl=False)
        return
    write_bytes(options["output"], report_text.encode())
    if not options["quiet"]:
        echo(f"wrote {options['output']}", err=True)


def _seeds(listed: str | None) -> tuple[int, ...]:
    """Return the seeds of a list. Raise OptionError for one that NumPy does not accept."""
    from reference_harness.errors import OptionError  # NumPy: see main.py

    words = [word.strip() for word in (listed or "").split(",") if word.strip()]
    if invalid_words := [
        word for word in words if not (word.isascii() and word.isdigit()) or int(word) >> 32
    ]:
        msg = (
            f"--seeds {invalid_words[0]!r}: expected whole numbers from 0 to 4294967295, "
            "separated by "
        )
        msg += "commas"
        raise OptionError(msg)
    return tuple(dict.fromkeys(map(int, words)))
