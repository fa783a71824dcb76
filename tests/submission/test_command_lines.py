"""A command that is printed at the end of another one: a shell reads its lines as one command."""

import shlex

import pytest

from reference_harness.formats.text import command_lines, next_line

LONG = "geneb-harness run --model OWNER/MODEL --option 'a=b c' --training-data \"it's DNA\" x.json"


@pytest.mark.parametrize("columns", [20, 40, 60, 80, 400])
@pytest.mark.parametrize("indent", ["", "  "])
def test_a_shell_reads_the_lines_as_the_command(columns, indent):
    lines = list(command_lines(f"{indent}{LONG}", columns))
    assert all(line.endswith(" \\") for line in lines[:-1])
    assert shlex.split("".join(line.removesuffix("\\") for line in lines)) == shlex.split(LONG)
    assert (len(lines) == 1) == (columns == 400)


def test_an_option_stays_with_its_value_and_a_chain_with_its_command():
    assert list(command_lines(next_line("git add --all -- a b && git commit -m 'Add a'"), 30)) == [
        "next: git add --all -- a b \\",
        "    && git commit -m 'Add a'",
    ]
    assert list(command_lines("geneb-ci run --model OWNER/MODEL x", 30)) == [
        "geneb-ci run \\",
        "    --model OWNER/MODEL x",
    ]


def test_nothing_is_broken_that_fits_and_nothing_is_lost_that_does_not():
    assert list(command_lines("next: geneb-ci next", 80)) == ["next: geneb-ci next"]
    assert list(command_lines("", 80)) == [""]
    assert list(command_lines("a " + "b" * 100, 20)) == ["a \\", "    " + "b" * 100]
