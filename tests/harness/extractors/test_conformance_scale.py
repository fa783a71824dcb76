"""Errors that show in a run's batches alone, wrong declarations, and what must not be refused."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_harness.conformance import PROPERTIES, QUICK, Outcome, check, full_check
from reference_harness.conformance.child_process import property_result
from reference_harness.conformance.full_check import (
    LENGTH_MIN,
    SEQUENCE_COUNT,
    full_check_of,
    lengths_up_to,
)
from reference_harness.conformance.result import PropertyResult
from reference_harness.conformance.subject import Subject
from reference_harness.embedding.extractor_calls import embeddings_by_call
from reference_harness.embedding.memory import MemoryLimit, memory_of
from reference_harness.loading.loader import load
from tests.harness.extractors.models import KINDS

FAULTY = Path(__file__).parents[1] / "faulty"
PROCESS = {"undefined-names", "weights", "no-network", "files-read", "files-read-later"}
"""Properties that change or watch the process they run in."""
FEWER_ROWS = {"SEQUENCE_COUNT": 127, "SEQUENCES_MIN": 8, "CLASS_EMBEDDINGS": 1, "COMPARED_MIN": 24}
"""Of what there is less where no embedding is wrong: half precision is slow on a CPU."""
SCALE = ("run-batches", "mixed-batches", "no-drift")


def with_fewer_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a full check try fewer embeddings in this test."""
    for name, number in FEWER_ROWS.items():
        monkeypatch.setattr(full_check, name, number)


def subject(module: str, class_name: str, **more) -> Subject:
    return Subject(spec=f"{FAULTY / module}.py:{class_name}", name_model="", device="cpu", **more)


def tried(tried_subject: Subject, *slugs: str) -> dict[str, PropertyResult]:
    return {slug: property_result(slug, tried_subject) for slug in slugs}


def failed(tried_subject: Subject, *slugs: str) -> dict[str, str]:
    return {slug: r.sentence for slug, r in tried(tried_subject, *slugs).items() if r.is_refused()}


@pytest.mark.parametrize(
    ("class_name", "expected"),
    [
        ("SoundAtScale", set()),
        ("LongPadding", {"run-batches", "mixed-batches"}),
        pytest.param("CentredCalls", {"run-batches", "mixed-batches"}, marks=pytest.mark.nightly),
        pytest.param("SeventeenthRow", {"run-batches", "mixed-batches"}, marks=pytest.mark.nightly),
        pytest.param("LargeBatchSize", {"run-batches", "mixed-batches"}, marks=pytest.mark.nightly),
        ("GrowingState", set(SCALE)),
        ("LostRemainder", {"run-batches", "mixed-batches"}),
        ("ShortRemainder", set(SCALE)),
    ],
)
def test_the_batches_of_a_run_show_what_a_few_sequences_do_not(class_name, expected):
    outcome_of_trial = tried(subject("at_scale", class_name), *SCALE)
    wrong = {slug for slug, r in outcome_of_trial.items() if r.is_refused()}
    assert wrong == expected
    for slug in wrong:
        assert "expected" in outcome_of_trial[slug].sentence
        assert outcome_of_trial[slug].example


@pytest.mark.parametrize(
    ("class_name", "slug", "sentence"),
    [
        (
            "ClsAsMean",
            "layer-and-pooling",
            "its embeddings are the first token ('cls') of layer 'last'",
        ),
        (
            "OtherLayer",
            "layer-and-pooling",
            "its embeddings are the mean over the tokens ('mean') of layer '2' of 3",
        ),
        pytest.param(
            "OtherNumber", "layer-and-pooling", "of layer '1' of 3", marks=pytest.mark.nightly
        ),
        pytest.param(
            "OtherLayerScaled",
            "layer-and-pooling",
            "('mean') of layer '2' of 3",
            marks=pytest.mark.nightly,
        ),
        ("EndsAsMean", "layer-and-pooling", "are 0.50 x cls of model.encoder.layer.2"),
        pytest.param(
            "FirstInMean",
            "layer-and-pooling",
            "are 0.30 x cls of model.encoder.layer.2",
            marks=pytest.mark.nightly,
        ),
        pytest.param(
            "TwoLayers",
            "layer-and-pooling",
            "0.50 x mean of model.encoder.layer.2",
            marks=pytest.mark.nightly,
        ),
        ("HalfAsFloat", "computed-dtype", "most layers compute in bfloat16"),
        pytest.param(
            "AutocastAsFloat",
            "computed-dtype",
            "most layers compute in bfloat16",
            marks=pytest.mark.nightly,
        ),
        ("FloatAsHalf", "computed-dtype", "most layers compute in float32"),
        ("RoundedRows", "computed-dtype", "are bfloat16 values"),
    ],
)
def test_a_wrong_declaration_is_found_and_named(class_name, slug, sentence):
    failures = failed(subject("misdeclared", class_name), "layer-and-pooling", "computed-dtype")
    assert sentence in failures[slug]
    if class_name != "RoundedRows":  # rounding moves embeddings away from their mean, too
        assert set(failures) == {slug}


def test_half_precision_under_a_wrong_declaration_is_named_where_rows_differ():
    failures = failed(subject("misdeclared", "HalfAsFloat"), "batch-size", "padding")
    assert set(failures) == {"batch-size", "padding"}
    assert all("may also come from half precision" in sentence for sentence in failures.values())
    leak = failed(subject("mean_over_padding", "MeanOverPadding"), "padding")
    assert "rounding" not in leak["padding"]


def test_rounded_rows_are_found_without_any_module_to_look_into():
    failures = failed(
        subject("rounded_numpy", "RoundedNumpy"), "layer-and-pooling", "computed-dtype"
    )
    assert set(failures) == {"computed-dtype"}
    assert "are bfloat16 values: declare 'bfloat16'" in failures["computed-dtype"]


def test_what_cannot_be_verified_is_said_and_no_failure():
    outcome_of_trial = tried(subject("sound", "Sound"), "layer-and-pooling", "computed-dtype")
    assert {r.outcome for r in outcome_of_trial.values()} == {Outcome.NOT_VERIFIED}
    assert not any(r.is_refused() for r in outcome_of_trial.values())
    assert [r.sentence for r in outcome_of_trial.values()] == [
        "Layer and pooling cannot be verified: no module's hidden states match the embeddings.",
        (
            "Whether the extractor computes in float32 cannot be verified: no layer is visible. "
            "Its embeddings are not rounded to fewer digits than float32 has."
        ),
    ]


@pytest.mark.parametrize(
    ("class_name", "slug", "letters", "sentence"),
    [
        ("OtherWord", "layer-and-pooling", 512, "the declared pooling 'attention' cannot be comp"),
        ("OtherPlace", "layer-and-pooling", 512, 'the declared layer "the encoder\'s" cannot be'),
        ("NoCounter", "maximum-length", 1024, "whether these are the 64 tokens of max_length is"),
        ("NoCounter", "maximum-length", 512, "a sequence of 512 letters may be too short to reach"),
        ("WideWindows", "maximum-length", 64, "whether it reads beyond one window is not known"),
    ],
)
def test_what_cannot_be_compared_is_not_said_to_hold(class_name, slug, letters, sentence):
    result = property_result(slug, subject("unverifiable", class_name, letters=letters))
    assert (result.outcome, sentence in result.sentence) == (Outcome.NOT_VERIFIED, True), result


@pytest.mark.parametrize(
    ("class_name", "slug", "sentence"),
    [
        ("WarmUp", "repeatable-loads", "the first call after a load returns other embeddings"),
        ("ChangingType", "floating-dtype", "one call returns float16 and another float32"),
        ("ChangingType", "batch-neighbours", "one call returns float16 and another float32"),
        ("PaddingNan", "finite", "alone, the same sequence has a finite embedding, so padding"),
        ("PaddingNan", "batch-size", "embedding 0 holds NaN in 8 of 8 columns"),
        ("Overflow", "finite", "embedding 0 holds infinity in 1 of 8 columns"),
        ("Remembers", "repeatable-loads", "it keeps a state"),
    ],
)
def test_the_sentence_names_the_cause(class_name, slug, sentence):
    test_subject = subject("misleading", class_name)
    property_result("loads", test_subject)
    assert sentence in failed(test_subject, slug)[slug]


@pytest.mark.parametrize(
    ("module", "class_name", "alarms"),
    [
        pytest.param("upstream_shapes", "NamedSeqs", set(), marks=pytest.mark.nightly),
        pytest.param("upstream_shapes", "PositionalOnly", set(), marks=pytest.mark.nightly),
        pytest.param("upstream_shapes", "ReturnsTensor", set(), marks=pytest.mark.nightly),
        pytest.param("upstream_shapes", "ReturnsBfloat16", set(), marks=pytest.mark.nightly),
        ("upstream_shapes", "ReturnsIntegers", {"floating-dtype"}),
        pytest.param("legitimate", "Float16", set(), marks=pytest.mark.nightly),
        pytest.param("legitimate", "Bfloat16", set(), marks=pytest.mark.nightly),
        pytest.param("legitimate", "Autocast", set(), marks=pytest.mark.nightly),
        pytest.param("legitimate", "FirstToken", set(), marks=pytest.mark.nightly),
        pytest.param("legitimate", "Scaled", set(), marks=pytest.mark.nightly),
        pytest.param("legitimate", "Normalised", set(), marks=pytest.mark.nightly),
        pytest.param("legitimate", "Windows", set(), marks=pytest.mark.nightly),
        pytest.param("legitimate", "BothStrands", set(), marks=pytest.mark.nightly),
        pytest.param("legitimate", "OneHot", set(), marks=pytest.mark.nightly),
        pytest.param("legitimate", "OneByOne", set(), marks=pytest.mark.nightly),
    ],
)
def test_what_a_run_accepts_is_not_refused(module, class_name, alarms, monkeypatch):
    with_fewer_rows(monkeypatch)
    test_subject = subject(module, class_name)
    failures = failed(test_subject, *(p.slug for p in PROPERTIES if p.slug not in PROCESS))
    assert set(failures) == alarms, failures


@pytest.mark.nightly  # in the gate: a lookalike, in test_lookalikes.py, and the template
@pytest.mark.parametrize("kind", KINDS)
def test_a_transformer_passes_the_full_check(saved, kind, monkeypatch):
    with_fewer_rows(monkeypatch)
    tried_subject = Subject(spec="huggingface", name_model=str(saved(kind)), device="cpu")
    assert (
        failed(tried_subject, *(each.slug for each in PROPERTIES if each.slug not in PROCESS)) == {}
    )
    sentence = property_result("layer-and-pooling", tried_subject).sentence
    assert sentence.startswith(
        "Embeddings are the mean over the tokens ('mean') of layer 'last' of 2"
    )


@pytest.mark.parametrize(
    ("class_name", "slug"),
    [("ReadsLabels", "files-read"), ("ReadsLabelsLater", "files-read-later")],
)
def test_a_file_of_labels_that_is_read_is_named(class_name, slug):
    module = f"{FAULTY / 'reads_labels.py'}:{class_name}"
    expected = ["files-read", "run-batches", "files-read-later"]
    results_by_property = {r.property: r for r in check(module, select=expected, full=True)}
    assert results_by_property[slug].is_refused()
    assert results_by_property[slug].ran
    assert (
        f"the extractor opens {FAULTY.resolve() / 'labels.csv'}, which is data"
        in results_by_property[slug].sentence
    )
    later = [r.ran for r in results_by_property.values() if r.property != "files-read"]
    assert later == ([False, False] if slug == "files-read" else [True, True])


@given(st.integers(LENGTH_MIN, 20_000))
def test_the_rows_reach_from_the_shortest_to_the_longest(most):
    lengths = lengths_up_to(most)
    assert len(lengths) == SEQUENCE_COUNT
    assert (min(lengths), max(lengths)) == (LENGTH_MIN, most)
    counts = np.histogram(lengths, [LENGTH_MIN * 2**i for i in range(14)])[0]
    # The last doubling may be incomplete; each whole one has its embeddings.
    assert all(n >= 17 for i, n in enumerate(counts) if LENGTH_MIN * 2 ** (i + 1) <= most)


def test_the_full_check_makes_the_calls_of_a_run():
    """Also where both measure the token budget."""
    at_scale = dataclasses.replace(subject("at_scale", "SoundAtScale"), measures_budget=True)
    full_check = full_check_of(at_scale)
    limit = MemoryLimit(memory_of("cpu"))
    made = embeddings_by_call(
        load(at_scale.spec), at_scale.batching, "run", full_check.sequences, limit
    )
    for (rows, values), (our_rows, _, size, our_values) in zip(
        made, full_check.embed_batches(), strict=True
    ):
        np.testing.assert_array_equal(rows, our_rows)
        np.testing.assert_array_equal(values, our_values)
        assert size == len(rows)


def test_quick_is_all_but_the_full_properties():
    assert [p.slug for p in PROPERTIES if p not in QUICK] == [*SCALE, "files-read-later"]
