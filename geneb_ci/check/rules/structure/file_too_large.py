"""file-too-large: the file is larger than any honest submission."""

from geneb_ci.check.rule import Rule, reported
from geneb_ci.common.finding import Severity

RULE = Rule(
    id="file-too-large",
    severity=Severity.ERROR,
    what="The file is larger than any honest submission.",
    why=(
        "A submission with every optional field has about 250 kB; more is read by nobody and "
        "costs every reader."
    ),
    fix="Remove what is not part of the format: predictions and logs belong elsewhere.",
    check=reported("file-too-large", __name__),
)
