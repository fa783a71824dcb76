"""Properties of an extractor that a run checks: verified, not verified or contradicted.

Those of `EXTRACTOR_PROPERTIES` are checked with a few short sequences; the other two,
`letters-read` and `no-drift`, follow from what was measured on the tasks.
"""

from collections.abc import Mapping

from reference_harness.conformance.child_process import property_result
from reference_harness.conformance.result import TOLERANCES, Outcome
from reference_harness.conformance.subject import Subject
from reference_harness.formats.measurements import SENTENCE_MAX, RunProperty
from reference_harness.formats.run_record import TaskRecord
from reference_harness.formats.text import plural

from .loader import LoadedExtractor

EXTRACTOR_PROPERTIES = ("layer-and-pooling", "computed-dtype", "strands")
"""Properties that a run checks with short sequences when it begins."""
CONTRADICTED = "contradicted"
"""Outcome of a property that a measurement contradicts."""
LETTERS_READ, NO_DRIFT = "letters-read", "no-drift"
DRIFT_MAX = TOLERANCES["bfloat16"]
"""Largest drift by rounding, in the type of lowest precision; a growing state causes more."""
_OUTCOMES = {
    Outcome.HOLDS: "verified",
    Outcome.NOT_VERIFIED: "not verified",
    Outcome.FAILS: CONTRADICTED,
}
"""Outcome in a run record, by outcome of a check."""


def properties_of(extractor: LoadedExtractor, device: str) -> dict[str, RunProperty]:
    """Return the properties of an extractor with a torch module, checked with short sequences."""
    subject = Subject(spec=extractor.path, name_model="", device=device)
    subject.__dict__["loaded"] = extractor  # otherwise the cached property would load it again
    results = (property_result(slug, subject) for slug in EXTRACTOR_PROPERTIES)
    return {
        result.property: _run_property(_OUTCOMES[result.outcome], result.sentence)
        for result in results
    }


def properties_of_tasks(tasks: Mapping[str, TaskRecord]) -> dict[str, RunProperty]:
    """Return the properties that follow from the tasks of a run: letters read, and no drift."""
    measured = {name: task.measured for name, task in tasks.items() if task.measured is not None}
    if not measured:
        return {}
    letters = {name: facts.letters for name, facts in measured.items()}
    tasks_without_letters = [name for name, facts in letters.items() if facts is None]
    tasks_with_unread_letters = [
        name for name, facts in letters.items() if facts is not None and facts.read < facts.given
    ]
    drifts = {name: facts.drift for name, facts in measured.items()}
    tasks_with_drift = [
        name for name, facts in drifts.items() if facts and facts.difference > DRIFT_MAX
    ]
    tasks_without_drift = [name for name, facts in drifts.items() if facts is None]
    task_count = plural(len(tasks), "task")
    return {
        LETTERS_READ: _property_by_tasks(
            tasks_with_unread_letters,
            tasks_without_letters,
            f"Every examined letter of {task_count} is read.",
            "letters of {} are not read, or in no token of the vocabulary",
        ),
        NO_DRIFT: _property_by_tasks(
            tasks_with_drift,
            tasks_without_drift,
            f"Sequences of {task_count} have the same embedding before and after all others.",
            "the first sequences of {} have other embeddings after all others of the task",
        ),
    }


def _property_by_tasks(
    contradicting_tasks: list[str],
    unmeasured_tasks: list[str],
    verified_sentence: str,
    contradicted_sentence: str,
) -> RunProperty:
    """Return the outcome of a property by the tasks that contradict it or were not measured."""
    if contradicting_tasks:
        return _run_property(
            CONTRADICTED, contradicted_sentence.format(", ".join(sorted(contradicting_tasks)))
        )
    if unmeasured_tasks:
        return _run_property(
            "not verified", f"Not measured on {', '.join(sorted(unmeasured_tasks))}."
        )
    return _run_property("verified", verified_sentence)


def _run_property(outcome: str, sentence: str) -> RunProperty:
    """Return a property with its outcome, and its sentence cut to the maximum length."""
    members = {"outcome": outcome, "sentence": sentence[:SENTENCE_MAX]}
    return RunProperty.model_validate(members)
