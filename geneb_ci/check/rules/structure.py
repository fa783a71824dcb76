"""Texts of the rules on the file as a whole; the parser finds and reports these errors itself."""

from geneb_ci.check.rule import Rule, reading_rule

CHECK_CRASHED = reading_rule(
    "internal",
    "check-crashed",
    what="A rule of geneb-ci crashed on this submission.",
    why="This is a bug of geneb-ci. The submission does not pass, because the rule did not run.",
    fix="Report the bug with the file to the maintainers; the other findings are valid.",
)

REPORTED: tuple[Rule, ...] = (
    reading_rule(
        "structure",
        "irregular-file",
        what="The submission is a link, a folder, a pipe or a device.",
        why="A link can point to any file on the machine that reads it, and a pipe may never end.",
        fix="Put the JSON file itself at this path, as a regular file (git mode 100644).",
    ),
    reading_rule(
        "structure",
        "empty-file",
        what="The file is empty.",
        why="An empty file would pass every check that looks for wrong values.",
        fix="Write the submission with `geneb-harness run --submission FILE`, and check whether "
        "the disk was full.",
    ),
    reading_rule(
        "structure",
        "file-too-large",
        what="The file is too large.",
        why="A submission with every optional field has about 250 kB; a much larger file slows "
        "down every program that reads it.",
        fix="Remove what is not part of the format, such as predictions or logs.",
    ),
    reading_rule(
        "structure",
        "wrong-encoding",
        what="The bytes are not UTF-8, or begin with a byte order mark.",
        why="JSON files are UTF-8 (RFC 8259); other programs would read another text, or none.",
        fix="Save the file as UTF-8 without a byte order mark, uncompressed; in Python: open(path, "
        '"w", encoding="utf-8").',
    ),
    reading_rule(
        "structure",
        "lfs-pointer",
        what="The file is a Git LFS pointer.",
        why="The pointer does not contain the submission, the card or the extractor, so nothing "
        "can be checked.",
        fix="Run `git lfs untrack` with the pattern of the file, add it again and commit it: a "
        "submission is small enough for git itself.",
    ),
    reading_rule(
        "structure",
        "merge-conflict",
        what="The file has merge conflict markers.",
        why="Git could not decide between two versions of these lines, and nobody has since: the "
        "file is neither of the two.",
        fix="Keep one of the two versions in each conflict, delete the lines with <<<<<<<, ======= "
        "and >>>>>>>, then `git add FILE` and commit.",
    ),
    reading_rule(
        "structure",
        "foreign-format",
        what="The file is of another kind, or of another program.",
        why="Its members mean something else, so nothing of it can be checked as a submission.",
        fix="Collect the results of the model into a submission: `geneb-ci pack FOLDER`.",
    ),
    reading_rule(
        "structure",
        "invalid-json",
        what="The text is not valid JSON (RFC 8259).",
        why="Programs handle invalid JSON in different ways and would read different scores.",
        fix="Fix the JSON at this position; better, write the file with a JSON library.",
    ),
    reading_rule(
        "structure",
        "too-deep",
        what="Values are nested too deeply.",
        why="Deep nesting crashes many JSON parsers; a submission has at most six levels.",
        fix="Remove the nesting at this position.",
    ),
    reading_rule(
        "structure",
        "too-many-values",
        what="The document has more values than the format can hold.",
        why="A file with very many values can take a thousand times its size in memory.",
        fix="Remove what is not part of the format.",
    ),
    reading_rule(
        "structure",
        "duplicate-key",
        what="A key occurs twice in one object.",
        why="Programs disagree on which of the two counts: one would check a score, and another "
        "publish a different one.",
        fix="Delete one of the two.",
    ),
    reading_rule(
        "structure",
        "non-finite-number",
        what="A number is NaN or infinite, or would be parsed as infinity.",
        why="NaN passes range checks, because every comparison is false, and makes every mean NaN.",
        fix="Find out why the score could not be computed and run the task again. If it cannot be "
        'run, declare the cell missing under "gaps" (format 1.1).',
    ),
    reading_rule(
        "structure",
        "unrepresentable-number",
        what="A number has too many digits, or is too close to 0, for a double.",
        why="The published number would differ from the submitted one.",
        fix="Write the number as a double, with at most 17 significant digits.",
    ),
    reading_rule(
        "structure",
        "lone-surrogate",
        what="A string contains half of a surrogate pair.",
        why="It is not a character and cannot be encoded as UTF-8, so programs fail to show or "
        "store it.",
        fix="Write the character itself as UTF-8, or both halves of the pair.",
    ),
    reading_rule(
        "structure",
        "forbidden-character",
        what="A string contains a control character, or one that hides or reorders text.",
        why="Such characters make one name look like another, or change what a terminal shows.",
        fix="Delete the character, or type the string again.",
    ),
    reading_rule(
        "structure",
        "not-an-object",
        what="The document is not a JSON object.",
        why="A submission is an object with named fields; a list, a string or null has none.",
        fix="Start from the file that `geneb-harness run --submission FILE` writes.",
    ),
    reading_rule(
        "structure",
        "unknown-schema-version",
        what="The schema_version is missing or unknown.",
        why="The version determines how the rest is read; a wrong guess could misread every score.",
        fix='Set "schema_version" to "1.1", or to "1.0" for a file without run details.',
    ),
    reading_rule(
        "structure",
        "missing-field",
        what="A required field is missing.",
        why="The board needs it, or somebody who repeats the run.",
        fix="Add the field; schemas/submission-1.0.schema.json, 1.1 and 1.2 describe it.",
    ),
    reading_rule(
        "structure",
        "unknown-field",
        what="A field is not part of this format version.",
        why="Programs ignore fields that they do not know, so the value would be lost.",
        fix='Correct the name, remove the field, or set "schema_version" to the version that has '
        "this field.",
    ),
    reading_rule(
        "structure",
        "wrong-type",
        what="A value has the wrong JSON type.",
        why='Some programs read "0.5" or true as a number, others reject it.',
        fix="Write the value in the expected type; do not put numbers in quotes.",
    ),
    reading_rule(
        "structure",
        "wrong-length",
        what="A string or a list is longer or shorter than the format allows.",
        why="Long strings break the table on the board; details belong in the model card.",
        fix="Shorten the string, or move it to the model card.",
    ),
    reading_rule(
        "structure",
        "malformed-value",
        what="A value does not have the form that its field requires.",
        why="A malformed digest, commit, date or keyword cannot be compared with anything.",
        fix="Write the value in the expected form.",
    ),
    CHECK_CRASHED,
)
"""The rules in the order in which a file is read: file, text, values, fields."""
