"""`geneb-ci rules`: every rule on a line."""

import json

import click

from geneb_ci.check.registry import ALL


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(as_json: bool) -> None:
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
