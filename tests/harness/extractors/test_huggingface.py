"""Rows of the built-in transformer extractor against the model called by hand."""

import itertools
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModel

from reference_harness.conformance.result import TOLERANCES
from reference_harness.embedding.letters_read import relative_distance
from reference_harness.extractors.base import ExtractorError
from reference_harness.extractors.huggingface import HuggingFaceExtractor
from reference_harness.formats.files import file_sha256
from reference_harness.loading.loader import load
from tests.gate import gated
from tests.harness.extractors.models import DECODERS, KINDS, MAX_LENGTH, VOCABULARY

SEQUENCES = [
    "ACGTACGTTG",
    "A",
    "GGGCATTNACGATTTAGCAGGCA",
    "TTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTT",
    "CA",
]
Weights = dict[str, torch.Tensor]
Pool = Callable[[torch.Tensor], torch.Tensor]
SHA1 = "0123456789abcdef0123456789abcdef01234567"


def ids(sequence: str, *, decoder: bool) -> list[int]:
    letters = [VOCABULARY[letter] for letter in sequence]
    return letters if decoder else [1, *letters, 2]


def by_hand(
    folder: Path, sequences: list[str], pool: Pool, layer: int = -1, *, decoder: bool
) -> np.ndarray:
    """One sequence at a time, no padding and no mask."""
    model = AutoModel.from_pretrained(folder).eval()
    rows = []
    for sequence in sequences:
        tokens = torch.tensor([ids(sequence, decoder=decoder)])
        with torch.no_grad():
            hidden = model(tokens, output_hidden_states=True).hidden_states[layer][0]
        rows.append(pool(hidden).numpy())
    return np.vstack(rows)


POOLS: dict[str, Pool] = {
    "mean": lambda hidden: hidden.mean(dim=0),
    "cls": lambda hidden: hidden[0],
    "last": lambda hidden: hidden[-1],
    "max": lambda hidden: hidden.amax(dim=0),
}


HALF = {("mean", "right"), ("cls", "left"), ("last", "left"), ("max", "right")}
"""Of each way to pool, the side of the padding that the gate has for an encoder."""


@pytest.mark.parametrize(
    ("kind", "pooling", "padding"),
    gated(
        itertools.product(KINDS, POOLS, ("right", "left")),
        *(("bert", *half) for half in HALF),
        *((kind, "mean", "right") for kind in KINDS[1:]),
        ("gpt2", "last", "left"),
    ),
)
def test_rows_are_those_of_the_model_called_by_hand(saved, kind, pooling, padding):
    expected = by_hand(saved(kind), SEQUENCES, POOLS[pooling], decoder=kind in DECODERS)
    for batching in ("budget", "exact", "file"):
        extractor = HuggingFaceExtractor(
            str(saved(kind)), pooling=pooling, padding=padding, batching=batching
        )
        embeddings = extractor.extract_embeddings(sequences=SEQUENCES, batch_size=3)
        assert embeddings.dtype == np.float32
        assert relative_distance(embeddings, expected) <= TOLERANCES["float32"]


@pytest.mark.parametrize(("layer", "index"), [(0, 0), ("1", 1), (-2, -2)])
def test_a_layer_is_the_hidden_state_of_that_index(saved, layer, index):
    expected = by_hand(saved("bert"), SEQUENCES, POOLS["mean"], index, decoder=False)
    extractor = HuggingFaceExtractor(str(saved("bert")), layer=layer)
    assert extractor.layer == str(layer)
    assert (
        relative_distance(extractor.extract_embeddings(SEQUENCES), expected)
        <= TOLERANCES["float32"]
    )


@pytest.mark.parametrize(("truncation", "letters_read"), [("right", "ACGTAC"), ("left", "TTTTGG")])
def test_the_end_that_is_cut_is_the_one_declared(saved, truncation, letters_read):
    extractor = HuggingFaceExtractor(str(saved("bert")), max_length=8, truncation=truncation)
    embeddings = extractor.extract_embeddings(["ACGTACGGGGTTTTGG"])
    expected = by_hand(saved("bert"), [letters_read], POOLS["mean"], decoder=False)
    assert relative_distance(embeddings, expected) <= TOLERANCES["float32"]


def test_windows_are_averaged_by_their_tokens(saved):
    extractor = HuggingFaceExtractor(
        str(saved("bert")), max_length=8, truncation="windows", stride=2
    )
    embeddings = extractor.extract_embeddings(["ACGTACGGGGTT", "AC"])
    windows = ["ACGTAC", "ACGGGG", "GGTT"]
    rows = by_hand(saved("bert"), [*windows, "AC"], POOLS["mean"], decoder=False)
    weights = np.array([[8.0], [8.0], [6.0]])
    expected = np.vstack([(rows[:3] * weights).sum(axis=0) / 22, rows[3]])
    assert relative_distance(embeddings, expected) <= TOLERANCES["float32"]


def test_without_truncation_a_longer_sequence_is_refused(saved):
    extractor = HuggingFaceExtractor(str(saved("bert")), truncation="none")
    assert extractor.extract_embeddings(["A" * (MAX_LENGTH - 2)]).shape == (1, 32)
    with pytest.raises(ExtractorError, match="sequence 1 has 65 tokens, expected at most 64"):
        extractor.extract_embeddings(["A", "A" * (MAX_LENGTH - 1)])


@pytest.mark.parametrize("kind", gated(KINDS, "bert", "gpt2"))
def test_exact_batches_give_the_same_bits_whatever_the_batch(saved, kind):
    extractor = HuggingFaceExtractor(str(saved(kind)), batching="exact")
    many = [s for n in range(1, 16) for s in ("ACGT" * n, "TTGA" * n, "CA" * n)]
    together = extractor.extract_embeddings(many)
    for row, sequence in enumerate(many):
        np.testing.assert_array_equal(extractor.extract_embeddings([sequence])[0], together[row])


def test_lower_case_is_upper_case_unless_said(saved):
    folder = str(saved("bert"))
    extractor = HuggingFaceExtractor(folder)
    np.testing.assert_array_equal(
        extractor.extract_embeddings(["acgtn"]), extractor.extract_embeddings(["ACGTN"])
    )
    own = HuggingFaceExtractor(folder, case="sensitive")
    assert (
        relative_distance(own.extract_embeddings(["acgt"]), own.extract_embeddings(["ACGT"])) > 0.1
    )


def test_no_sequence_gives_no_row(saved):
    assert HuggingFaceExtractor(str(saved("bert"))).extract_embeddings([]).shape == (0, 32)


def test_it_says_what_it_is(saved):
    loaded = load("huggingface", str(saved("esm")), pooling="cls", dtype="bfloat16", max_length=20)
    weights = saved("esm") / "model.safetensors"
    assert loaded.undeclared == ()
    assert loaded.description == {
        "model": {
            "kind": "local",
            "location": "esm",
            "revision": None,
            "weights": {"model.safetensors": file_sha256(weights)},
        },
        "embedding": {
            "layer": "last",
            "pooling": "cls",
            "max_length": 20,
            "truncation": "right",
            "dtype": "bfloat16",
        },
    }
    assert loaded.extractor.extract_embeddings(["ACGT"]).dtype == np.float32


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pooling": "sum"}, "pooling is 'sum', expected one of mean, cls, last, max"),
        ({"layer": 3}, "layer is 3, expected last or a number from -3 to 2"),
        ({"layer": "top"}, "layer is 'top'"),
        ({"max_length": 65}, "expected 1 to 64, the number of the model's positions"),
        ({"max_length": 2}, "2 special tokens and a stride of 0 leave no token"),
        ({"truncation": "both"}, "truncation is 'both'"),
        ({"padding": "both"}, "padding is 'both'"),
        ({"batching": "any"}, "batching is 'any'"),
        ({"dtype": "int8"}, "dtype is 'int8'"),
        ({"case": "lower"}, "case is 'lower'"),
        ({"revision": "main"}, "expected the 40 hex digits of a commit: a branch or tag can move$"),
    ],
)
def test_an_option_that_cannot_be_is_refused(saved, options, message):
    with pytest.raises(ExtractorError, match=message):
        HuggingFaceExtractor(str(saved("bert")), **options)


@pytest.mark.parametrize("revision", [None, "main", SHA1[:39], SHA1.upper(), SHA1 + "\n"])
def test_a_repository_needs_the_digits_of_a_commit(revision):
    with pytest.raises(ExtractorError, match="expected the 40 hex digits of a commit"):
        HuggingFaceExtractor("owner/name", revision=revision)


def test_a_run_from_the_hub_is_repeated_with_a_folder_of_its_files(saved):
    """An audit replays the options of the run, `revision` among them."""
    folder = str(saved("bert"))
    replayed = HuggingFaceExtractor(folder, revision=SHA1)
    assert replayed.source == HuggingFaceExtractor(folder).source
    assert (replayed.source["kind"], replayed.source["revision"]) == ("local", None)


@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json"])
def test_code_of_another_repository_is_refused(copy, file):
    _map_code(copy, file, {"AutoTokenizer": [None, "other/repo--code.Class"]})
    with pytest.raises(ExtractorError, match="of another repository"):
        HuggingFaceExtractor(str(copy), trust_remote_code=True)


def _map_code(folder: Path, file: str, value: object) -> None:
    """Name code of the folder's own in one of its files, as a Hub repository does."""
    values = json.loads((folder / file).read_text())
    (folder / file).write_text(json.dumps({**values, "auto_map": value}))


OWN_MODEL = {"AutoModel": "own.OwnBert"}
OWN_BERT = """
from transformers import BertModel
class OwnBert(BertModel):
    def forward(self, **inputs):
        output = super().forward(**inputs)
        output.last_hidden_state = output.last_hidden_state.roll(1, dims=-1)
        return output
"""


@pytest.mark.parametrize(
    ("file", "value", "options", "named"),
    [
        ("config.json", OWN_MODEL, {}, "AutoModel (own.OwnBert)"),
        ("config.json", {"AutoConfig": "own.Config"}, {}, "AutoConfig (own.Config)"),
        ("config.json", {"AutoModelForMaskedLM": "own.M"}, {}, "AutoModelForMaskedLM (own.M)"),
        ("config.json", OWN_MODEL, {"auto_class": "transformers:AutoModel"}, "AutoModel (own."),
        ("config.json", OWN_MODEL, {"auto_class": "package:transformers.AutoModel"}, "AutoModel ("),
        ("config.json", {"AutoTokenizer": ["own.T", None]}, {}, "AutoTokenizer (own.T)"),
        ("tokenizer_config.json", {"AutoTokenizer": [None, "own.T"]}, {}, "AutoTokenizer (own.T)"),
        ("tokenizer_config.json", ["own.T", None], {}, "AutoTokenizer (own.T)"),
    ],
)
def test_own_code_is_not_ignored_without_a_word(copy, file, value, options, named):
    _map_code(copy, file, value)
    with pytest.raises(ExtractorError) as caught:
        HuggingFaceExtractor(str(copy), **options)
    message = str(caught.value)
    assert message.startswith(f"{file} of {str(copy)!r} has its own code for {named}")
    assert "declare trust_remote_code=true, or declare trust_remote_code=false if" in message


def test_own_code_is_run_or_declared_to_be_left_alone(copy, saved):
    _map_code(copy, "config.json", OWN_MODEL)
    (copy / "own.py").write_text(OWN_BERT)
    library = HuggingFaceExtractor(str(saved("bert"))).extract_embeddings(SEQUENCES)
    for options in ({"trust_remote_code": False}, {"auto_class": "transformers:BertModel"}):
        embeddings = HuggingFaceExtractor(str(copy), **options).extract_embeddings(SEQUENCES)
        np.testing.assert_array_equal(embeddings, library)
    own = HuggingFaceExtractor(str(copy), trust_remote_code=True).extract_embeddings(SEQUENCES)
    np.testing.assert_array_equal(own, np.roll(library, 1, axis=1))


def test_trusted_code_that_the_class_to_be_loaded_passes_by_is_refused(copy):
    _map_code(copy, "config.json", {"AutoModelForMaskedLM": "own.Masked"})
    with pytest.raises(ExtractorError, match="but none for AutoModel, which would load the libra"):
        HuggingFaceExtractor(str(copy), trust_remote_code=True)


def _change_weights(folder: Path, change: Callable[[Weights], Weights]) -> None:
    weights = load_file(folder / "model.safetensors")
    save_file(change(weights), folder / "model.safetensors", metadata={"format": "pt"})


def test_a_missing_weight_is_refused(copy):
    name = "encoder.layer.1.output.dense.weight"
    _change_weights(copy, lambda w: {k: v for k, v in w.items() if k != name})
    with pytest.raises(ExtractorError, match=rf"1 missing \({name}\); if the repository"):
        HuggingFaceExtractor(str(copy))


def test_a_weight_left_over_is_refused(copy):
    _change_weights(copy, lambda w: {**w, "encoder.layer.2.gate.weight": torch.zeros(2)})
    with pytest.raises(ExtractorError, match=r"1 unused \(encoder.layer.2.gate.weight\)"):
        HuggingFaceExtractor(str(copy))


def test_a_device_that_torch_cannot_use_is_named_and_the_model_is_not_blamed(copy):
    with pytest.raises(
        ExtractorError, match=r"cannot use --device xpu:7: .*--device cpu"
    ) as caught:
        load("huggingface", str(copy), "xpu:7")
    assert "cannot be loaded" not in str(caught.value)


def test_a_weight_of_another_shape_is_refused(copy):
    name = "encoder.layer.1.output.dense.weight"
    _change_weights(copy, lambda w: {**w, name: torch.zeros(3, 3)})
    with pytest.raises(ExtractorError, match="cannot be loaded"):
        HuggingFaceExtractor(str(copy))


def test_a_head_and_a_pooler_are_nobodys_loss(copy):
    def change(weights):
        weights_without_pooler = {k: v for k, v in weights.items() if not k.startswith("pooler.")}
        return {**weights_without_pooler, "cls.predictions.bias": torch.zeros(10)}

    expected = HuggingFaceExtractor(str(copy)).extract_embeddings(SEQUENCES)
    _change_weights(copy, change)
    embeddings = HuggingFaceExtractor(str(copy)).extract_embeddings(SEQUENCES)
    np.testing.assert_array_equal(embeddings, expected)


def test_older_weights_are_read_where_there_are_no_safetensors(copy):
    expected = HuggingFaceExtractor(str(copy)).extract_embeddings(SEQUENCES)
    torch.save(load_file(copy / "model.safetensors"), copy / "pytorch_model.bin")
    safe = HuggingFaceExtractor(str(copy))
    assert list(safe.source["weights"]) == ["model.safetensors"]
    (copy / "model.safetensors").unlink()
    extractor = HuggingFaceExtractor(str(copy))
    assert list(extractor.source["weights"]) == ["pytorch_model.bin"]
    np.testing.assert_array_equal(extractor.extract_embeddings(SEQUENCES), expected)


def test_a_folder_without_a_model_says_so(tmp_path):
    with pytest.raises(ExtractorError, match=r"has no config.json at its top"):
        HuggingFaceExtractor(str(tmp_path))


def test_a_decoder_without_special_tokens_refuses_an_empty_sequence(saved):
    with pytest.raises(ExtractorError, match=r"sequence 1 \(''\) has no token"):
        HuggingFaceExtractor(str(saved("gpt2"))).extract_embeddings(["A", ""])


def test_tokens_are_counted_uncut(saved):
    extractor = HuggingFaceExtractor(str(saved("bert")))
    assert extractor.count_tokens(["", "ACG", "A" * 100]) == [2, 5, 102]
