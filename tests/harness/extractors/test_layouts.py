"""Folders laid out as repositories of the Hub: read as they stand, or refused by what is wrong."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import BertModel

from geneb_ci.audit.commitment import Weights
from geneb_ci.audit.rerun.weights import verify_weights
from reference_harness.extractors.base import ExtractorError
from reference_harness.extractors.huggingface import HuggingFaceExtractor
from tests.harness.extractors.families import FAMILIES
from tests.harness.extractors.models import MAX_LENGTH, VOCABULARY

SEQUENCES = ["ACGTACGTTG", "A", "GGGCATTNACGATTTAGCAGGCA"]
SHA1 = "0123456789abcdef0123456789abcdef01234567"
Change = Callable[[Path], None]


@pytest.fixture
def copy(saved, tmp_path):
    """Return a copy of a BERT folder."""
    folder = tmp_path / "model"
    folder.mkdir()
    for file in saved("bert").iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    return folder


def shards_of_safetensors(folder: Path) -> None:
    model = BertModel.from_pretrained(folder)
    (folder / "model.safetensors").unlink()
    model.save_pretrained(folder, max_shard_size="40KB")


def shards_of_torch(folder: Path) -> None:
    state = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    places = {name: f"pytorch_model-0000{1 + i % 2}-of-00002.bin" for i, name in enumerate(state)}
    for value in set(places.values()):
        torch.save({name: state[name] for name in state if places[name] == value}, folder / value)
    index = {"metadata": {}, "weight_map": places}
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps(index))


def renamed(to: str, **options: bool) -> Change:
    """Write the weights as a file of torch, each under another name."""

    def change(folder: Path) -> None:
        state = load_file(folder / "model.safetensors")
        (folder / "model.safetensors").unlink()
        named = {to.format(name): member for name, member in state.items()}
        torch.save(named, folder / "pytorch_model.bin", **options)

    return change


def both_formats(folder: Path) -> None:
    state = load_file(folder / "model.safetensors")
    torch.save({name: member + 1 for name, member in state.items()}, folder / "pytorch_model.bin")


def an_adapter_beside(folder: Path) -> None:
    adapter_config = {"base_model_name_or_path": "other/base", "peft_type": "LORA"}
    (folder / "adapter_config.json").write_text(json.dumps(adapter_config))


def unknown_tokenizer_class(folder: Path) -> None:
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "tokenizer_class": "DnaWords"}))


SAME = {
    "shards of safetensors": shards_of_safetensors,
    "shards of torch": shards_of_torch,
    "names with the model before them": renamed("bert.{}"),
    "before torch 1.6": renamed("{}", _use_new_zipfile_serialization=False),
    "two formats, of which one is read": both_formats,
    "an adapter that nobody loads": an_adapter_beside,
    "a tokenizer class that transformers lacks": unknown_tokenizer_class,
}


@pytest.mark.parametrize("layout", SAME)
def test_it_gives_the_same_rows(copy, saved, layout):
    expected = HuggingFaceExtractor(str(saved("bert"))).extract_embeddings(SEQUENCES)
    SAME[layout](copy)
    hugging_face_extractor = HuggingFaceExtractor(str(copy))
    np.testing.assert_array_equal(hugging_face_extractor.extract_embeddings(SEQUENCES), expected)
    endings = (".safetensors",) if list(copy.glob("*.safetensors")) else (".bin",)
    files = {path.name for path in copy.iterdir() if path.suffix in endings}
    assert hugging_face_extractor.source["weights"].keys() == files


def without(*names: str) -> Change:
    def change(folder: Path) -> None:
        for name in names:
            (folder / name).unlink(missing_ok=True)

    return change


TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")


def words_alone(folder: Path) -> None:
    """As DNA models that want spaces between letters: to them a sequence is one word."""
    without(*TOKENIZER)(folder)
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n")
    tokenizer_config = {"tokenizer_class": "BertTokenizer", "do_lower_case": False}
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer_config))


def a_shard_is_missing(folder: Path) -> None:
    shards_of_safetensors(folder)
    min(folder.glob("model-*.safetensors")).unlink()


def one_level_down(folder: Path) -> None:
    (folder / "checkpoint").mkdir()
    for path in [path for path in folder.iterdir() if path.is_file()]:
        path.rename(folder / "checkpoint" / path.name)


def cut_off(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def a_pointer(folder: Path) -> None:
    text = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'a' * 64}\nsize 100\n"
    (folder / "model.safetensors").write_text(text)


def a_page(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("<!DOCTYPE html><title>Sign in</title>")


def a_conflict(folder: Path) -> None:
    config = (folder / "config.json").read_text()
    (folder / "config.json").write_text(f"<<<<<<< HEAD\n{config}\n>>>>>>> main\n")


REFUSED = {
    "no tokenizer": (without(*TOKENIZER), r"does not read DNA: 1 of 1 tokens of 'ACGG"),
    "words": (words_alone, r"does not read DNA: 1 of 1 tokens .* declare letters=spaced"),
    "a shard is missing": (a_shard_is_missing, r"FileNotFoundError: .*model-00001-of-"),
    "one level down": (one_level_down, "has no config.json at its top level, from which"),
    "cut off": (cut_off, "SafetensorError: Error while deserializing header: incomplete"),
    "a pointer of git-lfs": (
        a_pointer,
        r"model.safetensors of .* is a Git LFS pointer: .*lfs pull",
    ),
    "a page": (a_page, r"tokenizer.json of .* is an HTML page: download the file itself"),
    "a conflict": (a_conflict, r"config.json of .* has merge conflict markers on lines 1, 3"),
    "names of parallel training": (renamed("module.{}"), r"unused \(module.embeddings"),
}


@pytest.mark.parametrize("layout", REFUSED)
def test_it_is_refused_with_what_is_wrong(copy, layout):
    change, message = REFUSED[layout]
    change(copy)
    with pytest.raises(ExtractorError, match=message):
        HuggingFaceExtractor(str(copy))


def test_letters_with_spaces_are_read_where_they_are_declared(copy, saved):
    words_alone(copy)
    hugging_face_extractor = HuggingFaceExtractor(
        str(copy), letters="spaced", max_length=MAX_LENGTH
    )
    expected = HuggingFaceExtractor(str(saved("bert"))).extract_embeddings(SEQUENCES)
    np.testing.assert_array_equal(hugging_face_extractor.extract_embeddings(SEQUENCES), expected)


@pytest.fixture
def own(written, tmp_path):
    """Return a folder whose configuration and tokenizer name their code by their repository."""
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    for path in written("LucaOne")[0].iterdir():
        if path.is_file():
            (folder / path.name).write_bytes(path.read_bytes())
    for name in ("config.json", "tokenizer_config.json"):
        document = json.loads((folder / name).read_text())
        assert document["auto_map"], name
        (folder / name).write_text(
            json.dumps({**document, "auto_map": marked(document["auto_map"])})
        )
    return folder


def marked(value: object) -> object:
    if isinstance(value, dict):
        return {key: marked(member) for key, member in value.items()}
    if isinstance(value, list):
        return [marked(member) for member in value]
    return f"org/own--{value}" if isinstance(value, str) else value


def test_code_that_names_its_own_repository_is_taken_from_the_folder(own, written, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # nothing is asked for there
    options = FAMILIES["LucaOne"].options
    plain = HuggingFaceExtractor(str(written("LucaOne")[0]), **options)
    before = {path.name: path.read_bytes() for path in own.iterdir()}
    hugging_face_extractor = HuggingFaceExtractor(str(own), **options)
    expected = plain.extract_embeddings(SEQUENCES)
    np.testing.assert_array_equal(hugging_face_extractor.extract_embeddings(SEQUENCES), expected)
    assert hugging_face_extractor.source == {**plain.source, "location": "checkpoint"}
    assert {path.name: path.read_bytes() for path in own.iterdir()} == before


def test_it_passes_an_audit_under_that_name_alone(own):
    """The commitment names the repository of the Hub, whose revision pins the code."""
    files = HuggingFaceExtractor(str(own), **FAMILIES["LucaOne"].options).source["weights"]
    pinned = Weights(kind="huggingface", location="org/own", revision=SHA1, files=files)
    assert verify_weights(own, pinned, 2).keys() == {path.name for path in own.iterdir()}
    with pytest.raises(Exception, match='auto_map names "org/own--'):
        verify_weights(own, pinned.model_copy(update={"location": "org/other"}), 2)


def test_what_the_code_of_a_folder_lacks_is_named(written, tmp_path):
    """An error of the system while weights load does not become one of missing weights."""
    for path in written("LucaOne")[0].iterdir():
        if path.is_file():
            (tmp_path / path.name).write_bytes(path.read_bytes())
    (module,) = tmp_path.glob("stubs.py")
    text = module.read_text()
    module.write_text(f"{text}\nopen('table-of-the-model.tsv')\n")
    with pytest.raises(ExtractorError, match=r"FileNotFoundError: .*table-of-the-model\.tsv"):
        HuggingFaceExtractor(str(tmp_path), **FAMILIES["LucaOne"].options)
