"""From a submission to its commitment, and back: what a plan is about, found in a checkout."""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from geneb_ci.audit.commitment import (
    PROTOCOL,
    BenchmarkPin,
    Commitment,
    DrawPolicy,
    ExtractorCode,
    Weights,
)
from geneb_ci.audit.policy import audit_policy
from geneb_ci.audit.sampling import drawable, strata_of
from geneb_ci.audit.steps import AuditRefused
from geneb_ci.audit.tolerance import tolerance_digest
from geneb_ci.check.registry import RULES
from geneb_ci.check.runner import Checker
from geneb_ci.common.benchmark import Benchmark
from geneb_ci.common.config import Layout, benchmark_of, find_layout
from geneb_ci.common.errors import NothingChecked, UsageProblem
from geneb_ci.common.finding import Severity, first_and_more, plural
from geneb_ci.common.types import first_error
from geneb_ci.submission.bytes import read_bytes
from geneb_ci.submission.document import read_document
from geneb_ci.submission.fault import Fault
from geneb_ci.submission.models import Run, Submission, SubmissionV11

BUILTIN = "builtin:"
# Python's own cache, left by any import. The sandbox must not read it, nor anything else that is
# not listed here.
IGNORED = "__pycache__"
# More files than this are no extractors; each may have as many bytes as a submission.
FILES_MAX = 1000


def tree_files(folder: Path) -> dict[str, bytes]:
    """Read every file below the extractors' folder: name to bytes, in order of name.

    Names are relative, with slashes. Raises AuditRefused for a link, a file that is too large or
    irregular, and for more than `FILES_MAX` files.
    """
    found: dict[str, bytes] = {}
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != IGNORED)
        for name in (*files, *(name for name in folders if (Path(place) / name).is_symlink())):
            path = Path(place) / name
            raw = read_bytes(path)
            if isinstance(raw, Fault):
                raise AuditRefused(
                    f"{path}: {raw.message}", "keep plain source files alone among the extractors"
                )
            found[path.relative_to(folder).as_posix()] = raw
            if len(found) > FILES_MAX:
                raise AuditRefused(
                    f"{folder}: it holds more than {FILES_MAX} files",
                    "keep plain source files alone among the extractors",
                )
    return dict(sorted(found.items()))


def tree_digest(files: dict[str, bytes]) -> str:
    """Return SHA-256 over a line `<sha256>  <name>` for each file, in order of name."""
    lines = [f"{hashlib.sha256(raw).hexdigest()}  {name}\n" for name, raw in sorted(files.items())]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def extractor_code(
    folder: Path | None,
    root: Path,
    path: str,
    class_name: str,
    claimed: str | None,
    options: Mapping[str, str],
) -> ExtractorCode:
    """Return the extractor that a run names, as it lies in the folder of extractors.

    `root` is that of the repository; `claimed` the digest that the run names, if it does. Only the
    last part of `path` counts, so that it never leads out of the folder.
    Raises AuditRefused when the module is not there or is another one.
    """
    if path.startswith(BUILTIN):
        if claimed is None:
            raise AuditRefused(
                f"{path} is named without the digest of its source",
                "a built-in extractor writes format 1.1, which has it: ask for that file",
            )
        return ExtractorCode(
            path=path,
            class_name=class_name,
            sha256=claimed,
            options=dict(sorted(options.items())),
            tree=tree_digest({}),
        )
    name = path.rsplit("/", 1)[-1]
    if folder is None:
        raise AuditRefused(
            f"the extractor {name!r} is nowhere: the submission lies in no repository",
            "put the submission and its extractor into a checkout, and commit to that",
        )
    files = tree_files(folder)
    if name not in files:
        raise AuditRefused(
            f"{folder}: there is no extractor {name!r}", "add the module that ran to the checkout"
        )
    sha256 = hashlib.sha256(files[name]).hexdigest()
    if claimed not in {None, sha256}:
        raise AuditRefused(
            f"the extractor {name!r} is not the one that ran: sha256 {sha256}, expected {claimed}",
            "ask for the extractor exactly as it ran, or for a new run",
        )
    return ExtractorCode(
        path=Path(os.path.relpath(folder / name, root)).as_posix(),
        class_name=class_name,
        sha256=sha256,
        options=dict(sorted(options.items())),
        tree=tree_digest(files),
    )


AGAIN = "check out the commit that was committed to, or commit and draw anew"


@dataclass(frozen=True)
class AuditSubject:
    """A submission under audit, with what its rerun needs of the checkout."""

    document: dict[str, Any]
    """The submission, as it was read."""
    benchmark: Benchmark
    modules: dict[str, bytes]
    """Files of the extractors' folder by name; empty for a built-in."""

    @property
    def dtype(self) -> str | None:
        """The dtype the run declares, in format 1.1."""
        embedding = self.document.get("run", {}).get("embedding", {})
        return embedding.get("dtype") if isinstance(embedding, dict) else None

    @property
    def has_canonical(self) -> bool:
        """Whether any cell claims a canonical score."""
        evidence = self.document.get("evidence", {})
        return any(cell.get("canonical") for tasks in evidence.values() for cell in tasks.values())


def subject_of(commitment: Commitment, layout: Layout) -> AuditSubject:
    """Find what was committed to.

    Raises AuditRefused when submission, extractor, benchmark or the constants of the tolerance
    are not those of the commitment, NothingChecked when a file is not there.
    """
    if layout.submissions is None:
        raise NothingChecked(
            "the audited submission lies in no repository", "run this in a checkout of one"
        )
    document = read_document(layout.submissions / f"{commitment.model_id}.json")
    _same("submission", document.sha256, commitment.submission_sha256)
    benchmark = benchmark_of(layout)
    _same("benchmark", benchmark.sha256, commitment.benchmark.sha256)
    _same("tolerance", tolerance_digest(), commitment.policy.tolerance)
    committed = commitment.extractor
    if committed.path.startswith(BUILTIN):
        return AuditSubject(document.value, benchmark, {})
    here = extractor_code(
        layout.extractors,
        layout.root,
        committed.path,
        committed.class_name,
        committed.sha256,
        committed.options,
    )
    _same("extractors' folder", here.tree, committed.tree)
    return AuditSubject(document.value, benchmark, tree_files(_folder(layout)))


def lay_out(modules: dict[str, bytes], folder: Path) -> None:
    """Write the files that were hashed: the sandbox sees these, and not what lies there later."""
    for name, raw in modules.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(raw)


def _folder(layout: Layout) -> Path:
    if layout.extractors is None:
        raise NothingChecked("there is no folder of extractors here", AGAIN)
    return layout.extractors


def _same(what: str, here: str, committed: str) -> None:
    if here != committed:
        raise AuditRefused(
            f"the {what} here is not the one committed to: {here[:16]}..., expected "
            f"{committed[:16]}...",
            AGAIN,
        )


@dataclass(frozen=True)
class Given:
    """What the maintainer says of a run that format 1.0 does not describe."""

    extractor: str
    """`PATH:CLASS`."""
    model: str | None
    """Repository of the weights on the Hub; None for a method without weights."""
    revision: str | None = None
    weights: dict[str, str] = field(default_factory=dict)
    """File name to sha256 of each weight file, where known."""
    options: dict[str, str] = field(default_factory=dict)
    """Keyword arguments of the extractor's constructor, as text."""


def commit(file: Path, tolerance: str, given: Given | None = None) -> Commitment:
    """Return the commitment of a submission, held against the place it lies in.

    `tolerance` is the digest of the constants of the tolerance.
    Raises AuditRefused when the file has errors or its run cannot be repeated, UsageProblem when
    `given` lacks something or is not asked for, and what `Checker.check` does.
    """
    checker = Checker(RULES)
    result, context = checker.check(file), checker.context(file)
    if context.document.sha256 != result.document.sha256:
        raise NothingChecked(f"{file}: it changed while it was read", "try again")
    errors = [one.rule for one in result.findings if one.severity is Severity.ERROR]
    if errors or result.submission is None:
        raise AuditRefused(
            f"{file}: {plural(len(errors), 'error')}: {first_and_more(sorted(set(errors)))}",
            f"an audit begins with a file that passes every check: geneb-ci check {file}",
        )
    layout = find_layout(result.document.path.parent)
    submission, benchmark = result.submission, context.benchmark
    policy = audit_policy(layout)
    regimes, tasks = drawable(submission, benchmark, policy.regimes)
    try:
        extractor, weights = _sources(submission, given, layout)
        found = Commitment(
            protocol=PROTOCOL,
            model_id=submission.model_id,
            submission_sha256=result.document.sha256,
            extractor=extractor,
            weights=weights,
            benchmark=BenchmarkPin(
                name=benchmark.name,
                sha256=benchmark.sha256,
                dataset=benchmark.dataset.repo_id,
                revision=benchmark.dataset.revision,
            ),
            regimes=regimes,
            tasks=tasks,
            policy=DrawPolicy(
                drawn=min(policy.drawn, len(tasks)),
                stratified=policy.stratified,
                strata=strata_of(benchmark, tasks) if policy.stratified else [],
                tolerance=tolerance,
            ),
        )
        found.sha256  # noqa: B018 (a name that canonical JSON has no way to write shows here)
    except ValidationError as error:
        raise AuditRefused(
            f"{file}: cannot be committed to: {error.title}/{first_error(error)}",
            "shorten or correct what the submission's run says",
        ) from error
    except TypeError as error:
        raise AuditRefused(f"{file}: {error}", "rename the weight file in ASCII") from error
    return found


def _sources(
    submission: Submission, given: Given | None, layout: Layout
) -> tuple[ExtractorCode, Weights]:
    """Return code and weights: from the run, or from the maintainer where there is none."""
    if isinstance(submission, SubmissionV11):
        if given is not None:
            raise UsageProblem(
                "the submission itself says which extractor and weights ran",
                "leave out --extractor, --option, --model, --revision and --weights",
            )
        run = submission.run
        if run.harness.dirty:
            raise AuditRefused(
                "the harness had local changes: nobody can repeat this run",
                "ask for a run from a clean checkout or an installed package",
            )
        code = run.extractor
        return (
            extractor_code(
                layout.extractors,
                layout.root,
                code.path,
                code.class_name,
                code.sha256,
                code.options,
            ),
            _weights(run),
        )
    if given is None:
        raise UsageProblem(
            "format 1.0 does not say which extractor and weights ran",
            "name them: --extractor PATH:CLASS with --model REPO --revision COMMIT or --no-weights",
        )
    path, colon, class_name = given.extractor.rpartition(":")
    if not colon or not path.endswith(".py") or not class_name.isidentifier():
        raise UsageProblem(
            f"--extractor {given.extractor!r} is not PATH:CLASS",
            "write for example submissions/extractors/mine.py:MyExtractor",
        )
    if given.model is None:
        weights = Weights(kind="none", location="", revision=None, files={})
    else:
        weights = _given_weights(given)
    named = (path, class_name, None, given.options)
    return extractor_code(layout.extractors, layout.root, *named), weights


def _given_weights(given: Given) -> Weights:
    if given.revision is None:
        raise _unpinned()
    try:
        return Weights(
            kind="huggingface",
            location=str(given.model),
            revision=given.revision,
            files=dict(sorted(given.weights.items())),
        )
    except ValidationError as error:
        raise UsageProblem(
            f"--revision {given.revision!r} or a digest of --weights is not of its form",
            "a revision is a commit of 40 hex digits, a digest is a sha256 of 64, in lower case",
        ) from error


def _weights(run: Run) -> Weights:
    """Return the weights of a run. Raises AuditRefused when no other machine can load the same."""
    model = run.model
    pinned = model.revision is not None if model.kind == "huggingface" else bool(model.weights)
    if model.kind != "none" and not pinned:
        raise _unpinned()
    if model.kind == "local":
        raise AuditRefused(
            "the weights lie on the contributor's machine alone",
            "ask for a public place: a repository on the Hub, or an https address",
        )
    return Weights(
        kind=model.kind,
        location=model.location,
        revision=model.revision,
        files=dict(sorted(model.weights.items())),
    )


def _unpinned() -> AuditRefused:
    return AuditRefused(
        "the weights are not pinned: a rerun could load others",
        "ask for the 40-hex commit of the model repository and the sha256 of each weight file",
    )
