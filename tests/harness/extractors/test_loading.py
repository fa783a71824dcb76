"""Extractors by name, by path and by dotted name, without a trace in `sys.path`."""

import hashlib
import sys

import pytest

from reference_harness.extractors.base import BaseEmbeddingExtractor, ExtractorError
from reference_harness.loading.loader import load, locate

MODULE = """
from .base import BaseEmbeddingExtractor
import random
{extra}
class Mine(BaseEmbeddingExtractor):
    def extract_embeddings(self, sequences, batch_size=1):
        raise NotImplementedError
"""


@pytest.fixture
def write(tmp_path):
    def write_(name, extra=""):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True, parents=True)
        file.write_text(MODULE.format(extra=extra))
        return file

    return write_


def test_a_module_finds_our_base_in_a_folder_that_has_none(write):
    file, before = write("mine.py"), list(sys.path)
    loaded = load(f"{file}:Mine", name_model="m", device="cpu")
    assert isinstance(loaded.extractor, BaseEmbeddingExtractor)
    assert (loaded.extractor.name_model, loaded.extractor.device) == ("m", "cpu")
    assert loaded.path == str(file)
    assert loaded.class_name == "Mine"
    assert loaded.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
    assert sys.path == before
    assert "mine" not in sys.modules
    assert not (file.parent / "__pycache__").exists()


def test_its_own_base_does_not_replace_ours(write, tmp_path):
    (tmp_path / "base.py").write_text("class BaseEmbeddingExtractor: pass")
    loaded = load(f"{write('mine.py')}:Mine")
    assert isinstance(loaded.extractor, BaseEmbeddingExtractor)


def test_a_file_named_as_a_library_shadows_nothing(write):
    write("random.py")
    loaded = load(f"{write('mine.py')}:Mine")
    assert sys.modules[type(loaded.extractor).__module__].random is __import__("random")


def test_two_folders_with_one_name_are_two_modules(write):
    first, two = load(f"{write('a/mine.py')}:Mine"), load(f"{write('b/mine.py')}:Mine")
    assert type(first.extractor).__module__ != type(two.extractor).__module__


def test_a_changed_file_is_run_as_it_is_now(write):
    assert not hasattr(type(load(f"{write('mine.py')}:Mine").extractor), "layer")
    file = write("mine.py", "layer = 'last'")
    file.write_text(file.read_text().replace("    def", "    layer = 'last'\n    def"))
    loaded = load(f"{file}:Mine")
    assert loaded.description["embedding"]["layer"] == "last"
    assert loaded.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()


def test_a_module_of_the_same_folder_is_named_beside_it(write, tmp_path):
    (tmp_path / "helper.py").write_text("VALUE = 1")
    loaded = load(f"{write('mine.py', 'from .helper import VALUE')}:Mine")
    assert loaded.siblings == {"helper.py": hashlib.sha256(b"VALUE = 1").hexdigest()}
    assert load("kmer").siblings == {}


def test_a_dotted_name_is_looked_for_in_the_folder(write, tmp_path, monkeypatch):
    write("sub/mine.py")
    assert load("sub.mine:Mine", folder=tmp_path).path == (tmp_path / "sub/mine.py").as_posix()
    write("submissions/extractors/foo.py")
    monkeypatch.chdir(tmp_path)
    assert load("foo:Mine").path == "submissions/extractors/foo.py"
    assert locate("foo:Mine").name == "foo.py"


def test_what_is_not_said_is_undeclared(write):
    loaded = load(f"{write('mine.py')}:Mine", name_model="owner/name")
    assert loaded.description == {
        "model": {"kind": "undeclared", "location": "owner/name", "revision": None, "weights": {}},
        "embedding": dict.fromkeys(
            ("layer", "pooling", "max_length", "truncation", "dtype"), "undeclared"
        ),
    }
    assert loaded.undeclared == (
        "layer", "pooling", "max_length", "truncation", "dtype", "source",
    )  # fmt: skip


def test_what_is_said_is_kept_in_the_words_of_the_format(write, tmp_path):
    weights = tmp_path / "weights"
    weights.mkdir()
    (weights / "model.safetensors").write_bytes(b"x")
    extra = (
        "import numpy as np\n"
        "class Said:\n layer = -2; pooling = 'mean'; max_length = 10**30\n"
        " truncation = 'right'; dtype = np.float32\n"
    )
    file = write("mine.py", extra)
    file.write_text(file.read_text().replace("Mine(Base", "Mine(Said, Base"))
    loaded = load(f"{file}:Mine", name_model=str(weights))
    assert loaded.undeclared == ()
    assert loaded.description == {
        "model": {
            "kind": "local",
            "location": "weights",
            "revision": None,
            "weights": {},  # a run hashes those that were loaded
        },
        "embedding": {
            "layer": "-2",
            "pooling": "mean",
            "max_length": None,
            "truncation": "right",
            "dtype": "float32",
        },
    }


def test_the_built_in_counter_says_what_it_is():
    loaded = load("kmer", k=3)
    assert (loaded.path, loaded.class_name) == ("builtin:kmer", "KmerExtractor")
    assert len(loaded.sha256) == 64
    assert vars(loaded.extractor)["k"] == 3
    assert loaded.undeclared == ()
    assert loaded.description["model"]["kind"] == "none"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("nothing", "neither a built-in"),
        ("foo.py:", "neither a built-in"),
        ("absent.py:Mine", "no such file"),
        ("{}/mine.py:Other", "no class Other .* its classes are: Mine"),
        ("{}/base.py:Mine", "contains the interface"),
        ("{}/broken.py:Mine", "broken.py cannot be imported: ZeroDivisionError"),
        ("{}/leaves.py:Mine", "leaves.py cannot be imported: SystemExit"),
    ],
)
def test_what_cannot_be_loaded_is_said(write, tmp_path, spec, message):
    write("mine.py")
    write("base.py")
    write("broken.py", "1 / 0")
    write("leaves.py", "raise SystemExit")
    with pytest.raises(ExtractorError, match=message):
        load(spec.format(tmp_path))


def test_an_option_it_does_not_take_is_said(write):
    with pytest.raises(ExtractorError, match="Mine has no option 'depth'; its options are: none"):
        load(f"{write('mine.py')}:Mine", depth=3)
