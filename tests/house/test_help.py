"""Every command and every option of both programs has a help text; output fits 80 columns."""

from collections.abc import Iterator

import click
import pytest
from rich.cells import cell_len

from geneb_ci.cli.main import cli as toolkit
from geneb_ci.cli.main import main
from reference_harness.cli import cli as harness
from tests.audit.recorded import mutated, outcome_of, plan_for, put, repository, submission_bytes


def commands(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    """Yield a command with its subcommands; those of the toolkit are imported when asked for."""
    yield path, command
    if isinstance(command, click.Group):
        ctx = click.Context(command)
        for name in command.list_commands(ctx):
            child = command.get_command(ctx, name)
            assert child is not None, f"{path} {name}"
            yield from commands(child, f"{path} {name}")


COMMANDS = dict([*commands(toolkit, "geneb-ci"), *commands(harness, "geneb-harness")])


def test_the_commands_of_both_programs_are_found():
    assert {"geneb-ci audit plan", "geneb-ci data push", "geneb-harness data pull"} <= set(COMMANDS)


@pytest.mark.parametrize("path", COMMANDS)
def test_every_option_has_a_help_text(path):
    command = COMMANDS[path]
    options = [one for one in command.params if isinstance(one, click.Option)]
    lacking = [one.opts[0] for one in options if not one.help]
    assert (bool(command.help), lacking) == (True, [])


@pytest.mark.parametrize("path", COMMANDS)
def test_every_help_fits_eighty_columns(path):
    command = COMMANDS[path]
    shown = command.get_help(click.Context(command, info_name=path, terminal_width=80))
    assert [line for line in shown.splitlines() if cell_len(line) > 80] == []


OUTPUTS = (
    "check submissions",
    "check nowhere.json",
    "rules",
    "explain model-id-collision",
    "explain plausibility",
    "explain nothing",
    "models",
    "matrices submissions/model.json",
    "label",
    "recommend --category promotor",
    "audit verify",
    "audit verify x.json",
    "audit log show",
    "audit commit submissions/model.json",
    "build --out out --no-diagnostics",
)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Make a repository with an audit that holds, and a record that was changed."""
    root = repository(tmp_path_factory.mktemp("wide"))
    raw = submission_bytes()
    outcome = outcome_of(plan_for(raw), raw)
    put(root, outcome)
    (root / "x.json").write_bytes(mutated(outcome, lambda value: value.pop("predicate")))
    return root


@pytest.mark.parametrize("words", OUTPUTS)
def test_output_fits_eighty_columns_without_escape_sequences(place, words, monkeypatch, capsys):
    monkeypatch.chdir(place)
    for name, value in (("COLUMNS", "80"), ("NO_COLOR", "1"), ("TERM", "dumb")):
        monkeypatch.setenv(name, value)
    assert main(words.split()) in {0, 2, 3, 11}
    shown = capsys.readouterr()
    lines = (shown.out + shown.err).splitlines()
    assert [line for line in lines if cell_len(line) > 80 and " " in line.strip()] == []
    assert lines
    assert "\x1b" not in shown.out + shown.err
