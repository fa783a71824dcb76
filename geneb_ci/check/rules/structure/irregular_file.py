"""irregular-file: the submission is a link, a folder, a pipe or a device."""

from geneb_ci.check.rule import Rule, reported
from geneb_ci.common.finding import Severity

RULE = Rule(
    id="irregular-file",
    severity=Severity.ERROR,
    what="The submission is a link, a folder, a pipe or a device.",
    why="A link can point at any file of the machine that reads it, and a pipe never ends.",
    fix="Put the JSON text itself at this path, as an ordinary file (git mode 100644).",
    check=reported("irregular-file", __name__),
)
