"""Typed models and published schemas say the same of any document, both ways."""

import copy
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from geneb_ci.check.registry import RULES
from geneb_ci.check.runner import Checker
from geneb_ci.submission.structure import check_structure
from geneb_ci.submission.tokens import UNUSABLE
from tests.conftest import document_v11
from tests.each import each
from tests.examples import examples
from tests.hostile import corpus
from tests.paths import ROOT, SUBMISSIONS
from tests.submission.schema_engine import check_by_schema

SCHEMAS = {
    version: json.loads((ROOT / f"schemas/submission-{version}.schema.json").read_bytes())
    for version in ("1.0", "1.1")
}


def trimmed(document: dict[str, Any]) -> dict[str, Any]:
    """Keep two tasks a regime: the engines know no names, and hypothesis stays quick."""
    for table in ("results", "evidence"):
        for regime in document.get(table, {}):
            document[table][regime] = dict(list(document[table][regime].items())[:2])
    return document


SMALL = {
    "1.0": trimmed(json.loads((SUBMISSIONS / "space.json").read_bytes())),
    "1.1": trimmed(document_v11()),
    "1.1 by entry": trimmed(json.loads((SUBMISSIONS / "space.json").read_bytes()))
    | {
        "schema_version": "1.1",
        "registry_entry": {
            "sha256": "0" * 64,
            "submission_sha256": "1" * 64,
            "extractor": "builtin:huggingface",
            "options": {"pooling": "mean"},
            "dtype": "float32",
            "dim": 3072,
            "environment": "2" * 64,
            "weights": {
                "kind": "zenodo", "location": "7995778", "revision": None,
                "files": {"model.bin": "3" * 64},
            },
            "published": {"pooling": "mean", "hidden_layer": "last", "max_length": 512},
        },
    },
}  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """List the path of every member of a document."""
    paths = [path] if path else []
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, inner in items:
        paths.extend(places(inner, (*path, key)))
    return paths


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**15), 10**15),
    st.floats(-2, 2, allow_nan=False),
    st.sampled_from(
        [1.0, 3.0, 1e9, "a" * 5000, "a\n", "1.0", "2026-11-20T08:30:00Z", "none", "right", 10**15]
    ),
    st.text(max_size=5),
    st.text("0123456789abcdefg", min_size=39, max_size=65),
    st.lists(st.floats(0, 1), max_size=3),
    st.dictionaries(st.sampled_from(["MCC", "Acc", "F1", "x"]), st.floats(-1, 2), max_size=3),
    st.just(UNUSABLE),
)


ADDED = ("x", "mcc", "$schema", "run", "gaps", "canonical", "registry_entry")


@st.composite
def mutated(draw: st.DrawFn) -> Any:
    """Return a sound document with up to four members replaced, removed or added."""
    document = copy.deepcopy(SMALL[draw(st.sampled_from(sorted(SMALL)))])
    for _ in range(draw(st.integers(0, 4))):
        paths = places(document)
        if not paths:
            break
        *parents, last = draw(st.sampled_from(paths))
        holder: Any = document
        for part in parents:
            holder = holder[part]
        action = draw(st.sampled_from(["replace", "remove", "add"]))
        if action == "remove":
            del holder[last]
        elif action == "replace" or isinstance(holder, list):
            holder[last] = draw(VALUES)
        else:
            holder[draw(st.sampled_from(ADDED))] = draw(VALUES)
    return document


def fault_rows(result: Any) -> set[tuple[Any, ...]]:
    return {(fault.rule, fault.path, fault.found, fault.expected) for fault in result[1]}


@settings(max_examples=examples(300), suppress_health_check=[HealthCheck.too_slow])
@given(document=mutated())
def test_models_and_schemas_find_the_same_faults(document):
    by_models, by_schema = check_structure(document), check_by_schema(document)
    assert fault_rows(by_models) == fault_rows(by_schema)
    assert by_models[0] == by_schema[0]


def test_evidence_that_an_upgraded_row_may_not_have():
    document = SMALL["1.1"] | {"registry_entry": None}
    by_models, by_schema = check_structure(document), check_by_schema(document)
    assert fault_rows(by_models) == fault_rows(by_schema)
    assert ("unknown-field", ("evidence",)) in {fault[:2] for fault in fault_rows(by_models)}


@pytest.mark.parametrize("value", [0, 0.0, -1, False, "x", None, 7])
def test_a_number_that_may_be_null(value):
    document = copy.deepcopy(SMALL["1.1"])
    document["run"]["embedding"]["max_length"] = value
    by_models, by_schema = check_structure(document), check_by_schema(document)
    assert fault_rows(by_models) == fault_rows(by_schema)
    assert bool(fault_rows(by_models)) == (value not in (None, 7))


@pytest.mark.parametrize("value", [None, [], "x", 1, True, UNUSABLE, {}])
def test_other_documents_too(value):
    assert fault_rows(check_structure(value)) == fault_rows(check_by_schema(value))


@pytest.mark.parametrize("version", SCHEMAS)
def test_the_published_schema_is_one(version):
    Draft202012Validator.check_schema(SCHEMAS[version])


@each("path", sorted(SUBMISSIONS.glob("*.json")), ids=lambda path: path.stem)
def test_the_published_schema_accepts_every_public_submission(path):
    assert (
        list(Draft202012Validator(SCHEMAS["1.0"]).iter_errors(json.loads(path.read_bytes()))) == []
    )


def test_the_published_schema_accepts_format_1_1_and_a_reader_of_1_0_finds_all_it_knows():
    document = document_v11()
    assert list(Draft202012Validator(SCHEMAS["1.1"]).iter_errors(document)) == []
    as_read_by_1_0 = {key: document[key] for key in SMALL["1.0"]} | {"schema_version": "1.0"}
    assert list(Draft202012Validator(SCHEMAS["1.0"]).iter_errors(as_read_by_1_0)) == []


@pytest.mark.parametrize("version", SCHEMAS)
def test_the_published_schema_knows_the_names_of_regimes_and_tasks(version):
    document: Any = copy.deepcopy(SMALL[version]) if version == "1.0" else document_v11()
    document["results"]["full"]["no_such_task"] = {"MCC": 0, "Acc": 0, "F1": 0}
    document["results"]["2shot"] = {}
    messages = {
        error.message for error in Draft202012Validator(SCHEMAS[version]).iter_errors(document)
    }
    assert "Additional properties are not allowed ('no_such_task' was unexpected)" in messages
    assert "Additional properties are not allowed ('2shot' was unexpected)" in messages


@pytest.fixture(scope="module")
def hostile_folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("hostile")
    corpus.write(root)
    return root


@each("name", sorted(corpus.REJECT))
def test_both_engines_give_the_same_findings_on_the_hostile_corpus(hostile_folder, name):
    path = hostile_folder / "lf" / name
    first, second = Checker(RULES).check(path), Checker(RULES, check_by_schema).check(path)
    assert first.findings == second.findings
