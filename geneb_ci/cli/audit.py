"""`geneb-ci audit`: commit, draw, run, sign, verify."""

import click

from geneb_ci.cli.group import LazyGroup


class _Audit(LazyGroup):
    prefix = "audit_"
    table = {  # noqa: RUF012 (click's groups are made once)
        "commit": "fix all that decides an audit, before any seed exists",
        "plan": "draw the tasks to rerun, by the public beacon",
        "run": "rerun them in a sandbox, compare, and sign the record",
        "verify": "compute every step of a record again, from public data",
        "withdraw": "take an audit back, with a reason, signed",
        "keygen": "make a maintainer's key for signing records",
    }


@click.group(cls=_Audit)
def command() -> None:
    """Audit a submission: commit, draw, rerun, sign; anybody can verify the record."""
