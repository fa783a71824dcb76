"""Every (MCC, accuracy, F1) triple that a submission claims, with precision and number of fits."""

from collections.abc import Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from geneb_ci.common.finding import KeyPath
from geneb_ci.statistics.binary import Classes, correct_count_limits
from geneb_ci.statistics.metrics import Matrix, ReportedTriple, Triple, half_widths, is_mixed
from reference_harness.formats.benchmark import Benchmark, Task
from reference_harness.formats.files import member_at

if TYPE_CHECKING:
    from reference_harness.formats.submission import Submission

TripleKey = TypeVar("TripleKey", bound=Hashable)
CellTables = Mapping[str, Any]
"""A member of a parsed submission that has cells, such as `results`: regime -> task -> cell."""


class ScoreClaim(NamedTuple):
    """MCC, accuracy and F1 of a cell, claimed to be means over `fit_count` trained probes."""

    path: KeyPath
    """Where the document has these scores."""
    regime: str
    task: Task
    reported: ReportedTriple
    """The claimed scores, with their maximum rounding errors."""
    fit_count: int
    classes: Classes | None
    """Sizes of the two classes; None if the task has more classes or the sizes are unknown."""


class SeedClaims(NamedTuple):
    """MCC, accuracy and F1 of one cell for each seed, in the order of the benchmark's seeds."""

    path: KeyPath
    regime: str
    task: Task
    seed_triples: tuple[ReportedTriple, ...]
    """The scores of each seed, with their maximum rounding errors."""


METRIC_BY_FIELD = {"mcc": "MCC", "acc": "Acc", "f1": "F1"}
"""Name of the metric in files, by field of a `Triple`."""
Results = Mapping[str, Mapping[str, Mapping[str, float]]]
"""Score by regime, task and metric, from a file that passed the structure rules."""


def results_of(submission: "Submission") -> Results:
    """Return the results of a submission as plain values."""
    return {
        regime: {task: vars(cell) for task, cell in tasks.items()}
        for regime, tasks in submission.results.items()
    }


def has_impossible_accuracy(claim: ScoreClaim) -> bool:
    """Whether no whole number of correct predictions gives the accuracy of a claim."""
    if claim.task.n_test is None:
        return False
    low, high = correct_count_limits(claim.task.n_test, claim.reported, claim.fit_count)
    return low > high


def two_class_sizes(task: Task) -> Classes | None:
    """Return the class sizes of a task with two classes; None for other tasks and if unknown."""
    sizes = task.two_class_sizes
    return Classes(*sizes) if sizes else None


def fit_count_of(benchmark: Benchmark, regime: str) -> int:
    """Return the number of probes that a score averages: 1, or in a few-shot regime 1 per seed."""
    return len(benchmark.protocol.seeds) if regime in benchmark.protocol.few_shot_k else 1


def score_triple(scores: Any) -> Triple | None:
    """Return a cell's MCC, accuracy and F1; None if a score is missing, no number or out of range.

    Other rules report those problems.
    """
    if not isinstance(scores, dict):
        return None
    mcc: Any = scores.get("MCC")
    acc: Any = scores.get("Acc")
    f1: Any = scores.get("F1")
    if not (
        type(mcc) in _NUMBER_TYPES and type(acc) in _NUMBER_TYPES and type(f1) in _NUMBER_TYPES
    ):
        return None
    is_in_range = -1 <= mcc <= 1 and 0 <= acc <= 1 and 0 <= f1 <= 1
    return Triple(mcc, acc, f1) if is_in_range else None


_NUMBER_TYPES = frozenset({int, float})


def reported_triples(
    triples: Mapping[TripleKey, Triple], fit_count: int
) -> dict[TripleKey, ReportedTriple]:
    """Return each triple, by its key, with the maximum rounding error of each of its scores.

    The errors are inferred from the decimals of all scores together.
    """
    has_mixed_decimals = is_mixed(
        score for triple in triples.values() for score in (triple.mcc, triple.f1)
    )
    columns = [
        half_widths(column, fit_count, mixed=has_mixed_decimals)
        for column in zip(*triples.values(), strict=True)
    ]
    if has_mixed_decimals or not columns:
        widths = list(map(Triple._make, zip(*columns, strict=True)))
    else:  # every value of a column has the same half-width
        widths = [Triple._make(column[0] for column in columns)] * len(triples)
    return {
        key: ReportedTriple(triple, width)
        for (key, triple), width in zip(triples.items(), widths, strict=True)
    }


def claims_of(
    results: CellTables, evidence: CellTables, benchmark: Benchmark
) -> Iterator[ScoreClaim]:
    """Yield the scores claimed for the benchmark's cells, one regime after the other.

    In each regime, those in `results` come first, then those under `canonical` in the evidence.
    """
    classes = {task.id: two_class_sizes(task) for task in benchmark.tasks}
    for regime in benchmark.regimes:
        fit_count = fit_count_of(benchmark, regime)
        cells = _cells_of_tasks(results, regime, benchmark)
        triples = {task: t for task, scores in cells.items() if (t := score_triple(scores))}
        for task, reported in reported_triples(triples, fit_count).items():
            path: KeyPath = ("results", regime, task)
            task_facts = benchmark.by_id[task]
            yield ScoreClaim(path, regime, task_facts, reported, fit_count, classes[task])
        cells = _cells_of_tasks(evidence, regime, benchmark)
        triples = {
            task: t
            for task, cell in cells.items()
            if (t := score_triple(member_at(cell, "canonical")))
        }
        for task, reported in reported_triples(triples, fit_count).items():
            path = ("evidence", regime, task, "canonical")
            task_facts = benchmark.by_id[task]
            yield ScoreClaim(path, regime, task_facts, reported, fit_count, classes[task])


def seed_claims_of(evidence: CellTables, benchmark: Benchmark) -> Iterator[SeedClaims]:
    """Yield the scores under `per_seed` of each cell whose lists have one value for each seed."""
    for regime in benchmark.regimes:
        triples: dict[tuple[str, int], Triple] = {}
        for task, cell in _cells_of_tasks(evidence, regime, benchmark).items():
            seed_triples = _seed_triples(member_at(cell, "per_seed"), len(benchmark.protocol.seeds))
            triples |= {(task, index): triple for index, triple in enumerate(seed_triples)}
        reported_by_task: dict[str, list[ReportedTriple]] = {}
        for (task, _), reported in reported_triples(triples, 1).items():
            reported_by_task.setdefault(task, []).append(reported)
        for task, reported_seeds in reported_by_task.items():
            path = ("evidence", regime, task, "per_seed")
            yield SeedClaims(path, regime, benchmark.by_id[task], tuple(reported_seeds))


class MatrixClaims(NamedTuple):
    """The confusion matrices of a cell, all of them well-formed."""

    path: KeyPath
    regime: str
    task: Task
    matrices: tuple[Matrix, ...]
    """One matrix for each seed, in the order of the benchmark's seeds."""
    scores: tuple[ReportedTriple, ...]
    """The claimed scores: those of each seed, or only their mean over the seeds."""


def matrix_claims_of(evidence: CellTables, benchmark: Benchmark) -> Iterator[MatrixClaims]:
    """Yield the matrices of each cell and of its canonical score; only format 1.2 has any."""
    seed_count = len(benchmark.protocol.seeds)
    seed_triples_by_path = {
        claim.path: claim.seed_triples for claim in seed_claims_of(evidence, benchmark)
    }
    canonical_by_path = {
        claim.path: (claim.reported,) for claim in claims_of({}, evidence, benchmark)
    }
    for regime in benchmark.regimes:
        for task, cell in _cells_of_tasks(evidence, regime, benchmark).items():
            cell_path: KeyPath = ("evidence", regime, task)
            task_facts, canonical = benchmark.by_id[task], member_at(cell, "canonical")
            for table, path, scores in (
                (cell, cell_path, seed_triples_by_path.get((*cell_path, "per_seed"), ())),
                (
                    canonical,
                    (*cell_path, "canonical"),
                    canonical_by_path.get((*cell_path, "canonical"), ()),
                ),
            ):
                confusion = member_at(table, "confusion")
                if (
                    isinstance(confusion, list)
                    and len(confusion) == seed_count
                    and all(map(_is_count_matrix, confusion))
                ):
                    yield MatrixClaims(
                        (*path, "confusion"), regime, task_facts, tuple(confusion), scores
                    )


def _is_count_matrix(matrix: Any) -> bool:
    """Whether a value is a square matrix of counts that are not all zero."""
    if not isinstance(matrix, list) or not matrix:
        return False
    size = len(matrix)
    has_count_rows = all(
        isinstance(row, list) and len(row) == size and all(type(n) is int and n >= 0 for n in row)
        for row in matrix
    )
    return has_count_rows and any(any(row) for row in matrix)


def _seed_triples(per_seed: Any, seed_count: int) -> list[Triple]:
    """Return the scores of each seed; [] if a list in `per_seed` has another length or form."""
    columns = [member_at(per_seed, metric) for metric in ("MCC", "Acc", "F1")]
    if not all(isinstance(column, list) and len(column) == seed_count for column in columns):
        return []
    rows = [
        score_triple(dict(zip(("MCC", "Acc", "F1"), row, strict=True)))
        for row in zip(*columns, strict=True)
    ]
    return [row for row in rows if row] if all(rows) else []


def _cells_of_tasks(tables: CellTables, regime: str, benchmark: Benchmark) -> dict[str, Any]:
    """Return the cells of a regime whose tasks are in the benchmark, in benchmark order."""
    cells = member_at(tables, regime)
    if not isinstance(cells, dict):
        return {}
    return {task: cells[task] for task in benchmark.task_ids if task in cells}
