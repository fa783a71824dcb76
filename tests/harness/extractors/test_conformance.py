"""Each fault of the published extractors is caught by the property that names it."""

import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from safetensors.torch import load_file, save_file
from sklearn.linear_model import LogisticRegression

from reference_harness.cli.extractors import extractors
from reference_harness.conformance import (
    PROPERTIES,
    QUICK,
    Outcome,
    PropertyResult,
    check,
    static_check,
)
from reference_harness.conformance.child_process import property_result
from reference_harness.conformance.properties import LOADS
from reference_harness.conformance.subject import Subject
from reference_harness.extractors import BUILTINS, DEFAULT
from reference_harness.loading.loader import load
from tests.gate import gated

FAULTY = Path(__file__).parents[1] / "faulty"
SLUGS = [p.slug for p in QUICK]
NEED_A_MODEL = {"huggingface"}
"""Built-ins that are tried with each kind of saved model instead."""

# Fixture, class, every property it fails: the one named in the table of defects comes first.
DEFECTS = [
    ("first_record_only", "FirstRecordOnly", {"batch-neighbours", "batch-size", "padding"}),
    ("mean_over_padding", "MeanOverPadding", {"padding", "batch-size"}),
    ("no_attention_mask", "NoAttentionMask", {"padding", "batch-size"}),
    ("absolute_index", "AbsoluteIndex", {"padding", "batch-size"}),
    ("nothing_truncated", "NothingTruncated", {"maximum-length"}),
    ("undefined_name", "UndefinedName", {"undefined-names", "loads"}),
    ("device_index", "DeviceIndex", {"device", "loads"}),
]


def spec(name: str, class_name: str) -> str:
    return f"{FAULTY / name}.py:{class_name}"


def failed(results: Iterable[PropertyResult]) -> set[str]:
    results = list(results)
    assert [r.property for r in results] == SLUGS
    return {r.property for r in results if r.outcome is Outcome.FAILS}


def tried_here(module: str, model: str = "") -> dict[str, PropertyResult]:
    """Return the quick properties of this process: others hold that each check has its own."""
    (static_one,) = check(module, select=["undefined-names"])
    subject = Subject(module, model, "cpu")
    results_by_property = {static_one.property: static_one}
    for check_tried in QUICK:
        loads = results_by_property.get(LOADS)
        if (
            check_tried.check is None
            or check_tried.is_offline
            or (check_tried.needs_load and loads and loads.is_refused())
        ):
            continue
        results_by_property[check_tried.slug] = property_result(check_tried.slug, subject)
    return results_by_property


def failures(results: dict[str, PropertyResult]) -> set[str]:
    return {slug for slug, result in results.items() if result.outcome is Outcome.FAILS}


def test_the_sound_one_passes_everything():
    results = check(spec("sound", "Sound"))
    assert failed(results) == set()
    assert all(r.ran and r.sentence and r.example is None for r in results)


@pytest.mark.parametrize(("name", "class_name", "expected"), DEFECTS)
def test_a_published_fault_is_caught_by_its_property(name, class_name, expected):
    results = tried_here(spec(name, class_name))
    failure_list = failures(results)
    assert expected <= failure_list
    # An order or a neighbour can show the same leak; nothing unrelated may fail.
    related = {"order", "unknown-letters", "empty-and-short", "device"}
    assert failure_list - expected <= related
    for slug in expected - {"loads"}:
        assert results[slug].example


@pytest.fixture
def lacking(saved, tmp_path):
    """A BERT folder in which one kind of weight has another name."""
    for file in saved("bert").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    weights = load_file(tmp_path / "model.safetensors")
    own = {k.replace("attention.self.query", "attention.wqkv"): v for k, v in weights.items()}
    save_file(own, tmp_path / "model.safetensors", metadata={"format": "pt"})
    return str(tmp_path)


IN_PROCESS = {item.slug for item in QUICK if item.check is not None and not item.is_offline}
OF_MISSING_WEIGHTS = {"weights", "repeatable-loads"}
SOME = {"one-row-a-sequence", *OF_MISSING_WEIGHTS}


@pytest.mark.parametrize(
    "slugs",
    gated([SOME, IN_PROCESS], SOME),
    ids=len,
)
def test_missing_weights_are_caught_at_load_and_by_a_second_load(lacking, slugs):
    subject = Subject(spec("missing_weights", "MissingWeights"), lacking, "cpu")
    results = {slug: property_result(slug, subject) for slug in sorted(slugs)}
    refused = {slug for slug, result in results.items() if result.is_refused()}
    assert refused == OF_MISSING_WEIGHTS
    sentence = results["weights"].sentence
    assert "4 weights are missing from the file of BertModel" in sentence
    assert "4 weights are unused in the file of BertModel" in sentence


def test_missing_weights_are_caught_where_another_module_loads_them(lacking):
    result = property_result(
        "weights", Subject(spec("missing_by_helper", "MissingByHelper"), lacking, "cpu")
    )
    assert result.outcome is Outcome.FAILS
    assert "4 weights are missing from the file of BertModel" in result.sentence


@pytest.mark.parametrize(
    ("class_name", "outcome", "sentence"),
    [
        ("ByHand", Outcome.HOLDS, "Each weight has the numbers of a tensor of model.safetensors"),
        ("LayerLeftOut", Outcome.FAILS, "weights have other numbers than the tensors of model.saf"),
        ("Unseen", Outcome.NOT_VERIFIED, "cannot be verified: no torch module is visible"),
        ("NoFile", Outcome.NOT_VERIFIED, "and model.safetensors has no such numbers"),
        ("OtherShape", Outcome.FAILS, "6 weights are missing from the file of BertModel"),
    ],
)
def test_weights_are_said_to_be_from_the_file_only_where_that_is_seen(
    saved, class_name, outcome, sentence
):
    subject = Subject(spec("weights_by_hand", class_name), str(saved("bert")), "cpu")
    result = property_result("weights", subject)
    assert (result.outcome, sentence in result.sentence) == (outcome, True), result.sentence


def test_own_code_that_an_extractor_passes_by_is_found(saved, tmp_path):
    for file in saved("bert").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    values = json.loads((tmp_path / "config.json").read_text())
    values["auto_map"] = {"AutoModel": "own.OwnBert"}
    (tmp_path / "config.json").write_text(json.dumps(values))
    module = spec("missing_weights", "MissingWeights")
    result = property_result("own-code", Subject(module, str(tmp_path), "cpu"))
    assert result.outcome is Outcome.FAILS
    assert f"{tmp_path} has code of its own" in result.sentence
    result = property_result("own-code", Subject(module, str(saved("bert")), "cpu"))
    assert result.outcome is Outcome.HOLDS


def test_names_that_a_star_may_import_are_not_said_to_be_defined(tmp_path):
    file = tmp_path / "star.py"
    file.write_text("from numpy import *\nrows = zeroes(3)\n")
    (result,) = check(f"{file}:Star", select=["undefined-names"])
    assert (result.outcome, result.is_refused()) == (Outcome.NOT_VERIFIED, False)
    assert result.sentence.startswith("line 2: `zeroes` may be undefined, or defined from star")
    file.write_text("from numpy import *\nrows = zeros(3)\ndel lost\n")


def test_one_class_is_no_fault_of_an_extractor_and_the_probe_shows_it():
    module = spec("one_class", "OneClass")
    assert failures(tried_here(module)) == set()
    draw = np.random.default_rng(0)
    labels = np.arange(300) % 3 == 0
    letters = {True: "AACGT", False: "ACGTT"}
    sequences = ["".join(draw.choice(list(letters[y]), 50)) for y in labels]
    rows = load(module).extractor.extract_embeddings(sequences=sequences, batch_size=8)
    assert len(np.unique(rows, axis=0)) > 100
    probe = LogisticRegression(max_iter=1000).fit(rows, labels)
    assert set(probe.predict(rows)) == {False}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name == DEFAULT else pytest.mark.nightly)
        for name in sorted(set(BUILTINS) - NEED_A_MODEL)
    ],
)
def test_a_built_in_without_weights_passes_everything(name):
    assert failed(check(name)) == set()


@pytest.mark.nightly
def test_a_transformer_passes_everything(saved):
    """By day: a template (test_template.py), a folder of code (test_lookalikes.py), and other kinds
    in this process (test_conformance_scale.py)."""
    results = check("huggingface", str(saved("bert")), options={"batching": "file"})
    assert [(r.property, r.sentence) for r in results if r.outcome is not Outcome.HOLDS] == []


HOSTILE = """
import os, signal, socket, sys, time
import numpy as np
from .base import BaseEmbeddingExtractor
class Hostile(BaseEmbeddingExtractor):
    max_length = None
    def extract_embeddings(self, sequences, batch_size=1):
        {act}
        return np.array([[len(s), s.upper().count("A"), s.upper()[-1:] == "C",
            s.upper()[:1] == "C", s.upper()[:1] == "A", s.upper()[-1:] == "A"]
            for s in sequences], dtype=np.float64)
"""


@pytest.fixture
def hostile(tmp_path):
    def write(act):
        (tmp_path / "hostile.py").write_text(HOSTILE.format(act=act))
        return f"{tmp_path / 'hostile.py'}:Hostile"

    return write


@pytest.mark.parametrize(
    ("act", "slug", "sentence"),
    [
        ("if not sequences[0]: time.sleep(99)", "empty-and-short", "did not finish within 1 s"),
        (
            "if 'N' in sequences[0]: os.kill(os.getpid(), signal.SIGSEGV)",
            "unknown-letters",
            "SIGSEGV",
        ),
        pytest.param(
            "if 'N' in sequences[0]: os._exit(0)",
            "unknown-letters",
            "exit code 0",
            marks=pytest.mark.nightly,  # in the gate, the process ends by a signal
        ),
        ("if 'N' in sequences[0]: sys.exit('bye')", "unknown-letters", "SystemExit: bye"),
        (
            "try: socket.create_connection(('127.0.0.1', 9), 1)\n        except OSError: pass",
            "no-network",
            "the extractor tries the network",
        ),
        (
            "sequences = sequences[:1]",
            "one-row-a-sequence",
            "expected a numpy array or torch tensor of shape (2, d)",
        ),
        (
            "return [[1.0] for s in sequences]",
            "loads",
            "the extractor returned list for 1 sequences",
        ),
    ],
)
def test_whatever_happens_the_check_goes_on(hostile, act, slug, sentence):
    seconds = 1 if "sleep" in act else 3
    results = {r.property: r for r in check(hostile(act), seconds=seconds)}
    assert results[slug].is_refused()
    assert sentence in results[slug].sentence
    assert results["undefined-names"].outcome is Outcome.HOLDS
    if slug != "loads":
        assert results["no-network"].ran


def test_without_ruff_the_static_check_has_not_run(monkeypatch):
    monkeypatch.setattr(static_check, "find_ruff", lambda: None)
    (result,) = check("kmer", select=["undefined-names"])
    assert result.outcome is Outcome.NOT_VERIFIED
    assert not result.ran
    assert result.is_refused()
    assert "pip install ruff" in result.sentence


def run(*words: str) -> Result:
    return CliRunner().invoke(extractors, words)


def test_the_command_prints_a_table_and_says_how_many_failed():
    done = run("check", spec("nothing_truncated", "NothingTruncated"), "--select", "maximum-length")
    assert done.exit_code == 11
    assert "FAIL" in done.output
    assert "all 1 properties do not hold" in " ".join(done.output.split())


def test_what_is_not_verified_is_no_failure_and_never_shown_as_ok():
    words = ("check", "kmer", "--select", "layer-and-pooling", "--select", "finite")
    done = run(*words)
    assert done.exit_code == 0
    shown = {line.split("  ")[0] for line in done.output.splitlines() if "layer-and" in line}
    assert shown == {"not verified"}
    assert "1 of 2 properties hold; 1 not verified" in done.output
    document = json.loads(run(*words, "--format", "json").output)
    assert document["counts"] == {"holds": 1, "fails": 0, "not verified": 1}
    assert [result["outcome"] for result in document["results"]] == ["holds", "not verified"]


def test_the_command_prints_json():
    done = run("check", "kmer", "--format", "json", "--select", "finite", "--option", "k=2")
    assert done.exit_code == 0
    assert json.loads(done.output) == {
        "version": 2,
        "extractor": "kmer",
        "counts": {"holds": 1, "fails": 0, "not verified": 0},
        "results": [
            {
                "property": "finite",
                "outcome": "holds",
                "ran": True,
                "sentence": "All numbers are finite, and 9 sequences have 9 different embeddings.",
                "example": None,
                "measured": None,
                "tolerance": None,
            }
        ],
    }


@pytest.mark.parametrize(
    "words",
    [
        ("check", "nothing"),
        ("check", "kmer", "--select", "luck"),
        ("check", "kmer", "--option", "k"),
    ],
)
def test_wrong_usage_is_exit_code_two(words):
    assert run(*words).exit_code == 2


def test_the_command_lists_what_it_knows():
    done = run("list")
    assert done.exit_code == 0
    assert all(p.slug in done.output for p in PROPERTIES)
    assert all(name in done.output for name in BUILTINS)


SIGNATURE = "def extract_embeddings(self, sequences, batch_size=1):"
# A class body: what is said of it, and the signature to write.
OTHER_SIGNATURES = {
    "no batch size": (
        "def extract_embeddings(self, seqs): ...",
        (
            "line 4: extract_embeddings(self, seqs) cannot be called as "
            "extract_embeddings(sequences, batch_size=...): got an unexpected keyword argument"
        ),
        SIGNATURE,
    ),
    "an argument more": (
        "def extract_embeddings(self, sequences: list, tokenizer, batch_size=1): ...",
        (
            "extract_embeddings(self, sequences, tokenizer, batch_size=1) cannot be called as "
            "extract_embeddings(sequences, batch_size=...): missing a required argument: 'tok"
        ),
        SIGNATURE,
    ),
    "no self": (
        "def extract_embeddings(batch_size=1): ...",
        "multiple values for argument",
        SIGNATURE,
    ),
    "another name": (
        "def embed(self, sequences, batch_size=1): ...",
        "Own defines embed, but no extract_embeddings",
        SIGNATURE,
    ),
    "another constructor": (
        "def __init__(self, path): ...\n    def extract_embeddings(self, *a, **k): ...",
        "__init__(self, path) cannot be called as __init__(name_model=..., device=...): missing",
        'def __init__(self, name_model, device="cpu"):',
    ),
}


def own_class(folder: Path, body: str) -> str:
    file = folder / "own.py"
    head = "from .base import BaseEmbeddingExtractor\n\nclass Own(BaseEmbeddingExtractor):\n"
    file.write_text(f"{head}    {body}\n", encoding="utf-8")
    return f"{file}:Own"


@pytest.mark.parametrize("name", OTHER_SIGNATURES)
def test_another_signature_is_named_with_the_right_one(name, tmp_path):
    body, words, expected = OTHER_SIGNATURES[name]
    subject = Subject(own_class(tmp_path, body), "", "cpu")
    results = [property_result(slug, subject) for slug in (LOADS, "device", "finite")]
    assert {result.outcome for result in results} == {Outcome.FAILS}
    assert len({result.sentence for result in results}) == 1
    assert words in results[0].sentence
    assert results[0].sentence.endswith(f"; write {expected}")


def test_another_signature_is_one_failure_of_the_table(tmp_path, monkeypatch):
    """It was two of 23 in 80 lines."""
    monkeypatch.setenv("COLUMNS", "80")
    module = own_class(tmp_path, OTHER_SIGNATURES["no batch size"][0])
    result = CliRunner().invoke(extractors, ["check", module])
    assert result.exit_code == 11
    lines = result.output.splitlines()
    assert len(lines) <= 25
    assert [line.split()[:2] for line in lines if line.startswith(("FAIL", "not run"))] == [
        ["FAIL", "loads"],
        ["not", "run"],
    ]
    assert "device and 22 more" in result.output
    assert "; 1 does not hold; 23 could" in result.output


@pytest.mark.parametrize(
    "body",
    [
        "def extract_embeddings(self, dna, *, batch_size): ...",
        "def extract_embeddings(self, *values, **options): ...",
        "@staticmethod\n    def extract_embeddings(sequences, batch_size=1): ...",
        "extract_embeddings = print",
    ],
)
def test_whatever_can_be_called_so_is_built(body, tmp_path):
    assert load(own_class(tmp_path, body)).class_name == "Own"
