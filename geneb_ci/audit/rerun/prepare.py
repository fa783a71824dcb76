"""Checks and opens the inputs of a rerun: task data, packages, sandbox, settings, weights."""

import contextlib
import dataclasses
import functools
import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from geneb_ci import __version__
from geneb_ci.audit.code_digest import write_modules
from geneb_ci.audit.commit import AuditSubject
from geneb_ci.audit.commitment import Commitment, Weights
from geneb_ci.audit.compare.tolerance import COPIES_MIN
from geneb_ci.audit.rerun import runner, weights
from geneb_ci.audit.rerun.fetching import (
    InstalledPackages,
    entry_lock,
    install_lock,
    require_python,
)
from geneb_ci.audit.rerun.fresh import (
    FreshSet,
    read_fresh_commitment,
    read_fresh_set,
    refuse_public_sequences,
)
from geneb_ci.audit.rerun.runner import Runner
from geneb_ci.audit.rerun.scoring import ScoringSettings, rescore_embeddings, scoring_limits_of
from geneb_ci.audit.rerun.workspace import EmbeddedTask, WorkFolder, WorkSettings
from geneb_ci.common.config import Layout
from geneb_ci.common.errors import UsageProblem
from geneb_ci.harness.process import (
    ASSUMED_CLASSES,
    LIMIT_FACTOR,
    MEMORY_LIMIT,
    NO_LIMIT_OVERRIDES,
    SECONDS_LIMIT,
    ScoringLimitOverrides,
    ScoringSize,
    TaskSource,
    task_source,
)
from geneb_ci.models.registry import ModelRegistry
from geneb_ci.sandbox.launch import Sandbox, SandboxFacts, sandbox_facts
from geneb_ci.sandbox.levels import DEFAULT_LEVEL
from geneb_ci.sandbox.limits import MIB, TOKEN_BUDGET, Limits
from geneb_ci.sandbox.run import ExtractorSpec
from reference_harness.formats.rescored import Rescored
from reference_harness.formats.text import Say

JITTER_SEED_BITS = 63
"""Number of bits of the seed of the jitter, which fits into a signed 64-bit integer."""
NONCE_BYTES = 32
"""Number of bytes of the secret that decides the variants."""
FETCHED_MARKER = "weights.fetched"
"""File of the work folder that exists once all weights are downloaded."""
CPU, CUDA = "cpu", "cuda"


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Options of a rerun that depend on the machine."""

    level: int = DEFAULT_LEVEL
    """Level of the sandbox."""
    device: str = CPU
    """`cpu`, `cuda`, or `cuda:N` for one of several GPUs."""
    throw_away: bool = False
    """Whether the user confirms that the machine is discarded afterwards."""
    own_code: bool = False
    """Whether the user confirms that they wrote the code that runs."""
    data: Path | None = None
    """Folder of task data; None for the practice benchmark, whose data are generated."""
    weights: Path | None = None
    """Folder of weights; missing files are downloaded into it. None: below the work folder."""
    noise: str | None = None
    """Dtype in which the model computes, for a submission that does not declare one."""
    copies: int = COPIES_MIN
    """Number of jittered copies of the embeddings, from which a tolerance is measured."""
    jobs: int | None = None
    """Number of processes that score; None: one for each processor."""
    token_budget: int | None = TOKEN_BUDGET
    """Padded tokens per batch; None: as many as fit into memory, measured in the sandbox."""
    fresh: Path | None = None
    """File of a fresh set, with its salt beside it."""
    fresh_commitment: Path | None = None
    """File of the commitment to the fresh set."""
    limits: Limits = field(default_factory=Limits)
    """Limits of each run of the extractor."""
    scoring: ScoringLimitOverrides = NO_LIMIT_OVERRIDES
    """Limits of scoring a task; by default they follow from its size."""

    @property
    def gpu(self) -> bool:
        """Whether the sandbox contains the GPU devices."""
        return self.device.partition(":")[0] == CUDA


@dataclass(frozen=True)
class PreparedRerun:
    """The checked inputs of a rerun, with an open sandbox."""

    commitment: Commitment
    subject: AuditSubject
    """The submission under audit, with its benchmark."""
    source: TaskSource
    """The files with the task data."""
    machine: Machine
    settings: WorkSettings
    """Settings that stay the same if the audit is continued."""
    work: WorkFolder
    runner: Runner
    """The open sandbox and the process of the harness."""
    weight_digests: dict[str, str]
    """SHA-256 of each file of the weights, by its name."""
    spec: ExtractorSpec
    """The extractor with its weights and options."""
    packages: InstalledPackages | None = None
    """Packages of the lock of the model's entry or extractor; None without a lock."""
    fresh: FreshSet | None = None
    """The fresh set of this audit; None if it has none."""

    def rescore_task(
        self,
        task: str,
        sequences: Path,
        embeddings: Path,
        noise: str,
        further_files: tuple[Path, Path] | None = None,
        other_draws: str | None = None,
    ) -> Rescored:
        """Return the scores of the embeddings of a task, computed by the harness.

        `noise` is the dtype of the jitter. `further_files` are the file of variants and fresh
        sequences and that of their embeddings; `other_draws` is a text from which other draws of
        few-shot sequences follow. Raises what `scoring.rescore_embeddings` raises.
        """
        scoring = dataclasses.replace(
            self._scoring_settings,
            noise=noise,
            further_files=further_files,
            other_draws=other_draws,
        )
        classes = self._class_count(task)
        return rescore_embeddings(
            task, self.source, sequences, embeddings, scoring, self.runner.harness, classes
        )

    def scoring_facts(self, rescoring: Rescored) -> dict[str, int]:
        """Return the largest limits of scoring a task, by name, for the record."""
        shapes = {
            task: ScoringSize(scores.distinct_sequences, rescoring.dim, self._class_count(task))
            for task, scores in rescoring.tasks.items()
        }
        limits = [scoring_limits_of(shape, self._scoring_settings) for shape in shapes.values()]
        return {
            "scoring_factor": LIMIT_FACTOR,
            SECONDS_LIMIT: max(limit.seconds for limit in limits),
            MEMORY_LIMIT: max(limit.memory_mib for limit in limits),
        }

    @property
    def _scoring_settings(self) -> ScoringSettings:
        """Options with which all tasks are scored."""
        return ScoringSettings(
            noise=self.settings.noise,
            regimes=tuple(self.commitment.regimes),
            seed=self.settings.seed,
            copies=self.settings.copies,
            jobs=self.machine.jobs,
            has_rounded_embeddings=self.subject.has_rounded_embeddings,
            limits=self.machine.scoring,
        )

    def _class_count(self, task: str) -> int:
        """Return the number of classes of a task; `ASSUMED_CLASSES` if they are not listed."""
        counts = self.subject.benchmark.by_id[task].test_class_counts
        return len(counts) if counts else ASSUMED_CLASSES

    def facts_of_sandbox(
        self, embedded: Iterable[EmbeddedTask], rescoring: Rescored | None = None
    ) -> SandboxFacts:
        """Return what a record says about the sandbox, with the limits of scoring if that ran.

        The token budget is the smallest of the embedded tasks.
        """
        budgets = [task.token_budget for task in embedded if task.token_budget]
        budget = min(budgets, default=self.machine.token_budget)
        scoring = self.scoring_facts(rescoring) if rescoring is not None else {}
        return sandbox_facts(
            self.runner.sandbox, self.runner.escapes, self.machine.limits, budget, scoring
        )

    def check_weights(self) -> None:
        """Hash the weights again after the last task, and compare the digests with the first ones.

        Raises WeightsRefused or AuditRefused, which name the file.
        """
        if self.spec.weights is not None:
            committed_weights = self.commitment.weights
            digests = weights.verify_weights(
                self.spec.weights, committed_weights, self.settings.level
            )
            self.work.pin_weights(digests)


@contextlib.contextmanager
def prepared_rerun(
    commitment: Commitment,
    subject: AuditSubject,
    layout: Layout,
    machine: Machine,
    work: WorkFolder | None,
    say: Say,
) -> Iterator[PreparedRerun]:
    """Check all inputs of a rerun, download the weights, and yield both with an open sandbox.

    Raises what `workflow.rerun_plan` raises, except for errors of the extractor.
    """
    noise = _noise_dtype(subject, machine)
    source = task_source(subject.benchmark, layout.benchmark, machine.data)
    fresh = _fresh_set(subject, machine, source)
    say("submission, extractor and benchmark are those of the commitment")
    lock = subject.lock
    if subject.environment is not None:
        require_python(subject.environment)
        lock = entry_lock(subject.environment, ModelRegistry(layout).folder.parent)
    packages = None if lock is None else install_lock(lock, say)
    if work is not None:
        work.clear()
    with runner.open_runner(
        machine.level,
        gpu=machine.gpu,
        throw_away_machine=machine.throw_away,
        i_wrote_this_code=machine.own_code,
        folder=work.scratch if work is not None else None,
    ) as sandbox_runner:
        sandbox = sandbox_runner.sandbox
        work_folder = work or WorkFolder(sandbox.scratch)
        settings = work_folder.pin_settings(
            WorkSettings(
                commitment=commitment.sha256,
                version=__version__,
                level=sandbox.level,
                device=CUDA if machine.gpu else CPU,
                noise=noise,
                copies=machine.copies,
                seed=secrets.randbits(JITTER_SEED_BITS),
                nonce=secrets.token_hex(NONCE_BYTES),
                fresh=fresh.sha256 if fresh is not None else None,
            )
        )
        escape_count = len(sandbox_runner.escapes)
        say(f"sandbox level {sandbox.level}: {escape_count} escapes attempted, all refused")
        weights_folder, digests = provided_weights(
            commitment.weights, machine, work_folder, sandbox.level, say
        )
        work_folder.pin_weights(digests)
        spec = _extractor_spec(commitment, subject, sandbox, weights_folder, machine, packages)
        yield PreparedRerun(
            commitment,
            subject,
            source,
            machine,
            settings,
            work_folder,
            sandbox_runner,
            digests,
            spec,
            packages,
            fresh,
        )


def _fresh_set(subject: AuditSubject, machine: Machine, source: TaskSource) -> FreshSet | None:
    """Return the fresh set after checking that no sequence of it is public; None without a set.

    Raises UsageProblem if only one of set and commitment is passed, and what these checks raise.
    """
    files = (machine.fresh, machine.fresh_commitment)
    if files[0] is None or files[1] is None:
        if any(files):
            raise UsageProblem(
                "only one of --fresh and --fresh-commitment is given, expected both or neither",
                "pass both: --fresh SET.csv --fresh-commitment F.json",
            )
        return None
    fresh_set = read_fresh_set(files[0], read_fresh_commitment(files[1]), subject.benchmark)
    refuse_public_sequences(fresh_set.sequences, source)
    return fresh_set


def _noise_dtype(subject: AuditSubject, machine: Machine) -> str:
    """Return the dtype in which the model computed, declared by the submission or by --noise."""
    declared_dtype = subject.dtype
    if declared_dtype is None and machine.noise is None:
        raise UsageProblem(
            "neither the submission nor the model registry says in which dtype the model computed",
            "pass --noise float32, float16, bfloat16 or float64",
        )
    if declared_dtype is not None and machine.noise not in {None, declared_dtype}:
        raise UsageProblem(
            f"--noise {machine.noise} contradicts the declared dtype of the run, {declared_dtype}",
            "leave out --noise: the declared dtype is used",
        )
    return declared_dtype or str(machine.noise)


def provided_weights(
    committed_weights: Weights, machine: Machine, work: WorkFolder, level: int, say: Say
) -> tuple[Path | None, dict[str, str]]:
    """Return the folder of weights and the digest of each file; None and {} without weights."""
    if committed_weights.kind == "none":
        return None, {}
    folder = machine.weights or work.folder / "weights"
    if machine.weights is None and work.read(FETCHED_MARKER) is None:
        say(f"fetching the weights: {committed_weights.location}")
        weights.fetch_weights(
            committed_weights, folder, say=say
        )  # continues an interrupted download
        work.write_text(FETCHED_MARKER, "")
    return folder, weights.provide_weights(committed_weights, folder, level, say)


def _extractor_spec(
    commitment: Commitment,
    subject: AuditSubject,
    sandbox: Sandbox,
    weights_folder: Path | None,
    machine: Machine,
    packages: InstalledPackages | None,
) -> ExtractorSpec:
    code = commitment.extractor
    spec_of = functools.partial(
        ExtractorSpec,
        name_model=commitment.weights.location,
        weights=weights_folder,
        device=machine.device,
        options=code.options,
        token_budget=machine.token_budget,
        packages=packages.folder if packages is not None else None,
    )
    if not subject.modules:
        return spec_of(code.path)
    folder = sandbox.scratch / "extractors"
    write_modules(subject.modules, folder)
    return spec_of(code.class_name, module=folder / Path(code.path).name)


def weight_notes(digests: Mapping[str, str]) -> list[str]:
    """Return a note with the name and SHA-256 of each file of the weights."""
    return [f"weights: {name} {digest}" for name, digest in sorted(digests.items())]


def attempt_notes(embedded: Iterable[EmbeddedTask]) -> list[str]:
    """Return a note on calls by the extractor's code that no extractor needs; [] without any."""
    calls = dict.fromkeys(attempt for task in embedded for attempt in task.attempts)
    note = f"the extractor's Python code called, inside the sandbox: {', '.join(calls)}"
    return [note] if calls else []


def usage_note(embedded: Collection[EmbeddedTask], sequence_count: int) -> str:
    """Return a note on the time and memory that the extractor used."""
    seconds = sum(task.seconds for task in embedded)
    peak = max(task.peak for task in embedded)
    return f"embedding {sequence_count} sequences took {seconds:.0f} s and up to {peak // MIB} MiB"
