"""Reruns a plan: embeddings come from a sandbox, scores are computed outside, claims compared.

Into the sandbox go the sequences in random order with decoys among them, the extractor and its
weights. Labels, claims, task names, the seed of the draw and that of the decoys stay outside.
"""

import dataclasses
import functools
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from geneb_ci.audit import compare, weights
from geneb_ci.audit.canonical import moment_of
from geneb_ci.audit.commit import AuditSubject, subject_of
from geneb_ci.audit.commitment import Commitment, Weights
from geneb_ci.audit.decoys import embed_among_decoys, with_decoys
from geneb_ci.audit.draw import recompute
from geneb_ci.audit.extractors import write_modules
from geneb_ci.audit.fetching import Installed, install
from geneb_ci.audit.outcome import AuditOutcome, Decoys, HarnessFacts, overall_verdict
from geneb_ci.audit.plan import Plan
from geneb_ci.audit.rescored import Rescored
from geneb_ci.audit.scoring import (
    Scoring,
    TaskSource,
    rescored,
    sequences_of,
    task_source,
)
from geneb_ci.audit.tolerance import COPIES_MIN
from geneb_ci.common.config import Layout
from geneb_ci.common.errors import UsageProblem
from geneb_ci.models.registry import ModelRegistry
from geneb_ci.sandbox.facts import sandbox_facts
from geneb_ci.sandbox.launch import Sandbox
from geneb_ci.sandbox.levels import DEFAULT, open_sandbox
from geneb_ci.sandbox.limits import Limits
from geneb_ci.sandbox.run import Batching, ExtractorSpec, probe_suite, refuse_leaks, run_in_sandbox

SEED_BITS = 63
"""Bits of the jitter's seed: NumPy's generator takes them, and they fit a signed 64-bit integer."""
Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Options of a rerun that depend on the machine."""

    level: int = DEFAULT
    gpu: bool = False
    throw_away: bool = False
    own_code: bool = False
    data: Path | None = None
    weights: Path | None = None
    """Folder of weights; where it is empty they are fetched into it. They are always hashed."""
    noise: str | None = None
    """Dtype in which the model computes, for a submission that does not declare one."""
    copies: int = COPIES_MIN
    workers: int | None = None
    limits: Limits = field(default_factory=Limits)


def rerun(
    plan: Plan, layout: Layout, machine: Machine, clock: Callable[[], float], say: Say
) -> AuditOutcome:
    """Rerun the tasks of a plan and return the outcome.

    `clock` returns seconds since 1970; `say` gets a line of progress for each step.
    Raises StepMismatch when the plan does not recompute, AuditRefused when something here is not
    what was committed to, SandboxUnavailable or SandboxLeaks, ExtractorFailed, LimitExceeded or
    ResultRefused for the extractor, NothingChecked for what is missing, UsageProblem for options
    that contradict the submission.
    """
    started_at = moment_of(int(clock()))
    recompute(plan)
    commitment = plan.commitment
    subject = subject_of(commitment, layout)
    noise = _noise(subject, machine)
    source = task_source(subject.benchmark, layout.benchmark, machine.data)
    say("the plan recomputes; submission, extractor and benchmark are those committed to")
    packages = environment_of(subject, layout)
    with open_sandbox(
        machine.level,
        gpu=machine.gpu,
        throw_away_machine=machine.throw_away,
        i_wrote_this_code=machine.own_code,
    ) as sandbox:
        escapes = probe_suite(sandbox)
        refuse_leaks(sandbox, escapes)
        say(f"sandbox level {sandbox.level}: {len(escapes)} escapes attempted, all refused")
        model, digests = _weights(commitment.weights, machine, sandbox)
        spec = _spec(commitment, subject, sandbox, model, gpu=machine.gpu)
        if packages is not None:
            spec = dataclasses.replace(spec, packages=packages.folder)
        found, decoys, attempts = _scores(plan, subject, source, spec, sandbox, machine, noise, say)
        facts = sandbox_facts(sandbox, escapes, machine.limits)
    claimed = compare.claims(subject.document, subject.benchmark, commitment.regimes)
    tasks = compare.compare(claimed, found, plan.chosen, subject.benchmark)
    notes = [
        *compare.notes(tasks, found),
        *_loaded(digests),
        *_run_with(packages),
        *_attempted(attempts),
    ]
    return AuditOutcome(
        schema_version="1.0",
        plan=plan,
        tasks=tasks,
        decoys=decoys,
        verdict=overall_verdict(tasks, decoys),
        sandbox=facts,
        noise=noise,
        harness=HarnessFacts(
            # The version of the protocol; the release of the harness is among the packages.
            version=subject.benchmark.harness_version,
            commit=found.harness.commit,
            dirty=found.harness.dirty,
        ),
        benchmark_sha256=found.benchmark.sha256,
        dataset_revision=found.dataset.revision,
        packages={"geneb-ci": found.harness.version, **found.packages},
        notes=notes,
        started_at=started_at,
        finished_at=moment_of(int(clock())),
    )


def _noise(subject: AuditSubject, machine: Machine) -> str:
    declared = subject.dtype
    if declared is None and machine.noise is None:
        raise UsageProblem(
            "format 1.0 does not say in which dtype the model computed",
            "pass --noise float32, float16, bfloat16 or float64",
        )
    if declared is not None and machine.noise not in {None, declared}:
        raise UsageProblem(
            f"--noise {machine.noise} contradicts the submission, which declares {declared}",
            "leave out --noise: the declared dtype is used",
        )
    return declared or str(machine.noise)


def _weights(
    committed: Weights, machine: Machine, sandbox: Sandbox
) -> tuple[Path | None, dict[str, str]]:
    """Return the folder of weights and the digest of each file; None and {} without weights."""
    if committed.kind == "none":
        return None, {}
    folder = machine.weights or sandbox.scratch / "weights"
    return folder, weights.provide(committed, folder, sandbox.level)


def environment_of(subject: AuditSubject, layout: Layout) -> Installed | None:
    """Install the packages that the model's entry names; None where it names none.

    Raises what `fetching.install` does.
    """
    run = subject.entry.run if subject.entry is not None else None
    if run is None or run.environment is None:
        return None
    return install(run.environment, ModelRegistry(layout).folder.parent)


def _run_with(packages: Installed | None) -> list[str]:
    return [] if packages is None else [f"environment: lock with sha256 {packages.lock_sha256}"]


def _loaded(digests: dict[str, str]) -> list[str]:
    return [f"weights: {name} {digest}" for name, digest in sorted(digests.items())]


def _spec(
    commitment: Commitment,
    subject: AuditSubject,
    sandbox: Sandbox,
    model: Path | None,
    *,
    gpu: bool,
) -> ExtractorSpec:
    code = commitment.extractor
    common = functools.partial(
        ExtractorSpec,
        name_model=commitment.weights.location,
        weights=model,
        device="cuda" if gpu else "cpu",
        options=code.options,
    )
    if not subject.modules:
        return common(code.path)
    folder = sandbox.scratch / "extractors"
    write_modules(subject.modules, folder)
    return common(code.class_name, module=folder / Path(code.path).name)


def _scores(
    plan: Plan,
    subject: AuditSubject,
    source: TaskSource,
    spec: ExtractorSpec,
    sandbox: Sandbox,
    machine: Machine,
    noise: str,
    say: Say,
) -> tuple[Rescored, Decoys, list[str]]:
    import numpy as np  # noqa: PLC0415 (slow to import, and only needed here)

    names = [one.task for one in plan.chosen]
    file = sequences_of(names, source, sandbox.scratch)
    sequences = file.read_text(encoding="ascii").splitlines()
    decoyed = with_decoys(sequences, secrets.token_bytes(32))
    say(
        f"embedding {len(sequences)} sequences of {len(names)} tasks and "
        f"{len(decoyed.sequences) - len(sequences)} decoys"
    )
    attempts: list[str] = []

    def embed(given: Sequence[str], batching: Batching) -> np.ndarray:
        ran = run_in_sandbox(
            given, dataclasses.replace(spec, batching=batching), sandbox, machine.limits
        )
        attempts.extend(one for one in ran.attempts if one not in attempts)
        return ran.values

    embedded = embed_among_decoys(
        decoyed,
        functools.partial(embed, batching="budget"),
        functools.partial(embed, batching="file"),
        noise,
    )
    embeddings = sandbox.scratch / "embeddings.npy"
    np.save(embeddings, embedded.values, allow_pickle=False)
    decoys = embedded.decoys
    del embedded  # the matrix is in its file: scoring needs the memory
    say(f"scoring the embeddings and {machine.copies} jittered copies")
    how = Scoring(
        noise=noise,
        seed=secrets.randbits(SEED_BITS),
        copies=machine.copies,
        workers=machine.workers,
        canonical=subject.has_canonical,
    )
    return rescored(names, source, file, embeddings, how), decoys, attempts


def _attempted(attempts: list[str]) -> list[str]:
    """Return a note of what the extractor attempted, as far as Python saw it."""
    if not attempts:
        return []
    return [f"the extractor's Python code called, inside the sandbox: {', '.join(attempts)}"]
