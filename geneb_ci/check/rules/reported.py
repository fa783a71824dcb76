"""Rules whose faults are found while a file is read: they have texts, and no logic of their own."""

from geneb_ci.check.need import Need
from geneb_ci.check.rule import Rule, reported

STRUCTURE: tuple[Rule, ...] = (
    reported(
        "structure",
        "irregular-file",
        what="The submission is a link, a folder, a pipe or a device.",
        why="A link can point at any file of the machine that reads it, and a pipe never ends.",
        fix="Put the JSON text itself at this path, as an ordinary file (git mode 100644).",
    ),
    reported(
        "structure",
        "empty-file",
        what="The file has no text.",
        why="An empty file would pass every check that looks for wrong values.",
        fix="Write the submission with `geneb-harness run --submission FILE`, and look whether the "
        "disk was full.",
    ),
    reported(
        "structure",
        "file-too-large",
        what="The file is larger than any honest submission.",
        why="A submission with every optional field has about 250 kB; more is read by nobody and "
        "costs every reader.",
        fix="Remove what is not part of the format: predictions and logs belong elsewhere.",
    ),
    reported(
        "structure",
        "wrong-encoding",
        what="The bytes are not UTF-8, or begin with a byte order mark.",
        why="JSON is UTF-8 (RFC 8259); other readers of the same bytes would see another "
        "text, or none.",
        fix="Save the file as UTF-8 without a byte order mark, uncompressed; in Python: open(path, "
        '"w", encoding="utf-8").',
    ),
    reported(
        "structure",
        "lfs-pointer",
        what="The file is a Git LFS pointer.",
        why="The pointer names the submission but does not hold it, so nothing can be checked.",
        fix='Run `git lfs untrack "*.json"`, add the file again and commit it: submissions '
        "are small "
        "and live in git itself.",
    ),
    reported(
        "structure",
        "invalid-json",
        what="The text is not JSON as RFC 8259 has it.",
        why="Programs repair broken JSON in different ways, so they would not agree on the scores.",
        fix="Mend the place that is named; write the file with a JSON library rather than by hand.",
    ),
    reported(
        "structure",
        "too-deep",
        what="Values are nested deeper than the format ever goes.",
        why="Deep nesting exhausts the stack of many readers; a submission has six levels.",
        fix="Remove the nesting at the place that is named.",
    ),
    reported(
        "structure",
        "too-many-values",
        what="The document has more values than the format can hold.",
        why="A small file with many values can take a thousand times its size in memory.",
        fix="Remove what is not part of the format.",
    ),
    reported(
        "structure",
        "duplicate-key",
        what="A key stands twice in one object.",
        why="Readers disagree on which of the two counts: one would check a score and "
        "another publish a different one.",
        fix="Keep one of the two and delete the other.",
    ),
    reported(
        "structure",
        "non-finite-number",
        what="A number is NaN or infinite, or would be read as infinity.",
        why="NaN passes every comparison as neither too small nor too large, and spoils "
        "every mean it enters.",
        fix="Find out why the score could not be computed, run that task again, and write "
        "the number; a cell that cannot be measured is a declared gap (format 1.1).",
    ),
    reported(
        "structure",
        "unrepresentable-number",
        what="A number is too long or too small to be read as it is written.",
        why="What is published would differ from what was submitted.",
        fix="Write the number as your language prints a double: at most 17 significant digits.",
    ),
    reported(
        "structure",
        "lone-surrogate",
        what="A text holds half of a surrogate pair.",
        why="It is no character: it cannot be written as UTF-8, so it breaks whatever shows "
        "or stores it.",
        fix="Write the character itself as UTF-8, or both halves of the pair.",
    ),
    reported(
        "structure",
        "forbidden-character",
        what="A text holds a control character, or one that hides or reorders text.",
        why="Such characters make one name look like another, or write over what a terminal shows.",
        fix="Delete the character that is named and type the text again.",
    ),
    reported(
        "structure",
        "not-an-object",
        what="The document is not a JSON object.",
        why="A submission is an object with named fields; a list, a text or null has none.",
        fix="Start from the file that `geneb-harness run --submission FILE` writes.",
    ),
    reported(
        "structure",
        "unknown-schema-version",
        what="The schema_version is missing or unknown.",
        why="The version says how the rest is to be read; guessing it could misread every score.",
        fix='Set "schema_version" to "1.0" or, with run details, to "1.1".',
    ),
    reported(
        "structure",
        "missing-field",
        what="A required field is missing.",
        why="The board, or another person who repeats the run, needs it.",
        fix="Add the field; its meaning stands in schemas/submission-1.0.schema.json and "
        "submission-1.1.schema.json.",
    ),
    reported(
        "structure",
        "unknown-field",
        what="A field is not part of this format version.",
        why="A misspelt field is silently ignored by readers, so its value would be lost.",
        fix='Correct the name, remove the field, or set "schema_version" to the version that '
        "has it.",
    ),
    reported(
        "structure",
        "wrong-type",
        what="A value has the wrong JSON type.",
        why="A score in quotes or true in place of 1 is read as a number by some programs "
        "and refused by others.",
        fix="Write the value in the type that is expected, without quotes around numbers.",
    ),
    reported(
        "structure",
        "wrong-length",
        what="A text or a list is longer or shorter than the format allows.",
        why="Long texts break the table they are shown in; the model card is the place for prose.",
        fix="Shorten the text, or move it to the model card.",
    ),
    reported(
        "structure",
        "malformed-value",
        what="A value is not of the form its field demands.",
        why="A digest, a commit, a date or a keyword of another form cannot be compared with "
        "anything.",
        fix="Write the value in the form that is expected.",
    ),
)
"""In the order in which a reader meets them: the file, the text, the values, the fields."""

MISSING_METRIC = reported(
    "coverage",
    "missing-metric",
    what="A cell lacks one of the metrics.",
    why="A mean over fewer tasks is not comparable with the others, and the three metrics prove "
    "one another.",
    fix="Add the metric: MCC, Acc and F1 come from the same predictions.",
)

UNKNOWN_METRIC = reported(
    "coverage",
    "unknown-metric",
    what="A cell has a metric that the benchmark does not.",
    why="A misspelt metric is silently ignored by readers.",
    fix="Use exactly MCC, Acc and F1.",
)

BAD_MODEL_ID = reported(
    "identity",
    "bad-model-id",
    what="The model_id is not a plain ASCII name.",
    why="The id is a file name, a key and a label at once: a slash, a look-alike letter or a "
    "hidden character makes it another file or another model.",
    fix="Use 1 to 128 of the characters A-Z a-z 0-9 . _ -, beginning with a letter or a digit, "
    "and name the file after it.",
)

BAD_PARAMETER_COUNT = reported(
    "identity",
    "bad-parameter-count",
    what="The parameter count is negative or absurdly large.",
    why="The count places the model in the plot of score against size.",
    fix="Give the number of parameters of the encoder as an integer, such as 117000000; 0 for a "
    "method without parameters.",
)

UNREADABLE_CARD = reported(
    "card",
    "unreadable-card",
    what="The model card cannot be read.",
    why="What reviewers cannot read tells them nothing; a link can point anywhere.",
    fix="Save the card as an ordinary UTF-8 Markdown file of less than 100 kB.",
    needs=(Need.CARD,),
)

CHECK_CRASHED = reported(
    "internal",
    "check-crashed",
    what="A rule of geneb-ci failed on this submission.",
    why="The fault is ours, but what that rule looks for was not looked for: nothing passes "
    "unchecked.",
    fix="Report it to the maintainers with the file; the other findings stand.",
)
