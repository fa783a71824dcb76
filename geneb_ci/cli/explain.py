"""`geneb-ci explain`: what a rule looks for and how to mend it; or why a row stands as it does."""

import textwrap

import click

from geneb_ci.check.registry import BY_ID
from geneb_ci.check.rule import AnyRule

WIDTH = 88  # columns of a paragraph


@click.command()
@click.argument("name", metavar="RULE-OR-MODEL")
def command(name: str) -> None:
    """Explain a rule; or why a model's row has its level, and all that ever became of it."""
    found = BY_ID.get(name)
    if found is not None:
        _explain(found)
        return
    # Imported here: a rule needs neither evidence nor git.
    from geneb_ci.cli.row import tell  # noqa: PLC0415

    tell(name)


def _explain(rule: AnyRule) -> None:
    click.echo(f"{click.style(rule.id, bold=True)}  {rule.severity} · {rule.family}\n")
    for title, text in (("", rule.what), ("Why: ", rule.why), ("Fix: ", rule.fix)):
        click.echo(textwrap.fill(title + text, WIDTH) + "\n")
    if rule.needs:
        need = rule.needs[-1]
        click.echo(textwrap.fill(f"Needs {need.text}; else {need.fix}.", WIDTH) + "\n")
