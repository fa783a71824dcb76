"""The story of one row, for `geneb-ci explain MODEL`."""

from pathlib import Path

import click

from geneb_ci.cli.generations import HEAD, repository_here
from geneb_ci.errors import UsageProblem
from geneb_ci.publish.git import BadRepository
from geneb_ci.publish.inputs import SUBMISSIONS
from geneb_ci.publish.ledger import ledger
from geneb_ci.report.story import models_of, story


def tell(model: str) -> list[str] | None:
    """Print the story of a row, if the ledger has one.

    Gives None when it does, else the names of all rows: none outside a repository of submissions.
    """
    try:
        repository = repository_here()
        found = ledger(repository, repository.resolve(HEAD))
    except UsageProblem:
        return []  # `explain` works anywhere, on rules
    except BadRepository:
        if not Path(SUBMISSIONS, f"{model}.json").exists():
            return []
        raise
    lines = list(story(found, model))
    for line in lines:
        click.echo(line)
    return None if lines else models_of(found)
