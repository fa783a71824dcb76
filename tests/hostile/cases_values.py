"""Inputs 21 to 36 and 63: documents that are JSON, with something wrong in them, and sound ones."""

from typing import Any

from tests.hostile.case import CELL, Case, Says, added, edited, model_id, token
from tests.hostile.text import MARK, Raw
from tests.small import small, small_v11


def out_of_range(name: str, metric: str, value: str) -> Case:
    says = (Says("score-out-of-range", f"/{CELL}/{metric}", f"{metric} is {value}"),)
    return Case(22, name, edited(name, f"{CELL}/{metric}", Raw(MARK + value)), says)


RANGES = [
    token(
        21,
        "underflow-score",
        "1e-400",
        "unrepresentable-number",
        "1e-400 is too small for a double: it would become 0",
    ),
    out_of_range("score-just-above-1", "Acc", "1.0000000001"),
    out_of_range("score-one-double-above-1", "MCC", "1.0000000000000002"),
    out_of_range("negative-accuracy", "Acc", "-0.01"),
    out_of_range("negative-f1", "F1", "-1e-09"),
    out_of_range("mcc-below-minus-1", "MCC", "-1.0000000001"),
    out_of_range("score-of-2", "F1", "2"),
]


def unknown_field(name: str, key: str, hint: str = "", path: str = "") -> Case:
    members = (Raw(f'{MARK}"{key}"'), 1)
    content: Any = added(name, path, members) if path else _with_top(name, members)
    says = Says(
        "unknown-field",
        f"/{path}/{key}" if path else f"/{key}",
        f'"{key}" is not a field of this format{hint}',
    )
    return Case(24, name, content, (says,))


def _with_top(name: str, member: tuple[str, Any]) -> Any:
    document: dict[str, Any] = {"all": small(name)}
    document["all"][member[0]] = member[1]
    return document["all"]


UNKNOWN_FIELDS = [
    unknown_field("unknown-field", "comment"),
    unknown_field("unknown-field-near-miss", "result", '; "results" exists already'),
    unknown_field("unknown-field-x-prefix", "x_lab"),
    unknown_field("unknown-field-of-format-1-1", "run"),
    unknown_field("unknown-field-in-meta", "parameters", '; "params" exists already', "meta"),
    unknown_field("unknown-field-proto", "__proto__"),
]


def unknown_task(number: int, name: str, task: str, hint: str = "") -> Case:
    scores = {"MCC": 0.5, "Acc": 0.5, "F1": 0.5}
    content = added(name, "results/full", (Raw(f'{MARK}"{task}"'), scores))
    message = f'"{task}" is not a task of GENEB-small{hint}'
    return Case(number, name, content, (Says("unknown-task", f"/results/full/{task}", message),))


def without_task(name: str) -> Any:
    document = small(name)
    document["results"] = {
        Raw(f'{MARK}"full"') if k == "full" else k: v for k, v in document["results"].items()
    }
    del document["results"][Raw(f'{MARK}"full"')]["promoter_tata"]
    return document


def regime_of(name: str, regime: str) -> Any:
    return added(name, "results", (Raw(f'{MARK}"{regime}"'), {}))


TASKS = [
    unknown_task(25, "task-proto", "__proto__"),
    unknown_task(25, "task-constructor", "constructor"),
    unknown_task(25, "task-class", "__class__"),
    Case(
        25,
        "regime-proto",
        regime_of("regime-proto", "__proto__"),
        (Says("unknown-regime", "/results/__proto__", '"__proto__" is not a regime'),),
    ),
    Case(
        26,
        "task-missing",
        without_task("task-missing"),
        (Says("missing-task", "/results/full", '1 task has no scores in "full": promoter_tata'),),
    ),
    unknown_task(26, "task-extra", "enhancers"),
    unknown_task(26, "task-in-two-spellings", "Promoter_TATA", '; "promoter_tata" exists already'),
]

_LONG = "a" * 300
IDS = [
    model_id(29, "traversal", "../../.github/workflows/x", "bad-model-id", "reserved-model-id"),
    model_id(30, "absolute-path", "/etc/passwd", "bad-model-id"),
    model_id(30, "backslash", "a\\\\b", "bad-model-id"),
    model_id(30, "drive-letter", "C:model", "bad-model-id"),
    model_id(30, "home", "~root", "bad-model-id"),
    model_id(32, "cyrillic", "dnab\u0435rt-2", "bad-model-id"),
    model_id(32, "hyphen-that-is-none", "dnabert\u20112", "bad-model-id"),
    model_id(32, "kelvin-sign", "\u212amer", "bad-model-id"),
    model_id(32, "ligature", "\ufb01nder", "bad-model-id"),
    model_id(32, "full-width", "\uff24NABERT", "bad-model-id"),
    model_id(33, "leading-space", " dnabert", "bad-model-id"),
    model_id(33, "trailing-space", "dnabert ", "bad-model-id"),
    model_id(33, "trailing-dot", "dnabert.", "reserved-model-id"),
    model_id(33, "trailing-newline", "dnabert\\n", "bad-model-id"),
    model_id(33, "empty", "", "bad-model-id"),
    model_id(34, "con", "con", "reserved-model-id"),
    model_id(34, "nul", "NUL", "reserved-model-id"),
    model_id(34, "aux-with-ending", "aux.json", "reserved-model-id"),
    model_id(34, "port", "com1.weights", "reserved-model-id"),
    model_id(34, "git", ".git", "bad-model-id", "reserved-model-id"),
    model_id(34, "gitmodules", ".gitmodules", "bad-model-id"),
    model_id(34, "leading-hyphen", "-rf", "bad-model-id"),
    model_id(34, "leading-dot", ".hidden", "bad-model-id"),
    model_id(34, "lock", "model.lock", "reserved-model-id"),
    model_id(34, "two-dots", "a..b", "reserved-model-id"),
    model_id(35, "of-300-characters", _LONG, "bad-model-id"),
    model_id(35, "of-129-characters", "b" * 129, "bad-model-id"),
]


def hidden_in_id(number: int, name: str, text: str, point: str, seen: str) -> Case:
    content = edited(f"id-{name}", "model_id", Raw(f'{MARK * 2}"{text}"'))
    says = (
        Says("bad-model-id", "/model_id", f'model_id is "{seen}"'),
        Says(
            "forbidden-character",
            "/model_id",
            f"the string contains {point}, which hides or reorders text",
        ),
    )
    return Case(number, f"id-{name}", content, says)


HIDDEN_IN_IDS = [
    hidden_in_id(30, "nul", "a\\u0000b", "U+0000", "a\\u0000b"),
    hidden_in_id(33, "zero-width", "dna\u200bbert", "U+200B", "dna\\u200bbert"),
    hidden_in_id(33, "right-to-left", "dna\u202ebert", "U+202E", "dna\\u202ebert"),
]

REJECTED = [*RANGES, *UNKNOWN_FIELDS, *TASKS, *IDS, *HIDDEN_IN_IDS]


def sound(
    number: int, name: str, path: str = "", value: Any = None, says: tuple[Says, ...] = ()
) -> Case:
    return Case(number, name, edited(name, path, value) if path else small(name), says)


def constant(name: str) -> Any:
    document = small(name)
    results = document["results"]
    results[Raw(f'{MARK * 3}"full"')] = {
        task: {"MCC": 0.5, "Acc": 0.75, "F1": 0.75} for task in results.pop("full")
    }
    return document


ACCEPTED = [
    sound(21, "minus-zero-score", f"{CELL}/MCC", Raw("-0.0")),
    sound(21, "zero-written-long", f"{CELL}/MCC", Raw("0.0e-999")),
    sound(22, "score-of-1", f"{CELL}/Acc", 1),
    sound(22, "score-of-0", f"{CELL}/Acc", 0),
    sound(22, "score-one-double-below-1", f"{CELL}/Acc", 0.9999999999999999),
    sound(22, "mcc-of-minus-1", f"{CELL}/MCC", -1),
    sound(22, "mcc-just-below-0", f"{CELL}/MCC", -0.01),
    Case(23, "seventeen-digits", edited("digits", f"{CELL}/MCC", Raw("0.73677765437070472"))),
    Case(23, "shortest-form", edited("digits", f"{CELL}/MCC", Raw("0.7367776543707047"))),
    Case(
        27,
        "all-scores-equal",
        constant("all-scores-equal"),
        tuple(
            Says("all-scores-equal", "/results/full", f'all 3 values of {m} in "full" are {v}')
            for m, v in (("Acc", 0.75), ("F1", 0.75), ("MCC", 0.5))
        ),
    ),
    sound(30, "id-that-is-plain", "model_id", "DNABERT-2.v1_full"),
    sound(35, "id-of-128-characters", "model_id", "c" * 128),
    sound(63, "minimal"),
    sound(
        63,
        "non-ascii-author",
        "meta/submitted_by",
        "\u00c9lodie M\u00fcller, \u738b\u82b3, \u0395\u03bb\u03ad\u03bd\u03b7 \U0001f9ec",
    ),
    sound(
        63, "escapes", "meta/training_data", Raw('"\\ud83e\\uddec \\"human\\" \\/ \\t mouse\\n"')
    ),
    Case(63, "format-1-1", small_v11("format-1-1"), also=()),
]
