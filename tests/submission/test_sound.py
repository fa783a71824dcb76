"""The quick look says yes only where the typed models do."""

import copy
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from geneb_ci.submission.structure import check_quickly, check_structure, fits_format_1_0
from reference_harness.formats.submission import MODELS
from reference_harness.formats.submission_terms import BY_ENTRY, VERSIONS
from tests.paths import SUBMISSIONS
from tests.small import small

PLACES = (
    ("schema_version",),
    ("model_id",),
    ("harness_version",),
    ("$schema",),
    ("other",),
    *(("meta", name) for name in small("x")["meta"]),
    ("meta", "other"),
    ("results",),
    ("results", "full"),
    ("results", "full", "mini_motif"),
    *(("results", "full", "mini_motif", name) for name in ("MCC", "Acc", "F1", "other")),
)
VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.floats()
    | st.sampled_from([10**14, 10**14 + 1, 1e6, 1.5, -0.0, "1.0", "1.1", "a", "a b", "", "a\n"])
    | st.sampled_from(["a" * 80, "a" * 81, "a" * 128, "a" * 129, "a" * 301, "a" * 4001, "\u00e9"])
    | st.sampled_from([{}, [], {"full": {}}, {"MCC": 0.5, "Acc": 0.5, "F1": 0.5}])
)
GONE = object()


def changed(changes: Any) -> Any:
    document = copy.deepcopy(small("model"))
    for path, value in changes:
        holder: Any = document
        for part in path[:-1]:
            holder = holder.get(part) if isinstance(holder, dict) else None
        if isinstance(holder, dict) and value is GONE:
            holder.pop(path[-1], None)
        elif isinstance(holder, dict):
            holder[path[-1]] = copy.deepcopy(value)  # a later change may be inside it
    return document


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(PLACES), VALUES | st.just(GONE)), max_size=3))
@example([])
@example([(("meta", "params"), 1e6)])
@example([(("model_id",), "a\n")])
def test_what_looks_sound_is_accepted_by_the_typed_models(changes):
    document = changed(changes)
    submission, faults = check_structure(document)
    assert check_quickly(document)[1] == faults
    if fits_format_1_0(document):
        assert submission is not None
        assert submission.schema_version == "1.0"


def test_public_rows_need_no_typed_models():
    from geneb_ci.submission.document import read_document

    files = [SUBMISSIONS / f"{name}.json" for name in ("space", "GROVER", "splicebert-1024nt")]
    assert all(fits_format_1_0(read_document(path).value) for path in files)


@pytest.mark.parametrize("value", [None, [], 1, "x", {}, {"schema_version": "1.1"}])
def test_anything_else_is_left_to_the_typed_models(value):
    assert not fits_format_1_0(value)


def test_the_versions_are_those_of_the_models():
    assert tuple(MODELS) == (*VERSIONS, BY_ENTRY)
