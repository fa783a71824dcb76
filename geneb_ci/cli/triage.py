"""`geneb-ci triage`: the open submissions, and the one thing to do next for each."""

import os
import shutil
import sys
from pathlib import Path

import click

from geneb_ci.cli.outputs import STDOUT, Output, write
from geneb_ci.errors import Exit
from geneb_ci.forge.etags import Etags
from geneb_ci.forge.github import ACTIONS_BOT, connect
from geneb_ci.forge.triage import read_queue
from geneb_ci.forge.triage_text import as_json, markdown, terminal

NARROWEST = 80


@click.command()
@click.option("--repo", metavar="OWNER/NAME", help="Repository; GITHUB_REPOSITORY unless said.")
@click.option("--limit", type=click.IntRange(min=1), default=30, show_default=True, metavar="N")
@click.option("--json", "style", flag_value="json", help="Print JSON.")
@click.option("--markdown", "style", flag_value="markdown", help="Print Markdown.")
@click.option(
    "--author-id",
    type=click.IntRange(min=1),
    default=ACTIONS_BOT,
    show_default=True,
    help="Account that writes the verdicts; that of GitHub Actions unless said.",
)
@click.option("--cache/--no-cache", default=True, help="Keep GitHub's answers for the next time.")
def command(repo: str | None, limit: int, style: str | None, author_id: int, cache: bool) -> int:
    """List the open submissions: age, verdict, warnings by weight, level, cost of an audit.

    Those that wait for a maintainer stand first, the oldest above; "!" marks what waits for more
    than a week. It reads our own comments, nothing of what pull requests hold. Weight is the sum of
    the scores of all warnings; from 10 on, an audit comes before the merge.
    """
    etags = Etags(_cache() if cache else None)
    with connect(repo, author=author_id, etags=etags) as github:
        try:
            queue = read_queue(github)
        finally:
            etags.save()  # after a limit, the next run goes on from here
    if style == "json":
        text = as_json(queue, limit)
    elif style == "markdown":
        text = markdown(queue, limit)
    else:
        is_terminal = sys.stdout.isatty()
        width = max(NARROWEST, shutil.get_terminal_size((140, 24)).columns)
        color = is_terminal and not os.environ.get("NO_COLOR")
        text = terminal(queue, limit, color=color, width=width)
    write(Output("text", STDOUT), text)
    return Exit.CLEAN


def _cache() -> Path:
    folder = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(folder) / "geneb-ci" / "github.json"
