"""`geneb-ci rules` and `explain`: explain rules, and the trust levels of rows."""

import json
import textwrap

import click

from geneb_ci.check.registry import ALL, BY_ID
from geneb_ci.check.rule import AnyRule
from geneb_ci.render.tables import Table


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
    columns = ("rule", "severity", "what it looks for")
    cells = [(rule.id, rule.severity, rule.what) for rule in ALL]
    lines = Table(columns, cells).text_lines(head=False)
    family = ""
    for rule, line in zip(ALL, lines, strict=True):
        if rule.family != family:
            family = rule.family
            click.echo(("\n" if rule is not ALL[0] else "") + click.style(family, bold=True))
        click.echo(f"  {line}")


WIDTH = 88  # columns of a paragraph


@click.command()
@click.argument("name", metavar="RULE-OR-MODEL")
def explain_command(name: str) -> None:
    """Explain a rule, or the trust level and history of a model's row."""
    found = BY_ID.get(name)
    if found is not None:
        _explain(found)
        return
    from geneb_ci.cli.repository import tell  # noqa: PLC0415 (a rule needs neither evidence nor git)

    tell(name)


def _explain(rule: AnyRule) -> None:
    click.echo(f"{click.style(rule.id, bold=True)}  {rule.severity} · {rule.family}\n")
    for title, text in (("", rule.what), ("Why: ", rule.why), ("Fix: ", rule.fix)):
        click.echo(textwrap.fill(title + text, WIDTH) + "\n")
    if rule.needs:
        need = rule.needs[-1]
        click.echo(textwrap.fill(f"Needs {need.text}. If unavailable: {need.fix}.", WIDTH) + "\n")
