"""For each field of the board, who confirms it: an audit that compared it, or only its author.

FIELD_GROUPS lists all published fields of a row and how an audit confirms them; `attestation_of`
returns what attests the fields of one row. docs/maintainer/trust.md has the list
as a table.
"""

import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from geneb_ci.audit.compare.outcome import METRICS
from geneb_ci.audit.trust.level import Decision, Recomputation
from geneb_ci.common.types import Evidence
from reference_harness.formats.text import plural


class Confirmation(enum.StrEnum):
    """How an audit confirms a claim of a submission: with which result it compares the claim."""

    RERUN = "rerun of the task, within the tolerance"
    RECEIPT = "recomputation from published embeddings, exactly"
    """By any scorer."""
    RECORD = "recomputation from published embeddings by the scorer of record, exactly"
    METHOD = "audits rerun this code with these weights"


class Author(enum.StrEnum):
    """Who states the value of a field, whether or not an audit confirms it."""

    SUBMITTER = "as submitted"
    REGISTRY = "model registry"
    MAINTAINERS = "noted by maintainers"
    RECORDS = "computed from evidence"
    CHECKS = "checks of the submission"
    BOARD = "computed by the board"
    BENCHMARK = "benchmark definition"


class ScoreEvidence(enum.StrEnum):
    """Result of audits for the scores of a task in a regime; see SCORE_EVIDENCE_MEANING."""

    RERUN = "rerun"
    SAMPLED = "sampled"
    SUBMITTED = "submitted"
    RECOMPUTED = "recomputed"
    STALE = Evidence.STALE.value
    DISPUTED = Evidence.DISPUTED.value


SUBMITTERS_WORD = "the submitter's word"
"""Text for a value that no audit compared."""
SCORE_EVIDENCE_MEANING = {
    ScoreEvidence.RERUN: "rerun, equal within the tolerance",
    ScoreEvidence.SAMPLED: "not rerun; a random sample of the tasks was, and agrees",
    ScoreEvidence.SUBMITTED: SUBMITTERS_WORD,
    ScoreEvidence.RECOMPUTED: "not rerun; recomputed from published embeddings",
    ScoreEvidence.STALE: "audited for another version of harness, benchmark or data",
    ScoreEvidence.DISPUTED: (
        "in dispute: an audit of the row differs, or its last runs were aborted"
    ),
}
"""Text that says what attests a score, by its evidence."""


class EvidenceByRerun(NamedTuple):
    """The evidence for the scores of a row, by whether their task was rerun or sampled."""

    rerun: ScoreEvidence
    """Evidence for a task that was rerun."""
    sampled: ScoreEvidence
    """Evidence for a task that was not rerun, in a regime with a large enough sample."""
    others: ScoreEvidence
    """Evidence for every other task."""


_EVIDENCE_WITHOUT_AUDIT = EvidenceByRerun(
    ScoreEvidence.RERUN, ScoreEvidence.SUBMITTED, ScoreEvidence.SUBMITTED
)
"""Evidence for the scores of a row that no audit confirms."""
_EVIDENCE_WITH_AUDIT = EvidenceByRerun(
    ScoreEvidence.RERUN, ScoreEvidence.SAMPLED, ScoreEvidence.SUBMITTED
)
"""Evidence for the scores of a row that audits confirm."""
SCORE_EVIDENCE: Mapping[Evidence, EvidenceByRerun] = {
    Evidence.CHECKED: _EVIDENCE_WITHOUT_AUDIT,
    Evidence.AUDITED: _EVIDENCE_WITH_AUDIT,
    Evidence.REPRODUCED: _EVIDENCE_WITH_AUDIT,
    Evidence.STALE: EvidenceByRerun(
        ScoreEvidence.STALE, ScoreEvidence.STALE, ScoreEvidence.SUBMITTED
    ),
    Evidence.DISPUTED: EvidenceByRerun(
        ScoreEvidence.DISPUTED, ScoreEvidence.DISPUTED, ScoreEvidence.DISPUTED
    ),
}
"""By the evidence of a row, the evidence for the scores of its tasks."""


class FieldGroup(NamedTuple):
    """Fields of the board with the same author, which audits confirm in the same ways."""

    name: str
    author: Author
    fields: tuple[str, ...]
    """Paths of the fields; `*` is any name or index, `**` at the end any path below."""
    confirmations: tuple[Confirmation, ...] = ()
    """The ways in which audits confirm the fields, the best first; empty if no audit does."""
    basis: tuple[str, ...] = ()
    """Names of the groups from which the fields are computed."""

    @property
    def statement(self) -> str:
        """Text that says what attests the fields if no audit compares them."""
        if self.author is Author.SUBMITTER:
            return SUBMITTERS_WORD
        return f"{self.author} from {', '.join(self.basis)}" if self.basis else str(self.author)


def paths_of(template: str, names: Iterable[str] = METRICS) -> tuple[str, ...]:
    """Return the paths that a template with `{}` gives for these names, by default the metrics."""
    return tuple(template.format(name) for name in names)


_ROW_PATHS = ("leaderboard.json/data/*/*", "leaderboard_tasks.json/data/*/*")
"""Paths of one row in the two files of upstream's format."""
_MODEL_PATHS = (*_ROW_PATHS, "page/models/*", "models.csv", "diagnostics.json/models/*")
"""Paths of one model in each published list of models."""
_RANK_FIELDS = (
    *("score", "error", "freedom", "low", "high"),
    *("rank", "rank_low", "rank_high", "could_be_best"),
)
"""Fields of each model in the lists of ranks of diagnostics.json."""


def _model_paths(*field_names: str) -> tuple[str, ...]:
    """Return the paths of fields of a model in every published list of models."""
    return tuple(f"{list_path}/{name}" for list_path in _MODEL_PATHS for name in field_names)


_CELL_PATH = "submission/evidence/*/*"
"""Path of the evidence of one cell in a published submission."""
_RUN_PATH = "submission/run"
"""Path of the run in a published submission."""
SCORES, SEEDS, CANONICAL = "scores of tasks", "scores by seed", "canonical scores"
SIZE, IDENTITY = "name and size", "id of the model"
# fmt: off
FIELD_GROUPS: tuple[FieldGroup, ...] = (
    FieldGroup(
        SCORES, Author.SUBMITTER,
        (
            *paths_of("leaderboard_tasks.json/data/*/*/task_{}/*"), *paths_of("scores.csv/{}"),
            "values.csv/value",
            *paths_of("submission/results/*/*/{}"), "page/tasks/scores/**",
        ),
        confirmations=(Confirmation.RERUN, Confirmation.RECORD),
    ),
    FieldGroup(
        "means", Author.BOARD,
        (
            *(path for row_path in _ROW_PATHS for mean in ("micro", "macro")
              for path in paths_of(f"{row_path}/{mean}_{{}}")),
            *paths_of(f"{_ROW_PATHS[0]}/cat_{{}}/*"), "page/scores/scores/**",
        ),
        basis=(SCORES,),
    ),
    FieldGroup(
        SEEDS, Author.SUBMITTER,
        (*paths_of("scores.csv/{}_per_seed"), *paths_of(f"{_CELL_PATH}/per_seed/{{}}/*")),
        confirmations=(Confirmation.RECORD,),
    ),
    FieldGroup(
        "confusion matrices and digests of predictions", Author.SUBMITTER,
        paths_of(f"{_CELL_PATH}/{{}}", ("confusion/**", "classes/*", "predictions_sha256")),
        confirmations=(Confirmation.RECORD,),
    ),
    FieldGroup(
        CANONICAL, Author.SUBMITTER, paths_of(f"{_CELL_PATH}/canonical/{{}}"),
        confirmations=(Confirmation.RECEIPT,),
    ),
    FieldGroup(
        "confusion matrices and digests of canonical predictions", Author.SUBMITTER,
        (f"{_CELL_PATH}/canonical/confusion/**", f"{_CELL_PATH}/canonical/predictions_sha256"),
        confirmations=(Confirmation.RECEIPT,),
    ),
    FieldGroup(
        "code, weights and number format of the run", Author.SUBMITTER,
        (
            *paths_of(f"{_RUN_PATH}/extractor/{{}}", ("sha256", "class_name")),
            *paths_of(f"{_RUN_PATH}/model/{{}}", ("kind", "location", "revision")),
            f"{_RUN_PATH}/model/weights/*", f"{_RUN_PATH}/embedding/dtype",
        ),
        confirmations=(Confirmation.METHOD,),
    ),
    FieldGroup(
        "other facts of the run", Author.SUBMITTER,
        (
            *_model_paths("run", "letters_a_second", "peak_memory", "peak_memory_bytes"),
            f"{_RUN_PATH}/**",
        ),
    ),
    FieldGroup(
        "letters read, embeddings, scores at unit scale and properties", Author.SUBMITTER,
        (
            *_model_paths("letters_read", "properties"),
            "submission/measured/**", "submission/properties/**",
        ),
    ),
    FieldGroup(
        IDENTITY, Author.SUBMITTER,
        (*_model_paths("model"), "scores.csv/model", "values.csv/model"),
    ),
    FieldGroup(
        SIZE, Author.SUBMITTER,
        _model_paths("disp", "display", "params"),
    ),
    FieldGroup(
        "training data, zero-shot, link and submitter", Author.SUBMITTER,
        (
            *_model_paths("zero_shot", "url", "training_data", "submitted_by"),
            "diagnostics.json/models/*/regimes/*",
            *paths_of("models.csv/{}", ("provenance", "format", "harness_version")),
        ),
    ),
    FieldGroup(
        "facts of the model registry", Author.REGISTRY,
        _model_paths(
            "architecture", "tokenization", "pretraining", "runs_on", "licence", "max_letters",
            "max_tokens", "embedding_dim", "params_in_paper", "params_trained",
        ),
    ),
    FieldGroup(
        "authorship, evidence, trust level and audits", Author.RECORDS,
        (
            *_model_paths(
                "official", "authorship", "evidence", "submitted", "recomputed",
                *paths_of(
                    "audit/{}", ("tasks", "of", "date", "sandbox", "verdict", "cells", "rows"),
                ),
                *paths_of("disputes/*/{}", ("record", "signer", "date", "why/*", "scores")),
                *paths_of(
                    "disputes/*/scores/*/{}",
                    ("task", "regime", "metric", "claimed", "rerun", "tolerance"),
                ),
                "audit/unaudited/*", *paths_of("attested/*/{}", ("fields", "by")),
            ),
            *paths_of("models.csv/{}", ("level", "audit", "attested", "disputes", "records")),
            "scores.csv/attested", *paths_of("values.csv/{}", ("attested", "evidence", "level")),
        ),
    ),
    FieldGroup(
        "warnings, and that test sets have the benchmark's sizes", Author.CHECKS,
        (*_model_paths("warnings/*"), "models.csv/warnings", f"{_CELL_PATH}/n_test"),
    ),
    FieldGroup(
        "known defects, and whether the receipt's files can be fetched", Author.MAINTAINERS,
        (
            *_model_paths(*paths_of("defects/*/{}", ("id", "what", "explained")), "receipt"),
            "models.csv/defects",
        ),
    ),
    FieldGroup(
        "tasks, categories and sizes of test sets", Author.BENCHMARK,
        (
            *paths_of("leaderboard_tasks.json/tasks/*/{}", ("id", "label", "cat")),
            *paths_of("scores.csv/{}", ("regime", "task", "category", "n_test")),
            *paths_of("values.csv/{}", ("regime", "task", "category", "metric")),
            *paths_of("diagnostics.json/benchmark/{}", ("name", "sha256")),
            "page/benchmark/**",
        ),
    ),
    FieldGroup(
        "scores of baselines", Author.MAINTAINERS, ("page/baselines", "page/baselines/**"),
    ),
    FieldGroup(
        "species, assay and source of tasks", Author.MAINTAINERS,
        (
            *paths_of(
                "leaderboard_tasks.json/tasks/*/{}",
                ("kingdom", "species", "assay", "length", "classes", "source"),
            ),
            "leaderboard_tasks.json/tasks/*/near_duplicates/*",
        ),
    ),
    FieldGroup(
        "matrices recovered from scores", Author.BOARD,
        ("page/matrices/**",),
        basis=(SCORES,),
    ),
    FieldGroup(
        "intervals, ranks and comparisons", Author.BOARD,
        (
            *paths_of(
                "diagnostics.json/{}/**", ("stability", "size", "pairs", "findings", "method"),
            ),
            *paths_of(
                "diagnostics.json/ranks/*/{}",
                ("models", "rounded", "critical", "is_drawn", "draw_variance"),
            ),
            *paths_of("diagnostics.json/ranks/*/{}/**", ("draws_covered", "shared")),
            *(path for scope in ("macro/*", "micro/*", "categories/*/*")
              for path in paths_of(f"diagnostics.json/ranks/*/{scope}/{{}}", _RANK_FIELDS)),
            "diagnostics.json/ranks/*/tasks/*/*/*",
            "page/overall/**", "page/scores/standings/**", "page/scores/shared/**",
            "page/tasks/errors/**", "page/tasks/spreads/**", "page/facts/**", "page/ranked/**",
            "page/decisions/**", "values.csv/standard_error",
        ),
        basis=(SCORES, SEEDS, SIZE),
    ),
    FieldGroup(
        "advice", Author.BOARD,
        (
            "page/first/**",
        ),
        basis=(SCORES, SEEDS, SIZE, "authorship, evidence, trust level and audits"),
    ),
    FieldGroup("history", Author.RECORDS, ("page/history/**",)),
    FieldGroup(
        "how the files are read", Author.BOARD,
        (
            "diagnostics.json/schema_version",
            "page/columns/**", "page/encoding/**", "page/digest",
        ),
    ),
)
# fmt: on
"""The groups of all published fields; each field is in one group."""


def column_author(column: str) -> Author:
    """Return who states the values of a column. Raise KeyError if it is in no group of fields."""
    path = f"page/models/*/{column}"
    for group in FIELD_GROUPS:
        if any(template == path or template.startswith(f"{path}/") for template in group.fields):
            return group.author
    raise KeyError(f"the column {column} is in no group of FIELD_GROUPS in {__name__}: add its key")


class FieldAttestation(NamedTuple):
    """A statement of what attests some fields of a row."""

    fields: str
    """Name of the group of fields."""
    by: str
    """The audits or the author that attest these fields, as text."""


@dataclass(frozen=True)
class RowAttestation:
    """The audits that attest the scores of one row."""

    evidence: Evidence = Evidence.CHECKED
    rerun: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By regime, the tasks that these audits reran."""
    sampled: tuple[str, ...] = ()
    """Regimes in which one audit has a large enough sample by itself."""
    unaudited: tuple[str, ...] = ()
    """Regimes of the benchmark that are not in `sampled`."""
    tasks: int = 0
    """Number of distinct tasks that were rerun."""
    benchmark_tasks: int = 0
    """Number of tasks of the benchmark."""
    signers: tuple[str, ...] = ()
    """The people who signed the audits."""
    recomputed: Recomputation | None = None
    """The result of an audit by receipt; None if there is none that counts."""

    @property
    def of_record(self) -> Recomputation | None:
        """The audit by receipt, if it compared every score on the board; else None."""
        facts = self.recomputed.facts if self.recomputed is not None else None
        return self.recomputed if facts is not None and facts.compares_board_scores else None

    def score_evidence(self, regime: str, task: str) -> ScoreEvidence:
        """Return the evidence for the scores of a task in a regime."""
        evidence_by_rerun = SCORE_EVIDENCE[self.evidence]
        if task in self.rerun.get(regime, frozenset()):
            return evidence_by_rerun.rerun
        if self.of_record is not None:
            return ScoreEvidence.RECOMPUTED
        return evidence_by_rerun.sampled if regime in self.sampled else evidence_by_rerun.others

    @property
    def unconfirmed_regimes(self) -> tuple[str, ...]:
        """Regimes of an audited row in which no audit confirms the scores."""
        return self.unaudited if SCORE_EVIDENCE[self.evidence] is _EVIDENCE_WITH_AUDIT else ()

    def evidence_in_regime(self, regime: str) -> str:
        """Return as text the evidence of the row for its scores in one regime."""
        if regime in self.unconfirmed_regimes:
            return f"{Evidence.CHECKED} here, {self.evidence} in other regimes"
        return str(self.evidence)

    @property
    def statements(self) -> tuple[FieldAttestation, ...]:
        """Attestations of the scores; empty if only the submitter's word attests them."""
        return (*self._score_statements(), *self._canonical_statements())

    @property
    def every_statement(self) -> tuple[FieldAttestation, ...]:
        """Attestations of all groups of fields, in the order of FIELD_GROUPS; some have several."""
        scores = tuple(self._score_statements()) or (FieldAttestation(SCORES, SUBMITTERS_WORD),)
        statements = {SCORES: scores, CANONICAL: tuple(self._canonical_statements())}
        return tuple(
            statement
            for group in FIELD_GROUPS
            for statement in statements.get(group.name)
            or (FieldAttestation(group.name, self._attesting_text(group)),)
        )

    def _attesting_text(self, group: FieldGroup) -> str:
        """Return as text what attests a group of fields as a whole, whatever the task."""
        if SCORE_EVIDENCE[self.evidence].others is ScoreEvidence.DISPUTED:
            return (
                SCORE_EVIDENCE_MEANING[ScoreEvidence.DISPUTED]
                if group.confirmations
                else group.statement
            )
        receipt, record, method = "", "", ""
        if self.recomputed is not None:
            receipt = _recomputed_text(self.recomputed)
            record = receipt if self.of_record is not None else ""
            count = self.recomputed.facts.embedded
            method = f"used to compute {count:,} embeddings of the receipt again"
        rerun = self._rerun_text(tuple(self.rerun)) if self.tasks else ""
        text_by_confirmation = {
            Confirmation.RERUN: rerun,
            Confirmation.RECEIPT: receipt,
            Confirmation.RECORD: record,
            Confirmation.METHOD: self._rerun_text(()) if rerun else method,
        }
        return next(
            (
                text_by_confirmation[confirmation]
                for confirmation in group.confirmations
                if text_by_confirmation[confirmation]
            ),
            group.statement,
        )

    def _score_statements(self) -> Iterator[FieldAttestation]:
        """Yield what attests the scores of rerun tasks, of other tasks and of other regimes."""
        evidence_by_rerun = SCORE_EVIDENCE[self.evidence]
        if evidence_by_rerun.others is ScoreEvidence.DISPUTED:
            yield FieldAttestation(SCORES, SCORE_EVIDENCE_MEANING[ScoreEvidence.DISPUTED])
            return
        if not self.tasks:
            if self.recomputed is not None:
                record = self.of_record
                yield FieldAttestation(
                    SCORES, _recomputed_text(record) if record is not None else SUBMITTERS_WORD
                )
            return
        yield FieldAttestation("scores of rerun tasks", self._rerun_text(tuple(self.rerun)))
        if self.of_record is not None:
            yield FieldAttestation("scores of the other tasks", _recomputed_text(self.of_record))
            return
        sampled = [r for r in self.sampled if len(self.rerun.get(r, ())) < self.benchmark_tasks]
        if sampled:
            meaning = SCORE_EVIDENCE_MEANING[evidence_by_rerun.sampled]
            yield FieldAttestation(f"scores of the other tasks in {', '.join(sampled)}", meaning)
        if self.unaudited:
            subject = "other scores" if self.rerun.keys() & set(self.unaudited) else "scores"
            yield FieldAttestation(f"{subject} in {', '.join(self.unaudited)}", SUBMITTERS_WORD)

    def _canonical_statements(self) -> Iterator[FieldAttestation]:
        """Yield what attests the canonical scores, if an audit by receipt does."""
        if self.recomputed is not None:
            yield FieldAttestation(CANONICAL, _recomputed_text(self.recomputed))

    def _rerun_text(self, regimes: Sequence[str]) -> str:
        """Return as text who reran how many tasks, in these regimes."""
        by_signers = f" by {', '.join(self.signers)}" if self.signers else ""
        in_regimes = f"; {', '.join(regimes)}" if regimes else ""
        extent = f"{self.tasks} of {plural(self.benchmark_tasks, 'task')}{in_regimes}"
        if SCORE_EVIDENCE[self.evidence].rerun is ScoreEvidence.STALE:
            return (
                f"rerun{by_signers} ({extent}), for another version of harness, benchmark or data"
            )
        return f"rerun{by_signers} ({extent}), equal within the tolerance"


def _recomputed_text(recomputation: Recomputation) -> str:
    """Return as text how many cells were recomputed from the receipt with equal scores."""
    cells = f"{recomputation.facts.equal} of {recomputation.facts.cells} cells"
    return f"recomputed from published embeddings ({cells})"


NO_AUDIT = RowAttestation()
"""The attestation of a row without an audit."""


def attestation_of(decision: Decision) -> RowAttestation:
    """Return what attests the scores of a row with this decision."""
    rerun: dict[str, frozenset[str]] = {}
    for audit in decision.basis:
        for regime, tasks in audit.rerun.items():
            rerun[regime] = rerun.get(regime, frozenset()) | tasks
    return RowAttestation(
        evidence=decision.evidence,
        rerun=rerun,
        sampled=decision.sampled,
        unaudited=decision.unaudited,
        tasks=decision.audit.tasks if decision.audit is not None else 0,
        benchmark_tasks=decision.audit.of if decision.audit is not None else 0,
        signers=decision.signers,
        recomputed=decision.recomputed,
    )
