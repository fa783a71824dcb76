"""`geneb-ci explain MODEL`: why a row has its level, and the story of how it came there."""

from pathlib import Path

import click

from geneb_ci.check.registry import BY_ID
from geneb_ci.cli.generations import HEAD, repository_here
from geneb_ci.config import find_layout
from geneb_ci.errors import UsageProblem
from geneb_ci.label import reasons
from geneb_ci.publish.git import BadRepository
from geneb_ci.publish.ledger import ledger
from geneb_ci.publish.shape import Ledger
from geneb_ci.read.paths import files_in
from geneb_ci.read.structure import near
from geneb_ci.report.story import models_of, story
from geneb_ci.report.text import escape

_GONE = "not on the board"


def tell(model: str) -> None:
    """Print all that is known of a row, on the board or taken off it.

    Raises UsageProblem where there never was such a row, and BrokenRecordError.
    """
    layout = find_layout(Path.cwd())
    why = reasons.story(model, layout)
    found, no_history = _history()
    events = list(story(found, model))
    if why is None and not events:
        here = [path.stem for path in files_in(layout.submissions)] if layout.submissions else []
        raise UsageProblem(
            f"{model!r} is neither a rule nor a model here"
            f"{near(model, [*BY_ID, *here, *models_of(found)])}",
            "`geneb-ci rules` lists the rules, `geneb-ci label` the models",
        )
    first, *others = why or [_GONE]
    click.echo(f"{click.style(model, bold=True)}  {escape(first)}")
    for line in [*(f"  {escape(line)}" for line in others), *events]:
        click.echo(line)
    if no_history:
        click.echo(f"its history cannot be told: {escape(no_history)}", err=True)


def _history() -> tuple[Ledger, str]:
    """Give the ledger of this place, or why there is none."""
    try:
        repository = repository_here()
        return ledger(repository, repository.resolve(HEAD)), ""
    except UsageProblem as error:
        return Ledger(events=[]), error.message
    except BadRepository as error:
        return Ledger(events=[]), f"{error.message}; fix: {error.fix}"
