"""Verifies the record of an audit by receipt, against its rerun embeddings and the receipt."""

import hashlib
import io
import itertools
import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from geneb_ci.audit.compare.embedding_outcome import (
    WITH_ROW_TOLERANCES,
    WITHOUT_BOUNDS,
    WITHOUT_FEW_SHOT,
    WITHOUT_REFITS,
    ComparedTask,
    EmbeddingOutcome,
    RefitTask,
    reasons_of,
    summed_training_decisions,
    varied_test_count,
)
from geneb_ci.audit.compare.limits import uses_every_defence
from geneb_ci.audit.compare.outcome import verdict_from_reasons
from geneb_ci.audit.errors import StepMismatch
from geneb_ci.audit.record.envelope import RESTORE_FIX
from geneb_ci.audit.rerun.few_shot import few_shot_contradiction
from geneb_ci.audit.rerun.honesty import (
    VARIANT_KIND,
    FreshResult,
    VariantResult,
    fresh_contradiction,
    variant_contradiction,
    varied_sequence_count,
)
from geneb_ci.audit.sampling.embedding_draw import refit_tasks, task_shares, weakness_of
from geneb_ci.audit.trust.applicability import TrustInputs
from geneb_ci.receipt.draw import TEST_PART, TaskShare, drawn_number, unforeseen_rows
from geneb_ci.receipt.embeddings import STRONGEST
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.merkle import embedding_leaf, root_from_proof
from reference_harness.formats.submission import EmbeddingReceipt, SubmissionV12, receipt_root
from reference_harness.formats.text import plural

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

COMPARISON_STEP = "comparison"
"""Step of a verification: whether the verdict of a record follows from its numbers."""
RERUN_STEP, PROOFS_STEP, EMBEDDINGS_STEP, CELLS_STEP = "rerun", "proofs", "embeddings", "cells"
"""Further steps, which need the file of rerun embeddings or the receipt itself."""
HASH_BYTES = 32
"""Number of bytes of a SHA-256 in a Merkle proof."""
PROOF_HASHES_MAX = 64
"""Largest number of hashes of a Merkle proof: a tree has fewer than 2^64 embeddings."""
STRONGEST_PART = "strongest"
"""Name in records of the training embeddings with the largest influence on the probe, and of those
with the largest distance from the others."""
ARCHIVE_ERRORS = (
    *(ValueError, LookupError, OSError, EOFError, RuntimeError, ArithmeticError, MemoryError),
    *(struct.error, zipfile.BadZipFile, zlib.error),
)
"""Errors that reading an untrusted ZIP archive of arrays can raise."""
RERUN_BYTES_MAX = 8 << 30
"""Largest size of the file of rerun embeddings, in bytes: 200,000 embeddings of 4,096 columns take
5 GB."""


def check_embeddings(outcome: EmbeddingOutcome, inputs: TrustInputs) -> None:
    """Refuse a verdict that does not follow from the record's numbers, or from the receipt.

    The record is not compared with the receipt if the audited submission is missing. Raises
    StepMismatch, of the step "comparison".
    """
    receipt = audited_receipt(outcome, inputs)
    if receipt is not None:
        _check_receipt(outcome, receipt, inputs.benchmark)
    task_ids = [task.task for task in outcome.tasks]
    _check_task_ids(task_ids, outcome.receipt.tasks)
    if outcome.receipt.root != outcome.plan.root:
        _refuse("the receipt of the record is not the one that the plan draws from")
    for task in outcome.tasks:
        _check_task(task, outcome)
        _check_strongest(task, is_expected=outcome.schema_version not in WITHOUT_REFITS)
    _check_repeats(outcome)
    if (outcome.effect is None) != (outcome.schema_version == WITH_ROW_TOLERANCES):
        verb, modal = ("lacks", "must") if outcome.effect is None else ("has", "cannot")
        _refuse(
            f"the record {verb} the effect on the test loss, which records of version "
            f"{outcome.schema_version} {modal} have"
        )
    cells = outcome.cells
    if cells.equal + len(cells.differing) + len(cells.unclaimed) != cells.of:
        _refuse(f"the numbers of equal, differing and unclaimed cells do not add up to {cells.of}")
    if outcome.variants is not None:
        _check_variants(outcome.variants, outcome)
    _check_refits(outcome, task_ids)
    _check_few_shot(outcome, task_ids, inputs.benchmark)
    _check_fresh(outcome.fresh, outcome)
    _check_bounds(outcome)
    reasons = reasons_of(outcome)
    if outcome.reasons != reasons:
        _refuse("the reasons of the verdict are not those that the numbers give")
    if outcome.verdict != (verdict := verdict_from_reasons(reasons)):
        _refuse(f"the verdict is {outcome.verdict!r}, the numbers give {verdict!r}")


def _check_variants(variants: VariantResult, outcome: EmbeddingOutcome) -> None:
    """Refuse a result of variants that contradicts the version of the record or the receipt."""
    varied_count = varied_test_count(outcome.schema_version, len(outcome.tasks))
    if fault := variant_contradiction(variants, varied_count):
        _refuse(f"variants: {fault}")
    is_by_task = outcome.schema_version not in WITHOUT_FEW_SHOT
    if variants.tasks.keys() != {task.task for task in outcome.tasks if is_by_task}:
        _refuse(
            "variants: expected decisions of each task of the record, or of none before version 2.3"
        )
    varied_max = sum(min(varied_count, task.test) for task in outcome.tasks)
    fits_and_kinds = [
        (1, variants.kinds),
        *((probe.fits, probe.kinds) for probe in variants.others.values()),
    ]
    if any(set(kinds) != {VARIANT_KIND} for _, kinds in fits_and_kinds):
        _refuse(f"variants: expected only the kind {VARIANT_KIND!r} of variants of test sequences")
    rows = variants.kinds[VARIANT_KIND].rows
    if rows > varied_max or any(
        kinds[VARIANT_KIND].rows != fit_count * rows for fit_count, kinds in fits_and_kinds
    ):
        _refuse(
            f"variants: {rows} test sequences were varied, expected at most {varied_max}, and "
            "decisions of every probe on each"
        )


def _check_refits(outcome: EmbeddingOutcome, task_ids: list[str]) -> None:
    """Refuse results of refitted probes that contradict the version, the draw or the variants."""
    if outcome.schema_version in WITHOUT_REFITS:
        if outcome.refits or (outcome.variants is not None and outcome.variants.training):
            _refuse(
                "the record has probes fitted on variants, which records of version "
                f"{outcome.schema_version} cannot have"
            )
        return
    if outcome.variants is None:
        _refuse(
            "the record has no variants, which records of version "
            f"{outcome.schema_version} must have"
        )
        return
    expected_tasks = refit_tasks(outcome.plan, task_ids)
    if [refitted.task for refitted in outcome.refits] != expected_tasks:
        _refuse(
            "variants: probes of "
            f"{', '.join(refitted.task for refitted in outcome.refits) or 'no task'} were fitted, "
            f"expected {', '.join(expected_tasks)}"
        )
    task_by_name = {task.task: task for task in outcome.tasks}
    for refitted in outcome.refits:
        task = task_by_name[refitted.task]
        varied_max = min(varied_sequence_count(len(expected_tasks)), task.train)
        if refitted.rows > varied_max:
            _refuse(
                f"variants: {refitted.rows} training sequences of {task.task} were varied, "
                f"expected at most {varied_max}"
            )
        if refitted.training is not None and refitted.training.rows != task.test:
            _refuse(f"variants: a probe did not decide on all test embeddings of {task.task}")
    _check_training(outcome.variants, outcome.refits)
    if outcome.variants.training != summed_training_decisions(outcome.refits):
        _refuse("variants: the decisions of refitted probes are not the sum of those of the tasks")
    probes_of_record = {f"{regime}, record" for regime in _test_draws(outcome)}
    if outcome.cells.of_record and not probes_of_record <= outcome.variants.others.keys():
        _refuse("variants: no decisions of the probes of record, whose scores were compared")


def _check_training(variants: VariantResult, refits: list[RefitTask]) -> None:
    """Refuse refitted probes whose decisions differ from those in the result of the variants."""
    training = {task.task: task.training for task in refits}
    for task, decisions in variants.tasks.items():
        if decisions.training != training.get(task):
            _refuse(
                f"variants: {task}: the decisions of the refitted probe are not those in `refits`"
            )


def _check_few_shot(outcome: EmbeddingOutcome, task_ids: list[str], benchmark: Benchmark) -> None:
    """Refuse fits of few-shot probes that contradict the version, the benchmark or the draw."""
    few_shot = outcome.few_shot
    is_before = outcome.schema_version in WITHOUT_FEW_SHOT
    if is_before or not benchmark.protocol.few_shot_k:
        if few_shot is not None or (is_before and any(task.support for task in outcome.refits)):
            _refuse(
                "the record has few-shot probes fitted on other sequences, unlike records of its "
                "version or benchmark"
            )
        return
    if few_shot is None:
        _refuse(
            "the record has no few-shot probes fitted on other sequences, unlike records of "
            f"version {outcome.schema_version}"
        )
        return
    varied_tasks = [refitted.task for refitted in outcome.refits]
    uses_all = uses_every_defence(outcome.plan.commitment, benchmark)
    if fault := few_shot_contradiction(
        few_shot, benchmark, task_ids, varied_tasks, requires_tests=uses_all
    ):
        _refuse(f"few-shot probes: {fault}")
    train_counts = {task.task: task.train for task in outcome.tasks}
    for refitted in outcome.refits:
        if refitted.support > train_counts[refitted.task]:
            _refuse(
                f"few-shot probes: {refitted.support} sequences of {refitted.task} were varied, "
                f"expected at most its {train_counts[refitted.task]} training sequences"
            )


def _check_fresh(fresh: FreshResult | None, outcome: EmbeddingOutcome) -> None:
    """Refuse a result of a fresh set that contradicts its own numbers, the tasks or the probes."""
    if fresh is None:
        return
    if outcome.schema_version in WITHOUT_BOUNDS or outcome.variants is None:
        _refuse(
            "the record has a fresh set, which records of version "
            f"{outcome.schema_version} cannot have"
        )
        return
    test_counts = {task.task: task.test for task in outcome.tasks}
    if set(fresh.others) != set(outcome.variants.others):
        _refuse("fresh set: other probes decided on it than on the variants")
    for tasks in (fresh.tasks, *fresh.others.values()):
        if tasks.keys() != fresh.tasks.keys() or not tasks.keys() <= test_counts.keys():
            _refuse("fresh set: its tasks are not tasks of the receipt, or differ between probes")
        for task, fresh_task in tasks.items():
            if fresh_task.public.rows != fresh_task.fits * test_counts[task]:
                _refuse(f"fresh set: a probe did not decide on all test embeddings of {task}")
    if fault := fresh_contradiction(fresh):
        _refuse(f"fresh set: {fault}")


def _test_draws(outcome: EmbeddingOutcome) -> dict[str, int]:
    """Return, by regime, the number of drawn test embeddings of all tasks together."""
    return {
        part.removeprefix(TEST_PART): count
        for part, count in draw_counts(outcome).items()
        if part.startswith(TEST_PART)
    }


def _check_bounds(outcome: EmbeddingOutcome) -> None:
    """Refuse bounds of a raise of the MCC that contradict the record's version or the draw."""
    draws_by_regime = _test_draws(outcome)
    has_bounds = outcome.schema_version not in WITHOUT_BOUNDS and bool(outcome.cells.of_record)
    if {bound.regime: bound.draws for bound in outcome.bounds} != (
        draws_by_regime if has_bounds else {}
    ):
        _refuse("the bounds are not those of the regimes that were drawn from and compared")
    for bound in outcome.bounds:
        if bound.flipped > bound.draws:
            _refuse(f"bounds: {bound.flipped} of {bound.draws} draws of {bound.regime} are flipped")


def audited_receipt(outcome: EmbeddingOutcome, inputs: TrustInputs) -> EmbeddingReceipt | None:
    """Return the receipt of the audited submission; None if that is missing or was changed."""
    submission = inputs.audited_submission(outcome)
    return submission.receipt if isinstance(submission, SubmissionV12) else None


def _check_receipt(
    outcome: EmbeddingOutcome, receipt: EmbeddingReceipt, benchmark: Benchmark
) -> None:
    """Refuse a record that contradicts the receipt of the submission: its root, sizes or tasks."""
    facts = outcome.receipt
    declared_facts = (
        receipt.root,
        receipt.dim,
        receipt.compute_dtype,
        receipt.tf32,
        len(receipt.tasks),
    )
    if declared_facts != (facts.root, facts.dim, facts.compute_dtype, facts.tf32, facts.tasks):
        _refuse("the record states other facts of the receipt than the submission")
    if receipt_root(receipt, benchmark.task_ids) != receipt.root:
        _refuse("the root of the receipt is not that of its tasks")
    if weakness := weakness_of(receipt.compute_dtype, tf32=receipt.tf32):
        _refuse(f"the receipt is weak: {weakness}")
    order = [task for task in benchmark.task_ids if task in receipt.tasks]
    if [audited.task for audited in outcome.tasks] != order:
        _refuse(
            "the tasks of the record are not those of the receipt, in the order of the benchmark"
        )
    shares = task_shares(outcome.plan.rows, receipt, benchmark)
    for task in outcome.tasks:
        counts = receipt.tasks[task.task]
        if (task.train, task.test) != (counts.train, counts.test):
            _refuse(f"{task.task}: the record has other numbers of embeddings than the receipt")
        _check_draw(task, shares[task.task], bytes.fromhex(outcome.plan.seed))


def _check_draw(task: ComparedTask, share: TaskShare, seed: bytes) -> None:
    """Refuse training embeddings not drawn by the seed, or a wrong number of test embeddings.

    Which test embeddings the seed gives depends on the strata, which are not known here.
    """
    training = task.rows.get("training", [])
    expected_rows = [
        drawn_number(seed, f"{task.task} training", j, task.train) for j in range(share.training)
    ]
    is_whole = len(training) == task.train and training == list(range(task.train))
    if training != expected_rows and not is_whole:
        _refuse(f"{task.task}: the training embeddings do not follow from the seed")
    for part, rows in task.rows.items():
        if part.startswith(TEST_PART) and len(rows) not in {share.test, 0}:
            _refuse(
                f"{task.task}: {len(rows)} embeddings of {part!r} were drawn, expected {share.test}"
            )


def _check_task(task: ComparedTask, outcome: EmbeddingOutcome) -> None:
    """Refuse a task whose drawn, compared and failed embeddings contradict each other."""
    drawn_rows, row_count = task.distinct_rows, task.train + task.test
    if not len(drawn_rows) == len(task.deviation) == len(task.mismatch):
        _refuse(
            f"{task.task}: {len(drawn_rows)} embeddings are drawn, {len(task.deviation)} compared"
        )
    if drawn_rows and drawn_rows[-1] >= row_count:
        _refuse(f"{task.task}: row {drawn_rows[-1]} was drawn, expected a row below {row_count}")
    if [failed.row for failed in task.failed] != outcome.failing_rows(task):
        _refuse(f"{task.task}: the failed embeddings do not follow from its numbers")


def _check_task_ids(task_ids: list[str], receipt_count: int) -> None:
    """Refuse duplicate tasks, and another number of tasks than the receipt has."""
    if len(set(task_ids)) != len(task_ids):
        _refuse("the record lists a task more than once")
    if len(task_ids) != receipt_count:
        _refuse(
            f"the record compares {plural(len(task_ids), 'task')}, expected the "
            f"{receipt_count} of the receipt"
        )


def _check_strongest(task: ComparedTask, *, is_expected: bool) -> None:
    """Refuse an impossible list of the strongest training embeddings of a task.

    It has the first embeddings by influence and the first by distance. `is_expected` is whether
    records of this version have such lists.
    """
    rows = task.rows.get(STRONGEST_PART, [])
    least, most = (min(count, task.train) for count in (STRONGEST, 2 * STRONGEST))
    if is_expected and not least <= len(set(rows)) <= most:
        _refuse(
            f"{task.task}: {len(set(rows))} of the strongest training embeddings, expected {least} "
            f"to {most}"
        )
    if rows and not is_expected:
        _refuse(
            f"{task.task}: the record lists the strongest training embeddings, unlike records of "
            "its version"
        )
    if rows and max(rows) >= task.train:
        _refuse(
            f"{task.task}: the list of the strongest training embeddings contains a test embedding"
        )


def _check_repeats(outcome: EmbeddingOutcome) -> None:
    """Refuse an audit that stopped repeating failed embeddings before its verdict was certain."""
    failed = [failed_row for task in outcome.tasks for failed_row in task.failed]
    if any(failed_row.again is None for failed_row in failed) and not outcome.is_decided:
        _refuse(
            "some failed embeddings were not computed again, although the others did not decide "
            "the verdict"
        )


def _refuse(message: str, step: str = COMPARISON_STEP) -> None:
    """Raise StepMismatch, of the step `step`."""
    raise StepMismatch(step, message, RESTORE_FIX)


class RerunEmbeddings(NamedTuple):
    """The contents of the file of rerun embeddings: n drawn embeddings of d columns."""

    task: "npt.NDArray[np.int64]"
    """(n,) index of the task in the record."""
    row: "npt.NDArray[np.int64]"
    """(n,) index of the embedding in the file of the task."""
    committed: "npt.NDArray[np.float16]"
    """(n, d) embeddings of the receipt."""
    rerun: "npt.NDArray[np.float32]"
    """(n, d) embeddings of the rerun."""
    proofs: list[list[bytes]]
    """Merkle proof of each committed embedding, as hashes."""
    repeats: "npt.NDArray[np.float32]"
    """(k, d) failed embeddings that were computed again, in the order of the record."""
    variants: "VariantEmbeddings | None" = None
    """Embeddings of variants of test sequences; None in earlier files."""
    refits: "VariantEmbeddings | None" = None
    """Embeddings of variants of training sequences; None in earlier files."""
    support: "VariantEmbeddings | None" = None
    """Embeddings of variants of the sequences of few-shot probes; None in earlier files."""

    def by_task(self, task_count: int) -> "list[npt.NDArray[np.float32]]":
        """Return the rerun embeddings of each of the record's tasks."""
        return [self.rerun[self.task == number] for number in range(task_count)]


class VariantEmbeddings(NamedTuple):
    """The embeddings of v variants, in the file of rerun embeddings."""

    task: "npt.NDArray[np.int64]"
    """(v,) index of the task in the record."""
    row: "npt.NDArray[np.int64]"
    """(v,) index of the varied sequence among the training or test sequences of the task."""
    values: "npt.NDArray[np.float32]"
    """(v, d) embeddings of the variants."""


def read_rerun(raw: bytes, outcome: EmbeddingOutcome) -> RerunEmbeddings:
    """Read the file of rerun embeddings of a record. Raises StepMismatch, of the step "rerun".

    Shape and type of every array follow from the record; any other array is refused unread.
    """
    import numpy as np  # slow to import, and only needed here

    if hashlib.sha256(raw).hexdigest() != outcome.rerun_sha256:
        _refuse(
            "the file of rerun embeddings beside the record is not the one that the record names",
            RERUN_STEP,
        )
    expected_positions = [
        (number, row) for number, task in enumerate(outcome.tasks) for row in task.distinct_rows
    ]
    count, dim = len(expected_positions), outcome.receipt.dim
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            lengths = _array_in(archive, "length", "<i8", (count,)).tolist()
            if wrong_lengths := [
                length for length in lengths if not 0 <= length <= PROOF_HASHES_MAX
            ]:
                raise ValueError(
                    f"a proof has {wrong_lengths[0]} hashes, expected 0 to {PROOF_HASHES_MAX}"
                )
            ends = np.cumsum([0, *lengths], dtype=np.int64).tolist()
            hashes = _array_in(archive, "proof", "|u1", (ends[-1], HASH_BYTES))
            proofs = [
                [digest.tobytes() for digest in hashes[begin:end]]
                for begin, end in itertools.pairwise(ends)
            ]
            embeddings = RerunEmbeddings(
                _array_in(archive, "task", "<i8", (count,)),
                _array_in(archive, "row", "<i8", (count,)),
                _array_in(archive, "committed", "<f2", (count, dim)),
                _array_in(archive, "rerun", "<f4", (count, dim)),
                proofs,
                _repeats_in(archive, outcome),
                *_all_variants_in(archive, outcome),
            )
    except ARCHIVE_ERRORS as error:
        raise StepMismatch(
            RERUN_STEP, f"the file of rerun embeddings cannot be read: {error}", RESTORE_FIX
        ) from error
    if (
        list(zip(embeddings.task.tolist(), embeddings.row.tolist(), strict=True))
        != expected_positions
    ):
        _refuse("the file of rerun embeddings has other embeddings than the record", RERUN_STEP)
    return embeddings


def _repeats_in(archive: zipfile.ZipFile, outcome: EmbeddingOutcome) -> "npt.NDArray[np.float32]":
    """Return the second reruns of embeddings whose first rerun differed."""
    import numpy as np

    if outcome.schema_version == WITH_ROW_TOLERANCES:
        return np.empty((0, outcome.receipt.dim), dtype=np.float32)
    count = sum(failed.again is not None for task in outcome.tasks for failed in task.failed)
    return _array_in(archive, "again", "<f4", (count, outcome.receipt.dim))


def _all_variants_in(
    archive: zipfile.ZipFile, outcome: EmbeddingOutcome
) -> Iterator[VariantEmbeddings | None]:
    """Yield the embeddings of variants of test, of training and of few-shot sequences."""
    variants, dim = outcome.variants, outcome.receipt.dim
    test_count = sum(decisions.rows for decisions in variants.kinds.values()) if variants else 0
    yield _variants_in(archive, "varied", test_count, dim) if variants else None
    training_count = sum(refitted.rows for refitted in outcome.refits)
    yield _variants_in(archive, "refit", training_count, dim) if outcome.refits else None
    support_count = sum(refitted.support for refitted in outcome.refits)
    has_support = outcome.schema_version not in WITHOUT_FEW_SHOT
    yield _variants_in(archive, "support", support_count, dim) if has_support else None


def _variants_in(archive: zipfile.ZipFile, name: str, count: int, dim: int) -> VariantEmbeddings:
    """Return `count` variants' embeddings from the arrays `name`, `name`_task and `name`_row."""
    return VariantEmbeddings(
        _array_in(archive, f"{name}_task", "<i8", (count,)),
        _array_in(archive, f"{name}_row", "<i8", (count,)),
        _array_in(archive, name, "<f4", (count, dim)),
    )


def _array_in(
    archive: zipfile.ZipFile, name: str, expected_dtype: str, shape: tuple[int, ...]
) -> "npt.NDArray[Any]":
    """Return an array of a rerun file. Raises ValueError for another type or shape."""
    import numpy as np

    member = archive.getinfo(f"{name}.npy")
    if member.compress_type != zipfile.ZIP_STORED:
        msg = f"{name} is compressed, expected it uncompressed"  # a few bytes could fill the memory
        raise ValueError(msg)
    stream = io.BytesIO(archive.read(member))
    version = np.lib.format.read_magic(stream)
    if version != (1, 0):
        msg = f"{name} is of version {version}, expected (1, 0)"
        raise ValueError(msg)
    stored_shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    if (stored_shape, is_fortran, dtype) != (shape, False, np.dtype(expected_dtype)):
        msg = (
            f"{name} has the shape {stored_shape} of {dtype.str}, expected {shape} of "
            f"{expected_dtype}"
        )
        raise ValueError(msg)
    return np.frombuffer(stream.read(), dtype=expected_dtype).reshape(shape)


def check_proofs(
    embeddings: RerunEmbeddings, outcome: EmbeddingOutcome, receipt: EmbeddingReceipt
) -> None:
    """Raise StepMismatch if the proof of an embedding does not end in its task's Merkle root."""
    for index, number in enumerate(embeddings.task.tolist()):
        task = outcome.tasks[number]
        committed_task, row = receipt.tasks[task.task], int(embeddings.row[index])
        leaf = embedding_leaf(embeddings.committed[index].tobytes(), row)
        root = root_from_proof(
            leaf, row, committed_task.train + committed_task.test, embeddings.proofs[index]
        )
        if root is None or root.hex() != committed_task.root:
            _refuse(
                f"embedding {row} of {task.task} is not one that the receipt commits to",
                PROOFS_STEP,
            )


def check_comparisons(
    embeddings: RerunEmbeddings, outcome: EmbeddingOutcome, receipt: EmbeddingReceipt
) -> None:
    """Raise StepMismatch if the comparison of an embedding with its rerun is not as recorded.

    The rule of comparison is that of the record's version.
    """
    first_repeat = 0
    for number, task in enumerate(outcome.tasks):
        is_of_task = embeddings.task == number
        scale = receipt.tasks[task.task].scale_log2
        committed, rerun = embeddings.committed[is_of_task], embeddings.rerun[is_of_task]
        if outcome.schema_version == WITH_ROW_TOLERANCES:
            from geneb_ci.receipt import first_rule  # the rest needs no NumPy

            comparison = first_rule.compare_by_first_rule(committed, rerun, scale)
            computed_comparison = (comparison.deviation.tolist(), comparison.mismatch.tolist())
        else:
            repeats = [failed for failed in task.failed if failed.again is not None]
            second_reruns = embeddings.repeats[first_repeat : first_repeat + len(repeats)]
            first_repeat += len(repeats)
            is_before_bounds = outcome.schema_version in WITHOUT_BOUNDS
            computed_comparison = _compared_by_column(
                task, committed, rerun, second_reruns, scale, uses_foreseen=is_before_bounds
            )
        if (task.deviation, task.mismatch) != computed_comparison:
            _refuse(
                f"{task.task}: embeddings and reruns compare otherwise than the record says",
                EMBEDDINGS_STEP,
            )


def _compared_by_column(
    task: ComparedTask,
    committed: "npt.NDArray[np.float16]",
    rerun: "npt.NDArray[np.float32]",
    second_reruns: "npt.NDArray[np.float32]",
    scale: int,
    *,
    uses_foreseen: bool,
) -> tuple[list[float], list[int]]:
    """Return each embedding's deviation from its rerun, and its number of unequal coordinates.

    `second_reruns` has those of embeddings that failed. With `uses_foreseen`, the tolerances are
    computed from all embeddings, also from those whose draw could be foreseen, as before version
    2.2. Raises StepMismatch if a repeated embedding compares differently.
    """
    import numpy as np

    from geneb_ci.receipt.column_rule import (
        compare_with_repeat,
        compare_with_rerun,
        coordinate_tolerances,
        unfit_reason,
    )

    if fault := unfit_reason(committed):
        _refuse(f"{task.task}: {fault}", EMBEDDINGS_STEP)
    is_unforeseen = (
        None if uses_foreseen else np.isin(task.distinct_rows, sorted(unforeseen_rows(task.rows)))
    )
    limits = coordinate_tolerances(rerun, scale, is_unforeseen)
    repeats = [failed for failed in task.failed if failed.again is not None]
    for failed, repeated in zip(repeats, second_reruns, strict=True):
        index = task.distinct_rows.index(failed.row)
        repeat = compare_with_repeat(committed[index], rerun[index], repeated, limits[index], scale)
        recorded_repeat = failed.again
        if recorded_repeat is not None and repeat != (
            recorded_repeat.deviation,
            recorded_repeat.mismatch,
            recorded_repeat.distance or 0.0,
        ):
            _refuse(
                f"{task.task}: embedding {failed.row} compares otherwise when computed again",
                EMBEDDINGS_STEP,
            )
    comparison = compare_with_rerun(committed, rerun, limits, scale)
    return comparison.deviation.tolist(), comparison.mismatch.tolist()


def draw_counts(outcome: EmbeddingOutcome) -> dict[str, int]:
    """Return by part, such as training, the number of drawn embeddings of all tasks together."""
    counts: dict[str, int] = {}
    for task in outcome.tasks:
        for part, rows in task.rows.items():
            counts[part] = counts.get(part, 0) + len(rows)
    return counts
