"""`geneb-ci audit commit`: the commitment of a submission, to be published before the draw."""

from pathlib import Path

import click

from geneb_ci.audit.commit import commit
from geneb_ci.audit.files import committed_text
from geneb_ci.audit.tolerance import tolerance_digest
from geneb_ci.cli.given import given_run
from geneb_ci.cli.outputs import STDOUT, Output, write

STATUS = "geneb/audit-commit"


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--output", default=STDOUT, metavar="C.json", help="Write here.")
@click.option("--extractor", metavar="PATH:CLASS", help="For format 1.0: the code that ran.")
@click.option("--option", "options", multiple=True, metavar="KEY=VALUE", help="For format 1.0.")
@click.option("--model", metavar="REPO", help="For format 1.0: repository of the weights.")
@click.option("--revision", metavar="COMMIT", help="For format 1.0: its 40-hex commit.")
@click.option(
    "--weights",
    multiple=True,
    metavar="NAME=SHA256",
    help="For format 1.0: digest of a weight file.",
)
@click.option("--no-weights", is_flag=True, help="For format 1.0: the method has none.")
def command(
    file: Path,
    output: str,
    extractor: str | None,
    options: tuple[str, ...],
    model: str | None,
    revision: str | None,
    weights: tuple[str, ...],
    no_weights: bool,
) -> None:
    """Commit to an audit of FILE: submission, code, weights, benchmark and policy, as one digest.

    FILE has to pass every check. What format 1.0 does not say of the run, the maintainer says.
    """
    given = given_run(extractor, options, model, revision, weights, no_weights=no_weights)
    found = commit(file, tolerance_digest(), given)
    write(Output("json", output), committed_text(found))
    name = "C.json" if output == STDOUT else output
    click.echo(
        f"commitment {found.sha256}\n"
        f"{found.model_id}: {found.policy.drawn} of {len(found.tasks)} tasks will be drawn\n"
        f"next: publish the digest, as commit status {STATUS} or in the ledger, and note when\n"
        f"  it became public, by the clock of the server that shows it; then draw:\n"
        f"  geneb-ci audit plan {name} --committed-at 2026-11-20T08:30:00Z",
        err=output == STDOUT,
    )
