"""Upgrade a submission of format 1.0 or 1.1 to 1.2 with the record of its run.

Nothing is invented: a confusion matrix, for example, does not follow from scores.
"""

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from reference_harness.data import benchmark as definitions
from reference_harness.errors import OptionError
from reference_harness.formats.base import first_error
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.files import NotReadable, read_json, read_text
from reference_harness.formats.recognition import foreign_format_of
from reference_harness.formats.run_record import RunRecord
from reference_harness.formats.submission_terms import ENTRY_MEMBER, SUBMISSION_BYTES_MAX, VERSIONS
from reference_harness.formats.text import plural
from reference_harness.text import first_and_more

from . import submission

LATEST = VERSIONS[-1]
"""The latest format of submissions."""
RECORD_BYTES_MAX = 1 << 28
"""Maximum number of bytes of a record; one of GENEB has 3 MB, with a thousand classes it would have
300 MB."""
DECIMALS_MIN = 3
"""Minimum number of decimals of a rounded score that is accepted as the record's."""
RETRY_FIX = "run again with `geneb-harness run --receipt DIR --submission FILE`"
"""Advice where a record cannot upgrade the submission."""
MISSING_FACTS = {
    "1.0": "the details of the run, and for each of {cells} the scores of every seed, the digest "
    "of its predictions, its classes and its confusion matrices",
    "1.1": "for each of {cells} its classes and its confusion matrices",
}
"""The facts that a file lacks for format 1.2, by its own format."""


def read_submission(path: Path) -> dict[str, Any]:
    """Return a submission of format 1.0 or 1.1; with a registry entry, it counts as format 1.0.

    Raise OptionError for anything else, also for one of format 1.2.
    """
    try:
        members = read_json(read_text(path, SUBMISSION_BYTES_MAX))
        if members.pop(ENTRY_MEMBER, None) is not None:  # format 1.0 and the entry
            members["schema_version"] = "1.0"
        version = members["schema_version"]
        cells = sum(len(tasks) for tasks in members["results"].values())
    except NotReadable as error:
        msg = f"{path}: {error.reason}"
        raise OptionError(msg) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        msg = f"{path} is not a valid submission: run `geneb-ci check {path}`"
        raise OptionError(msg) from error
    if version == LATEST:
        msg = f"{path}: the submission already has format {LATEST}: use it as it is"
        raise OptionError(msg)
    if version not in MISSING_FACTS or not cells:
        msg = f"{path}: format {version!r} with {plural(cells, 'cell')}, expected 1.0 or 1.1 with "
        msg += f"scores: run `geneb-ci check {path}`"
        raise OptionError(msg)
    document: dict[str, Any] = members
    return document


def refuse_without_record(document: dict[str, Any], path: Path) -> None:
    """Raise OptionError with a message about what is missing and where to find it."""
    cells = sum(len(tasks) for tasks in document["results"].values())
    missing_text = MISSING_FACTS[document["schema_version"]].format(cells=plural(cells, "cell"))
    msg = (
        f"{path}: for format {LATEST}, the file lacks {missing_text}. The run record contains all "
        "of this: pass the file of `geneb-harness run --output` as --record. Without a record, "
        f"{RETRY_FIX}, as none of this follows from the scores"
    )
    if document["schema_version"] == "1.0":
        msg += ". Format 1.1 needs no record: `geneb-ci upgrade FILE --output NEW` adds the entry "
        msg += "of the model registry, which an audit uses"
    raise OptionError(msg)


def read_record(path: Path) -> RunRecord:
    """Return the run record in a file. Raise OptionError if it contains none."""
    try:
        return RunRecord.model_validate_json(read_text(path, RECORD_BYTES_MAX))
    except NotReadable as error:
        msg = f"{path}: {error.reason}"
        raise OptionError(msg) from error
    except ValidationError as error:
        foreign_format = foreign_format_of(_json_value(path))
        fault = first_error(error, with_input=True)
        fault = f"it {foreign_format.predicate}" if foreign_format is not None else fault
        msg = f"{path}: not a run record of this version: {fault}; {RETRY_FIX}"
        raise OptionError(msg) from error


def _json_value(path: Path) -> object:
    """Return the JSON value of a file; None if it has none."""
    try:
        value: object = read_json(read_text(path, RECORD_BYTES_MAX))
    except (NotReadable, ValueError):
        return None
    return value


def benchmark_of(record: RunRecord, definition: Path | None) -> Benchmark:
    """Return the benchmark of a run: the named definition, else a shipped one with its digest.

    Raise OptionError if the run was of another one.
    """
    known_benchmarks = (
        [definitions.load(definition)] if definition else [definitions.geneb(), definitions.mini()]
    )
    for candidate in known_benchmarks:
        if candidate.sha256 == record.benchmark.sha256:
            return candidate
    msg = (
        f"the run was of {record.benchmark.name}, whose definition has sha256 "
        f"{record.benchmark.sha256}: pass that definition "
    )
    msg += "with --benchmark"
    raise OptionError(msg)


def upgraded_submission(
    document: dict[str, Any], record: RunRecord, bench: Benchmark
) -> dict[str, Any]:
    """Return the submission in format 1.2, with the scores of the record, unrounded.

    Metadata, and the gaps of format 1.1, are kept. Raise OptionError if the record is not that of
    this submission.
    """
    if document.get("model_id") != record.model_id:
        msg = f"the record is of {record.model_id!r}, but the submission is of "
        msg += f"{document.get('model_id')!r}: pass the record of the submission's run"
        raise OptionError(msg)
    try:
        metadata = dict(document["meta"])
    except (KeyError, TypeError, ValueError) as error:
        msg = "the submission has no metadata: run `geneb-ci check` on the file"
        raise OptionError(msg) from error
    upgraded = submission.build_submission(record, bench, submission.meta_of(metadata), LATEST)
    differences = _score_differences(document["results"], upgraded["results"])
    if document["schema_version"] == "1.1":
        differences = differences or _evidence_differences(document, upgraded)
        upgraded["gaps"] = document.get("gaps", {})
    if differences:
        msg = f"the record is not that of this submission: {first_and_more(differences)}; pass the "
        msg += f"record of the submission's run, or {RETRY_FIX}"
        raise OptionError(msg)
    return upgraded


def _score_differences(claimed: dict[str, Any], recorded: dict[str, Any]) -> list[str]:
    """Return a text for each cell whose scores differ from the record's or that one side lacks."""
    cells = {
        (regime, task)
        for results in (claimed, recorded)
        for regime in results
        for task in results[regime]
    }
    return [
        f"{task} in {regime} has other scores"
        for regime, task in sorted(cells)
        if not _has_same_scores(
            claimed.get(regime, {}).get(task), recorded.get(regime, {}).get(task)
        )
    ]


def _has_same_scores(claimed: Any, recorded: dict[str, float] | None) -> bool:
    """Whether claimed scores equal the recorded ones, or are these rounded."""
    if not isinstance(claimed, dict) or recorded is None or claimed.keys() != recorded.keys():
        return False
    return all(_is_equal_or_rounded(claimed[key], value) for key, value in recorded.items())


def _is_equal_or_rounded(claimed: Any, number: float) -> bool:
    """Whether a claimed number equals a number, or the number rounded to its printed decimals."""
    if isinstance(claimed, bool) or not isinstance(claimed, int | float):
        return False
    digits = repr(claimed)
    decimals = 0 if "e" in digits else len(digits.partition(".")[2])
    return claimed == number or (decimals >= DECIMALS_MIN and round(number, decimals) == claimed)


def _evidence_differences(document: dict[str, Any], upgraded: dict[str, Any]) -> list[str]:
    """Return a text for each way in which a file of format 1.1 contradicts the record.

    Its run and its predictions are compared.
    """
    run = document.get("run")
    differences = [
        f"run.{key} differs"
        for key, value in upgraded["run"].items()
        if not isinstance(run, dict) or run.get(key) != value
    ]
    evidence = document.get("evidence", {})
    for regime, tasks in upgraded["evidence"].items():
        for task, cell in tasks.items():
            cell_evidence = evidence.get(regime, {}).get(task, {})
            if cell_evidence.get("predictions_sha256") != cell["predictions_sha256"]:
                differences.append(f"{task} in {regime} has other predictions")
    return differences
