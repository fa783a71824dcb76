"""Rules on the measurements of a run: letters read, embeddings and their scale."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from geneb_ci.check.rule import Context, Rule
from geneb_ci.common.finding import Fault, Severity, percent
from reference_harness.formats.submission_terms import UNREAD_SHARE_MAX
from reference_harness.formats.text import plural, quoted

SCALE_EFFECT_MAX = 0.02
"""Maximum change of the mean score if all embeddings are brought to unit scale; two layers of one
model differ by 0.03 to 0.04."""
RELATIVE_SPREAD_MIN = 0.002
"""Minimum median distance of embeddings from their mean, relative to their length. The number
format in which they are scored, float16, has relative steps of 0.001."""
DISTINCT_SHARE_MIN = 0.9
"""Minimum share of distinct embeddings among those of distinct sequences."""
RELATIVE_DRIFT_MAX = 0.04
"""Maximum distance of two embeddings of one sequence, relative to their length; bfloat16 causes as
much."""


class _PartOfNumber(NamedTuple):
    """Keys of two numbers measured for a task, of which the first cannot exceed the second."""

    table: str
    """Key of the object that has both numbers: letters or embeddings."""
    part: str
    """Key of the smaller number, such as the letters that were read."""
    whole: str
    """Key of the larger number, such as the letters that were given."""


_PARTS_OF_NUMBERS = (
    _PartOfNumber("letters", "read", "given"),
    _PartOfNumber("letters", "cut", "sequences"),
    _PartOfNumber("letters", "unknown", "tokens"),
    _PartOfNumber("embeddings", "distinct", "count"),
    _PartOfNumber("embeddings", "most_repeated", "count"),
)
"""All measured numbers that are part of another."""


def _measured_tasks(context: Context) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each task with its measurements; nothing if the structure has errors."""
    if context.submission is not None:
        yield from context.table("measured").items()


def impossible_measurement(context: Context) -> Iterator[Fault]:
    """Report each number that exceeds the number it is part of, and tasks without scores."""
    scored = {cell.task for cell in context.cells}
    for task, measured in _measured_tasks(context):
        if task not in scored:
            message = f"{quoted(task)} has measurements, but no scores"
            yield Fault(
                IMPOSSIBLE_MEASUREMENT.id, ("measured", task), message, task, "a task with scores"
            )
        for table, part, whole in _PARTS_OF_NUMBERS:
            numbers = measured[table] or {}
            if numbers.get(part, 0) > numbers.get(whole, 0):
                yield Fault(
                    IMPOSSIBLE_MEASUREMENT.id,
                    ("measured", task, table, part),
                    f'"{part}" is {numbers[part]:,}, but "{whole}", which includes it, is only '
                    f"{numbers.get(whole, 0):,}",
                    f"{numbers[part]:,}",
                    f"at most {numbers.get(whole, 0):,}",
                )


IMPOSSIBLE_MEASUREMENT = Rule(
    id="impossible-measurement",
    severity=Severity.ERROR,
    what="A measured number is larger than the one it is part of, or its task has no scores.",
    why=(
        "The harness counts the letters, tokens and embeddings of each task that it scores, and a "
        "part never exceeds its whole. The harness did not write these numbers."
    ),
    fix="Write the submission again from the run record: `geneb-harness run --submission FILE`.",
    check=impossible_measurement,
)


def unread_letters(context: Context) -> Iterator[Fault]:
    """Report each task with more than a hundredth of its letters unread or tokens unknown."""
    for task, measured in _measured_tasks(context):
        letters = measured["letters"]
        if letters is None:
            continue
        read_share = letters["read"] / letters["given"]
        unknown_share = letters.get("unknown", 0) / (letters.get("tokens", 0) or 1)
        if read_share < 1 - UNREAD_SHARE_MAX or unknown_share > UNREAD_SHARE_MAX:
            sample = "" if letters["method"] == "tokens" else " examined"
            unknown_text = (
                f"; {percent(unknown_share)} of the tokens are unknown"
                if unknown_share > UNREAD_SHARE_MAX
                else ""
            )
            yield Fault(
                UNREAD_LETTERS.id,
                ("measured", task, "letters"),
                f"the model read {percent(read_share)} of the letters of {task}: "
                f"{letters['cut']:,} of {plural(letters['sequences'], 'sequence')}{sample} were "
                f"cut{unknown_text}",
                percent(read_share),
                f"at least {percent(1 - UNREAD_SHARE_MAX)} read, "
                f"at most {percent(UNREAD_SHARE_MAX)} unknown",
            )


UNREAD_LETTERS = Rule(
    id="unread-letters",
    severity=Severity.WARNING,
    what="The model did not read all letters of a task.",
    why=(
        "A score describes only what the model read. Letters cut off, or missing in its "
        "vocabulary, "
        "changed MCC by up to 0.2 in trials."
    ),
    fix=(
        "Raise max_length, read in windows, or use the model's own tokenizer; if the model cannot "
        "read more, state this in its card."
    ),
    check=unread_letters,
)


def scale_moves_scores(context: Context) -> Iterator[Fault]:
    """Report a contributor's extractor whose scores depend on the scale of its embeddings."""
    is_built_in = context.text("run", "extractor", "path").startswith("builtin:")
    if is_built_in or context.text("run", "embedding", "scale") == "unit":
        return
    metric = context.benchmark.primary_metric
    pairs = [
        (context.member("results", unit["regime"], task, metric), unit["scores"][metric])
        for task, measured in _measured_tasks(context)
        if (unit := measured.get("unit_scale")) is not None
    ]
    pairs = [pair for pair in pairs if pair[0] is not None]
    if not pairs:
        return
    recorded_mean, unit_mean = (sum(column) / len(pairs) for column in zip(*pairs, strict=True))
    if abs(recorded_mean - unit_mean) > SCALE_EFFECT_MAX:
        yield Fault(
            SCALE_MOVES_SCORES.id,
            ("run", "embedding"),
            f"the mean {metric} of {plural(len(pairs), 'task')} is {recorded_mean:.3f}, but "
            f"{unit_mean:.3f} with each embedding at unit scale",
            f"{recorded_mean:.3f}",
            f"{unit_mean:.3f}, within {SCALE_EFFECT_MAX}",
            on_key=True,
        )


SCALE_MOVES_SCORES = Rule(
    id="scale-moves-scores",
    severity=Severity.WARNING,
    what="The scores depend on the scale of the embeddings.",
    why=(
        "The probe's penalty is fixed, so multiplying embeddings by a factor changes scores "
        "without "
        "a better model. Built-in extractors use no factor; a contributor's code may use any."
    ),
    fix=(
        'Declare scale = "unit" in the extractor and run again: the harness then divides each '
        "embedding by its root mean square. Else explain the scale in the card."
    ),
    check=scale_moves_scores,
)


def constant_embeddings(context: Context) -> Iterator[Fault]:
    """Report each task whose sequences have almost equal embeddings, or few different ones."""
    for task, measured in _measured_tasks(context):
        embeddings = measured["embeddings"]
        count, distinct, spread = (embeddings[key] for key in ("count", "distinct", "spread"))
        if count == 1:
            continue
        share = distinct / count
        if spread < RELATIVE_SPREAD_MIN or share < DISTINCT_SHARE_MIN:
            yield Fault(
                CONSTANT_EMBEDDINGS.id,
                ("measured", task, "embeddings"),
                f"only {distinct:,} of {count:,} sequences of {task} have different embeddings; "
                f"they deviate from their mean by {spread:.2g} of their length",
                f"{percent(share)}, {spread:.2g}",
                f"at least {percent(DISTINCT_SHARE_MIN)}, and {RELATIVE_SPREAD_MIN}",
            )


CONSTANT_EMBEDDINGS = Rule(
    id="constant-embeddings",
    severity=Severity.WARNING,
    what="The embeddings of a task are nearly constant.",
    why=(
        "A probe cannot distinguish sequences with equal embeddings: the model read too little of "
        "them, or its output is mostly an offset."
    ),
    fix=(
        "Check the pooling and the maximum length of the extractor; `geneb-harness extractors "
        "check` tests both."
    ),
    check=constant_embeddings,
)


DECLARED_PROPERTIES = ("layer-and-pooling", "computed-dtype", "strands")
"""Declared properties of the extractor; other rules check the properties of tasks."""


def contradicted_property(context: Context) -> Iterator[Fault]:
    """Report each declared property that the run's own measurements contradict."""
    for property_ in DECLARED_PROPERTIES:
        if context.text("properties", property_, "outcome") == "contradicted":
            sentence = context.text("properties", property_, "sentence")
            yield Fault(
                CONTRADICTED_PROPERTY.id, ("properties", property_), f"{property_}: {sentence}",
                "contradicted", "verified, or not contradicted",
            )  # fmt: skip


CONTRADICTED_PROPERTY = Rule(
    id="contradicted-property",
    severity=Severity.WARNING,
    what="The run's measurements contradict what the extractor declares.",
    why="Another layer, pooling or number format changes scores, and readers compare models by it.",
    fix=(
        "Declare what is computed, or compute what is declared; `geneb-harness extractors check` "
        "shows what was measured. Then run again."
    ),
    check=contradicted_property,
)


def drifting_embeddings(context: Context) -> Iterator[Fault]:
    """Report each task whose first sequences got other embeddings at the end of the run."""
    for task, measured in _measured_tasks(context):
        drift = measured.get("drift")
        if drift is not None and drift["difference"] > RELATIVE_DRIFT_MAX:
            yield Fault(
                DRIFTING_EMBEDDINGS.id,
                ("measured", task, "drift"),
                f"embedded again after all others, the first "
                f"{plural(drift['sequences'], 'sequence')} of {task} have embeddings that "
                "differ by up "
                f"to {drift['difference']:.2g} of their length",
                f"{drift['difference']:.2g}",
                f"at most {RELATIVE_DRIFT_MAX}",
            )


DRIFTING_EMBEDDINGS = Rule(
    id="drifting-embeddings",
    severity=Severity.WARNING,
    what="A sequence has another embedding after the others of its task.",
    why=(
        "An embedding that depends on earlier sequences cannot be reproduced: an audit in another "
        "order computes other numbers."
    ),
    fix=(
        "Remove any state that grows in the extractor, such as a running mean, a cache or a "
        "counter; `geneb-harness extractors check --full` shows where it begins."
    ),
    check=drifting_embeddings,
)
