"""A commitment says all that decides an audit, and only a file fit for one gets it."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from geneb_ci.audit import commit as commits
from geneb_ci.audit.canonical import canonical_json
from geneb_ci.audit.code_digest import code_shape
from geneb_ci.audit.commit import read_submission, subject_of
from geneb_ci.audit.commitment import Commitment
from geneb_ci.audit.compare.limits import limits_digest
from geneb_ci.audit.errors import AuditRefused, StepMismatch
from geneb_ci.audit.rerun.sources import DeclaredRun
from geneb_ci.audit.sampling.plan import commitment_text, read_commitment
from geneb_ci.common.config import find_layout
from geneb_ci.common.errors import Exit, GenebError, NothingChecked, UsageProblem
from tests.audit.examples import hexes
from tests.audit.place import HELPER, MODULE, POLICY, put, repository
from tests.small import BENCHMARK, DIGEST

PINNED = {"model.safetensors": DIGEST}
DECLARED = DeclaredRun("submissions/extractors/model.py:Model", "org/model", "1" * 40, PINNED)
SHA = {
    "model.py": hashlib.sha256(MODULE).hexdigest(),
    "helper.py": hashlib.sha256(HELPER).hexdigest(),
}
TREE = hashlib.sha256(
    f"{SHA['helper.py']}  helper.py\n{SHA['model.py']}  model.py\n".encode()
).hexdigest()


def commit(file: Path, declared: DeclaredRun | None = None) -> Commitment:
    return commits.commit(read_submission(file), declared)


def test_the_commitment_of_a_file_of_format_1_1(tmp_path):
    file = repository(tmp_path)
    assert commit(file).model_dump() == {
        "protocol": "geneb-audit-v1",
        "model_id": "model",
        "submission_sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
        "extractor": {
            "path": "submissions/extractors/model.py",
            "class_name": "Model",
            "sha256": SHA["model.py"],
            "options": {},
            "tree": TREE,
            "shape": code_shape({"model.py": MODULE}, "model.py", "Model"),
        },
        "weights": {
            "kind": "huggingface",
            "location": "org/model",
            "revision": "1" * 40,
            "files": {"model.safetensors": DIGEST},
        },
        "benchmark": {
            "name": "GENEB-small",
            "sha256": BENCHMARK.sha256,
            "dataset": BENCHMARK.dataset.repo_id,
            "revision": BENCHMARK.dataset.revision,
        },
        "regimes": ["full", "10shot", "1shot"],
        "tasks": ["promoter_tata", "promoter_notata", "splice_sites"],
        "policy": {"drawn": 2, "stratified": False, "strata": [], "tolerance": limits_digest()},
        "claims": {
            "full": [82390, 69470, 78080],
            "10shot": [58790, 75280, 79830],
            "1shot": [73670, 57860, 84610],
        },
    }


def test_the_digest_is_that_of_the_canonical_json(tmp_path):
    commitment = commit(repository(tmp_path))
    text = canonical_json(commitment.model_dump())
    assert commitment.sha256 == hashlib.sha256(text).hexdigest()
    assert text.startswith(b'{"benchmark":{"dataset":')


def test_format_1_0_with_what_the_maintainer_says(tmp_path):
    file = repository(tmp_path, version="1.0")
    commitment = commit(file, DECLARED)
    other = commit(repository(tmp_path / "other"))
    assert (commitment.extractor, commitment.weights) == (other.extractor, other.weights)
    bare = commit(file, DeclaredRun(DECLARED.extractor, None))
    assert bare.weights.model_dump() == {
        "kind": "none",
        "location": "",
        "revision": None,
        "files": {},
    }


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        (None, "format 1.0 does not say which extractor and weights ran"),
        (DeclaredRun("model.py", "org/model", "1" * 40), "'model.py' is not PATH:CLASS"),
        (DeclaredRun("kmer", None), "'kmer' is not PATH:CLASS"),
        (DeclaredRun("builtin:kmer:KmerExtractor", None), "is not PATH:CLASS"),
        (DeclaredRun("model.py:no class", None), "is not PATH:CLASS"),
        (DeclaredRun(DECLARED.extractor, "org/model", "main", PINNED), "--revision 'main'"),
        (DeclaredRun(DECLARED.extractor, "org/model", None, PINNED), "the weights are not pinned"),
        (DeclaredRun(DECLARED.extractor, "org/model", "1" * 40), "the weights are not pinned"),
        (
            DeclaredRun(DECLARED.extractor, "org/model", "1" * 40, {"m": "x"}),
            "a digest of --weights",
        ),
    ],
)
def test_an_incomplete_declaration_of_a_run_is_refused(tmp_path, declared, message):
    file = repository(tmp_path, version="1.0")
    with pytest.raises((UsageProblem, AuditRefused)) as caught:
        commit(file, declared)
    assert message in caught.value.message


def test_a_file_that_speaks_for_itself_is_not_overruled(tmp_path):
    with pytest.raises(UsageProblem, match="but the submission says which"):
        commit(repository(tmp_path), DECLARED)


def local_changes(document: dict[str, Any]) -> None:
    document["run"]["harness"]["dirty"] = True


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put("results", "full", "splice_sites", "MCC", 1.5), "error"),
        (put("model_id", "another"), "error: file-name-mismatch"),
        (put("run", "model", "revision", None), "1 error: unpinned-model"),
        (put("run", "model", "weights", {}), "1 error: unpinned-model"),
        (put("run", "extractor", "sha256", "0" * 64), "1 error: extractor-mismatch"),
        (local_changes, "the harness had local changes"),
        (put("run", "model", "kind", "local"), "only on the contributor's machine"),
        (put("run", "extractor", "path", "extractors/other.py"), "no extractor 'other.py'"),
        (put("run", "extractor", "path", "../../model"), "there is no extractor 'model'"),
        (
            put("run", "extractor", "class_name", "X" * 201),
            "no audit can commit to it: ExtractorCode: class_name",
        ),
        (put("run", "model", "weights", {"modèle.bin": DIGEST}), "ASCII"),
    ],
)
def test_a_file_unfit_for_an_audit_is_refused(tmp_path, change, message):
    with pytest.raises((AuditRefused, UsageProblem)) as caught:
        commit(repository(tmp_path, change))
    assert message in caught.value.message
    assert caught.value.fix
    assert caught.value.exit_code is Exit.ERRORS


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(NothingChecked, match="No such file"):
        commit(tmp_path / "model.json")


@pytest.mark.parametrize("name", ["model.py", "helper.py"])
def test_the_tree_holds_every_file_an_extractor_may_import(tmp_path, name):
    """The module of a 1.0 file may change, that of 1.1 is named by the run."""
    file = repository(tmp_path, version="1.0")
    before = commit(file, DECLARED)
    path = tmp_path / "submissions/extractors" / name
    path.write_bytes(path.read_bytes() + b"\n")
    after = commit(file, DECLARED)
    assert before.extractor.tree != after.extractor.tree
    assert before.sha256 != after.sha256


def test_pythons_own_cache_is_no_part_of_the_tree(tmp_path):
    file = repository(tmp_path)
    before = commit(file)
    cache = tmp_path / "submissions/extractors/__pycache__"
    cache.mkdir()
    (cache / "model.cpython-311.pyc").write_bytes(b"x")
    assert commit(file) == before
    (tmp_path / "submissions/extractors/model.pyc").write_bytes(b"x")
    assert commit(file) != before


@pytest.mark.parametrize("name", ["linked.py", "linked-folder"])
def test_a_link_among_the_extractors_is_refused(tmp_path, name):
    file = repository(tmp_path / "place")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.py").write_text("x")
    target = outside / "secret.py" if name.endswith(".py") else outside
    (tmp_path / "place/submissions/extractors" / name).symlink_to(target)
    with pytest.raises(AuditRefused, match="symbolic link"):
        commit(file)


def test_a_built_in_extractor_needs_no_repository(tmp_path):
    source = repository(
        tmp_path / "place",
        put("run", "extractor", {"path": "builtin:kmer", "class_name": "K", "sha256": DIGEST}),
    )
    commitment = commit(source)
    assert commitment.extractor.tree == hashlib.sha256(b"").hexdigest()
    assert commitment.extractor.path == "builtin:kmer"


def test_a_task_with_a_gap_in_one_regime_can_still_be_drawn(tmp_path):
    """Else a declared gap would keep a task's other scores from every audit."""

    def gap(document: dict[str, Any]) -> None:
        for table in ("results", "evidence"):
            del document[table]["1shot"]["splice_sites"]
        document["gaps"] = {"1shot": {"splice_sites": "the run failed for lack of memory"}}

    commitment = commit(repository(tmp_path, gap))
    assert "splice_sites" in commitment.tasks


def test_policy_of_the_place(tmp_path):
    file = repository(tmp_path)
    policy = tmp_path / "leaderboard/policy/policy.toml"
    policy.write_text(
        POLICY.replace('["full", "10shot", "1shot"]', '["1shot"]').replace("drawn = 2", "drawn = 3")
    )
    commitment = commit(file)
    assert commitment.regimes == ["1shot"]
    assert commitment.policy.drawn == 3


def test_all_tasks_are_drawn_of_a_row_that_has_fewer_than_the_policy_asks_for(tmp_path):
    def gap(document: dict[str, Any]) -> None:
        for regime in document["results"]:
            for table in ("results", "evidence"):
                del document[table][regime]["splice_sites"]
        why = "the run failed for lack of memory"
        document["gaps"] = {regime: {"splice_sites": why} for regime in document["results"]}

    file = repository(tmp_path, gap)
    policy = tmp_path / "leaderboard/policy/policy.toml"
    policy.write_text(POLICY.replace("drawn = 2", "drawn = 3"))
    assert commit(file).policy.drawn == 2


def test_what_is_written_is_read_back(tmp_path):
    commitment = commit(repository(tmp_path / "place"))
    path = tmp_path / "c.json"
    path.write_text(commitment_text(commitment), encoding="utf-8")
    assert read_commitment(path) == commitment


def test_a_digest_that_is_not_its_own_is_refused(tmp_path):
    text = commitment_text(commit(repository(tmp_path / "place")))
    path = tmp_path / "c.json"
    path.write_text(text.replace('"drawn": 2', '"drawn": 1'), encoding="utf-8")
    with pytest.raises(StepMismatch) as caught:
        read_commitment(path)
    assert caught.value.step == "commitment"


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "the document: Invalid JSON"),
        (b"{}", "commitment: Field required"),
        (b'{"commitment": {}, "sha256": "x"}', "Field required"),
        (b"x" * 1_000_001, "the limit is 1,000,000"),
    ],
)
def test_what_is_no_commitment(tmp_path, raw, message):
    path = tmp_path / "c.json"
    path.write_bytes(raw)
    with pytest.raises(NothingChecked) as caught:
        read_commitment(path)
    assert message in caught.value.message
    assert caught.value.message.startswith(f"{path}: not a commitment: ")
    assert caught.value.fix.startswith("make a commitment with `geneb-ci audit commit ")


def test_no_commitment_has_a_member_more():
    assert set(Commitment.model_fields) == {
        *("protocol", "model_id", "submission_sha256", "extractor", "weights", "benchmark"),
        *("regimes", "tasks", "policy", "claims", "entry"),
    }


NOT_PUBLIC = (
    "http://example.org/model.bin",
    "https://127.0.0.1/model.bin",
    "https://10.0.0.8:8080/x",
    "https://[::1]/x",
    "https://localhost/x",
    "https://2130706433/x",
    "https://user@example.org/x",
    "https://example.org/x?do=y",
    "https://example.org/x#inside",
    "file:///etc/passwd",
    "https://example.org\\@10.0.0.8/x",
)


@pytest.mark.parametrize("location", NOT_PUBLIC)
def test_an_address_that_a_submission_may_not_name(tmp_path, location):
    def change(document: dict[str, Any]) -> None:
        document["run"]["model"] |= {"kind": "url", "location": location, "revision": None}

    with pytest.raises(GenebError, match="1 error: bad-url"):
        commit(repository(tmp_path, change))


def at_address(document: dict[str, Any]) -> None:
    location = "https://example.org/models/model.safetensors"
    document["run"]["model"] |= {"kind": "url", "location": location, "revision": None}


def test_an_address_is_committed_to_and_has_to_follow_from_the_submission(tmp_path):
    file = repository(tmp_path, at_address)
    commitment = commit(file)
    assert commitment.weights.addresses == {
        "model.safetensors": "https://example.org/models/model.safetensors"
    }
    layout = find_layout(file.parent)
    assert subject_of(commitment, layout).entry is None
    without = commitment.weights.model_copy(update={"addresses": {}})
    assert subject_of(commitment.model_copy(update={"weights": without}), layout).entry is None
    for change in (
        {"addresses": {"model.safetensors": "https://example.org/other"}},
        {"files": {"../model.safetensors": DIGEST}},
        {"location": "https://example.org/other"},
    ):
        weights = commitment.weights.model_copy(update=change)
        with pytest.raises(AuditRefused, match="do not name the weights of the commitment"):
            subject_of(commitment.model_copy(update={"weights": weights}), layout)


ENTRY = """schema_version = "1.0"
[weights]
kind = "zenodo"
location = "7995778"
[weights.files]
"config.json" = "{config}"
"model.safetensors" = "{weights}"
"""


def from_a_folder(document: dict[str, Any]) -> None:
    document["run"]["model"] |= {"kind": "local", "location": "folder", "revision": None}


def test_a_folder_whose_files_the_registry_has_published(tmp_path):
    file = repository(tmp_path, from_a_folder)
    with pytest.raises(AuditRefused, match="the weights are only on the contributor's machine"):
        commit(file)
    path = tmp_path / "leaderboard/policy/models/model.toml"
    path.parent.mkdir()
    path.write_text(ENTRY.format(config=hexes("config"), weights=hexes("other")))
    with pytest.raises(AuditRefused, match="the weights are only on the contributor's machine"):
        commit(file)
    path.write_text(ENTRY.format(config=hexes("config"), weights=DIGEST))
    commitment = commit(file)
    assert (commitment.weights.kind, commitment.weights.location, commitment.entry) == (
        "zenodo",
        "7995778",
        None,
    )
    assert set(commitment.weights.files) == {"config.json", "model.safetensors"}
    assert subject_of(commitment, find_layout(file.parent)).entry is None


def test_an_entry_describes_the_run_that_was_committed_to(tmp_path):
    file = repository(tmp_path, version="1.0")
    path = tmp_path / "leaderboard/policy/models/model.toml"
    path.parent.mkdir()
    path.write_text(
        ENTRY.format(config=hexes("config"), weights=DIGEST)
        + '[run]\nextractor = "submissions/extractors/model.py:Model"\n[run.options]\nk = "4"\n'
    )
    commitment = commit(file)
    layout = find_layout(file.parent)
    assert subject_of(commitment, layout).entry is not None
    other = commitment.extractor.model_copy(update={"options": {"k": "9"}})
    with pytest.raises(AuditRefused, match="do not name the extractor of the commitment"):
        subject_of(commitment.model_copy(update={"extractor": other}), layout)
    text = path.read_text()
    path.write_text(f"{text}# a word\n")
    with pytest.raises(AuditRefused, match="the registry entry in this checkout has sha256 "):
        subject_of(commitment, layout)


@pytest.mark.parametrize("code", ["true", "false"])
def test_an_entry_tells_the_general_extractor_whose_code_is_meant(tmp_path, code):
    """A checkpoint that names code of its own would be refused, or run by another class."""
    file = repository(tmp_path, version="1.0")
    path = tmp_path / "leaderboard/policy/models/model.toml"
    path.parent.mkdir()
    loading = 'class = "BertModel"\noutput = "hidden states"\ntokenizer = "bpe"\n'
    path.write_text(
        ENTRY.format(config=hexes("config"), weights=DIGEST)
        + '[run]\nextractor = "builtin:huggingface"\n[run.options]\npooling = "cls"\n'
        + f"[loading]\n{loading}remote_code = {code}\n"
    )
    commitment = commit(file)
    assert commitment.extractor.options == {"pooling": "cls", "trust_remote_code": code}
    assert subject_of(commitment, find_layout(file.parent)).entry is not None
