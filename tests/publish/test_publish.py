"""What a publish sends, leaves alone, deletes and says; and what it costs."""

import hashlib
import json
import re
from fnmatch import fnmatch

import pytest
from jsonschema import Draft202012Validator

from geneb_ci.board.page import page_files, with_data
from geneb_ci.board.site.render import (
    BENCHMARK_NAME_MARK,
    HEADER_MARK,
    MODEL_WORD_MARK,
    SCORES_MARK,
)
from geneb_ci.common.errors import BadConfiguration
from geneb_ci.publish import manifest
from geneb_ci.publish.faults import BadManifest, HubRefused, NewerManifest
from geneb_ci.publish.git import GitRepository
from geneb_ci.publish.push import MainIntent, Published, PublishOutcome, push
from geneb_ci.publish.space import Space
from tests.paths import ROOT
from tests.publish.clone import PAGE, Clone
from tests.publish.command import environment, geneb_ci
from tests.publish.conftest import NAME, RESOURCE, SCRIPTS, is_page, made, pages_of, undated
from tests.publish.hub import READER, WRITER
from tests.publish.settled import assert_settled


def publish(space: Space, clone: Clone) -> Published:
    return push(space, MainIntent(made(clone), GitRepository(clone.root)))


def test_one_commit_has_every_file_and_the_manifest_describes_them(space, repo, clone):
    publish(space, clone)
    tree = repo.head.tree
    manifest = json.loads(tree["manifest.json"])
    own = (manifest["generation"], manifest["source_commit"])
    assert sorted(filter(is_page, tree)) == pages_of("model-a", *own)
    assert sorted(undated(name) for name in tree if not is_page(name)) == [
        *(".gitattributes", "README.md", *SCRIPTS, "codebook.json", "index.html"),
        *("leaderboard.json", "leaderboard_tasks.json", "ledger.json", "manifest.json"),
        *("notes.txt", "values.csv", "values.parquet"),
    ]
    document = json.loads(tree["manifest.json"])
    for name in ("manifest", "ledger"):
        schema = json.loads((ROOT / f"schemas/{name}.schema.json").read_bytes())
        Draft202012Validator(schema).validate(json.loads(tree[f"{name}.json"]))
    assert document["source_commit"] == clone.commits[0]
    assert document["files"] == {
        name: {"sha256": hashlib.sha256(tree[name]).hexdigest(), "bytes": len(tree[name])}
        for name in sorted(tree)
        if name not in {".gitattributes", "notes.txt", "manifest.json"}
        and not name.startswith("v/")
    }
    assert len(repo.commits) == 2
    assert repo.head.title.startswith(f"Board {document['generation'][:12]} of commit ")


def test_a_page_is_published_and_a_file_that_we_drop_is_deleted(space, repo, clone):
    clone.write("leaderboard/index.html", b"<p>board</p>")
    clone.write("leaderboard/assets/old.css", b"p {}")
    clone.commit("A page")
    publish(space, clone)
    assert repo.head.tree["assets/old.css"] == b"p {}"
    clone.git("rm", "--quiet", "leaderboard/assets/old.css")
    clone.commit("No style")
    publish(space, clone)
    assert "assets/old.css" not in repo.head.tree
    assert repo.head.tree["index.html"] == b"<p>board</p>"
    assert_settled(repo, made(clone))


def test_a_repository_without_a_page_gets_the_one_of_this_version(space, repo, clone):
    clone.git("rm", "--quiet", "leaderboard/index.html")
    clone.write("leaderboard/board.css", b"p { color: red }")
    clone.commit("No page, and a style")
    publish(space, clone)
    shipped = page_files() | {"board.css": b"p { color: red }"}
    shipped = with_data(shipped, repo.head.tree)
    marks = b"|".join((BENCHMARK_NAME_MARK, HEADER_MARK, SCORES_MARK))
    head, named, before, after = re.split(
        marks, shipped.pop("index.html").replace(MODEL_WORD_MARK, b"models")
    )
    assert {name: repo.head.tree[name] for name in shipped} == shipped
    index = repo.head.tree["index.html"]
    assert index.startswith(head.replace(b"<title>", b"<title>GENEB-small "))
    assert b"GENEB-small".join((head[-20:], named)) in index
    assert before in index
    assert index.endswith(after)
    assert b'<a href="models/model-a.html"><bdi>Model model-a</bdi></a>' in index
    assert_settled(repo, made(clone))


def test_a_commit_that_changes_no_input_changes_nothing(space, repo, clone):
    publish(space, clone)
    clone.write("docs/note.md", b"about")
    clone.commit("A note")
    assert publish(space, clone).outcome is PublishOutcome.UNCHANGED
    assert len(repo.commits) == 2


def test_what_somebody_altered_on_the_space_is_put_back(space, repo, clone):
    publish(space, clone)
    repo.add(repo.head.tree | {"leaderboard.json": b"{}"}, "by hand")
    assert publish(space, clone).outcome is PublishOutcome.PUBLISHED
    assert repo.head.tree["leaderboard.json"] == made(clone).files["leaderboard.json"]


def test_a_board_that_comes_back_is_a_generation_of_its_own(space, repo, clone):
    """A, B, A again: a late job for B finds that it was overtaken."""
    publish(space, clone)
    clone.write("leaderboard/index.html", b"B")
    clone.commit("B")
    clone.write("leaderboard/index.html", PAGE)
    clone.commit("A again")
    assert publish(space, clone).outcome is PublishOutcome.PUBLISHED
    now, first = (
        {name: raw for name, raw in installation.files.items() if not is_page(name)}
        for installation in (made(clone), made(clone, clone.commits[0]))
    )
    assert now == first, "only the pages name their commit"
    assert_settled(repo, made(clone))


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"{}", "generation: Field required"),
        (b"[", "Invalid JSON"),
        (b"", "Invalid JSON"),
        (b"[" * 100_000, "Invalid JSON"),
        (b"null", "the document: Input should be an object"),
        (b'{"schema_version": "2"}', "schema_version: Input should be '1.0'"),
        (b'{"schema_version": "0.9"}', "schema_version: Input should be '1.0'"),
    ],
)
def test_a_foreign_manifest_is_refused(space, repo, clone, raw, reason):
    repo.add(repo.head.tree | {"manifest.json": raw}, "by hand")
    with pytest.raises(BadManifest, match=reason) as refusal:
        publish(space, clone)
    assert refusal.value.fix.startswith("inspect the Space's history")
    assert repo.head.title == "by hand"


def test_a_manifest_of_a_later_version_asks_for_that_version(space, repo, clone):
    publish(space, clone)
    later = json.loads(repo.head.tree["manifest.json"]) | {"schema_version": "1.1", "more": 1}
    repo.add(repo.head.tree | {"manifest.json": json.dumps(later).encode()}, "a later version")
    with pytest.raises(
        NewerManifest, match=r"has format 1\.1, but geneb-ci .* supports only 1\.0"
    ) as error:
        publish(space, clone)
    assert error.value.fix == "update geneb-ci to the version of main"
    assert repo.head.title == "a later version"


def test_a_manifest_that_is_too_large_is_refused(space, repo, clone):
    repo.add(repo.head.tree | {"manifest.json": b" " * 1_000_001}, "by hand")
    with pytest.raises(HubRefused, match=r"manifest\.json is larger than 1,000,000 bytes"):
        publish(space, clone)


def test_settings_that_the_ledger_does_not_follow_are_refused(clone):
    clone.write("pyproject.toml", b'[tool.geneb-ci]\nsubmissions = "leaderboard/rows"\n')
    clone.write("leaderboard/rows/x.txt", b"")
    clone.commit("Rows elsewhere")
    with pytest.raises(BadConfiguration, match="sets submissions to another path than"):
        made(clone)


def test_a_manifest_whose_generation_does_not_follow_is_refused(space, repo, clone):
    publish(space, clone)
    forged = json.loads(repo.head.tree["manifest.json"])
    forged["source_commit"] = "0" * 40
    repo.add(repo.head.tree | {"manifest.json": json.dumps(forged).encode()}, "by hand")
    with pytest.raises(BadManifest, match="does not follow from source_commit"):
        publish(space, clone)


# The beginning of what the Hub puts into a new Space.
NEW_SPACE = b"".join(
    b"*.%s filter=lfs diff=lfs merge=lfs -text\n" % kind
    for kind in (b"7z", b"bin", b"gz", b"npy", b"parquet", b"pt", b"safetensors", b"zip", b"zst")
)
GENERATED = (
    *SCRIPTS,
    *("diagnostics.json", "leaderboard.json", "leaderboard_tasks.json", "ledger.json"),
    "manifest.json",
)
TABLES = ("codebook.json", "values.csv", "values.parquet")
UPSTREAM = {
    "leaderboard.json": {"model", "disp", "params", "submitted", "official"}
    | {f"{of}_{metric}" for of in ("macro", "micro", "cat") for metric in ("MCC", "Acc", "F1")},
    "leaderboard_tasks.json": {"model", "disp", "params"}
    | {f"{of}_{metric}" for of in ("macro", "micro", "task") for metric in ("MCC", "Acc", "F1")},
}
"""The fields that upstream's page reads of each row."""


@pytest.mark.nightly  # a budget of calls
def test_41_models_and_the_page_cost_13_calls_and_nothing_new_two(hub, public):
    repo = hub.create(RESOURCE, {".gitattributes": NEW_SPACE})
    space, installation = Space(NAME, token=WRITER, endpoint=hub.endpoint), made(public)
    assert installation.models == 41
    push(space, MainIntent(installation, GitRepository(public.root)))
    assert hub.calls == [
        *("info", "commits", "resolve"),  # and what the history has: here its first commit
        *("validate-yaml", "preupload"),
        *("xet-write-token", "cas-dedup", "cas-grant", "cas-xorb", "cas-shard"),
        *("commit", "info", "resolve"),
    ]
    assert [content[:4] for content in repo.large.values()] == [b"PAR1"], "values.parquet alone"
    shown = page_files() | {"README.md": (ROOT / "leaderboard/README.md").read_bytes()}
    own = {undated(name) for name in repo.head.tree if not is_page(name)}
    assert own == {".gitattributes", *GENERATED, *TABLES, "social.png", *shown}
    assert len(repo.head.tree) - len(own) == 2 * 41 + 100 + 13 + 9 + 3 + 3
    del shown["index.html"]
    assert {name: repo.head.tree[name] for name in shown} == shown
    assert len(repo.commits) == 2
    assert_settled(repo, installation)
    hub.calls.clear()
    push(space, MainIntent(installation, GitRepository(public.root)))
    assert hub.calls == ["info", "resolve"]
    for name, fields in UPSTREAM.items():
        rows = json.loads(repo.head.tree[name])["data"]
        assert list(rows) == ["full", "10shot", "1shot"]
        assert all(fields <= row.keys() for regime in rows.values() for row in regime)
    card = shown["README.md"].decode()
    matches = re.findall(r"`([^`\s]+)`", card[card.index("| file |") : card.rindex("|\n")])
    for name in repo.head.tree.keys() - {".gitattributes", "README.md"}:
        assert any(fnmatch(name, pattern.replace("/", "/*")) for pattern in matches), name


LFS = ("lfs-batch", *("lfs-put",) * 10)
XET = ("xet-write-token", "cas-grant", "cas-xorb", "cas-shard")
"""What the Hub and its storage are asked for ten large files; one xorb holds them all."""


@pytest.mark.parametrize(
    ("way", "calls"),
    [
        pytest.param({}, XET, id="xet"),
        pytest.param({"HF_HUB_DISABLE_XET": "1"}, LFS, id="lfs", marks=pytest.mark.nightly),
    ],
)
def test_large_files_go_to_the_storage_and_are_served_again(hub, clone, tmp_path, way, calls):
    """Somebody wants every script as a large file: it is one, and is found again by its sha256."""
    rule = b"*.js filter=lfs diff=lfs merge=lfs -text\n"
    repo = hub.create(RESOURCE, {".gitattributes": rule})
    env = environment(hub, tmp_path, HF_TOKEN=WRITER, **way)
    code, _, errors = geneb_ci("publish", "--space", NAME, cwd=clone.root, env=env)
    assert (code, errors) == (0, "")
    requests = [step for step in hub.calls if step in LFS or step in XET]
    assert tuple(requests) == calls
    installation = made(clone)
    scripts = {content for name, content in installation.files.items() if name.endswith(".js")}
    assert set(repo.large.values()) == scripts
    assert_settled(repo, installation)
    code, output, _ = geneb_ci("publish", "--space", NAME, cwd=clone.root, env=env)
    assert (code, output.partition(";")[0]) == (0, f"{RESOURCE}: nothing changed")
    hub.calls.clear()
    code, output, _ = geneb_ci("publish", "--verify", "--space", NAME, cwd=clone.root, env=env)
    assert (code, output.splitlines()[2]) == (0, "37 files identical to the published ones")
    assert hub.calls.count("cas-bridge") == len(scripts)


@pytest.mark.nightly
def test_a_board_in_the_storage_is_rolled_back_to(hub, clone, tmp_path):
    repo = hub.create(RESOURCE)
    repo.lfs_over = 1
    env = environment(hub, tmp_path, HF_TOKEN=WRITER)
    words = ("--space", NAME)
    assert geneb_ci("publish", *words, cwd=clone.root, env=env)[0] == 0
    first = made(clone)
    clone.add("model-b")
    clone.commit("Add model-b")
    assert geneb_ci("publish", *words, cwd=clone.root, env=env)[0] == 0
    back = ("rollback", first.manifest.generation[:12], "--as-published", *words)
    code, output, errors = geneb_ci(*back, cwd=clone.root, env=env)
    assert (code, errors) == (0, "")
    assert "read back and verified" in output
    assert {name: repo.head.tree[name] for name in first.files} == first.files


def test_the_board_is_built_from_the_commit_and_not_from_the_folder(space, repo, clone):
    clone.add("not-committed")
    clone.write("leaderboard/index.html", b"draft")
    publish(space, clone)
    assert b"not-committed" not in repo.head.tree["leaderboard.json"]
    assert repo.head.tree["index.html"] == PAGE


@pytest.mark.nightly  # in the gate, large files go to the storage, above
def test_a_large_board_goes_by_lfs(hub, repo, clone, tmp_path):
    repo.lfs_over = 1000
    env = environment(hub, tmp_path, HF_TOKEN=WRITER, HF_HUB_DISABLE_XET="1")
    code, _, errors = geneb_ci("publish", "--space", NAME, cwd=clone.root, env=env)
    assert (code, errors) == (0, "")
    assert repo.large
    assert hub.calls == [
        *("info", "commits", "resolve", "validate-yaml", "preupload", "lfs-batch"),
        *("lfs-put",) * len(repo.large),
        *("commit", "info", "resolve", "cas-bridge"),
    ]
    assert_settled(repo, made(clone))
    code, output, _ = geneb_ci("publish", "--space", NAME, cwd=clone.root, env=env)
    assert (code, output.partition(";")[0]) == (0, "spaces/geneb/board: nothing changed")


def test_the_hub_itself_is_as_strict_as_the_real_one(hub, repo):
    anonymous = Space(NAME, token=None, endpoint=hub.endpoint)
    assert anonymous.state().head == repo.head.oid
    assert Space(NAME, token=READER, endpoint=hub.endpoint).read("notes.txt") == b"not ours"
    assert manifest.MANIFEST_FILE not in anonymous.state().files
