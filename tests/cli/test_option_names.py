"""Options that take a name: a misspelt one gets a suggestion at once, and letter case is free."""

import sys

import click
import pytest

from geneb_ci.cli.main import main
from reference_harness.cli import main as harness
from tests.audit.recorded import repository
from tests.gate import gated
from tests.git import git
from tests.house.test_help import COMMANDS

ROW = "submissions/model.json"
MINI = "expected one of mini_histone"
Case = tuple[str, str]
NAMES: dict[str, dict[str, Case]] = {
    "geneb-ci check": {
        "--select": ("missing-tsk", 'mean "missing-task"?'),
        "--ignore": ("missing-tsk", 'mean "missing-task"?'),
        "--against": ("shiped", 'mean "shipped"?'),
    },
    "geneb-ci explain": {"name": ("missing-tsk", 'mean "missing-task"?')},
    "geneb-ci matrices": {"--regime": ("ful", 'mean "full"?')},
    "geneb-ci recommend": {
        "--category": ("promotor", 'mean "Promoters"?'),
        "--species": ("plant", "tasks.toml of the policy names no species"),
        "--regime": ("ful", 'mean "full"?'),
    },
    "geneb-ci figures": {
        "--figure": ("size-corelation", 'mean "size-correlation"?'),
        "--set": ("regim=full", 'mean "regime"?'),
        "--exclude": ("modle", 'mean "model"?'),
    },
    "geneb-ci export": {
        "--model": ("modle", 'mean "model"?'),
        "--verify-token": ("modle=x", 'mean "model"?'),
    },
    "geneb-ci models show": {"model_id": ("GROVR", 'mean "GROVER"?')},
    "geneb-ci models verify": {"models": ("GROVR", 'mean "GROVER"?')},
    "geneb-harness data pull": {"--tasks": ("leannmlindsey_GUE_emp_H33", "'leannmlindsey_GUE_emp")},
    "geneb-harness extractors check": {
        "spec": ("kmr", "mean 'kmer'?"),
        "--select": ("paddin", "mean 'padding'?"),
    },
    "geneb-harness extractors digest": {"name": ("kmr", "mean 'kmer'?")},
    "geneb-harness fresh": {"--tasks": ("mini_histon", "mean 'mini_histone'?")},
    "geneb-harness run": {
        "--extractor": ("kmr", "mean 'kmer'?"),
        "--declare": ("layr=2", "mean 'layer'?"),
        "--tasks": ("mini_histon", "mean 'mini_histone'?"),
        "--regimes": ("ful", "mean 'full'?"),
    },
    "geneb-harness sequences": {"--tasks": ("mini_histon", "mean 'mini_histone'?")},
}  # fmt: skip
"""By command and option: a misspelt name, and what is said of it."""
REST = {
    "geneb-ci explain": "", "geneb-ci matrices": ROW,
    "geneb-ci export": "--format csv --output out",
    "geneb-ci figures": "--figure size-correlation", "geneb-ci recommend": "--regime full",
    "geneb-harness data pull": "out", "geneb-harness extractors check": "kmer",
    "geneb-harness fresh": "--seed 1 --output out.csv",
    "geneb-harness sequences": "--output out", "geneb-harness run": "--output out --model-id x",
}  # fmt: skip
"""What a command needs beside the option."""
ELSEWHERE = {
    "geneb-ci receipt verify": {"--tasks"},
    "geneb-ci receipt pull": {"--tasks"},
    "geneb-harness receipt-cells": {"--tasks"},
    "geneb-harness receipt-equal": {"--tasks"},
    "geneb-harness receipt-refit": {"--task"},
    "geneb-harness rescore": {"--tasks", "--regimes"},
    "geneb-harness variants": {"--task"},
    "geneb-harness probe": {"--tasks", "--regimes"},
    "geneb-ci audit send": {"--flavor"},
    "geneb-ci audit open": {"--row"},
    "geneb-ci audit commit": {"--extractor"},
}
"""Names that are compared with what a receipt, an order or a matrix has, by the tests of those."""
FREE = {
    *("arguments", "words", "word", "receipts", "repository", "generation"),
    *("--base", "--repo", "--output", "--at", "--max-params", "--space", "--expect", "--rules"),
    *("--model-id", "--display", "--url", "--submitted-by", "--training-data", "--time"),
    *(
        "--committed-at",
        "--other-draws",
        "--rows",
        "--size",
        "--relay",
        "--why",
        "--device",
        "--option",
        "--revision",
    ),
    *("--weights", "--confidence", "--task-power", "--image", "--namespace", "--reason"),
    *("--owner", "--shown-on", "--mirror", "--head-sha", "--group", "--run", "--maintainers"),
    *("--github", "--name", "--endpoint", "--folder", "--seeds", "--probe-device", "--seed"),
    "--program",
}
"""Options whose value is a text, a file, an address, a commit, a number or a name elsewhere."""
MODELS = {("geneb-ci audit commit", "--model"), ("geneb-harness run", "--model")}
MODELS |= {("geneb-harness extractors check", "--model")}
"""A model of the Hub, which alone knows its names."""


def options(kind: type) -> set[tuple[str, str]]:
    """Return command and option of each parameter of this type."""
    return {
        (path, parameter.opts[0])
        for path, command in COMMANDS.items()
        for parameter in command.params
        if type(parameter.type) is kind and not getattr(parameter, "is_flag", False)
    } - {(path, option_name) for path, option_name in MODELS}


def test_each_option_with_a_text_is_free_or_a_name_with_a_case():
    cases = {(path, option_name) for path, name in NAMES.items() for option_name in name}
    elsewhere = {
        (path, option_name) for path, member in ELSEWHERE.items() for option_name in member
    }
    texts = {
        path_and_option
        for path_and_option in options(type(click.STRING))
        if path_and_option[1] not in FREE
    }
    assert texts == cases | elsewhere


def test_no_choice_cares_for_letter_case():
    choices = [
        (path, parameter.opts[0])
        for path, command in COMMANDS.items()
        for parameter in command.params
        if isinstance(parameter.type, click.Choice) and parameter.type.case_sensitive
    ]
    assert len(options(click.Choice)) > 30
    assert choices == []


SYNONYMS = {
    *("--json", "--markdown", "--style", "--to", "--report-format"),
    *("--out", "--into", "-o", "--out-file", "--output-file", "--destination", "--write-to"),
}
"""Other names of --format and --output."""
HIDDEN = [
    (path, param)
    for path, command in COMMANDS.items()
    for param in command.params
    if getattr(param, "hidden", False)
]


def test_an_option_has_one_name_in_all_commands():
    shown = {
        (path, name)
        for path, command in COMMANDS.items()
        for param in command.params
        if (path, param) not in HIDDEN
        for name in param.opts
    }
    assert {(path, name) for path, name in shown if name in SYNONYMS} == set()
    assert len([name for _, name in shown if name == "--output"]) > 30


@pytest.mark.parametrize(
    ("path", "param"),
    [
        path_and_option
        for path_and_option in HIDDEN
        if str(path_and_option[1].name).startswith("earlier_")
    ],
)
def test_an_earlier_name_of_an_option_stands_for_the_present_one(path, param, capsys):
    """It says the new name, and the command has the value as if that had been typed."""
    words = str(param.help).removeprefix("Earlier name of ").removesuffix(".").split()
    (present,) = [parameter for parameter in COMMANDS[path].params if words[0] in parameter.opts]
    context = click.Context(COMMANDS[path])
    param.callback(context, param, words[-1])
    assert f"{param.opts[0]} is now {' '.join(words)}" in capsys.readouterr().err
    assert context.lookup_default(present.name) == words[-1]


@pytest.fixture(scope="module")
def repository_folder(tmp_path_factory):
    root = repository(tmp_path_factory.mktemp("names"))
    git(root, "init", "--quiet", "--initial-branch", "main")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "rows")
    return root


@pytest.fixture
def typed(repository_folder, tmp_path, monkeypatch, capfd):
    """Run words in the repository, those of the harness elsewhere.

    Return the exit code and all that is printed.
    """
    monkeypatch.chdir(repository_folder)
    monkeypatch.setenv("COLUMNS", "1000")
    monkeypatch.setattr(sys, "argv", sys.argv)

    def run(program: str, *words: str) -> tuple[object, str]:
        code: object = 0
        if program == "geneb-ci":
            code = main([*words])
        else:
            monkeypatch.chdir(tmp_path)  # a board of another benchmark refuses a run without data
            sys.argv = [program, *words]
            try:
                harness.main()
            except SystemExit as end:
                code = end.code
        shown = capfd.readouterr()
        return code, shown.out + shown.err

    return run


@pytest.fixture
def run_with_option(typed):
    """Run a command with an option, and with what else it needs."""

    def run(path: str, option: str, value: str) -> tuple[object, str]:
        rest = [] if option in {"spec", "name"} else REST.get(path, "").split()
        rest = ["eval-results" if option == "--verify-token" and o == "csv" else o for o in rest]
        last = [option, value] if option.startswith("-") else [value]
        result: tuple[object, str] = typed(*path.split(), *rest, *last)
        return result

    return run


@pytest.mark.parametrize(
    ("words", "code", "due"),
    [
        ("rules --json", 0, '"missing-task"'),
        ("export --to csv --out out --model nobody", 2, '"nobody" is not a model'),
        ("build --out submissions", 2, "name another folder by --output"),
    ],
)
def test_a_command_runs_by_an_earlier_name(typed, words, code, due):
    result, text = typed("geneb-ci", *words.split())
    assert (result, due in text, "is now --" in text) == (code, True, True), text


ALL = [(path, option, *case) for path, name in NAMES.items() for option, case in name.items()]


@pytest.mark.parametrize(("path", "option", "wrong", "due"), ALL)
def test_a_misspelt_name_gets_a_suggestion(
    run_with_option, monkeypatch, tmp_path, path, option, wrong, due
):
    if path.startswith("geneb-ci models"):
        monkeypatch.chdir(tmp_path)  # the registry that is shipped has models
    code, text = run_with_option(path, option, wrong)
    assert code == 2, text
    assert due in text


@pytest.mark.parametrize(
    ("path", "option", "value", "due"),
    [
        ("geneb-ci check", "--select", "Missing-Task", "1 submission, 2 rules"),
        ("geneb-ci check", "--against", "None", "1 submission"),
        ("geneb-ci check", "--format", "JSON", '"findings"'),
        ("geneb-ci explain", "name", "MODEL", "model  "),
        ("geneb-ci figures", "--figure", "Size-Correlation", "size-correlation: "),
        ("geneb-ci figures", "--exclude", "MODEL", "exclude model"),
        ("geneb-ci figures", "--set", "Regime=FULL", "regime full"),
        ("geneb-harness extractors digest", "name", "KMER", '"builtin:kmer"'),
        ("geneb-harness fresh", "--tasks", "MINI_HISTONE", "out.csv"),
    ],
)
def test_letter_case_does_not_matter(run_with_option, path, option, value, due):
    code, text = run_with_option(path, option, value)
    assert (code, due in text) == (0, True), text


def test_many_names_are_counted_and_few_are_listed(run_with_option):
    assert " and 95 more" in run_with_option("geneb-harness data pull", "--tasks", "nothing")[1]
    assert (
        f"no such task: {MINI}" in run_with_option("geneb-harness fresh", "--tasks", "nothing")[1]
    )


@pytest.mark.parametrize(
    ("model_id", "due"),
    [
        ("a b", "model_id is \"a b\"; expected ASCII letters, digits, '.', '_' and '-'"),
        ("a/b", 'model_id is "a/b"; expected ASCII letters'),
        ("", 'model_id is ""; expected ASCII letters'),
        ("x" * 129, "expected at most 128 characters"),
        ("aux", 'model_id is "aux", a reserved name; expected a name that every file system'),
    ],
)
@pytest.mark.parametrize("command", ["pack", "new"])
def test_an_id_that_check_refuses_is_refused_at_once(run_with_option, command, model_id, due):
    rest = "a/b" if command == "new" else "."
    code, text = run_with_option(f"geneb-ci {command} {rest}", "--model-id", model_id)
    assert code == 2
    assert due in text
    assert "fix: " in text


# An unknown name of each kind, whatever command takes it: the command line, words of the message.
UNKNOWN = {
    "command": ("geneb-ci chek", "No such command 'chek'"),
    "subcommand": ("geneb-ci audit plann c.json", "No such command 'plann'"),
    "option": ("geneb-ci check --strikt", "No such option"),
    "rule": ("geneb-ci check --select nothing", "'nothing' is not a rule"),
    "rule to explain": ("geneb-ci explain nothing", "neither a rule nor a model"),
    "format": ("geneb-ci check --format nothing", "'nothing' is not one of"),
    "format of a list": ("geneb-ci models list --format nothing", "'nothing' is not one of"),
    "format of an export": (
        "geneb-ci export --format nothing --output o",
        "'nothing' is not one of",
    ),
    "regime": (f"geneb-ci matrices {ROW} --regime nothing", "is not a regime"),
    "regime of advice": ("geneb-ci recommend --regime nothing", "is not a regime"),
    "category": ("geneb-ci recommend --category nothing", "is not a category"),
    "evidence": ("geneb-ci recommend --evidence nothing", "'nothing' is not one of"),
    "figure": ("geneb-ci figures --figure nothing", "is not a figure"),
    "model of the board": (
        "geneb-ci export --format csv --output o --model nothing",
        "is not a model",
    ),
    "model of the registry": ("geneb-ci models show nothing", "has no entry for"),
    "model to verify": ("geneb-ci models verify nothing", "has no entry for"),
    "commit": ("geneb-ci check --base nothing", "'nothing' is not a commit"),
    "commit of a board": ("geneb-ci diff --base nothing", "is not a commit"),
    "commit of a ledger": ("geneb-ci ledger --at nothing", "is not a commit"),
    "generation": ("geneb-ci rollback nothing --space a/b", "is not a generation"),
    "key of a figure": (
        "geneb-ci figures --figure size-correlation --set nothing=1",
        "is not a parameter",
    ),
    "role": ("geneb-ci next --as nothing", "'nothing' is not one of"),
    "task of a run": ("geneb-harness run --output r --tasks nothing", "has no such task"),
    "regime of a run": ("geneb-harness run --output r --regimes nothing", "expected one of full"),
    "extractor of a run": (
        "geneb-harness run --output r --extractor nothing",
        "neither a built-in",
    ),
    "module of a run": ("geneb-harness run --output r --extractor no.py:No", "no such file"),
    "option of an extractor": ("geneb-harness run --output r --option no=1", "has no option 'no'"),
    "option of the Hub's": (
        "geneb-harness run --output r --extractor huggingface --model x --option no=1",
        "no option 'no' of the extractor huggingface",
    ),
    "declaration": ("geneb-harness run --output r --declare no=1", "--declare no: expected one"),
    "device of a probe": ("geneb-harness run --output r --probe-device nothing", "Expected one of"),
    "engine": ("geneb-harness run --output r --engine nothing", "'nothing' is not one of"),
    "extractor to check": ("geneb-harness extractors check nothing", "neither a built-in"),
    "option to check": ("geneb-harness extractors check kmer --option no=1", "has no option 'no'"),
    "property": ("geneb-harness extractors check kmer --select nothing", "no such property"),
    "built-in": ("geneb-harness extractors digest nothing", "no built-in extractor"),
    "task of the data": ("geneb-harness data pull d --tasks nothing", "has no such task"),
    "task of fresh rows": ("geneb-harness fresh --seed 1 --output o --tasks no", "no such task"),
    "task of sequences": ("geneb-harness sequences --output o --tasks nothing", "no such task"),
    "kind of probe": ("geneb-harness probe x --kind nothing", "'nothing' is not one of"),
}


# By night, the one that asks torch which devices there are: a second.
@pytest.mark.parametrize("kind", gated(UNKNOWN, *(UNKNOWN.keys() - {"device of a probe"})))
def test_an_unknown_name_has_one_exit_code_in_all_commands(typed, kind):
    line, words = UNKNOWN[kind]
    code, text = typed(*line.split())
    assert (code, words in text) == (2, True), text
