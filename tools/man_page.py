"""Generates the man page of `geneb-ci` from its command line: every command with its options."""

import inspect
import re
from collections.abc import Iterator

import click

from geneb_ci import __version__
from geneb_ci.cli.main import cli
from geneb_ci.common.errors import Exit

PAGE = "docs/geneb-ci.1"
EXITS = {
    Exit.CLEAN: "No error; there may be warnings.",
    Exit.OWN_FAULT: "A failure of geneb-ci, of its settings or of this machine.",
    Exit.USAGE: "Wrong usage: an unknown option or rule, a file that cannot be written.",
    Exit.NOT_CHECKED: "No file was checked, or a file or check could not be run.",
    Exit.MOVED: "The pull request has new commits: nothing was written.",
    Exit.WARNINGS: "Warnings, under --strict.",
    Exit.ERRORS: "Errors; an audit that differs; a record or receipt that does not verify.",
}
VARIABLES = {
    "NO_COLOR": "No colours in the output.",
    "COLUMNS": "The width of the output; default: that of the terminal.",
    "XDG_CACHE_HOME": "Folder of kept results and of unfinished audits; default: ~/.cache.",
    "GENEB_CI_DEBUG": "Print the traceback of an internal error.",
}


def man_page() -> str:
    """Return the page in roff, without a date, so that it is the same on every machine."""
    lines = [
        f'.TH GENEB-CI 1 "" "geneb-ci {__version__}" "User commands"',
        ".SH NAME",
        r"geneb\-ci \- check, audit and publish a leaderboard of DNA foundation models",
        ".SH SYNOPSIS",
        r".B geneb\-ci",
        r"[\fIOPTIONS\fR] \fICOMMAND\fR [\fIARGS\fR]...",
        ".SH COMMANDS",
        "Each prints its options with -h or --help.",
    ]
    for path, command in _commands(cli, "geneb-ci"):
        lines += _section(path, command)
    lines += [".SH EXIT STATUS", *_listed({str(int(code)): EXITS[code] for code in Exit})]
    lines += [".SH ENVIRONMENT", *_listed(VARIABLES)]
    return "\n".join(lines) + "\n"


def _commands(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    """Yield each command that is not a group, with its full name."""
    ctx = click.Context(group)
    for command_name in group.list_commands(ctx):
        command = group.get_command(ctx, command_name)
        if command is None:
            raise LookupError(f"{path} {command_name}")
        if isinstance(command, click.Group):
            yield from _commands(command, f"{path} {command_name}")
        else:
            yield f"{path} {command_name}", command


def _section(path: str, command: click.Command) -> Iterator[str]:
    ctx = click.Context(command, info_name=path)
    yield f'.SS "{_plain(path)} {_plain(" ".join(command.collect_usage_pieces(ctx)))}"'
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    for number, paragraph in enumerate(paragraphs):
        yield from [".PP", _plain(paragraph)] if number else [_plain(paragraph)]
    options = (option for option in command.params if isinstance(option, click.Option))
    records = (option.get_help_record(ctx) for option in options)
    yield from _listed(dict(record for record in records if record is not None))


def _listed(descriptions: dict[str, str]) -> Iterator[str]:
    for term, description in descriptions.items():
        yield from (".TP", rf"\fB{_plain(term)}\fR", _plain(description))


def _plain(text: str) -> str:
    """Return text on one line, escaped so that roff prints it literally."""
    text = re.sub(r"\s+", " ", text.replace("\b", "")).strip()
    text = text.replace("\\", r"\e").replace("-", r"\-").replace('"', r"\(dq")
    return rf"\&{text}" if text[:1] in {".", "'"} else text
