"""Each way of loading a published model, on a small one: declared, run, compared, checked."""

import numpy as np
import pytest

from reference_harness.conformance import PROPERTIES, Outcome, PropertyResult, check
from reference_harness.conformance.child_process import property_result
from reference_harness.conformance.subject import Subject
from reference_harness.extractors.huggingface import HuggingFaceExtractor
from reference_harness.loading.loader import load
from tests.harness.extractors.families import FAMILIES
from tests.harness.extractors.test_conformance_scale import with_fewer_rows

SEQUENCES = ["ACGTACGTTG", "ACT", "GGGCATTACGATTTAGCAGGC", "T" * 29, "CAGTCGATTGCAAGCTTTGCA"]
LONG = "GATTACAGCATGTTGGCACTACGGTACATTGCAGCTTAACCGGATCCA"
BY_DAY = ("SpliceBERT",)
"""Windows of letters. Rows of all families are compared with those computed by hand."""
IN_PROCESS = [p.slug for p in PROPERTIES if p.check is not None and not p.is_offline]
"""The static check reads one file for all families, and a blocked network stays blocked."""


@pytest.mark.parametrize("family", FAMILIES)
def test_rows_are_those_computed_by_hand(written, family):
    folder, model = written(family)
    lookalike = FAMILIES[family]
    loaded = load("huggingface", str(folder), **lookalike.options)
    sequences = (
        [*SEQUENCES, LONG] if lookalike.options.get("truncation") == "windows" else SEQUENCES
    )
    expected = np.vstack([lookalike.row(model, sequence) for sequence in sequences])
    embeddings = loaded.extractor.extract_embeddings(sequences, batch_size=3)
    assert embeddings.dtype == np.float32
    np.testing.assert_allclose(embeddings, expected, rtol=1e-5, atol=1e-5)
    assert loaded.undeclared == ()
    assert isinstance(loaded.extractor, HuggingFaceExtractor)
    assert (loaded.extractor.batching == "exact") == lookalike.exact


WORDS_ALONE = {"GENERator", "DNA-GPT", "DNA-GPT 0.1B"}
"""Read whole words: the letters that are left over at an end are dropped, as published."""


@pytest.mark.parametrize(
    "family",
    [pytest.param(n, marks=() if n in BY_DAY else pytest.mark.nightly) for n in FAMILIES],
)
def test_every_property_holds(written, family, monkeypatch):
    with_fewer_rows(monkeypatch)
    options = {"batching": "file", **FAMILIES[family].options}
    subject = Subject("huggingface", str(written(family)[0]), "cpu", options=options, letters=512)
    results = [property_result(slug, subject) for slug in IN_PROCESS]
    assert [(r.property, r.sentence, r.example) for r in results if r.is_refused()] == []
    # Where a model has no list of blocks, a layer has no number that could be compared.
    unseen = {"layer-and-pooling"} | ({"letters-read"} if family in WORDS_ALONE else set())
    assert not_verified(results) <= unseen


def not_verified(results: list[PropertyResult]) -> set[str]:
    return {r.property for r in results if r.outcome is Outcome.NOT_VERIFIED}


@pytest.mark.nightly  # the gate has code of a folder in one process, and the template in several
def test_code_of_a_folder_is_checked_in_processes_of_its_own(written):
    options = {"batching": "file", **FAMILIES["Caduceus"].options}
    results = check("huggingface", str(written("Caduceus")[0]), options=options)
    assert [(r.property, r.sentence) for r in results if r.is_refused()] == []
    assert not_verified(results) == {"layer-and-pooling"}
