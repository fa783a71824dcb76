"""wrong-encoding: the bytes are not UTF-8, or begin with a byte order mark."""

from geneb_ci.check.rule import Rule, reported
from geneb_ci.common.finding import Severity

RULE = Rule(
    id="wrong-encoding",
    severity=Severity.ERROR,
    what="The bytes are not UTF-8, or begin with a byte order mark.",
    why=(
        "JSON is UTF-8 (RFC 8259); other readers of the same bytes would see another text, or none."
    ),
    fix=(
        "Save the file as UTF-8 without a byte order mark, uncompressed; in Python: open(path, "
        '"w", encoding="utf-8").'
    ),
    check=reported("wrong-encoding", __name__),
)
