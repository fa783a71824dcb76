"""Properties of an extractor that a run sees for itself: verified, not verified, contradicted.

Those of the loaded extractor cost a few short sequences; the others follow from its tasks.
"""

from collections.abc import Mapping

from .conformance.child import attempt
from .conformance.result import TOLERANCES, Outcome
from .conformance.subject import Subject
from .formats.measured import SENTENCE_MAX, RunProperty
from .formats.run_record import TaskRecord
from .formats.text import plural
from .loading import LoadedExtractor

EXTRACTOR_PROPERTIES = ("layer-and-pooling", "computed-dtype", "strands")
CONTRADICTED = "contradicted"
LETTERS_READ, NO_DRIFT = "letters-read", "no-drift"
DRIFT_MAX = TOLERANCES["bfloat16"]
"""Of embeddings in different batches, in the coarsest type: a state that grows moves them more."""
_OUTCOMES = {
    Outcome.HOLDS: "verified",
    Outcome.NOT_VERIFIED: "not verified",
    Outcome.FAILS: CONTRADICTED,
}


def properties_of(extractor: LoadedExtractor, device: str) -> dict[str, RunProperty]:
    """Return the properties that short sequences show of an extractor with a module of torch."""
    subject = Subject(spec=extractor.path, name_model="", device=device)
    subject.__dict__["loaded"] = extractor  # what the cached property would load again
    results = (attempt(slug, subject) for slug in EXTRACTOR_PROPERTIES)
    return {
        result.property: _property(_OUTCOMES[result.outcome], result.sentence) for result in results
    }


def properties_of_tasks(tasks: Mapping[str, TaskRecord]) -> dict[str, RunProperty]:
    """Return the properties that the tasks of a run show: letters read, and no drift."""
    measured = {name: task.measured for name, task in tasks.items() if task.measured is not None}
    if not measured:
        return {}
    letters = {name: facts.letters for name, facts in measured.items()}
    unseen = [name for name, facts in letters.items() if facts is None]
    unread = [
        name for name, facts in letters.items() if facts is not None and facts.read < facts.given
    ]
    drifts = {name: facts.drift for name, facts in measured.items()}
    moved = [name for name, facts in drifts.items() if facts and facts.difference > DRIFT_MAX]
    again = [name for name, facts in drifts.items() if facts is None]
    of = plural(len(tasks), "task")
    return {
        LETTERS_READ: _judged(
            unread,
            unseen,
            f"Every letter of {of} that was looked at is read.",
            "letters of {} are not read, or in no token that the model knows",
        ),
        NO_DRIFT: _judged(
            moved,
            again,
            f"Sequences of {of} have the same embedding before and after all others.",
            "the first sequences of {} have other embeddings after all others of the task",
        ),
    }


def _judged(wrong: list[str], unseen: list[str], holds: str, broken: str) -> RunProperty:
    if wrong:
        return _property(CONTRADICTED, broken.format(", ".join(sorted(wrong))))
    if unseen:
        return _property("not verified", f"Not measured on {', '.join(sorted(unseen))}.")
    return _property("verified", holds)


def _property(outcome: str, sentence: str) -> RunProperty:
    values = {"outcome": outcome, "sentence": sentence[:SENTENCE_MAX]}
    return RunProperty.model_validate(values)
