"""The command line: whatever a user does, he reads a sentence and gets the right exit code."""

import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from reference_harness import mini
from reference_harness.cli.main import cli, main
from reference_harness.extractors import BUILTINS
from tests.harness.support import REPOSITORY, TEN_LINES, Harness, write_flat

USAGE, NOTHING = 2, 3
MINE = ("--extractor", "mine.py:Composition", "--declare")


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("run",), USAGE, "Missing option '--output'"),
        (("run", "--output", "r", "--tasks", "nope"), USAGE, "GENEB-mini has no such task"),
        (("run", "--output", "r", "--regimes", "2shot"), USAGE, "one of full, 10shot, 1shot"),
        (("run", "--output", "r", "--data", "none"), NOTHING, "none: no such folder"),
        (("run", "--output", "r", "--extractor", "x"), USAGE, "neither a built-in"),
        (("run", "--output", "r", "--extractor", "x:Y"), USAGE, "no such file"),
        (("run", "--output", "r", "--option", "k"), USAGE, "'k': expected KEY=VALUE"),
        (("run", "--output", "r", "--option", "k=99"), NOTHING, "k is 99, expected"),
        (("run", "--output", "r", "--model", "x"), USAGE, "--model has no effect on the built-in"),
        (("run", "--output", "r", "--device", "foo:1"), USAGE, "--device has no effect on the"),
        (
            ("run", "--output", "r", "--extractor", "builtin:kmer", "--device", "cuda"),
            USAGE,
            "leave --device out",
        ),
        (
            ("run", "--output", "r", "--extractor", "random_init", "--device", "cuda"),
            USAGE,
            "no effect on the built-in random_init, which loads no weights and runs on the CPU",
        ),
        (("run", "--output", "r", "--declare", "a=b"), USAGE, "expected one of layer"),
        (
            ("run", "--output", "r", "--declare", "layer=1"),
            USAGE,
            "already declares 'none': leave",
        ),
        (("run", "--output", "r", *MINE, "dtype=int"), USAGE, "dtype=int: expected one of float"),
        (("run", "--output", "r", *MINE, "max_length=0"), USAGE, "a number of tokens, or none"),
        (("run", "--output", "r", "--model-id", "a/b"), USAGE, "--model-id 'a/b'"),
        pytest.param(  # asks torch, which takes seconds to load
            ("run", "--output", "r", "--probe-device", "quantum"),
            USAGE,
            "--probe-device quantum",
            marks=pytest.mark.nightly,
        ),
        (("run", "--output", "r", "--benchmark", "x"), USAGE, "add --data DIR"),
        (
            ("run", "--output", "r", "--limit", "9", "--submission", "s"),
            USAGE,
            "exclude each other",
        ),
        (("run", "--output", "/proc/none/r", "--tasks", "mini_tf"), NOTHING, "/proc/none"),
        (("tasks", "--benchmark", "none.json"), USAGE, "none.json: cannot be read"),
        (("data", "audit", "none"), NOTHING, "none: no such folder"),
        (
            ("data", "verify", "none"),
            NOTHING,
            "none: no such folder: run geneb-harness data pull none",
        ),
        (
            ("data", "verify", "."),
            NOTHING,
            ".: the folder has no manifest.json: run geneb-harness data pull .",
        ),
        (("data", "pull", "x", "--revision", "main"), USAGE, "40 hex digits"),
        (("extractors", "check", "kmer", "--select", "nope"), USAGE, "no such property: nope"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_faults_are_sentences(
    here: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], code: int, says: str
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["geneb-harness", *words])
        with pytest.raises(SystemExit) as ended:
            main()
    assert says in capsys.readouterr().err
    assert ended.value.code == code
    assert not (here / "r").exists()


@pytest.mark.usefixtures("here")
def test_only_a_command_that_can_be_resumed_names_the_option(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys, "argv", ["geneb-harness", "tasks"])
    monkeypatch.setattr("reference_harness.data.benchmark.default", interrupt)
    with pytest.raises(SystemExit) as ended:
        main()
    assert (ended.value.code, capsys.readouterr().err) == (130, "\nstopped\n")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield a folder to stand in, and put back the signal handler that `main` sets."""
    (tmp_path / "mine.py").write_text(TEN_LINES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GENEB_HARNESS_CACHE", str(tmp_path / "cache"))
    before = signal.getsignal(signal.SIGTERM)
    yield tmp_path
    signal.signal(signal.SIGTERM, before)


def test_bad_data_of_all_tasks_are_reported_before_any_work(harness: Harness) -> None:
    for name in ("mini_tf", "mini_splice"):
        path = write_flat(mini.load(name), harness.folder / "data")
        path.write_text(path.read_text() + "ACXT,1,train\n")
    done = harness(
        "run", "--output", "r", "--data", "data",
        "--benchmark", REPOSITORY / "schemas" / "benchmark-mini.json",
    )  # fmt: skip
    assert done.returncode == NOTHING
    for name in ("mini_tf", "mini_splice"):
        assert f"data/{name}.csv:522: character 'X' at position 3" in done.stderr


def test_limit_is_a_trial(harness: Harness) -> None:
    done = harness("run", "--output", "r", "--limit", 20, "--regimes", "full", "--quiet")
    assert done.returncode == 0, done.stderr
    record = json.loads((harness.folder / "r").read_text())
    assert record["limit"] == 20
    assert record["regimes"] == ["full"]
    assert {sum(task["train"].values()) for task in record["tasks"].values()} == {20}


def test_tasks_and_extractors_are_listed(harness: Harness) -> None:
    assert len(harness("tasks").stdout.splitlines()) == 100
    assert harness("tasks", "--mini").stdout.splitlines()[0] == "mini_histone\tHistone Mod.\t160"
    listed = harness("extractors", "list").stdout.split("\nyours\n")[0].splitlines()
    assert [line.split(maxsplit=1) for line in listed] == [
        ["built", "in"],
        *([name, builtin.summary] for name, builtin in BUILTINS.items()),
    ]


def test_data_audit_speaks_text_and_json(harness: Harness) -> None:
    assert harness("data", "audit").stdout.endswith(
        "0 of 13 tasks have duplicate sequences or leakage\n"
    )
    document = json.loads(harness("data", "audit", "--format", "json").stdout)
    assert len(document) == 13
    assert document[0]["train"]["rows"] == 360


def test_every_command_and_option_has_a_help_text() -> None:
    def walk(command: click.Command, path: str) -> list[str]:
        lacking = [] if command.help else [path]
        options = [p for p in command.params if isinstance(p, click.Option)]
        lacking += [f"{path} {option.opts[0]}" for option in options if not option.help]
        for name, child in getattr(command, "commands", {}).items():
            lacking += walk(child, f"{path} {name}")
        return lacking

    assert walk(cli, "geneb-harness") == []


def test_an_option_that_an_extractor_lacks_is_named_with_those_that_it_has(
    harness: Harness,
) -> None:
    done = harness("run", "--output", "r.json", "--option", "z=3", "--tasks", "mini_tf")
    assert done.returncode == 2
    assert "KmerExtractor has no option 'z'; its options are: k" in done.stderr
    assert "correct the constructor" not in done.stderr
