"""Reports as a run would leave them, and what an attacker would put into one."""

from collections import Counter
from typing import Any

from geneb_ci.check.registry import BY_ID
from geneb_ci.check.runner import Report
from geneb_ci.common.errors import NothingChecked
from geneb_ci.common.finding import Finding, Need

ESC = "\x1b"
HOSTILE_FILE = f"::error::x\n@team<script>#1 {ESC}[2J\u202ejson.json"
HOSTILE_TEXT = (
    "`` ![x](http://t/p.png) [x](//evil) <img src=x onerror=alert(1)> <!-- geneb-ci --> "
    f"@org/team fixes #1 ##[error]x ::add-mask::0 %0A::stop-commands::t\r\n{ESC}]0;x\x07\x9b31m"
    "\u2028\u200b]]> &amp; {0} \ud800 |"
)
HOSTILE_LINE = f'  "display": "{HOSTILE_TEXT}",'

BOARD = "submissions/GROVER.json"
LINE = '"F1":0.84674},"H3K14ac":{"MCC":1.7,"Acc":0.69137,"F1":0.68030},"H3K36me3":{"MCC":0.4089321'


def finding(rule: str, file: str, message: str, **over: Any) -> Finding:
    known = BY_ID[rule]
    members: dict[str, Any] = {
        "pointer": "",
        "line": 1,
        "column": 1,
        "found": "",
        "expected": "",
        "fix": known.fix,
    }
    return Finding(
        rule=rule, severity=known.severity, message=message, file=file, **{**members, **over}
    )


def score(number: object, column: int) -> Finding:
    return finding(
        "score-out-of-range",
        BOARD,
        f"MCC is {number}",
        pointer=f"/results/full/H3K{column}ac/MCC",
        column=column,
        found=str(number),
        expected="at most 1",
    )


def mixed() -> Report:
    """Several files, all severities, a card, an unreadable file, hostile text in every field."""
    report = Report(rules=61, benchmarks={"geneb-100": "5a" * 32})
    report.files = ["submissions/evo-1-131k-base.json", BOARD, HOSTILE_FILE, "submissions/ok.json"]
    scores = [score(1.7, 300 + step) for step in range(12)]
    others = [
        finding(
            "missing-task",
            BOARD,
            '3 tasks have no scores in "10shot": H3, H3K4me1 and promoter_tata',
            pointer="/results/10shot",
            column=9120,
            found="97 of 100 tasks",
            expected="100 tasks",
        ),
        finding(
            "no-run-details",
            BOARD,
            "format 1.0 has no run details: this row can only be audited manually",
            pointer="/schema_version",
            column=19,
            found='"1.0"',
            expected='"1.1"',
        ),
        finding(
            "placeholder-in-card",
            "submissions/cards/GROVER.md",
            '"Pooling" still has the placeholder "<mean or cls>"',
            line=7,
            found='"<mean or cls>"',
            expected="a statement about this model",
        ),
        finding(
            "missing-card",
            "submissions/evo-1-131k-base.json",
            'there is no model card for "evo-1-131k-base"',
            pointer="/model_id",
            line=3,
            column=15,
            found="nothing",
            expected="a file evo-1-131k-base.md beside the other cards",
        ),
        finding(
            "unknown-field",
            HOSTILE_FILE,
            HOSTILE_TEXT,
            pointer=f"/meta/{HOSTILE_TEXT}",
            line=2,
            column=4,
            found=HOSTILE_TEXT,
            expected=f"no {HOSTILE_TEXT}",
            fix=f"Remove {HOSTILE_TEXT} and `{HOSTILE_TEXT}`",
        ),
    ]
    for item in (*scores, *others):
        report.findings.append(item)
    report.excerpts = dict.fromkeys(scores, (LINE, LINE.index("1.7")))
    report.excerpts[others[2]] = ("- **Pooling:** <mean or cls>", 0)
    report.excerpts[others[3]] = ('  "model_id": "evo-1-131k-base",', 14)
    report.excerpts[others[4]] = (HOSTILE_LINE, HOSTILE_LINE.index("<img"))
    report.unreadable = [
        NothingChecked(
            "submissions/x.json: cannot be read: Permission denied",
            "check the path and its permissions",
        ),
        NothingChecked(f"{HOSTILE_FILE}: cannot be read: {HOSTILE_TEXT}", HOSTILE_TEXT),
    ]
    return report


def alone() -> Report:
    """One file of two without the rows that some rules need, none with its card."""
    report = Report(["a.json", "b.json"], rules=61)
    report.unreadable = [NothingChecked("nul.json: no such file", "name a submission")]
    report.skipped = {
        Need.CARD: Counter({"missing-card": 2, "incomplete-card": 2}),
        Need.OTHER_ROWS: Counter({"near-copy": 1}),
    }
    return report


def clean() -> Report:
    report = Report(rules=61, benchmarks={"geneb-100": "5a" * 32})
    report.files = [f"submissions/model-{number:02}.json" for number in range(1, 4)]
    return report


def empty() -> Report:
    return Report()
