"""The command that prints the scorer of record.

Nothing here imports NumPy at module level; see main.py.
"""

import click

from reference_harness.text import echo


@click.command()
def scorer() -> None:
    """Show the scorer of record, and whether this machine has it.

    The exit code is 3 if it does not.
    """
    from reference_harness.engine import blas
    from reference_harness.probe.scorer import SCORER  # NumPy: see main.py

    echo(SCORER.description)
    blas.limit_to_scorer()
    SCORER.check()
    echo("this machine has the scorer of record: scores computed here can be published")
