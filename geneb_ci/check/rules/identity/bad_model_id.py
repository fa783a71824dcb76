"""bad-model-id: the model_id is not a plain ASCII name."""

from geneb_ci.check.rule import Rule, reported
from geneb_ci.common.finding import Severity

RULE = Rule(
    id="bad-model-id",
    severity=Severity.ERROR,
    what="The model_id is not a plain ASCII name.",
    why=(
        "The id is a file name, a key and a label at once: a slash, a look-alike letter or a "
        "hidden character makes it another file or another model."
    ),
    fix=(
        "Use 1 to 128 of the characters A-Z a-z 0-9 . _ -, beginning with a letter or a digit, "
        "and name the file after it."
    ),
    check=reported("bad-model-id", __name__),
)
