"""The template of docs/contributor/extractor.md has every property, and pins its weights."""

import re

import pytest

from reference_harness.conformance import QUICK, Outcome, check
from reference_harness.loading.loader import load
from tests.harness.extractors.models import MAX_LENGTH
from tests.harness.extractors.test_conformance import tried_here
from tests.paths import ROOT

PAGE = (ROOT / "docs/contributor/extractor.md").read_text(encoding="utf-8")


@pytest.fixture
def template(tmp_path):
    """Write the template to a file, with the length that the tiny model has."""
    (text,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert text.count("= 512,") == 1
    path = tmp_path / "mine.py"
    path.write_text(text.replace("= 512,", f"= {MAX_LENGTH},"), encoding="utf-8")
    return f"{path}:MyModel"


OFFLINE = [p.slug for p in QUICK if p.is_offline]
"""What needs a process of its own, which imports torch."""


def test_the_template_has_every_property_that_is_tried_here(template, saved):
    results = tried_here(template, str(saved("bert")))
    assert {*results, *OFFLINE} == {p.slug for p in QUICK}
    wrong = [(r.property, r.sentence) for r in results.values() if r.outcome is not Outcome.HOLDS]
    assert wrong == []


@pytest.mark.nightly  # in the gate, an extractor without torch, in test_conformance.py
def test_the_template_needs_no_network(template, saved):
    results = check(template, str(saved("bert")), select=OFFLINE)
    assert [(r.property, r.outcome) for r in results] == [(s, Outcome.HOLDS) for s in OFFLINE]


def test_the_template_declares_all_that_a_submission_needs(template, saved):
    loaded = load(template, str(saved("bert")))
    assert loaded.undeclared == ()
    assert loaded.description["model"] == {
        "kind": "huggingface",
        "location": "OWNER/MODEL",
        "revision": "0" * 40,
        "weights": {"model.safetensors": "0" * 64},
    }
