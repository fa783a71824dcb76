"""publish, rollback and the health check as a maintainer sees them."""

import json

import pytest

from tests.publish.command import environment, geneb_ci
from tests.publish.conftest import NAME, RESOURCE, SCRIPTS, made
from tests.publish.hub import READER, WRITER
from tests.publish.settled import assert_settled


@pytest.fixture
def run(hub, repo, clone, tmp_path):  # noqa: ARG001 (the Space must be there)
    """Run a command in the clone, as one who may write unless told otherwise."""

    def run(*arguments, token=WRITER, **more):
        env = environment(hub, tmp_path, **({"HF_TOKEN": token} if token else {}), **more)
        result = geneb_ci(*arguments, cwd=clone.root, env=env)
        assert WRITER not in "".join(result[1:])
        assert READER not in "".join(result[1:])
        assert "Traceback" not in result[2]
        return result

    return run


def short(text: str) -> str:
    return text[:12]


def test_publish_says_what_it_did(run, repo, clone):
    made_now = made(clone).manifest
    named = f"generation {short(made_now.generation)} of commit {short(clone.commits[0])}"
    code, output, errors = run("publish", "--space", NAME)
    assert (code, errors) == (0, "")
    line = f"{RESOURCE}: published {named} as {short(repo.head.oid)}, read back and verified\n"
    assert output == line
    code, output, errors = run("publish", "--space", NAME)
    assert (code, errors) == (0, "")
    assert output == f"{RESOURCE}: nothing changed; {named} is live at {short(repo.head.oid)}\n"
    assert_settled(repo, made(clone))


def test_dry_run_shows_files_and_rows_and_sends_nothing(run, repo, clone):
    assert run("publish", "--space", NAME)[0] == 0
    code, output, _ = run("publish", "--space", NAME, "--dry-run", token=None)
    live = f"{RESOURCE}: generation {made(clone).manifest.generation} is live already\n"
    assert (code, output) == (0, live)
    clone.add("model-b")
    changed = clone.root / "submissions/model-a.json"
    changed.write_text(changed.read_text().replace('"MCC": 0.6922', '"MCC": 0.6800'))
    clone.git("rm", "--quiet", "--cached", "leaderboard/README.md")
    (clone.root / "leaderboard/README.md").unlink()
    clone.commit("Add model-b, change model-a, drop the card")
    code, output, errors = run("publish", "--space", NAME, "--dry-run", token=None)
    assert (code, errors) == (0, "")
    sizes = {name: f"{len(content):,}" for name, content in made(clone).published.items()}
    assert output.splitlines() == [
        f"{RESOURCE}: generation {made(clone).manifest.generation} would be published",
        "- README.md",
        *(f"~ {name}  {sizes[name]} bytes" for name in SCRIPTS),
        f"~ leaderboard.json  {sizes['leaderboard.json']} bytes",
        f"~ leaderboard_tasks.json  {sizes['leaderboard_tasks.json']} bytes",
        f"~ ledger.json  {sizes['ledger.json']} bytes",
        f"~ manifest.json  {sizes['manifest.json']} bytes",
        "  2 other files on the Space would be left alone",
        "",
        "~ model-a (full)  0.7399 self-reported -> 0.7368 self-reported",
        *(
            f"+ model-b ({regime})  {rows[1]['macro_MCC']:.4f} self-reported"
            for regime, rows in json.loads(made(clone).files["leaderboard.json"])["data"].items()
        ),
    ]
    assert len(repo.commits) == 2


def test_a_submission_with_an_error_publishes_nothing(run, repo, clone):
    clone.write("submissions/model-a.json", b"{}")
    clone.commit("Break it")
    code, output, errors = run("publish", "--space", NAME)
    assert code == 11
    assert "submissions/model-a.json" in output
    assert errors == "nothing was built: a board is made of submissions that pass every check\n"
    assert len(repo.commits) == 1


@pytest.mark.parametrize(
    ("arguments", "setting", "code", "message"),
    [
        (["--space", NAME], {"token": None}, 1, f"there is no token to publish {RESOURCE} with"),
        (["--space", NAME], {"token": "hf_gone"}, 1, f"the Hub refuses the token for {RESOURCE}"),
        (["--space", NAME], {"token": READER}, 1, f"the token may not write to {RESOURCE} (403)"),
        (["--space", "geneb/none"], {}, 1, "spaces/geneb/none does not exist"),
        (["--space", "board"], {}, 2, "'board' is no Space"),
        ([], {}, 2, "no Space is named"),
        (["--space", NAME, "--expect", "0" * 64], {}, 1, "this commit gives generation"),
        (
            ["--space", NAME],
            {"HF_OIDC_RESOURCE": "spaces/other/board"},
            1,
            "HF_OIDC_RESOURCE is 'spaces/other/board'",
        ),
        ([], {"HF_OIDC_RESOURCE": RESOURCE, "token": None}, 1, "has no identity to show"),
    ],
)
def test_errors_say_what_to_do(run, repo, arguments, setting, code, message):
    got, output, errors = run("publish", *arguments, **setting)
    assert (got, output) == (code, "")
    assert message in errors
    assert "\n  fix: " in errors
    assert len(repo.commits) == 1


def test_a_trusted_publisher_needs_no_stored_token(run, hub, repo, clone):
    runner = {
        "GITHUB_ACTIONS": "true",
        "ACTIONS_ID_TOKEN_REQUEST_URL": f"{hub.endpoint}/identity",
        "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "runner",
        "HF_OIDC_RESOURCE": RESOURCE,
    }
    code, _, errors = run("publish", token=None, **runner)
    assert code == 1
    assert "does not take this job for a publisher" in errors
    hub.shelf.trusted = {f"identity for {hub.endpoint}": RESOURCE}
    hub.calls.clear()
    assert run("publish", token=None, **runner)[0] == 0
    assert len(hub.calls) <= 10
    assert_settled(repo, made(clone))


def test_a_stale_job_names_both_commits(run, clone):
    clone.add("model-b")
    clone.commit("Add model-b")
    assert run("publish", "--space", NAME)[0] == 0
    clone.git("checkout", "--quiet", clone.commits[0])
    for more in ([], ["--dry-run"]):
        code, output, errors = run("publish", "--space", NAME, *more)
        assert (code, output) == (1, "")
        assert clone.commits[0] in errors
        assert clone.commits[1] in errors


def test_verify_tells_which_generation_is_live(run, repo, clone):
    def verify() -> tuple[int, list[str]]:
        code, output, errors = run("publish", "--space", NAME, "--verify", token=None)
        assert errors == ""
        return code, output.splitlines()

    assert verify() == (
        11,
        [f"{RESOURCE} at {short(repo.head.oid)}: no board of ours is live: geneb-ci publish"],
    )
    run("publish", "--space", NAME)
    first = made(clone).manifest
    live = f"generation {short(first.generation)} of commit {short(first.source_commit)}"
    assert verify() == (
        0,
        [
            f"{RESOURCE} at {short(repo.head.oid)}: {live} is live",
            "it is that of main",
            f"{4 + len(SCRIPTS)} files served as published",
        ],
    )
    clone.add("model-b")
    clone.commit("Add model-b")
    second = made(clone).manifest
    main = f"generation {short(second.generation)} of commit {short(second.source_commit)}"
    assert verify() == (
        11,
        [
            f"{RESOURCE} at {short(repo.head.oid)}: {live} is live",
            "main is ahead of it: geneb-ci publish",
            f"main: {main}",
            f"{4 + len(SCRIPTS)} files served as published",
        ],
    )
    run("publish", "--space", NAME)
    assert run("rollback", first.generation[:10], "--space", NAME)[0] == 0
    code, lines = verify()
    assert (code, lines[1]) == (
        0,
        (
            f"it was put there on purpose, in place of {short(second.generation)}; "
            "the next change of main replaces it"
        ),
    )
    code, _, errors = run("publish", "--space", NAME)
    assert code == 1
    assert "was taken back" in errors
    repo.add(repo.head.tree | {"ledger.json": b"{}"}, "by hand")
    code, lines = verify()
    assert code == 11
    assert "altered on the Space: ledger.json" in lines


def test_rollback_names_what_is_live_again(run, repo, clone):
    run("publish", "--space", NAME)
    first = made(clone).manifest
    clone.add("model-b")
    clone.commit("Add model-b")
    run("publish", "--space", NAME)
    code, output, errors = run("rollback", first.generation[:12], "--space", NAME)
    assert (code, errors) == (0, "")
    assert output == (
        f"{RESOURCE}: published generation {short(first.generation)} of commit "
        f"{short(first.source_commit)} as {short(repo.head.oid)}, read back and verified\n"
    )
    code, _, errors = run("rollback", "1234567", "--space", NAME)
    assert (code, errors.splitlines()[0]) == (
        2,
        f"geneb-ci: {RESOURCE} never held a generation 1234567",
    )


def test_outside_a_repository(hub, tmp_path):
    env = environment(hub, tmp_path, HF_TOKEN=WRITER)
    code, _, errors = geneb_ci("publish", "--space", NAME, cwd=tmp_path, env=env)
    assert (code, errors.splitlines()[0]) == (
        2,
        "geneb-ci: this folder is no repository of submissions",
    )
