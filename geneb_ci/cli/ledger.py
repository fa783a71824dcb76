"""`geneb-ci ledger`: what happened to every row, from the git history alone."""

import click

from geneb_ci.build.files import encode
from geneb_ci.cli.generations import HEAD, repository_here
from geneb_ci.errors import Exit
from geneb_ci.publish.generation import LEDGER
from geneb_ci.publish.ledger import ledger
from geneb_ci.report.story import table


@click.command()
@click.option("--at", "commit", default=HEAD, show_default=True, metavar="COMMIT")
@click.option("--format", "shape", type=click.Choice(["text", "json"]), default="text")
def command(commit: str, shape: str) -> int:
    """List every event of every row up to a commit, oldest first."""
    repository = repository_here()
    found = ledger(repository, repository.resolve(commit))
    if shape == "json":
        click.echo(encode(LEDGER, found.model_dump(mode="json")).decode())
        return Exit.CLEAN
    for line in table(found):
        click.echo(line)
    return Exit.CLEAN
