"""Parts of the page of a model: facts with their sources, code that loads it, its badge."""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from geneb_ci.audit.trust.attestation import SCORES, SUBMITTERS_WORD, Author
from geneb_ci.board.baselines import baseline_comparison
from geneb_ci.board.columns import Row
from geneb_ci.board.marks import hardware_and_duration, letters_per_second, peak_memory
from geneb_ci.board.site.inputs import (
    MACRO,
    Site,
    bytes_text,
    memory_text,
    range_text,
    score_text,
    size_text,
)
from geneb_ci.board.site.links import MARKS_PAGE
from geneb_ci.common.types import AUTHORSHIP_MEANING, EVIDENCE_MEANING, Evidence
from geneb_ci.models.entry import GENERAL_EXTRACTOR, ModelEntry, WeightsSource
from geneb_ci.models.registry import word_with_meaning
from reference_harness.formats.benchmark import Benchmark

UNKNOWN_FACT = "not known"
"""Value of a fact that nobody has stated."""
LETTER_PX = 6.6
"""Average width in pixels of a letter of Verdana at 11 px; the SVG scales text to this width."""
MARGIN_PX = 6
"""Pixels on both sides of a text of a badge."""
BADGE_COLOURS = {
    Evidence.AUDITED: "#0b6268",
    Evidence.REPRODUCED: "#0b6268",
    Evidence.DISPUTED: "#9a3412",
}
"""Background of a badge by evidence; the contrast to white is 4.5 or more."""
OTHER_BADGE_COLOUR = "#4f5d5a"
"""Background of a badge with other evidence."""


class ModelFact(NamedTuple):
    """One fact about a model, as its page shows it."""

    label: str
    value: str
    author: str
    """Who states the fact: the submitter, the registry, records or checks."""
    address: str = ""
    """Path of the page that explains the value, relative to the board's root."""


def facts_of_model(row: Row, model_entry: ModelEntry | None) -> list[ModelFact]:
    """Return the facts of a model; a fact that is missing has a text such as "not known"."""
    return [*_submission_facts(row), *_registry_facts(model_entry)]


def baseline_facts(row: Row, benchmark: Benchmark) -> Iterator[ModelFact]:
    """Yield a fact with mean MCC of a row and of the baselines, on the tasks that all have."""
    comparison = baseline_comparison(row.submission.results, benchmark)
    if comparison is not None:
        baselines = ", ".join(
            f"{name} {score:.3f}" for name, score in comparison.baseline_means.items()
        )
        tasks_text = (
            "every task"
            if comparison.tasks == len(benchmark.tasks)
            else f"{comparison.tasks} tasks"
        )
        mean_text = f"{comparison.row_mean:.3f}; {baselines}"
        means = f"mean MCC of {tasks_text} in {benchmark.regimes[0]}: {mean_text}"
        yield ModelFact("Beside baselines", means, Author.BOARD)


def evidence_words(row: Row) -> str:
    """Return in words what others did to confirm the scores of a row."""
    audit = row.audit
    if audit is None:
        return "checked, not rerun" if row.evidence is Evidence.CHECKED else str(row.evidence)
    verb = "rerun" if audit.agrees else "rerun, with other scores,"
    unaudited_regimes = row.attestation.unconfirmed_regimes
    unaudited_text = f", none in {', '.join(unaudited_regimes)}" if unaudited_regimes else ""
    extent = f"{audit.tasks} of {audit.of} tasks{unaudited_text}" if audit.tasks else audit.text
    return f"{row.evidence}: {verb} {extent}, sandbox level {audit.sandbox}, {audit.date}"


def _submission_facts(row: Row) -> Iterator[ModelFact]:
    """Yield the facts that the submission states, and the evidence of its row."""
    meta = row.submission.meta
    evidence_text = f"{evidence_words(row)}: {EVIDENCE_MEANING[row.evidence]}"
    yield ModelFact("Evidence", evidence_text, Author.RECORDS)
    if row.recomputed is not None:
        yield ModelFact("Recomputed", row.recomputed, Author.RECORDS)
    statements = [f"{fields}: {by}" for fields, by in row.attestation.statements]
    yield ModelFact(
        "Scores attested by",
        "; ".join(statements) or f"{SCORES}: {SUBMITTERS_WORD}",
        Author.RECORDS,
    )
    authors = f"{row.authorship}: {AUTHORSHIP_MEANING[row.authorship]}"
    yield ModelFact("Authorship", authors, Author.RECORDS)
    for defect in row.marks.defects:
        yield ModelFact(
            "Published defect",
            defect.what,
            Author.MAINTAINERS,
            f"{MARKS_PAGE}#defect-{defect.id}",
        )
    for rule, count in row.marks.warnings:
        yield ModelFact("Warning", f"{rule} ({count})", Author.CHECKS, f"{MARKS_PAGE}#rule-{rule}")
    size = "no parameters"
    if meta.params:
        size = (
            f"{size_text(meta.params)} ({meta.params:,} parameters; "
            f"{memory_text(meta.params)} of weights in fp16)"
        )
    yield ModelFact("Size", size, Author.SUBMITTER)
    zero_shot_text = (
        "saw no sequence of any task in training" if meta.zero_shot else "no such claim"
    )
    yield ModelFact("Zero-shot", zero_shot_text, Author.SUBMITTER)
    if (run := hardware_and_duration(row.submission)) is not None:
        yield ModelFact("Run", run, Author.SUBMITTER)
    if (letters_per_s := letters_per_second(row.submission)) is not None:
        memory_peak = peak_memory(row.submission)
        memory = f", in up to {bytes_text(memory_peak)} of memory" if memory_peak else ""
        yield ModelFact(
            "Embedding", f"{letters_per_s:,} letters a second{memory}", Author.SUBMITTER
        )
    if row.letters is not None:
        yield ModelFact("Letters", row.letters, Author.SUBMITTER)
    yield ModelFact("Training data", meta.training_data or "not given", Author.SUBMITTER)
    yield ModelFact("Submitted by", meta.submitted_by or "not given", Author.SUBMITTER)


def _registry_facts(model_entry: ModelEntry | None) -> Iterator[ModelFact]:
    """Yield the facts that the model registry states."""
    if model_entry is None:
        yield ModelFact("Model registry", "has no entry of this model", Author.REGISTRY)
        return
    texts_by_label = {
        "Architecture": word_with_meaning("architecture", model_entry.architecture),
        "Tokenizer": word_with_meaning("tokenization", model_entry.tokenization),
        "Pretraining": model_entry.pretraining,
    }
    for label, label_text in texts_by_label.items():
        yield ModelFact(label, label_text or UNKNOWN_FACT, Author.REGISTRY)
    if model_entry.params_trained:
        count = f"{model_entry.params_trained:,}, without tables of positions and filters"
        yield ModelFact("Trained weights", count, Author.REGISTRY)
    width = model_entry.embedding_dim
    yield ModelFact("Embedding width", f"{width:,}" if width else UNKNOWN_FACT, Author.REGISTRY)
    yield ModelFact("Longest input", longest_input(model_entry) or UNKNOWN_FACT, Author.REGISTRY)
    yield ModelFact("Licence of the weights", model_entry.licence or UNKNOWN_FACT, Author.REGISTRY)
    yield ModelFact("Runs on", model_entry.attributes.get("runs_on", UNKNOWN_FACT), Author.REGISTRY)
    if model_entry.published is not None:
        run = model_entry.published
        cut_text = f", cut at {run.max_length:,} tokens" if run.max_length else ""
        run_text = f"layer {run.hidden_layer}, pooling {run.pooling}{cut_text}"
        yield ModelFact("Published run", run_text, Author.REGISTRY)
    if model_entry.sources is not None and model_entry.sources.facts:
        yield ModelFact("Source of the facts", model_entry.sources.facts, Author.REGISTRY)


def longest_input(model_entry: ModelEntry) -> str:
    """Return the maximum length of a sequence in words; "" if it is unknown."""
    limits = []
    if model_entry.max_letters:
        limits.append(f"{model_entry.max_letters:,} letters")
    if model_entry.max_tokens:
        limits.append(f"{model_entry.max_tokens:,} tokens")
    return " or ".join(limits)


INSTALL_COMMAND = "pip install '.[harness]'  # in a clone of the repository of geneb-ci"
"""The command that installs the harness; the repository of a board does not contain it."""


class Snippet(NamedTuple):
    """Instructions for loading a model, in words and in Python."""

    code: str
    """A command or Python code; "" if there is no extractor for the model yet."""
    notes: tuple[str, ...]


def snippet_of(model_entry: ModelEntry | None) -> Snippet | None:
    """Return instructions for loading a model by the harness; None if the registry has no `run`."""
    if model_entry is None or model_entry.run is None:
        return None
    run, weights = model_entry.run, model_entry.weights
    notes = []
    if run.missing:
        notes.append(f"Nothing runs this model yet: {run.missing}.")
    if run.environment is not None:
        notes.append(
            f"The model needs the packages of {run.environment.lock}, not those of the harness."
        )
    if run.exercised:
        notes.append(f"What was tried: {run.exercised}.")
    if run.extractor is None or weights is None:
        return Snippet("", tuple(notes))
    if weights.kind not in {"huggingface", "none"}:
        notes.append("The weights are not on the Hub: put their files into a folder, and name it.")
    return Snippet(_python_code(str(run.extractor), model_entry.options, weights), tuple(notes))


def _option_value(option_text: str) -> int | bool | str | None:
    """Return the value of an option from its text: an integer, True, False, None or the text."""
    if re.fullmatch(r"-?[0-9]+", option_text):
        return int(option_text)
    constants: dict[str, bool | str | None] = {"true": True, "false": False, "none": None}
    return constants.get(option_text, option_text)


def _python_code(extractor: str, arguments: Mapping[str, str], weights: WeightsSource) -> str:
    """Return the code, or the command, that loads a model."""
    is_hub = weights.kind == "huggingface"
    revision = {"revision": weights.revision} if is_hub and weights.revision else {}
    options = {**revision, **arguments}
    location = weights.location if is_hub else "FOLDER"
    if extractor != GENERAL_EXTRACTOR:
        option_words = [f"--option {name}={value}" for name, value in options.items()]
        return " ".join(
            ["geneb-harness run --extractor", extractor, "--model", location, *option_words]
        )
    lines = [
        f"    {location!r},",
        '    device="cuda",',
        *(f"    {name}={_option_value(value)!r}," for name, value in options.items()),
    ]
    return "\n".join(
        [
            "from reference_harness.extractors.huggingface import HuggingFaceExtractor",
            "",
            "extractor = HuggingFaceExtractor(",
            *lines,
            ")",
            'embeddings = extractor.extract_embeddings(["ACGT" * 64])  # float32, a row a sequence',
        ]
    )


class Badge(NamedTuple):
    """The texts of a badge, their widths in pixels, and its colour."""

    label: str
    message: str
    colour: str
    label_width: int
    message_width: int


def badge_of(model: str, site: Site) -> Badge:
    """Return the badge of a model: its evidence, audited tasks, and rank range by macro.

    The rank depends on all rows, so an audit of this row does not confirm it.
    """
    row = site.by_id[model]
    evidence, audit = row.evidence, row.audit
    extent = f" {audit.tasks}/{audit.of}" if audit and audit.agrees and audit.tasks else ""
    message = f"{evidence}{extent} \u00b7 {rank_words(model, site)}"
    label = site.benchmark.name
    return Badge(
        label,
        message,
        BADGE_COLOURS.get(evidence, OTHER_BADGE_COLOUR),
        _text_width(label),
        _text_width(message),
    )


def rank_words(model: str, site: Site) -> str:
    """Return in words the rank range in the first regime, or the score if ranges are unknown."""
    standing = site.standing(model, site.benchmark.regimes[0], MACRO)
    if standing is None:
        return "not ranked"
    if standing.rank_low is None or standing.rank_high is None:
        return f"macro {site.benchmark.primary_metric} {score_text(standing.score)}"
    ranks = range_text(standing.rank_low, standing.rank_high)
    return f"rank {ranks} of {site.ranked_count(site.benchmark.regimes[0])}"


def _text_width(label: str) -> int:
    """Return the width in pixels of a text of a badge with its margins."""
    return round(len(label) * LETTER_PX) + 2 * MARGIN_PX
