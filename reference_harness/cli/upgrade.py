"""The command that upgrades a submission to the latest format.

Nothing here imports NumPy at module level; see main.py.
"""

from typing import Any

import click

from reference_harness.text import echo

from .rescore import BENCHMARK_OPTION, FILE_TYPE, OUTPUT_OPTION, QUIET_OPTION


@click.command()
@click.argument("file", type=FILE_TYPE)
@click.option("--record", type=FILE_TYPE, help="Run record of the submission, from `run --output`.")
@BENCHMARK_OPTION
@OUTPUT_OPTION
@QUIET_OPTION
def upgrade(**options: Any) -> None:
    """Upgrade FILE from format 1.0 or 1.1 to 1.2.

    The record must be that of FILE: the same model, scores and predictions. Without a record
    nothing is written, and what is missing is listed. Audits of FILE do not count for the new file,
    whose bytes differ.
    """
    from reference_harness.formats.files import dumps_tables, write_bytes
    from reference_harness.run.upgrade import (
        LATEST,
        benchmark_of,
        read_record,
        read_submission,
        refuse_without_record,
        upgraded_submission,
    )

    document = read_submission(options["file"])
    if options["record"] is None:
        refuse_without_record(document, options["file"])
    record = read_record(options["record"])
    upgraded = upgraded_submission(document, record, benchmark_of(record, options["definition"]))
    write_bytes(options["output"], dumps_tables(upgraded))
    if not options["quiet"]:
        receipt_text = "with its receipt" if "receipt" in upgraded else "without a receipt"
        echo(f"wrote {options['output']}: format {LATEST}, {receipt_text}", err=True)
