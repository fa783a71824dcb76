"""`geneb-ci rules` and `explain`: what a rule looks for, and why a row has its level."""

import json
import textwrap
from pathlib import Path

import click

from geneb_ci.audit import trust_evidence
from geneb_ci.check.registry import ALL, BY_ID
from geneb_ci.check.rule import AnyRule
from geneb_ci.cli.repository import HEAD, repository_here
from geneb_ci.common.config import find_layout
from geneb_ci.common.errors import UsageProblem
from geneb_ci.publish.git import BadRepository
from geneb_ci.publish.ledger import ledger
from geneb_ci.publish.manifest import Ledger
from geneb_ci.render.published import models_of, story
from geneb_ci.render.text import escape
from geneb_ci.submission.paths import files_in
from geneb_ci.submission.structure import near


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def rules_command(as_json: bool) -> None:
    """List every rule, by family."""
    if as_json:
        rows = [
            {
                "id": r.id,
                "family": r.family,
                "severity": r.severity,
                "what": r.what,
                "why": r.why,
                "fix": r.fix,
                "needs": list(r.needs),
            }
            for r in ALL
        ]
        click.echo(json.dumps(rows, indent=2))
        return
    width = max(len(rule.id) for rule in ALL)
    family = ""
    for rule in ALL:
        if rule.family != family:
            family = rule.family
            click.echo(("\n" if rule is not ALL[0] else "") + click.style(family, bold=True))
        click.echo(f"  {rule.id:<{width}}  {rule.severity:<7}  {rule.what}")


_GONE = "not on the board"


def tell(model: str) -> None:
    """Print all that is known of a row, on the board or taken off it.

    Raises UsageProblem where there never was such a row, and BrokenRecordError.
    """
    layout = find_layout(Path.cwd())
    why = trust_evidence.story(model, layout)
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
    """Return the ledger of this place, or why there is none."""
    try:
        repository = repository_here()
        return ledger(repository, repository.resolve(HEAD)), ""
    except UsageProblem as error:
        return Ledger(events=[]), error.message
    except BadRepository as error:
        return Ledger(events=[]), f"{error.message}; fix: {error.fix}"


WIDTH = 88  # columns of a paragraph


@click.command()
@click.argument("name", metavar="RULE-OR-MODEL")
def explain_command(name: str) -> None:
    """Explain a rule; or why a model's row has its level, and all that ever became of it."""
    found = BY_ID.get(name)
    if found is not None:
        _explain(found)
        return
    tell(name)


def _explain(rule: AnyRule) -> None:
    click.echo(f"{click.style(rule.id, bold=True)}  {rule.severity} · {rule.family}\n")
    for title, text in (("", rule.what), ("Why: ", rule.why), ("Fix: ", rule.fix)):
        click.echo(textwrap.fill(title + text, WIDTH) + "\n")
    if rule.needs:
        need = rule.needs[-1]
        click.echo(textwrap.fill(f"Needs {need.text}; else {need.fix}.", WIDTH) + "\n")
