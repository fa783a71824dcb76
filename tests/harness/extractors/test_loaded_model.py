"""A run names the weights that were loaded, and refuses what the extractor declares otherwise."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from reference_harness.embedding.embedder import EmbedderSpec
from reference_harness.embedding.extractor_calls import DEFAULT_BATCHING
from reference_harness.errors import EmbeddingError
from reference_harness.loading.loaded_model import LoadedModel, loaded_model, without_unused

COMMIT, OTHER = "a" * 40, "b" * 40
LOADS = {
    "safetensors": "from safetensors.numpy import load_file\n        load_file(path)",
    "handle": "from safetensors import safe_open\n        safe_open(path, framework='np')",
    "bytes": "import pathlib; pathlib.Path(path).read_bytes()",
}
MODULE = """\
import numpy as np
from .base import BaseEmbeddingExtractor

class Own(BaseEmbeddingExtractor):
    source = {source!r}

    def __init__(self, name_model, device="cpu"):
        path = {path!r}
        {load}

    def extract_embeddings(self, sequences, batch_size=1):
        return np.array([[len(s)] for s in sequences], dtype=np.float32)
"""


@pytest.fixture
def file(tmp_path) -> Path:
    """Make a snapshot of the cache of the Hub, with weights that are a link as they are there."""
    folder: Path = tmp_path / f"hub/models--lab--model/snapshots/{COMMIT}"
    folder.mkdir(parents=True)
    blob = tmp_path / "hub/models--lab--model/blob"
    save_file({"w": np.zeros(4, dtype=np.float32)}, blob)
    (folder / "model.safetensors").symlink_to(blob)
    return folder / "model.safetensors"


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def facts(source: object, path: Path, name_model: str = "lab/model", load: str = "safetensors"):
    """Load an extractor as a run does, and return its facts."""
    module = Path("own.py")
    text = MODULE.format(source=source, path=os.fspath(path), load=LOADS[load])
    module.write_text(text, encoding="utf-8")
    spec = EmbedderSpec(
        extractor=f"{module}:Own",
        name_model=name_model,
        device="cpu",
        keywords={},
        batching=DEFAULT_BATCHING,
        measures_budget=False,
    )
    return spec.load().facts


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("kind", ["nothing", "the same"])
def test_a_file_of_the_cache_says_repository_commit_and_digest(kind, load, file):
    expected = {
        "kind": "huggingface",
        "location": "lab/model",
        "revision": COMMIT,
        "weights": {"model.safetensors": digest(file)},
    }
    source = {} if kind == "nothing" else expected
    result = facts(source, file, load=load)
    assert (result.description["model"], result.note) == (expected, "")


def declared(**changes: Any) -> dict[str, Any]:
    source = {"kind": "huggingface", "location": "lab/model", "revision": COMMIT, "weights": {}}
    return source | changes


CONTRADICTIONS = {
    "another commit": (declared(revision=OTHER), f"declares lab/model at {OTHER} as its source"),
    "a branch": (declared(revision="main"), "declares lab/model at main as its source, but loaded"),
    "another repository": (declared(location="lab/other"), f"of lab/model at {COMMIT}"),
    "a placeholder": (declared(location="OWNER/MODEL"), "declares OWNER/MODEL at"),
    "another digest": (
        declared(weights={"model.safetensors": "0" * 64}),
        f"model.safetensors has the sha256 {'0' * 64}, but the loaded file has ",
    ),
    "a place of its own": (declared(kind="url", location="https://x.org/"), "declares kind url"),
    "no weights": (declared(kind="none"), 'declares a source of kind "none", but loaded model.s'),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_what_the_files_contradict_is_refused(name, file):
    source, words = CONTRADICTIONS[name]
    with pytest.raises(EmbeddingError) as refusal:
        facts(source, file)
    assert words in str(refusal.value)


def test_a_folder_without_a_digest_that_is_declared_names_no_repository(file):
    folder = Path("weights")
    folder.mkdir()
    path = folder / "model.safetensors"
    path.write_bytes(file.read_bytes())
    whole = {"model.safetensors": digest(path)}
    result = facts(declared(), path, "weights")
    local = {"kind": "local", "location": "weights", "revision": None, "weights": whole}
    assert result.description["model"] == local
    assert "nothing shows that the weights of the folder weights are those of lab/model" in (
        result.note
    )
    result = facts(declared(weights=whole), path, "weights")
    assert (result.description["model"], result.note) == (declared(weights=whole), "")
    with pytest.raises(EmbeddingError, match="but the loaded file has"):
        facts(declared(weights={"model.safetensors": "0" * 64}), path, "weights")


def test_a_file_that_no_load_shows_is_the_declared_one(file):
    """A library of C opens its files by itself."""
    opened: list[str] = []
    weights = {"model.safetensors": digest(file)}
    source = declared(weights=weights)
    assert loaded_model(source, str(file.parent), opened) == LoadedModel(source)
    absent = loaded_model(source, "lab/model", opened)
    assert absent.model["weights"] == {}
    assert "no file of weights was seen" in absent.note
    with pytest.raises(ValueError, match="the loaded file has"):
        loaded_model(declared(weights={"model.safetensors": OTHER}), str(file.parent), opened)


def test_files_of_two_repositories_are_refused(file, tmp_path):
    other = tmp_path / f"hub/models--lab--second/snapshots/{OTHER}/more.bin"
    other.parent.mkdir(parents=True)
    other.write_bytes(b"x")
    with pytest.raises(ValueError, match=f"lab/model at {COMMIT}, lab/second at {OTHER}"):
        loaded_model(declared(), "lab/model", [str(file), str(other)])


def test_files_of_packages_and_files_without_weights_do_not_count(tmp_path):
    config = tmp_path / "config.json"
    config.write_text(json.dumps({}))
    source = declared(kind="none", location="", revision=None)
    opened = [str(config), str(Path(np.__file__).parent / "data.npy")]
    assert loaded_model(source, "", opened) == LoadedModel(source)


def test_a_built_in_names_no_variant_that_it_left_closed(file):
    variants = {"model.safetensors": "1", "model.fp16.safetensors": "2"}
    model = declared(weights=variants)
    used = without_unused(model, "lab/model", [str(file)])
    assert used.model["weights"] == {"model.safetensors": "1"}
    assert without_unused(model, "lab/model", []).model == model
