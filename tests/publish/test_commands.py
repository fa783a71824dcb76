"""publish, rollback and the health check as a maintainer sees them."""

import json

import pytest

from geneb_ci.publish.generation import Generation
from geneb_ci.render.published import LISTED_FILES_MAX
from tests.audit.recorded import entry
from tests.publish.command import environment, within
from tests.publish.conftest import NAME, RESOURCE, SCRIPTS, is_page, made, undated
from tests.publish.hub import READER, WRITER
from tests.publish.settled import assert_settled


@pytest.fixture
def run(hub, repo, clone, tmp_path):  # noqa: ARG001 (the Space must be there)
    """Run a command in the clone, as one who may write unless told otherwise."""

    def run(*arguments, token=WRITER, **more):
        env = environment(hub, tmp_path, **({"HF_TOKEN": token} if token else {}), **more)
        result = within(*arguments, cwd=clone.root, env=env)
        assert WRITER not in "".join(result[1:])
        assert READER not in "".join(result[1:])
        assert "Traceback" not in result[2]
        return result

    return run


def short(text: str) -> str:
    return text[:12]


def named(generation: Generation) -> str:
    manifest = generation.manifest
    return f"generation {short(manifest.generation)} of commit {short(manifest.source_commit)}"


def places(generation: Generation, model: str) -> dict[str, str]:
    """Return score and rank of a row by regime, as a reader sees them."""
    texts_by_regime = {}
    for regime, rows in json.loads(generation.files["leaderboard.json"])["data"].items():
        ranked = sorted(rows, key=lambda row: -row["macro_MCC"])
        rank, row = next((n, row) for n, row in enumerate(ranked, 1) if row["model"] == model)
        texts_by_regime[regime] = f"{row['macro_MCC']:.4f} (#{rank})"
    return texts_by_regime


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


def test_dry_run_of_a_first_board(run, repo, clone):
    code, output, errors = run("publish", "--space", NAME, "--dry-run", token=None)
    assert (code, errors) == (0, "")
    files = {name: len(content) for name, content in sorted(made(clone).published.items())}
    added = "  + model-a: authorship contributed; evidence checked; "
    assert output.splitlines() == [
        f"{RESOURCE}: would publish {named(made(clone))}, as the first board",
        "",
        "board: 1 added; 1 model in all",
        f"{added}full 0.7399 (#1); 10shot 0.8053 (#1); 1shot 0.6888 (#1)",
        "",
        f"files: {len(files)} added; {sum(files.values()):,} bytes to upload",
        *(f"  + {name}  {size:,} bytes" for name, size in [*files.items()][:LISTED_FILES_MAX]),
        f"  and {len(files) - LISTED_FILES_MAX} more files",
        "  2 files of earlier boards or from other sources, kept",
        "",
        "nothing was uploaded",
        f"next: geneb-ci publish --space {NAME}",
    ]
    assert len(repo.commits) == 1


def test_dry_run_shows_files_and_rows_and_sends_nothing(run, repo, clone):
    clone.add("model-c")
    clone.commit("Add model-c")
    assert run("publish", "--space", NAME)[0] == 0
    old = made(clone)
    first = named(old)
    code, output, _ = run("publish", "--space", NAME, "--dry-run", token=None)
    assert (code, output) == (0, f"{RESOURCE}: nothing would change; {first} is live\n")
    clone.add("model-b")
    changed = clone.root / "submissions/model-a.json"
    text = changed.read_text().replace("Model model-a", "A::")
    changed.write_text(text.replace('"MCC": 0.6922', '"MCC": 0.6800'))
    for name in (
        "leaderboard/README.md",
        "submissions/model-c.json",
        "submissions/cards/model-c.md",
    ):
        clone.git("rm", "--quiet", name)
    clone.commit("Add model-b, change model-a, drop model-c and the card")
    code, output, errors = run("publish", "--space", NAME, "--dry-run", token=None)
    assert (code, errors) == (0, "")
    now = made(clone)
    sizes = {name: len(content) for name, content in now.published.items()}
    before = {n: raw for n, raw in old.published.items() if not n.startswith("v/")}
    after = now.published
    signs = {name: "-" for name in before if name not in after}
    signs |= {name: "+" for name in after if name not in old.published}
    changed = [n for n in after if n in old.published and after[n] != old.published[n]]
    signs |= dict.fromkeys(changed, "~")
    assert {undated(n) for n in signs if not is_page(n)} == {
        *SCRIPTS,
        *("leaderboard.json", "leaderboard_tasks.json", "ledger.json", "manifest.json"),
        *("README.md", "values.csv", "values.parquet"),
    }
    counts = [list(signs.values()).count(sign) for sign in "+~-"]
    sent = sum(sizes[name] for name, sign in signs.items() if sign != "-")
    assert output.splitlines() == [
        f"{RESOURCE}: would publish {named(now)}, in place of {first}",
        "",
        "board: 1 added, 1 changed, 1 removed; 2 models in all",
        f"  ~ model-a: disp Model model-a -> A:\\x3a; full {places(old, 'model-a')['full']} -> "
        + places(now, "model-a")["full"],
        *(
            f"  {sign} {model}: authorship contributed; evidence checked; "
            + "; ".join(f"{regime} {member}" for regime, member in places(board, model).items())
            for sign, model, board in (("+", "model-b", now), ("-", "model-c", old))
        ),
        "",
        "files: {} added, {} changed, {} deleted; {:,} bytes to upload".format(*counts, sent),
        *(
            f"  {sign} {name}" + (f"  {sizes[name]:,} bytes" if name in sizes else "")
            for name, sign in sorted(signs.items())[:LISTED_FILES_MAX]
        ),
        f"  and {len(signs) - LISTED_FILES_MAX} more files",
        f"  {len(after) - counts[0] - counts[1]} files unchanged",
        "  4 files of earlier boards or from other sources, kept",
        "",
        "nothing was uploaded",
        f"next: geneb-ci publish --space {NAME}",
    ]
    assert len(repo.commits) == 2


def test_a_submission_with_an_error_publishes_nothing(run, repo, clone):
    clone.write("submissions/model-a.json", b"{}")
    clone.commit("Break it")
    code, output, errors = run("publish", "--space", NAME)
    assert code == 11
    assert "submissions/model-a.json" in output
    assert errors == "nothing was built: every submission must pass every check\n"
    assert len(repo.commits) == 1


@pytest.mark.parametrize(
    ("arguments", "setting", "code", "message"),
    [
        (["--space", NAME], {"token": None}, 1, f"no token to publish {RESOURCE} was found"),
        (["--space", NAME], {"token": "hf_gone"}, 1, f"the Hub rejected the token for {RESOURCE}"),
        (["--space", NAME], {"token": READER}, 1, f"the token may not write to {RESOURCE} (403)"),
        (["--space", "geneb/none"], {}, 1, "spaces/geneb/none does not exist"),
        (["--space", "board"], {}, 2, "'board' is not the name of a Space"),
        (["--space", "geneb/a--b"], {}, 2, "'geneb/a--b' is not the name of a Space"),
        ([], {}, 2, "no Space is given"),
        (["--space", NAME, "--expect", "0" * 64], {}, 1, "this commit gives generation"),
        (
            ["--space", NAME],
            {"HF_OIDC_RESOURCE": "spaces/other/board"},
            1,
            "HF_OIDC_RESOURCE is 'spaces/other/board'",
        ),
        ([], {"HF_OIDC_RESOURCE": RESOURCE, "token": None}, 1, "has no OIDC identity"),
    ],
)
def test_errors_say_what_to_do(run, repo, arguments, setting, code, message):
    exit_code, output, errors = run("publish", *arguments, **setting)
    assert (exit_code, output) == (code, "")
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
    assert "rejected this job as a publisher" in errors
    hub.shelf.trusted = {f"identity for {hub.endpoint}": RESOURCE}
    hub.calls.clear()
    assert run("publish", token=None, **runner)[0] == 0
    history = ("commits", "resolve")
    steps = ("info", *history, "validate-yaml", "preupload", "commit", "info", "resolve")
    assert hub.calls == ["identity", "exchange", *steps]
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


def test_verify_tells_which_generation_is_live(run, hub, repo, clone):
    def verify() -> tuple[int, list[str]]:
        code, output, errors = run("publish", "--space", NAME, "--verify", token=None)
        assert errors == ""
        return code, output.splitlines()

    assert verify() == (
        11,
        [
            f"{RESOURCE} at {short(repo.head.oid)}: no board is published",
            f"next: geneb-ci publish --space {NAME}",
        ],
    )
    run("publish", "--space", NAME)
    first = made(clone).manifest
    live = f"generation {short(first.generation)} of commit {short(first.source_commit)}"
    assert verify() == (
        0,
        [
            f"{RESOURCE} at {short(repo.head.oid)}: {live} is live",
            "up to date with main",
            f"{len(first.files)} files identical to the published ones",
            f"visitors get this generation at {hub.endpoint}/served/{RESOURCE}",
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
            "older than main",
            f"main: {main}",
            f"{len(first.files)} files identical to the published ones",
            f"visitors get this generation at {hub.endpoint}/served/{RESOURCE}",
            f"next: geneb-ci publish --space {NAME}",
        ],
    )
    run("publish", "--space", NAME)
    assert run("rollback", first.generation[:10], "--space", NAME)[0] == 0
    code, lines = verify()
    assert (code, lines[1]) == (
        0,
        (
            "this board was published by a rollback, in place of generation "
            f"{short(second.generation)}; the next change of main replaces this board"
        ),
    )
    code, _, errors = run("publish", "--space", NAME)
    assert code == 1
    assert "was rolled back" in errors
    repo.add(repo.head.tree | {"ledger.json": b"{}"}, "by hand")
    code, lines = verify()
    assert code == 11
    assert "modified on the Space: ledger.json" in lines
    assert lines[-1].startswith(f"next: geneb-ci rollback {first.generation[:10]}")
    assert run(*lines[-1].split()[2:])[0] == 0
    assert verify()[0] == 0


HINDRANCES: dict[str, tuple[dict[str, object], str]] = {
    "paused": ({"stage": "PAUSED"}, "the Space is not running (stage PAUSED): restart the Space"),
    "failed": (
        {"stage": "RUNTIME_ERROR"},
        "the Space is not running (stage RUNTIME_ERROR): restart",
    ),
    "private": (
        {"is_private": True},
        "the Space is private: make the Space public in its settings",
    ),
    "renamed": ({"renamed": "them/other"}, "the Space was renamed to them/other: use the new name"),
    "an older board": ({"served": -2}, "the Space serves generation"),
    "no board": ({"served": 0}, "the Space serves no board: http"),
}


def test_verify_looks_at_what_visitors_get(run, repo, clone):
    """Each is of a repository that has the right board, so nothing else would say so."""
    run("publish", "--space", NAME)
    clone.add("model-b")
    clone.commit("Add model-b")
    run("publish", "--space", NAME)
    for changes, line in HINDRANCES.values():
        with pytest.MonkeyPatch.context() as patch:
            for name, value in changes.items():
                patch.setattr(repo, name, value)
            code, output, errors = run("publish", "--space", NAME, "--verify")
        assert (code, errors) == (11, "")
        about = [shown for shown in output.splitlines() if shown.startswith("the Space ")]
        assert len(about) == 1, output
        assert about[0].startswith(line)
        assert "visitors get this generation" not in output
    assert run("publish", "--space", NAME, "--verify")[0] == 0


def test_a_damaged_manifest_that_visitors_get_is_named(run, repo, clone):
    run("publish", "--space", NAME)
    clone.add("model-b")
    clone.commit("Add model-b")
    run("publish", "--space", NAME)
    repo.served = -2
    repo.commits[repo.served].tree["manifest.json"] = b"{}"
    code, output, errors = run("publish", "--space", NAME, "--verify")
    assert (code, errors) == (11, "")
    assert "the Space serves no board that can be read: http" in output


def test_what_was_not_looked_at_is_not_called_served(run, repo):
    run("publish", "--space", NAME)
    repo.names_host = False
    code, output, _ = run("publish", "--space", NAME, "--verify")
    assert code == 0
    assert "what visitors get was not checked: the Hub gives no address" in output


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
        f"geneb-ci: {RESOURCE} never had a generation 1234567",
    )


def test_outside_a_repository(hub, tmp_path):
    env = environment(hub, tmp_path, HF_TOKEN=WRITER)
    code, _, errors = within("publish", "--space", NAME, cwd=tmp_path, env=env)
    assert (code, errors.splitlines()[0]) == (
        2,
        "geneb-ci: the current folder is not in a repository of submissions",
    )


def test_the_next_step_keeps_a_board_up_to_date(run, repo, clone):
    assert repo.head.tree, "the Space is there, without a board"
    clone.write("leaderboard/policy/keys.json", {"keys": [entry()]})
    clone.commit("Trust a key")

    def step() -> str:
        code, output, errors = run("next", "--as", "maintainer", "--space", NAME, token=None)
        assert (code, errors) == (0, "")
        return str(output).splitlines()[-1]

    publish = f"next: geneb-ci publish --space {NAME}"
    assert step() == publish
    assert run(*publish.split()[2:])[0] == 0
    assert step() != publish
    clone.add("model-b")
    clone.commit("Add model-b")
    assert step() == publish
    assert run(*publish.split()[2:])[0] == 0
    assert step() != publish
