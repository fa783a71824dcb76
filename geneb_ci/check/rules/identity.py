"""Rules on the id and the display name: well-formed, and different from those of other rows."""

import re
from collections.abc import Iterator

from geneb_ci.check.rule import Context, Rule, reading_rule
from geneb_ci.common.errors import UsageProblem
from geneb_ci.common.finding import Fault, Need, Severity, first_and_more
from geneb_ci.submission.names import MARKS_PER_LETTER_MAX, has_stacked_marks, scripts_of, skeletons
from geneb_ci.submission.peers import normal_model_id
from geneb_ci.submission.structure import wrong_form, wrong_length
from reference_harness.formats.submission_terms import MODEL_ID_MAX, MODEL_ID_PATTERN
from reference_harness.formats.text import quoted

_WINDOWS_DEVICES = {
    "con",
    "prn",
    "aux",
    "nul",
    *(f"{port}{n}" for port in ("com", "lpt") for n in range(10)),
}
"""Names of devices, which Windows allows for no file."""
_RESERVED_ENDINGS = (".json", ".md", ".lock", ".git", ".")
"""Endings of an id that would look like another kind of file, or that a file system removes."""


def reserved_model_id(context: Context) -> Iterator[Fault]:
    """Report an id that some system cannot store, or that looks like another kind of file."""
    if fault := _reserved_fault(context.model_id):
        yield fault


def _reserved_fault(model_id: str) -> Fault | None:
    """Return the fault of a reserved model id; None for any other id."""
    lower = model_id.casefold()
    if (
        lower.split(".")[0] not in _WINDOWS_DEVICES
        and not lower.endswith(_RESERVED_ENDINGS)
        and ".." not in lower
    ):
        return None
    return Fault(
        RESERVED_MODEL_ID.id,
        ("model_id",),
        f"model_id is {quoted(model_id)}, a reserved name",
        quoted(model_id),
        "a name that every file system can store",
    )


RESERVED_MODEL_ID = Rule(
    id="reserved-model-id",
    severity=Severity.ERROR,
    what="The model_id is a name that file systems or git reserve.",
    why=(
        "Windows cannot check out `aux.json`, git rejects refs that end in .lock, and two dots "
        "can lead out of a folder."
    ),
    fix="Choose another id, such as the name of the weights with the model size.",
    check=reserved_model_id,
)


def model_id_collision(context: Context) -> Iterator[Fault]:
    """Report each other file whose id differs only in letter case and separators."""
    if not context.model_id:
        return
    for other_path in context.peers.paths_by_normal_id.get(normal_model_id(context.model_id), ()):
        if other_path != context.document.path:
            yield Fault(
                MODEL_ID_COLLISION.id,
                ("model_id",),
                f"model_id {quoted(context.model_id)} collides with {quoted(other_path.name)}",
                quoted(context.model_id),
                "an id that differs in more than letter case and separators (- _ .)",
            )


MODEL_ID_COLLISION = Rule(
    id="model-id-collision",
    severity=Severity.ERROR,
    what="Two ids differ only in letter case or in the separators - _ .",
    why="On some file systems the two are one file, and readers confuse them.",
    fix=(
        "Choose an id that names the difference: size, context length, training corpus. To "
        "correct your own row, edit its file."
    ),
    check=model_id_collision,
    needs=(Need.OTHER_ROWS,),
)


def refuse_bad_id(model_id: str) -> None:
    """Raise UsageProblem for an id that `check` would report, before any other work.

    The message is that of the rule `bad-model-id` or `reserved-model-id`.
    """
    (bad_id_rule,) = REPORTED
    objection, fix = None, bad_id_rule.fix
    if not re.fullmatch(MODEL_ID_PATTERN, model_id):
        objection = wrong_form(("model_id",), model_id, "")
    elif len(model_id) > MODEL_ID_MAX:
        objection = wrong_length(("model_id",), model_id, f"at most {MODEL_ID_MAX}")
    elif fault := _reserved_fault(model_id):
        objection, fix = fault, RESERVED_MODEL_ID.fix
    if objection is not None:
        raise UsageProblem(f"{objection.message}; expected {objection.expected}", fix)


def file_name_mismatch(context: Context) -> Iterator[Fault]:
    """Report a file in a repository that is not named <model_id>.json."""
    if not context.is_in_repository or not context.model_id or "bad-model-id" in context.reported:
        return
    actual, expected = context.document.path.name, f"{context.model_id}.json"
    if actual != expected:
        yield Fault(
            FILE_NAME_MISMATCH.id,
            ("model_id",),
            f"the file is named {quoted(actual)}, but its model_id is {quoted(context.model_id)}",
            quoted(actual),
            quoted(expected),
        )


FILE_NAME_MISMATCH = Rule(
    id="file-name-mismatch",
    severity=Severity.ERROR,
    what="The file name is not <model_id>.json.",
    why=(
        "Rows are found, owned and corrected by file name: a file with the model_id of another "
        "model could replace its row."
    ),
    fix="Rename the file to <model_id>.json, or correct the model_id.",
    check=file_name_mismatch,
    needs=(Need.FOLDER,),
)


def blank_display_name(context: Context) -> Iterator[Fault]:
    """Report a display name without a letter or digit."""
    display = context.text("meta", "display")
    if display and not any(character.isalnum() for character in display):
        yield Fault(
            BLANK_DISPLAY_NAME.id,
            ("meta", "display"),
            f"the display name {quoted(display)} has no letter or digit",
            quoted(display),
            "a name with letters or digits",
        )


BLANK_DISPLAY_NAME = Rule(
    id="blank-display-name",
    severity=Severity.ERROR,
    what="The display name has no letter or digit.",
    why="Readers could not identify the row.",
    fix="Write the name under which the model is known.",
    check=blank_display_name,
)


def display_name_form(context: Context) -> Iterator[Fault]:
    """Report a display name with line ends or tabs, or with many marks on one letter."""
    display = context.text("meta", "display")
    if not display:
        return
    # Other line ends hide text: forbidden-character reports them.
    if display != display.strip(" \n\r\t") or any(blank in display for blank in "\n\r\t"):
        yield _form_fault(
            display, "has a line end, a tab, or a blank at its start or end", "one line of text"
        )
    if has_stacked_marks(display):
        objection = f"has more than {MARKS_PER_LETTER_MAX} combining marks in a row"
        yield _form_fault(
            display, objection, f"at most {MARKS_PER_LETTER_MAX} combining marks on a letter"
        )


def _form_fault(display: str, objection: str, expected: str) -> Fault:
    """Return the fault of a display name with characters that are not allowed."""
    message = f"display {quoted(display)} {objection}"
    return Fault(DISPLAY_NAME_FORM.id, ("meta", "display"), message, quoted(display), expected)


DISPLAY_NAME_FORM = Rule(
    id="display-name-form",
    severity=Severity.ERROR,
    what="The display name is not one line of readable text.",
    why="It would break the table, or cover the rows above and below it.",
    fix="Write the name on one line, without blanks at its ends and with the usual letters.",
    check=display_name_form,
)


def confusable_name(context: Context) -> Iterator[Fault]:
    """Report each name that looks like that of another row, by Unicode TS 39."""
    names_by_path = {
        ("meta", "display"): context.text("meta", "display") or "",
        ("model_id",): context.model_id or "",
    }
    own_form = normal_model_id(context.model_id or "")
    for path, name in names_by_path.items():
        similar_names = {
            (other_path, other_name)
            for form in (skeletons(name) if name.strip() else ())
            for other_path, other_name in context.peers.names_by_skeleton.get(form, ())
            # Ids that differ only in case and separators are reported by model-id-collision.
            if other_path != context.document.path
            and (path[0] == "meta" or normal_model_id(other_name) != own_form)
        }
        if similar_names:
            similar_texts = [
                f"{quoted(other_name)} of {quoted(other_path.name)}"
                for other_path, other_name in sorted(similar_names)
            ]
            yield Fault(
                CONFUSABLE_NAME.id,
                path,
                f"{path[-1]} {quoted(name)} looks like {first_and_more(similar_texts)}",
                quoted(name),
                "a name that no other row has or resembles",
            )


CONFUSABLE_NAME = Rule(
    id="confusable-name",
    severity=Severity.ERROR,
    what="The display name or the id looks like the display name or the id of another row.",
    why="Readers would take one model for the other; letters of another script hide that.",
    fix=(
        "Write a name that differs visibly: size, context length, training corpus. To correct "
        "your own row, edit its file."
    ),
    check=confusable_name,
    needs=(Need.OTHER_ROWS,),
)


def mixed_scripts(context: Context) -> Iterator[Fault]:
    """Report a display name with more than one script."""
    display = context.text("meta", "display") or ""
    script_names = sorted(script.capitalize() for script in scripts_of(display))
    if len(script_names) > 1:
        yield Fault(
            MIXED_SCRIPTS.id,
            ("meta", "display"),
            f"display {quoted(display)} has letters of {' and '.join(script_names)}",
            ", ".join(script_names),
            "letters of one script",
        )


MIXED_SCRIPTS = Rule(
    id="mixed-scripts",
    severity=Severity.WARNING,
    what="The display name mixes letters of several scripts.",
    why="A Cyrillic or Greek letter among Latin ones looks like another name.",
    fix="Write the name with the letters of one script.",
    check=mixed_scripts,
)


REPORTED = (
    reading_rule(
        "identity",
        "bad-model-id",
        what="The model_id is not a plain ASCII name.",
        why="The id is used as file name, key and label: a slash, a look-alike letter or a hidden "
        "character would make it another file or another model.",
        fix="Use 1 to 128 of the characters A-Z a-z 0-9 . _ -, beginning with a letter or a digit, "
        "and name the file <model_id>.json.",
    ),
)
"""Rules that the reader of the file reports; only their texts are here."""
