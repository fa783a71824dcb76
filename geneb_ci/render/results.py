"""Results of the Python interface other than findings, and their HTML for notebooks.

Every text in the HTML is escaped, since names of models and messages come from contributors.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from geneb_ci.board.advice import Advice
from geneb_ci.common.files import write_files
from geneb_ci.render.formats import finding_sentence, sorted_findings, summary_line
from geneb_ci.render.table import Table

if TYPE_CHECKING:
    from geneb_ci.audit.compare.embedding_outcome import AnyOutcome
    from geneb_ci.audit.record.verify import Verification
    from geneb_ci.audit.trust.level import RatedSubmission
    from geneb_ci.check.report import Report
    from geneb_ci.common.errors import Exit
    from geneb_ci.receipt.compared import ComparedRegime
    from geneb_ci.render.rows import RowEvidence

TEXT_COLUMNS = 80
"""Columns of a text, unless another number is given."""


def findings_html(report: "Report") -> str:
    """Return the findings of a report as a table, with what could not be checked."""
    rows: list[tuple[object, ...]] = [
        (
            finding.severity,
            finding.rule,
            f"{finding.file}:{finding.line}:{finding.column}",
            finding_sentence(finding),
            finding.fix,
        )
        for finding in sorted_findings(report)
    ]
    rows += [("not checked", "", "", error.message, error.fix) for error in report.unreadable]
    head = ("severity", "rule", "place", "finding", "fix")
    return Table(head, rows).html(summary_line(report))


@dataclass(frozen=True)
class BuiltBoard:
    """The board of a folder of submissions."""

    files: Mapping[str, bytes]
    """Contents by file name: leaderboard.json, leaderboard_tasks.json and, with diagnostics,
    diagnostics.json; every score as a table in CSV and Parquet, with a codebook; further tables if
    they were requested."""
    models: int
    """Number of rows of the board."""
    unranked: tuple[str, ...]
    """Model and regime of each row that is not ranked because cells are missing."""
    unsized: tuple[str, ...]
    """Tasks whose size is unknown; if there are any, there are no diagnostics."""
    page: Callable[[], Mapping[str, bytes]]
    """Creates and returns the files of the page."""
    write_all: Callable[[Path], None]
    """Writes the board and its page into a folder, without holding all of it in memory."""
    tables: Mapping[str, bytes]
    """The files among `files` that were requested in addition to the board."""

    def rows(self, regime: str = "full") -> list[dict[str, Any]]:
        """Return the rows of a regime in leaderboard.json. Raises KeyError for another regime."""
        rows: list[dict[str, Any]] = self.to_value()["data"][regime]
        return rows

    def to_value(self) -> dict[str, Any]:
        """Return the parsed content of leaderboard.json."""
        value: dict[str, Any] = json.loads(self.to_json())
        return value

    def to_json(self) -> str:
        """Return the text of leaderboard.json."""
        return self.files["leaderboard.json"].decode()

    def write(self, folder: str | Path) -> None:
        """Write the files and the page, as `geneb-ci build --output FOLDER` does.

        Raises UsageProblem if the folder cannot be written, MachineFault if the disk is full.
        """
        self.write_all(Path(folder))
        write_files(Path(folder), self.tables)

    def _repr_html_(self) -> str:
        """Return the rows of the first regime as HTML for a notebook, highest macro MCC first."""
        regime, rows = next(iter(self.to_value()["data"].items()), ("", []))
        rows = sorted(rows, key=lambda row: (-row["macro_MCC"], row["model"]))
        table = [
            (number, row["model"], row.get("params", ""), row["macro_MCC"], row["micro_MCC"])
            for number, row in enumerate(rows, 1)
        ]
        head = ("", "model", "parameters", "macro MCC", "micro MCC")
        return Table(head, table).html(f"{self.models} models, regime {regime}")


class Recommendation(Advice):
    """Advice for one need: the tasks that match, the models, and the reasons."""

    def text(self, width: int = TEXT_COLUMNS) -> str:
        """Return what `geneb-ci recommend` prints, in `width` columns."""
        from geneb_ci.render.advice import advice_text

        return advice_text(self, width)

    def to_json(self) -> str:
        """Return what `geneb-ci recommend --format json` prints."""
        from geneb_ci.render.advice import advice_json

        return advice_json(self)

    def _repr_html_(self) -> str:
        """Return the models of each regime for a notebook, with the reasons."""
        from geneb_ci.board.reasons import without_backticks

        rows = [
            (
                regime_advice.regime,
                c.model,
                c.params,
                c.score,
                c.low,
                c.high,
                c.loss_bound,
                c.evidence,
            )
            for regime_advice in self.regimes
            for c in regime_advice.choices
        ]
        head = ("regime", "model", "parameters", "MCC", "from", "to", "loses at most", "evidence")
        return Table(head, rows).html(without_backticks(" ".join(self.why)))


class Verifications(list["Verification"]):
    """Verifications of audit records, in the order in which they were named."""

    rated: "Sequence[RatedSubmission]" = ()
    """The evidence of each submission that the records are about, if it was requested."""

    @property
    def hold(self) -> bool:
        """Whether every step of every record holds, and submissions have the requested evidence."""
        return all(verification.holds for verification in self) and self.suffice

    @property
    def suffice(self) -> bool:
        """Whether every submission has the evidence that was requested."""
        return all(submission.suffices for submission in self.rated)

    def text(self) -> str:
        """Return what `geneb-ci audit verify` prints."""
        from geneb_ci.render.audits import verification_text  # rich, cryptography

        return verification_text(self, self.rated)

    def to_json(self) -> str:
        """Return what `geneb-ci audit verify --format json` prints."""
        from geneb_ci.render.audits import verification_json

        return verification_json(self, self.rated)

    def _repr_html_(self) -> str:
        """Return one line per step that does not hold, or per record that was verified."""
        rows = [line for verification in self for line in _step_rows(verification)]
        verified_records = sum(verification.holds for verification in self)
        head = ("record", "step", "result", "message", "fix")
        return Table(head, rows).html(f"{len(self)} records: {verified_records} verified")


def _step_rows(verification: "Verification") -> Iterable[tuple[str, ...]]:
    """Return the lines of a verification in the table for notebooks."""
    if verification.holds:
        return [(verification.name, "", "verified", "", "")]
    steps = [
        (verification.name, s.name, str(s.state), s.message, s.fix) for s in verification.steps
    ]
    return [line for line in steps if line[2] != "holds"]


@dataclass(frozen=True)
class AuditResult:
    """The state of a file's audit after a call."""

    state: str
    """`agrees`, `differs`, or the stopping point: `dry run`, `to be published`, `to be logged`."""
    exit_code: "Exit"
    commitment: str = ""
    """The digest of the commitment, if it must be published now."""
    next: str = ""
    """The next command: it continues the audit, or commits its record."""
    cost: str = ""
    """The expected cost as lines of text, if nothing was rerun."""
    outcome: "AnyOutcome | None" = None
    """Submitted and rerun values with tolerances, once the rerun is finished."""
    record: Path | None = None
    """The file of the signed record, if there is one."""

    def text(self, width: int = 110) -> str:
        """Return what `geneb-ci audit FILE` prints: the outcome, or the cost before a rerun."""
        if self.outcome is None:
            return self.cost
        from geneb_ci.render.audits import outcome_text

        return outcome_text(self.outcome, width)

    def to_json(self) -> str:
        """Return the report of `geneb-ci audit FILE --report R.json`."""
        names = ("exit_code", "state", "commitment", "next", "cost")
        return json.dumps({name: getattr(self, name) for name in names}) + "\n"

    def _repr_html_(self) -> str:
        """Return the rerun tasks for a notebook, or the state of the audit."""
        from geneb_ci.audit.compare.embedding_outcome import EmbeddingOutcome  # pydantic

        if self.outcome is None:
            return Table(("", ""), [("commitment", self.commitment)]).html(self.state)
        if isinstance(self.outcome, EmbeddingOutcome):
            receipt_rows = [
                (task.task, len(task.deviation), len(task.failed)) for task in self.outcome.tasks
            ]
            return Table(("task", "embedded again", "failed"), receipt_rows).html(self.state)
        rows = [
            (
                task.task,
                regime,
                cell.claimed.MCC,
                cell.rescored.MCC,
                cell.tolerance.MCC,
                cell.verdict,
            )
            for task in self.outcome.tasks
            for regime, cell in task.regimes.items()
        ]
        head = ("task", "regime", "claimed MCC", "rerun", "tolerance", "verdict")
        return Table(head, rows).html(self.state)


@dataclass(frozen=True)
class ModelComparison:
    """Two models compared: the MCC of `a` minus that of `b`."""

    a: str
    """Id of the first model."""
    b: str
    regimes: Mapping[str, "ComparedRegime"]
    """By regime that both models have: its scores with their intervals."""

    def text(self, *, by_task: bool = False) -> str:
        """Return what `geneb-ci compare` prints; with `by_task`, one line per task too."""
        return self._written("text", by_task=by_task)

    def to_json(self) -> str:
        """Return what `geneb-ci compare --format json` prints: always by task."""
        return self._written("json")

    def to_csv(self) -> str:
        """Return what `geneb-ci compare --format csv` prints: one line per score."""
        return self._written("csv")

    def to_svg(self, *, by_task: bool = False) -> str:
        """Return a plot, as `geneb-ci compare --format svg` does."""
        return self._written("svg", by_task=by_task)

    def _written(self, format_: str, *, by_task: bool = False) -> str:
        """Return the comparison in a format."""
        from geneb_ci.render.compared import COMPARED_WRITERS  # numpy

        return COMPARED_WRITERS[format_]((self.a, self.b), self.regimes, by_task=by_task)

    def _repr_html_(self) -> str:
        """Return the plot, for a notebook."""
        return self.to_svg()


class RowTrust(list["RowEvidence"]):
    """The evidence of each submission of a folder, ordered by file."""

    def text(self) -> str:
        """Return what `geneb-ci trust` prints, unwrapped."""
        from geneb_ci.render.rows import row_evidence_text

        return row_evidence_text(self)

    def to_json(self) -> str:
        """Return what `geneb-ci trust --format json` prints."""
        from geneb_ci.render.rows import row_evidence_json

        return row_evidence_json(self)

    def _repr_html_(self) -> str:
        """Return the evidence of each submission as an HTML table, for a notebook."""
        rows = [
            (row.model_id, row.decision.evidence if row.decision else "", "; ".join(row.reasons))
            for row in self
        ]
        return Table(("model", "evidence", "reasons"), rows).html()


@dataclass(frozen=True)
class CommandResult:
    """The exit code and the output of a command."""

    exit_code: int
    output: str
    """Standard output of the command."""
    messages: str
    """Its standard error: progress, notes, and the reason of a failure."""

    def value(self) -> Any:
        """Return the output of `--format json` as a value. Raises ValueError for other text."""
        return json.loads(self.output)
