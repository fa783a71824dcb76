"""`geneb-ci check` as a user runs it: exit codes, outputs, streams and what is imported."""

import json
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from geneb_ci.check.registry import RULES
from geneb_ci.cli import shared
from geneb_ci.render.formats import pull_request_hint
from tests import forked
from tests.paths import PUBLIC, ROOT, SUBMISSIONS

SPLICEBERT = SUBMISSIONS / "splicebert-1024nt.json"


def geneb_ci(
    *arguments: str, cwd: Path = PUBLIC, **environment: str
) -> subprocess.CompletedProcess[str]:
    return forked.run("geneb_ci", *arguments, cwd=cwd, env=os.environ | environment)


def broken(folder: Path, old: str, new: str) -> Path:
    path = folder / SPLICEBERT.name
    text = SPLICEBERT.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    return path


def verdict(done: subprocess.CompletedProcess[str]) -> dict[str, list[str]]:
    rules_by_severity: dict[str, list[str]] = {}
    for finding in json.loads(done.stdout)["findings"]:
        rules_by_severity.setdefault(finding["severity"], []).append(finding["rule"])
    return rules_by_severity


def test_version():
    assert geneb_ci("--version").stdout == "geneb-ci 1.0.0\n"


def test_all_public_submissions_pass_and_a_repository_needs_no_path():
    named, result = (
        geneb_ci("check", "submissions", "--format", "json"),
        geneb_ci("check", "--jobs", "1", "--format", "json"),  # or it would judge this branch
    )
    assert (named.returncode, named.stderr) == (0, "")
    # Two rows of known defective extractors; docs/contributor/plausibility.md tells their story.
    assert verdict(named) == {
        "warning": ["implausible-cell"] * 7,
        "note": ["category-crown", "no-run-details"],
    }
    assert result.stdout == named.stdout
    assert json.loads(named.stdout)["files"] == 41


def test_a_lone_file_in_an_empty_folder(tmp_path):
    shutil.copy(SPLICEBERT, tmp_path / "mine.json")
    done = geneb_ci("check", "mine.json", "--format", "json", cwd=tmp_path)
    assert done.returncode == 0
    assert verdict(done) == {"note": ["no-run-details"]}


@pytest.mark.parametrize(
    "swap", [('"Acc":0.', '"Acc":1.'), ('"MCC"', '"mcc"'), ('"self-reported"', '"verified"')]
)
def test_errors_exit_11(tmp_path, swap):
    assert geneb_ci("check", str(broken(tmp_path, *swap))).returncode == 11


def test_warnings_exit_0_or_10_under_strict(tmp_path):
    path = broken(tmp_path, '"Ken Chen"', '""')
    assert geneb_ci("check", str(path)).returncode == 0
    assert geneb_ci("check", "--strict", str(path)).returncode == 10
    assert geneb_ci("check", "--strict", "--ignore", "missing-submitter", str(path)).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["/no/such/file.json"], "/no/such/file.json: no such file"),
        (["*.nothing"], "*.nothing: no file matches"),
        (["{empty}"], "{empty}: the folder contains no *.json"),
        (["{empty}/x.json/y.json"], "{empty}/x.json/y.json: no such file"),
    ],
)
def test_nothing_checked_exits_3_with_one_clear_line(tmp_path, arguments, line):
    filled = [argument.replace("{empty}", str(tmp_path)) for argument in arguments]
    done = geneb_ci("check", *filled)
    assert (done.returncode, done.stderr) == (3, "")
    assert done.stdout.startswith("not checked\n\n")
    message = f"""
        not checked {line.replace("{empty}", str(tmp_path))}
        fix: pass a submission, or a folder with *.json files
        0 submissions, {len(RULES)} rules: 1 path could not be checked
    """
    # A long path is broken between two lines.
    assert "".join(done.stdout.split()) == "".join(message.split())


def test_no_path_outside_a_repository_is_a_question_of_usage(tmp_path):
    done = geneb_ci("check", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (
        2,
        (
            "geneb-ci: no submission is named, and the current folder is not in a repository\n"
            "  fix: name a submission: geneb-ci check submission.json\n"
        ),
    )


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ["--select", "mising-task"],
            "'mising-task' is not a rule or a family; did you mean \"missing-task\"?",
        ),
        (["--ignore", "x"], "'x' is not a rule or a family"),
        (
            ["--select", "card", "--ignore", "card"],
            "these options leave no rule to run",
        ),
        (
            ["--format", "json", "--format", "sarif"],
            "two reports would be written to the same file",
        ),
        (
            ["--output", "/no/such/folder/x"],
            "/no/such/folder/x: cannot be written: No such file or directory",
        ),
    ],
)
def test_usage_exits_2(arguments, line):
    done = geneb_ci("check", str(SPLICEBERT), *arguments)
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == f"geneb-ci: {line}"


def test_unknown_options_exit_2():
    assert geneb_ci("check", "--no-such-option").returncode == 2
    assert geneb_ci("no-such-command").returncode == 2


def test_a_broken_benchmark_exits_1_and_names_the_key(tmp_path):
    (tmp_path / "submissions").mkdir()
    (tmp_path / "schemas").mkdir()
    shutil.copy(SPLICEBERT, tmp_path / "submissions")
    benchmark = json.loads((ROOT / "schemas/benchmark.json").read_bytes())
    benchmark["tasks"][3]["n_test"] = "3168"
    (tmp_path / "schemas/benchmark.json").write_text(json.dumps(benchmark), encoding="utf-8")
    shutil.copytree(ROOT / "leaderboard/policy", tmp_path / "leaderboard/policy")
    done = geneb_ci("check", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr == (
        f"geneb-ci: {tmp_path}/schemas/benchmark.json: "
        'tasks/3/n_test: found "3168"; Input should be a valid integer\n'
        "  fix: compare the file with schemas/benchmark.schema.json\n"
    )


def test_each_output_belongs_to_the_format_before_it(tmp_path):
    sarif, markdown = tmp_path / "a.sarif", tmp_path / "b.md"
    arguments = [
        "--format",
        "text",
        "--format",
        "sarif",
        "--output",
        str(sarif),
        "--format",
        "markdown",
    ]
    done = geneb_ci("check", str(SPLICEBERT), *arguments, "--output", str(markdown))
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1].startswith("1 submission")
    assert json.loads(sarif.read_text(encoding="utf-8"))["version"] == "2.1.0"
    assert "splicebert-1024nt" in markdown.read_text(encoding="utf-8")


def test_one_bad_file_hides_no_other(tmp_path):
    (tmp_path / "empty.json").touch()
    (tmp_path / "loop.json").symlink_to("loop.json")
    (tmp_path / "folder.json").mkdir()
    os.mkfifo(tmp_path / "pipe.json")
    broken(tmp_path, '"Acc":0.', '"Acc":1.')
    done = geneb_ci("check", str(tmp_path), "--format", "json")
    assert done.returncode == 11
    rules = {(Path(f["file"]).name, f["rule"]) for f in json.loads(done.stdout)["findings"]}
    assert rules == {
        ("empty.json", "empty-file"),
        ("folder.json", "irregular-file"),
        ("loop.json", "irregular-file"),
        ("pipe.json", "irregular-file"),
        (SPLICEBERT.name, "score-out-of-range"),
        (SPLICEBERT.name, "no-run-details"),
    }


HEAVY = {
    "numpy",
    "pandas",
    "scipy",
    "torch",
    "transformers",
    "sklearn",
    "github",
    "huggingface_hub",
    "jsonschema",
}


def test_check_and_the_help_of_audits_import_nothing_heavy():
    code = (
        "import sys; from geneb_ci.cli.main import main; code = main(['check', 'submissions']);"
        "import geneb_ci.cli.audit;"
        "print(sorted({name.split('.')[0] for name in sys.modules} & set(sys.argv[1:])), code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *HEAVY], cwd=PUBLIC, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[] 0"


def on_terminal(*arguments: str, **environment: str) -> str:
    """Run the command with a terminal as its standard output, and give what was shown."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "geneb_ci", *arguments],
        stdout=theirs,
        cwd=PUBLIC,
        env=os.environ | environment,
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other side is closed
            break
        if not part:
            break
        shown += part
    os.close(ours)
    process.wait()
    return shown.decode()


def test_colour_is_for_terminals_that_want_it(tmp_path):
    path = str(broken(tmp_path, '"Acc":0.', '"Acc":1.'))
    assert "\x1b[" in on_terminal("check", path, TERM="xterm-256color", NO_COLOR="")
    assert "\x1b[" not in on_terminal("check", path, TERM="xterm-256color", NO_COLOR="1")
    assert "\x1b[" not in geneb_ci("check", path, TERM="xterm-256color").stdout


def test_a_reader_that_goes_away_is_no_fault():
    command = f"{sys.executable} -m geneb_ci rules --all | head -n 1"
    done = subprocess.run(
        ["bash", "-c", command], cwd=PUBLIC, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("structure\n", "")


class Terminal:
    """A standard error that claims to be a terminal."""

    def __init__(self) -> None:
        self.text = ""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None:
        """Do nothing: nothing is held back."""


@pytest.mark.parametrize(("patience", "drawn"), [(0.0, True), (60.0, False)])
def test_a_bar_is_drawn_only_for_work_that_lasts(monkeypatch, patience, drawn):
    terminal = Terminal()
    monkeypatch.setattr(shared, "SILENT_SECONDS", patience)
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert list(shared.with_progress(iter(range(5)), 5, "checking")) == [0, 1, 2, 3, 4]
    assert ("checking" in terminal.text) == drawn


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_without_escape_sequences_lines_say_what_is_left(monkeypatch, name, value):
    terminal = Terminal()
    monkeypatch.setattr(shared, "SILENT_SECONDS", 0.0)
    monkeypatch.setattr("geneb_ci.cli.main.PROGRESS_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv(name, value)
    assert list(shared.with_progress(iter(range(5)), 5, "checking")) == [0, 1, 2, 3, 4]
    lines = [f"checking: {number} of 5, about 0 s left" for number in (2, 3, 4, 5)]
    assert terminal.text.splitlines() == lines


@pytest.mark.parametrize(
    ("seconds", "shown"), [(600.0, "building the board: about 600 s\n"), (0.5, "")]
)
def test_a_build_shows_after_its_checks_how_long_it_takes(monkeypatch, seconds, shown):
    terminal = Terminal()
    monkeypatch.setattr(shared, "BUILD_SECONDS_PER_ROW", seconds)
    monkeypatch.setattr(sys, "stderr", terminal)
    assert list(shared.watch_build(iter("a"), 1)) == ["a"]
    assert terminal.text == shown


def test_no_bar_without_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr(shared, "SILENT_SECONDS", 0.0)
    assert list(shared.with_progress(iter(range(5)), 5, "checking")) == [0, 1, 2, 3, 4]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("command", ["check", "rules", "explain", "build"])
def test_every_command_has_help(command):
    done = geneb_ci(command, "--help")
    assert done.returncode == 0
    assert done.stdout.startswith(f"Usage: geneb-ci {command} ")


def test_a_fault_of_our_own_is_one_line_and_exit_1(monkeypatch, capsys):
    from geneb_ci.cli import main as module

    monkeypatch.setattr(module.cli, "main", lambda *_, **__: 1 / 0)
    assert module.main(["check"]) == 1
    assert capsys.readouterr().err == (
        "geneb-ci: internal error: ZeroDivisionError: division by zero\n"
        "  fix: report this bug to the maintainers with the traceback, which GENEB_CI_DEBUG=1 "
        "prints\n"
    )


def test_a_letter_that_the_encoding_lacks_is_replaced(tmp_path):
    (tmp_path / "binary.json").write_bytes(b"\x89XYZ\r\n")
    done = subprocess.run(
        [sys.executable, "-m", "geneb_ci", "check", "binary.json"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (11, f"{pull_request_hint(is_short=True)}\n")
    assert "| ?XYZ" in done.stdout


def test_a_verdict_is_reached_where_nothing_can_be_printed():
    command = f"'{sys.executable}' -m geneb_ci check '{SPLICEBERT}' >&- 2>&-"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    assert subprocess.run(["sh", "-c", command], env=environment, check=False).returncode == 0


@pytest.mark.parametrize("name", ["model", "MODEL.json", "Model.JSON"])
def test_a_file_that_differs_in_case_or_ending_is_suggested(tmp_path, name):
    (tmp_path / "model.json").touch()
    done = geneb_ci("check", str(tmp_path / name))
    assert done.returncode == 3
    assert f"{name}: no such file; did you mean {tmp_path / 'model.json'}?" in " ".join(
        done.stdout.split()
    )
