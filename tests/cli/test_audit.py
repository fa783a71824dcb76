"""`geneb-ci audit commit` and `audit plan` as a maintainer runs them."""

import hashlib
import json
import re
import time
from pathlib import Path

import click
import pytest

from geneb_ci.audit.sampling.task_draw import check_task_plan
from geneb_ci.cli.audit import audit_command
from geneb_ci.cli.main import main
from tests.audit.examples import COMMITTED_AT, ROUND, ROUNDS, hexes, task_plan
from tests.audit.place import POLICY, repository
from tests.audit.relay import relay, says

ROUND_TEXT = json.dumps({"round": ROUND, "signature": ROUNDS[ROUND]})
KEY = hexes("the key of an epoch")
PUBLISHED = hashlib.sha256(bytes.fromhex(KEY)).hexdigest()


@pytest.fixture
def repository_folder(tmp_path: Path, monkeypatch, capsys) -> Path:
    """A repository with a commitment `c.json` and the round that decides, `round.json`."""
    repository(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "round.json").write_text(ROUND_TEXT)
    assert main(["audit", "commit", "submissions/model.json", "--output", "c.json"]) == 0
    capsys.readouterr()
    return tmp_path


def planned(*options: str) -> int:
    return main(["audit", "plan", "c.json", "--committed-at", COMMITTED_AT, *options])


BY_FILE = ("--beacon-file", "round.json", "--output", "plan.json")


def test_the_group_lists_what_a_person_types_and_the_steps_apart(capsys):
    assert main(["audit", "--help"]) == 0
    _, whole, steps, *_ = re.split(r"^[A-Z][^\n]*:\n", capsys.readouterr().out, flags=re.MULTILINE)[
        1:
    ]
    listed = [re.findall(r"^  (\w+)", text, re.MULTILINE) for text in (whole, steps)]
    assert listed[0] == ["file", "queue", "verify", "withdraw", "keygen"]
    assert listed[1] == ["commit", "publish", "plan", "run", "fresh"]


def test_commit_prints_the_digest_and_what_to_do_next(repository_folder, capsys):
    assert main(["audit", "commit", "submissions/model.json", "--output", "c.json"]) == 0
    digest = json.loads((repository_folder / "c.json").read_text())["sha256"]
    out, err = capsys.readouterr()
    assert out == (
        f"commitment {digest}\n"
        "model: 2 of 3 tasks will be drawn\n"
        "publish the digest, as commit status geneb/audit-commit or in the ledger, and note the\n"
        "time of publication by the server's clock; then draw the tasks\n"
        "next: geneb-ci audit plan c.json --committed-at 2026-11-20T08:30:00Z --shown-on COMMIT\n"
    )
    assert err == "wrote c.json\n"


def test_commit_to_standard_output_is_the_file_alone(repository_folder, capsys):
    assert main(["audit", "commit", "submissions/model.json"]) == 0
    out, err = capsys.readouterr()
    assert out == (repository_folder / "c.json").read_text()
    assert err.startswith("commitment ")


def test_plan_by_a_file(repository_folder, capsys):
    assert planned(*BY_FILE) == 0
    plan = task_plan(repository_folder / "plan.json")
    check_task_plan(plan)
    assert len(plan.drawn) == 2
    out, err = capsys.readouterr()
    assert out == (
        f"model: seed {plan.seed}, by round {ROUND} of drand quicknet\n"
        "2 tasks drawn:\n"
        + "".join(f"  {task}\n" for task in plan.drawn)
        + f"check that commitment {plan.commitment_sha256[:16]}... was published at "
        + f"{COMMITTED_AT}\n"
        "next: geneb-ci audit run plan.json\n"
    )
    assert err == "wrote plan.json\n"


@pytest.mark.usefixtures("repository_folder")
def test_the_same_draw_gives_the_same_bytes(capsys):
    assert planned("--beacon-file", "round.json") == 0
    first = capsys.readouterr().out
    assert planned("--beacon-file", "round.json") == 0
    assert capsys.readouterr().out == first


def test_plan_by_a_relay(repository_folder):
    with relay(says("gone", 404)) as (bad, _), relay(says(ROUND_TEXT)) as (good, requests):
        assert planned("--relay", bad, "--relay", good, "--output", "plan.json") == 0
    assert len(requests) == 1
    check_task_plan(task_plan(repository_folder / "plan.json"))


def test_no_relay_at_all_is_exit_3(repository_folder, capsys, monkeypatch):
    monkeypatch.setattr("geneb_ci.audit.sampling.beacon_source.ATTEMPTS_MAX", 1)
    with relay(says("gone", 503)) as (bad, _):
        assert planned("--relay", bad) == 3
    assert f"no relay returned round {ROUND}: {bad}: HTTP 503" in capsys.readouterr().err
    assert not (repository_folder / "plan.json").exists()


WRONG_ROUNDS = {
    "another round": ({"round": ROUND + 1}, f"round: this is round {ROUND + 1}, expected {ROUND}"),
    "another signature": ({"signature": "8" * 96}, "signature: "),
    "no round": ({"round": "x"}, "signature: this is not a round of the beacon"),
}


@pytest.mark.parametrize("name", WRONG_ROUNDS)
def test_a_wrong_round_is_no_audit_that_differs(name, repository_folder, capsys):
    change, words = WRONG_ROUNDS[name]
    path = repository_folder / BY_FILE[1]
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    assert planned(*BY_FILE) == 3
    message = capsys.readouterr().err
    assert f"{BY_FILE[1]}: {words}" in message.replace("expected round", "expected")
    assert not (repository_folder / "plan.json").exists()


@pytest.mark.usefixtures("repository_folder")
def test_the_table_needs_no_beacon(capsys):
    options = ["--detect", "2", "--confidence", "0.9"]
    assert main(["audit", "plan", "c.json", *options]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out == (
        "probability of detecting a fabricated task if m of 3 are fabricated\n"
        "\n"
        "drawn  m = 1  m = 2  m = 3\n"
        "    2   .667  1.000  1.000  committed, requested\n"
        "    3  1.000  1.000  1.000\n"
        "\n"
        "2 drawn tasks of 3: at least one of 2 fabricated tasks is found with probability 1.000; "
        "the 2 of the commitment find one with probability 1.000\n"
    )


def test_a_wanted_detection_raises_the_sample(repository_folder):
    assert planned(*BY_FILE) == 0
    committed = task_plan(repository_folder / "plan.json").drawn
    assert planned(*BY_FILE, "--detect", "1", "--confidence", "0.9") == 0
    raised = task_plan(repository_folder / "plan.json").drawn
    assert len(raised) == 3
    assert raised[:2] == committed
    assert planned(*BY_FILE, "--drawn", "3") == 0
    assert task_plan(repository_folder / "plan.json").drawn == raised


def test_a_draw_raised_once_stays_raised(repository_folder):
    assert planned(*BY_FILE[:2], "--output", "raised.json", "--drawn", "3") == 0
    assert planned(*BY_FILE, "--earlier", "raised.json") == 0
    assert len(task_plan(repository_folder / "plan.json").drawn) == 3
    assert planned(*BY_FILE, "--earlier", "raised.json", "--drawn", "2") == 2


def test_a_push_is_audited_on_the_union(repository_folder):
    assert planned(*BY_FILE[:2], "--output", "first.json") == 0
    first = task_plan(repository_folder / "first.json")
    submission = repository_folder / "submissions/model.json"
    submission.write_text(submission.read_text() + "\n")
    assert main(["audit", "commit", "submissions/model.json", "--output", "c.json"]) == 0
    assert planned(*BY_FILE, "--earlier", "first.json") == 0
    second = task_plan(repository_folder / "plan.json")
    assert second.earlier[0].commitment == first.commitment_sha256
    assert {*first.drawn, *second.drawn} == {chosen_task.task for chosen_task in second.chosen}


def test_an_earlier_plan_that_was_tampered_with_is_refused(repository_folder, capsys):
    assert planned(*BY_FILE[:2], "--output", "first.json") == 0
    document = json.loads((repository_folder / "first.json").read_text())
    document["chosen"].reverse()
    (repository_folder / "first.json").write_text(json.dumps(document))
    assert planned(*BY_FILE, "--earlier", "first.json") == 11
    assert "geneb-ci: sample: " in capsys.readouterr().err


def test_targeted_tasks_stand_apart(repository_folder, capsys):
    assert planned(*BY_FILE, "--targeted", "3") == 0
    assert "no others look suspicious" in capsys.readouterr().out
    assert [
        chosen_task.reason for chosen_task in task_plan(repository_folder / "plan.json").chosen
    ] == ["drawn", "drawn"]


def test_targeted_tasks_need_the_committed_file(repository_folder, capsys):
    submission = repository_folder / "submissions/model.json"
    submission.write_text(submission.read_text() + "\n")
    assert planned(*BY_FILE, "--targeted", "1") == 2
    needed = "--targeted needs the committed submission, which is missing"
    assert needed in capsys.readouterr().err
    other = ("--targeted", "1", "--submission", str(submission))
    assert planned(*BY_FILE, *other) == 11
    assert "this is not the committed submission" in capsys.readouterr().err


def policy_with_key(folder: Path) -> None:
    (folder / "leaderboard/policy/policy.toml").write_text(
        f'{POLICY}fallback_keys = ["{PUBLISHED}"]\n'
    )


def test_the_fallback_is_recorded_with_its_reason(repository_folder, capsys):
    policy_with_key(repository_folder)
    (repository_folder / "key").write_text(f"{KEY}\n")
    assert planned("--fallback-key-file", "key", "--why", "an outage", "--output", "p.json") == 0
    source = task_plan(repository_folder / "p.json").beacon.model_dump()
    assert (source["kind"], source["key"], source["why"]) == ("hmac", None, "an outage")
    assert (
        "by the fallback key, which is revealed at the end of its epoch" in capsys.readouterr().out
    )


def test_the_fallback_needs_a_reason(repository_folder, capsys):
    policy_with_key(repository_folder)
    (repository_folder / "key").write_text(KEY)
    assert planned("--fallback-key-file", "key") == 2
    assert "--why is missing: a draw without the beacon needs a reason" in capsys.readouterr().err


def test_the_fallback_needs_an_hour_without_beacon(repository_folder, capsys):
    policy_with_key(repository_folder)
    (repository_folder / "key").write_text(KEY)
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 3600))
    options = ["--committed-at", now, "--fallback-key-file", "key", "--why", "an outage"]
    assert main(["audit", "plan", "c.json", *options]) == 3
    assert "is less than an hour overdue" in capsys.readouterr().err


@pytest.mark.usefixtures("repository_folder")
@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--beacon-file", "none.json"], 3, "none.json: cannot be read: No such file"),
        (["--beacon-file", "c.json"], 3, "signature: this is not a round of the beacon: round"),
        (["--drawn", "1"], 2, "--drawn 1 would make the sample smaller: 2 tasks are committed"),
        (["--beacon-file", "round.json", "--drawn", "4"], 2, "cannot draw 4 tasks: "),
        (["--detect", "1"], 2, "only one of --detect and --confidence is given"),
        (
            ["--detect", "1", "--confidence", "95"],
            2,
            "--confidence '95' is not a number above 0 and at most 1",
        ),
        (["--detect", "1", "--confidence", "1/0"], 2, "is not a number above 0 and at most 1"),
        (
            ["--detect", "9", "--confidence", "0.5"],
            2,
            "--detect 9: the commitment has 3 tasks, so at most",
        ),
        (["--why", "x"], 2, "--why and --reveal need --fallback-key-file"),
        (
            ["--fallback-key-file", "round.json", "--relay", "x"],
            2,
            "--fallback-key-file cannot be combined with --beacon-file",
        ),
        (["--fallback-key-file", "round.json", "--why", "x"], 2, "is not 64 hex digits"),
        (["--relay", "http://example.org"], 2, "is not an https address"),
        (["--committed-at", "yesterday"], 2, "'yesterday' is not a time"),
        (
            ["--committed-at", "2126-01-01T00:00:00Z"],
            2,
            "--committed-at 2126-01-01T00:00:00Z is in the future",
        ),
        (["--beacon-file", "round.json", "--committed-at", "2026-09-17T15:22:43Z"], 3, "round: "),
        (["--earlier", "c.json"], 3, "c.json: this is a commitment, not a plan"),
    ],
)
def test_what_cannot_be_drawn(capsys, options, code, message):
    assert planned(*options) == code
    assert message in capsys.readouterr().err


@pytest.mark.usefixtures("repository_folder")
def test_a_plan_needs_a_moment_or_a_question(capsys):
    assert main(["audit", "plan", "c.json"]) == 2
    assert (
        "--committed-at is missing: the time at which the commitment became public"
        in capsys.readouterr().err
    )


INCOMPLETE = "--extractor is given without "


@pytest.mark.usefixtures("repository_folder")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", "org/model"], "--model can only be passed with --extractor"),
        (["--extractor", "x.py:X"], f"{INCOMPLETE}--model, --revision, --weights"),
        (["--extractor", "x.py:X", "--model", "org/m"], f"{INCOMPLETE}--revision, --weights"),
        # Without digests it was refused by `audit run` alone, when the draw was spent.
        (
            ["--extractor", "x.py:X", "--model", "org/m", "--revision", "1" * 40],
            f"{INCOMPLETE}--weights",
        ),
        (
            ["--extractor", "x.py:X", "--model", "m", "--no-weights"],
            "--no-weights contradicts --model",
        ),
        (["--extractor", "x.py:X", "--no-weights"], "but the submission says which extractor"),
    ],
)
def test_a_run_that_is_declared_incompletely_is_refused(capsys, options, message):
    assert main(["audit", "commit", "submissions/model.json", *options]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("command", ["file", "queue", "plan", "run"])
def test_help_shows_eight_options_and_help_all_every_one(command, capsys):
    """The queue of audits takes the options of `audit file`, of which `--help-all` is none."""
    known = audit_command.get_command(click.Context(audit_command), command)
    assert known is not None
    shown_options = (
        option for option in known.params if isinstance(option, click.Option) and not option.hidden
    )
    options = [name for option in shown_options for name in option.opts]
    assert "--help-all" not in options
    assert main(["audit", command, "--help"]) == 0
    shown = re.findall(r"^  (?:-h, )?(--[a-z-]+)", capsys.readouterr().out, re.MULTILINE)
    assert len(shown) == 8 + 1
    assert {*shown} <= {*options, "--help"}
    assert main(["audit", command, "--help"]) == 0
    more = f"{len(options) - 8} more options: geneb-ci audit {command} --help-all"
    assert more in capsys.readouterr().out
    assert main(["audit", command, "--help-all"]) == 0
    whole = re.findall(r"^  (?:-h, )?(--[a-z-]+)", capsys.readouterr().out, re.MULTILINE)
    assert {*whole} == {*options, "--help", "--help-all"}
