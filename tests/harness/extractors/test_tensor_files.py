"""Files of tensors: what is read of them, what is refused, and what stays float32."""

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_harness.extractors.base import ExtractorError
from reference_harness.extractors.huggingface import HuggingFaceExtractor
from reference_harness.extractors.mamba import scan
from reference_harness.extractors.options import parse
from reference_harness.extractors.state_dict import tensors_by_model_name
from reference_harness.extractors.tensors import read_tensors
from tests.harness.extractors.families import FAMILIES
from tests.harness.extractors.remote import stubs


class Hostile:
    """What a pickle may contain: a call of any function."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def test_nothing_in_a_file_is_called_but_what_makes_tensors(tmp_path):
    touched = tmp_path / "touched"
    made = {"a": torch.ones(2), "b": torch.nn.Parameter(torch.zeros(1))}
    for zipped in (True, False):
        content = {"state_dict": made, "more": Hostile(touched)}
        torch.save(content, tmp_path / "x.ckpt", _use_new_zipfile_serialization=zipped)
        found = read_tensors(tmp_path / "x.ckpt", "state_dict")
        assert {name: one.tolist() for name, one in found.items()} == {"a": [1, 1], "b": [0]}
    (tmp_path / "y.pth").write_bytes(pickle.dumps(Hostile(touched)))
    with pytest.raises(ExtractorError, match=r"cannot be read as a file of torch"):
        read_tensors(tmp_path / "y.pth")
    assert not touched.exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"model": {"a": torch.ones(1)}}, r"x.pth has no tensors but entries model: declare wei"),
        ([1], "x.pth has no tensors but list: declare weights_at=ENTRY"),
    ],
)
def test_a_file_without_tensors_at_that_place_is_refused(tmp_path, content, message):
    torch.save(content, tmp_path / "x.pth")
    with pytest.raises(ExtractorError, match=message):
        read_tensors(tmp_path / "x.pth", "state_dict")


@pytest.mark.parametrize("raw", [b"", b"no file of torch", pickle.dumps({"a": 1})[:-3]])
def test_a_damaged_file_is_refused(tmp_path, raw):
    (tmp_path / "x.pth").write_bytes(raw)
    with pytest.raises(ExtractorError, match=r"cannot be read as a file of torch .*: compare it"):
        read_tensors(tmp_path / "x.pth")


def test_names_are_rewritten_cut_and_turned_in_this_order():
    said = parse(
        {
            "auto_class": "own:janus",
            "weights": "x.pth",
            "rename": {"^old\\.": "", "one": "two"},
            "split": {r"two\.(\w+)$": [r"left.\1", r"right.\1"]},
            "transpose": "right",
        }
    )
    found = tensors_by_model_name(
        {"old.one.weight": torch.arange(8).view(4, 2), "c": torch.zeros(1)}, said
    )
    assert {name: one.tolist() for name, one in found.items()} == {
        "left.weight": [[0, 1], [2, 3]],
        "right.weight": [[4, 6], [5, 7]],
        "c": [0.0],
    }


def build(written: Any, family: str, **changes: object) -> HuggingFaceExtractor:
    options = {**FAMILIES[family].options, **changes}
    return HuggingFaceExtractor(str(written(family)[0]), **options)


@pytest.mark.parametrize(
    ("family", "changes", "message"),
    [
        (
            "DNA-GPT 0.1B",
            {"weights": "no.pth"},
            "weights is 'no.pth', which is no file of .*: name",
        ),
        ("DNA-GPT 0.1B", {"zeros": ""}, r"the weights of .* do not fit .*: 13 missing \(h.0.attn"),
        ("DNA-GPT 0.1B", {"unexpected": ""}, r"3 unused \(mlm_head.0.weight, num_regression"),
        (
            "DNA-GPT 0.1B",
            {"transpose": ""},
            r"6 of another shape \(h.0.attn.c_attn.weight, h.0.mlp.c_f",
        ),
        (
            "DNA-GPT 3B",
            {"rename": {r".*ln_\d\.": "x."}},
            "rename gives two tensors the name 'x.wei",
        ),
        (
            "Genomics-FM",
            {"split": {"Wqkv": list("abcde")}},
            r"split divides .* into 5 parts, but its",
        ),
        (
            "DNA-GPT 0.1B",
            {"keep_float32": "poles"},
            "keep_float32 is 'poles', which matches no weight of",
        ),
    ],
)
def test_a_layout_that_is_not_the_files_is_refused(written, family, changes, message):
    with pytest.raises(ExtractorError, match=message):
        build(written, family, **changes)


def test_declared_weights_stay_float32_in_both_ways_of_loading(written):
    for family, pattern in (("DNA-GPT 0.1B", r"ln_f\."), ("Evo", r"backbone\.norm\.")):
        extractor = build(written, family, dtype="bfloat16", keep_float32=pattern)
        types = {name: one.dtype for name, one in extractor.model.named_parameters()}
        kept = {name for name, one in types.items() if one == torch.float32}
        exact = dict(build(written, family).model.named_parameters())
        own = dict(extractor.model.named_parameters())
        assert kept
        assert len(kept) < len(types)
        assert all(torch.equal(own[name], exact[name]) for name in kept)


PACKAGE = """from {stubs} import BinsModel


class Enformer(BinsModel):
    pass
"""


def test_a_class_of_an_installed_package_is_taken(written, tmp_path, monkeypatch):
    """The package is an imitation: the class reads one-hot letters and gives bins second."""
    (tmp_path / "enformer_pytorch.py").write_text(PACKAGE.format(stubs=stubs.__name__))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "enformer_pytorch", raising=False)
    found = build(written, "Enformer", auto_class="package:enformer_pytorch.Enformer")
    sequences = ["ACGTNACGT", "GATTACA" * 12]
    expected = [FAMILIES["Enformer"].row(written("Enformer")[1], one) for one in sequences]
    rows = found.extract_embeddings(sequences)
    np.testing.assert_allclose(rows, expected, rtol=1e-5, atol=1e-5)
    with pytest.raises(ExtractorError, match="package enformer_pytorch has no class Enfomer: ins"):
        build(written, "Enformer", auto_class="package:enformer_pytorch.Enfomer")


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 40), st.integers(0, 2**31))
def test_a_scan_is_its_recurrence(length, seed):
    generator = torch.Generator().manual_seed(seed)
    decay = torch.rand(2, length, 3, generator=generator, dtype=torch.float64)
    value = torch.randn(2, length, 3, generator=generator, dtype=torch.float64)
    state, rows = torch.zeros(2, 3, dtype=torch.float64), []
    for n in range(length):
        state = decay[:, n] * state + value[:, n]
        rows.append(state)
    torch.testing.assert_close(scan(decay, value), torch.stack(rows, dim=1))
