"""Validate a document against the typed models; each error becomes a fault of a structure rule.

`fits_format_1_0` accepts valid documents of format 1.0 fast; the models check all others.
"""

import dataclasses
import functools
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from geneb_ci.common.finding import (
    NAME_SEARCHES_MAX,
    Fault,
    KeyPath,
    first_and_more,
    member_hint,
    renaming_fix,
)
from geneb_ci.submission.reading import FileKind, other_kind, sentence
from geneb_ci.submission.tokens import UNUSABLE
from reference_harness.formats.files import text_at
from reference_harness.formats.recognition import FOREIGN
from reference_harness.formats.submission_terms import (
    BY_ENTRY,
    DISPLAY_MAX,
    ENTRY_MEMBER,
    LINE_MAX,
    MODEL_ID_MAX,
    MODEL_ID_PATTERN,
    PARAMS_MAX,
    TEXT_MAX,
    TIME_PATTERN,
    VERSIONS,
)
from reference_harness.formats.text import plural, quoted

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

    from reference_harness.formats.submission import Submission

_MEMBERS_OF_1_0 = {"schema_version", "model_id", "harness_version", "meta", "results"}
"""Members of a submission of format 1.0."""
_MEMBERS_WITH_SCHEMA = _MEMBERS_OF_1_0 | {"$schema"}
"""Members of a submission of format 1.0 that names its JSON schema."""
_METRIC_MINIMA = {"MCC": -1, "Acc": 0, "F1": 0}
"""Minimum score of each metric."""
_NUMBER_TYPES = {int, float}
_TEXT_LIMITS = {
    "display": (1, DISPLAY_MAX),
    "url": (0, LINE_MAX),
    "training_data": (0, TEXT_MAX),
    "provenance": (0, LINE_MAX),
    "submitted_by": (0, LINE_MAX),
}
"""Minimum and maximum number of characters of each text field of the metadata."""
_META_MEMBERS = {*_TEXT_LIMITS, "params", "zero_shot"}
"""Members of the metadata."""
_MODEL_ID = re.compile(MODEL_ID_PATTERN.removeprefix("^").removesuffix("$"))


def fits_format_1_0(document: object) -> bool:
    """Whether a document is valid in format 1.0; its typed model is not imported for this."""
    return (
        isinstance(document, dict)
        and document.keys() in (_MEMBERS_OF_1_0, _MEMBERS_WITH_SCHEMA)
        and document["schema_version"] == "1.0"
        and _is_text_of_length(document.get("$schema", ""), 0, LINE_MAX)
        and _is_text_of_length(document["model_id"], 1, MODEL_ID_MAX)
        and _MODEL_ID.fullmatch(document["model_id"]) is not None
        and _is_text_of_length(document["harness_version"], 1, LINE_MAX)
        and _is_meta(document["meta"])
        and _are_results(document["results"])
    )


def _is_text_of_length(text: Any, minimum: int, maximum: int) -> bool:
    """Whether a value is a text with a number of characters between the limits."""
    return isinstance(text, str) and minimum <= len(text) <= maximum


def _is_meta(meta: Any) -> bool:
    """Whether a value is valid metadata of format 1.0."""
    return (
        isinstance(meta, dict)
        and meta.keys() == _META_MEMBERS
        and all(_is_text_of_length(meta[name], *limits) for name, limits in _TEXT_LIMITS.items())
        and type(meta["params"]) is int
        and 0 <= meta["params"] <= PARAMS_MAX
        and type(meta["zero_shot"]) is bool
    )


def _are_results(results: Any) -> bool:
    """Whether a value has valid scores by regime, task and metric."""
    if not isinstance(results, dict):
        return False
    for tasks in results.values():
        if not isinstance(tasks, dict):
            return False
        cells, metrics = tasks.values(), _METRIC_MINIMA.keys()
        if not all(isinstance(cell, dict) and cell.keys() == metrics for cell in cells):
            return False
        for metric, minimum in _METRIC_MINIMA.items():
            scores = [cell[metric] for cell in cells]
            if not _NUMBER_TYPES.issuperset(map(type, scores)):
                return False
            if not all(minimum <= score <= 1 for score in scores):
                return False
    return True


_UNQUOTED_KEY = re.compile(r"[A-Za-z0-9_.$-]{1,80}")
"""A key that messages need not quote."""


Validator = Callable[[object], "tuple[Submission | None, list[Fault]]"]
"""A function that validates a value, and returns the typed submission or None, and the faults."""


def version_of(document: object) -> str | None:
    """Return the format version of a document, or None if it is missing or unknown."""
    version = text_at(document, "schema_version")
    return version if version in VERSIONS else None


def format_key_of(document: object) -> str | None:
    """Return the key in `MODELS` of the class for a document; None for an unknown version."""
    version = version_of(document)
    is_by_entry = version == "1.1" and isinstance(document, dict) and ENTRY_MEMBER in document
    return BY_ENTRY if is_by_entry else version


def check_quickly(document: object) -> "tuple[Submission | None, list[Fault]]":
    """Return (None, []) for a valid document of format 1.0, else the result of `check_structure`.

    Importing and building the typed models takes 80 ms, which most documents do not need.
    """
    return (None, []) if fits_format_1_0(document) else check_structure(document)


def check_structure(value: object) -> "tuple[Submission | None, list[Fault]]":
    """Return the typed submission, or None if the document has faults, and the faults."""
    if value is UNUSABLE:
        return None, []
    refusal = other_file(value)
    if refusal is not None:
        return None, [refusal]
    if not isinstance(value, dict):
        return None, [not_an_object(value)]
    from pydantic import ValidationError  # see check_quickly

    from reference_harness.formats.submission import MODELS

    version = format_key_of(value)
    model = MODELS[version or "1.0"]
    faults = [] if version or value.get("schema_version") is UNUSABLE else [unknown_version(value)]
    try:
        submission = model.model_validate(value)
    except ValidationError as error:
        faults.extend(_faults(error, value, version))
        return None, with_rename_fixes(faults)
    return submission if version else None, faults


def not_an_object(document: object) -> Fault:
    """Return the fault of a document that is not an object."""
    json_type = type_name(document)
    return Fault("not-an-object", (), f"the document is {json_type}", json_type, "an object", at=0)


def other_file(document: object) -> Fault | None:
    """Return the fault of a file of another kind, such as a log; None if it may be a submission.

    Missing members are not reported for such a file.
    """
    if isinstance(document, dict) and "schema_version" in document and "results" in document:
        return None
    foreign_kind = other_kind(document, FileKind.SUBMISSION)
    return (
        None
        if foreign_kind is None
        else Fault(FOREIGN, (), foreign_kind.message, fix=sentence(foreign_kind.fix))
    )


def unknown_version(document: dict[str, Any]) -> Fault:
    """Return the fault of a missing or unknown schema_version."""
    version = quoted(document["schema_version"]) if "schema_version" in document else "nothing"
    return Fault(
        "unknown-schema-version",
        ("schema_version",),
        f"schema_version is {'missing' if version == 'nothing' else version}",
        version,
        f"one of {', '.join(map(quoted, VERSIONS))}",
    )


_FOREIGN_METRIC_NAMES = {
    "MCC": {"mcc", "matthews_corrcoef", "matthews_correlation", "matthews"},
    "Acc": {"acc", "accuracy", "accuracy_score"},
    "F1": {"f1", "f1_score", "f1_macro", "macro_f1", "f1score"},
}
"""Names of each metric in other programs, in lower case."""


def with_rename_fixes(faults: list[Fault]) -> list[Fault]:
    """Return the faults, with fixes that suggest renaming an unknown member to a missing one.

    `misnamed_metrics` joins the faults of metrics.
    """
    faults = misnamed_metrics(faults)
    names_by_path: dict[KeyPath, list[str]] = {}
    for fault in faults:
        if fault.rule in _UNKNOWN_RULES:
            names_by_path.setdefault(fault.path[:-1], []).append(str(fault.path[-1]))
    searched_count = 0
    for number, fault in enumerate(faults):
        if (
            fault.rule in _MISSING_RULES
            and fault.path in names_by_path
            and searched_count < NAME_SEARCHES_MAX
        ):
            searched_count += len(names_by_path[fault.path])
            fix = renaming_fix(names_by_path[fault.path], [_missing_name(fault)], "")
            faults[number] = dataclasses.replace(fault, fix=fix)
    return faults


def misnamed_metrics(faults: list[Fault]) -> list[Fault]:
    """Return the faults, with a single fault for all metrics that have names of other programs.

    Otherwise a cell with `accuracy` would have two faults, the unknown `accuracy` and the missing
    `Acc`, and so would its evidence. Faults of fewer than JOINED_CELLS_MIN cells are not replaced.
    """
    misnamed = {
        (fault.path[:-1], metric): fault
        for fault in faults
        if fault.rule in _UNKNOWN_RULES and (metric := _meant_metric(fault.path))
    }
    paths = {table for table, _ in misnamed}
    if len(paths) < JOINED_CELLS_MIN:
        return faults
    names = first_and_more([quoted(f.path[-1]) for f in _first_of_each_member(misnamed.values())])
    cell_count = sum(table[0] == "results" for table in paths)
    counts = [plural(cell_count, "cell")] if cell_count else []
    if len(paths) > cell_count:
        counts.append(f"the evidence of {plural(len(paths) - cell_count, 'cell')}")
    first_fault, joined_ids = next(iter(misnamed.values())), set(map(id, misnamed.values()))
    message, expected = (
        f"{' and '.join(counts)} name their metrics {names}",
        ", ".join(_FOREIGN_METRIC_NAMES),
    )
    joined_fault = dataclasses.replace(
        first_fault, rule="unknown-metric", message=message, found=names, expected=expected
    )
    other_faults = [
        fault
        for fault in faults
        if id(fault) not in joined_ids
        and not (fault.rule in _MISSING_RULES and (fault.path, _missing_name(fault)) in misnamed)
    ]
    return [*other_faults, joined_fault]


_UNKNOWN_RULES = {"unknown-metric", "unknown-field"}
"""Ids of the rules about unknown members."""
_MISSING_RULES = {"missing-metric", "missing-field"}
"""Ids of the rules about missing members."""
_TABLES_OF_METRICS = {"per_seed", "canonical"}
"""Members of evidence that have a member for each metric."""


def _meant_metric(path: KeyPath) -> str:
    """Return the metric that the name of a member means in another program; "" if none."""
    is_in_evidence = len(path) > 1 and path[0] == "evidence" and path[-2] in _TABLES_OF_METRICS
    long_name = str(path[-1]).casefold() if _is_metric(path) or is_in_evidence else ""
    return next(
        (metric for metric, names in _FOREIGN_METRIC_NAMES.items() if long_name in names), ""
    )


def _first_of_each_member(faults: Iterable[Fault]) -> list[Fault]:
    """Return the first of the faults about members with the same name, for each name."""
    return list({fault.path[-1]: fault for fault in reversed([*faults])}.values())[::-1]


JOINED_CELLS_MIN = 3
"""Minimum number of cells with wrong names of metrics that are reported as a single fault."""


def _missing_name(fault: Fault) -> str:
    """Return the name of the missing member, which the message quotes first."""
    return fault.message.split('"')[1]


_BOUND_ERRORS = {"greater_than_equal", "less_than_equal"}
"""Types of pydantic's errors for a number that is too small or too large."""


def _faults(
    error: "ValidationError", document: dict[str, Any], version: str | None
) -> Iterator[Fault]:
    """Yield a fault for each error of the typed model, except where the parser reported it."""
    hint_count = 0
    for detail in error.errors(include_url=False, include_context=True):
        unknown_key = detail["type"] == "extra_forbidden"
        if detail["input"] is UNUSABLE and not unknown_key:
            continue
        if detail["loc"][:1] == ("schema_version",):
            continue
        if version is None and unknown_key and len(detail["loc"]) == 1:
            continue  # the allowed keys depend on the version
        hint_count += unknown_key
        if detail["type"] in _BOUND_ERRORS:
            # Show the original value: -1.0 was converted to -1 before the bound was checked.
            detail["input"] = _value_at(document, detail["loc"])
        if unknown_key:
            siblings = (
                _value_at(document, detail["loc"][:-1]) if hint_count <= NAME_SEARCHES_MAX else None
            )
            yield unknown(tuple(detail["loc"]), version or "1.0", siblings)
        else:
            yield _fault(detail)


def _value_at(document: Any, path: KeyPath) -> Any:
    """Return the value at a path, which exists."""
    for step in path:
        document = document[step]
    return document


def _fault(detail: "ErrorDetails") -> Fault:
    """Return the fault for an error of the typed model."""
    path: KeyPath = tuple(detail["loc"])
    context = detail.get("ctx", {})
    error_type, value = detail["type"], detail["input"]
    if error_type == "missing":
        fault = missing(path)
    elif error_type in _BOUND_ERRORS:
        bound = context.get("ge", context.get("le"))
        word = "at least" if "ge" in context else "at most"
        fault = out_of_range(path, value, f"{word} {bound:g}")
    elif error_type in {"string_too_long", "string_too_short", "too_long", "too_short"}:
        limit = context.get("max_length", context.get("min_length"))
        word = "at most" if "max_length" in context else "at least"
        fault = wrong_length(path, value, f"{word} {limit}")
    elif error_type == "string_pattern_mismatch":
        fault = wrong_form(path, value, f"a string of the form {context['pattern']}")
    elif error_type == "literal_error":
        fault = wrong_form(path, value, f"one of {context['expected']}")
    else:
        fault = wrong_type(path, value, _EXPECTED_TYPES.get(error_type, detail["msg"]))
    return fault


_EXPECTED_TYPES = {
    "float_type": "a number",
    "int_type": "an integer",
    "int_from_float": "an integer",
    "string_type": "a string",
    "bool_type": "true or false",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "list_type": "an array",
}
"""Expected JSON type, by type of pydantic's error."""


def type_name(value: object) -> str:
    """Return the JSON type of a value, with its article."""
    type_names = {
        bool: "true or false",
        int: "a number",
        float: "a number",
        str: "a string",
        list: "an array",
    }
    return "null" if value is None else type_names.get(type(value), "an object")


def missing(path: KeyPath) -> Fault:
    """Return the fault of a missing required member."""
    if _is_metric(path):
        return Fault(
            "missing-metric",
            path[:-1],
            f"{quoted(path[-1])} is missing from this cell",
            "nothing",
            "a number",
        )
    place_text = f"in {quoted('/'.join(map(str, path[:-1])))}" if path[:-1] else "at the top level"
    return Fault(
        "missing-field",
        path[:-1],
        f"the field {quoted(path[-1])} is missing {place_text}",
        "nothing",
        str(path[-1]),
    )


def unknown(path: KeyPath, version: str, siblings: Collection[str] | None) -> Fault:
    """Return the fault of an unknown member, which suggests a similar name.

    `siblings` are the members beside it; with None, no name is suggested.
    """
    member = str(path[-1])
    known_names = known_members(path[:-1], version)
    suggestion = "" if siblings is None else member_hint(member, known_names, siblings)
    rule, noun = ("unknown-metric", "metric") if _is_metric(path) else ("unknown-field", "field")
    return Fault(
        rule,
        path,
        f"{quoted(member)} is not a {noun} of this format{suggestion}",
        quoted(member),
        first_and_more(list(known_names), 12),
        on_key=True,
    )


@functools.lru_cache(maxsize=256)
def known_members(path: KeyPath, version: str) -> tuple[str, ...]:
    """Return the members of the typed model at a path; empty if any key is allowed."""
    from reference_harness.formats.submission import MODELS

    model: Any = MODELS[version]
    for step in path:
        model = _member_type(model, step)
        if model is None:
            return ()
    fields = getattr(model, "model_fields", {})  # a dictionary takes any key
    return tuple(field.alias or name for name, field in fields.items())


def _member_type(model: Any, step: str | int) -> Any:  # a type annotation has no type
    """Return the type of a member of a model, or of the values of a dictionary or list."""
    annotation: Any = None
    if hasattr(model, "model_fields"):
        field = next((f for n, f in model.model_fields.items() if (f.alias or n) == step), None)
        annotation = field.annotation if field else None
    elif getattr(model, "__args__", None):
        annotation = model.__args__[-1]
    for option in getattr(annotation, "__args__", ()):
        if hasattr(option, "model_fields") and getattr(annotation, "__origin__", None) is not dict:
            return option
    return annotation


def out_of_range(path: KeyPath, value: object, bound: str) -> Fault:
    """Return the fault of a number outside its bounds."""
    if path == ("meta", "params"):
        rule = "bad-parameter-count"
    elif path[0] == "results" or (path[0] == "evidence" and path[-1] != "n_test"):
        rule = "score-out-of-range"
    else:
        rule = "malformed-value"
    fix = ""
    if rule == "score-out-of-range" and isinstance(value, int | float):
        is_percent = 1 < abs(value) <= PERCENT_MAX
        fix = _PERCENT_FIX.format(value / 100) if is_percent else ""
    return Fault(
        rule, path, f"{_member_name(path)} is {quoted(value)}", quoted(value), bound, fix=fix
    )


PERCENT_MAX = 100
"""Maximum absolute value of a score that may be a percentage."""
_PERCENT_FIX = (
    "If the score is in percent, divide by 100: {:.12g}. Otherwise compute the score again from "
    "the predictions."
)


def wrong_length(path: KeyPath, value: Any, bound: str) -> Fault:  # a text or a list
    """Return the fault of a string or a list that is too long or too short."""
    if path == ("model_id",):
        return bad_model_id(value, bound + " characters")
    unit = "characters" if isinstance(value, str) else "items"
    rule = "wrong-length"
    return Fault(
        rule,
        path,
        f"{_member_name(path)} has {len(value)} {unit}",
        f"{len(value)} {unit}",
        f"{bound} {unit}",
    )


def wrong_form(path: KeyPath, value: object, expected: str) -> Fault:
    """Return the fault of a string that does not match the pattern or values of its field."""
    if path == ("model_id",):
        return bad_model_id(
            value, "ASCII letters, digits, '.', '_' and '-', beginning with a letter or a digit"
        )
    expected = _FORM_BY_PATTERN.get(expected, expected)
    fix = _COMMIT_FIX if path == ("run", "model", "revision") else ""
    message = f"{_member_name(path)} is {quoted(value)}"
    return Fault("malformed-value", path, message, quoted(value), expected, fix=fix)


_TIME_FORM = "a time in UTC, such as 2026-11-28T13:47:00Z"
_FORM_BY_PATTERN = {
    f"a string of the form ^[0-9a-f]{{{digits}}}$": f"{digits} hex digits, {what}"
    for digits, what in ((40, "a commit"), (64, "a SHA-256"))
} | {f"a string of the form {TIME_PATTERN}": _TIME_FORM}
"""Words for a form, by the words with its pattern."""
_COMMIT_FIX = (
    "A branch or tag moves: write the commit that was run. `geneb-harness run` writes the one that "
    "it loaded; `git ls-remote https://huggingface.co/ORG/REPOSITORY main` prints today's."
)


def bad_model_id(value: object, expected: str) -> Fault:
    """Return the fault of an invalid model_id, whose fix suggests a valid id."""
    message = f"model_id is {quoted(value)}"
    suggestion = re.sub(r"[^A-Za-z0-9._-]+", "-", str(value).rpartition("/")[2]).strip("-._")
    fix = _ID_FIX.format(suggestion) if 0 < len(suggestion) <= MODEL_ID_MAX else ""
    return Fault("bad-model-id", ("model_id",), message, quoted(value), expected, fix=fix)


_ID_FIX = (
    'Write "{0}", for example, and name the file {0}.json: 1 to 128 of the characters A-Z a-z 0-9 '
    ". _ -, beginning with a letter or a digit."
)


def wrong_type(path: KeyPath, value: object, expected: str) -> Fault:
    """Return the fault of a value of the wrong JSON type."""
    json_type = type_name(value)
    message = f"{_member_name(path)} is {quoted(value)}{'' if value is None else f', {json_type}'}"
    return Fault(
        "wrong-type", path, message, json_type, expected, fix=_type_fix(path, value, expected)
    )


def _type_fix(path: KeyPath, value: object, expected: str) -> str:
    """Return the fix for a value of the wrong JSON type."""
    if value is None and _is_metric(path):
        return _NULL_FIX
    if isinstance(value, str) and expected not in {"a string", "an object", "an array"}:
        return f"Write {expected}, without quotes."
    if path == ("meta", "params") and isinstance(value, float) and 0 < value < _MILLIONS_MAX:
        return f"Write the number of parameters; {value:g} million are {round(value * 1e6)}."
    return f"Write {expected}."


_NULL_FIX = (
    "Find out why the score could not be computed and run the task again. If it cannot be run, "
    'declare the cell missing under "gaps" (format 1.1).'
)
_MILLIONS_MAX = 1e6
"""Maximum parameter count with decimals that is taken for a count in millions."""


def _is_metric(path: KeyPath) -> bool:
    """Whether a path is that of a score in the results."""
    return path[0] == "results" and len(path) == 4  # noqa: PLR2004 (results, regime, task, metric)


def _member_name(path: KeyPath) -> str:
    """Return the name of a member for a message: its key, or array and index."""
    member, index = (path[-2], f"[{path[-1]}]") if isinstance(path[-1], int) else (path[-1], "")
    is_plain = isinstance(member, str) and _UNQUOTED_KEY.fullmatch(member) is not None
    return f"{member if is_plain else quoted(member)}{index}"
