"""Embeds drawn sequences again, among decoys and variants, and estimates the cost of that.

The sequences of all tasks form one list in the order of their digests, so that no position reveals
task, split or label. The list is divided into parts, each kept when it is finished.
"""

import dataclasses
import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from geneb_ci.audit.compare.outcome import Decoys
from geneb_ci.audit.cost import DECOYS_PER_TASK, few_shot_sequence_count
from geneb_ci.audit.rerun.honesty import varied_sequence_count
from geneb_ci.audit.rerun.prepare import CPU, PreparedRerun
from geneb_ci.audit.rerun.task_embedding import SandboxRuns
from geneb_ci.audit.rerun.workspace import EmbeddedTask
from geneb_ci.audit.sampling.embedding_draw import task_shares
from geneb_ci.common.errors import ExtractorFailed, ResultRefused
from geneb_ci.receipt.cells import ReceiptCost, duration_text
from geneb_ci.receipt.draw import SMALL_TASK_EMBEDDINGS, EmbeddingCounts
from geneb_ci.receipt.embeddings import STRONGEST
from geneb_ci.receipt.source import size_text
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.files import file_sha256
from reference_harness.formats.submission import EmbeddingReceipt, SubmissionV12
from reference_harness.formats.text import Say

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


PART_SEQUENCES = 4096
"""Largest number of sequences of a part, which is embedded and saved as a whole. A stopped audit
loses one part at most; each part starts the extractor twice."""
FLOAT64 = "float64"
"""Value of the extractor's option `dtype`, and of `EmbeddingRepeat.dtype`, for float64."""
ALONE_BATCH = "a batch of its own"
"""Value of `EmbeddingRepeat.dtype` if the extractor has no option to compute in float64."""
_FACTS_FILE, _MATRIX_FILE = "embedded.json", "embeddings.npy"
PARTS_FOLDER = "rows"
"""Subfolder of the work folder with one folder for each part."""


class SampleEmbedder:
    """Embeds the sequences of an audit by receipt in parts, each saved in the work folder."""

    def __init__(self, prepared: PreparedRerun, width: int, say: Say) -> None:
        self._prepared = prepared
        self._width = width
        self._say = say
        self.part_facts: list[EmbeddedTask] = []
        """Facts of each finished part of the list of sequences."""
        self.repeats: list[tuple[str, npt.NDArray[np.float32]]] = []
        """Some sequences, each with its embedding from another position or batch."""

    def embed(
        self, sequences: Sequence[str], unpublished: Sequence[str] = ()
    ) -> "dict[str, npt.NDArray[np.float32]]":
        """Return the embedding of each distinct sequence.

        `unpublished` are variants and fresh sequences, which are embedded as well. Raises what
        `run_in_sandbox` raises.
        """
        published = set(sequences)
        ordered = sorted(
            published.union(unpublished),
            key=lambda sequence: hashlib.sha256(sequence.encode()).digest(),
        )
        parts = [
            ordered[start : start + PART_SEQUENCES]
            for start in range(0, len(ordered), PART_SEQUENCES)
        ]
        embedding_by_sequence: dict[str, npt.NDArray[np.float32]] = {}
        for number, unordered_part in enumerate(parts):
            # The published sequences come first, as `with_decoys` needs them.
            part = sorted(unordered_part, key=lambda sequence: sequence not in published)
            published_count = sum(sequence in published for sequence in part)
            embeddings = self._embed_part(
                part, published_count, f"part {number + 1} of {len(parts)}", number
            )
            embedding_by_sequence.update(zip(part, embeddings, strict=True))
        return embedding_by_sequence

    def _embed_part(
        self, sequences: list[str], published_count: int, label: str, number: int
    ) -> "npt.NDArray[np.float32]":
        """Return the embeddings of a part, whose published sequences come first."""
        import numpy as np  # slow to import, and only needed here

        work = self._prepared.work
        folder = work.folder / PARTS_FOLDER / str(number)
        folder.mkdir(parents=True, exist_ok=True)
        lines = "".join(f"{sequence}\n" for sequence in sequences)
        part_digest = hashlib.sha256(lines.encode()).hexdigest()
        if work.has_result(folder / _FACTS_FILE):
            facts = work.read_as(folder / _FACTS_FILE, EmbeddedTask)
            if (
                facts is not None
                and facts.sequences_sha256 == part_digest
                and file_sha256(folder / _MATRIX_FILE) == facts.embeddings_sha256
            ):
                saved_embeddings = np.load(folder / _MATRIX_FILE, allow_pickle=False)
                return self._add_part(sequences, facts, self._as_float32(saved_embeddings))
        seconds_used = sum(facts.seconds for facts in self.part_facts)
        runs = SandboxRuns(self._prepared, seconds_used, self._say, label)
        embeddings = runs.embed(sequences, published_count)
        repeats = [repeat for _, repeat in embeddings.repeats]
        matrix = self._as_float32(np.vstack([embeddings.values, *repeats]))
        work.write_matrix(folder / _MATRIX_FILE, matrix)
        facts = EmbeddedTask(
            sequences_sha256=part_digest,
            embeddings_sha256=file_sha256(folder / _MATRIX_FILE),
            computed=published_count,
            decoys=embeddings.decoys,
            attempts=runs.attempts,
            seconds=runs.seconds,
            peak=runs.peak_bytes,
            token_budget=runs.token_budget,
            further=len(sequences) - published_count,
            further_sha256=None,
            repeated=embeddings.repeatability,
            repeats=[number for number, _ in embeddings.repeats],
        )
        work.write_result(folder / _FACTS_FILE, facts.model_dump_json(indent=1) + "\n")
        return self._add_part(sequences, facts, matrix)

    def _add_part(
        self, sequences: Sequence[str], facts: EmbeddedTask, matrix: "npt.NDArray[np.float32]"
    ) -> "npt.NDArray[np.float32]":
        """Add a finished part to `part_facts` and `repeats`; return its embeddings.

        `matrix` has the embeddings of `sequences`, followed by those of the repeats.
        """
        self.part_facts.append(facts)
        repeated_sequences = [sequences[number] for number in facts.repeats]
        self.repeats += zip(repeated_sequences, matrix[len(sequences) :], strict=True)
        return matrix[: len(sequences)]

    def _as_float32(self, embeddings: "np.ndarray") -> "npt.NDArray[np.float32]":
        """Return embeddings as float32. Raises ResultRefused if the receipt has another width."""
        import numpy as np

        if embeddings.shape[1] != self._width:
            raise ResultRefused(
                f"the extractor returns embeddings of {embeddings.shape[1]} numbers, expected "
                f"{self._width} as in the receipt",
                "ask the contributor for a receipt made with this extractor and these options",
            )
        with np.errstate(over="ignore"):  # a number that is too large becomes infinite
            return embeddings.astype(np.float32, copy=False)

    def embed_again(self, sequences: Sequence[str]) -> "tuple[str, npt.NDArray[np.float32]]":
        """Embed sequences again, each alone, and in float64 if the extractor has that option.

        Returns the dtype, or `ALONE_BATCH`, and the (n, d) embeddings.
        """
        runs = SandboxRuns(self._prepared, sum(facts.seconds for facts in self.part_facts))
        spec = self._prepared.spec
        try:
            options = {**spec.options, "dtype": FLOAT64}
            embeddings = runs.embed_alone(sequences, dataclasses.replace(spec, options=options))
            return FLOAT64, self._as_float32(embeddings)
        except ExtractorFailed:
            # The constructor of the extractor refuses the option.
            return ALONE_BATCH, self._as_float32(runs.embed_alone(sequences, spec))

    @property
    def decoys(self) -> Decoys:
        """The result of the decoys of all parts: flagged if any part is."""
        task_decoys = [facts.decoys for facts in self.part_facts if facts.decoys is not None]
        return Decoys(
            order_dependent=any(decoys.order_dependent for decoys in task_decoys),
            memorised=any(decoys.memorised for decoys in task_decoys),
            detail="; ".join(dict.fromkeys(decoys.detail for decoys in task_decoys)),
        )


CPU_OPERATIONS_PER_SECOND = 150e9
"""Assumed operations per second of a run on a CPU. Measured: 193 to 242 GFLOP/s on two cores, with
21 and 85 million parameters."""
LETTERS_PER_SEQUENCE = 300
"""Assumed letters of a sequence where the submission does not say how many were given."""
GPU_AS_CPUS = 50
"""Assumed speed of a GPU as a multiple of that of a CPU, for a run on one and a rerun on the other:
7.5 TFLOP/s in float32, without TF32, divided by `CPU_OPERATIONS_PER_SECOND`."""


class EmbeddingSpeed(NamedTuple):
    """The speed at which a rerun is expected to embed."""

    seconds_per_sequence: float
    basis: str
    """The measurement or assumption behind the estimate, as the end of a sentence."""


def embedding_speed(submission: SubmissionV12, device: str = CPU) -> EmbeddingSpeed:
    """Return the expected speed of the extractor on a device.

    This is the speed of the contributor's run if the submission states it, since two models of
    equally many parameters differ by a factor of ten and more. Otherwise each letter counts as a
    token, and each token as two operations per parameter.
    """
    letter_counts = [
        measured.letters
        for measured in submission.measured.values()
        if measured.letters is not None
    ]
    letters_per_sequence = LETTERS_PER_SEQUENCE
    if letter_counts:
        letters_given = sum(counts.given for counts in letter_counts)
        letters_per_sequence = round(
            letters_given / sum(counts.sequences for counts in letter_counts)
        )
    cost, hardware = submission.run.embedding_cost, submission.run.hardware
    if cost is None:
        operations = 2 * submission.meta.params * letters_per_sequence
        return EmbeddingSpeed(
            operations / CPU_OPERATIONS_PER_SECOND,
            f"on a CPU, at 2 operations per parameter and letter, {letters_per_sequence} letters "
            f"a sequence and {CPU_OPERATIONS_PER_SECOND / 1e9:.0f} GFLOP/s",
        )
    basis = (
        f"at the {cost.letters_per_second:,.0f} letters a second of the contributor's run "
        f"({hardware.device}, {hardware.name}) and {letters_per_sequence} letters a sequence"
    )
    slowdown = 1.0
    if (ran_on_cpu := hardware.device == CPU) != (device == CPU):
        slowdown = 1 / GPU_AS_CPUS if ran_on_cpu else GPU_AS_CPUS
        basis += f", with a GPU counted as {GPU_AS_CPUS} CPUs"
    return EmbeddingSpeed(slowdown * letters_per_sequence / cost.letters_per_second, basis)


class RerunCost(NamedTuple):
    """Expected cost of an audit by receipt."""

    drawn_count: int
    """Largest number of distinct drawn embeddings."""
    variant_count: int
    """Largest number of variants of test, of training and of few-shot sequences."""
    fresh_count: int
    """Number of fresh sequences."""
    sequence_count: int
    """Number of all sequences in the sandbox, decoys included."""
    disk_bytes: int
    """Size of the file of rerun embeddings, in bytes."""
    embedding_seconds: float
    """Seconds in the sandbox."""
    basis: str
    """The measurement or assumption behind the estimated time, as the end of a sentence."""


def rerun_cost(
    counts: EmbeddingCounts,
    receipt: EmbeddingReceipt,
    benchmark: Benchmark,
    pace: EmbeddingSpeed,
    refitted_count: int,
    fresh_count: int = 0,
) -> RerunCost:
    """Return the highest cost of a draw with `fresh_count` fresh sequences.

    `refitted_count` is the number of tasks whose training sequences are varied, without those of
    earlier draws.
    """
    shares = task_shares(counts, receipt, benchmark)
    shots_by_regime = benchmark.protocol.few_shot_k
    seeds = len(benchmark.protocol.seeds)
    drawn_total, support_count_by_task = 0, {}
    for task, share in shares.items():
        receipt_task = receipt.tasks[task]
        classes = len(benchmark.by_id[task].test_class_counts or (1, 1))
        support = sorted(
            min(receipt_task.train, k * seeds * classes) for k in shots_by_regime.values()
        )
        support_count_by_task[task] = min(
            receipt_task.train, few_shot_sequence_count(benchmark, task)
        )
        is_all_drawn = share.whole and receipt_task.train < SMALL_TASK_EMBEDDINGS
        drawn_count = min(receipt_task.test, len(benchmark.regimes) * share.test)
        drawn_count += (
            receipt_task.train
            if is_all_drawn
            else min(receipt_task.train, share.training + 2 * STRONGEST)
        )
        drawn_count += sum(
            support_size if number == 0 or share.whole else min(support_size, share.support)
            for number, support_size in enumerate(support)
        )
        drawn_total += drawn_count
    varied_test_count = varied_sequence_count(len(receipt.tasks))
    variant_count = sum(
        min(varied_test_count, receipt_task.test) for receipt_task in receipt.tasks.values()
    )
    varied_training_count = varied_sequence_count(min(refitted_count, len(receipt.tasks)) or 1)
    variant_count += sum(
        sorted(
            (
                min(varied_training_count, receipt.tasks[task].train) + support
                for task, support in support_count_by_task.items()
            ),
            reverse=True,
        )[:refitted_count]
    )
    sequence_count = drawn_total + variant_count + fresh_count
    sequence_count += DECOYS_PER_TASK * (1 + sequence_count // PART_SEQUENCES)
    return RerunCost(
        drawn_count=drawn_total,
        variant_count=variant_count,
        fresh_count=fresh_count,
        sequence_count=sequence_count,
        disk_bytes=drawn_total * (6 * receipt.dim + 32 * 20)
        + variant_count * (4 * receipt.dim + 16),
        embedding_seconds=pace.seconds_per_sequence * sequence_count,
        basis=pace.basis,
    )


def rerun_cost_lines(cost: RerunCost, cells: ReceiptCost) -> list[str]:
    """Return the cost of embedding and of recomputing the cells, as lines of text."""
    time_text = f"about {duration_text(cost.embedding_seconds)} {cost.basis}"
    decoys = cost.sequence_count - cost.drawn_count - cost.variant_count - cost.fresh_count
    fresh = f", {cost.fresh_count:,} fresh sequences" if cost.fresh_count else ""
    return [
        (
            f"cost: at most {cost.drawn_count:,} embeddings, {cost.variant_count:,} variants"
            f"{fresh} and {decoys:,} decoys to embed, {time_text}"
        ),
        f"  cells: {cells.text}; rerun embeddings up to {size_text(cost.disk_bytes)}",
    ]
