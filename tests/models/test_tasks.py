"""What the policy says of the tasks."""

import re
import tomllib
from collections import Counter

import pytest

from geneb_ci.common.benchmark import shipped_benchmark
from geneb_ci.common.config import Layout, LayoutKind, find_layout
from geneb_ci.common.errors import BadConfiguration
from geneb_ci.models.tasks import TaskNote, TaskNotes, task_notes
from tests.paths import ROOT

HEAD = 'schema_version = "1.0"\n'


def layout(tmp_path, text: str) -> Layout:
    (tmp_path / "tasks.toml").write_text(text, "utf-8")
    return Layout(LayoutKind.GENEB_CI, tmp_path, policy=tmp_path)


def test_every_task_of_the_benchmark_is_described():
    notes = task_notes(find_layout(ROOT))
    notes_by_task = {task: notes.of(task) for task in shipped_benchmark().task_ids}
    assert [task for task, note in notes_by_task.items() if note is None or not note.asks] == []
    assert [task for task, note in notes_by_task.items() if note and "{" in note.asks] == []
    mini = shipped_benchmark("benchmark-mini.json").task_ids
    used = {note.match for note in notes_by_task.values() if note}
    used |= {note.match for task in mini if (note := notes.of(task))}
    assert {note.match for note in notes.tasks} == used


def test_a_visitor_finds_the_tasks_of_his_species():
    tasks = shipped_benchmark().tasks
    facts = task_notes(find_layout(ROOT)).facts(tasks)
    assert {task for task, known in facts.items() if not known.get("source")} == set()
    kingdoms = Counter(known.get("kingdom") for known in facts.values())
    assert kingdoms == {"animals": 56, "fungi": 21, "plants": 10, "bacteria": 5} | {
        "viruses": 3,
        None: 5,
    }
    plants = {known["species"] for known in facts.values() if known.get("kingdom") == "plants"}
    assert plants == {"Arabidopsis", "cassava", "maize", "sorghum", "soybean", "tomato", "wheat"}
    # A species belongs to one kingdom, and no name is of both.
    of = {known["species"]: known["kingdom"] for known in facts.values() if "species" in known}
    assert {(k["species"], k["kingdom"]) for k in facts.values() if "species" in k} == set(
        of.items()
    )
    assert not set(of) & set(kingdoms)
    # The same histone marks of yeast are in two suites.
    twins = {
        t: known["near_duplicates"] for t, known in facts.items() if "near_duplicates" in known
    }
    assert len(twins) == 20
    assert {task: twins[other] for task, [other] in twins.items()} == {t: [t] for t in twins}


@pytest.mark.parametrize(
    ("match", "task", "rest"),
    [
        ("a", "a", ""),
        ("a", "ab", None),
        ("a.b", "axb", None),
        ("a_*_z", "a_b_c_z", "b_c"),
        ("*", "x", "x"),
        ("a*", "ba", None),
    ],
)
def test_a_note_is_about_the_tasks_that_fit(match, task, rest):
    question = TaskNote(match=match, asks="whether {}", species="{}").of(task)
    if rest is None:
        assert question is None
    else:
        assert question is not None
        assert (question.asks, question.species) == (f"whether {rest}", rest)


def test_without_a_file_nothing_is_known(tmp_path):
    assert task_notes(Layout(LayoutKind.GENEB_CI, tmp_path, policy=tmp_path)) == TaskNotes(
        schema_version="1.0"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x =", "the file is not valid TOML: "),
        ("", "schema_version: Field required"),
        (HEAD + '[[tasks]]\nmatch = "a"\n', "tasks/0/asks: Field required"),
        (
            HEAD + '[[tasks]]\nmatch = "a"\nasks = "b"\npaper = "c"\n',
            "a: the table papers has no 'c'",
        ),
        (HEAD + '[[tasks]]\nmatch = "*a*"\nasks = "b"\n', "*a*: expected at most one *"),
        (HEAD + '[papers.a]\ntitle = "t"\naddress = "http://a"\n', "papers/a/address: "),
    ],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path, text, message):
    with pytest.raises(BadConfiguration) as caught:
        task_notes(layout(tmp_path, text))
    assert message in caught.value.message
    assert str(tmp_path / "tasks.toml") in caught.value.message
    assert caught.value.fix == "correct the file; docs/maintainer/models.md explains each key"


def test_every_error_of_the_file_is_named_at_once(tmp_path):
    entries = "".join(f'[[tasks]]\nmatch = "{number}"\n' for number in range(12))
    with pytest.raises(BadConfiguration) as caught:
        task_notes(layout(tmp_path, entries))
    errors = ["schema_version: Field required"]
    errors += [f"tasks/{number}/asks: Field required" for number in range(9)]
    assert caught.value.message.endswith(": " + "; ".join([*errors, "and 3 more"]))


def test_every_task_that_cannot_be_read_is_named_at_once(tmp_path):
    entries = '[[tasks]]\nmatch = "a"\nasks = "b"\npaper = "c"\n' * 2
    entries += '[[tasks]]\nmatch = "*a*"\nasks = "b"\n'
    with pytest.raises(BadConfiguration) as caught:
        task_notes(layout(tmp_path, HEAD + entries))
    unknown_paper = "a: the table papers has no 'c'"
    assert f"{unknown_paper}; {unknown_paper}; *a*: expected" in caught.value.message


def test_the_example_of_the_documentation_is_complete():
    text = (ROOT / "docs/maintainer/models.md").read_text(encoding="utf-8")
    [example] = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    notes = TaskNotes.model_validate(tomllib.loads(example))
    assert notes.benchmark is not None
    unused = {*type(notes.benchmark).model_fields} - notes.benchmark.model_fields_set
    assert unused | {*TaskNote.model_fields} - notes.tasks[0].model_fields_set == set()
