"""What is measured of a loaded model: a refusal says what was found and what to declare."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from reference_harness.extractors.base import ExtractorError
from reference_harness.extractors.huggingface import HuggingFaceExtractor
from tests.harness.extractors.lookalikes import LOOKALIKES
from tests.harness.extractors.saving import KMERS, LIMIT, WORDS, ids, tokenizer

LEFT_OUT = object()


def build(
    written: Callable[[str], tuple[Path, Any]], family: str, **changes: object
) -> HuggingFaceExtractor:
    options: dict[str, Any] = {**LOOKALIKES[family].options, **changes}
    values_by_name = {name: value for name, value in options.items() if value is not LEFT_OUT}
    return HuggingFaceExtractor(str(written(family)[0]), **values_by_name)


@pytest.mark.parametrize(
    ("family", "changes", "message"),
    [
        (
            "DNABERT",
            {"output": "auto"},
            (
                r"no last_hidden_state but tuple of 0 \(1, 20, 16\), 1 \(1, 16\); declare "
                "output=item:0 if that is the hidden states; declare output=module:NAME to read a "
                "module, such as encoder.norm"
            ),
        ),
        ("DNABERT", {"output": "item:1"}, r"output item:1 of TupleModel is \(1, 16\), expected nu"),
        ("DNABERT", {"output": "item:2"}, "declare an item from 0 to 1"),
        ("DNABERT", {"output": "module:none"}, "TupleModel has no such module; declare output=mod"),
        ("DNABERT", {"output": "module:encoder.qkv"}, "which ran 0 times in a call of TupleModel"),
        (
            "eccDNAMamba",
            {"output": "hidden_states"},
            (
                "hidden_states of TensorStatesModel is a tensor, expected a list of layers: the "
                r"model returns CausalLMOutput of logits \(1, 24, 12\), hidden_states "
                r"\(1, 24, 16\); declare output=item:0 or output=item:1 if"
            ),
        ),
        ("eccDNAMamba", {"output": "auto"}, "hidden_states of TensorStatesModel is a tensor"),
        ("GENA", {"layer": 1, "submodule": ""}, "takes no output_hidden_states, so no layer can"),
        ("GENA", {"submodule": "brt"}, "has no such module; its top-level modules are: bert, cls"),
        ("DNABERT", {"layer": 1, "output": "auto"}, "hidden_states of TupleModel is None, expecte"),
        ("DNABERT", {"max_length": LEFT_OUT}, "neither the tokenizer nor the model has a maximum"),
        ("HyenaDNA", {"mask_inside": True}, "forward of CausalModel takes no attention mask: leav"),
        (
            "LucaOne",
            {"model_arguments": {}},
            "ArgumentsModel does not run on a sequence of .*scale",
        ),
        ("LucaOne", {"model_arguments": {"size": 1}}, "has size, but forward of ArgumentsModel ta"),
        (
            "LucaOne",
            {"config_arguments": {"task_level": "span"}},
            "cannot be loaded: ValueError: task_level has to be",
        ),
        ("Enformer", {"output": "item:0", "pooling": "penultimate"}, "64 tokens, so it is unknown"),
        ("GENERator", {"prefix": "{sep_token}"}, "but the tokenizer has no sep_token: write its"),
        ("Caduceus", {"trust_remote_code": False}, "cannot be loaded: ValueError"),
    ],
)
def test_what_is_not_there_is_refused_with_what_is(written, family, changes, message):
    with pytest.raises(ExtractorError, match=message):
        build(written, family, **changes)


def test_a_declared_mask_is_not_measured(written):
    assert build(written, "Evo").batching == "exact"
    assert build(written, "Evo", mask_inside=True).batching == "budget"
    assert build(written, "GENA").batching == "budget"
    assert build(written, "GENA", mask_inside=False).batching == "exact"


def test_any_length_has_to_be_declared(written):
    build_result = build(written, "DNABERT", max_length=None)
    assert (build_result.max_length, build_result.truncation) == (None, "none")
    assert build_result.extract_embeddings(["ACGT" * 60]).shape == (1, 16)


def test_layers_are_counted_in_the_output(written):
    _, model = written("HyenaDNA")
    tokens = torch.tensor([[5, 6, 7, 8] * 5])
    with torch.no_grad():
        states = model(tokens, output_hidden_states=True).hidden_states
    for layer in range(3):
        embeddings = build(written, "HyenaDNA", layer=layer).extract_embeddings(["ACGT" * 5])
        np.testing.assert_allclose(embeddings[0], states[layer][0].mean(dim=0), atol=1e-5)
    with pytest.raises(ExtractorError, match="layer is 3, expected last or a number from -3 to 2"):
        build(written, "HyenaDNA", layer=3)


def test_special_tokens_and_prefix_are_left_out_of_a_maximum(written):
    _, model = written("GENERator")
    build_result = build(written, "GENERator", pooling="max", pool_special=False)
    with torch.no_grad():
        words = ids("ACGTTGCAT", KMERS, 3)
        states = model(torch.tensor([[1, 1, *words]]), output_hidden_states=True).hidden_states
    expected = states[-1][0, 2:].amax(dim=0)
    np.testing.assert_allclose(
        build_result.extract_embeddings(["ACGTTGCAT", "ACG"])[0], expected, atol=1e-5
    )


@pytest.mark.parametrize("truncation", ["windows", "right", "left"])
def test_a_slow_tokenizer_is_cut_as_a_fast_one(written, tmp_path, truncation):
    """HyenaDNA's tokenizer has the ids of the fast one, without its special tokens."""
    slow = build(written, "HyenaDNA", truncation=truncation, max_length=9, stride=2)
    for file in written("HyenaDNA")[0].iterdir():
        if file.is_file() and file.name != "tokenizer_config.json":
            (tmp_path / file.name).write_bytes(file.read_bytes())
    tokenizer(template="$A", limit=LIMIT).save_pretrained(tmp_path)
    fast = HuggingFaceExtractor(
        str(tmp_path),
        trust_remote_code=True,
        truncation=truncation,
        max_length=9,
        stride=2,
    )
    sequences = ["GATTACAGCATGTTGGCACT", "ACGT", "CAGTCGATTGCAAGCTT"]
    assert slow.tokenizer.is_fast is False
    assert fast.tokenizer.is_fast is True
    np.testing.assert_array_equal(
        slow.extract_embeddings(sequences), fast.extract_embeddings(sequences)
    )


@pytest.fixture
def changed(written, tmp_path):
    """Return a copy of the GENA folder whose head is left over and one norm is missing."""
    for file in written("GENA")[0].iterdir():
        if file.is_file():
            (tmp_path / file.name).write_bytes(file.read_bytes())
    weights = load_file(tmp_path / "model.safetensors")
    weights["extra.head"] = torch.zeros(2)
    del weights["cls.bias"]
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    return tmp_path


def test_weights_may_be_missing_and_left_over_where_declared(written, changed):
    options = dict(LOOKALIKES["GENA"].options)
    with pytest.raises(ExtractorError, match=r"1 missing \(cls.bias\); 1 unused \(extra.head\)"):
        HuggingFaceExtractor(str(changed), **options)
    with pytest.raises(ExtractorError, match=r"model.*: 1 unused \(extra.head\);"):
        HuggingFaceExtractor(str(changed), **options, missing=r"^cls\.bias$")
    hugging_face_extractor = HuggingFaceExtractor(
        str(changed), **options, missing=r"^cls\.bias$", unexpected=r"^extra\."
    )
    np.testing.assert_array_equal(
        hugging_face_extractor.extract_embeddings(["ACGTACGT"]),
        build(written, "GENA").extract_embeddings(["ACGTACGT"]),
    )


def test_ids_beyond_the_rows_are_refused_when_they_occur(written, tmp_path):
    for file in written("GROVER")[0].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    tokenizer(words=(*WORDS, "R")).save_pretrained(tmp_path)
    hugging_face_extractor = HuggingFaceExtractor(str(tmp_path))
    assert hugging_face_extractor.extract_embeddings(["ACGTN"]).shape == (1, 16)
    with pytest.raises(ExtractorError, match=r"sequence 1 has token 10 \('R'\), but the model has"):
        hugging_face_extractor.extract_embeddings(["ACGTN", "ACR"])
