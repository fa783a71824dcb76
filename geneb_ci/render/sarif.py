"""Renders findings as SARIF 2.1.0, for code scanning and editors."""

import hashlib
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from geneb_ci import __version__
from geneb_ci.check.registry import BY_ID
from geneb_ci.check.report import Report
from geneb_ci.check.rule import AnyRule
from geneb_ci.common.finding import Finding
from geneb_ci.render.formats import (
    DEFAULT_WIDTH,
    finding_sentence,
    is_complete,
    nothing_checked_reason,
    skipped_rules,
    sorted_findings,
)
from geneb_ci.render.markdown import prose_text
from geneb_ci.render.plain import log_safe_json, visible
from reference_harness.formats.text import well_formed

_BRACES = str.maketrans({"{": "{{", "}": "}}"})
"""Escapes of braces, which mark placeholders in a SARIF message."""
_BRACKETS = str.maketrans({"\\": r"\\", "[": r"\[", "]": r"\]"})
"""Escapes of brackets, which mark links in a SARIF message."""


def escape(text: str) -> str:
    """Escape text of a message, in which SARIF gives {0} (3.11.5) and [x](y) (3.11.6) a meaning."""
    text = visible(text).translate(_BRACES)
    return text.translate(_BRACKETS) if "](" in text else text


def render(report: Report, *, color: bool = False, width: int = DEFAULT_WIDTH) -> str:  # noqa: ARG001 (one signature)
    """Render one run, with descriptions of the rules of its results."""
    findings = sorted_findings(report)
    rules = sorted({finding.rule for finding in findings})
    driver = {
        "name": "geneb-ci",
        "version": __version__,
        "rules": [_descriptor(rule, BY_ID.get(rule)) for rule in rules],
    }
    return log_safe_json(
        {
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [
                {
                    "tool": {"driver": driver},
                    "columnKind": "unicodeCodePoints",
                    "invocations": [_invocation(report)],
                    "results": list(_sarif_results(findings, rules)),
                }
            ],
        }
    )


def _descriptor(slug: str, rule: AnyRule | None) -> dict[str, Any]:
    """Return the description of a rule; help links to RULES.md, as helpUri must be absolute."""
    if rule is None:
        return {"id": visible(slug)}
    return {
        "id": rule.id,
        "shortDescription": {"text": escape(rule.what)},
        "fullDescription": {"text": escape(f"{rule.what} {rule.why}")},
        "help": {
            "text": escape(f"{rule.fix} See RULES.md#{rule.id}."),
            "markdown": f"**Why:** {prose_text(rule.why)}\n\n**Fix:** {prose_text(rule.fix)}\n\n"
            f"[{rule.id} in RULES.md](RULES.md#{rule.id})",
        },
        "defaultConfiguration": {"level": rule.severity.value},
        "properties": {"tags": [rule.family]},
    }


def _invocation(report: Report) -> dict[str, Any]:
    """Return whether everything was checked, with notices of what was not."""
    messages = [f"{error.message}. {error.fix}".rstrip() for error in report.unreadable]
    if nothing_checked_reason(report):
        messages.append(nothing_checked_reason(report))
    notices = [_notice("error", text) for text in messages]
    notices += [_notice("note", unmet.message) for unmet in skipped_rules(report)]
    return {
        "executionSuccessful": is_complete(report),
        **({"toolExecutionNotifications": notices} if notices else {}),
    }


def _notice(level: str, text: str) -> dict[str, Any]:
    """Return a message of a severity."""
    return {"level": level, "message": {"text": escape(text)}}


def _sarif_results(findings: list[Finding], rules: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the findings as results of SARIF."""
    count_by_fingerprint: Counter[str] = Counter()
    for finding in findings:
        identity = _identity(finding)
        count_by_fingerprint[identity] += 1
        yield {
            "ruleId": visible(finding.rule),
            "ruleIndex": rules.index(finding.rule),
            "level": finding.severity.value,
            "message": {"text": escape(f"{finding_sentence(finding)}. {finding.fix}".rstrip())},
            "locations": [_location(finding)],
            # By default GitHub hashes the line, and many submissions have only one line.
            "partialFingerprints": {
                "primaryLocationLineHash": f"{identity}:{count_by_fingerprint[identity]}"
            },
        }


def _location(finding: Finding) -> dict[str, Any]:
    """Return file, line, column and JSON Pointer of a finding."""
    location: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": {"uri": _uri(finding.file)},
            "region": {"startLine": finding.line, "startColumn": finding.column},
        }
    }
    if finding.pointer:
        member = {"name": finding.pointer.rsplit("/", 1)[-1], "fullyQualifiedName": finding.pointer}
        location["logicalLocations"] = [member]
    return location


def _uri(file: str) -> str:
    """Return a path as a URI reference, relative to the root of the repository."""
    path = quote(well_formed(file), safe="/")
    return f"file:///{path.lstrip('/')}" if path.startswith("/") else path


def _identity(finding: Finding) -> str:
    """Return a finding's identity across commits: no line and value, as these change."""
    identifying_text = f"{finding.rule}\0{finding.file}\0{finding.pointer}"
    return hashlib.sha256(well_formed(identifying_text).encode()).hexdigest()[:16]
