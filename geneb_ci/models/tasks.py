"""Facts about the tasks from the policy: the question, the species, the assay."""

import re
import tomllib
from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from geneb_ci.common.config import Layout, policy_bytes, setting_in_errors
from geneb_ci.common.errors import BadConfiguration
from geneb_ci.common.shipped import shipped
from geneb_ci.models.entry import Paper, Text
from reference_harness.formats.base import StrictModel, all_errors
from reference_harness.formats.benchmark import Task
from reference_harness.formats.files import path_exists

NOTES_FILE = "tasks.toml"
"""File of the policy with facts about the tasks."""
NOTES_BYTES_MAX = 200_000
"""Maximum size of tasks.toml: it has 14 kB; an entry for each of a thousand tasks needs 200 kB."""
PUBLISHED_FACTS = ("kingdom", "species", "assay", "length", "source")
"""Facts about a task that are published unchanged."""


class TaskNote(StrictModel):
    """Facts about the tasks whose ids match a pattern; unknown facts are left out."""

    match: Annotated[str, Field(min_length=1, max_length=200)]
    """Id of a task; a `*` in it stands for any text."""
    asks: Text
    """The question about a sequence, after "whether" or "which"; `{}` is the text of the `*`."""
    kingdom: Text | None = None
    """A group of species, such as plants."""
    species: Text | None = None
    """The species; left out if there are several."""
    assay: Text | None = None
    """The method by which the labels were measured."""
    length: Text | None = None
    """Length of the sequences."""
    classes: Annotated[int, Field(ge=2)] | None = None
    """Number of classes, if the benchmark lacks the sizes of classes."""
    measures: Text | None = None
    """The experiments that the labels are from; tasks with the same text are near-duplicates."""
    source: Text | None = None
    """The suite that published the task."""
    paper: str | None = None
    """Key of a paper in the table `papers`."""

    def of(self, task: str) -> Self | None:
        """Return this note with its `{}` filled in for a task; None if it is about other tasks."""
        beginning, star, ending = self.match.partition("*")
        pattern = f"{re.escape(beginning)}({'.*' if star else ''}){re.escape(ending)}"
        match = re.fullmatch(pattern, task)
        if match is None:
            return None
        facts = {"asks": self.asks, "species": self.species, "measures": self.measures}
        filled_texts = {key: text and text.replace("{}", match[1]) for key, text in facts.items()}
        return self.model_copy(update=filled_texts)


class BenchmarkPublication(StrictModel):
    """The publication of a benchmark, which a board cites and links to."""

    name: Text
    """Name of the benchmark; the board of another benchmark ignores these facts."""
    models: Text = "models"
    """Word for the models of the board, in the plural, such as "DNA foundation models"."""
    authors: Text | None = None
    year: Annotated[int, Field(ge=1900, le=9999)] | None = None
    paper: Paper | None = None
    code: Annotated[str, Field(pattern=r"^https://[A-Za-z0-9./_-]+$", max_length=300)] | None = None
    """Address of the benchmark's own repository."""
    image: Annotated[str, Field(pattern=r"^[a-z0-9-]+\.png$")] | None = None
    """File name of the preview picture of links to the page, 1200 x 630 pixels."""


class TaskNotes(StrictModel):
    """The file leaderboard/policy/tasks.toml."""

    schema_version: Literal["1.0"]
    benchmark: BenchmarkPublication | None = None
    tasks: list[TaskNote] = []  # noqa: RUF012 (pydantic copies it)
    papers: dict[str, Paper] = {}  # noqa: RUF012 (pydantic copies it)

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        """Return these notes. Raises ValueError for a note with a wrong pattern or paper."""
        faults = [
            f"{note.match}: the table papers has no {note.paper!r}"
            for note in self.tasks
            if note.paper is not None and note.paper not in self.papers
        ]
        faults += [
            f"{note.match}: expected at most one *"
            for note in self.tasks
            if note.match.count("*") > 1
        ]
        if faults:
            raise ValueError("; ".join(faults))
        return self

    def publication(self, benchmark: str) -> BenchmarkPublication:
        """Return the publication of a benchmark; that of an unknown benchmark has only a name."""
        publication = self.benchmark
        return (
            publication
            if publication is not None and publication.name == benchmark
            else BenchmarkPublication(name=benchmark)
        )

    def of(self, task: str) -> TaskNote | None:
        """Return the first note about a task, with its `{}` filled in; None if there is none."""
        return next((matching for note in self.tasks if (matching := note.of(task))), None)

    def facts(self, tasks: Sequence[Task]) -> dict[str, dict[str, Any]]:
        """Return the published facts of each task by its id; unknown facts are left out."""
        notes = {task.id: self.of(task.id) for task in tasks}
        facts_by_task: dict[str, dict[str, Any]] = {}
        for task in tasks:
            note, counts = notes[task.id], task.test_class_counts
            facts = {key: getattr(note, key, None) for key in PUBLISHED_FACTS}
            facts["classes"] = len(counts) if counts else note and note.classes
            facts["near_duplicates"] = [
                noted_task
                for noted_task, task_facts in notes.items()
                if noted_task != task.id and note and note.measures and task_facts
                if task_facts.measures == note.measures
            ]
            facts_by_task[task.id] = {key: value for key, value in facts.items() if value}
        return facts_by_task


NO_NOTES = TaskNotes(schema_version="1.0")
"""The notes of a board without tasks.toml."""


def task_notes(layout: Layout) -> TaskNotes:
    """Return the policy's facts about the tasks; without the file, no facts.

    Raises BadConfiguration, which names the file and the key, if the file is invalid.
    """
    policy = layout.policy or shipped("policy", "official.json").parent
    path = policy / NOTES_FILE
    if not path_exists(path):
        return NO_NOTES
    try:
        with setting_in_errors(layout, "policy"):
            raw = policy_bytes(path, NOTES_BYTES_MAX)
        return TaskNotes.model_validate(tomllib.loads(raw.decode()))
    except ValidationError as error:
        raise BadConfiguration(f"{path}: {all_errors(error)}", _CORRECT_TASKS) from error
    except (ValueError, RecursionError) as error:
        raise BadConfiguration(
            f"{path}: the file is not valid TOML: {error}", _CORRECT_TASKS
        ) from error


_CORRECT_TASKS = "correct the file; docs/maintainer/models.md explains each key"
