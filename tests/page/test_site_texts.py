"""Texts of contributors and of the registry stay text on the pages that stand alone."""

import dataclasses
import json
import re
import xml.etree.ElementTree as ET

import pytest

from geneb_ci.board.columns import Row
from geneb_ci.board.marks import Defect, Marks
from geneb_ci.board.site.inputs import Site
from geneb_ci.board.site.render import site_files
from geneb_ci.models.entry import (
    Code,
    ModelEntry,
    Paper,
    PublishedRun,
    Sources,
    WeightsSource,
)
from geneb_ci.models.tasks import TaskNote, TaskNotes
from reference_harness.formats.submission import Meta, SubmissionV10
from tests.board.board import entry
from tests.page.boards import EVENT
from tests.page.site import json_ld, public_site, small_site, tags_of
from tests.page.test_hostile_names import MARKUP
from tests.small import BENCHMARK, small

LINK = re.compile(r"https://|#|(\.\./)*[a-z0-9-]+[/.]")


def hostile(text: str) -> Row:
    """Return a row whose every text is hostile; its id is one that the checks let through."""
    document = small("m1", BENCHMARK)
    texts = ("display", "url", "training_data", "submitted_by")
    meta = Meta.model_construct(**document["meta"] | dict.fromkeys(texts, text))
    return entry(
        SubmissionV10.model_validate(document).model_copy(update={"meta": meta}), registry={}
    )


def files_with(text: str) -> dict[str, bytes]:
    """Return the files of a site of one row and one event whose every text is this one."""
    event = EVENT | {"model": "m1", "who": text, "why": text}
    return site_files(small_site([hostile(text)], events=(event,)))


@pytest.fixture(scope="module")
def usual() -> dict[str, bytes]:
    return files_with("calm")


@pytest.mark.parametrize("text", MARKUP, ids=ascii)
def test_hostile_texts_stay_text(text, usual):
    files = files_with(text)
    assert files.keys() == usual.keys()
    for name, content in files.items():
        made, plain = content.decode(), usual[name].decode()
        if name.endswith(".html"):
            # The same elements with the same names of attributes, whatever the text is.
            shape = [(tag, sorted(attrs)) for tag, attrs in tags_of(made).found]
            assert shape == [(tag, sorted(attrs)) for tag, attrs in tags_of(plain).found], name
            assert not [a for a in tags_of(made).values("a", "href") if a.startswith("javascript")]
            json.loads(json_ld(made))
        elif name.endswith((".svg", ".xml")):
            assert len(list(ET.fromstring(content).iter())) == len(  # noqa: S314 (our own)
                list(ET.fromstring(usual[name]).iter())  # noqa: S314
            )


def registered(text: str) -> tuple[ModelEntry, TaskNote, Defect]:
    """Return an entry of the registry, a note of a task and a defect whose every text is one."""
    known = public_site().model_entry("space")
    assert known is not None
    assert known.run is not None
    words = ("architecture", "tokenization", "pretraining", "licence", "name")
    entry_ = known.model_copy(
        update=dict.fromkeys(words, text)
        | {
            "papers": [Paper.model_construct(title=text, address=text)],
            "code": Code.model_construct(repository=text, commit=None),
            "sources": Sources.model_construct(facts=text, weights=text, loading=[text]),
            "published": PublishedRun.model_construct(
                hidden_layer=text, pooling=text, max_length=None
            ),
            "weights": WeightsSource.model_construct(
                kind="url", location=text, revision=None, host=None, files={}
            ),
            "run": known.run.model_copy(
                update={"missing": text, "exercised": text, "options": {"a": text}}
            ),
        }
    )
    note = TaskNote.model_construct(match="*", asks=text, species=text, length=text, paper="p")
    defect = Defect.model_construct(
        id="d", models=["m1"], what=text, found_by=text, explained="docs/reader/defects.md#d"
    )
    return entry_, note, defect


def registered_files(text: str) -> dict[str, bytes]:
    """Return the files of a site of one row whose texts in the registry are all this one."""
    # These files are UTF-8, which has no halves of surrogate pairs.
    known, note, defect = registered(text.encode("utf-8", "replace").decode())
    papers = {"p": Paper.model_construct(title=text, address=text)}
    notes = TaskNotes.model_construct(schema_version="1.0", tasks=[note], papers=papers)
    marks = Marks((("implausible-cell", 1),), (defect,))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Site, "model_entry", lambda *_: known)
        patch.setattr("geneb_ci.board.site.inputs.task_notes", lambda _: notes)
        return site_files(small_site([dataclasses.replace(hostile(text), marks=marks)]))


@pytest.fixture(scope="module")
def usual_registry() -> dict[str, bytes]:
    return registered_files("calm")


@pytest.mark.parametrize("text", MARKUP, ids=ascii)
def test_hostile_texts_of_registry_tasks_and_defects_stay_text(text, usual_registry):
    for name, content in registered_files(text).items():
        if not name.endswith(".html"):
            continue
        tags = tags_of(content.decode())
        shape = [(tag, sorted(attrs)) for tag, attrs in tags.found]
        assert shape == [(t, sorted(a)) for t, a in tags_of(usual_registry[name].decode()).found], (
            name
        )
        assert not [a for a in tags.values("a", "href") if not LINK.match(a)], name
