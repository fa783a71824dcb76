"""`geneb-ci audit keygen`: a new key to sign audits with."""

import json
from datetime import UTC, datetime
from pathlib import Path

import click

from geneb_ci.audit.keys import KEY_VARIABLE, new_key
from geneb_ci.audit.moments import FORMAT


@click.command()
@click.option(
    "--output",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="File for the private key; one that exists is never overwritten.",
)
@click.option("--owner", default="fill in who holds the key", help="Who holds the private key.")
def command(output: Path, owner: str) -> None:
    """Write a new private key (Ed25519, PEM, mode 0600), and print its entry for keys.json."""
    entry = new_key(output, owner, datetime.now(UTC).strftime(FORMAT))
    click.echo(json.dumps(entry.model_dump(exclude_none=True), indent=1))
    click.echo(
        f"wrote {output}: keep it to yourself, and name it by {KEY_VARIABLE} or --key to sign",
        err=True,
    )
    click.echo(
        "  next: put the entry above into leaderboard/policy/keys.json of the main branch", err=True
    )
