"""A run contradicts nothing of an extractor without a fault, however unusual it is."""

import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reference_harness.embedding.embedder import EmbedderSpec, EmbedJob, EmbedResult
from reference_harness.embedding.extractor_calls import DEFAULT_BATCHING
from reference_harness.loading.properties import properties_of_tasks
from tests.harness.extractors.families import FAMILIES
from tests.harness.extractors.models import KINDS
from tests.harness.extractors.test_lookalikes import WORDS_ALONE

UNUSUAL = Path(__file__).parents[1] / "faulty/legitimate.py"
CLASSES = (
    *("Float16", "Bfloat16", "Autocast", "FirstToken", "Scaled", "Normalised", "Windows"),
    *("BothStrands", "OneHot", "OneByOne"),
)

pytestmark = pytest.mark.nightly  # torch, transformers, and 40 models


def contradicted(folder: Path, extractor: str, model: str = "", **options: Any) -> set[str]:
    """Embed 100 sequences that no limit cuts, and return the properties that show otherwise."""
    spec = EmbedderSpec(
        extractor=extractor,
        name_model=model,
        device="cpu",
        keywords=options,
        batching=DEFAULT_BATCHING,
        measures_budget=False,
    )
    embedder, draw = spec.load(), random.Random(0)
    sequences = ["".join(draw.choices("ACGT", k=draw.randint(18, 32))) for _ in range(100)]
    *_, result = embedder.embed(EmbedJob("a", sequences, folder / "cache", {}, sequences))
    assert isinstance(result, EmbedResult)
    assert (result.failure, result.letters_read.reason) == ("", "")
    task: Any = SimpleNamespace(
        measured=SimpleNamespace(letters=result.letters_read.read, drift=result.drift)
    )
    seen = embedder.facts.properties | properties_of_tasks({"a": task})
    assert {"layer-and-pooling", "computed-dtype", "strands"} < set(seen) or not model
    assert seen["no-drift"].outcome == "verified"
    return {slug for slug, own in seen.items() if own.outcome == "contradicted"}


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_that_embeds_in_an_unusual_way(name: str, tmp_path: Path) -> None:
    assert contradicted(tmp_path, f"{UNUSUAL}:{name}") == set()


@pytest.mark.parametrize("kind", KINDS)
def test_a_transformer(kind: str, saved: Any, tmp_path: Path) -> None:
    assert contradicted(tmp_path, "huggingface", str(saved(kind))) == set()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_of_the_registry(family: str, written: Any, tmp_path: Path) -> None:
    options = FAMILIES[family].options
    contradictions = contradicted(tmp_path, "huggingface", str(written(family)[0]), **options)
    assert contradictions == ({"letters-read"} if family in WORDS_ALONE else set())
