"""The Python interface: what the commands print, the page's examples, and what a notebook shows."""

import enum
import inspect
import io
import json
import os
import pty
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import geneb_ci
from geneb_ci.check.registry import FILE_RULES
from geneb_ci.cli.main import COMMANDS, main
from geneb_ci.common.errors import Exit
from geneb_ci.render.formats import FORMATS
from geneb_ci.render.results import AuditResult
from geneb_ci.render.table import HTML_ROWS_MAX, Table
from reference_harness.formats.submission_terms import SUBMISSION_BYTES_MAX
from tests.audit.recorded import outcome_of, plan_for, submission_bytes
from tests.audit.test_embedding_verify import sound
from tests.cli.repository import put, real_repository, small_repository
from tests.each import each
from tests.hostile.conftest import hostile_folder as hostile_folder  # noqa: PLC0414 (a fixture)
from tests.paths import PUBLIC, ROOT
from tests.small import BENCHMARK_FILE, small


def value(name: str) -> Any:
    return getattr(geneb_ci, name)


PAGE = (ROOT / "docs/developer/python.md").read_text(encoding="utf-8")
HOSTILE = "<script>alert(1)</script>\u202e\x1b[31m"


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """Make a repository of two small rows."""
    return small_repository(tmp_path_factory.mktemp("small") / "board", "first", "second")


@pytest.fixture
def here(repository, monkeypatch):
    monkeypatch.chdir(repository)
    return repository


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Make a repository of three public rows, for the examples of the page."""
    names = ("splicebert-1024nt", "GROVER", "DNABERT-S")
    return real_repository(tmp_path_factory.mktemp("public") / "board", *names)


def reports(paths: list[Path], out: Path) -> dict[str, str]:
    """Return what the command writes in each format, by one check."""
    words = [word for name in FORMATS for word in ("--format", name, "--output", f"{out}/{name}")]
    main(["check", *map(str, paths), *FAST, *words])
    return {name: (out / name).read_text(encoding="utf-8") for name in FORMATS}


FAST = ("--ignore", "arithmetic", "--ignore", "plausibility")
"""These take most of the time, and are told the same by both."""


@pytest.mark.parametrize("corpus", ["hostile", "live"])
@pytest.mark.usefixtures("capsys")
def test_findings_are_those_of_the_command_byte_for_byte(corpus, request, tmp_path, monkeypatch):
    """Over every hostile input, and over the public rows."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    paths = [PUBLIC]
    if corpus == "hostile":
        folder = request.getfixturevalue("hostile_folder") / "lf/reject"
        paths = sorted(folder.glob("*.json"))
    reports_by_path = reports(paths, tmp_path)
    report = geneb_ci.check(*paths, ignore=FAST[1::2])
    assert {name: report.text(format_=name) for name in FORMATS} == reports_by_path
    assert report.to_json() == reports_by_path["json"]
    assert len(report.files) > 20


@pytest.mark.usefixtures("here")
def test_a_board_is_that_of_the_command_byte_for_byte(tmp_path, capsys):
    words = ("build", "--no-diagnostics", "--output")
    assert main([*words, str(tmp_path / "command")]) == 0
    board = geneb_ci.build(diagnostics=False, out=tmp_path / "function")
    written = [
        {path.relative_to(top): path.read_bytes() for path in top.rglob("*") if path.is_file()}
        for top in (tmp_path / "command", tmp_path / "function")
    ]
    assert written[0] == written[1]
    assert board.files["leaderboard.json"] == written[0][Path("leaderboard.json")]
    assert [row["model"] for row in board.rows()] == ["first", "second"]
    assert ": 2 models\nnext: geneb-ci serve\n" in capsys.readouterr().out


def test_rows_that_do_not_pass_are_an_error_with_the_report(here, tmp_path, capsys):
    shutil.copytree(here, tmp_path / "board")
    put(tmp_path / "board", "third", small("third") | {"harness_version": ""})
    assert main(["build", str(tmp_path / "board"), "--output", str(tmp_path / "out")]) == 11
    captured_output = capsys.readouterr()
    for call in (geneb_ci.build, geneb_ci.board, geneb_ci.recommend):
        with pytest.raises(geneb_ci.SubmissionsRefused) as refused:
            call(tmp_path / "board")
        assert refused.value.report.text() == captured_output.out
        assert "<td>error</td>" in refused.value.report._repr_html_()
    assert captured_output.err == "nothing was built: every submission must pass every check\n"


def test_a_submission_as_bytes_is_checked_as_a_file_elsewhere(here, tmp_path, monkeypatch, capsys):
    raw = json.dumps(small("first") | {"extra": 1}).encode()
    (tmp_path / "first.json").write_bytes(raw)
    shutil.copy(BENCHMARK_FILE, tmp_path / "benchmark.json")
    against = here / "submissions"
    config = '[tool.geneb-ci]\nbenchmark = "benchmark.json"\n'
    (tmp_path / "pyproject.toml").write_text(config, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    by_file, by_bytes = (
        geneb_ci.check(submission, against=against) for submission in ("first.json", raw)
    )
    assert {finding.rule for finding in by_file.findings} == {"unknown-field", "no-run-details"}
    assert by_bytes.text() == by_file.text().replace("first.json", "-")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))
    assert main(["check", "-", "--against", str(against)]) == 11
    assert capsys.readouterr().out == by_bytes.text()


@pytest.mark.usefixtures("here")
def test_standard_input_has_a_limit_and_is_alone(monkeypatch, capsys):
    endless = io.TextIOWrapper(io.BytesIO(b" " * (SUBMISSION_BYTES_MAX + 2)))
    monkeypatch.setattr(sys, "stdin", endless)
    assert main(["check", "-", "--select", "structure"]) == 11
    assert "file-too-large" in capsys.readouterr().out
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"{}")))
    assert main(["check", "-", "submissions"]) == 2
    assert main(["check", "--fix", "-"]) == 2
    assert "cannot be written" in capsys.readouterr().err


@pytest.mark.usefixtures("here")
def test_a_terminal_is_told_that_it_is_read(monkeypatch, capsys):
    ours, theirs = pty.openpty()
    os.write(ours, b"{}\n\x04")
    with os.fdopen(theirs, encoding="utf-8") as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        assert main(["check", "-", "--select", "structure"]) == 11
    os.close(ours)
    assert capsys.readouterr().err.splitlines()[0] == (
        "reading a submission from the terminal until Ctrl-D; to read a file: geneb-ci check - "
        "< submission.json"
    )


@pytest.mark.usefixtures("here")
def test_a_baseline_leaves_out_what_is_known_and_names_what_is_gone(tmp_path, capsys):
    path = tmp_path / "mine.json"
    known = tmp_path / "baseline.json"
    path.write_text(json.dumps(small("mine") | {"extra": 1, "other": 1}), encoding="utf-8")
    chosen = ["check", str(path), "--select", "structure"]
    assert main([*chosen, "--format", "json", "--output", str(known)]) == 11
    assert main([*chosen, "--baseline", str(known)]) == 0
    assert f"2 findings of {known} left out" in " ".join(capsys.readouterr().err.split())
    path.write_text(json.dumps(small("mine") | {"other": 1, "new": 1}, indent=2), encoding="utf-8")
    assert main([*chosen, "--baseline", str(known), "--format", "json"]) == 11
    shown = capsys.readouterr()
    assert [finding["pointer"] for finding in json.loads(shown.out)["findings"]] == ["/new"]
    text = " ".join(shown.err.split())
    assert f"not found any more: unknown-field in {path} /extra" in text
    report = geneb_ci.check(path, select=["coverage"], baseline=known)
    assert (report.known, report.stale) == (0, []), "these rules were not run"
    for wrong in ("{}", "x", '{"findings": [1]}'):
        known.write_text(wrong, encoding="utf-8")
        assert main([*chosen, "--baseline", str(known)]) == 2


def blocks() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_every_example_of_the_page_runs(rows, monkeypatch, capsys):
    monkeypatch.chdir(rows)
    for block in blocks():
        exec(compile(block, "docs/developer/python.md", "exec"), {})  # noqa: S102 (our own page)
    out = capsys.readouterr().out
    assert out.startswith("clean\n")
    for line in re.findall(r"^prints `(.+)`\.$", PAGE, re.MULTILINE):
        assert f"{line}\n" in out
    assert "error missing-task /results/full" in out
    assert "there is no record to verify" in out
    assert "--unsigned writes no record" in out
    assert "0 ['size-correlation']" in out
    assert "no-such.json" in out, "what a command refuses is in its messages"


def test_the_page_says_for_commands_which_function_does_the_same():
    (table,) = re.findall(r"^\| command \| function \|\n\|.*\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    rows = [line.split("|")[1:3] for line in table.splitlines()]
    named = [re.findall(r"`(\w+)`", commands) for commands, _ in rows]
    assert {command for names in named for command in names} <= COMMANDS.keys()
    functions = re.findall(r"\]\(#(\w+)\)", "".join(functions for _, functions in rows))
    assert set(functions) == {*FUNCTIONS}
    assert named[-1] == []
    assert "(#command)" in rows[-1][1], "which runs every command"


NAMES: list[str] = vars(geneb_ci)["__all__"]
FUNCTIONS = [name for name in NAMES if inspect.isroutine(inspect.unwrap(value(name)))]
CLASSES = [name for name in NAMES if isinstance(value(name), type)]


def test_every_public_name_is_a_function_a_class_or_the_version():
    assert sorted([*FUNCTIONS, *CLASSES, "__version__"]) == sorted(NAMES)
    assert sorted(NAMES) == sorted(dir(geneb_ci))
    assert [
        *("check", "audit", "board", "build", "check_branch", "check_pull", "command", "compare"),
        *("fix", "next_step", "recommend", "rules", "trust", "verify"),
    ] == FUNCTIONS


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_page_has_signature_errors_and_an_example_of(name):
    """Parameters in their order with their defaults, what is returned, what is raised."""
    section = PAGE.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    (shown,) = re.findall(rf"\A\n`{name}\((.*?)\) -> ([^`]+)`\n", section, re.DOTALL)
    signature = inspect.signature(inspect.unwrap(value(name)))
    assert " ".join(shown[0].split()) == ", ".join(parameters(signature))
    returned = signature.return_annotation
    assert shown[1] == getattr(returned, "__name__", str(returned))
    assert re.search(r"\braises?\b", section, re.IGNORECASE)
    (example,) = re.findall(r"^```python\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    assert f"geneb_ci.{name}(" in example
    for parameter in signature.parameters.values():
        assert parameter.annotation is not parameter.empty


def parameters(signature: inspect.Signature) -> Iterator[str]:
    """Yield the parameters of a signature as the page writes them: without types."""
    was_named = any(
        parameter.kind is parameter.VAR_POSITIONAL for parameter in signature.parameters.values()
    )  # what follows `*sources` is by name anyway
    for name, parameter in signature.parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL:
            yield f"*{name}"
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not was_named:
            was_named = True
            yield "*"
        if parameter.default is parameter.empty:
            yield name
        else:
            default = "..." if callable(parameter.default) else json.dumps(parameter.default)
            yield f"{name}={PYTHON.get(default, default)}"


PYTHON = {"null": "None", "true": "True", "false": "False", "[]": "()"}


@each("name", CLASSES)
def test_the_page_has_every_public_attribute_of(name):
    assert f"`{name}`" in PAGE.replace("geneb_ci.", "")
    page = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`\n]+)`", PAGE))))
    if issubclass(value(name), Exception):
        assert re.search(rf"\| `{name}` \| \S", PAGE) or name == "GenebError"
        return
    if issubclass(value(name), enum.Enum):
        assert {choice.value for choice in value(name)} <= {*re.findall(r"[\w-]+", PAGE)}
        return
    attributes = {attribute for attribute in vars(value(name)) if not attribute.startswith("_")}
    attributes |= {*getattr(value(name), "__annotations__", {})}
    assert sorted(attributes - page - INTERNAL.get(name, set())) == []


INTERNAL = {
    "BuiltBoard": {"page", "tables", "write_all"},
    "BeaconSource": {"check"},
    "Finding": {"sort_key"},
    "Limits": {"as_facts", "kernel_memory_bytes", "kernel_processes"},
    "Machine": {"gpu"},
    "Recommendation": {"model_config"},
}
"""For the package itself, and not promised."""


def test_rules_are_those_that_a_check_runs():
    ids = [name for names in FILE_RULES.values() for name in names]
    assert [rule.id for rule in geneb_ci.rules()] == ids
    ranges = geneb_ci.rules(select=["ranges"], ignore=["all-scores-equal"])
    assert {rule.family for rule in ranges} == {"ranges", "internal"}
    assert all(isinstance(rule, geneb_ci.Rule) for rule in ranges)
    assert "all-scores-equal" not in {rule.id for rule in ranges}
    with pytest.raises(geneb_ci.UsageProblem, match="not a rule or a family"):
        geneb_ci.rules(select=["range"])


def test_nothing_is_imported_before_it_is_used():
    code = (
        "import sys, geneb_ci; print(sorted(name for name in sys.modules if 'geneb_ci' in name));"
        "from geneb_ci import check; geneb_ci.GenebError; import geneb_ci.check.registry;"
        "print(callable(geneb_ci.check), check is geneb_ci.check, 'pydantic' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['geneb_ci']\nTrue True False\n"


@pytest.mark.usefixtures("here")
def test_html_is_harmless_and_short(tmp_path):
    path = tmp_path / "hostile.json"
    document = small("hostile")
    document["meta"]["display"] = HOSTILE
    document["model_id"] = HOSTILE
    path.write_text(json.dumps(document | {HOSTILE: 1}), encoding="utf-8")
    shown = [
        geneb_ci.check(path, against="none")._repr_html_(),
        Table(("a",), [[HOSTILE]] * (HTML_ROWS_MAX + 5)).html(HOSTILE),
        AuditResult(HOSTILE, 0, commitment=HOSTILE)._repr_html_(),  # type: ignore[arg-type]
    ]
    for html in shown:
        assert "<script" not in html
        assert "\u202e" not in html
        assert "\x1b" not in html
        assert html.startswith("<table>")
    assert shown[1].count("<td>") == HTML_ROWS_MAX
    assert "5 more rows are not shown" in shown[1]


@pytest.mark.usefixtures("here")
def test_results_of_audits_and_boards_have_tables():
    raw = submission_bytes()
    outcome = outcome_of(plan_for(raw), raw)
    result = AuditResult("agrees", 0, outcome=outcome)  # type: ignore[arg-type]
    assert "2 tasks rerun, every score within its tolerance" in result.text()
    assert result._repr_html_().count("<td>agrees</td>") > 2
    assert json.loads(result.to_json())["state"] == "agrees"
    assert "<td>second</td>" in geneb_ci.build(diagnostics=False)._repr_html_()


def test_an_audit_by_receipt_has_a_table_of_rows():
    outcome = sound()
    html = AuditResult("agrees", Exit.CLEAN, outcome=outcome)._repr_html_()
    (task,) = outcome.tasks
    assert f"<td>{task.task}</td><td>{len(task.deviation)}</td><td>0</td>" in html


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: geneb_ci.check("x.json", select=["no-such"]), "is not a rule or a family"),
        (lambda: geneb_ci.check("x.json", against="nowhere"), "no such folder"),
        (lambda: geneb_ci.check(b"{}", "x.json"), "1 other file, expected none"),
        (lambda: geneb_ci.check().text(format_="xml"), "'xml' is not a format"),
        (lambda: geneb_ci.recommend(max_params="many"), "is not a number of parameters"),
        (lambda: geneb_ci.recommend(max_params=-1), "max_params is -1"),
        (lambda: geneb_ci.recommend(evidence="hearsay"), "is not a level of evidence"),
        (lambda: geneb_ci.recommend(margin=2.0), "margin is 2"),
        (
            lambda: geneb_ci.verify("x", receipt="y"),
            "--receipt and --data have no effect without --cells",
        ),
        (lambda: geneb_ci.audit("x", unsigned=True, output="y"), "--unsigned writes no record"),
    ],
)
@pytest.mark.usefixtures("here")
def test_a_wrong_argument_is_a_usage_problem(call, message):
    with pytest.raises(geneb_ci.UsageProblem) as refused:
        call()
    assert message in refused.value.message


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["Rules", "--help"], 0, "Usage: geneb-ci rules"),
        (["AUDIT", "Verify", "--help"], 0, "Usage: geneb-ci audit verify"),
        (["CHEKC"], 2, "No such command 'CHEKC'. Did you mean 'check'?"),
        (["explain", "Missing-Task"], 0, "missing-task"),
        (["explain", "missing-tsak"], 2, 'did you mean "missing-task"?'),
        (["check", "--select", "STRUCTURE"], 0, "2 submissions"),
        (["check", "--select", "Strukture"], 2, 'did you mean "structure"?'),
    ],
)
@pytest.mark.usefixtures("here")
def test_letter_case_does_not_matter_and_a_slip_gets_a_suggestion(words, code, message, capsys):
    assert main(words) == code
    shown = capsys.readouterr()
    assert message in shown.out + shown.err


@pytest.mark.usefixtures("here")
def test_a_log_of_upstreams_pipeline_is_named_with_the_command_that_collects_it():
    log = {name: {"mean": 0.5, "std": 0.1} for name in ("mcc", "accuracy", "f1_score")}
    report = geneb_ci.check(json.dumps(log).encode(), select=FILE_RULES["structure"])
    (finding,) = report.findings
    assert finding.message == ("this is a log of upstream's pipeline of one task, not a submission")
    assert "`geneb-ci pack DIR " in finding.fix


def test_words_of_the_command_line_are_completed_without_importing_commands():
    requests = {
        "_GENEB_CI_COMPLETE": "bash_complete",
        "COMP_WORDS": "geneb-ci re",
        "COMP_CWORD": "1",
    }
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "geneb_ci"],
        env=os.environ | requests, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "plain,recommend\n" in done.stdout
    assert "geneb_ci.cli.recommend" not in done.stderr


def test_a_board_without_a_row_says_how_to_get_a_first_one(tmp_path, monkeypatch):
    monkeypatch.chdir(small_repository(tmp_path / "board"))
    with pytest.raises(geneb_ci.NothingChecked, match="the board has no row yet") as refused:
        geneb_ci.build()
    assert "geneb-ci run --data DIR --submission" in refused.value.fix


@pytest.mark.usefixtures("here")
def test_trust_and_a_comparison_are_those_of_the_commands(rows, capsys):
    assert main(["trust", "--format", "json"]) == 0
    assert capsys.readouterr().out == geneb_ci.trust().to_json()
    assert geneb_ci.trust()._repr_html_().count("<tr>") == 1 + 2
    pair = [str(rows / f"submissions/{name}.json") for name in ("GROVER", "DNABERT-S")]
    compared = geneb_ci.compare(*pair, resamples=100)
    shown = {"text": compared.text(), "json": compared.to_json(), "csv": compared.to_csv()}
    for name, text in (shown | {"svg": compared._repr_html_()}).items():
        assert main(["compare", *pair, "--resamples", "100", "--format", name]) == 0
        assert capsys.readouterr().out == text
