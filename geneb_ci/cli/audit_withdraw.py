"""`geneb-ci audit withdraw`: take an audit back, with a reason, signed."""

from datetime import UTC, datetime
from pathlib import Path

import click

from geneb_ci.audit.keys import KEY_VARIABLE, private_key
from geneb_ci.audit.moments import FORMAT
from geneb_ci.audit.record import WITHDRAWN, read_record
from geneb_ci.audit.withdrawal import withdrawal_of
from geneb_ci.errors import UsageProblem


@click.command()
@click.argument("record", type=click.Path(path_type=Path))
@click.option("--reason", required=True, help="What was wrong with the audit; shown on the board.")
@click.option("--key", type=click.Path(path_type=Path), help=f"Private key; or {KEY_VARIABLE}.")
def command(record: Path, reason: str, key: Path | None) -> None:
    """Write the signed withdrawal of RECORD beside it; the record itself stays."""
    now = datetime.now(UTC).strftime(FORMAT)
    place = record.resolve()
    content = withdrawal_of(place.parent.name, read_record(place), reason, now, private_key(key))
    path = record.with_name(f"{record.stem}{WITHDRAWN}")
    try:
        with path.open("xb") as stream:
            stream.write(content)
    except OSError as error:
        raise UsageProblem(
            f"{path}: cannot be written: {error.strerror}", "an audit is withdrawn once"
        ) from error
    click.echo(f"wrote {path}: commit it to the main branch")
